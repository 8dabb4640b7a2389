/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-types.h"

#include <stdarg.h>
#include <string.h>

static JsonNode *
take(JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_node_take_object(node, object);
    return node;
}

JsonNode *
eb_acp_encode_initialize(void)
{
    JsonObject *params = json_object_new();
    JsonObject *capabilities = json_object_new();
    JsonObject *fs = json_object_new();
    JsonObject *session = json_object_new();
    JsonObject *client = json_object_new();

    /* The agent has files and terminals of its own in the guest; what is not offered cannot be abused. */
    json_object_set_boolean_member(fs, "readTextFile", FALSE);
    json_object_set_boolean_member(fs, "writeTextFile", FALSE);
    json_object_set_object_member(capabilities, "fs", fs);
    json_object_set_boolean_member(capabilities, "terminal", FALSE);
    json_object_set_object_member(session, "notices", json_object_new());
    json_object_set_object_member(capabilities, "session", session);
    json_object_set_string_member(client, "name", "errand-box");
    json_object_set_string_member(client, "title", "errand-box");
    json_object_set_string_member(client, "version", EB_VERSION);
    json_object_set_int_member(params, "protocolVersion", EB_ACP_PROTOCOL_VERSION);
    json_object_set_object_member(params, "clientCapabilities", capabilities);
    json_object_set_object_member(params, "clientInfo", client);
    return take(params);
}

JsonNode *
eb_acp_encode_open(const char *session_id, const char *cwd)
{
    JsonObject *params = json_object_new();

    if (session_id != NULL)
        json_object_set_string_member(params, "sessionId", session_id);
    json_object_set_string_member(params, "cwd", cwd);
    json_object_set_array_member(params, "mcpServers", json_array_new());
    return take(params);
}

JsonNode *
eb_acp_encode_prompt(const char *session_id, JsonArray *blocks, const char *delivery)
{
    JsonObject *params = json_object_new();

    json_object_set_string_member(params, "sessionId", session_id);
    json_object_set_array_member(params, "prompt", json_array_ref(blocks));
    if (delivery != NULL)
        json_object_set_string_member(params, "delivery", delivery);
    return take(params);
}

JsonNode *
eb_acp_encode_session(const char *session_id, ...)
{
    JsonObject *params = json_object_new();
    const char *key;
    va_list list;

    json_object_set_string_member(params, "sessionId", session_id);
    va_start(list, session_id);
    while ((key = va_arg(list, const char *)) != NULL)
        json_object_set_string_member(params, key, va_arg(list, const char *));
    va_end(list);
    return take(params);
}

JsonNode *
eb_acp_encode_outcome(const char *option_id)
{
    JsonObject *result = json_object_new();
    JsonObject *outcome = json_object_new();

    json_object_set_string_member(outcome, "outcome", option_id != NULL ? "selected" : "cancelled");
    if (option_id != NULL)
        json_object_set_string_member(outcome, "optionId", option_id);
    json_object_set_object_member(result, "outcome", outcome);
    return take(result);
}

/* --- bounded copies --- */

char *
eb_acp_cut(const char *text, gsize max)
{
    const gsize length = text != NULL ? strlen(text) : 0;
    const gsize keep = max > strlen(EB_ACP_CUT_MARK) ? max - strlen(EB_ACP_CUT_MARK) : 0;
    const char *end;

    if (text == NULL || length <= max)
        return g_strdup(text);
    /* Back to the start of the character the cut would go through. */
    end = text + keep;
    while (end > text && ((guchar)*end & 0xc0) == 0x80)
        end--;
    return g_strdup_printf("%.*s" EB_ACP_CUT_MARK, (int)(end - text), text);
}

#define NODE_COST 64 /* a node with its place in a table, roughly */

gsize
eb_acp_json_weight(JsonNode *node, gsize limit)
{
    gsize weight = NODE_COST;

    if (node == NULL)
        return 0;
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObjectIter iter;
        const char *name;
        JsonNode *member;

        json_object_iter_init(&iter, json_node_get_object(node));
        while (weight <= limit && json_object_iter_next(&iter, &name, &member))
            weight += strlen(name) + eb_acp_json_weight(member, limit - MIN(weight, limit));
    } else if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);

        for (guint i = 0; weight <= limit && i < json_array_get_length(array); i++)
            weight += eb_acp_json_weight(json_array_get_element(array, i), limit - MIN(weight, limit));
    } else if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING) {
        weight += strlen(json_node_get_string(node));
    }
    return weight;
}

static JsonNode *
copy_within(JsonNode *node, gsize *left)
{
    JsonNode *copy;

    *left -= MIN(*left, NODE_COST);
    if (JSON_NODE_HOLDS_OBJECT(node)) {
        JsonObject *object = json_object_new();
        JsonObjectIter iter;
        const char *name;
        JsonNode *member;

        json_object_iter_init_ordered(&iter, json_node_get_object(node));
        while (json_object_iter_next_ordered(&iter, &name, &member) && *left > strlen(name)) {
            *left -= strlen(name);
            json_object_set_member(object, name, copy_within(member, left));
        }
        return take(object);
    }
    if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *from = json_node_get_array(node);
        JsonArray *array = json_array_new();

        for (guint i = 0; *left > 0 && i < json_array_get_length(from); i++)
            json_array_add_element(array, copy_within(json_array_get_element(from, i), left));
        copy = json_node_new(JSON_NODE_ARRAY);
        json_node_take_array(copy, array);
        return copy;
    }
    if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING) {
        g_autofree char *text = eb_acp_cut(json_node_get_string(node), *left);

        *left -= MIN(*left, strlen(text));
        copy = json_node_new(JSON_NODE_VALUE);
        json_node_set_string(copy, text);
        return copy;
    }
    return json_node_copy(node);
}

JsonNode *
eb_acp_json_bounded_copy(JsonNode *node, gsize max)
{
    gsize left = max;

    if (eb_acp_json_weight(node, max) <= max)
        return json_node_copy(node); /* shares what it holds */
    return copy_within(node, &left);
}
