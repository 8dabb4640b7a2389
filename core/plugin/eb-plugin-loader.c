/* SPDX-License-Identifier: MIT */
#include "core/plugin/eb-plugin-loader.h"

#include <gmodule.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/eb-plugin-gtype-guard.h"
#include "core/plugin/eb-plugin-trust.h"

/* What ABI 1.0 has; fields behind it belong to later minors. */
#define DESC_SIZE_1_0 (G_STRUCT_OFFSET(EbPluginDesc, create) + sizeof(((EbPluginDesc *)NULL)->create))

EbPluginManifest *
eb_plugin_loader_read_manifest(const char *path, gboolean dev, GError **error)
{
    g_autofree char *text = g_malloc(EB_PLUGIN_MANIFEST_MAX + 1);
    gsize length = 0;
    int fd = eb_plugin_trust_open(path, dev, error);

    if (fd < 0) {
        if (error != NULL && g_error_matches(*error, EB_ERROR, EB_ERROR_NOT_FOUND)) {
            g_clear_error(error);
            eb_set_error(error, EB_ERROR_NOT_FOUND, "plugin.no-manifest",
                         "%s is missing: a module without a manifest "
                         "is never opened",
                         path);
        }
        return NULL;
    }
    /* One byte more than allowed, so that the parser sees that it is too long. */
    while (length <= EB_PLUGIN_MANIFEST_MAX) {
        ssize_t n = read(fd, text + length, EB_PLUGIN_MANIFEST_MAX + 1 - length);

        if (n <= 0)
            break;
        length += (gsize)n;
    }
    close(fd);
    return eb_plugin_manifest_parse(text, length, path, error);
}

gboolean
eb_plugin_loader_check_abi(const char *name, const char *what, guint major, guint minor, GError **error)
{
    if (major != EB_ABI_MAJOR) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "plugin.abi-major",
                     "plugin %s: its %s is for plugin ABI %u.%u, this errand-box has %d.%d (build it again)", name,
                     what, major, minor, EB_ABI_MAJOR, EB_ABI_MINOR);
        return FALSE;
    }
    if (minor > EB_ABI_MINOR) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "plugin.abi-minor",
                     "plugin %s: its %s needs plugin ABI %u.%u, this errand-box has %d.%d (update errand-box)", name,
                     what, major, minor, EB_ABI_MAJOR, EB_ABI_MINOR);
        return FALSE;
    }
    return TRUE;
}

gboolean
eb_plugin_loader_check_desc(const EbPluginDesc *desc, const EbPluginManifest *manifest, GError **error)
{
    const char *name = manifest->name;

    /* The first three fields are there whatever else a module knows. */
    if (!eb_plugin_loader_check_abi(name, "module", desc->abi_major, desc->abi_minor, error))
        return FALSE;
    if (desc->struct_size < DESC_SIZE_1_0 || desc->struct_size > sizeof(EbPluginDesc)) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.desc-size",
                     "plugin %s: its descriptor has %" G_GSIZE_FORMAT " bytes, this errand-box knows %" G_GSIZE_FORMAT
                     " to %" G_GSIZE_FORMAT,
                     name, desc->struct_size, (gsize)DESC_SIZE_1_0, sizeof(EbPluginDesc));
        return FALSE;
    }
    if (desc->name == NULL || desc->version == NULL || desc->create == NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.desc", "plugin %s: its descriptor has empty fields", name);
        return FALSE;
    }
    if (strcmp(desc->name, name) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.name", "plugin %s: its module says it is %.70s", name,
                     desc->name);
        return FALSE;
    }
    if (strcmp(desc->version, manifest->version) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.version",
                     "plugin %s: its manifest says version %.40s, its module %.40s", name, manifest->version,
                     desc->version);
        return FALSE;
    }
    if (desc->abi_major != manifest->abi_major || desc->abi_minor != manifest->abi_minor) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.abi-differs",
                     "plugin %s: its manifest says ABI %u.%u, its module %u.%u", name, manifest->abi_major,
                     manifest->abi_minor, desc->abi_major, desc->abi_minor);
        return FALSE;
    }
    return TRUE;
}

/* A module of this process. */
typedef struct {
    const EbPluginDesc *desc; /* (unowned): static in the module */
    dev_t device;
    ino_t inode;
} OpenModule;

/* (element-type utf8 OpenModule) (owned): by plugin; bounded by what is installed. Main thread only. */
static GHashTable *open_modules;

/*
 * Opens what @fd is. The descriptor stays open as long as the module: the dynamic linker takes a module with a known
 * name for the known module, so the number must not come back for another plugin. Closed when there is no module.
 */
static GModule *
open_module(int fd, const char *path, GError **error)
{
    g_autofree char *through_fd = g_strdup_printf("/proc/self/fd/%d", fd);
    GModule *module = g_module_open(through_fd, G_MODULE_BIND_LOCAL);

    if (module == NULL) {
        const char *why = g_module_error();

        /* The linker names the descriptor; the path is what helps. */
        if (g_str_has_prefix(why, through_fd))
            why += strlen(through_fd) + strspn(why + strlen(through_fd), ": ");
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.not-module", "cannot open %s: %s", path, why);
        close(fd);
        return NULL;
    }
    g_module_make_resident(module);
    return module;
}

/* TRUE when plugin @name needs no opening: @desc is set, or @error, since another file is loaded under its name. */
static gboolean
find_open_module(int fd, const char *name, const char *path, const EbPluginDesc **desc, GError **error)
{
    const OpenModule *known = open_modules != NULL ? g_hash_table_lookup(open_modules, name) : NULL;
    struct stat info;

    *desc = NULL;
    if (known == NULL)
        return FALSE;
    if (fstat(fd, &info) == 0 && info.st_dev == known->device && info.st_ino == known->inode)
        *desc = known->desc;
    else
        eb_set_error(error, EB_ERROR_EXISTS, "plugin.replaced",
                     "plugin %s: %s is not the file this process has loaded (start again)", name, path);
    return TRUE;
}

static void
remember_module(int fd, const char *name, const EbPluginDesc *desc)
{
    OpenModule *module;
    struct stat info;

    if (fstat(fd, &info) != 0)
        return;
    module = g_new0(OpenModule, 1);
    module->desc = desc;
    module->device = info.st_dev;
    module->inode = info.st_ino;
    if (open_modules == NULL)
        open_modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_hash_table_replace(open_modules, g_strdup(name), module);
}

const EbPluginDesc *
eb_plugin_loader_open(const char *path, const EbPluginManifest *manifest, gboolean dev, GError **error)
{
    const EbPluginDesc *desc = NULL;
    GModule *module;
    gpointer symbol = NULL;
    int fd;

    if (!eb_plugin_loader_check_abi(manifest->name, "manifest", manifest->abi_major, manifest->abi_minor, error))
        return NULL;
    fd = eb_plugin_trust_open(path, dev, error);
    if (fd < 0)
        return NULL;
    if (find_open_module(fd, manifest->name, path, &desc, error)) {
        close(fd);
        return desc != NULL && eb_plugin_loader_check_desc(desc, manifest, error) ? desc : NULL;
    }
    if (!eb_plugin_gtype_guard_check(fd, manifest->name, error)) {
        close(fd);
        return NULL;
    }
    module = open_module(fd, path, error);
    if (module == NULL)
        return NULL;
    if (!g_module_symbol(module, EB_PLUGIN_SYMBOL, &symbol) || symbol == NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.no-symbol", "%s has no symbol " EB_PLUGIN_SYMBOL, path);
        return NULL;
    }
    if (!eb_plugin_loader_check_desc(symbol, manifest, error))
        return NULL;
    remember_module(fd, manifest->name, symbol);
    return symbol;
}
