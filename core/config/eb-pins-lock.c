/* SPDX-License-Identifier: MIT */
/* Reading npm's lock files (version 3). */
#include "core/config/eb-pin-digest.h"
#include "core/config/eb-pins.h"

#include <string.h>

#define MAX_PACKAGES 2048
#define MAX_NAME 214 /* npm's own limit */

static void
package_free(gpointer data)
{
    EbPinPackage *package = data;

    g_free(package->path);
    g_free(package->name);
    g_free(package->version);
    g_free(package->integrity);
    g_free(package);
}

/* TRUE when the list is absent, names @value, or, as npm has it, excludes others with "!other" but not @value. */
static gboolean
list_allows(JsonObject *entry, const char *member, const char *value)
{
    JsonArray *list = eb_json_get_array(entry, member);
    gboolean only_exclusions = TRUE;

    if (list == NULL)
        return TRUE;
    for (guint i = 0; i < json_array_get_length(list); i++) {
        const char *item = eb_json_array_string(list, i);
        if (item == NULL)
            continue;
        if (item[0] == '!') {
            if (strcmp(item + 1, value) == 0)
                return FALSE;
            continue;
        }
        if (strcmp(item, value) == 0)
            return TRUE;
        only_exclusions = FALSE;
    }
    return only_exclusions;
}

static gboolean
is_wanted(const EbPin *pin, JsonObject *entry, const char *name, const char *cpu, gboolean avx2)
{
    const char *const *left_out = (const char *const *)(avx2 ? pin->baseline : pin->avx2);

    return list_allows(entry, "os", "linux") && list_allows(entry, "cpu", cpu) && list_allows(entry, "libc", "glibc") &&
           !g_strv_contains(left_out, name);
}

gboolean
eb_pin_package_name_is_valid(const char *name)
{
    const char *rest = name;

    if (strlen(name) > MAX_NAME)
        return FALSE;
    if (name[0] == '@') {
        rest = strchr(name, '/');
        if (rest == NULL || rest == name + 1)
            return FALSE;
        rest++;
    }
    if (*rest == '\0' || *rest == '.' || *rest == '-' || strchr(rest, '/') != NULL)
        return FALSE;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@/~") == strlen(name);
}

static gboolean
is_version(const char *version)
{
    gsize length = strlen(version);
    return length > 0 && length < 128 && g_ascii_isdigit(version[0]) &&
           strspn(version, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-") == length;
}

/* "node_modules/NAME[/node_modules/NAME]...". Returns the last name, or NULL. */
static const char *
path_name(const char *path)
{
    const char *name = NULL;

    while (g_str_has_prefix(path, "node_modules/")) {
        name = path + strlen("node_modules/");
        const char *next = strstr(name, "/node_modules/");
        g_autofree char *one = next != NULL ? g_strndup(name, (gsize)(next - name)) : g_strdup(name);
        if (!eb_pin_package_name_is_valid(one))
            return NULL;
        if (next == NULL)
            return name;
        path = next + 1;
    }
    return NULL;
}

static EbPinPackage *
read_package(const EbPin *pin, const char *path, JsonObject *entry, GError **error)
{
    const char *path_last = path_name(path);
    const char *alias = eb_json_get_string(entry, "name");
    const char *name = alias != NULL ? alias : path_last;
    const char *version = eb_json_get_string(entry, "version");
    const char *integrity = eb_json_get_string(entry, "integrity");
    const char *wrong = NULL;

    if (path_last == NULL || !eb_pin_package_name_is_valid(name))
        wrong = "its name or place is not plain";
    else if (version == NULL || !is_version(version))
        wrong = "it has no exact version";
    else if (integrity == NULL || !g_str_has_prefix(integrity, "sha512-") || !eb_pin_digest_is_valid(integrity))
        wrong = "it has no SHA-512";
    if (wrong != NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.lock", "%s: %s: %s", pin->lock, path, wrong);
        return NULL;
    }
    EbPinPackage *package = g_new0(EbPinPackage, 1);
    package->path = g_strdup(path);
    package->name = g_strdup(name);
    package->version = g_strdup(version);
    package->integrity = g_strdup(integrity);
    return package;
}

GPtrArray *
eb_pins_list_packages(const EbPin *pin, GBytes *lock, const char *cpu, gboolean avx2, GError **error)
{
    gsize length = 0;
    const char *text = g_bytes_get_data(lock, &length);
    g_autoptr(JsonNode) root = eb_json_parse(text, length, NULL, error);
    JsonObject *object = eb_json_node_object(root);
    JsonObject *packages = object != NULL ? eb_json_get_object(object, "packages") : NULL;

    if (root == NULL)
        return NULL;
    if (packages == NULL || eb_json_get_int(object, "lockfileVersion", 0) != 3 ||
        json_object_get_size(packages) > MAX_PACKAGES) {
        eb_set_error(error, EB_ERROR_INVALID, "pins.lock", "%s is no lock file of version 3", pin->lock);
        return NULL;
    }
    g_autoptr(GPtrArray) result = g_ptr_array_new_with_free_func(package_free);
    g_autoptr(GList) paths = json_object_get_members(packages);
    for (GList *at = paths; at != NULL; at = at->next) {
        const char *path = at->data;
        JsonObject *entry = eb_json_get_object(packages, path);
        if (*path == '\0') /* the root: what the lock file is for */
            continue;
        if (entry != NULL && eb_json_get_bool(entry, "inBundle", FALSE))
            continue;
        EbPinPackage *package = entry != NULL ? read_package(pin, path, entry, error) : NULL;
        if (entry == NULL)
            eb_set_error(error, EB_ERROR_INVALID, "pins.lock", "%s: %s is no object", pin->lock, path);
        if (package == NULL)
            return NULL;
        if (is_wanted(pin, entry, package->name, cpu, avx2))
            g_ptr_array_add(result, package);
        else
            package_free(package);
    }
    return g_steal_pointer(&result);
}

GBytes *
eb_pins_read_lock(const EbPin *pin, const char *guest_dir, GError **error)
{
    g_autofree char *path = g_build_filename(guest_dir, pin->lock, NULL);
    g_autofree char *text = NULL;
    gsize length = 0;

    if (!g_file_get_contents(path, &text, &length, error)) {
        eb_error_convert(error, "pins.lock", NULL);
        return NULL;
    }
    g_autoptr(GBytes) bytes = g_bytes_new_take(g_steal_pointer(&text), length);
    if (length > EB_PINS_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_INVALID, "pins.lock", "%s is too long", path);
        return NULL;
    }
    return eb_pins_check_bytes(pin->lock, bytes, pin->lock_sha256, error) ? g_steal_pointer(&bytes) : NULL;
}

gboolean
eb_pins_verify_lock(const EbPin *pin, const char *guest_dir, GError **error)
{
    g_autoptr(GBytes) lock = eb_pins_read_lock(pin, guest_dir, error);
    g_autoptr(GPtrArray) packages = lock != NULL ? eb_pins_list_packages(pin, lock, "x64", TRUE, error) : NULL;

    for (guint i = 0; packages != NULL && i < packages->len; i++) {
        const EbPinPackage *package = g_ptr_array_index(packages, i);
        if (strcmp(package->name, pin->package) == 0 && strcmp(package->version, pin->version) == 0 &&
            strcmp(package->integrity, pin->digest) == 0)
            return TRUE;
    }
    if (packages != NULL)
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.lock", "%s does not have %s %s with the pinned digest", pin->lock,
                     pin->package, pin->version);
    return FALSE;
}

gboolean
eb_pins_verify(EbPins *self, const char *guest_dir, GError **error)
{
    GPtrArray *all = eb_pins_get_all(self);

    for (guint i = 0; i < all->len; i++) {
        const EbPin *pin = g_ptr_array_index(all, i);
        if (pin->kind == EB_PIN_NPM && !eb_pins_verify_lock(pin, guest_dir, error))
            return FALSE;
    }
    return TRUE;
}
