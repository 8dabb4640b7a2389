/* SPDX-License-Identifier: MIT */
#include "core/plugin/eb-plugin-gtype-guard.h"

#include <string.h>

static GHashTable *known; /* (element-type GType): types that were there before, or are noted in owned */
static GHashTable *owned; /* (element-type utf8 utf8): type name -> plugin; bounded by the modules that are loaded */

static void
visit(GType type, const char *plugin)
{
    g_autofree GType *children = g_type_children(type, NULL);

    if (g_hash_table_add(known, (gpointer)type) && plugin != NULL)
        g_hash_table_replace(owned, g_strdup(g_type_name(type)), g_strdup(plugin));
    for (GType *child = children; *child != 0; child++)
        visit(*child, plugin);
}

static void
visit_all(const char *plugin)
{
    static const GType roots[] = {G_TYPE_OBJECT, G_TYPE_INTERFACE, G_TYPE_BOXED, G_TYPE_ENUM, G_TYPE_FLAGS};

    if (known == NULL) {
        known = g_hash_table_new(NULL, NULL);
        owned = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(roots); i++)
        visit(roots[i], plugin);
}

void
eb_plugin_gtype_guard_begin(void)
{
    visit_all(NULL);
}

void
eb_plugin_gtype_guard_end(const char *plugin)
{
    visit_all(plugin);
}

/* A string constant is @name between two NULs. */
static gboolean
contains_string(const char *bytes, gsize length, const char *name)
{
    gsize size = strlen(name) + 2;
    g_autofree char *needle = g_malloc0(size);

    memcpy(needle + 1, name, size - 2);
    return memmem(bytes, length, needle, size) != NULL;
}

gboolean
eb_plugin_gtype_guard_check(int fd, const char *plugin, GError **error)
{
    g_autoptr(GMappedFile) file = NULL;
    g_autoptr(GError) local = NULL;
    GHashTableIter iter;
    gpointer name;
    gpointer owner;

    if (owned == NULL || g_hash_table_size(owned) == 0)
        return TRUE;
    file = g_mapped_file_new_from_fd(fd, FALSE, &local);
    if (file == NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.not-module", "cannot read the module of plugin %s: %s", plugin,
                     local->message);
        return FALSE;
    }
    g_hash_table_iter_init(&iter, owned);
    while (g_hash_table_iter_next(&iter, &name, &owner)) {
        if (strcmp(owner, plugin) == 0 ||
            !contains_string(g_mapped_file_get_contents(file), g_mapped_file_get_length(file), name))
            continue;
        eb_set_error(
            error, EB_ERROR_EXISTS, "plugin.gtype",
            "plugin %s defines the type %s, which plugin %s has registered (types begin with the plugin's name)",
            plugin, (const char *)name, (const char *)owner);
        return FALSE;
    }
    return TRUE;
}
