/* SPDX-License-Identifier: MIT */
#include "core/base/eb-worker.h"

struct _EbWorker {
    GObject parent_instance;
    GThread *thread;
    GMainContext *context;
    GMainLoop *loop;
    guint max_queue;
    gint queued; /* atomic */
    gboolean closed;
};

G_DEFINE_FINAL_TYPE(EbWorker, eb_worker, G_TYPE_OBJECT)

typedef struct {
    EbWorker *worker; /* not owned: close() waits for every job */
    GTask *task;
    EbWorkerFunc func;
} EbWorkerJob;

static gboolean
drop_task(gpointer data)
{
    return G_SOURCE_REMOVE;
}

/* The last reference of a task may hold the last one of its source object, which must not end in this thread: an object
 * that joins the worker in its finalizer would wait for itself. So the reference goes back to where the task came from. */
static void
job_free(gpointer data)
{
    EbWorkerJob *job = data;
    g_autoptr(GSource) source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, drop_task, job->task, g_object_unref);
    g_source_attach(source, g_task_get_context(job->task));
    g_free(job);
}

static gboolean
job_run(gpointer data)
{
    EbWorkerJob *job = data;
    g_atomic_int_add(&job->worker->queued, -1);
    GCancellable *cancellable = g_task_get_cancellable(job->task);
    if (cancellable != NULL && g_cancellable_is_cancelled(cancellable)) {
        g_task_return_error(job->task, eb_error_new(EB_ERROR_CANCELLED, "worker.cancelled", "cancelled"));
    } else {
        job->func(job->task);
    }
    return G_SOURCE_REMOVE;
}

static gpointer
thread_main(gpointer data)
{
    EbWorker *self = data;
    g_main_context_push_thread_default(self->context);
    g_main_loop_run(self->loop);
    g_main_context_pop_thread_default(self->context);
    return NULL;
}

static gboolean
quit_loop(gpointer data)
{
    g_main_loop_quit(data);
    return G_SOURCE_REMOVE;
}

static void
attach(EbWorker *self, GSourceFunc func, gpointer data, GDestroyNotify destroy)
{
    g_autoptr(GSource) source = g_idle_source_new();
    /* One priority for all keeps the order of the calls. */
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, func, data, destroy);
    g_source_attach(source, self->context);
}

void
eb_worker_run(EbWorker *self, GTask *task, EbWorkerFunc func)
{
    g_return_if_fail(EB_IS_WORKER(self) && G_IS_TASK(task) && func != NULL);
    g_autoptr(GTask) owned = task;
    if (self->closed) {
        g_task_return_error(owned, eb_error_new(EB_ERROR_CANCELLED, "worker.closed", "the worker is closed"));
        return;
    }
    if ((guint)g_atomic_int_get(&self->queued) >= self->max_queue) {
        GError *error =
            eb_error_new(EB_ERROR_QUOTA, "worker.queue-full", "more than %u jobs wait for the disk", self->max_queue);
        eb_error_set_retry(error, 1000);
        g_task_return_error(owned, error);
        return;
    }
    g_atomic_int_inc(&self->queued);
    EbWorkerJob *job = g_new0(EbWorkerJob, 1);
    job->worker = self;
    job->task = g_steal_pointer(&owned);
    job->func = func;
    attach(self, job_run, job, job_free);
}

gboolean
eb_worker_is_current(EbWorker *self)
{
    return g_thread_self() == self->thread;
}

void
eb_worker_close(EbWorker *self)
{
    g_return_if_fail(EB_IS_WORKER(self));
    if (self->closed)
        return;
    self->closed = TRUE;
    attach(self, quit_loop, self->loop, NULL);
    g_thread_join(self->thread);
    self->thread = NULL;
}

static void
eb_worker_finalize(GObject *object)
{
    EbWorker *self = EB_WORKER(object);
    eb_worker_close(self);
    g_main_loop_unref(self->loop);
    g_main_context_unref(self->context);
    G_OBJECT_CLASS(eb_worker_parent_class)->finalize(object);
}

static void
eb_worker_class_init(EbWorkerClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_worker_finalize;
}

static void
eb_worker_init(EbWorker *self)
{
    self->context = g_main_context_new();
    self->loop = g_main_loop_new(self->context, FALSE);
}

EbWorker *
eb_worker_new(const char *name, guint max_queue)
{
    EbWorker *self = g_object_new(EB_TYPE_WORKER, NULL);
    self->max_queue = max_queue > 0 ? max_queue : EB_WORKER_MAX_QUEUE;
    self->thread = g_thread_new(name, thread_main, self);
    return self;
}
