/* SPDX-License-Identifier: MIT */
#include "eb-json.h"

#include <string.h>

#include "eb-error.h"
#include "eb-json-private.h"

const EbJsonLimits EB_JSON_LIMITS_DEFAULT = {.max_bytes = 32 * 1024 * 1024, .max_depth = 64};
const EbJsonLimits EB_JSON_LIMITS_SMALL = {.max_bytes = 1024 * 1024, .max_depth = 32};

JsonNode *
eb_json_parse(const char *text, gsize length, const EbJsonLimits *limits, GError **error)
{
    g_autoptr(JsonParser) parser = NULL;
    g_autofree char *repaired = NULL;
    g_autoptr(GError) local = NULL;
    JsonNode *root;
    guint n_repairs = 0;

    g_return_val_if_fail(text != NULL || length == 0, NULL);
    if (!eb_json_scan_repair(text != NULL ? text : "", length, limits, NULL, &n_repairs, error))
        return NULL;
    if (n_repairs > 0) {
        repaired = g_memdup2(text, length);
        if (!eb_json_scan_repair(text, length, limits, repaired, NULL, error))
            return NULL;
        text = repaired;
    }
    parser = json_parser_new();
    if (!json_parser_load_from_data(parser, text, (gssize)length, &local)) {
        eb_set_error(error, EB_ERROR_INVALID, "json.syntax", "%s", local->message);
        return NULL;
    }
    root = json_parser_steal_root(parser);
    if (root == NULL)
        eb_set_error(error, EB_ERROR_INVALID, "json.syntax", "JSON without a value");
    return root;
}

/* Length of "e+40" at @text, 0 when there is no exponent. */
static gsize
exponent_length(const char *text)
{
    gsize length = 1;

    if (text[0] != 'e' && text[0] != 'E')
        return 0;
    if (text[1] == '+' || text[1] == '-')
        length++;
    if (!g_ascii_isdigit(text[length]))
        return 0;
    while (g_ascii_isdigit(text[length]))
        length++;
    return length;
}

/* json-glib 1.6 writes 1e40 as "1e+40.0", which is no JSON: takes that ".0" away. Returns the new length. */
static gsize
mend_exponents(char *text, gsize length)
{
    gsize to = 0;
    gboolean in_string = FALSE;

    for (gsize from = 0; from < length;) {
        gsize n = in_string ? 0 : exponent_length(text + from);

        if (in_string && text[from] == '\\')
            n = 2;
        else if (text[from] == '"')
            in_string = !in_string;
        if (n > 2 || (n == 2 && !in_string)) {
            memmove(text + to, text + from, n);
            to += n;
            from += n;
            if (g_str_has_prefix(text + from, ".0"))
                from += 2;
            continue;
        }
        n = MAX(n, 1);
        memmove(text + to, text + from, n);
        to += n;
        from += n;
    }
    text[to] = '\0';
    return to;
}

char *
eb_json_write(JsonNode *node, gsize *length)
{
    g_autoptr(JsonGenerator) generator = json_generator_new();
    gsize written = 0;
    char *text;

    g_return_val_if_fail(node != NULL, NULL);
    json_generator_set_root(generator, node);
    text = json_generator_to_data(generator, &written);
    if (strstr(text, ".0") != NULL)
        written = mend_exponents(text, written);
    if (length != NULL)
        *length = written;
    return text;
}

JsonNode *
eb_json_get_node(JsonObject *object, const char *member)
{
    g_return_val_if_fail(member != NULL, NULL);
    return object != NULL ? json_object_get_member(object, member) : NULL;
}

/* The node of @member when it is a value of fundamental @type, else NULL. */
static JsonNode *
value_node(JsonObject *object, const char *member, GType type)
{
    JsonNode *node = eb_json_get_node(object, member);

    if (node == NULL || !JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != type)
        return NULL;
    return node;
}

const char *
eb_json_get_string(JsonObject *object, const char *member)
{
    JsonNode *node = value_node(object, member, G_TYPE_STRING);

    return node != NULL ? json_node_get_string(node) : NULL;
}

gint64
eb_json_get_int(JsonObject *object, const char *member, gint64 fallback)
{
    JsonNode *node = value_node(object, member, G_TYPE_INT64);

    return node != NULL ? json_node_get_int(node) : fallback;
}

double
eb_json_get_double(JsonObject *object, const char *member, double fallback)
{
    JsonNode *node = value_node(object, member, G_TYPE_DOUBLE);

    if (node != NULL)
        return json_node_get_double(node);
    node = value_node(object, member, G_TYPE_INT64);
    return node != NULL ? (double)json_node_get_int(node) : fallback;
}

gboolean
eb_json_get_bool(JsonObject *object, const char *member, gboolean fallback)
{
    JsonNode *node = value_node(object, member, G_TYPE_BOOLEAN);

    return node != NULL ? json_node_get_boolean(node) : fallback;
}

JsonObject *
eb_json_get_object(JsonObject *object, const char *member)
{
    return eb_json_node_object(eb_json_get_node(object, member));
}

JsonArray *
eb_json_get_array(JsonObject *object, const char *member)
{
    JsonNode *node = eb_json_get_node(object, member);

    return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

JsonObject *
eb_json_node_object(JsonNode *node)
{
    return node != NULL && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

JsonObject *
eb_json_array_object(JsonArray *array, guint index)
{
    if (array == NULL || index >= json_array_get_length(array))
        return NULL;
    return eb_json_node_object(json_array_get_element(array, index));
}

const char *
eb_json_array_string(JsonArray *array, guint index)
{
    JsonNode *node;

    if (array == NULL || index >= json_array_get_length(array))
        return NULL;
    node = json_array_get_element(array, index);
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING)
        return NULL;
    return json_node_get_string(node);
}
