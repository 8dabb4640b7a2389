/* SPDX-License-Identifier: MIT */
#include "standin.h"

#include <string.h>

static void
add_content(StandinRequest *request, JsonObject *content)
{
    JsonArray *parts = eb_json_get_array(content, "parts");
    g_autoptr(GString) text = g_string_new(NULL);
    gboolean results = FALSE;

    if (g_strcmp0(eb_json_get_string(content, "role"), "model") == 0)
        return;
    for (guint i = 0; parts != NULL && i < json_array_get_length(parts); i++) {
        JsonObject *part = eb_json_array_object(parts, i);
        JsonObject *result = eb_json_get_object(part, "functionResponse");

        if (result != NULL) {
            JsonObject *response = eb_json_get_object(result, "response");

            standin_request_add_result(request, eb_json_get_string(response, "output"));
            results = TRUE;
        } else if (eb_json_get_string(part, "text") != NULL) {
            g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "", eb_json_get_string(part, "text"));
        }
    }
    if (!results)
        standin_request_add_user(request, text->str);
}

static void
add_tools(StandinRequest *request, JsonArray *tools)
{
    for (guint i = 0; tools != NULL && i < json_array_get_length(tools); i++) {
        JsonArray *functions = eb_json_get_array(eb_json_array_object(tools, i), "functionDeclarations");

        for (guint k = 0; functions != NULL && k < json_array_get_length(functions); k++) {
            JsonObject *function = eb_json_array_object(functions, k);
            JsonObject *schema = eb_json_get_object(function, "parametersJsonSchema");

            standin_request_add_tool(request, eb_json_get_string(function, "name"),
                                     schema != NULL ? schema : eb_json_get_object(function, "parameters"));
        }
    }
}

static gboolean
decode(JsonObject *body, StandinRequest *request, GError **error)
{
    JsonArray *contents = eb_json_get_array(body, "contents");

    if (contents == NULL || json_array_get_length(contents) == 0) {
        eb_set_error(error, EB_ERROR_INVALID, NULL, "* GenerateContentRequest.contents: contents is not specified");
        return FALSE;
    }
    for (guint i = 0; i < json_array_get_length(contents); i++)
        add_content(request, eb_json_array_object(contents, i));
    add_tools(request, eb_json_get_array(body, "tools"));
    return TRUE;
}

static JsonObject *
text_part(const char *text, gboolean thought)
{
    JsonObject *part = json_object_new();

    json_object_set_string_member(part, "text", text);
    if (thought)
        json_object_set_boolean_member(part, "thought", TRUE);
    return part;
}

static JsonObject *
call_part(const StandinReply *reply)
{
    JsonObject *part = json_object_new();
    JsonObject *call = json_object_new();

    json_object_set_string_member(call, "name", reply->tool);
    json_object_set_object_member(call, "args", json_object_ref(reply->args));
    json_object_set_object_member(part, "functionCall", call);
    return part;
}

/* @parts: (transfer full) */
static JsonObject *
response(const StandinRequest *request, JsonArray *parts, gboolean last)
{
    JsonObject *answer = json_object_new();
    JsonArray *candidates = json_array_new();
    JsonObject *candidate = json_object_new();
    JsonObject *content = json_object_new();
    JsonObject *usage = json_object_new();
    const gint64 prompt = (gint64)request->bytes / 4;

    json_object_set_array_member(content, "parts", parts);
    json_object_set_string_member(content, "role", "model");
    json_object_set_object_member(candidate, "content", content);
    json_object_set_int_member(candidate, "index", 0);
    if (last)
        json_object_set_string_member(candidate, "finishReason", "STOP");
    json_array_add_object_element(candidates, candidate);
    json_object_set_array_member(answer, "candidates", candidates);
    json_object_set_int_member(usage, "promptTokenCount", prompt);
    json_object_set_int_member(usage, "candidatesTokenCount", 20);
    json_object_set_int_member(usage, "totalTokenCount", prompt + 20);
    json_object_set_object_member(answer, "usageMetadata", usage);
    json_object_set_string_member(answer, "modelVersion", request->model);
    return answer;
}

static JsonArray *
only(JsonObject *part)
{
    JsonArray *parts = json_array_new();

    json_array_add_object_element(parts, part);
    return parts;
}

static void
stream(const StandinRequest *request, const StandinReply *reply, StandinPieces *pieces)
{
    g_auto(GStrv) words = standin_split_text(reply);

    if (reply->think != NULL)
        standin_pieces_event(pieces, NULL, response(request, only(text_part(reply->think, TRUE)), FALSE));
    for (char **word = words; *word != NULL; word++) {
        standin_pieces_event(pieces, NULL, response(request, only(text_part(*word, FALSE)), FALSE));
        standin_pieces_pause(pieces);
    }
    standin_pieces_event(pieces, NULL,
                         response(request, only(reply->tool != NULL ? call_part(reply) : text_part("", FALSE)), TRUE));
}

static JsonObject *
whole(const StandinRequest *request, const StandinReply *reply)
{
    JsonArray *parts = json_array_new();

    if (reply->text != NULL)
        json_array_add_object_element(parts, text_part(reply->text, FALSE));
    if (reply->tool != NULL)
        json_array_add_object_element(parts, call_part(reply));
    return response(request, parts, TRUE);
}

static JsonObject *
error_body(guint status, const char *message)
{
    static const struct {
        guint status;
        const char *name;
    } names[] = {{400, "INVALID_ARGUMENT"}, {401, "UNAUTHENTICATED"},    {403, "PERMISSION_DENIED"},
                 {404, "NOT_FOUND"},        {429, "RESOURCE_EXHAUSTED"}, {503, "UNAVAILABLE"}};
    JsonObject *body = json_object_new();
    JsonObject *error = json_object_new();

    json_object_set_int_member(error, "code", status);
    json_object_set_string_member(error, "message", message);
    json_object_set_string_member(error, "status", "INTERNAL");
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (names[i].status == status)
            json_object_set_string_member(error, "status", names[i].name);
    json_object_set_object_member(body, "error", error);
    return body;
}

const StandinDialect standin_gemini = {"gemini", decode, stream, whole, error_body};
