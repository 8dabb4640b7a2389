/* SPDX-License-Identifier: MIT */

#include "ds-json.h"

#include <string.h>

static void
set_pairs(JsonObject *object, const char *first, va_list *list)
{
    for (const char *key = first; key != NULL; key = va_arg(*list, const char *)) {
        const char *name = key + 2;

        switch (key[0]) {
        case 's': {
            const char *text = va_arg(*list, const char *);

            if (text != NULL)
                json_object_set_string_member(object, name, text);
            else
                json_object_set_null_member(object, name);
            break;
        }
        case 'i':
            json_object_set_int_member(object, name, va_arg(*list, int));
            break;
        case 'l':
            json_object_set_int_member(object, name, va_arg(*list, gint64));
            break;
        case 'd':
            json_object_set_double_member(object, name, va_arg(*list, double));
            break;
        case 'b':
            json_object_set_boolean_member(object, name, va_arg(*list, gboolean));
            break;
        case 'o':
            json_object_set_object_member(object, name, va_arg(*list, JsonObject *));
            break;
        case 'a':
            json_object_set_array_member(object, name, va_arg(*list, JsonArray *));
            break;
        case 'O':
            json_object_set_object_member(object, name, json_object_ref(va_arg(*list, JsonObject *)));
            break;
        case 'A':
            json_object_set_array_member(object, name, json_array_ref(va_arg(*list, JsonArray *)));
            break;
        case 'n':
            json_object_set_null_member(object, name);
            break;
        default:
            g_error("no such type: %s", key);
        }
    }
}

JsonObject *
ds_object(const char *first, ...)
{
    JsonObject *object = json_object_new();
    va_list list;

    va_start(list, first);
    set_pairs(object, first, &list);
    va_end(list);
    return object;
}

void
ds_object_set(JsonObject *object, const char *first, ...)
{
    va_list list;

    va_start(list, first);
    set_pairs(object, first, &list);
    va_end(list);
}

JsonArray *
ds_strings(const char *first, ...)
{
    JsonArray *array = json_array_new();
    va_list list;

    va_start(list, first);
    for (const char *text = first; text != NULL; text = va_arg(list, const char *))
        json_array_add_string_element(array, text);
    va_end(list);
    return array;
}

JsonNode *
ds_take(JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_node_take_object(node, object);
    return node;
}

JsonNode *
ds_take_array(JsonArray *array)
{
    JsonNode *node = json_node_new(JSON_NODE_ARRAY);

    json_node_take_array(node, array);
    return node;
}

char *
ds_text(JsonObject *object)
{
    g_autoptr(JsonNode) node = ds_take(json_object_ref(object));

    return eb_json_write(node, NULL);
}

JsonObject *
ds_copy(JsonObject *object)
{
    g_autofree char *text = ds_text(object);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, &error);

    g_assert_no_error(error);
    return json_object_ref(json_node_get_object(node));
}

char *
ds_id_node(JsonNode *node, gboolean *number)
{
    if (number != NULL)
        *number = FALSE;
    if (node == NULL || !JSON_NODE_HOLDS_VALUE(node))
        return NULL;
    if (json_node_get_value_type(node) == G_TYPE_STRING)
        return json_node_dup_string(node);
    if (json_node_get_value_type(node) != G_TYPE_INT64)
        return NULL;
    if (number != NULL)
        *number = TRUE;
    return g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(node));
}

char *
ds_id(JsonObject *object, const char *member)
{
    return ds_id_node(eb_json_get_node(object, member), NULL);
}

gboolean
ds_has(JsonArray *array, const char *text)
{
    for (guint i = 0; array != NULL && i < json_array_get_length(array); i++) {
        if (g_strcmp0(eb_json_array_string(array, i), text) == 0)
            return TRUE;
    }
    return FALSE;
}

JsonArray *
ds_without(JsonArray *array, const char *text)
{
    JsonArray *rest = json_array_new();

    for (guint i = 0; array != NULL && i < json_array_get_length(array); i++) {
        if (g_strcmp0(eb_json_array_string(array, i), text) != 0)
            json_array_add_element(rest, json_array_dup_element(array, i));
    }
    return rest;
}

gboolean
ds_is_snowflake(const char *text)
{
    guint64 value;

    return text != NULL && text[0] != '0' && g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT64, &value, NULL);
}
