/* SPDX-License-Identifier: MIT */
/* What `pins update` says. */
#include "core/provision/eb-pin-update.h"

#include <string.h>

#define MAX_TEXT 400

void
eb_pin_change_free(EbPinChange *change)
{
    g_free(change->name);
    g_free(change->old_version);
    g_free(change->new_version);
    g_free(change->old_digest);
    g_free(change->new_digest);
    g_free(change->note);
    g_clear_error(&change->error);
    g_free(change);
}

guint
eb_pin_update_count(GPtrArray *changes, EbPinNews news)
{
    guint n = 0;

    for (guint i = 0; i < changes->len; i++)
        n += ((const EbPinChange *)g_ptr_array_index(changes, i))->news == news ? 1 : 0;
    return n;
}

/* Text that came from elsewhere, in a table of Markdown: (transfer full) */
static char *
cell(const char *text)
{
    g_autofree char *plain = eb_log_escape(text, -1, MAX_TEXT);
    GString *result = g_string_new(NULL);

    for (const char *c = plain; *c != '\0'; c++) {
        if (strchr("|`<>[]*_\\@#", *c) != NULL && *c != '\0')
            g_string_append_c(result, '\\');
        g_string_append_c(result, *c);
    }
    return g_string_free(result, FALSE);
}

static void
add_newer(GString *text, const EbPinChange *change)
{
    g_string_append_printf(text, "| %s | `%s` | %s | %s | %s |\n", eb_pin_kind_name(change->kind), change->name,
                           change->old_version != NULL ? change->old_version : "-", change->new_version,
                           change->kind == EB_PIN_DEB   ? "by apt"
                           : change->is_signed          ? "publisher's key"
                           : change->kind == EB_PIN_NPM ? "registry's SHA-512"
                                                        : "**none: compare the digest with what the publisher names**");
}

static void
add_digests(GString *text, GPtrArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        const EbPinChange *change = g_ptr_array_index(changes, i);
        if (change->news == EB_PIN_NEWS_NEWER && change->new_digest != NULL)
            g_string_append_printf(text, "- `%s`\n  - old: `%s`\n  - new: `%s`\n", change->name, change->old_digest,
                                   change->new_digest);
    }
}

char *
eb_pin_update_to_markdown(GPtrArray *changes)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (eb_pin_update_count(changes, EB_PIN_NEWS_NEWER) > 0) {
        g_string_append(text, "| kind | name | pinned | newer | checked against |\n|---|---|---|---|---|\n");
        for (guint i = 0; i < changes->len; i++) {
            const EbPinChange *change = g_ptr_array_index(changes, i);
            if (change->news == EB_PIN_NEWS_NEWER)
                add_newer(text, change);
        }
        g_autoptr(GString) digests = g_string_new(NULL);
        add_digests(digests, changes);
        if (digests->len > 0)
            g_string_append_printf(text, "\nDigests:\n\n%s", digests->str);
    } else {
        g_string_append(text, "Nothing newer than what is pinned.\n");
    }
    if (eb_pin_update_count(changes, EB_PIN_NEWS_FAILED) > 0)
        g_string_append(text, "\nNot found out:\n\n");
    for (guint i = 0; i < changes->len; i++) {
        const EbPinChange *change = g_ptr_array_index(changes, i);
        if (change->news != EB_PIN_NEWS_FAILED)
            continue;
        g_autofree char *why = cell(change->error->message);
        g_string_append_printf(text, "- `%s`: %s\n", change->name, why);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
add_member(JsonObject *object, const char *name, const char *value)
{
    if (value != NULL)
        json_object_set_string_member(object, name, value);
    else
        json_object_set_null_member(object, name);
}

JsonNode *
eb_pin_update_to_json(GPtrArray *changes)
{
    static const char *const news[] = {"none", "newer", "failed"};
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *root = json_object_new();
    JsonArray *array = json_array_new();
    g_autofree char *markdown = eb_pin_update_to_markdown(changes);

    for (guint i = 0; i < changes->len; i++) {
        const EbPinChange *change = g_ptr_array_index(changes, i);
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "kind", eb_pin_kind_name(change->kind));
        json_object_set_string_member(object, "name", change->name);
        json_object_set_string_member(object, "news", news[change->news]);
        add_member(object, "old_version", change->old_version);
        add_member(object, "new_version", change->new_version);
        add_member(object, "old_digest", change->old_digest);
        add_member(object, "new_digest", change->new_digest);
        json_object_set_boolean_member(object, "signed", change->is_signed);
        add_member(object, "note", change->note);
        add_member(object, "error", change->error != NULL ? change->error->message : NULL);
        json_array_add_object_element(array, object);
    }
    json_object_set_int_member(root, "schema", 1);
    json_object_set_int_member(root, "newer", eb_pin_update_count(changes, EB_PIN_NEWS_NEWER));
    json_object_set_int_member(root, "failed", eb_pin_update_count(changes, EB_PIN_NEWS_FAILED));
    json_object_set_array_member(root, "pins", array);
    json_object_set_string_member(root, "markdown", markdown);
    json_node_take_object(node, root);
    return node;
}
