/* SPDX-License-Identifier: MIT */
#include "core/plugin/eb-plugin-gtype-guard.h"

#include <string.h>

struct _EbPluginGtypeGuard {
    GHashTable *known; /* (element-type GType) (owned): types that belong to nobody or were noted */
    GHashTable *owned; /* (element-type utf8 utf8) (owned): type name -> plugin */
};

EbPluginGtypeGuard *
eb_plugin_gtype_guard_new(void)
{
    EbPluginGtypeGuard *self = g_new0(EbPluginGtypeGuard, 1);

    self->known = g_hash_table_new(NULL, NULL);
    self->owned = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return self;
}

void
eb_plugin_gtype_guard_free(EbPluginGtypeGuard *self)
{
    if (self == NULL)
        return;
    g_hash_table_unref(self->known);
    g_hash_table_unref(self->owned);
    g_free(self);
}

static void
visit(EbPluginGtypeGuard *self, GType type, const char *plugin)
{
    g_autofree GType *children = g_type_children(type, NULL);

    if (g_hash_table_add(self->known, (gpointer)type) && plugin != NULL)
        g_hash_table_replace(self->owned, g_strdup(g_type_name(type)), g_strdup(plugin));
    for (GType *child = children; *child != 0; child++)
        visit(self, *child, plugin);
}

static void
visit_all(EbPluginGtypeGuard *self, const char *plugin)
{
    static const GType roots[] = {G_TYPE_OBJECT, G_TYPE_INTERFACE, G_TYPE_BOXED, G_TYPE_ENUM, G_TYPE_FLAGS};

    for (gsize i = 0; i < G_N_ELEMENTS(roots); i++)
        visit(self, roots[i], plugin);
}

void
eb_plugin_gtype_guard_begin(EbPluginGtypeGuard *self)
{
    visit_all(self, NULL);
}

void
eb_plugin_gtype_guard_end(EbPluginGtypeGuard *self, const char *plugin)
{
    visit_all(self, plugin);
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
eb_plugin_gtype_guard_check(EbPluginGtypeGuard *self, int fd, const char *plugin, GError **error)
{
    g_autoptr(GMappedFile) file = NULL;
    g_autoptr(GError) local = NULL;
    GHashTableIter iter;
    gpointer name;
    gpointer owner;

    if (g_hash_table_size(self->owned) == 0)
        return TRUE;
    file = g_mapped_file_new_from_fd(fd, FALSE, &local);
    if (file == NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.not-module", "cannot read the module of plugin %s: %s", plugin,
                     local->message);
        return FALSE;
    }
    g_hash_table_iter_init(&iter, self->owned);
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
