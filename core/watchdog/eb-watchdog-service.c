/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-watchdog"
#include "core/watchdog/eb-watchdog-service.h"

#include "core/base/eb-source.h"
#include "core/base/eb-worker.h"
#include "core/control/eb-control-client.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-lock-holder.h"
#include "core/session/eb-session-manager.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct _EbWatchdogService {
    GObject parent_instance;
    char *state_dir;
    EbWorker *disk;
    EbControlClient *client; /* (nullable): of a look that was answered */
    GTask *waiting;          /* (nullable): the look that waits for the lock */
    GSource *timer;          /* (nullable): how long it does */
    gboolean lock_open;      /* the worker is at it, perhaps for ever */
    EbLockHolder holder;     /* of the service's lock when it last did not answer; pid 0 = not known */
};

G_DEFINE_FINAL_TYPE(EbWatchdogService, eb_watchdog_service, G_TYPE_OBJECT)

/* One look under way. */
typedef struct {
    EbWatchdogLook look;
    EbControlClient *client; /* (nullable) */
    gboolean closed;         /* it was accepted and closed without an answer */
} Look;

static void
look_free(gpointer data)
{
    Look *look = data;

    g_clear_object(&look->client);
    g_free(look);
}

static void
eb_watchdog_service_finalize(GObject *object)
{
    EbWatchdogService *self = EB_WATCHDOG_SERVICE(object);

    eb_clear_source(&self->timer);
    g_clear_object(&self->client);
    g_object_unref(self->disk);
    eb_lock_holder_clear(&self->holder);
    g_free(self->state_dir);
    G_OBJECT_CLASS(eb_watchdog_service_parent_class)->finalize(object);
}

static void
eb_watchdog_service_class_init(EbWatchdogServiceClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_watchdog_service_finalize;
}

static void
eb_watchdog_service_init(EbWatchdogService *self)
{
    self->disk = eb_worker_new("eb-lock", 1);
}

EbWatchdogService *
eb_watchdog_service_new(const char *state_dir)
{
    EbWatchdogService *self = g_object_new(EB_TYPE_WATCHDOG_SERVICE, NULL);

    self->state_dir = g_strdup(state_dir);
    return self;
}

/* --- its process --- */

static gboolean
has_ended(int pidfd)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};

    return poll(&wait, 1, 0) != 0;
}

gboolean
eb_watchdog_service_end(EbWatchdogService *self, GError **error)
{
    g_return_val_if_fail(EB_IS_WATCHDOG_SERVICE(self), FALSE);
    if (self->holder.pid == 0 || has_ended(self->holder.pidfd)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "watchdog.process", "which process holds the lock cannot be told");
        return FALSE;
    }
    if (syscall(SYS_pidfd_send_signal, self->holder.pidfd, SIGKILL, NULL, 0) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "watchdog.signal", "process %d: %s", (int)self->holder.pid, g_strerror(errno));
    return FALSE;
}

char *
eb_watchdog_service_describe(EbWatchdogService *self)
{
    g_return_val_if_fail(EB_IS_WATCHDOG_SERVICE(self), NULL);
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)self->holder.pid);
    g_autofree char *text = NULL;

    if (self->holder.pid == 0 || !g_file_get_contents(path, &text, NULL, NULL) || has_ended(self->holder.pidfd))
        return NULL;
    /* The name in parentheses may hold anything, so looked for from its end. */
    const char *end = strrchr(text, ')');
    if (end == NULL || end[1] != ' ')
        return NULL;
    switch (end[2]) {
    case 'T':
        return g_strdup("its process was stopped by a signal");
    case 't':
        return g_strdup("its process is held by a debugger");
    case 'D':
        return g_strdup("its process waits for the kernel, often for a disk");
    default:
        return NULL;
    }
}

/* --- its lock --- */

static void
lock_known(EbWatchdogService *self, EbWatchdogLock lock)
{
    g_autoptr(GTask) task = g_steal_pointer(&self->waiting);
    Look *look = task != NULL ? g_task_get_task_data(task) : NULL;

    if (task == NULL)
        return;
    eb_clear_source(&self->timer);
    look->look.lock = lock;
    if (look->look.pid == 0 && lock == EB_WATCHDOG_LOCK_HELD)
        look->look.pid = self->holder.pid;
    /* Whoever holds the lock and takes connections only to close them has no place for one more, and lives; unless it
     * ended just then, and another one holds the lock by now. */
    if (look->closed && lock == EB_WATCHDOG_LOCK_HELD) {
        if (self->holder.pid == 0 || self->holder.pid == look->look.pid)
            look->look.answer = EB_WATCHDOG_ANSWER_GIVEN;
        else
            look->look.pid = self->holder.pid;
    }
    look->look.ended_us = g_get_monotonic_time();
    g_task_return_boolean(task, TRUE);
}

static gboolean
on_lock_late(gpointer user_data)
{
    lock_known(EB_WATCHDOG_SERVICE(user_data), EB_WATCHDOG_LOCK_UNKNOWN);
    return G_SOURCE_REMOVE;
}

typedef struct {
    char *state_dir;
    EbWatchdogLock lock;
    EbLockHolder holder;
} LockJob;

static void
lock_job_free(gpointer data)
{
    LockJob *job = data;

    eb_lock_holder_clear(&job->holder);
    g_free(job->state_dir);
    g_free(job);
}

static void
look_at_lock_in_worker(GTask *task)
{
    static const EbWatchdogLock locks[] = {
        [EB_DIR_LOCK_UNKNOWN] = EB_WATCHDOG_LOCK_UNKNOWN,
        [EB_DIR_LOCK_ABSENT] = EB_WATCHDOG_LOCK_ABSENT,
        [EB_DIR_LOCK_FREE] = EB_WATCHDOG_LOCK_FREE,
        [EB_DIR_LOCK_HELD] = EB_WATCHDOG_LOCK_HELD,
    };
    LockJob *job = g_task_get_task_data(task);

    job->lock = locks[eb_dir_lock_look(job->state_dir, EB_STATE_LOCK_FILE)];
    if (job->lock != EB_WATCHDOG_LOCK_HELD ||
        !eb_lock_holder_find(job->state_dir, EB_STATE_LOCK_FILE, &job->holder, NULL) || job->holder.id != NULL) {
        g_task_return_boolean(task, TRUE);
        return;
    }
    /* A service says which instance it is; who does not is none, and never ended. */
    job->lock = EB_WATCHDOG_LOCK_OTHER;
    eb_lock_holder_clear(&job->holder);
    g_task_return_boolean(task, TRUE);
}

static void
on_lock(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWatchdogService) self = user_data;
    LockJob *job = g_task_get_task_data(G_TASK(result));

    self->lock_open = FALSE;
    eb_lock_holder_clear(&self->holder);
    self->holder = job->holder;
    job->holder = (EbLockHolder){0};
    lock_known(self, g_task_propagate_boolean(G_TASK(result), NULL) ? job->lock : EB_WATCHDOG_LOCK_UNKNOWN);
}

/* @task: (transfer full) */
static void
look_at_lock(EbWatchdogService *self, GTask *task)
{
    Look *look = g_task_get_task_data(task);

    g_clear_object(&look->client);
    self->waiting = task;
    self->timer = g_timeout_source_new(EB_WATCHDOG_LOCK_MS);
    g_source_set_callback(self->timer, on_lock_late, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
    if (self->lock_open)
        return; /* an earlier one never came back: its answer is as good, if it comes */
    self->lock_open = TRUE;
    GTask *job = g_task_new(NULL, NULL, on_lock, g_object_ref(self));
    LockJob *data = g_new0(LockJob, 1);
    data->state_dir = g_strdup(self->state_dir);
    g_task_set_task_data(job, data, lock_job_free);
    eb_worker_run(self->disk, job, look_at_lock_in_worker);
}

/* --- the look --- */

static void
on_status(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    EbWatchdogService *self = g_task_get_source_object(task);
    Look *look = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) status = eb_control_client_call_finish(EB_CONTROL_CLIENT(source), result, &error);
    const char *reason = eb_error_get_reason(error);

    /* An answer that says no is one. */
    if (status != NULL || g_strcmp0(reason, "control.error") == 0) {
        look->look.answer = EB_WATCHDOG_ANSWER_GIVEN;
        look->look.lock = EB_WATCHDOG_LOCK_HELD;
        look->look.ended_us = g_get_monotonic_time();
        self->client = g_steal_pointer(&look->client);
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    look->closed = g_strcmp0(reason, "jsonrpc.timeout") != 0;
    look->look.answer = look->closed ? EB_WATCHDOG_ANSWER_NONE : EB_WATCHDOG_ANSWER_SILENT;
    look_at_lock(self, task);
}

void
eb_watchdog_service_look_async(EbWatchdogService *self, guint deadline_ms, GAsyncReadyCallback callback,
                               gpointer user_data)
{
    g_return_if_fail(EB_IS_WATCHDOG_SERVICE(self) && self->waiting == NULL);
    g_autoptr(GError) error = NULL;
    GTask *task = g_task_new(self, NULL, callback, user_data);
    Look *look = g_new0(Look, 1);

    g_task_set_source_tag(task, eb_watchdog_service_look_async);
    g_task_set_task_data(task, look, look_free);
    eb_watchdog_service_hang_up(self);
    look->look.begun_us = g_get_monotonic_time();
    look->client = eb_control_client_new_now(self->state_dir, &error);
    if (look->client == NULL) {
        gboolean full = g_strcmp0(eb_error_get_reason(error), "control.queue") == 0;
        look->look.answer = full ? EB_WATCHDOG_ANSWER_SILENT : EB_WATCHDOG_ANSWER_NONE;
        look_at_lock(self, task);
        return;
    }
    look->look.pid = eb_control_client_get_service_pid(look->client);
    eb_control_client_call_async(look->client, "status", NULL, deadline_ms, on_status, task);
}

void
eb_watchdog_service_look_finish(EbWatchdogService *self, GAsyncResult *result, EbWatchdogLook *look)
{
    g_return_if_fail(g_task_is_valid(result, self));
    Look *done = g_task_get_task_data(G_TASK(result));

    *look = done->look;
    g_task_propagate_boolean(G_TASK(result), NULL);
}

/* --- the report --- */

static void
on_reported(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    g_autoptr(JsonNode) answer = eb_control_client_call_finish(EB_CONTROL_CLIENT(source), result, &error);

    if (answer != NULL) {
        g_task_return_boolean(task, TRUE);
    } else if (g_strcmp0(eb_error_get_reason(error), "control.error") == 0) {
        g_task_return_error(task, eb_error_new(EB_ERROR_NOT_SUPPORTED, "watchdog.report",
                                               "the service does not take reports: %s", error->message));
        g_error_free(error);
    } else {
        g_task_return_error(task, error);
    }
}

void
eb_watchdog_service_report_async(EbWatchdogService *self, JsonNode *params, guint deadline_ms,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_WATCHDOG_SERVICE(self));
    GTask *task = g_task_new(self, NULL, callback, user_data);

    g_task_set_source_tag(task, eb_watchdog_service_report_async);
    if (self->client == NULL) {
        json_node_unref(params);
        g_task_return_error(
            task, eb_error_new(EB_ERROR_UNAVAILABLE, "watchdog.crowded", "the service has no place for a connection"));
        g_object_unref(task);
        return;
    }
    eb_control_client_call_async(self->client, "watchdog.report", params, deadline_ms, on_reported, task);
}

gboolean
eb_watchdog_service_report_finish(EbWatchdogService *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
eb_watchdog_service_hang_up(EbWatchdogService *self)
{
    g_clear_object(&self->client);
}
