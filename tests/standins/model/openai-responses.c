/* SPDX-License-Identifier: MIT */
#include "standin.h"

#include <string.h>

static JsonObject *error_body(guint status, const char *message);

static void
add_tools(StandinRequest *request, JsonArray *tools)
{
    for (guint i = 0; tools != NULL && i < json_array_get_length(tools); i++) {
        JsonObject *tool = eb_json_array_object(tools, i);

        if (g_strcmp0(eb_json_get_string(tool, "type"), "function") == 0)
            standin_request_add_tool(request, eb_json_get_string(tool, "name"), eb_json_get_object(tool, "parameters"));
    }
}

static char *
parts_text(JsonObject *item, const char *member)
{
    JsonArray *parts = eb_json_get_array(item, member);
    g_autoptr(GString) text = g_string_new(NULL);

    if (parts == NULL)
        return g_strdup(eb_json_get_string(item, member));
    for (guint i = 0; i < json_array_get_length(parts); i++) {
        const char *part = eb_json_get_string(eb_json_array_object(parts, i), "text");

        if (part != NULL)
            g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "", part);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
add_item(StandinRequest *request, JsonObject *item)
{
    const char *type = eb_json_get_string(item, "type");
    g_autofree char *text = NULL;

    if (type == NULL || strcmp(type, "message") == 0) {
        text = parts_text(item, "content");
        if (g_strcmp0(eb_json_get_string(item, "role"), "user") == 0)
            standin_request_add_user(request, text);
    } else if (g_str_has_suffix(type, "_call_output")) {
        text = parts_text(item, "output");
        standin_request_add_result(request, text);
    } else if (strcmp(type, "additional_tools") == 0) {
        add_tools(request, eb_json_get_array(item, "tools"));
    }
}

static gboolean
decode(JsonObject *body, StandinRequest *request, GError **error)
{
    JsonArray *input = eb_json_get_array(body, "input");

    request->model = g_strdup(eb_json_get_string(body, "model"));
    request->stream = eb_json_get_bool(body, "stream", FALSE);
    if (request->model == NULL || (input == NULL && eb_json_get_string(body, "input") == NULL)) {
        eb_set_error(error, EB_ERROR_INVALID, NULL, "Missing required parameter: '%s'.",
                     request->model == NULL ? "model" : "input");
        return FALSE;
    }
    if (input == NULL)
        standin_request_add_user(request, eb_json_get_string(body, "input"));
    for (guint i = 0; input != NULL && i < json_array_get_length(input); i++)
        add_item(request, eb_json_array_object(input, i));
    add_tools(request, eb_json_get_array(body, "tools"));
    return TRUE;
}

static JsonObject *
text_part(const char *text)
{
    JsonObject *part = json_object_new();

    json_object_set_string_member(part, "type", "output_text");
    json_object_set_string_member(part, "text", text);
    json_object_set_array_member(part, "annotations", json_array_new());
    return part;
}

static JsonObject *
message_item(const StandinReply *reply, const char *status, const char *text)
{
    JsonObject *item = json_object_new();
    JsonArray *content = json_array_new();
    g_autofree char *id = g_strdup_printf("msg_standin%u", reply->serial);

    json_object_set_string_member(item, "type", "message");
    json_object_set_string_member(item, "id", id);
    json_object_set_string_member(item, "status", status);
    json_object_set_string_member(item, "role", "assistant");
    if (text != NULL)
        json_array_add_object_element(content, text_part(text));
    json_object_set_array_member(item, "content", content);
    return item;
}

static JsonObject *
call_item(const StandinReply *reply, const char *status, const char *arguments)
{
    JsonObject *item = json_object_new();
    g_autofree char *id = g_strdup_printf("fc_standin%u", reply->serial);
    g_autofree char *call_id = g_strdup_printf("call_standin%u", reply->serial);

    json_object_set_string_member(item, "type", "function_call");
    json_object_set_string_member(item, "id", id);
    json_object_set_string_member(item, "call_id", call_id);
    json_object_set_string_member(item, "name", reply->tool);
    json_object_set_string_member(item, "arguments", arguments);
    json_object_set_string_member(item, "status", status);
    return item;
}

static JsonObject *
reasoning_item(const StandinReply *reply, gboolean done)
{
    JsonObject *item = json_object_new();
    JsonArray *summary = json_array_new();
    g_autofree char *id = g_strdup_printf("rs_standin%u", reply->serial);

    if (done) {
        JsonObject *part = json_object_new();

        json_object_set_string_member(part, "type", "summary_text");
        json_object_set_string_member(part, "text", reply->think);
        json_array_add_object_element(summary, part);
    }
    json_object_set_string_member(item, "type", "reasoning");
    json_object_set_string_member(item, "id", id);
    json_object_set_array_member(item, "summary", summary);
    return item;
}

static JsonArray *
output(const StandinReply *reply)
{
    JsonArray *items = json_array_new();

    if (reply->think != NULL)
        json_array_add_object_element(items, reasoning_item(reply, TRUE));
    if (reply->text != NULL)
        json_array_add_object_element(items, message_item(reply, "completed", reply->text));
    if (reply->tool != NULL) {
        g_autofree char *arguments = standin_json_text(reply->args);

        json_array_add_object_element(items, call_item(reply, "completed", arguments));
    }
    return items;
}

static JsonObject *
response(const StandinRequest *request, const StandinReply *reply, gboolean done)
{
    JsonObject *object = json_object_new();
    g_autofree char *id = g_strdup_printf("resp_standin%u", reply->serial);

    json_object_set_string_member(object, "id", id);
    json_object_set_string_member(object, "object", "response");
    json_object_set_int_member(object, "created_at", 1700000000);
    json_object_set_string_member(object, "status", done ? "completed" : "in_progress");
    json_object_set_string_member(object, "model", request->model);
    json_object_set_array_member(object, "output", done ? output(reply) : json_array_new());
    if (done) {
        JsonObject *usage = json_object_new();
        const gint64 input = (gint64)request->bytes / 4;
        JsonObject *input_details = json_object_new();
        JsonObject *output_details = json_object_new();

        json_object_set_int_member(input_details, "cached_tokens", 0);
        json_object_set_int_member(output_details, "reasoning_tokens", 0);
        json_object_set_int_member(usage, "input_tokens", input);
        json_object_set_object_member(usage, "input_tokens_details", input_details);
        json_object_set_int_member(usage, "output_tokens", 20);
        json_object_set_object_member(usage, "output_tokens_details", output_details);
        json_object_set_int_member(usage, "total_tokens", input + 20);
        json_object_set_object_member(object, "usage", usage);
    }
    return object;
}

/* The running numbers of one stream. */
typedef struct {
    StandinPieces *pieces;
    gint64 sequence;
    gint64 index;
} Events;

/* @data: (transfer full) */
static void
event(Events *events, const char *type, JsonObject *data)
{
    json_object_set_string_member(data, "type", type);
    json_object_set_int_member(data, "sequence_number", events->sequence++);
    standin_pieces_event(events->pieces, type, data);
}

static JsonObject *
with_index(Events *events)
{
    JsonObject *data = json_object_new();

    json_object_set_int_member(data, "output_index", events->index);
    return data;
}

static void
event_item(Events *events, const char *type, JsonObject *item)
{
    JsonObject *data = with_index(events);

    json_object_set_object_member(data, "item", item);
    event(events, type, data);
}

static void
event_text(Events *events, const char *type, const char *item_id, const char *part, const char *key, const char *text)
{
    JsonObject *data = with_index(events);

    json_object_set_string_member(data, "item_id", item_id);
    if (part != NULL)
        json_object_set_int_member(data, part, 0);
    json_object_set_string_member(data, key, text);
    event(events, type, data);
}

static void
stream_text(Events *events, const StandinReply *reply)
{
    g_auto(GStrv) words = standin_split_text(reply);
    g_autofree char *id = g_strdup_printf("msg_standin%u", reply->serial);
    JsonObject *part = with_index(events);

    event_item(events, "response.output_item.added", message_item(reply, "in_progress", NULL));
    json_object_set_string_member(part, "item_id", id);
    json_object_set_int_member(part, "content_index", 0);
    json_object_set_object_member(part, "part", text_part(""));
    event(events, "response.content_part.added", part);
    for (char **word = words; *word != NULL; word++) {
        event_text(events, "response.output_text.delta", id, "content_index", "delta", *word);
        standin_pieces_pause(events->pieces);
    }
    event_text(events, "response.output_text.done", id, "content_index", "text", reply->text);
    event_item(events, "response.output_item.done", message_item(reply, "completed", reply->text));
    events->index++;
}

static void
stream_call(Events *events, const StandinReply *reply)
{
    g_autofree char *arguments = standin_json_text(reply->args);
    g_autofree char *id = g_strdup_printf("fc_standin%u", reply->serial);

    event_item(events, "response.output_item.added", call_item(reply, "in_progress", ""));
    event_text(events, "response.function_call_arguments.delta", id, NULL, "delta", arguments);
    event_text(events, "response.function_call_arguments.done", id, NULL, "arguments", arguments);
    event_item(events, "response.output_item.done", call_item(reply, "completed", arguments));
    events->index++;
}

static void
stream(const StandinRequest *request, const StandinReply *reply, StandinPieces *pieces)
{
    Events events = {pieces, 0, 0};
    JsonObject *data = json_object_new();

    json_object_set_object_member(data, "response", response(request, reply, FALSE));
    event(&events, "response.created", data);
    if (reply->think != NULL) {
        g_autofree char *id = g_strdup_printf("rs_standin%u", reply->serial);

        event_item(&events, "response.output_item.added", reasoning_item(reply, FALSE));
        event_text(&events, "response.reasoning_summary_text.delta", id, "summary_index", "delta", reply->think);
        event_item(&events, "response.output_item.done", reasoning_item(reply, TRUE));
        events.index++;
    }
    if (reply->text != NULL)
        stream_text(&events, reply);
    if (reply->tool != NULL)
        stream_call(&events, reply);
    data = json_object_new();
    json_object_set_object_member(data, "response", response(request, reply, TRUE));
    event(&events, "response.completed", data);
}

static JsonObject *
whole(const StandinRequest *request, const StandinReply *reply)
{
    return response(request, reply, TRUE);
}

static JsonObject *
error_body(guint status, const char *message)
{
    return standin_openai_chat.error_body(status, message);
}

const StandinDialect standin_openai_responses = {"openai-responses", decode, stream, whole, error_body};
