/* SPDX-License-Identifier: MIT */

#include "ds-validate.h"

#include <string.h>

#define MAX_ROWS 5
#define MAX_BUTTONS 5
#define MAX_EMBEDS 10
#define MAX_EMBED_TEXT 6000
#define MAX_COMMANDS 100
#define MAX_OPTIONS 25
#define MAX_COMMAND_TEXT 8000

enum { ROW = 1, BUTTON = 2, SELECT = 3 };

/* --- components --- */

static void
check_custom_id(JsonObject *part, const char *path, GHashTable *ids, JsonObject *tree)
{
    g_autofree char *at = g_strdup_printf("%s.custom_id", path);
    const char *id = eb_json_get_string(part, "custom_id");

    ds_validate_length(part, "custom_id", at, 1, 100, TRUE, tree);
    if (id != NULL && !g_hash_table_add(ids, g_strdup(id)))
        ds_error_at(tree, at, "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated");
}

static void
check_button(JsonObject *button, const char *path, GHashTable *ids, JsonObject *tree)
{
    const gint64 style = eb_json_get_int(button, "style", 0);
    g_autofree char *label = g_strdup_printf("%s.label", path);
    g_autofree char *style_path = g_strdup_printf("%s.style", path);
    g_autofree char *url = g_strdup_printf("%s.url", path);

    if (style < 1 || style > 5)
        ds_error_at(tree, style_path, "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.");
    ds_validate_length(button, "label", label, 0, 80, FALSE, tree);
    if ((eb_json_get_string(button, "label") == NULL || eb_json_get_string(button, "label")[0] == '\0') &&
        eb_json_get_object(button, "emoji") == NULL)
        ds_error_at(tree, path, "BUTTON_COMPONENT_INVALID_EMPTY", "A button needs a label or an emoji.");
    if (style == 5)
        ds_validate_length(button, "url", url, 1, 512, TRUE, tree);
    else
        check_custom_id(button, path, ids, tree);
    if (style != 5 && json_object_has_member(button, "url"))
        ds_error_at(tree, path, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                    "A custom id and url cannot both be set");
}

static void
check_select(JsonObject *menu, const char *path, GHashTable *ids, JsonObject *tree)
{
    JsonArray *options = eb_json_get_array(menu, "options");
    const guint n = options != NULL ? json_array_get_length(options) : 0;
    g_autofree char *list = g_strdup_printf("%s.options", path);

    check_custom_id(menu, path, ids, tree);
    if (n < 1 || n > MAX_OPTIONS)
        ds_error_at(tree, list, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length.");
    for (guint i = 0; i < n; i++) {
        g_autofree char *label = g_strdup_printf("%s.%u.label", list, i);
        g_autofree char *value = g_strdup_printf("%s.%u.value", list, i);
        g_autofree char *about = g_strdup_printf("%s.%u.description", list, i);

        ds_validate_length(eb_json_array_object(options, i), "label", label, 1, 100, TRUE, tree);
        ds_validate_length(eb_json_array_object(options, i), "value", value, 1, 100, TRUE, tree);
        ds_validate_length(eb_json_array_object(options, i), "description", about, 0, 100, FALSE, tree);
    }
}

static void
check_row(JsonObject *row, const char *path, GHashTable *ids, JsonObject *tree)
{
    JsonArray *parts = eb_json_get_array(row, "components");
    const guint n = parts != NULL ? json_array_get_length(parts) : 0;
    g_autofree char *list = g_strdup_printf("%s.components", path);

    if (eb_json_get_int(row, "type", 0) != ROW) {
        ds_error_at(tree, path, "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).");
        return;
    }
    if (n < 1 || n > MAX_BUTTONS)
        ds_error_at(tree, list, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
    for (guint i = 0; i < n; i++) {
        JsonObject *part = eb_json_array_object(parts, i);
        g_autofree char *at = g_strdup_printf("%s.%u", list, i);
        const gint64 type = eb_json_get_int(part, "type", 0);

        if (type == BUTTON)
            check_button(part, at, ids, tree);
        else if (type == SELECT && n == 1)
            check_select(part, at, ids, tree);
        else if (type < SELECT || type > 8 || n > 1)
            ds_error_at(tree, at, "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (2, 3, 5, 6, 7, 8).");
    }
}

void
ds_validate_components(JsonArray *rows, JsonObject *tree)
{
    g_autoptr(GHashTable) ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    if (json_array_get_length(rows) > MAX_ROWS)
        ds_error_at(tree, "components", "BASE_TYPE_MAX_LENGTH", "Must be 5 or fewer in length.");
    for (guint i = 0; i < json_array_get_length(rows); i++) {
        g_autofree char *path = g_strdup_printf("components.%u", i);

        check_row(eb_json_array_object(rows, i), path, ids, tree);
    }
}

/* --- embeds --- */

static glong
length_of(JsonObject *object, const char *member)
{
    const char *text = eb_json_get_string(object, member);

    return text != NULL ? g_utf8_strlen(text, -1) : 0;
}

static glong
check_fields(JsonObject *embed, const char *path, JsonObject *tree)
{
    JsonArray *fields = eb_json_get_array(embed, "fields");
    const guint n = fields != NULL ? json_array_get_length(fields) : 0;
    g_autofree char *list = g_strdup_printf("%s.fields", path);
    glong sum = 0;

    if (n > MAX_OPTIONS)
        ds_error_at(tree, list, "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
    for (guint i = 0; i < n; i++) {
        JsonObject *field = eb_json_array_object(fields, i);
        g_autofree char *name = g_strdup_printf("%s.%u.name", list, i);
        g_autofree char *value = g_strdup_printf("%s.%u.value", list, i);

        ds_validate_length(field, "name", name, 1, 256, TRUE, tree);
        ds_validate_length(field, "value", value, 1, 1024, TRUE, tree);
        sum += length_of(field, "name") + length_of(field, "value");
    }
    return sum;
}

void
ds_validate_embeds(JsonArray *embeds, JsonObject *tree)
{
    glong sum = 0;

    if (json_array_get_length(embeds) > MAX_EMBEDS)
        ds_error_at(tree, "embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.");
    for (guint i = 0; i < json_array_get_length(embeds); i++) {
        JsonObject *embed = eb_json_array_object(embeds, i);
        JsonObject *footer = eb_json_get_object(embed, "footer");
        JsonObject *author = eb_json_get_object(embed, "author");
        g_autofree char *path = g_strdup_printf("embeds.%u", i);
        g_autofree char *title = g_strdup_printf("%s.title", path);
        g_autofree char *text = g_strdup_printf("%s.description", path);
        g_autofree char *foot = g_strdup_printf("%s.footer.text", path);
        g_autofree char *by = g_strdup_printf("%s.author.name", path);

        ds_validate_length(embed, "title", title, 0, 256, FALSE, tree);
        ds_validate_length(embed, "description", text, 0, 4096, FALSE, tree);
        ds_validate_length(footer, "text", foot, 0, 2048, FALSE, tree);
        ds_validate_length(author, "name", by, 0, 256, FALSE, tree);
        sum += length_of(embed, "title") + length_of(embed, "description") + length_of(footer, "text") +
               length_of(author, "name") + check_fields(embed, path, tree);
    }
    if (sum > MAX_EMBED_TEXT)
        ds_error_at(tree, "embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000");
}

/* --- commands --- */

static void
check_name(JsonObject *object, const char *path, JsonObject *tree)
{
    g_autofree char *at = g_strdup_printf("%s.name", path);
    const char *name = eb_json_get_string(object, "name");
    g_autofree char *lower = name != NULL ? g_utf8_strdown(name, -1) : NULL;

    ds_validate_length(object, "name", at, 1, 32, TRUE, tree);
    if (name != NULL && (!g_regex_match_simple("^[-_'\\p{L}\\p{N}]{1,32}$", name, 0, 0) || strcmp(lower, name) != 0))
        ds_error_at(tree, at, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid");
}

static glong
check_options(JsonObject *object, const char *path, JsonObject *tree)
{
    JsonArray *options = eb_json_get_array(object, "options");
    const guint n = options != NULL ? json_array_get_length(options) : 0;
    g_autofree char *list = g_strdup_printf("%s.options", path);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    gboolean optional_seen = FALSE;
    glong sum = 0;

    if (n > MAX_OPTIONS)
        ds_error_at(tree, list, "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
    for (guint i = 0; i < n; i++) {
        JsonObject *option = eb_json_array_object(options, i);
        g_autofree char *at = g_strdup_printf("%s.%u", list, i);
        g_autofree char *about = g_strdup_printf("%s.description", at);
        g_autofree char *type_path = g_strdup_printf("%s.type", at);
        const gint64 type = eb_json_get_int(option, "type", 0);
        const char *name = eb_json_get_string(option, "name");

        check_name(option, at, tree);
        ds_validate_length(option, "description", about, 1, 100, TRUE, tree);
        if (type < 1 || type > 11)
            ds_error_at(tree, type_path, "BASE_TYPE_CHOICES", "Value must be one of {1, ..., 11}.");
        if (eb_json_get_bool(option, "required", FALSE) && optional_seen)
            ds_error_at(tree, at, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                        "Required options must be placed before non-required options");
        optional_seen |= !eb_json_get_bool(option, "required", FALSE);
        if (name != NULL && !g_hash_table_add(names, (gpointer)name))
            ds_error_at(tree, list, "APPLICATION_COMMAND_OPTIONS_NAME_NOT_UNIQUE", "Option names must be unique");
        if (eb_json_get_array(option, "choices") != NULL &&
            json_array_get_length(eb_json_get_array(option, "choices")) > MAX_OPTIONS)
            ds_error_at(tree, at, "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
        sum += length_of(option, "name") + length_of(option, "description");
    }
    return sum;
}

void
ds_validate_command(JsonObject *command, const char *path, JsonObject *tree)
{
    g_autofree char *about = g_strdup_printf("%s.description", path);
    const gint64 type = eb_json_get_int(command, "type", 1);
    glong sum = length_of(command, "name") + length_of(command, "description");

    if (type == 1) {
        check_name(command, path, tree);
        ds_validate_length(command, "description", about, 1, 100, TRUE, tree);
    }
    sum += check_options(command, path, tree);
    if (sum > MAX_COMMAND_TEXT)
        ds_error_at(tree, path, "APPLICATION_COMMAND_TOO_LARGE", "Command exceeds maximum size (8000)");
}

JsonObject *
ds_validate_commands(JsonArray *commands)
{
    JsonObject *tree = json_object_new();
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    if (json_array_get_length(commands) > MAX_COMMANDS)
        ds_error_at(tree, "commands", "APPLICATION_COMMANDS_LIMIT",
                    "Maximum number of application commands reached (100)");
    for (guint i = 0; i < json_array_get_length(commands); i++) {
        JsonObject *command = eb_json_array_object(commands, i);
        g_autofree char *path = g_strdup_printf("%u", i);
        const char *name = eb_json_get_string(command, "name");

        ds_validate_command(command, path, tree);
        if (name != NULL && !g_hash_table_add(names, (gpointer)name))
            ds_error_at(tree, path, "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique");
    }
    return tree;
}
