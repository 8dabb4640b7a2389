/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-daemon"

#include "core/base/eb-notify.h"
#include "core/base/eb-source.h"
#include "core/daemon/eb-daemon-beat.h"
#include "core/daemon/eb-daemon-private.h"
#include "core/daemon/eb-daemon-reload.h"
#include "core/plugin/eb-credentials.h"

#include <glib-unix.h>
#include <signal.h>
#include <unistd.h>

typedef enum {
    STATE_NEW = 0,
    STATE_PLUGINS,  /* they are starting */
    STATE_OPENING,  /* the session manager: lock, database, sweep */
    STATE_CHECKING, /* what the backend and this host can guarantee */
    STATE_READY,
    STATE_CLOSING,  /* sessions end */
    STATE_STOPPING, /* plugins stop */
    STATE_ENDED,
} State;

struct _EbDaemon {
    GObject parent_instance;
    EbConfig *config;
    EbPaths *paths;
    EbPluginRegistry *registry;
    EbSessionManager *manager; /* (nullable) */
    EbDaemonControl *control;  /* (nullable) */
    EbDaemonTransports *transports;
    EbDaemonHealth *health; /* (nullable): of a run */
    char *config_file;      /* (nullable) */
    GTask *task;            /* the run (nullable) */
    GCancellable *starting; /* ends a start that is no longer wanted */
    GError *failure;        /* (nullable): the first */
    GSource *signals[3];
    GSource *watchdog;  /* (nullable) */
    EbDaemonBeat *beat; /* (nullable): while it runs */
    State state;
    gboolean plugins_started;
    gboolean asked_to_stop;
};

G_DEFINE_FINAL_TYPE(EbDaemon, eb_daemon, G_TYPE_OBJECT)

static void drain(EbDaemon *self);
static void fail(EbDaemon *self, GError *error);

static void
eb_daemon_finalize(GObject *object)
{
    EbDaemon *self = EB_DAEMON(object);

    for (gsize i = 0; i < G_N_ELEMENTS(self->signals); i++)
        eb_clear_source(&self->signals[i]);
    eb_clear_source(&self->watchdog);
    g_clear_pointer(&self->beat, eb_daemon_beat_free);
    g_clear_pointer(&self->control, eb_daemon_control_free);
    g_clear_pointer(&self->transports, eb_daemon_transports_free);
    g_clear_object(&self->manager);
    g_clear_object(&self->health);
    g_free(self->config_file);
    g_object_unref(self->starting);
    g_object_unref(self->config);
    g_object_unref(self->paths);
    g_object_unref(self->registry);
    g_clear_error(&self->failure);
    G_OBJECT_CLASS(eb_daemon_parent_class)->finalize(object);
}

static void
eb_daemon_class_init(EbDaemonClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_daemon_finalize;
}

static void
eb_daemon_init(EbDaemon *self)
{
    self->starting = g_cancellable_new();
}

static void
transport_failed(const GError *error, gpointer user_data)
{
    fail(EB_DAEMON(user_data), g_error_copy(error));
}

EbDaemon *
eb_daemon_new(EbConfig *config, EbPaths *paths, EbPluginRegistry *registry)
{
    EbDaemon *self = g_object_new(EB_TYPE_DAEMON, NULL);

    self->config = g_object_ref(config);
    self->paths = g_object_ref(paths);
    self->registry = g_object_ref(registry);
    self->transports = eb_daemon_transports_new(transport_failed, self);
    return self;
}

void
eb_daemon_set_config_file(EbDaemon *self, const char *file)
{
    g_return_if_fail(EB_IS_DAEMON(self) && self->state == STATE_NEW);
    g_free(self->config_file);
    self->config_file = g_strdup(file);
}

/* @error: (transfer full). A failure that follows from being told to stop is none. */
static void
fail(EbDaemon *self, GError *error)
{
    if (self->failure == NULL && !self->asked_to_stop)
        self->failure = error;
    else
        g_error_free(error);
    drain(self);
}

/* --- the way up --- */

static void
attach_transports(EbDaemon *self)
{
    g_autoptr(GPtrArray) transports = eb_plugin_registry_list(self->registry, EB_EXTENSION_CHAT_TRANSPORT);

    for (guint i = 0; i < transports->len; i++) {
        const EbExtension *transport = transports->pdata[i];
        eb_daemon_transports_watch(self->transports, transport->name, EB_CHAT_TRANSPORT(transport->object));
        eb_session_manager_attach_transport(self->manager, transport->name, EB_CHAT_TRANSPORT(transport->object));
    }
}

static void
get_ready(EbDaemon *self)
{
    GError *error = NULL;

    self->control =
        eb_daemon_control_new(self->config, self->manager, self->registry, self->transports, self->health, &error);
    if (self->control == NULL) {
        fail(self, error);
        return;
    }
    /* Before people are listened to: what they missed is answered with the reason too. */
    eb_daemon_health_attach(self->health, self->manager);
    eb_log_step("start.control", "EB_REASON", NULL);
    attach_transports(self);
    self->state = STATE_READY;
    self->watchdog = eb_notify_watchdog_source();
    eb_daemon_beat_ready(self->beat, self->manager);
    eb_info("ready");
    eb_log_step("start.ready", "EB_REASON", NULL);
}

static void
health_known(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemon) self = user_data;
    GError *error = NULL;

    eb_daemon_health_known_finish(EB_DAEMON_HEALTH(source), result);
    if (self->state != STATE_CHECKING)
        return; /* it is draining already */
    if (self->asked_to_stop)
        drain(self);
    else if (!eb_daemon_health_gate(self->health, eb_session_manager_get_probe(self->manager), &error))
        fail(self, error);
    else
        get_ready(self);
}

static void
checked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemon) self = user_data;
    GError *error = NULL;
    EbProbeReport *report = eb_session_manager_check_finish(EB_SESSION_MANAGER(source), result, &error);

    /* What the backend lacks is told together with what the doctor finds. */
    if (report == NULL && !g_error_matches(error, EB_ERROR, EB_ERROR_DEGRADED)) {
        fail(self, error);
        return;
    }
    g_clear_error(&error);
    if (report != NULL)
        eb_info("the backend is %s (%s)", report->server, report->access);
    g_clear_pointer(&report, eb_probe_report_free);
    if (self->asked_to_stop)
        drain(self);
    else
        eb_daemon_health_known_async(self->health, health_known, g_object_ref(self));
}

static void
opened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemon) self = user_data;
    GError *error = NULL;

    self->manager = eb_session_manager_open_finish(result, &error);
    if (self->manager == NULL) {
        fail(self, error);
    } else if (self->asked_to_stop) {
        drain(self);
    } else {
        self->state = STATE_CHECKING;
        eb_session_manager_check_async(self->manager, self->starting, checked, g_object_ref(self));
    }
}

static void
plugins_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemon) self = user_data;
    GError *error = NULL;

    self->plugins_started = TRUE;
    if (!eb_plugin_registry_start_finish(self->registry, result, &error)) {
        fail(self, error);
        return;
    }
    if (self->asked_to_stop) {
        drain(self);
    } else if (!eb_daemon_check_backend(self->config, self->registry, &error) ||
               !eb_daemon_check_transports(self->registry, &error)) {
        fail(self, error);
    } else {
        self->state = STATE_OPENING;
        eb_session_manager_open_async(self->config, self->paths, self->registry, eb_config_get_state_dir(self->config),
                                      self->starting, opened, g_object_ref(self));
    }
}

/* --- the way down: sessions, plugins, end --- */

static void
finish(EbDaemon *self)
{
    g_autoptr(GTask) task = g_steal_pointer(&self->task);

    self->state = STATE_ENDED;
    for (gsize i = 0; i < G_N_ELEMENTS(self->signals); i++)
        eb_clear_source(&self->signals[i]);
    eb_clear_source(&self->watchdog);
    g_clear_pointer(&self->beat, eb_daemon_beat_free);
    if (self->failure != NULL)
        g_task_return_error(task, g_steal_pointer(&self->failure));
    else
        g_task_return_boolean(task, TRUE);
}

static void
plugins_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemon) self = user_data;
    g_autoptr(GError) error = NULL;

    if (!eb_plugin_registry_stop_finish(self->registry, result, &error))
        eb_warning("plugins did not stop cleanly: %s", error->message);
    finish(self);
}

static void
stop_plugins(EbDaemon *self)
{
    eb_log_step("close.plugins", "EB_REASON", NULL);
    self->state = STATE_STOPPING;
    if (self->plugins_started)
        eb_plugin_registry_stop_async(self->registry, EB_DAEMON_PLUGIN_STOP_MS, NULL, plugins_stopped,
                                      g_object_ref(self));
    else
        finish(self);
}

static void
closed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemon) self = user_data;
    g_autoptr(GError) error = NULL;

    if (!eb_session_manager_close_finish(EB_SESSION_MANAGER(source), result, &error))
        eb_warning("sessions did not end cleanly: %s", error->message);
    g_clear_pointer(&self->control, eb_daemon_control_free);
    g_clear_object(&self->manager);
    stop_plugins(self);
}

static void
drain(EbDaemon *self)
{
    if (self->state >= STATE_CLOSING)
        return;
    eb_log_step("close.drain", "EB_REASON", NULL);
    eb_daemon_beat_stopping(self->beat);
    self->state = STATE_CLOSING;
    if (self->health != NULL)
        eb_daemon_health_detach(self->health);
    if (self->manager != NULL)
        eb_session_manager_close_async(self->manager, NULL, closed, g_object_ref(self));
    else
        stop_plugins(self);
}

void
eb_daemon_stop(EbDaemon *self)
{
    g_return_if_fail(EB_IS_DAEMON(self));
    if (self->asked_to_stop)
        return;
    self->asked_to_stop = TRUE;
    /* A start in progress ends by its cancellable, and drains from its callback. */
    if (self->state == STATE_READY)
        drain(self);
    else
        g_cancellable_cancel(self->starting);
}

/* --- signals --- */

static gboolean
told_to_stop(gpointer user_data)
{
    EbDaemon *self = user_data;

    if (self->asked_to_stop) {
        /* Whoever asks twice does not want to wait; what is left is swept by the next start. */
        eb_warning("told to stop a second time: ending at once");
        _exit(1);
    }
    eb_info("told to stop: draining");
    eb_daemon_stop(self);
    return G_SOURCE_CONTINUE;
}

static void
reloaded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemon) self = user_data;
    g_autoptr(GError) error = NULL;

    if (!eb_credentials_keep_finish(EB_CREDENTIALS(source), result, &error))
        eb_warning("credentials were not all read again: %s", error->message);
    g_signal_emit_by_name(source, "changed", NULL);
    if (self->state == STATE_READY)
        eb_notify_ready();
}

static gboolean
told_to_reload(gpointer user_data)
{
    EbDaemon *self = user_data;
    EbCredentials *credentials = eb_credentials_from_registry(self->registry);
    g_auto(GStrv) names = eb_config_list_credentials(self->config);

    if (self->manager != NULL)
        eb_daemon_reload_budget(self->manager, self->config_file, eb_paths_get_data_dir(self->paths));
    if (credentials == NULL)
        return G_SOURCE_CONTINUE;
    eb_notify_reloading();
    eb_credentials_keep_async(credentials, (const char *const *)names, NULL, reloaded, g_object_ref(self));
    return G_SOURCE_CONTINUE;
}

static GSource *
watch_signal(int signum, GSourceFunc func, EbDaemon *self)
{
    GSource *source = g_unix_signal_source_new(signum);

    g_source_set_callback(source, func, self, NULL);
    g_source_attach(source, NULL);
    return source;
}

void
eb_daemon_run_async(EbDaemon *self, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_DAEMON(self) && self->state == STATE_NEW);
    GError *error = NULL;

    self->task = g_task_new(self, NULL, callback, user_data);
    g_task_set_source_tag(self->task, eb_daemon_run_async);
    self->beat = eb_daemon_beat_new();
    self->signals[0] = watch_signal(SIGTERM, told_to_stop, self);
    self->signals[1] = watch_signal(SIGINT, told_to_stop, self);
    self->signals[2] = watch_signal(SIGHUP, told_to_reload, self);
    if (!eb_daemon_check_backend(self->config, self->registry, &error) ||
        !eb_daemon_check_transports(self->registry, &error)) {
        fail(self, error);
        return;
    }
    eb_log_step("start.plugins", "EB_REASON", NULL);
    self->state = STATE_PLUGINS;
    /* It looks at the host while the plugins start and the state is opened. */
    self->health = eb_daemon_health_new(self->config, self->paths, self->config_file, NULL);
    eb_daemon_health_start(self->health, self->starting);
    eb_plugin_registry_start_async(self->registry, EB_DAEMON_PLUGIN_START_MS, self->starting, plugins_started,
                                   g_object_ref(self));
}

gboolean
eb_daemon_run_finish(EbDaemon *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
