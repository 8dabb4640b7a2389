/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-types.h"

#include "core/acp/eb-acp-tool.h"
#include "core/base/eb-jsonrpc.h"

#include <string.h>

G_DEFINE_BOXED_TYPE(EbAcpUpdate, eb_acp_update, eb_acp_update_ref, eb_acp_update_unref)

EbAcpUpdate *
eb_acp_update_ref(EbAcpUpdate *self)
{
    g_atomic_int_inc(&self->ref_count);
    return self;
}

void
eb_acp_update_unref(EbAcpUpdate *self)
{
    if (self == NULL || !g_atomic_int_dec_and_test(&self->ref_count))
        return;
    g_free(self->session_id);
    g_free(self->name);
    g_free(self->text);
    g_free(self->message_id);
    g_free(self->currency);
    eb_acp_tool_free(self->tool);
    g_clear_pointer(&self->raw, json_object_unref);
    g_free(self);
}

static const struct {
    const char *name;
    EbAcpUpdateKind kind;
} update_kinds[] = {
    {"agent_message_chunk", EB_ACP_UPDATE_TEXT},
    {"agent_thought_chunk", EB_ACP_UPDATE_THOUGHT},
    {"user_message_chunk", EB_ACP_UPDATE_USER},
    {"tool_call", EB_ACP_UPDATE_TOOL},
    {"tool_call_update", EB_ACP_UPDATE_TOOL},
    {"plan", EB_ACP_UPDATE_PLAN},
    {"available_commands_update", EB_ACP_UPDATE_COMMANDS},
    {"current_mode_update", EB_ACP_UPDATE_MODE},
    {"config_option_update", EB_ACP_UPDATE_CONFIG},
    {"session_info_update", EB_ACP_UPDATE_INFO},
    {"usage_update", EB_ACP_UPDATE_USAGE},
    {"notice", EB_ACP_UPDATE_NOTICE},
    {"_kage/notice", EB_ACP_UPDATE_NOTICE},
};

EbAcpUpdate *
eb_acp_update_new(EbAcpUpdateKind kind, const char *session_id, const char *name, JsonObject *raw)
{
    EbAcpUpdate *self = g_new0(EbAcpUpdate, 1);

    self->ref_count = 1;
    self->kind = kind;
    self->session_id = g_strdup(session_id);
    self->name = eb_acp_cut(name, EB_ACP_MAX_ID);
    self->used = -1;
    self->size = -1;
    self->cost = -1;
    self->raw = raw != NULL ? json_object_ref(raw) : json_object_new();
    return self;
}

/* The text of a content block; NULL for pictures and sounds. */
static char *
block_text(JsonNode *node)
{
    JsonObject *block = eb_json_node_object(node);
    const char *type = eb_json_get_string(block, "type");
    const char *text = eb_json_get_string(block, "text");

    if (text == NULL && g_strcmp0(type, "resource") == 0)
        text = eb_json_get_string(eb_json_get_object(block, "resource"), "text");
    if (text == NULL && g_strcmp0(type, "resource_link") == 0)
        text = eb_json_get_string(block, "uri");
    if (text == NULL && node != NULL && JSON_NODE_HOLDS_VALUE(node))
        text = json_node_get_string(node);
    return g_strdup(text);
}

static char *
notice_text(JsonObject *update)
{
    const char *title = eb_json_get_string(update, "title");
    const char *text = eb_json_get_string(update, "description");

    if (text == NULL)
        text = eb_json_get_string(update, "text");
    if (text == NULL)
        text = eb_json_get_string(update, "message");
    if (title != NULL && text != NULL)
        return g_strdup_printf("%s: %s", title, text);
    return g_strdup(title != NULL ? title : text);
}

static void
decode_usage(EbAcpUpdate *self, JsonObject *update)
{
    JsonObject *cost = eb_json_get_object(update, "cost");
    const double used = eb_json_get_double(update, "used", -1);
    const double size = eb_json_get_double(update, "size", -1);
    const double limit = 9e15; /* exact as a double */

    self->used = used >= 0 && used < limit ? (gint64)used : -1;
    self->size = size >= 0 && size < limit ? (gint64)size : -1;
    self->cost = eb_json_get_double(cost, "amount", -1);
    self->currency = eb_acp_cut(eb_json_get_string(cost, "currency"), 16);
}

EbAcpUpdate *
eb_acp_update_decode(const char *session_id, JsonObject *update)
{
    const char *name = eb_json_get_string(update, "sessionUpdate");
    EbAcpUpdate *self = eb_acp_update_new(EB_ACP_UPDATE_OTHER, session_id, name != NULL ? name : "", update);

    for (gsize i = 0; i < G_N_ELEMENTS(update_kinds); i++)
        if (g_strcmp0(update_kinds[i].name, name) == 0)
            self->kind = update_kinds[i].kind;
    switch (self->kind) {
    case EB_ACP_UPDATE_TEXT:
    case EB_ACP_UPDATE_THOUGHT:
    case EB_ACP_UPDATE_USER:
        self->text = block_text(eb_json_get_node(update, "content"));
        self->message_id = eb_acp_cut(eb_json_get_string(update, "messageId"), EB_ACP_MAX_ID);
        break;
    case EB_ACP_UPDATE_INFO:
        self->text = eb_acp_cut(eb_json_get_string(update, "title"), EB_ACP_MAX_TITLE);
        break;
    case EB_ACP_UPDATE_NOTICE:
        self->text = notice_text(update);
        break;
    case EB_ACP_UPDATE_USAGE:
        decode_usage(self, update);
        break;
    case EB_ACP_UPDATE_MODE:
        self->text = eb_acp_cut(eb_json_get_string(update, "currentModeId"), EB_ACP_MAX_TITLE);
        break;
    case EB_ACP_UPDATE_TOOL:
    case EB_ACP_UPDATE_PLAN:
    case EB_ACP_UPDATE_COMMANDS:
    case EB_ACP_UPDATE_CONFIG:
    case EB_ACP_UPDATE_OTHER:
        break;
    }
    return self;
}

gboolean
eb_acp_update_is_content(const EbAcpUpdate *update)
{
    switch (update->kind) {
    case EB_ACP_UPDATE_TEXT:
    case EB_ACP_UPDATE_THOUGHT:
        return update->text != NULL && update->text[0] != '\0';
    case EB_ACP_UPDATE_TOOL:
    case EB_ACP_UPDATE_PLAN:
        return TRUE;
    case EB_ACP_UPDATE_USER:
    case EB_ACP_UPDATE_COMMANDS:
    case EB_ACP_UPDATE_MODE:
    case EB_ACP_UPDATE_CONFIG:
    case EB_ACP_UPDATE_INFO:
    case EB_ACP_UPDATE_USAGE:
    case EB_ACP_UPDATE_NOTICE:
    case EB_ACP_UPDATE_OTHER:
        return FALSE;
    }
    return FALSE;
}

/* A capability is a true boolean or a marker object; agents mix both. */
static gboolean
has_capability(JsonObject *object, const char *member)
{
    JsonNode *node = eb_json_get_node(object, member);

    return node != NULL && (JSON_NODE_HOLDS_OBJECT(node) || eb_json_get_bool(object, member, FALSE));
}

gboolean
eb_acp_agent_info_decode(JsonObject *result, EbAcpAgentInfo *info, GError **error)
{
    JsonObject *agent = eb_json_get_object(result, "agentInfo");
    JsonObject *capabilities = eb_json_get_object(result, "agentCapabilities");
    JsonObject *prompt = eb_json_get_object(capabilities, "promptCapabilities");
    JsonObject *session = eb_json_get_object(capabilities, "sessionCapabilities");
    const gint64 version = eb_json_get_int(result, "protocolVersion", -1);

    if (version != EB_ACP_PROTOCOL_VERSION) {
        if (version >= 0)
            eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "acp.version",
                         "the agent speaks ACP version %" G_GINT64_FORMAT ", errand-box speaks version %d", version,
                         EB_ACP_PROTOCOL_VERSION);
        else
            eb_set_error(error, EB_ERROR_PROTOCOL, "acp.version", "the agent did not say which ACP version it speaks");
        return FALSE;
    }
    *info = (EbAcpAgentInfo){.protocol_version = version};
    info->name = eb_acp_cut(eb_json_get_string(agent, "name"), EB_ACP_MAX_TITLE);
    info->version = eb_acp_cut(eb_json_get_string(agent, "version"), EB_ACP_MAX_TITLE);
    info->load = has_capability(capabilities, "loadSession");
    info->resume = has_capability(session, "resume");
    info->list = has_capability(session, "list");
    info->close = has_capability(session, "close");
    info->image = has_capability(prompt, "image");
    info->embedded_context = has_capability(prompt, "embeddedContext");
    info->steer = has_capability(capabilities, "steer");
    info->capabilities = capabilities != NULL ? json_object_ref(capabilities) : NULL;
    if (eb_json_get_array(result, "authMethods") != NULL)
        info->auth_methods = json_array_ref(eb_json_get_array(result, "authMethods"));
    return TRUE;
}

void
eb_acp_agent_info_clear(EbAcpAgentInfo *info)
{
    g_free(info->name);
    g_free(info->version);
    g_clear_pointer(&info->capabilities, json_object_unref);
    g_clear_pointer(&info->auth_methods, json_array_unref);
    *info = (EbAcpAgentInfo){0};
}

static void
option_free(EbAcpOption *option)
{
    g_free(option->id);
    g_free(option->name);
    g_free(option->kind);
    g_free(option);
}

static gboolean
option_exists(GPtrArray *options, const char *id)
{
    for (guint i = 0; i < options->len; i++)
        if (strcmp(((EbAcpOption *)g_ptr_array_index(options, i))->id, id) == 0)
            return TRUE;
    return FALSE;
}

GPtrArray *
eb_acp_options_decode(JsonArray *options)
{
    GPtrArray *result = g_ptr_array_new_with_free_func((GDestroyNotify)option_free);
    const guint n = options != NULL ? json_array_get_length(options) : 0;

    for (guint i = 0; i < n && result->len < EB_ACP_MAX_OPTIONS; i++) {
        JsonObject *object = eb_json_array_object(options, i);
        const char *id = eb_json_get_string(object, "optionId");
        const char *name = eb_json_get_string(object, "name");
        const char *kind = eb_json_get_string(object, "kind");
        EbAcpOption *option;

        /* An id that would have to be cut could not be answered with. */
        if (id == NULL || strlen(id) > EB_ACP_MAX_ID || option_exists(result, id))
            continue;
        option = g_new0(EbAcpOption, 1);
        option->id = g_strdup(id);
        option->name = eb_acp_cut(name != NULL && name[0] != '\0' ? name : id, EB_ACP_MAX_TITLE);
        option->kind = eb_acp_cut(kind != NULL ? kind : "", EB_ACP_MAX_ID);
        g_ptr_array_add(result, option);
    }
    return result;
}

/* (transfer full) (nullable): what people can read of an error's data. */
static char *
error_data_text(JsonNode *data)
{
    JsonObject *object = eb_json_node_object(data);
    static const char *const members[] = {"details", "message", "error", "reason", "errorMessage"};

    if (data == NULL || JSON_NODE_HOLDS_NULL(data))
        return NULL;
    if (JSON_NODE_HOLDS_VALUE(data))
        return json_node_get_value_type(data) == G_TYPE_STRING ? g_strdup(json_node_get_string(data))
                                                               : eb_json_write(data, NULL);
    for (gsize i = 0; object != NULL && i < G_N_ELEMENTS(members); i++) {
        const char *text = eb_json_get_string(object, members[i]);

        if (text == NULL)
            text = eb_json_get_string(eb_json_get_object(object, members[i]), "message");
        if (text != NULL)
            return g_strdup(text);
    }
    if (object != NULL && json_object_get_size(object) == 0)
        return NULL;
    {
        g_autoptr(JsonNode) small = eb_acp_json_bounded_copy(data, EB_ACP_MAX_ERROR);

        return eb_json_write(small, NULL);
    }
}

char *
eb_acp_error_text(JsonObject *error)
{
    const char *message = eb_json_get_string(error, "message");
    g_autofree char *data = error_data_text(eb_json_get_node(error, "data"));
    g_autofree char *joined = NULL;

    if (message == NULL || message[0] == '\0')
        message = data != NULL ? NULL : "no reason given";
    if (message != NULL && data != NULL && strstr(message, data) == NULL)
        joined = g_strdup_printf("%s: %s", message, data);
    return eb_acp_cut(joined != NULL ? joined : (message != NULL ? message : data), EB_ACP_MAX_ERROR);
}

GError *
eb_acp_error_from(const char *method, JsonObject *error)
{
    static const struct {
        gint64 code;
        EbErrorCode kind;
        const char *reason;
    } codes[] = {
        {-32000, EB_ERROR_UNAUTHENTICATED, "acp.auth-required"},
        {-32002, EB_ERROR_NOT_FOUND, "acp.not-found"},
        {EB_JSONRPC_METHOD_NOT_FOUND, EB_ERROR_NOT_SUPPORTED, "acp.method-not-found"},
        {EB_JSONRPC_INVALID_PARAMS, EB_ERROR_INVALID, "acp.invalid"},
        {-32800, EB_ERROR_CANCELLED, "acp.cancelled"},
    };
    g_autofree char *text = eb_acp_error_text(error);
    const gint64 code = eb_json_get_int(error, "code", 0);
    EbErrorCode kind = EB_ERROR_FAILED;
    const char *reason = "acp.agent-error";

    for (gsize i = 0; i < G_N_ELEMENTS(codes); i++) {
        if (codes[i].code == code) {
            kind = codes[i].kind;
            reason = codes[i].reason;
        }
    }
    return eb_error_new(kind, reason, "the agent answered %s with error %" G_GINT64_FORMAT ": %s", method, code, text);
}

gboolean
eb_acp_stop_reason_is_known(const char *reason)
{
    static const char *const known[] = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", NULL};

    return reason != NULL && g_strv_contains(known, reason);
}
