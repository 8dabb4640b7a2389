/* SPDX-License-Identifier: MIT */
#include "incus-exec.h"

#include <signal.h>

#include "incus-error.h"
#include "incus-operation.h"
#include "incus-pump.h"

/* incusd's own pings come every 10 s. */
#define PING_INTERVAL_S 5
#define SILENCE_LIMIT_US (25 * G_USEC_PER_SEC)
#define CHECK_MS 5000
/* After the process ended its output is awaited for as long as it flows; without an end mark this much silence is the
 * end (a child that keeps the stream open is cut off by incusd after 1 s). */
#define TAIL_US (2 * G_USEC_PER_SEC)
#define TAIL_CHECK_MS 250

struct _IncusExec {
    GObject parent_instance;
    IncusClient *client; /* (owned) */
    char *operation;
    gboolean tty;
    SoupWebsocketConnection *sockets[INCUS_EXEC_N_SOCKETS]; /* (nullable) (owned): a tty has "0" and "control" */
    IncusPumpIn *in;
    IncusPumpOut *out[2]; /* stdout, stderr */
    GOutputStream *stdin_stream;
    GInputStream *streams[2];
    IncusDeadline *running; /* of the long wait; cancelled on dispose */
    GSource *tail;          /* (nullable) */
    GSource *watch;         /* (nullable): notices a silent control socket */
    gboolean checking;      /* the operation is being asked about */
    gboolean ended;
    int exit_code;
    GError *error;      /* (nullable) */
    GPtrArray *waiters; /* (element-type GTask) */
};

static void incus_exec_iface_init(EbExecInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(IncusExec, incus_exec, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_EXEC, incus_exec_iface_init))

static void
drop_source(GSource **source)
{
    if (*source != NULL)
        g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
attach(GSource **slot, GSource *source, GSourceFunc func, gpointer data)
{
    drop_source(slot);
    g_source_set_callback(source, func, data, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
    *slot = source;
}

static gboolean
send_control(IncusExec *self, const char *text)
{
    SoupWebsocketConnection *control = self->sockets[INCUS_EXEC_CONTROL];
    if (control == NULL || soup_websocket_connection_get_state(control) != SOUP_WEBSOCKET_STATE_OPEN)
        return FALSE;
    soup_websocket_connection_send_text(control, text);
    return TRUE;
}

static void
close_sockets(IncusExec *self)
{
    for (guint i = 0; i < INCUS_EXEC_N_SOCKETS; i++) {
        SoupWebsocketConnection *socket = self->sockets[i];
        if (socket != NULL && soup_websocket_connection_get_state(socket) == SOUP_WEBSOCKET_STATE_OPEN)
            soup_websocket_connection_close(socket, SOUP_WEBSOCKET_CLOSE_NORMAL, NULL);
    }
}

static void
incus_exec_dispose(GObject *object)
{
    IncusExec *self = INCUS_EXEC(object);
    if (!self->ended && self->sockets[INCUS_EXEC_CONTROL] != NULL)
        send_control(self, "{\"command\":\"signal\",\"signal\":9}");
    if (self->running != NULL)
        incus_deadline_cancel(self->running);
    drop_source(&self->tail);
    drop_source(&self->watch);
    g_clear_pointer(&self->in, incus_pump_in_free);
    g_clear_pointer(&self->out[0], incus_pump_out_free);
    g_clear_pointer(&self->out[1], incus_pump_out_free);
    close_sockets(self);
    for (guint i = 0; i < INCUS_EXEC_N_SOCKETS; i++)
        g_clear_object(&self->sockets[i]);
    g_clear_object(&self->stdin_stream);
    g_clear_object(&self->streams[0]);
    g_clear_object(&self->streams[1]);
    g_clear_object(&self->client);
    G_OBJECT_CLASS(incus_exec_parent_class)->dispose(object);
}

static void
incus_exec_finalize(GObject *object)
{
    IncusExec *self = INCUS_EXEC(object);
    g_clear_pointer(&self->running, incus_deadline_unref);
    g_free(self->operation);
    g_clear_error(&self->error);
    g_ptr_array_unref(self->waiters);
    G_OBJECT_CLASS(incus_exec_parent_class)->finalize(object);
}

static void
incus_exec_class_init(IncusExecClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = incus_exec_dispose;
    G_OBJECT_CLASS(klass)->finalize = incus_exec_finalize;
}

static void
incus_exec_init(IncusExec *self)
{
    self->waiters = g_ptr_array_new_with_free_func(g_object_unref);
}

/* --- the end --- */

static void
answer_waiter(IncusExec *self, GTask *task)
{
    if (self->error != NULL)
        g_task_return_error(task, g_error_copy(self->error));
    else
        g_task_return_int(task, self->exit_code);
}

static gboolean
outputs_ended(IncusExec *self)
{
    for (guint i = 0; i < G_N_ELEMENTS(self->out); i++)
        if (self->out[i] != NULL && !incus_pump_out_has_ended(self->out[i]))
            return FALSE;
    return TRUE;
}

static gboolean
on_tail(gpointer user_data)
{
    IncusExec *self = user_data;
    for (guint i = 0; i < G_N_ELEMENTS(self->out); i++)
        if (self->out[i] != NULL && (self->error != NULL || incus_pump_out_is_idle(self->out[i], TAIL_US)))
            incus_pump_out_finish(self->out[i]);
    if (!outputs_ended(self))
        return G_SOURCE_CONTINUE;
    close_sockets(self);
    drop_source(&self->tail);
    return G_SOURCE_REMOVE;
}

static void
exec_end(IncusExec *self, int exit_code, GError *error)
{
    if (self->ended) {
        g_clear_error(&error);
        return;
    }
    self->ended = TRUE;
    self->exit_code = exit_code;
    self->error = error;
    drop_source(&self->watch);
    if (self->in != NULL)
        incus_pump_in_finish(self->in);
    g_autoptr(IncusExec) keep = g_object_ref(self);
    attach(&self->tail, g_timeout_source_new(TAIL_CHECK_MS), on_tail, self);
    if (outputs_ended(self) || error != NULL)
        g_source_set_ready_time(self->tail, 0);
    g_autoptr(GPtrArray) waiters = g_steal_pointer(&self->waiters);
    self->waiters = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < waiters->len; i++)
        if (!g_task_return_error_if_cancelled(waiters->pdata[i]))
            answer_waiter(self, waiters->pdata[i]);
}

static void
on_pump_ended(gpointer user_data)
{
    IncusExec *self = user_data;
    if (self->tty && self->sockets[INCUS_EXEC_STDIN] != NULL &&
        soup_websocket_connection_get_state(self->sockets[INCUS_EXEC_STDIN]) == SOUP_WEBSOCKET_STATE_OPEN)
        /* incusd ends a terminal's operation only when the client closes after the end mark */
        soup_websocket_connection_close(self->sockets[INCUS_EXEC_STDIN], SOUP_WEBSOCKET_CLOSE_NORMAL, NULL);
    if (self->ended && self->tail != NULL && outputs_ended(self))
        g_source_set_ready_time(self->tail, 0);
}

int
incus_exec_outcome(IncusReply *reply, const GError *failure, GError **error)
{
    if (incus_error_has_reason(failure, "incus.command-not-found"))
        return 127;
    if (incus_error_has_reason(failure, "incus.command-not-executable"))
        return 126;
    if (failure != NULL) {
        g_propagate_error(error, g_error_copy(failure));
        return -1;
    }
    JsonObject *metadata = eb_json_get_object(incus_reply_object(reply), "metadata");
    gint64 code = eb_json_get_int(metadata, "return", -1);
    if (code < 0 || code > 255) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "incusd told no exit code of an exec");
        return -1;
    }
    return (int)code;
}

static void
on_operation_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GWeakRef *weak = user_data;
    g_autoptr(IncusExec) self = g_weak_ref_get(weak);
    g_autoptr(GError) failure = NULL;
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &failure);
    g_weak_ref_clear(weak);
    g_free(weak);
    if (self == NULL)
        return;
    int code = incus_exec_outcome(reply, failure, &error);
    exec_end(self, code, error);
}

static void
on_checked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GWeakRef *weak = user_data;
    g_autoptr(IncusExec) self = g_weak_ref_get(weak);
    g_autoptr(GError) failure = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &failure);
    g_weak_ref_clear(weak);
    g_free(weak);
    if (self == NULL)
        return;
    self->checking = FALSE;
    if (reply != NULL || self->ended)
        return;
    incus_deadline_cancel(self->running);
    GError *error = eb_error_new(EB_ERROR_UNAVAILABLE, "incus.lost", "the exec is lost: %s", failure->message);
    eb_error_set_retry(error, 1000);
    exec_end(self, -1, error);
}

/* incus-user holds our connections open when incusd is dead, the long wait for the end among them. Then the control
 * socket is silent or closed, and a question about the operation gets no good answer. A closed control socket alone
 * proves nothing: it is closed as well while a slow reader still has output of an ended process to take. */
static gboolean
on_watch(gpointer user_data)
{
    IncusExec *self = user_data;
    SoupWebsocketConnection *control = self->sockets[INCUS_EXEC_CONTROL];
    IncusFlow *flow = INCUS_FLOW(soup_websocket_connection_get_io_stream(control));
    gboolean open = soup_websocket_connection_get_state(control) == SOUP_WEBSOCKET_STATE_OPEN;
    if (self->checking || (open && g_get_monotonic_time() - incus_flow_get_last_read(flow) < SILENCE_LIMIT_US))
        return G_SOURCE_CONTINUE;
    g_autofree char *path = g_strdup_printf("/1.0/operations/%s", self->operation);
    g_autoptr(IncusDeadline) deadline = incus_deadline_new(CHECK_MS, NULL);
    GWeakRef *weak = g_new0(GWeakRef, 1);
    g_weak_ref_init(weak, self);
    self->checking = TRUE;
    incus_client_request_async(self->client, "GET", path, NULL, deadline, on_checked, weak);
    return G_SOURCE_CONTINUE;
}

IncusExec *
incus_exec_new(IncusClient *client, const char *operation, gboolean tty)
{
    IncusExec *self = g_object_new(INCUS_TYPE_EXEC, NULL);
    GWeakRef *weak = g_new0(GWeakRef, 1);
    self->client = g_object_ref(client);
    self->operation = g_strdup(operation);
    self->tty = tty;
    self->running = incus_deadline_new(0, NULL);
    g_weak_ref_init(weak, self);
    incus_operation_wait_async(client, operation, self->running, on_operation_ended, weak);
    return self;
}

gboolean
incus_exec_attach(IncusExec *self, SoupWebsocketConnection *const *sockets, GError **error)
{
    SoupWebsocketConnection *outputs[2] = {sockets[self->tty ? INCUS_EXEC_STDIN : INCUS_EXEC_STDOUT],
                                           self->tty ? NULL : sockets[INCUS_EXEC_STDERR]};
    for (guint i = 0; i < INCUS_EXEC_N_SOCKETS; i++)
        g_set_object(&self->sockets[i], sockets[i]);
    for (guint i = 0; i < G_N_ELEMENTS(outputs); i++) {
        if (outputs[i] == NULL)
            continue;
        self->out[i] = incus_pump_out_new(outputs[i], &self->streams[i], on_pump_ended, self, error);
        if (self->out[i] == NULL)
            return FALSE;
    }
    self->in = incus_pump_in_new(sockets[INCUS_EXEC_STDIN], self->tty, &self->stdin_stream, error);
    if (self->in == NULL)
        return FALSE;
    for (guint i = 0; i < INCUS_EXEC_N_SOCKETS; i++)
        if (sockets[i] != NULL)
            incus_websocket_begin(sockets[i]);
    if (self->ended) { /* a short process, and its end was told before the last socket's opening */
        incus_pump_in_finish(self->in);
        attach(&self->tail, g_timeout_source_new(TAIL_CHECK_MS), on_tail, self);
        return TRUE;
    }
    soup_websocket_connection_set_keepalive_interval(sockets[INCUS_EXEC_CONTROL], PING_INTERVAL_S);
    attach(&self->watch, g_timeout_source_new_seconds(PING_INTERVAL_S), on_watch, self);
    return TRUE;
}

/* --- EbExec --- */

static GOutputStream *
exec_get_stdin(EbExec *exec)
{
    return INCUS_EXEC(exec)->stdin_stream;
}

static GInputStream *
exec_get_stdout(EbExec *exec)
{
    return INCUS_EXEC(exec)->streams[0];
}

static GInputStream *
exec_get_stderr(EbExec *exec)
{
    return INCUS_EXEC(exec)->streams[1];
}

static gboolean
exec_send_signal(EbExec *exec, int signum, GError **error)
{
    IncusExec *self = INCUS_EXEC(exec);
    if (signum <= 0 || signum >= NSIG) {
        eb_set_error(error, EB_ERROR_INVALID, "incus.signal", "%d is no signal", signum);
        return FALSE;
    }
    g_autofree char *text = g_strdup_printf("{\"command\":\"signal\",\"signal\":%d}", signum);
    if (self->ended || !send_control(self, text)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "incus.exec-ended", "the process has ended");
        return FALSE;
    }
    return TRUE;
}

static gboolean
exec_resize(EbExec *exec, guint rows, guint columns, GError **error)
{
    IncusExec *self = INCUS_EXEC(exec);
    if (!self->tty) {
        eb_set_error(error, EB_ERROR_INVALID, "incus.no-tty", "the process has no terminal");
        return FALSE;
    }
    g_autofree char *text =
        g_strdup_printf("{\"command\":\"window-resize\",\"args\":{\"width\":\"%u\",\"height\":\"%u\"}}", columns, rows);
    if (self->ended || !send_control(self, text)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "incus.exec-ended", "the process has ended");
        return FALSE;
    }
    return TRUE;
}

static gboolean
on_waiter_cancelled(GCancellable *cancellable, gpointer user_data)
{
    GTask *task = user_data;
    IncusExec *self = g_task_get_source_object(task);
    g_autoptr(GTask) keep = g_object_ref(task);
    if (g_ptr_array_remove_fast(self->waiters, task))
        g_task_return_error_if_cancelled(keep);
    return G_SOURCE_REMOVE;
}

static void
exec_wait_async(EbExec *exec, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    IncusExec *self = INCUS_EXEC(exec);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, exec_wait_async);
    if (g_task_return_error_if_cancelled(task))
        return;
    if (self->ended) {
        answer_waiter(self, task);
        return;
    }
    if (cancellable != NULL) {
        GSource *source = g_cancellable_source_new(cancellable);
        g_source_set_callback(source, G_SOURCE_FUNC(on_waiter_cancelled), task, NULL);
        g_source_attach(source, g_main_context_get_thread_default());
        g_task_set_task_data(task, source, (GDestroyNotify)g_source_unref);
    }
    g_ptr_array_add(self->waiters, g_steal_pointer(&task));
}

static int
exec_wait_finish(EbExec *exec, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, exec), -1);
    GError *local = NULL;
    GSource *source = g_task_get_task_data(G_TASK(result));
    if (source != NULL)
        g_source_destroy(source);
    gssize code = g_task_propagate_int(G_TASK(result), &local);
    if (local != NULL) {
        eb_error_convert(&local, "incus.cancelled", NULL);
        g_propagate_error(error, local);
        return -1;
    }
    return (int)code;
}

static void
incus_exec_iface_init(EbExecInterface *iface)
{
    iface->get_stdin = exec_get_stdin;
    iface->get_stdout = exec_get_stdout;
    iface->get_stderr = exec_get_stderr;
    iface->send_signal = exec_send_signal;
    iface->resize = exec_resize;
    iface->wait_async = exec_wait_async;
    iface->wait_finish = exec_wait_finish;
}
