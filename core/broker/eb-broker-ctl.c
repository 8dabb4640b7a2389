/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-broker"
#include "core/broker/eb-broker-ctl.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib-unix.h>

#include "core/base/eb-source.h"
#include "core/base/eb-unix.h"
#include "core/broker/eb-broker-report.h"
#include "core/broker/eb-broker-sender.h"
#include "core/broker/eb-broker-spawn.h"

#define SOCKET_NAME "model.sock"
/* Guests open connections in bursts, and the broker may be a moment late while it is replaced. */
#define BACKLOG 4096
/* Messages taken in one turn of the service's loop. */
#define TURN 64
/* Messages that the socket of a broker that died may hold; the kernel keeps no more of them. */
#define MAX_REST 1024
#define UPDATE_WAIT_MS 5000
#define STOP_WAIT_MS 1000
/* Deaths within a minute before it is given up; until then a replacement is there within a second. */
#define MAX_DEATHS 8
#define DEATHS_WINDOW (60 * G_USEC_PER_SEC)
#define FIRST_RESTART_MS 20
#define MAX_RESTART_MS 800

struct _EbBrokerCtl {
    GObject parent_instance;
    EbPaths *paths;        /* (owned) */
    char *socket_path;     /* (owned) */
    int listener;          /* (owned) */
    EbBrokerRules *wanted; /* (owned): what the broker is told */
    EbBrokerRules *good;   /* (owned) (nullable): the last ones it took */
    guint64 serial;
    EbChild *child; /* (owned) (nullable) */
    guint64 generation;
    int control;     /* (owned); -1 without a broker */
    GSource *source; /* (owned) (nullable): of control */
    EbBrokerSender sender;
    gboolean ready;
    gboolean stopping;
    char *lacking;      /* (owned) (nullable): said once */
    char *refused_call; /* (owned) (nullable): what the one that runs said it dies of */
    GTask *starting;    /* (owned) (nullable) */
    GQueue updating;    /* (element-type GTask) (owned): task data is the serial */
    GTask *stop_task;   /* (owned) (nullable) */
    GSource *deadline;  /* (owned) (nullable): of start, or of stop */
    GSource *restarter; /* (owned) (nullable) */
    guint n_deaths;
    gint64 first_death;
};

G_DEFINE_FINAL_TYPE(EbBrokerCtl, eb_broker_ctl, G_TYPE_OBJECT)

enum {
    SIGNAL_AUDIT,
    SIGNAL_DENIED,
    SIGNAL_PROVIDER_ERROR,
    SIGNAL_CALL_REFUSED,
    SIGNAL_DIED,
    SIGNAL_DEGRADED,
    SIGNAL_BUDGET,
    N_SIGNALS,
};

static guint signals[N_SIGNALS];

static gboolean ctl_spawn(EbBrokerCtl *self, GError **error);
static void ctl_watch_control(EbBrokerCtl *self);

static GSource *
add_timeout(EbBrokerCtl *self, guint ms, GSourceFunc func)
{
    GSource *source = g_timeout_source_new(ms);

    g_source_set_callback(source, func, self, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
    return source;
}

/* --- tasks --- */

static void
ctl_drop_control(EbBrokerCtl *self)
{
    eb_clear_source(&self->source);
    eb_fd_clear(&self->control);
    eb_broker_sender_clear(&self->sender);
    self->ready = FALSE;
}

/* The wait for a process keeps its object, so that it is reaped; dropping our reference alone would not end it. */
static void
ctl_drop_child(EbBrokerCtl *self)
{
    if (self->child != NULL)
        eb_child_kill(self->child, SIGKILL);
    g_clear_object(&self->child);
}

static void
ctl_fail_start(EbBrokerCtl *self, GError *error)
{
    g_autoptr(GTask) task = g_steal_pointer(&self->starting);

    eb_clear_source(&self->deadline);
    self->stopping = TRUE;
    ctl_drop_control(self);
    ctl_drop_child(self);
    if (self->listener >= 0)
        eb_unix_unlink(self->socket_path, NULL);
    eb_fd_close_aside(&self->listener);
    g_task_return_error(task, error);
}

static guint64
task_serial(GTask *task)
{
    return *(guint64 *)g_task_get_task_data(task);
}

/* Ends every update up to @serial: a later one contains it. */
static void
ctl_end_updates(EbBrokerCtl *self, guint64 serial, const GError *error)
{
    while (self->updating.length > 0) {
        GTask *task = g_queue_peek_head(&self->updating);

        if (task_serial(task) > serial)
            break;
        g_queue_pop_head(&self->updating);
        if (error != NULL)
            g_task_return_error(task, g_error_copy(error));
        else
            g_task_return_boolean(task, TRUE);
        g_object_unref(task);
    }
}

static void
ctl_maybe_started(EbBrokerCtl *self)
{
    g_autoptr(GTask) task = NULL;

    if (self->starting == NULL || !self->ready || self->good == NULL)
        return;
    task = g_steal_pointer(&self->starting);
    eb_clear_source(&self->deadline);
    g_task_return_pointer(task, g_object_ref(self), g_object_unref);
}

/* --- messages --- */

static void
take_denied(EbBrokerCtl *self, const EbBrokerMsg *msg)
{
    g_autofree char *host = NULL;
    g_autofree char *code = eb_broker_msg_string(msg, EB_BROKER_TAG_TEXT);
    guint port = 0;

    host = eb_broker_report_target(msg, &port);
    if (host != NULL && code != NULL)
        g_signal_emit(self, signals[SIGNAL_DENIED], 0, host, port, code);
}

static void
take_ready(EbBrokerCtl *self, const EbBrokerMsg *msg)
{
    g_autofree char *lacking = eb_broker_msg_string(msg, EB_BROKER_TAG_TEXT);

    self->ready = TRUE;
    if (lacking != NULL && self->lacking == NULL) {
        self->lacking = g_steal_pointer(&lacking);
        g_signal_emit(self, signals[SIGNAL_DEGRADED], 0, self->lacking);
    }
    ctl_maybe_started(self);
}

static void
take_applied(EbBrokerCtl *self, guint64 serial)
{
    if (serial == self->serial) {
        g_clear_pointer(&self->good, eb_broker_rules_free);
        self->good = eb_broker_rules_copy(self->wanted);
    }
    ctl_end_updates(self, serial, NULL);
    ctl_maybe_started(self);
}

static void
take_failed(EbBrokerCtl *self, const EbBrokerMsg *msg, guint64 serial)
{
    g_autofree char *text = eb_broker_msg_string(msg, EB_BROKER_TAG_TEXT);
    g_autoptr(GError) error = eb_error_new(EB_ERROR_CONFIG, "broker.rules-refused", "the broker refuses its rules: %s",
                                           text != NULL ? text : "no reason given");

    if (self->starting != NULL) {
        ctl_fail_start(self, g_steal_pointer(&error));
        return;
    }
    ctl_end_updates(self, serial, error);
    if (serial == self->serial && self->good != NULL) {
        /* A broker that dies later gets the rules that worked. */
        g_clear_pointer(&self->wanted, eb_broker_rules_free);
        self->wanted = eb_broker_rules_copy(self->good);
    }
}

static void
ctl_take(EbBrokerCtl *self, const EbBrokerMsg *msg)
{
    guint64 serial = eb_broker_msg_number(msg, EB_BROKER_TAG_SERIAL, 0);

    switch ((int)msg->type) {
    case EB_BROKER_MSG_READY:
        take_ready(self, msg);
        break;
    case EB_BROKER_MSG_APPLIED:
        take_applied(self, serial);
        break;
    case EB_BROKER_MSG_FAILED:
        take_failed(self, msg, serial);
        break;
    case EB_BROKER_MSG_DENIED:
        take_denied(self, msg);
        break;
    case EB_BROKER_MSG_CALL_REFUSED:
        g_free(self->refused_call);
        self->refused_call = eb_broker_report_call(msg);
        break;
    default:
        eb_broker_report_emit(G_OBJECT(self), msg, self->wanted->session);
        break;
    }
}

static void
ctl_send(EbBrokerCtl *self)
{
    g_autoptr(GError) error = NULL;

    if (self->control < 0)
        return;
    if (!eb_broker_sender_run(&self->sender, self->control, &error)) {
        if (g_error_matches(error, EB_ERROR, EB_ERROR_UNAVAILABLE)) {
            eb_broker_sender_clear(&self->sender);
        } else if (self->starting != NULL) {
            ctl_fail_start(self, g_steal_pointer(&error));
            return;
        } else {
            eb_broker_sender_clear(&self->sender);
            ctl_end_updates(self, self->serial, error);
        }
    }
    ctl_watch_control(self);
}

static gboolean
ctl_on_control(int fd, GIOCondition condition, gpointer user_data)
{
    static guint8 buffer[EB_BROKER_MSG_MAX];
    g_autoptr(EbBrokerCtl) self = g_object_ref(EB_BROKER_CTL(user_data));

    for (guint i = 0; i < TURN && self->control == fd; i++) {
        g_autoptr(GError) error = NULL;
        EbBrokerMsg msg;
        gssize got = eb_unix_recv(fd, buffer, sizeof buffer, NULL, NULL, &error);

        if (got < 0 && g_error_matches(error, EB_ERROR, EB_ERROR_BUSY))
            break;
        if (got <= 0 || !eb_broker_msg_decode(buffer, (gsize)got, &msg, &error)) {
            /* Gone, or no longer itself: the wait for the process does the rest. */
            ctl_drop_control(self);
            if (self->child != NULL)
                eb_child_kill(self->child, SIGKILL);
            return G_SOURCE_REMOVE;
        }
        ctl_take(self, &msg);
    }
    if ((condition & G_IO_OUT) != 0 && self->control == fd)
        ctl_send(self);
    return G_SOURCE_CONTINUE;
}

static void
ctl_watch_control(EbBrokerCtl *self)
{
    GIOCondition condition = G_IO_IN | (eb_broker_sender_is_busy(&self->sender) ? G_IO_OUT : 0);

    eb_clear_source(&self->source);
    self->source = g_unix_fd_source_new(self->control, condition);
    g_source_set_callback(self->source, G_SOURCE_FUNC(ctl_on_control), self, NULL);
    g_source_attach(self->source, g_main_context_get_thread_default());
}

/* --- the process --- */

/* Without a listener a guest is refused at once; with one that nobody serves it would wait in silence. */
static void
ctl_give_up(EbBrokerCtl *self)
{
    g_autoptr(GError) error =
        eb_error_new(EB_ERROR_UNAVAILABLE, "broker.given-up", "the broker died too often and was given up");

    self->stopping = TRUE;
    ctl_end_updates(self, G_MAXUINT64, error);
    eb_unix_unlink(self->socket_path, NULL);
    eb_fd_close_aside(&self->listener);
}

static gboolean
ctl_on_restart(gpointer user_data)
{
    EbBrokerCtl *self = EB_BROKER_CTL(user_data);
    g_autoptr(GError) error = NULL;

    eb_clear_source(&self->restarter);
    if (!ctl_spawn(self, &error)) {
        ctl_give_up(self);
        eb_warning("cannot replace the broker of session %s: %s", self->wanted->session, error->message);
        g_signal_emit(self, signals[SIGNAL_DIED], 0, FALSE, error->message);
    }
    return G_SOURCE_REMOVE;
}

/* What it said before it died is in the socket still: rows of the audit, what was used, and what it died of. */
static void
ctl_take_rest(EbBrokerCtl *self)
{
    for (guint i = 0; i < MAX_REST && self->control >= 0; i += TURN)
        ctl_on_control(self->control, G_IO_IN, self);
}

static void
ctl_on_death(EbBrokerCtl *self, int status)
{
    g_autofree char *why = NULL;
    gint64 now = g_get_monotonic_time();
    gboolean again;

    ctl_take_rest(self);
    why = eb_broker_report_death(status, self->refused_call);
    g_clear_pointer(&self->refused_call, g_free);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        g_signal_emit(self, signals[SIGNAL_CALL_REFUSED], 0, why);
    ctl_drop_control(self);
    g_clear_object(&self->child);
    if (self->stop_task != NULL || self->stopping)
        return;
    if (self->starting != NULL) {
        ctl_fail_start(self, eb_error_new(EB_ERROR_FAILED, "broker.died", "the broker %s before it was ready", why));
        return;
    }
    if (self->n_deaths == 0 || now - self->first_death > DEATHS_WINDOW) {
        self->n_deaths = 0;
        self->first_death = now;
    }
    again = ++self->n_deaths <= MAX_DEATHS;
    if (again)
        self->restarter =
            add_timeout(self, MIN(FIRST_RESTART_MS << (self->n_deaths - 1), MAX_RESTART_MS), ctl_on_restart);
    else
        ctl_give_up(self);
    g_signal_emit(self, signals[SIGNAL_DIED], 0, again, why);
}

static void ctl_finish_stop(EbBrokerCtl *self);

static void
ctl_on_exit(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree GWeakRef *weak = user_data;
    g_autoptr(EbBrokerCtl) self = g_weak_ref_get(weak);
    int status = 0;

    g_weak_ref_clear(weak);
    if (!eb_child_wait_finish(EB_CHILD(source), result, &status, NULL) || self == NULL ||
        self->child != EB_CHILD(source))
        return;
    ctl_on_death(self, status);
    if (self->stop_task != NULL)
        ctl_finish_stop(self);
}

static gboolean
ctl_spawn(EbBrokerCtl *self, GError **error)
{
    g_autoptr(EbSpawn) spawn = eb_broker_spawn_new(self->paths, error);
    int ends[2], listener;

    if (spawn == NULL || !eb_unix_pair(SOCK_SEQPACKET, ends, error))
        return FALSE;
    eb_spawn_take_fd(spawn, ends[1], EB_BROKER_CONTROL_FD);
    /* Without it (no descriptor left) the broker says so and ends. */
    listener = fcntl(self->listener, F_DUPFD_CLOEXEC, 3);
    if (listener >= 0)
        eb_spawn_take_fd(spawn, listener, EB_BROKER_LISTENER_FD);
    self->control = ends[0];
    self->child = eb_spawn_start(spawn, error);
    if (self->child == NULL || !eb_broker_sender_hello(self->control, self->wanted->ca_pem, error)) {
        ctl_drop_control(self);
        ctl_drop_child(self);
        return FALSE;
    }

    GWeakRef *weak = g_new0(GWeakRef, 1);

    g_weak_ref_init(weak, self);
    eb_child_wait_async(self->child, NULL, ctl_on_exit, weak);
    eb_broker_sender_set(&self->sender, self->wanted, self->serial);
    ctl_send(self);
    return TRUE;
}

/* --- start --- */

static gboolean
ctl_on_start_deadline(gpointer user_data)
{
    EbBrokerCtl *self = EB_BROKER_CTL(user_data);

    ctl_fail_start(self, eb_error_new(EB_ERROR_TIMEOUT, "broker.start-timeout", "the broker was not ready in time"));
    return G_SOURCE_REMOVE;
}

static void
ctl_on_start_cancelled(GCancellable *cancellable, gpointer user_data)
{
    EbBrokerCtl *self = EB_BROKER_CTL(user_data);

    if (self->starting != NULL)
        ctl_fail_start(self, eb_error_new(EB_ERROR_CANCELLED, NULL, "starting the broker was cancelled"));
}

void
eb_broker_ctl_start_async(EbPaths *paths, const char *run_dir, const EbBrokerRules *rules, guint deadline_ms,
                          GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(EbBrokerCtl) self = g_object_new(EB_TYPE_BROKER_CTL, NULL);
    GError *error = NULL;

    self->paths = g_object_ref(paths);
    self->socket_path = g_build_filename(run_dir, SOCKET_NAME, NULL);
    self->wanted = eb_broker_rules_copy(rules);
    self->serial = 1;
    /* The task keeps the object alive while it starts. */
    self->starting = g_task_new(self, NULL, callback, user_data);
    g_task_set_source_tag(self->starting, eb_broker_ctl_start_async);
    if (g_cancellable_is_cancelled(cancellable)) {
        ctl_on_start_cancelled(cancellable, self);
        return;
    }
    self->listener = eb_unix_listen(self->socket_path, 0600, BACKLOG, &error);
    if (self->listener < 0 || !ctl_spawn(self, &error)) {
        if (self->starting != NULL)
            ctl_fail_start(self, error);
        return;
    }
    if (self->starting == NULL)
        return;
    self->deadline = add_timeout(self, deadline_ms, ctl_on_start_deadline);
    if (cancellable != NULL)
        g_signal_connect_object(cancellable, "cancelled", G_CALLBACK(ctl_on_start_cancelled), self, 0);
}

EbBrokerCtl *
eb_broker_ctl_start_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- update --- */

static gboolean
ctl_on_update_deadline(gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbBrokerCtl *self = g_task_get_source_object(task);

    if (g_queue_remove(&self->updating, task)) {
        g_task_return_error(task, eb_error_new(EB_ERROR_TIMEOUT, "broker.update-timeout",
                                               "the broker did not take its new rules in time"));
        g_object_unref(task);
    }
    return G_SOURCE_REMOVE;
}

static void
destroy_source(gpointer data)
{
    g_source_destroy(data);
    g_source_unref(data);
}

void
eb_broker_ctl_update_async(EbBrokerCtl *self, const EbBrokerRules *rules, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    EbBrokerRules *copy = eb_broker_rules_copy(rules);
    GSource *timer;

    g_task_set_source_tag(task, eb_broker_ctl_update_async);
    if (self->stopping) {
        eb_broker_rules_free(copy);
        g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "broker.stopped", "the broker is stopped"));
        g_object_unref(task);
        return;
    }
    eb_broker_rules_free(self->wanted);
    self->wanted = copy;
    self->serial++;
    g_task_set_task_data(task, g_memdup2(&self->serial, sizeof self->serial), g_free);
    g_queue_push_tail(&self->updating, task);
    timer = g_timeout_source_new(UPDATE_WAIT_MS);
    /* Weak on purpose: the task owns the timer and its end destroys it. */
    g_source_set_callback(timer, ctl_on_update_deadline, task, NULL);
    g_source_attach(timer, g_main_context_get_thread_default());
    g_object_set_data_full(G_OBJECT(task), "timer", timer, destroy_source);
    /* Without a broker at the moment, its replacement gets the new rules. */
    if (self->control >= 0) {
        eb_broker_sender_set(&self->sender, self->wanted, self->serial);
        ctl_send(self);
    }
}

gboolean
eb_broker_ctl_update_finish(EbBrokerCtl *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

/* --- stop --- */

static void
ctl_end(EbBrokerCtl *self)
{
    g_autoptr(GError) error = eb_error_new(EB_ERROR_CANCELLED, "broker.stopped", "the broker was stopped");

    self->stopping = TRUE;
    eb_clear_source(&self->restarter);
    eb_clear_source(&self->deadline);
    ctl_drop_control(self);
    ctl_end_updates(self, G_MAXUINT64, error);
    if (self->listener >= 0)
        eb_unix_unlink(self->socket_path, NULL);
    eb_fd_close_aside(&self->listener);
}

static void
ctl_finish_stop(EbBrokerCtl *self)
{
    g_autoptr(GTask) task = g_steal_pointer(&self->stop_task);

    eb_clear_source(&self->deadline);
    g_task_return_boolean(task, TRUE);
}

static gboolean
ctl_on_stop_deadline(gpointer user_data)
{
    EbBrokerCtl *self = EB_BROKER_CTL(user_data);

    eb_clear_source(&self->deadline);
    if (self->child != NULL)
        eb_child_kill(self->child, SIGKILL);
    return G_SOURCE_REMOVE;
}

void
eb_broker_ctl_stop_async(EbBrokerCtl *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);

    g_task_set_source_tag(task, eb_broker_ctl_stop_async);
    if (self->stop_task != NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_BUSY, "broker.stopping", "the broker is being stopped"));
        return;
    }
    ctl_end(self);
    if (self->child == NULL) {
        g_task_return_boolean(task, TRUE);
        return;
    }
    self->stop_task = g_steal_pointer(&task);
    self->deadline = add_timeout(self, STOP_WAIT_MS, ctl_on_stop_deadline);
}

gboolean
eb_broker_ctl_stop_finish(EbBrokerCtl *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
eb_broker_ctl_grant(EbBrokerCtl *self, guint64 id, guint64 tokens, guint scope, gboolean later)
{
    g_return_if_fail(EB_IS_BROKER_CTL(self));
    /* A broker that is behind with reading gets no answer, and refuses the request in its time. */
    if (self->control >= 0)
        eb_broker_report_send_grant(self->control, id, tokens, scope, later);
}

int
eb_broker_ctl_get_pid(EbBrokerCtl *self)
{
    return self->child != NULL ? (int)eb_child_get_pid(self->child) : 0;
}

const char *
eb_broker_ctl_get_lacking(EbBrokerCtl *self)
{
    return self->lacking;
}

/* --- the object --- */

static void
eb_broker_ctl_dispose(GObject *object)
{
    EbBrokerCtl *self = EB_BROKER_CTL(object);

    ctl_end(self);
    ctl_drop_child(self);
    G_OBJECT_CLASS(eb_broker_ctl_parent_class)->dispose(object);
}

static void
eb_broker_ctl_finalize(GObject *object)
{
    EbBrokerCtl *self = EB_BROKER_CTL(object);

    g_clear_object(&self->paths);
    g_free(self->socket_path);
    g_free(self->lacking);
    g_free(self->refused_call);
    g_clear_pointer(&self->wanted, eb_broker_rules_free);
    g_clear_pointer(&self->good, eb_broker_rules_free);
    G_OBJECT_CLASS(eb_broker_ctl_parent_class)->finalize(object);
}

static void
eb_broker_ctl_class_init(EbBrokerCtlClass *klass)
{
    GObjectClass *object_class = G_OBJECT_CLASS(klass);
    GType type = G_TYPE_FROM_CLASS(klass);

    object_class->dispose = eb_broker_ctl_dispose;
    object_class->finalize = eb_broker_ctl_finalize;
    signals[SIGNAL_AUDIT] =
        g_signal_new("audit", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, JSON_TYPE_OBJECT);
    signals[SIGNAL_DENIED] = g_signal_new("denied", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 3,
                                          G_TYPE_STRING, G_TYPE_UINT, G_TYPE_STRING);
    signals[SIGNAL_PROVIDER_ERROR] = g_signal_new("provider-error", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                                  G_TYPE_NONE, 3, G_TYPE_STRING, G_TYPE_UINT, G_TYPE_STRING);
    signals[SIGNAL_CALL_REFUSED] =
        g_signal_new("call-refused", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
    signals[SIGNAL_DIED] = g_signal_new("died", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                                        G_TYPE_BOOLEAN, G_TYPE_STRING);
    g_signal_new("canary", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
    signals[SIGNAL_DEGRADED] =
        g_signal_new("degraded", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
    signals[SIGNAL_BUDGET] = g_signal_new("budget", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 2, G_TYPE_UINT, JSON_TYPE_OBJECT);
}

static void
eb_broker_ctl_init(EbBrokerCtl *self)
{
    self->listener = -1;
    self->control = -1;
    g_queue_init(&self->updating);
}
