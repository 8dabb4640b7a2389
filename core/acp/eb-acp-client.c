/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-acp"

#include "core/acp/eb-acp-client.h"

#include "core/acp/eb-acp-client-private.h"

#include <string.h>

/* How long the rest of stderr is awaited after the end of stdout, and the end of stdout after the process's. */
#define ENDING_MS 300
/* Bytes of stderr quoted in an error. */
#define QUOTED_STDERR 300

G_DEFINE_FINAL_TYPE(EbAcpClient, eb_acp_client, G_TYPE_OBJECT)

enum { SIGNAL_UPDATE, SIGNAL_PERMISSION, SIGNAL_NOISE, SIGNAL_STDERR, SIGNAL_CLOSED, N_SIGNALS };
static guint signals[N_SIGNALS];

void
eb_acp_client_set_timer(EbAcpClient *self, GSource **place, guint ms, GSourceFunc function)
{
    eb_clear_source(place);
    *place = g_timeout_source_new(ms);
    g_source_set_callback(*place, function, self, NULL);
    g_source_attach(*place, self->context);
}

void
eb_acp_client_emit_noise(EbAcpClient *self, const char *format, ...)
{
    g_autofree char *text = NULL;
    g_autofree char *escaped = NULL;
    va_list list;

    va_start(list, format);
    text = g_strdup_vprintf(format, list);
    va_end(list);
    escaped = eb_log_escape(text, -1, 600);
    g_signal_emit(self, signals[SIGNAL_NOISE], 0, escaped);
}

void
eb_acp_client_emit_update(EbAcpClient *self, EbAcpUpdate *update)
{
    g_autoptr(EbAcpUpdate) owned G_GNUC_UNUSED = update;

    update->replay = self->replaying;
    update->late = !self->turn.active && !self->opening && self->turns_done > 0;
    if (self->replaying)
        self->replayed++;
    if (self->turn.active && eb_acp_update_is_content(update))
        eb_acp_client_turn_alive(self);
    g_signal_emit(self, signals[SIGNAL_UPDATE], 0, update);
}

/* --- the end --- */

static void
call_free(EbAcpCall *call)
{
    g_clear_object(&call->task);
    g_free(call);
}

GError *
eb_acp_client_gone(EbAcpClient *self, const char *method)
{
    const char *tail = self->stderr_reader != NULL ? eb_acp_stderr_get_tail(self->stderr_reader) : "";
    const char *last = strrchr(tail, '\n');
    g_autoptr(GString) text = g_string_new("the agent");

    if (self->exit_text != NULL)
        g_string_append_printf(text, " %s", self->exit_text);
    else if (self->close_error != NULL)
        g_string_append_printf(text, "'s stream broke (%s)", self->close_error->message);
    else
        g_string_append(text, " ended");
    g_string_append_printf(text, " before it answered %s", method);
    last = last != NULL ? last + 1 : tail;
    if (last[0] != '\0') {
        g_autofree char *quoted = eb_acp_cut(last, QUOTED_STDERR);

        g_string_append_printf(text, ": %s", quoted);
    }
    return eb_error_new(EB_ERROR_UNAVAILABLE, "acp.agent-gone", "%s", text->str);
}

/* Everything that waits fails, then "closed" is told: once, when stderr has said what it had to say. */
static void
conclude(EbAcpClient *self)
{
    g_autoptr(EbAcpClient) keep G_GNUC_UNUSED = g_object_ref(self);
    g_autoptr(GPtrArray) orphans = NULL;

    if (self->concluded)
        return;
    self->concluded = TRUE;
    eb_clear_source(&self->ending);
    eb_acp_client_drop_early(self);
    orphans = g_steal_pointer(&self->orphans);
    for (guint i = 0; i < orphans->len; i++) {
        EbAcpCall *call = g_ptr_array_index(orphans, i);

        g_task_return_error(call->task, eb_acp_client_gone(self, call->method));
    }
    g_signal_emit(self, signals[SIGNAL_CLOSED], 0, self->close_error);
}

static gboolean
on_ending(gpointer user_data)
{
    conclude(EB_ACP_CLIENT(user_data));
    return G_SOURCE_REMOVE;
}

void
eb_acp_client_orphan(EbAcpClient *self, GTask *task, const char *method)
{
    EbAcpCall *call;

    if (self->concluded) {
        g_task_return_error(task, eb_acp_client_gone(self, method));
        g_object_unref(task);
        return;
    }
    call = g_new0(EbAcpCall, 1);
    call->task = task;
    call->method = method;
    g_ptr_array_add(self->orphans, call);
}

static void
on_rpc_closed(EbJsonrpc *rpc, const GError *error, gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(user_data);

    if (error != NULL && self->close_error == NULL)
        self->close_error = g_error_copy(error);
    eb_acp_client_detach_permissions(self);
    if (self->stderr_reader == NULL || eb_acp_stderr_has_ended(self->stderr_reader))
        eb_acp_client_set_timer(self, &self->ending, 0, on_ending); /* not from within the peer's own signal */
    else
        eb_acp_client_set_timer(self, &self->ending, ENDING_MS, on_ending);
}

static void
on_stderr(const char *line, gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(user_data);
    g_autoptr(EbAcpClient) keep G_GNUC_UNUSED = g_object_ref(self);

    if (line != NULL)
        g_signal_emit(self, signals[SIGNAL_STDERR], 0, line);
    else if (eb_jsonrpc_is_closed(self->rpc))
        conclude(self);
}

static gboolean
on_exit_grace(gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(user_data);
    g_autoptr(EbAcpClient) keep G_GNUC_UNUSED = g_object_ref(self);

    eb_clear_source(&self->ending);
    eb_jsonrpc_close(self->rpc, TRUE);
    return G_SOURCE_REMOVE;
}

void
eb_acp_client_agent_ended(EbAcpClient *self, const char *how)
{
    g_return_if_fail(EB_IS_ACP_CLIENT(self));
    if (self->concluded || self->exit_text != NULL)
        return;
    self->exit_text = eb_acp_cut(how != NULL ? how : "ended", EB_ACP_MAX_TITLE);
    if (!eb_jsonrpc_is_closed(self->rpc))
        eb_acp_client_set_timer(self, &self->ending, ENDING_MS, on_exit_grace);
}

/* --- calls --- */

static void
on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbAcpCall *call = user_data;
    EbAcpClient *self = EB_ACP_CLIENT(g_task_get_source_object(call->task));
    g_autoptr(EbAcpClient) keep G_GNUC_UNUSED = g_object_ref(self);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) error_object = NULL;
    g_autoptr(JsonNode) node = eb_jsonrpc_call_finish(EB_JSONRPC(source), result, &error_object, &error);

    if (node != NULL) {
        call->decode(self, call->task, eb_json_node_object(node));
    } else if (error_object != NULL) {
        g_task_return_error(call->task, eb_acp_error_from(call->method, error_object));
    } else if (g_strcmp0(eb_error_get_reason(error), "jsonrpc.closed") == 0) {
        eb_acp_client_orphan(self, g_steal_pointer(&call->task), call->method);
    } else if (g_error_matches(error, EB_ERROR, EB_ERROR_TIMEOUT)) {
        g_task_return_error(call->task,
                            eb_error_new(EB_ERROR_TIMEOUT, "acp.timeout", "the agent did not answer %s within %u s",
                                         call->method, (call->deadline_ms + 999) / 1000));
    } else {
        g_task_return_error(call->task, g_steal_pointer(&error));
    }
    call_free(call);
}

void
eb_acp_client_call(EbAcpClient *self, const char *method, JsonNode *params, guint deadline_ms, GTask *task,
                   EbAcpDecode decode)
{
    EbAcpCall *call = g_new0(EbAcpCall, 1);

    call->task = task;
    call->method = method;
    call->deadline_ms = deadline_ms;
    call->decode = decode;
    eb_jsonrpc_call_async(self->rpc, method, params, deadline_ms, g_task_get_cancellable(task), on_answer, call);
}

static GTask *
new_task(EbAcpClient *self, gpointer tag, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, tag);
    /* What the agent has answered counts, also when the caller's mind changed in that moment. */
    g_task_set_check_cancellable(task, FALSE);
    return task;
}

static void
decode_initialize(EbAcpClient *self, GTask *task, JsonObject *result)
{
    g_autoptr(GError) error = NULL;

    if (!eb_acp_agent_info_decode(result, &self->info, &error)) {
        g_task_return_error(task, g_steal_pointer(&error));
        return;
    }
    self->initialized = TRUE;
    g_task_return_boolean(task, TRUE);
}

void
eb_acp_client_initialize_async(EbAcpClient *self, guint deadline_ms, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task;

    g_return_if_fail(EB_IS_ACP_CLIENT(self));
    task = new_task(self, eb_acp_client_initialize_async, cancellable, callback, user_data);
    if (self->initialized) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    eb_acp_client_call(self, "initialize", eb_acp_encode_initialize(), deadline_ms, task, decode_initialize);
}

const EbAcpAgentInfo *
eb_acp_client_initialize_finish(EbAcpClient *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_boolean(G_TASK(result), error) ? &self->info : NULL;
}

const EbAcpAgentInfo *
eb_acp_client_get_info(EbAcpClient *self)
{
    return &self->info;
}

/* --- opening a session --- */

static void
decode_open(EbAcpClient *self, GTask *task, JsonObject *result)
{
    if (self->opening_new) {
        const char *id = eb_json_get_string(result, "sessionId");

        if (id == NULL || id[0] == '\0') {
            g_task_return_new_error(task, EB_ERROR, EB_ERROR_PROTOCOL, "the agent opened a session without an id");
            return;
        }
        self->session_id = g_strdup(id);
    }
    eb_acp_client_take_settings(self, result);
    g_task_return_boolean(task, TRUE);
}

/* Stands between the call's task and the caller's, so that a failure in any way leaves the client ready for another
 * try. */
static void
on_opened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(source);
    g_autoptr(GTask) task = user_data;
    g_autoptr(GError) error = NULL;

    if (g_task_propagate_boolean(G_TASK(result), &error)) {
        eb_acp_client_flush_early(self);
        self->opening = self->opening_new = self->replaying = FALSE;
        g_task_return_pointer(task, g_strdup(self->session_id), g_free);
        return;
    }
    self->opening = self->opening_new = self->replaying = FALSE;
    eb_acp_client_drop_early(self);
    g_clear_pointer(&self->session_id, g_free);
    g_task_return_error(task, g_steal_pointer(&error));
}

static gboolean
check_open(EbAcpClient *self, EbAcpOpen how, const char *session_id, const char *cwd, GError **error)
{
    const gboolean offered = how == EB_ACP_OPEN_NEW || (how == EB_ACP_OPEN_LOAD && self->info.load) ||
                             (how == EB_ACP_OPEN_RESUME && self->info.resume);

    if (!self->initialized || self->opening || self->session_id != NULL) {
        eb_set_error(error, EB_ERROR_BUSY, "acp.state", "%s",
                     !self->initialized ? "the agent has not been initialized" : "a session is open already");
        return FALSE;
    }
    if ((how != EB_ACP_OPEN_NEW && session_id == NULL) || cwd == NULL || !g_path_is_absolute(cwd)) {
        eb_set_error(error, EB_ERROR_INVALID, "acp.open",
                     "a session needs an absolute directory and, to go on, its id");
        return FALSE;
    }
    if (!offered) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "acp.not-offered", "the agent does not offer to %s a session",
                     how == EB_ACP_OPEN_LOAD ? "load" : "resume");
        return FALSE;
    }
    return TRUE;
}

void
eb_acp_client_open_async(EbAcpClient *self, EbAcpOpen how, const char *session_id, const char *cwd, guint deadline_ms,
                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    static const char *const methods[] = {"session/new", "session/load", "session/resume"};
    g_autoptr(GTask) task = NULL;
    g_autoptr(GError) error = NULL;
    GTask *inner;

    g_return_if_fail(EB_IS_ACP_CLIENT(self) && how >= EB_ACP_OPEN_NEW && how <= EB_ACP_OPEN_RESUME);
    task = new_task(self, eb_acp_client_open_async, NULL, callback, user_data);
    if (!check_open(self, how, session_id, cwd, &error)) {
        g_task_return_error(task, g_steal_pointer(&error));
        return;
    }
    self->opening = TRUE;
    self->opening_new = how == EB_ACP_OPEN_NEW;
    self->replaying = how == EB_ACP_OPEN_LOAD;
    self->replayed = 0;
    if (how != EB_ACP_OPEN_NEW)
        self->session_id = g_strdup(session_id);
    inner = new_task(self, on_opened, cancellable, on_opened, g_steal_pointer(&task));
    eb_acp_client_call(self, methods[how], eb_acp_encode_open(how != EB_ACP_OPEN_NEW ? session_id : NULL, cwd),
                       deadline_ms, inner, decode_open);
}

char *
eb_acp_client_open_finish(EbAcpClient *self, GAsyncResult *result, guint *replayed, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    if (replayed != NULL)
        *replayed = self->replayed;
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- the rest of the surface --- */

guint64
eb_acp_client_get_idle_ms(EbAcpClient *self)
{
    return eb_jsonrpc_get_idle_ms(self->rpc);
}

char *
eb_acp_client_get_stderr_tail(EbAcpClient *self)
{
    return g_strdup(self->stderr_reader != NULL ? eb_acp_stderr_get_tail(self->stderr_reader) : "");
}

void
eb_acp_client_close(EbAcpClient *self)
{
    g_return_if_fail(EB_IS_ACP_CLIENT(self));
    eb_acp_client_answer_permissions(self);
    eb_jsonrpc_close(self->rpc, FALSE);
}

EbAcpClient *
eb_acp_client_new(GOutputStream *stdin_stream, GInputStream *stdout_stream, GInputStream *stderr_stream)
{
    EbAcpClient *self = g_object_new(EB_TYPE_ACP_CLIENT, NULL);

    self->rpc = eb_jsonrpc_new(stdout_stream, stdin_stream, &EB_JSONRPC_LIMITS_AGENT);
    eb_jsonrpc_set_cancel_method(self->rpc, "$/cancel_request");
    g_signal_connect(self->rpc, "closed", G_CALLBACK(on_rpc_closed), self);
    eb_acp_client_listen(self);
    if (stderr_stream != NULL)
        self->stderr_reader = eb_acp_stderr_new(stderr_stream, on_stderr, self);
    eb_jsonrpc_start(self->rpc);
    return self;
}

static void
eb_acp_client_dispose(GObject *object)
{
    EbAcpClient *self = EB_ACP_CLIENT(object);

    /* Nothing waits here: each call's task holds a reference. */
    if (self->rpc != NULL) {
        eb_acp_client_answer_permissions(self);
        g_signal_handlers_disconnect_by_data(self->rpc, self);
        eb_jsonrpc_close(self->rpc, FALSE);
    }
    eb_clear_source(&self->ending);
    eb_acp_client_turn_clear(self);
    eb_acp_client_drop_early(self);
    g_clear_pointer(&self->stderr_reader, eb_acp_stderr_free);
    g_clear_object(&self->rpc);
    G_OBJECT_CLASS(eb_acp_client_parent_class)->dispose(object);
}

static void
eb_acp_client_finalize(GObject *object)
{
    EbAcpClient *self = EB_ACP_CLIENT(object);

    eb_acp_agent_info_clear(&self->info);
    g_clear_pointer(&self->orphans, g_ptr_array_unref);
    g_clear_pointer(&self->exit_text, g_free);
    g_clear_error(&self->close_error);
    g_clear_pointer(&self->session_id, g_free);
    g_clear_pointer(&self->config_options, json_array_unref);
    g_clear_pointer(&self->modes, json_object_unref);
    g_clear_pointer(&self->models, json_object_unref);
    g_clear_pointer(&self->tools, eb_acp_tools_free);
    g_clear_pointer(&self->permissions, g_hash_table_unref);
    g_clear_pointer(&self->context, g_main_context_unref);
    G_OBJECT_CLASS(eb_acp_client_parent_class)->finalize(object);
}

static void
eb_acp_client_init(EbAcpClient *self)
{
    self->context = g_main_context_ref_thread_default();
    self->orphans = g_ptr_array_new_with_free_func((GDestroyNotify)call_free);
    self->tools = eb_acp_tools_new();
    self->permissions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&self->early);
}

static void
eb_acp_client_class_init(EbAcpClientClass *klass)
{
    const GType text = G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE;

    G_OBJECT_CLASS(klass)->dispose = eb_acp_client_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_acp_client_finalize;
    signals[SIGNAL_UPDATE] = g_signal_new("update", EB_TYPE_ACP_CLIENT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 1, EB_TYPE_ACP_UPDATE | G_SIGNAL_TYPE_STATIC_SCOPE);
    signals[SIGNAL_PERMISSION] = g_signal_new("permission", EB_TYPE_ACP_CLIENT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                              G_TYPE_NONE, 1, EB_TYPE_ACP_PERMISSION);
    signals[SIGNAL_NOISE] =
        g_signal_new("noise", EB_TYPE_ACP_CLIENT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, text);
    signals[SIGNAL_STDERR] =
        g_signal_new("stderr", EB_TYPE_ACP_CLIENT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, text);
    signals[SIGNAL_CLOSED] = g_signal_new("closed", EB_TYPE_ACP_CLIENT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 1, G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE);
}
