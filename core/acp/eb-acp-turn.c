/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-acp"

#include "core/acp/eb-acp-client-private.h"

#include <string.h>

/* Agents that get a cancel before they have taken up the prompt lose it, or carry the prompt out later. */
#define CANCEL_HOLD_MS 500

void
eb_acp_turn_free(EbAcpTurn *self)
{
    if (self == NULL)
        return;
    g_free(self->stop_reason);
    g_free(self->error);
    g_clear_pointer(&self->usage, json_object_unref);
    g_free(self);
}

void
eb_acp_client_turn_clear(EbAcpClient *self)
{
    eb_clear_source(&self->turn.hold);
    eb_clear_source(&self->turn.abort);
    eb_clear_source(&self->turn.watch);
    g_clear_object(&self->turn.task);
    self->turn = (EbAcpTurnState){0};
}

static EbAcpTurn *
new_turn(EbAcpClient *self, const char *stop_reason)
{
    EbAcpTurn *turn = g_new0(EbAcpTurn, 1);

    turn->stop_reason = eb_acp_cut(stop_reason, EB_ACP_MAX_ID);
    turn->empty = !self->turn.content;
    turn->ms = (guint64)(g_get_monotonic_time() - self->turn.started) / 1000;
    return turn;
}

/* --- the answer --- */

static EbAcpTurn *
turn_from_error(EbAcpClient *self, JsonObject *error)
{
    EbAcpTurn *turn = new_turn(self, "error");

    turn->error = eb_acp_error_text(error);
    turn->error_code = eb_json_get_int(error, "code", 0);
    return turn;
}

static EbAcpTurn *
turn_from_result(EbAcpClient *self, JsonObject *result)
{
    const char *reason = eb_json_get_string(result, "stopReason");
    EbAcpTurn *turn = new_turn(self, reason != NULL && reason[0] != '\0' ? reason : "error");
    JsonObject *usage = eb_json_get_object(result, "usage");

    if (!eb_acp_stop_reason_is_known(turn->stop_reason))
        turn->error = reason != NULL ? g_strdup_printf("the agent ended the turn with \"%s\"", turn->stop_reason)
                                     : g_strdup("the agent ended the turn without a reason");
    turn->usage = usage != NULL ? json_object_ref(usage) : NULL;
    return turn;
}

static void
on_prompt_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbAcpClient) self = EB_ACP_CLIENT(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) error_object = NULL;
    g_autoptr(JsonNode) node = eb_jsonrpc_call_finish(EB_JSONRPC(source), result, &error_object, &error);
    g_autoptr(GTask) task = g_steal_pointer(&self->turn.task);
    g_autoptr(EbAcpTurn) turn = NULL;

    if (node != NULL)
        turn = turn_from_result(self, eb_json_node_object(node));
    else if (error_object != NULL)
        turn = turn_from_error(self, error_object);
    if (turn != NULL && self->turn.cancelled) {
        /* Agents answer a cancel with end_turn, with errors or with nothing of note: what we did decides. */
        g_free(turn->stop_reason);
        turn->stop_reason = g_strdup("cancelled");
        g_clear_pointer(&turn->error, g_free);
        turn->error_code = 0;
    }
    eb_acp_client_turn_clear(self);
    self->turns_done++;
    if (task == NULL)
        return;
    if (turn != NULL)
        g_task_return_pointer(task, g_steal_pointer(&turn), (GDestroyNotify)eb_acp_turn_free);
    else if (g_strcmp0(eb_error_get_reason(error), "jsonrpc.closed") == 0)
        eb_acp_client_orphan(self, g_steal_pointer(&task), "session/prompt");
    else
        g_task_return_error(task, g_steal_pointer(&error));
}

/* --- the prompt --- */

static gboolean
on_given_up(GCancellable *cancellable, gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(user_data);
    g_autoptr(GTask) task = g_steal_pointer(&self->turn.task);

    eb_clear_source(&self->turn.watch);
    if (task != NULL)
        g_task_return_error(task, eb_error_new(EB_ERROR_CANCELLED, NULL, "cancelled"));
    return G_SOURCE_REMOVE;
}

static void
start_turn(EbAcpClient *self, GTask *task, GCancellable *cancellable)
{
    self->turn = (EbAcpTurnState){.active = TRUE, .task = task, .started = g_get_monotonic_time()};
    eb_acp_tools_begin_turn(self->tools);
    if (cancellable == NULL)
        return;
    self->turn.watch = g_cancellable_source_new(cancellable);
    g_source_set_callback(self->turn.watch, G_SOURCE_FUNC(on_given_up), self, NULL);
    g_source_attach(self->turn.watch, self->context);
}

static gboolean
check_prompt(EbAcpClient *self, GError **error)
{
    if (eb_jsonrpc_is_closed(self->rpc)) {
        g_propagate_error(error, eb_acp_client_gone(self, "session/prompt"));
        return FALSE;
    }
    if (self->session_id == NULL || self->opening) {
        eb_set_error(error, EB_ERROR_INVALID, "acp.state", "no session is open");
        return FALSE;
    }
    if (self->turn.active) {
        eb_set_error(error, EB_ERROR_BUSY, "acp.busy", "the agent works on another prompt");
        return FALSE;
    }
    return TRUE;
}

void
eb_acp_client_prompt_async(EbAcpClient *self, JsonArray *blocks, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = NULL;
    g_autoptr(GError) error = NULL;

    g_return_if_fail(EB_IS_ACP_CLIENT(self) && blocks != NULL);
    task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_acp_client_prompt_async);
    g_task_set_check_cancellable(task, FALSE);
    if (!check_prompt(self, &error)) {
        g_task_return_error(task, g_steal_pointer(&error));
        return;
    }
    start_turn(self, g_steal_pointer(&task), cancellable);
    /* Without the cancellable: giving up the wait is not ending the turn. */
    eb_jsonrpc_call_async(self->rpc, "session/prompt", eb_acp_encode_prompt(self->session_id, blocks, NULL), 0, NULL,
                          on_prompt_answered, g_object_ref(self));
}

EbAcpTurn *
eb_acp_client_prompt_finish(EbAcpClient *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

gboolean
eb_acp_client_in_turn(EbAcpClient *self)
{
    return self->turn.active;
}

/* --- steering --- */

static void
decode_steer(EbAcpClient *self, GTask *task, JsonObject *result)
{
    g_task_return_boolean(task, TRUE);
}

void
eb_acp_client_steer_async(EbAcpClient *self, JsonArray *blocks, guint deadline_ms, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = NULL;

    g_return_if_fail(EB_IS_ACP_CLIENT(self) && blocks != NULL);
    task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_acp_client_steer_async);
    if (!self->info.steer || !self->turn.active) {
        g_task_return_error(task, eb_error_new(EB_ERROR_NOT_SUPPORTED, "acp.steer", "%s",
                                               self->info.steer ? "there is no turn to steer"
                                                                : "the agent cannot be steered in a turn"));
        return;
    }
    eb_acp_client_call(self, "session/prompt", eb_acp_encode_prompt(self->session_id, blocks, "steer"), deadline_ms,
                       g_steal_pointer(&task), decode_steer);
}

gboolean
eb_acp_client_steer_finish(EbAcpClient *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

/* --- cancelling --- */

static void
send_cancel(EbAcpClient *self)
{
    eb_clear_source(&self->turn.hold);
    if (self->turn.cancel_sent)
        return;
    self->turn.cancel_sent = TRUE;
    eb_jsonrpc_notify(self->rpc, "session/cancel", eb_acp_encode_session(self->session_id, NULL));
}

static gboolean
on_hold_over(gpointer user_data)
{
    send_cancel(EB_ACP_CLIENT(user_data));
    return G_SOURCE_REMOVE;
}

void
eb_acp_client_turn_alive(EbAcpClient *self)
{
    self->turn.content = TRUE;
    if (self->turn.hold != NULL)
        send_cancel(self);
}

static gboolean
on_abort(gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(user_data);
    g_autoptr(GTask) task = g_steal_pointer(&self->turn.task);
    EbAcpTurn *turn = new_turn(self, "cancelled");

    eb_clear_source(&self->turn.abort);
    turn->error = g_strdup_printf("the agent did not stop within %u.%u s", self->turn.abort_ms / 1000,
                                  self->turn.abort_ms % 1000 / 100);
    if (task != NULL)
        g_task_return_pointer(task, turn, (GDestroyNotify)eb_acp_turn_free);
    else
        eb_acp_turn_free(turn);
    return G_SOURCE_REMOVE;
}

static void
cancel_tools(EbAcpClient *self)
{
    g_autoptr(GPtrArray) changed = eb_acp_tools_cancel_open(self->tools);

    for (guint i = 0; i < changed->len; i++) {
        EbAcpUpdate *update = eb_acp_update_new(EB_ACP_UPDATE_TOOL, self->session_id, "tool_call_update", NULL);

        update->tool = eb_acp_tool_copy(g_ptr_array_index(changed, i));
        g_signal_emit_by_name(self, "update", update);
        eb_acp_update_unref(update);
    }
}

void
eb_acp_client_cancel(EbAcpClient *self, guint abort_ms)
{
    g_autoptr(EbAcpClient) keep G_GNUC_UNUSED = NULL;
    guint64 elapsed;

    g_return_if_fail(EB_IS_ACP_CLIENT(self));
    keep = g_object_ref(self);
    if (!self->turn.active) {
        eb_acp_client_answer_permissions(self);
        return;
    }
    self->turn.cancelled = TRUE;
    self->turn.abort_ms = abort_ms;
    eb_acp_client_set_timer(self, &self->turn.abort, abort_ms, on_abort);
    elapsed = (guint64)(g_get_monotonic_time() - self->turn.started) / 1000;
    if (self->turn.content || elapsed >= CANCEL_HOLD_MS)
        send_cancel(self);
    else if (!self->turn.cancel_sent)
        eb_acp_client_set_timer(self, &self->turn.hold, (guint)(CANCEL_HOLD_MS - elapsed), on_hold_over);
    /* After the cancel: an agent that hears of a refused call first would go on with the turn. */
    eb_acp_client_answer_permissions(self);
    cancel_tools(self);
}
