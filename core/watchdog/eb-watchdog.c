/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-watchdog"
#include "core/watchdog/eb-watchdog.h"

#include "core/base/eb-notify.h"
#include "core/base/eb-source.h"
#include "core/base/eb-worker.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-dirs.h"
#include "core/session/eb-session-sweep.h"
#include "core/watchdog/eb-watchdog-backend.h"
#include "core/watchdog/eb-watchdog-service.h"

#include <glib-unix.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* What is shown says when it was written, so that a reader sees that the watchdog is alive. */
#define SHOW_S 60

struct _EbWatchdog {
    GObject parent_instance;
    EbConfig *config;
    EbContainerBackend *backend;
    EbWatchdogService *service_probe;
    EbWatchdogBackend *backend_probe;
    EbWatchdogRules rules;
    EbWorker *disk;
    EbDirLock *lock; /* (nullable) */
    char *run_dir;
    char *remedy;         /* (nullable) */
    char *backend_detail; /* (nullable) */
    char *process_detail; /* (nullable) */
    char *last_error;     /* (nullable) */
    guint guests_ended, services_ended;
    GTask *task; /* (nullable): the run, or the one look */
    gboolean once;
    guint open; /* parts of the one look under way */
    GSource *timer;
    GSource *signals[2];
    GSource *alive;
    gint64 shown_us;
    gboolean dirty;       /* what is shown is not what is so */
    gboolean writing;     /* one write at a time */
    gboolean write_told;  /* that it cannot be written */
    gboolean report_told; /* that the service takes no reports */
};

G_DEFINE_FINAL_TYPE(EbWatchdog, eb_watchdog, G_TYPE_OBJECT)

static void turn(EbWatchdog *self);

static void
eb_watchdog_finalize(GObject *object)
{
    EbWatchdog *self = EB_WATCHDOG(object);

    eb_clear_source(&self->timer);
    eb_clear_source(&self->alive);
    for (gsize i = 0; i < G_N_ELEMENTS(self->signals); i++)
        eb_clear_source(&self->signals[i]);
    g_object_unref(self->service_probe);
    g_object_unref(self->backend_probe);
    g_object_unref(self->backend);
    g_object_unref(self->config);
    g_object_unref(self->disk);
    eb_dir_lock_release(self->lock);
    g_free(self->run_dir);
    g_free(self->remedy);
    g_free(self->backend_detail);
    g_free(self->process_detail);
    g_free(self->last_error);
    G_OBJECT_CLASS(eb_watchdog_parent_class)->finalize(object);
}

static void
eb_watchdog_class_init(EbWatchdogClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_watchdog_finalize;
}

static void
eb_watchdog_init(EbWatchdog *self)
{
    self->disk = eb_worker_new("eb-show", 1);
}

static gint64
boot_time(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (gint64)now.tv_sec * G_USEC_PER_SEC + now.tv_nsec / 1000;
}

EbWatchdog *
eb_watchdog_new(EbConfig *config, EbContainerBackend *backend, const EbWatchdogLimits *limits, const char *remedy)
{
    EbWatchdog *self = g_object_new(EB_TYPE_WATCHDOG, NULL);

    self->config = g_object_ref(config);
    self->backend = g_object_ref(backend);
    self->service_probe = eb_watchdog_service_new(eb_config_get_state_dir(config));
    self->backend_probe = eb_watchdog_backend_new(backend);
    self->run_dir = g_build_filename(eb_config_get_state_dir(config), "run", NULL);
    self->remedy = g_strdup(remedy);
    eb_watchdog_rules_init(&self->rules, limits, g_get_monotonic_time(), boot_time());
    return self;
}

gboolean
eb_watchdog_take_lock(EbWatchdog *self, GError **error)
{
    g_return_val_if_fail(EB_IS_WATCHDOG(self) && self->lock == NULL, FALSE);
    GError *local = NULL;

    if (eb_session_dirs_make_private(self->run_dir, geteuid(), getegid(), &local))
        self->lock = eb_dir_lock_take(self->run_dir, EB_WATCHDOG_LOCK_FILE, &local);
    if (self->lock != NULL)
        return TRUE;
    if (g_error_matches(local, EB_ERROR, EB_ERROR_QUOTA)) {
        /* Two of them would end the same guests, which does no harm; none would end no guest. */
        eb_warning("%s: the watchdog goes on without its lock, and shows nothing", local->message);
        g_error_free(local);
        return TRUE;
    }
    if (g_error_matches(local, EB_ERROR, EB_ERROR_LOCKED))
        g_prefix_error(&local, "another watchdog looks after this state directory: ");
    g_propagate_error(error, local);
    return FALSE;
}

void
eb_watchdog_get_view(EbWatchdog *self, EbWatchdogView *view)
{
    *view = (EbWatchdogView){.rules = &self->rules,
                             .now_us = g_get_monotonic_time(),
                             .process_detail = self->process_detail,
                             .backend_detail = self->backend_detail,
                             .remedy = self->remedy,
                             .guests_ended = self->guests_ended,
                             .services_ended = self->services_ended,
                             .last_error = self->last_error,
                             .once = self->once};
}

/* --- showing --- */

typedef struct {
    char *path;
    char *text;
    gsize length;
} Write;

static void
write_free(gpointer data)
{
    Write *job = data;

    g_free(job->path);
    g_free(job->text);
    g_free(job);
}

static void
write_in_worker(GTask *task)
{
    Write *job = g_task_get_task_data(task);
    GError *error = NULL;

    if (g_file_set_contents_full(job->path, job->text, (gssize)job->length, G_FILE_SET_CONTENTS_CONSISTENT, 0600,
                                 &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

/* Only the lock says for certain that nobody keeps the file up to date any more. */
static void
remove_shown(EbWatchdog *self)
{
    g_autofree char *path = g_build_filename(self->run_dir, EB_WATCHDOG_FILE, NULL);

    g_unlink(path);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWatchdog) self = user_data;
    g_autoptr(GError) error = NULL;

    self->writing = FALSE;
    if (self->task == NULL) {
        remove_shown(self);
        return;
    }
    if (g_task_propagate_boolean(G_TASK(result), &error)) {
        self->write_told = FALSE;
    } else if (!self->write_told) {
        self->write_told = TRUE;
        eb_warning("what the watchdog sees cannot be written, it goes on without: %s", error->message);
    }
    if (self->dirty)
        turn(self);
}

/* A full disk costs what is shown, never the watchdog. */
static void
show(EbWatchdog *self, const EbWatchdogView *view)
{
    gboolean old = view->now_us - self->shown_us >= (gint64)SHOW_S * G_USEC_PER_SEC;

    if (self->writing || (!self->dirty && !old))
        return;
    self->dirty = FALSE;
    self->shown_us = view->now_us;
    eb_notify_status("service %s, backend %s", eb_watchdog_service_state_to_string(self->rules.service),
                     eb_watchdog_backend_state_to_string(self->rules.backend));
    if (self->lock == NULL)
        return;
    g_autoptr(GDateTime) at = g_date_time_new_now_utc();
    g_autoptr(JsonNode) node = eb_watchdog_view_json(view, at);
    Write *job = g_new0(Write, 1);
    GTask *task = g_task_new(NULL, NULL, on_written, g_object_ref(self));
    job->path = g_build_filename(self->run_dir, EB_WATCHDOG_FILE, NULL);
    job->text = eb_json_write(node, &job->length);
    g_task_set_task_data(task, job, write_free);
    self->writing = TRUE;
    eb_worker_run(self->disk, task, write_in_worker);
}

static void
fail(EbWatchdog *self, const char *what, const GError *error)
{
    g_autofree char *text = g_strdup_printf("%s: %s", what, error->message);

    /* The same again is said once. */
    if (g_strcmp0(text, self->last_error) != 0)
        eb_warning("%s", text);
    g_free(self->last_error);
    self->last_error = g_steal_pointer(&text);
    self->dirty = TRUE;
}

/* A change is a line in the log; a single look is none. */
static void
tell_service(EbWatchdog *self)
{
    EbWatchdogView view;

    g_clear_pointer(&self->process_detail, g_free);
    if (self->rules.service == EB_WATCHDOG_SERVICE_HANGS)
        self->process_detail = eb_watchdog_service_describe(self->service_probe);
    eb_watchdog_get_view(self, &view);
    self->dirty = TRUE;
    g_autofree char *text = eb_watchdog_view_service(&view);
    if (self->rules.service == EB_WATCHDOG_SERVICE_HANGS || self->rules.service == EB_WATCHDOG_SERVICE_DEAD ||
        self->rules.service == EB_WATCHDOG_SERVICE_UNKNOWN)
        eb_warning("%s", text);
    else
        eb_info("%s", text);
}

static void
tell_backend(EbWatchdog *self, EbWatchdogBackendState before)
{
    EbWatchdogView view;

    eb_watchdog_get_view(self, &view);
    self->dirty = TRUE;
    g_autofree char *text = eb_watchdog_view_backend(&view);
    if (self->rules.backend != EB_WATCHDOG_BACKEND_OK)
        eb_warning("%s", text);
    else if (before != EB_WATCHDOG_BACKEND_UNKNOWN)
        eb_warning("%s again", text);
    else
        eb_info("%s", text);
}

/* --- acting --- */

static void
on_reported(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWatchdog) self = user_data;
    g_autoptr(GError) error = NULL;
    gboolean done = eb_watchdog_service_report_finish(self->service_probe, result, &error);
    gboolean refused = g_error_matches(error, EB_ERROR, EB_ERROR_NOT_SUPPORTED);

    if (refused && !self->report_told)
        eb_warning("%s", error->message);
    self->report_told = self->report_told || refused;
    /* Whatever else went wrong, the next look tries again. */
    if (done || refused)
        eb_watchdog_rules_reported(&self->rules, self->rules.told_state, self->rules.told_pid, g_get_monotonic_time());
    else
        self->rules.told = FALSE;
    eb_watchdog_service_hang_up(self->service_probe);
}

static void
report(EbWatchdog *self, gint64 pid)
{
    EbWatchdogView view;

    eb_watchdog_get_view(self, &view);
    eb_watchdog_rules_reported(&self->rules, self->rules.backend, pid, view.now_us);
    eb_watchdog_service_report_async(self->service_probe,
                                     eb_watchdog_view_report(&view, eb_config_get_session(self->config)->backend),
                                     self->rules.limits.deadline, on_reported, g_object_ref(self));
}

static void
on_swept(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWatchdog) self = user_data;
    g_autoptr(GError) error = NULL;
    guint ended = 0;
    gboolean good = eb_session_sweep_guests_finish(result, &ended, &error);

    if (ended > 0) {
        self->guests_ended += ended;
        self->dirty = TRUE;
        eb_warning("ended %u guest%s of a service or try that died", ended, ended == 1 ? "" : "s");
    }
    if (!good)
        fail(self, "guests of a dead service could not all be ended", error);
    eb_watchdog_rules_swept(&self->rules, good, g_get_monotonic_time());
    turn(self);
}

static void
sweep(EbWatchdog *self)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSessionParts) parts = eb_session_sweep_parts_new(self->config, self->backend, &error);

    if (parts != NULL) {
        eb_session_sweep_guests_async(parts, NULL, NULL, on_swept, g_object_ref(self));
        return;
    }
    eb_debug("nothing to end: %s", error->message);
    eb_watchdog_rules_swept(&self->rules, TRUE, g_get_monotonic_time());
}

static void
end_service(EbWatchdog *self)
{
    g_autoptr(GError) error = NULL;
    gboolean done = eb_watchdog_service_end(self->service_probe, &error);

    if (done) {
        self->services_ended++;
        self->dirty = TRUE;
        eb_warning("the service (process %" G_GINT64_FORMAT ") hung and was ended", self->rules.service_pid);
    } else {
        fail(self, "the service hangs and could not be ended", error);
    }
    eb_watchdog_rules_ended(&self->rules, done, g_get_monotonic_time());
}

/* --- looking --- */

static void
part_is_over(EbWatchdog *self)
{
    if (self->once && --self->open == 0) {
        g_autoptr(GTask) task = g_steal_pointer(&self->task);
        g_task_return_boolean(task, self->rules.service == EB_WATCHDOG_SERVICE_UP &&
                                        self->rules.backend == EB_WATCHDOG_BACKEND_OK);
    } else if (!self->once) {
        turn(self);
    }
}

static void
on_service(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWatchdog) self = user_data;
    EbWatchdogLook look;

    eb_watchdog_service_look_finish(self->service_probe, result, &look);
    if (self->task == NULL)
        return;
    if (eb_watchdog_rules_service(&self->rules, &look))
        tell_service(self);
    if (!self->once && look.answer == EB_WATCHDOG_ANSWER_GIVEN && look.pid != 0 &&
        eb_watchdog_rules_has_report(&self->rules, look.pid, look.ended_us))
        report(self, look.pid);
    else
        eb_watchdog_service_hang_up(self->service_probe);
    part_is_over(self);
}

static void
on_backend(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWatchdog) self = user_data;
    EbWatchdogBackendState before = self->rules.backend;
    EbWatchdogLook look;
    g_autofree char *detail = NULL;

    eb_watchdog_backend_look_finish(self->backend_probe, result, &look, &detail);
    if (self->task == NULL)
        return;
    g_free(self->backend_detail);
    self->backend_detail = g_steal_pointer(&detail);
    if (eb_watchdog_rules_backend(&self->rules, &look))
        tell_backend(self, before);
    part_is_over(self);
}

static gboolean
on_timer(gpointer user_data)
{
    EbWatchdog *self = user_data;

    g_clear_pointer(&self->timer, g_source_unref);
    turn(self);
    return G_SOURCE_REMOVE;
}

/* Does what is due and sets the alarm for what is due next. */
static void
turn(EbWatchdog *self)
{
    EbWatchdogView view;

    if (self->task == NULL)
        return;
    guint actions = eb_watchdog_rules_wake(&self->rules, g_get_monotonic_time(), boot_time());
    guint deadline = self->rules.limits.deadline;
    if (actions & EB_WATCHDOG_LOOK_SERVICE)
        eb_watchdog_service_look_async(self->service_probe, deadline, on_service, g_object_ref(self));
    if (actions & EB_WATCHDOG_LOOK_BACKEND)
        eb_watchdog_backend_look_async(self->backend_probe, deadline, on_backend, g_object_ref(self));
    if (actions & EB_WATCHDOG_SWEEP_GUESTS)
        sweep(self);
    if (actions & EB_WATCHDOG_END_SERVICE)
        end_service(self);
    eb_watchdog_get_view(self, &view);
    show(self, &view);
    eb_clear_source(&self->timer);
    gint64 wait_us = eb_watchdog_rules_next(&self->rules, view.now_us) - view.now_us;
    self->timer = g_timeout_source_new((guint)(MAX(wait_us, 0) / 1000 + 1));
    g_source_set_callback(self->timer, on_timer, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
}

/* --- the run --- */

void
eb_watchdog_stop(EbWatchdog *self)
{
    g_return_if_fail(EB_IS_WATCHDOG(self));
    g_autoptr(GTask) task = g_steal_pointer(&self->task);

    if (task == NULL)
        return;
    eb_notify_stopping();
    eb_clear_source(&self->timer);
    eb_clear_source(&self->alive);
    remove_shown(self);
    g_task_return_boolean(task, TRUE);
}

static gboolean
told_to_stop(gpointer user_data)
{
    eb_watchdog_stop(EB_WATCHDOG(user_data));
    return G_SOURCE_CONTINUE;
}

static GSource *
watch_signal(int signum, EbWatchdog *self)
{
    GSource *source = g_unix_signal_source_new(signum);

    g_source_set_callback(source, told_to_stop, self, NULL);
    g_source_attach(source, NULL);
    return source;
}

void
eb_watchdog_run_async(EbWatchdog *self, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_WATCHDOG(self) && self->task == NULL);

    self->task = g_task_new(self, NULL, callback, user_data);
    g_task_set_source_tag(self->task, eb_watchdog_run_async);
    self->signals[0] = watch_signal(SIGTERM, self);
    self->signals[1] = watch_signal(SIGINT, self);
    self->alive = eb_notify_watchdog_source();
    self->dirty = TRUE;
    eb_notify_ready();
    turn(self);
}

gboolean
eb_watchdog_run_finish(EbWatchdog *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
eb_watchdog_look_async(EbWatchdog *self, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_WATCHDOG(self) && self->task == NULL);

    self->task = g_task_new(self, NULL, callback, user_data);
    g_task_set_source_tag(self->task, eb_watchdog_look_async);
    self->once = TRUE;
    self->open = 2;
    eb_watchdog_service_look_async(self->service_probe, self->rules.limits.deadline, on_service, g_object_ref(self));
    eb_watchdog_backend_look_async(self->backend_probe, self->rules.limits.deadline, on_backend, g_object_ref(self));
}

gboolean
eb_watchdog_look_finish(EbWatchdog *self, GAsyncResult *result, EbWatchdogView *view)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    eb_watchdog_get_view(self, view);
    return g_task_propagate_boolean(G_TASK(result), NULL);
}
