/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-npm-lock.h"

#include "core/base/eb-tree-remove.h"
#include "core/config/eb-pin-edit.h"
#include "core/provision/eb-npm.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define VIEW_DEADLINE_MS (2 * 60 * 1000)
#define LOCK_DEADLINE_MS (10 * 60 * 1000)
#define REMOVE_DEADLINE_MS 60000
#define MAX_VERSIONS 20000

GPtrArray *
eb_npm_parse_versions(const char *output, GError **error)
{
    g_autoptr(GPtrArray) versions = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = g_strstrip(g_strdup(output));

    /* One version is printed as a string, several as a list, none as nothing. */
    if (*text == '\0')
        return g_steal_pointer(&versions);
    g_autofree char *list = *text == '[' ? g_strdup(text) : g_strconcat("[", text, "]", NULL);
    g_autoptr(JsonNode) node = eb_json_parse(list, strlen(list), NULL, error);
    if (node == NULL)
        return NULL;
    JsonArray *array = JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    for (guint i = 0; array != NULL && i < json_array_get_length(array) && i < MAX_VERSIONS; i++) {
        const char *version = eb_json_array_string(array, i);
        if (version != NULL)
            g_ptr_array_add(versions, g_strdup(version));
    }
    return g_steal_pointer(&versions);
}

char *
eb_npm_find_newer(const EbPin *pin, const char *dir, GCancellable *cancellable, GError **error)
{
    g_autofree char *package =
        pin->series != NULL ? g_strdup_printf("%s@%s", pin->package, pin->series) : g_strdup(pin->package);
    const char *const arguments[] = {"view",
                                     "--json",
                                     "--no-update-notifier",
                                     "--loglevel=error",
                                     "--",
                                     package,
                                     pin->series != NULL ? "version" : "dist-tags.latest",
                                     NULL};
    g_autofree char *output = NULL;

    if (!eb_npm_run(arguments, dir, VIEW_DEADLINE_MS, cancellable, &output, error))
        return NULL;
    g_autoptr(GPtrArray) versions = eb_npm_parse_versions(output, error);
    if (versions == NULL)
        return NULL;
    if (versions->len == 0) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.update", "the registry has no version of %s", package);
        return NULL;
    }
    return g_strdup(eb_pin_version_pick(versions, pin->version, pin->series));
}

void
eb_npm_lock_free(EbNpmLock *self)
{
    g_free(self->package_json);
    g_clear_pointer(&self->lock, g_bytes_unref);
    g_free(self->lock_sha256);
    g_free(self->integrity);
    g_free(self);
}

/* Where a package comes from is the setting of who fetches it, not of who made the lock file. */
static gboolean
check_no_source(GBytes *lock, GError **error)
{
    gsize length = 0;
    const char *text = g_bytes_get_data(lock, &length);
    g_autoptr(JsonNode) node = eb_json_parse(text, length, NULL, error);
    JsonObject *root = node != NULL ? eb_json_node_object(node) : NULL;
    JsonObject *packages = root != NULL ? eb_json_get_object(root, "packages") : NULL;

    if (packages == NULL) {
        if (node != NULL)
            eb_set_error(error, EB_ERROR_INVALID, "pins.lock", "npm made no lock file of version 3");
        return FALSE;
    }
    g_autoptr(GList) names = json_object_get_members(packages);
    for (GList *at = names; at != NULL; at = at->next) {
        JsonObject *entry = eb_json_get_object(packages, at->data);
        if (entry == NULL || !json_object_has_member(entry, "resolved"))
            continue;
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "pins.lock",
                     "npm wrote into the lock file where %s comes from (npm 8.12 or later leaves it out)",
                     (const char *)at->data);
        return FALSE;
    }
    return TRUE;
}

/* "opencode=node_modules/opencode-linux-x64/bin/opencode": is there such a package? */
static gboolean
check_commands(GPtrArray *packages, char **commands, const char *version, GError **error)
{
    for (char **command = commands; *command != NULL; command++) {
        const char *path = strchr(*command, '=') + 1;
        gboolean found = FALSE;
        for (guint i = 0; i < packages->len && !found; i++) {
            const EbPinPackage *package = g_ptr_array_index(packages, i);
            found = g_str_has_prefix(path, package->path) && path[strlen(package->path)] == '/';
        }
        if (!found) {
            eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.update",
                         "version %s has no package that %s could be in: change commands by hand", version, path);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
eb_npm_lock_check(const EbPin *pin, const char *version, GBytes *lock, char **integrity, GError **error)
{
    g_autoptr(GPtrArray) packages = NULL;
    g_autoptr(GPtrArray) baseline = NULL;

    if (g_bytes_get_size(lock) > EB_PINS_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_QUOTA, "pins.lock", "the lock file is longer than %d bytes", EB_PINS_MAX_BYTES);
        return FALSE;
    }
    if (!check_no_source(lock, error))
        return FALSE;
    packages = eb_pins_list_packages(pin, lock, "x64", TRUE, error);
    baseline = packages != NULL ? eb_pins_list_packages(pin, lock, "x64", FALSE, error) : NULL;
    if (baseline == NULL || !check_commands(packages, pin->commands, version, error) ||
        !check_commands(baseline, pin->commands_baseline, version, error))
        return FALSE;
    for (guint i = 0; i < packages->len; i++) {
        const EbPinPackage *package = g_ptr_array_index(packages, i);
        if (strcmp(package->name, pin->package) == 0 && strcmp(package->version, version) == 0) {
            *integrity = g_strdup(package->integrity);
            return TRUE;
        }
    }
    eb_set_error(error, EB_ERROR_INTEGRITY, "pins.lock", "npm's lock file does not have %s %s", pin->package, version);
    return FALSE;
}

static gboolean
run_npm(const char *dir, GCancellable *cancellable, GError **error)
{
    g_autofree char *cache = g_strdup_printf("--cache=%s/cache", dir);
    const char *const arguments[] = {"install",
                                     "--package-lock-only",
                                     "--ignore-scripts",
                                     "--omit-lockfile-registry-resolved",
                                     "--lockfile-version=3",
                                     "--no-audit",
                                     "--no-fund",
                                     "--no-update-notifier",
                                     "--loglevel=error",
                                     "--logs-max=0",
                                     cache,
                                     NULL};

    return eb_npm_run(arguments, dir, LOCK_DEADLINE_MS, cancellable, NULL, error);
}

static EbNpmLock *
make_in(const char *dir, const EbPin *pin, const char *version, GCancellable *cancellable, GError **error)
{
    g_autoptr(EbNpmLock) self = g_new0(EbNpmLock, 1);
    g_autofree char *manifest = g_build_filename(dir, "package.json", NULL);
    g_autofree char *path = g_build_filename(dir, "package-lock.json", NULL);
    char *text = NULL;
    gsize length = 0;

    self->package_json = g_strdup_printf("{\n  \"name\": \"errand-agent-%s\",\n  \"private\": true,\n"
                                         "  \"dependencies\": {\"%s\": \"%s\"}\n}\n",
                                         pin->name, pin->package, version);
    if (!g_file_set_contents(manifest, self->package_json, -1, error)) {
        eb_error_convert(error, "pins.update", NULL);
        return NULL;
    }
    if (!run_npm(dir, cancellable, error))
        return NULL;
    if (!g_file_get_contents(path, &text, &length, error)) {
        eb_error_convert(error, "pins.update", "npm made no lock file");
        return NULL;
    }
    self->lock = g_bytes_new_take(text, length);
    self->lock_sha256 = g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, self->lock);
    return eb_npm_lock_check(pin, version, self->lock, &self->integrity, error) ? g_steal_pointer(&self) : NULL;
}

EbNpmLock *
eb_npm_lock_make(const EbPin *pin, const char *version, GCancellable *cancellable, GError **error)
{
    g_autofree char *dir = g_dir_make_tmp("errand-box-npm-XXXXXX", error);

    if (dir == NULL) {
        eb_error_convert(error, "pins.update", NULL);
        return NULL;
    }
    EbNpmLock *self = make_in(dir, pin, version, cancellable, error);
    g_autofree char *parent = g_path_get_dirname(dir);
    g_autofree char *name = g_path_get_basename(dir);
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        eb_tree_remove_at(fd, name, REMOVE_DEADLINE_MS, NULL, NULL);
        close(fd);
    }
    return self;
}
