/* SPDX-License-Identifier: MIT */
#include "core/watchdog/eb-watchdog-backend.h"

#include "core/base/eb-source.h"

/* Beyond its own deadline a plugin is not waited for. */
#define SLACK_MS 1000
#define MAX_DETAIL 300

struct _EbWatchdogBackend {
    GObject parent_instance;
    EbContainerBackend *backend;
    GTask *waiting; /* (nullable): the look under way */
    GSource *timer; /* (nullable) */
    gboolean open;  /* a call has not come back: of this look, or of one that was given up */
};

G_DEFINE_FINAL_TYPE(EbWatchdogBackend, eb_watchdog_backend, G_TYPE_OBJECT)

typedef struct {
    EbWatchdogLook look;
    char *detail;
} Look;

static void
look_free(gpointer data)
{
    Look *look = data;

    g_free(look->detail);
    g_free(look);
}

static void
eb_watchdog_backend_finalize(GObject *object)
{
    EbWatchdogBackend *self = EB_WATCHDOG_BACKEND(object);

    eb_clear_source(&self->timer);
    g_object_unref(self->backend);
    G_OBJECT_CLASS(eb_watchdog_backend_parent_class)->finalize(object);
}

static void
eb_watchdog_backend_class_init(EbWatchdogBackendClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_watchdog_backend_finalize;
}

static void
eb_watchdog_backend_init(EbWatchdogBackend *self)
{
}

EbWatchdogBackend *
eb_watchdog_backend_new(EbContainerBackend *backend)
{
    EbWatchdogBackend *self = g_object_new(EB_TYPE_WATCHDOG_BACKEND, NULL);

    self->backend = g_object_ref(backend);
    return self;
}

EbWatchdogAnswer
eb_watchdog_backend_judge(const GError *error)
{
    if (error == NULL)
        return EB_WATCHDOG_ANSWER_GIVEN;
    if (g_error_matches(error, EB_ERROR, EB_ERROR_TIMEOUT) || g_error_matches(error, EB_ERROR, EB_ERROR_CANCELLED))
        return EB_WATCHDOG_ANSWER_SILENT;
    if (g_error_matches(error, EB_ERROR, EB_ERROR_UNAVAILABLE))
        return EB_WATCHDOG_ANSWER_NONE;
    return EB_WATCHDOG_ANSWER_GIVEN;
}

static void
look_over(EbWatchdogBackend *self, const GError *error)
{
    g_autoptr(GTask) task = g_steal_pointer(&self->waiting);
    Look *look = task != NULL ? g_task_get_task_data(task) : NULL;

    if (task == NULL)
        return;
    eb_clear_source(&self->timer);
    look->look.ended_us = g_get_monotonic_time();
    look->look.answer = eb_watchdog_backend_judge(error);
    if (error != NULL)
        look->detail = eb_log_escape(error->message, -1, MAX_DETAIL);
    g_task_return_boolean(task, TRUE);
}

static gboolean
on_late(gpointer user_data)
{
    g_autoptr(GError) error = eb_error_new(EB_ERROR_TIMEOUT, "watchdog.backend", "the call does not come back");

    look_over(EB_WATCHDOG_BACKEND(user_data), error);
    return G_SOURCE_REMOVE;
}

static void
on_listed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWatchdogBackend) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) found = eb_container_backend_list_finish(EB_CONTAINER_BACKEND(source), result, &error);

    self->open = FALSE;
    look_over(self, error);
}

void
eb_watchdog_backend_look_async(EbWatchdogBackend *self, guint deadline_ms, GAsyncReadyCallback callback,
                               gpointer user_data)
{
    g_return_if_fail(EB_IS_WATCHDOG_BACKEND(self) && self->waiting == NULL);
    GTask *task = g_task_new(self, NULL, callback, user_data);
    Look *look = g_new0(Look, 1);

    g_task_set_source_tag(task, eb_watchdog_backend_look_async);
    g_task_set_task_data(task, look, look_free);
    look->look.begun_us = g_get_monotonic_time();
    self->waiting = task;
    self->timer = g_timeout_source_new(deadline_ms + SLACK_MS);
    g_source_set_callback(self->timer, on_late, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
    if (self->open)
        return; /* never two: whatever holds the first would hold the second */
    self->open = TRUE;
    eb_container_backend_list_async(self->backend, NULL, deadline_ms, NULL, on_listed, g_object_ref(self));
}

void
eb_watchdog_backend_look_finish(EbWatchdogBackend *self, GAsyncResult *result, EbWatchdogLook *look, char **detail)
{
    g_return_if_fail(g_task_is_valid(result, self));
    Look *done = g_task_get_task_data(G_TASK(result));

    *look = done->look;
    *detail = g_steal_pointer(&done->detail);
    g_task_propagate_boolean(G_TASK(result), NULL);
}
