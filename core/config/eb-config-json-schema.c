/* SPDX-License-Identifier: MIT */
/* The key table as a JSON schema (draft 2020-12), for editors and for tests. */
#include "core/config/eb-config-schema.h"
#include "core/config/eb-config.h"

#include <string.h>

static JsonObject *
typed(const char *type)
{
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "type", type);
    return object;
}

static void
add_range(JsonObject *object, const EbConfigKey *key)
{
    json_object_set_int_member(object, "minimum", (gint64)key->min);
    json_object_set_int_member(object, "maximum", (gint64)key->max);
}

static JsonObject *
text_schema(const EbConfigKey *key)
{
    JsonObject *object = typed("string");

    if (key->choices == NULL)
        return object;
    g_auto(GStrv) choices = g_strsplit(key->choices, "|", -1);
    JsonArray *list = json_array_new();
    for (char **choice = choices; *choice != NULL; choice++)
        json_array_add_string_element(list, *choice);
    json_object_set_array_member(object, "enum", list);
    return object;
}

static JsonObject *
key_schema(const EbConfigKey *key)
{
    JsonObject *object = NULL;
    JsonObject *items;
    JsonArray *either;

    switch (key->kind) {
    case EB_KIND_TEXT:
        object = text_schema(key);
        break;
    case EB_KIND_INT:
        object = typed("integer");
        add_range(object, key);
        break;
    case EB_KIND_BOOL:
        object = typed("boolean");
        break;
    case EB_KIND_TEXTS:
    case EB_KIND_INTS:
        object = typed("array");
        items = typed(key->kind == EB_KIND_TEXTS ? "string" : "integer");
        if (key->kind == EB_KIND_INTS)
            add_range(items, key);
        json_object_set_object_member(object, "items", items);
        json_object_set_boolean_member(object, "uniqueItems", TRUE);
        break;
    case EB_KIND_SIZE:
        object = json_object_new();
        either = json_array_new();
        json_array_add_string_element(either, "string");
        json_array_add_string_element(either, "integer");
        json_object_set_array_member(object, "type", either);
        json_object_set_string_member(object, "pattern", "^[0-9]+ ?([kMGT]i?)?B?$");
        break;
    case EB_KIND_DURATION:
        object = typed("string");
        json_object_set_string_member(object, "pattern", "^[0-9]+ ?(ms|s|min|h|d)$");
        break;
    case EB_KIND_SECRET:
        object = typed("string");
        json_object_set_string_member(object, "pattern", "^cred:[a-z][a-z0-9-]{0,62}$");
        break;
    }
    json_object_set_string_member(object, "description", key->doc);
    if (key->fallback != NULL)
        json_object_set_string_member(object, "$comment", key->fallback);
    return object;
}

static JsonObject *
table_schema(const char *table)
{
    JsonObject *object = typed("object");
    JsonObject *properties = json_object_new();
    JsonArray *required = json_array_new();

    for (const EbConfigKey *key = eb_config_keys(); key->table != NULL; key++) {
        if (strcmp(key->table, table) != 0)
            continue;
        json_object_set_object_member(properties, key->key, key_schema(key));
        if (key->required)
            json_array_add_string_element(required, key->key);
    }
    json_object_set_object_member(object, "properties", properties);
    json_object_set_array_member(object, "required", required);
    json_object_set_boolean_member(object, "additionalProperties", FALSE);
    return object;
}

/* A table of tables, whose names are free. @each: (transfer full) */
static JsonObject *
family_schema(JsonObject *each)
{
    JsonObject *object = typed("object");
    JsonObject *names = json_object_new();

    json_object_set_string_member(names, "pattern", "^[a-z][a-z0-9-]{0,62}$");
    json_object_set_object_member(object, "propertyNames", names);
    json_object_set_object_member(object, "additionalProperties", each);
    return object;
}

char *
eb_config_schema(void)
{
    JsonObject *root = typed("object");
    JsonObject *properties = json_object_new();

    json_object_set_string_member(root, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_object_set_string_member(root, "title", "errand-box.toml");
    for (const EbConfigKey *key = eb_config_keys(); key->table != NULL; key++)
        if (!g_str_has_suffix(key->table, ".*") && !json_object_has_member(properties, key->table))
            json_object_set_object_member(properties, key->table, table_schema(key->table));
    json_object_set_object_member(properties, "provider", family_schema(table_schema("provider.*")));
    json_object_set_object_member(properties, "plugin", family_schema(typed("object")));
    json_object_set_object_member(properties, "agent", family_schema(typed("object")));
    json_object_set_object_member(root, "properties", properties);
    json_object_set_boolean_member(root, "additionalProperties", FALSE);

    g_autoptr(JsonNode) node = json_node_alloc();
    json_node_init_object(node, root);
    json_object_unref(root);
    g_autoptr(JsonGenerator) generator = json_generator_new();
    json_generator_set_pretty(generator, TRUE);
    json_generator_set_root(generator, node);
    return json_generator_to_data(generator, NULL);
}
