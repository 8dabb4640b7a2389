/* SPDX-License-Identifier: MIT */
#include "standin.h"

#include <string.h>

static char *
block_text(JsonObject *block)
{
    JsonArray *parts = eb_json_get_array(block, "content");
    g_autoptr(GString) text = g_string_new(NULL);

    if (parts == NULL)
        return g_strdup(eb_json_get_string(block, "content"));
    for (guint i = 0; i < json_array_get_length(parts); i++) {
        const char *part = eb_json_get_string(eb_json_array_object(parts, i), "text");

        if (part != NULL)
            g_string_append(text, part);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* What Claude Code adds to a message by itself. */
static gboolean
is_own_remark(const char *text)
{
    return g_str_has_prefix(text, "<system-reminder>") || g_str_has_prefix(text, "[Request interrupted");
}

/* A message of the user may carry results of tools, a prompt, or (after a cancel) both. */
static void
add_user(StandinRequest *request, JsonObject *message)
{
    JsonArray *blocks = eb_json_get_array(message, "content");
    g_autoptr(GString) text = g_string_new(eb_json_get_string(message, "content"));

    for (guint i = 0; blocks != NULL && i < json_array_get_length(blocks); i++) {
        JsonObject *block = eb_json_array_object(blocks, i);
        const char *type = eb_json_get_string(block, "type");
        const char *part = eb_json_get_string(block, "text");

        if (g_strcmp0(type, "tool_result") == 0) {
            g_autofree char *result = block_text(block);

            standin_request_add_result(request, result);
        } else if (g_strcmp0(type, "text") == 0 && part != NULL && !is_own_remark(part)) {
            g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "", part);
        }
    }
    standin_request_add_user(request, text->str);
}

static gboolean
decode(JsonObject *body, StandinRequest *request, GError **error)
{
    JsonArray *messages = eb_json_get_array(body, "messages");
    JsonArray *tools = eb_json_get_array(body, "tools");

    request->model = g_strdup(eb_json_get_string(body, "model"));
    request->stream = eb_json_get_bool(body, "stream", FALSE);
    if (request->model == NULL || messages == NULL || json_array_get_length(messages) == 0) {
        eb_set_error(error, EB_ERROR_INVALID, NULL, "%s",
                     request->model == NULL ? "model: Field required" : "messages: at least one message is required");
        return FALSE;
    }
    for (guint i = 0; i < json_array_get_length(messages); i++) {
        JsonObject *message = eb_json_array_object(messages, i);
        const char *role = eb_json_get_string(message, "role");

        if (role == NULL ||
            (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 && strcmp(role, "system") != 0)) {
            eb_set_error(error, EB_ERROR_INVALID, NULL, "messages.%u.role: Input should be 'user' or 'assistant'", i);
            return FALSE;
        }
        if (strcmp(role, "user") == 0)
            add_user(request, message);
    }
    for (guint i = 0; tools != NULL && i < json_array_get_length(tools); i++) {
        JsonObject *tool = eb_json_array_object(tools, i);

        standin_request_add_tool(request, eb_json_get_string(tool, "name"), eb_json_get_object(tool, "input_schema"));
    }
    return TRUE;
}

static JsonObject *
typed(const char *type)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "type", type);
    return object;
}

static JsonObject *
usage(const StandinRequest *request, gint64 output)
{
    JsonObject *object = json_object_new();

    json_object_set_int_member(object, "input_tokens", (gint64)request->bytes / 4);
    json_object_set_int_member(object, "output_tokens", output);
    json_object_set_int_member(object, "cache_read_input_tokens", 0);
    json_object_set_int_member(object, "cache_creation_input_tokens", 0);
    return object;
}

/* @content: (transfer full) */
static JsonObject *
message(const StandinRequest *request, const StandinReply *reply, JsonArray *content, const char *stop)
{
    JsonObject *object = typed("message");
    g_autofree char *id = g_strdup_printf("msg_standin%u", reply->serial);

    json_object_set_string_member(object, "id", id);
    json_object_set_string_member(object, "role", "assistant");
    json_object_set_string_member(object, "model", request->model);
    json_object_set_array_member(object, "content", content);
    if (stop != NULL)
        json_object_set_string_member(object, "stop_reason", stop);
    else
        json_object_set_null_member(object, "stop_reason");
    json_object_set_null_member(object, "stop_sequence");
    json_object_set_object_member(object, "usage", usage(request, stop != NULL ? 20 : 1));
    return object;
}

static JsonObject *
tool_block(const StandinReply *reply, JsonObject *input)
{
    JsonObject *block = typed("tool_use");
    g_autofree char *id = g_strdup_printf("toolu_standin%u", reply->serial);

    json_object_set_string_member(block, "id", id);
    json_object_set_string_member(block, "name", reply->tool);
    json_object_set_object_member(block, "input", input);
    return block;
}

static JsonObject *
text_block(const char *type, const char *key, const char *text)
{
    JsonObject *block = typed(type);

    json_object_set_string_member(block, key, text);
    return block;
}

static void
event(StandinPieces *pieces, const char *type, gint64 index, const char *key, JsonObject *value)
{
    JsonObject *data = typed(type);

    if (index >= 0)
        json_object_set_int_member(data, "index", index);
    if (value != NULL)
        json_object_set_object_member(data, key, value);
    standin_pieces_event(pieces, type, data);
}

static void
stream_text(StandinPieces *pieces, const StandinReply *reply, gint64 index)
{
    g_auto(GStrv) words = standin_split_text(reply);

    event(pieces, "content_block_start", index, "content_block", text_block("text", "text", ""));
    for (char **word = words; *word != NULL; word++) {
        event(pieces, "content_block_delta", index, "delta", text_block("text_delta", "text", *word));
        standin_pieces_pause(pieces);
    }
    event(pieces, "content_block_stop", index, NULL, NULL);
}

static void
stream(const StandinRequest *request, const StandinReply *reply, StandinPieces *pieces)
{
    JsonObject *last = typed("message_delta");
    JsonObject *delta = json_object_new();
    gint64 index = 0;

    event(pieces, "message_start", -1, "message", message(request, reply, json_array_new(), NULL));
    if (reply->think != NULL) {
        JsonObject *start = text_block("thinking", "thinking", "");

        json_object_set_string_member(start, "signature", "");
        event(pieces, "content_block_start", index, "content_block", start);
        event(pieces, "content_block_delta", index, "delta", text_block("thinking_delta", "thinking", reply->think));
        event(pieces, "content_block_delta", index, "delta",
              text_block("signature_delta", "signature", "c3RhbmRpbg=="));
        event(pieces, "content_block_stop", index++, NULL, NULL);
    }
    if (reply->text != NULL)
        stream_text(pieces, reply, index++);
    if (reply->tool != NULL) {
        g_autofree char *arguments = standin_json_text(reply->args);

        event(pieces, "content_block_start", index, "content_block", tool_block(reply, json_object_new()));
        event(pieces, "content_block_delta", index, "delta", text_block("input_json_delta", "partial_json", arguments));
        event(pieces, "content_block_stop", index, NULL, NULL);
    }
    json_object_set_string_member(delta, "stop_reason", reply->tool != NULL ? "tool_use" : "end_turn");
    json_object_set_null_member(delta, "stop_sequence");
    json_object_set_object_member(last, "delta", delta);
    json_object_set_object_member(last, "usage", usage(request, 20));
    standin_pieces_event(pieces, "message_delta", last);
    event(pieces, "message_stop", -1, NULL, NULL);
}

static JsonObject *
whole(const StandinRequest *request, const StandinReply *reply)
{
    JsonArray *content = json_array_new();

    if (reply->text != NULL)
        json_array_add_object_element(content, text_block("text", "text", reply->text));
    if (reply->tool != NULL)
        json_array_add_object_element(content, tool_block(reply, json_object_ref(reply->args)));
    return message(request, reply, content, reply->tool != NULL ? "tool_use" : "end_turn");
}

static JsonObject *
error_body(guint status, const char *text)
{
    static const struct {
        guint status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
                 {413, "request_too_large"},    {429, "rate_limit_error"}, {529, "overloaded_error"}};
    JsonObject *body = typed("error");
    JsonObject *error = typed(status >= 500 ? "api_error" : "invalid_request_error");

    for (gsize i = 0; i < G_N_ELEMENTS(types); i++)
        if (types[i].status == status)
            json_object_set_string_member(error, "type", types[i].type);
    json_object_set_string_member(error, "message", text);
    json_object_set_object_member(body, "error", error);
    return body;
}

const StandinDialect standin_anthropic = {"anthropic", decode, stream, whole, error_body};
