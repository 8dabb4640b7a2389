/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-acp"

#include "core/acp/eb-acp-client-private.h"
#include "core/acp/eb-acp-permission.h"

#include <string.h>

/* Updates for other sessions are told this often, then only counted. */
#define TOLD_FOREIGN 20

/* --- updates --- */

static void
deliver(EbAcpClient *self, JsonObject *params)
{
    JsonObject *object = eb_json_get_object(params, "update");
    EbAcpUpdate *update = eb_acp_update_decode(self->session_id, object);

    if (strcmp(update->name, "_kage/turn") == 0) {
        /* One of the agent's inner rounds: the turn ends with the prompt's answer alone. */
        eb_acp_update_unref(update);
        return;
    }
    if (update->kind == EB_ACP_UPDATE_TOOL)
        update->tool = eb_acp_tools_upsert(self->tools, object, strcmp(update->name, "tool_call") == 0);
    if (update->kind == EB_ACP_UPDATE_CONFIG || update->kind == EB_ACP_UPDATE_MODE)
        eb_acp_client_take_settings(self, object);
    eb_acp_client_emit_update(self, update);
}

static void
keep_early(EbAcpClient *self, JsonNode *node)
{
    const gsize left = EB_ACP_MAX_EARLY_BYTES - self->early_bytes;
    const gsize weight = eb_acp_json_weight(node, left);

    if (g_queue_get_length(&self->early) >= EB_ACP_MAX_EARLY_UPDATES || weight > left) {
        eb_acp_client_emit_noise(self, "too many updates before the session: one was dropped");
        return;
    }
    self->early_bytes += weight;
    g_queue_push_tail(&self->early, json_object_ref(json_node_get_object(node)));
}

static void
foreign(EbAcpClient *self, JsonObject *params)
{
    const char *id = eb_json_get_string(params, "sessionId");
    const char *name = eb_json_get_string(eb_json_get_object(params, "update"), "sessionUpdate");

    if (self->foreign++ < TOLD_FOREIGN)
        eb_acp_client_emit_noise(self, "update %s for another session %s", name != NULL ? name : "?", id);
}

/* Without an id it can only be ours: there is one session. */
static gboolean
is_ours(EbAcpClient *self, const char *id)
{
    return id == NULL || g_strcmp0(id, self->session_id) == 0;
}

static void
on_update(EbAcpClient *self, JsonNode *node)
{
    JsonObject *params = eb_json_node_object(node);

    if (params == NULL) {
        eb_acp_client_emit_noise(self, "session/update without an object");
        return;
    }
    if (self->opening_new)
        keep_early(self, node);
    else if (is_ours(self, eb_json_get_string(params, "sessionId")))
        deliver(self, params);
    else
        foreign(self, params);
}

void
eb_acp_client_flush_early(EbAcpClient *self)
{
    JsonObject *params;

    self->early_bytes = 0;
    while ((params = g_queue_pop_head(&self->early)) != NULL) {
        if (is_ours(self, eb_json_get_string(params, "sessionId")))
            deliver(self, params);
        else
            foreign(self, params);
        json_object_unref(params);
    }
}

void
eb_acp_client_drop_early(EbAcpClient *self)
{
    g_queue_clear_full(&self->early, (GDestroyNotify)json_object_unref);
    self->early_bytes = 0;
}

/* --- permissions --- */

/* What a permission needs to answer after the client is gone as well as before. */
typedef struct {
    EbAcpClient *client; /* not owned: the client detaches its permissions before it goes */
    JsonNode *id;
    char *key;
} Question;

static void
question_free(Question *question)
{
    json_node_unref(question->id);
    g_free(question->key);
    g_free(question);
}

static void
on_answered(EbAcpPermission *permission, const char *option_id, gpointer user_data)
{
    Question *question = user_data;
    EbAcpClient *self = question->client;

    g_hash_table_remove(self->permissions, question->key);
    eb_jsonrpc_reply(self->rpc, question->id, eb_acp_encode_outcome(option_id));
}

/* The agent's view of the call is merged with what is known; a sub-agent's session has its own ids. */
static EbAcpTool *
permission_tool(EbAcpClient *self, JsonObject *params, gboolean ours)
{
    JsonObject *call = eb_json_get_object(params, "toolCall");
    EbAcpTool *tool;

    if (ours && call != NULL) {
        EbAcpUpdate *update;

        tool = eb_acp_tools_upsert(self->tools, call, FALSE);
        update = eb_acp_update_new(EB_ACP_UPDATE_TOOL, self->session_id, "tool_call_update", call);
        update->tool = eb_acp_tool_copy(tool);
        eb_acp_client_emit_update(self, update);
        return tool;
    }
    tool = eb_acp_tool_new("");
    if (call != NULL)
        eb_acp_tool_merge(tool, call);
    return tool;
}

static void
tell_no_choice(EbAcpClient *self, const EbAcpTool *tool)
{
    EbAcpUpdate *update = eb_acp_update_new(EB_ACP_UPDATE_NOTICE, self->session_id, "notice", NULL);

    /* In the service's own words: a title gets out of its code span by no backtick. */
    g_autofree char *title = g_strdelimit(g_strdup(tool->title != NULL ? tool->title : ""), "`", '\'');
    update->text = g_strdup_printf("the agent asked about `%s` without any answer to choose from", title);
    eb_acp_client_emit_update(self, update);
}

static void
on_permission(EbAcpClient *self, JsonNode *node, JsonNode *id)
{
    JsonObject *params = eb_json_node_object(node);
    g_autoptr(JsonObject) empty = json_object_new();
    g_autoptr(EbAcpPermission) permission = NULL;
    Question *question = g_new0(Question, 1);
    EbAcpTool *tool;
    GPtrArray *options;
    const gboolean ours = is_ours(self, eb_json_get_string(params, "sessionId"));

    question->client = self;
    question->id = json_node_copy(id);
    question->key = eb_jsonrpc_id_text(id);
    if (params == NULL)
        params = empty;
    if (self->turn.active)
        eb_acp_client_turn_alive(self);
    tool = permission_tool(self, params, ours);
    options = eb_acp_options_decode(eb_json_get_array(params, "options"));
    if (options->len == 0)
        tell_no_choice(self, tool);
    permission = eb_acp_permission_new(tool, options, params, on_answered, question);
    g_object_set_data_full(G_OBJECT(permission), "question", question, (GDestroyNotify)question_free);
    g_hash_table_insert(self->permissions, g_strdup(question->key), permission);
    /* After a cancel there is but one answer; with nothing to choose from as well. */
    if (options->len == 0 || (self->turn.active && self->turn.cancelled))
        eb_acp_permission_answer(permission, NULL, NULL);
    else
        g_signal_emit_by_name(self, "permission", permission);
}

static void
each_permission(EbAcpClient *self, void (*act)(EbAcpPermission *permission))
{
    g_autoptr(GPtrArray) open = g_ptr_array_new_with_free_func(g_object_unref);
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, self->permissions);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(open, g_object_ref(value));
    for (guint i = 0; i < open->len; i++)
        act(g_ptr_array_index(open, i));
}

void
eb_acp_client_answer_permissions(EbAcpClient *self)
{
    each_permission(self, eb_acp_permission_withdraw);
}

void
eb_acp_client_detach_permissions(EbAcpClient *self)
{
    each_permission(self, eb_acp_permission_detach);
    g_hash_table_remove_all(self->permissions);
}

/* $/cancel_request: the agent takes a question back; it waits for an answer all the same. */
static void
on_withdrawn(EbAcpClient *self, JsonNode *node)
{
    JsonObject *params = eb_json_node_object(node);
    JsonNode *id = eb_json_get_node(params, "requestId");
    g_autofree char *key = NULL;
    EbAcpPermission *permission;

    if (id == NULL)
        id = eb_json_get_node(params, "id");
    if (id == NULL || JSON_NODE_HOLDS_OBJECT(id) || JSON_NODE_HOLDS_ARRAY(id))
        return;
    key = eb_jsonrpc_id_text(id);
    permission = g_hash_table_lookup(self->permissions, key);
    if (permission != NULL)
        eb_acp_permission_withdraw(permission);
}

/* --- the peer's signals --- */

static gboolean
on_request(EbJsonrpc *rpc, const char *method, JsonNode *params, JsonNode *id, gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(user_data);

    if (strcmp(method, "session/request_permission") == 0) {
        on_permission(self, params, id);
        return TRUE;
    }
    /* fs, terminal and elicitation are not offered; some agents ask all the same and go on after -32601. */
    eb_acp_client_emit_noise(self, "request %s refused: not offered", method);
    return FALSE;
}

static void
on_notification(EbJsonrpc *rpc, const char *method, JsonNode *params, gpointer user_data)
{
    EbAcpClient *self = EB_ACP_CLIENT(user_data);

    if (strcmp(method, "session/update") == 0)
        on_update(self, params);
    else if (strcmp(method, "$/cancel_request") == 0)
        on_withdrawn(self, params);
}

static void
on_noise(EbJsonrpc *rpc, const char *line, gpointer user_data)
{
    g_signal_emit_by_name(user_data, "noise", line);
}

void
eb_acp_client_listen(EbAcpClient *self)
{
    g_signal_connect(self->rpc, "request", G_CALLBACK(on_request), self);
    g_signal_connect(self->rpc, "notification", G_CALLBACK(on_notification), self);
    g_signal_connect(self->rpc, "noise", G_CALLBACK(on_noise), self);
}
