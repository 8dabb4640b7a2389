/* SPDX-License-Identifier: MIT */
#include "standin.h"

#include <string.h>

/* (transfer full) (nullable): a message's content, a string or a list of parts. */
static char *
content_text(JsonObject *message)
{
    JsonArray *parts = eb_json_get_array(message, "content");
    g_autoptr(GString) text = g_string_new(NULL);

    if (parts == NULL)
        return g_strdup(eb_json_get_string(message, "content"));
    for (guint i = 0; i < json_array_get_length(parts); i++) {
        const char *part = eb_json_get_string(eb_json_array_object(parts, i), "text");

        if (part != NULL)
            g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "", part);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
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
                     request->model == NULL ? "you must provide a model parameter"
                                            : "Invalid 'messages': expected an array with at least one message.");
        return FALSE;
    }
    for (guint i = 0; i < json_array_get_length(messages); i++) {
        JsonObject *message = eb_json_array_object(messages, i);
        const char *role = eb_json_get_string(message, "role");
        g_autofree char *text = content_text(message);

        if (role == NULL) {
            eb_set_error(error, EB_ERROR_INVALID, NULL, "Missing required parameter: 'messages[%u].role'.", i);
            return FALSE;
        }
        if (strcmp(role, "user") == 0)
            standin_request_add_user(request, text);
        else if (strcmp(role, "tool") == 0)
            standin_request_add_result(request, text);
    }
    for (guint i = 0; tools != NULL && i < json_array_get_length(tools); i++) {
        JsonObject *function = eb_json_get_object(eb_json_array_object(tools, i), "function");

        standin_request_add_tool(request, eb_json_get_string(function, "name"),
                                 eb_json_get_object(function, "parameters"));
    }
    return TRUE;
}

static JsonObject *
envelope(const StandinRequest *request, const StandinReply *reply, const char *object)
{
    JsonObject *chunk = json_object_new();
    g_autofree char *id = g_strdup_printf("chatcmpl-standin%u", reply->serial);

    json_object_set_string_member(chunk, "id", id);
    json_object_set_string_member(chunk, "object", object);
    json_object_set_int_member(chunk, "created", 1700000000);
    json_object_set_string_member(chunk, "model", request->model);
    return chunk;
}

static JsonObject *
usage(const StandinRequest *request)
{
    JsonObject *object = json_object_new();
    const gint64 prompt = (gint64)request->bytes / 4;

    json_object_set_int_member(object, "prompt_tokens", prompt);
    json_object_set_int_member(object, "completion_tokens", 20);
    json_object_set_int_member(object, "total_tokens", prompt + 20);
    return object;
}

/* @delta: (transfer full) */
static void
add_chunk(const StandinRequest *request, const StandinReply *reply, StandinPieces *pieces, JsonObject *delta,
          const char *finish)
{
    JsonObject *chunk = envelope(request, reply, "chat.completion.chunk");
    JsonArray *choices = json_array_new();
    JsonObject *choice = json_object_new();

    json_object_set_int_member(choice, "index", 0);
    json_object_set_object_member(choice, "delta", delta);
    if (finish != NULL)
        json_object_set_string_member(choice, "finish_reason", finish);
    else
        json_object_set_null_member(choice, "finish_reason");
    json_array_add_object_element(choices, choice);
    json_object_set_array_member(chunk, "choices", choices);
    standin_pieces_event(pieces, NULL, chunk);
}

static JsonObject *
one(const char *key, const char *value)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, key, value);
    return object;
}

/* The calls of a message or of a delta (which are numbered). */
static JsonArray *
tool_calls(const StandinReply *reply, gboolean numbered)
{
    JsonArray *calls = json_array_new();
    JsonObject *call = json_object_new();
    JsonObject *function = json_object_new();
    g_autofree char *id = g_strdup_printf("call_standin%u", reply->serial);
    g_autofree char *arguments = standin_json_text(reply->args);

    if (numbered)
        json_object_set_int_member(call, "index", 0);
    json_object_set_string_member(call, "id", id);
    json_object_set_string_member(call, "type", "function");
    json_object_set_string_member(function, "name", reply->tool);
    json_object_set_string_member(function, "arguments", arguments);
    json_object_set_object_member(call, "function", function);
    json_array_add_object_element(calls, call);
    return calls;
}

static void
stream(const StandinRequest *request, const StandinReply *reply, StandinPieces *pieces)
{
    g_auto(GStrv) words = standin_split_text(reply);
    JsonObject *role = one("role", "assistant");
    JsonObject *last;

    json_object_set_string_member(role, "content", "");
    add_chunk(request, reply, pieces, role, NULL);
    if (reply->think != NULL)
        add_chunk(request, reply, pieces, one("reasoning_content", reply->think), NULL);
    for (char **word = words; *word != NULL; word++) {
        add_chunk(request, reply, pieces, one("content", *word), NULL);
        standin_pieces_pause(pieces);
    }
    if (reply->tool != NULL) {
        JsonObject *delta = json_object_new();

        json_object_set_array_member(delta, "tool_calls", tool_calls(reply, TRUE));
        add_chunk(request, reply, pieces, delta, NULL);
    }
    add_chunk(request, reply, pieces, json_object_new(), reply->tool != NULL ? "tool_calls" : "stop");
    last = envelope(request, reply, "chat.completion.chunk");
    json_object_set_array_member(last, "choices", json_array_new());
    json_object_set_object_member(last, "usage", usage(request));
    standin_pieces_event(pieces, NULL, last);
    g_ptr_array_add(pieces, g_strdup("data: [DONE]\n\n"));
}

static JsonObject *
whole(const StandinRequest *request, const StandinReply *reply)
{
    JsonObject *answer = envelope(request, reply, "chat.completion");
    JsonArray *choices = json_array_new();
    JsonObject *choice = json_object_new();
    JsonObject *message = one("role", "assistant");

    json_object_set_string_member(message, "content", reply->text != NULL ? reply->text : "");
    if (reply->tool != NULL)
        json_object_set_array_member(message, "tool_calls", tool_calls(reply, FALSE));
    json_object_set_int_member(choice, "index", 0);
    json_object_set_object_member(choice, "message", message);
    json_object_set_string_member(choice, "finish_reason", reply->tool != NULL ? "tool_calls" : "stop");
    json_array_add_object_element(choices, choice);
    json_object_set_array_member(answer, "choices", choices);
    json_object_set_object_member(answer, "usage", usage(request));
    return answer;
}

static JsonObject *
error_body(guint status, const char *message)
{
    JsonObject *body = json_object_new();
    JsonObject *error = one("message", message);

    json_object_set_string_member(error, "type",
                                  status == 429   ? "rate_limit_error"
                                  : status >= 500 ? "server_error"
                                                  : "invalid_request_error");
    json_object_set_null_member(error, "param");
    if (status == 401)
        json_object_set_string_member(error, "code", "invalid_api_key");
    else
        json_object_set_null_member(error, "code");
    json_object_set_object_member(body, "error", error);
    return body;
}

const StandinDialect standin_openai_chat = {"openai", decode, stream, whole, error_body};
