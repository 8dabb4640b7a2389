/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_WORKER_MAX_QUEUE: jobs that may wait; beyond it a job ends at once with EB_ERROR_QUOTA. */
#define EB_WORKER_MAX_QUEUE 1024

/**
 * EbWorker: one thread for work that blocks (SQLite, directory trees), one job after the other in the order of the
 * calls. Results come back in the main context of the caller through the job's GTask.
 */
#define EB_TYPE_WORKER (eb_worker_get_type())
G_DECLARE_FINAL_TYPE(EbWorker, eb_worker, EB, WORKER, GObject)

/**
 * EbWorkerFunc: runs in the worker's thread and must return @task. It sees g_task_get_task_data() alone and touches
 * nothing of the main thread.
 */
typedef void (*EbWorkerFunc)(GTask *task);

/** eb_worker_new: (transfer full): @name: of the thread, at most 15 bytes; @max_queue: 0 = EB_WORKER_MAX_QUEUE */
EbWorker *eb_worker_new(const char *name, guint max_queue);

/**
 * eb_worker_run:
 * @task: (transfer full): its cancellable is looked at before the job starts; a job that began runs to its end
 */
void eb_worker_run(EbWorker *self, GTask *task, EbWorkerFunc func);

/** eb_worker_is_current: TRUE in the worker's own thread. */
gboolean eb_worker_is_current(EbWorker *self);

/**
 * eb_worker_close: jobs queued so far are done, later ones end with EB_ERROR_CANCELLED; waits for the thread. The last
 * unref does the same.
 */
void eb_worker_close(EbWorker *self);

G_END_DECLS
