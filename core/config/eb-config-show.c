/* SPDX-License-Identifier: MIT */
#include "core/config/eb-config-private.h"
#include "core/config/eb-config-schema.h"

#include <string.h>

/* Nothing secret passes the checks; what looks like one is masked all the same. */
static char *
shown_text(const char *key, const char *text)
{
    if (g_str_has_prefix(text, "cred:") || strstr(text, "${") != NULL)
        return g_strdup(text);
    if (*text != '\0' && (eb_config_key_is_secret(key) || eb_config_text_is_secret(text)))
        return g_strdup("(redacted)");
    const char *scheme = strstr(text, "://");
    const char *at = scheme != NULL ? strchr(scheme, '@') : NULL;
    if (at != NULL && memchr(scheme + 3, '/', (gsize)(at - scheme - 3)) == NULL)
        return g_strdup_printf("%.*s://(redacted)%s", (int)(scheme - text), text, at);
    return g_strdup(text);
}

static void
append_key(GString *out, const char *key)
{
    gsize length = strlen(key);

    if (length > 0 && strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == length)
        g_string_append(out, key);
    else
        eb_config_append_quoted(out, key);
}

static void
append_value(GString *out, const char *key, GVariant *value)
{
    GVariantIter iter;
    GVariant *item;

    if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING)) {
        g_autofree char *text = shown_text(key, g_variant_get_string(value, NULL));
        eb_config_append_quoted(out, text);
    } else if (g_variant_is_container(value)) {
        guint n = 0;
        g_string_append_c(out, '[');
        g_variant_iter_init(&iter, value);
        while ((item = g_variant_iter_next_value(&iter)) != NULL) {
            g_string_append(out, n++ > 0 ? ", " : "");
            append_value(out, key, item);
            g_variant_unref(item);
        }
        g_string_append_c(out, ']');
    } else if (g_variant_is_of_type(value, G_VARIANT_TYPE_DOUBLE)) {
        char buffer[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append(out, g_ascii_dtostr(buffer, sizeof buffer, g_variant_get_double(value)));
    } else if (g_variant_is_of_type(value, G_VARIANT_TYPE_BOOLEAN)) {
        g_string_append(out, g_variant_get_boolean(value) ? "true" : "false");
    } else {
        g_string_append_printf(out, "%" G_GINT64_FORMAT, g_variant_get_int64(value));
    }
}

char *
eb_config_provenance(EbConfigSection *section, const char *key)
{
    g_autofree char *where = eb_config_section_where(section, key);
    if (g_str_has_prefix(where, EB_CONFIG_DEFAULT_FILE ":"))
        return g_strdup("default");
    return g_steal_pointer(&where);
}

static void
append_path(GString *out, const char *path, const char *name)
{
    g_string_append(out, path);
    if (*path != '\0')
        g_string_append_c(out, '.');
    append_key(out, name);
}

static void
append_table(GString *out, EbConfigSection *section, const char *path)
{
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(section);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);

    if (*path != '\0' && (keys->len > 0 || children->len == 0))
        g_string_append_printf(out, "%s[%s]\n", out->len > 0 ? "\n" : "", path);
    for (guint i = 0; i < keys->len; i++) {
        g_autofree char *from = eb_config_provenance(section, keys->pdata[i]);
        append_key(out, keys->pdata[i]);
        g_string_append(out, " = ");
        append_value(out, keys->pdata[i], eb_config_section_get_value(section, keys->pdata[i]));
        g_string_append_printf(out, " # %s\n", from);
    }
    for (guint i = 0; i < children->len; i++) {
        g_autoptr(GString) longer = g_string_new(NULL);
        append_path(longer, path, children->pdata[i]);
        append_table(out, eb_config_section_get_child(section, children->pdata[i]), longer->str);
    }
}

/* --- JSON: {"config": {...}, "from": {"service.account": "file:line"}} --- */

static JsonNode *
json_value(const char *key, GVariant *value)
{
    JsonNode *node = json_node_alloc();

    if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING)) {
        g_autofree char *text = shown_text(key, g_variant_get_string(value, NULL));
        json_node_init_string(node, text);
    } else if (g_variant_is_container(value)) {
        JsonArray *list = json_array_new();
        for (gsize i = 0; i < g_variant_n_children(value); i++) {
            g_autoptr(GVariant) item = g_variant_get_child_value(value, i);
            json_array_add_element(list, json_value(key, item));
        }
        json_node_init_array(node, list);
        json_array_unref(list);
    } else if (g_variant_is_of_type(value, G_VARIANT_TYPE_DOUBLE)) {
        json_node_init_double(node, g_variant_get_double(value));
    } else if (g_variant_is_of_type(value, G_VARIANT_TYPE_BOOLEAN)) {
        json_node_init_boolean(node, g_variant_get_boolean(value));
    } else {
        json_node_init_int(node, g_variant_get_int64(value));
    }
    return node;
}

static JsonObject *
json_table(EbConfigSection *section, const char *path, JsonObject *from)
{
    JsonObject *object = json_object_new();
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(section);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);

    for (guint i = 0; i < keys->len; i++) {
        g_autoptr(GString) name = g_string_new(NULL);
        g_autofree char *where = eb_config_provenance(section, keys->pdata[i]);
        append_path(name, path, keys->pdata[i]);
        json_object_set_string_member(from, name->str, where);
        json_object_set_member(object, keys->pdata[i],
                               json_value(keys->pdata[i], eb_config_section_get_value(section, keys->pdata[i])));
    }
    for (guint i = 0; i < children->len; i++) {
        g_autoptr(GString) longer = g_string_new(NULL);
        append_path(longer, path, children->pdata[i]);
        json_object_set_object_member(
            object, children->pdata[i],
            json_table(eb_config_section_get_child(section, children->pdata[i]), longer->str, from));
    }
    return object;
}

char *
eb_config_show(EbConfig *self, gboolean json)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    EbConfigSection *effective = eb_config_get_effective(self);

    if (!json) {
        g_autoptr(GString) out = g_string_new(NULL);
        append_table(out, effective, "");
        return g_string_free(g_steal_pointer(&out), FALSE);
    }
    JsonObject *root = json_object_new();
    JsonObject *from = json_object_new();
    json_object_set_object_member(root, "config", json_table(effective, "", from));
    json_object_set_object_member(root, "from", from);
    g_autoptr(JsonNode) node = json_node_alloc();
    json_node_init_object(node, root);
    json_object_unref(root);
    return eb_json_write(node, NULL);
}
