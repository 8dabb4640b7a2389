/* SPDX-License-Identifier: MIT */
#include "core/plugin/eb-plugin-manifest.h"

#include <stdio.h>
#include <string.h>

#define GROUP "Plugin"
#define VALUE_MAX 1024
#define LIST_MAX 64

static const char *const known_keys[] = {"Name",          "Version",  "Abi",      "License", "Implements",
                                         "ConfigSection", "Accesses", "Requires", NULL};

gboolean
eb_plugin_name_is_valid(const char *name)
{
    gsize length = name != NULL ? strlen(name) : 0;

    return length >= 1 && length <= 63 && g_ascii_islower(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static gboolean G_GNUC_PRINTF(3, 4) refuse(GError **error, const char *path, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    eb_set_error(error, EB_ERROR_INVALID, "plugin.manifest", "%s: %s", path, what);
    return FALSE;
}

/* A value of printable characters; @required: absent is refused. (transfer full) (nullable) */
static char *
read_value(GKeyFile *file, const char *key, gboolean required, const char *path, GError **error)
{
    g_autofree char *value = g_key_file_get_string(file, GROUP, key, NULL);

    if (value == NULL) {
        if (required || g_key_file_has_key(file, GROUP, key, NULL))
            refuse(error, path, "key %s is missing or malformed", key);
        return NULL;
    }
    if (value[0] == '\0' || strlen(value) > VALUE_MAX) {
        refuse(error, path, "key %s is empty or longer than %d bytes", key, VALUE_MAX);
        return NULL;
    }
    for (const char *at = value; *at != '\0'; at = g_utf8_next_char(at)) {
        if (!g_unichar_isprint(g_utf8_get_char(at))) {
            refuse(error, path, "key %s has a character that cannot be shown", key);
            return NULL;
        }
    }
    return g_steal_pointer(&value);
}

/* A list of at most LIST_MAX items, empty when the key is absent. (transfer full) (nullable) */
static char **
read_list(GKeyFile *file, const char *key, gboolean required, const char *path, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autofree char *value = read_value(file, key, required, path, &local);
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) parts = NULL;

    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    parts = g_strsplit(value != NULL ? value : "", ";", -1);
    for (char **part = parts; *part != NULL; part++) {
        g_strstrip(*part);
        if (**part == '\0')
            continue;
        if (items->len >= LIST_MAX) {
            refuse(error, path, "key %s has more than %d items", key, LIST_MAX);
            return NULL;
        }
        g_ptr_array_add(items, g_strdup(*part));
    }
    if (required && items->len == 0) {
        refuse(error, path, "key %s is empty", key);
        return NULL;
    }
    g_ptr_array_add(items, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&items), FALSE);
}

/* One group, known keys alone: a mistyped key would silently mean nothing. */
static gboolean
check_shape(GKeyFile *file, const char *path, GError **error)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    g_auto(GStrv) keys = NULL;

    for (char **group = groups; *group != NULL; group++) {
        if (strcmp(*group, GROUP) != 0)
            return refuse(error, path, "unknown group [%.40s]", *group);
    }
    keys = g_key_file_get_keys(file, GROUP, NULL, NULL);
    if (keys == NULL)
        return refuse(error, path, "group [" GROUP "] is missing");
    for (char **key = keys; *key != NULL; key++) {
        const char *nearest;

        if (g_strv_contains(known_keys, *key))
            continue;
        nearest = eb_config_nearest(*key, known_keys);
        return refuse(error, path, "unknown key %.40s%s%s%s", *key, nearest != NULL ? " (did you mean " : "",
                      nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
    }
    return TRUE;
}

static gboolean
parse_abi(EbPluginManifest *self, const char *text, const char *path, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ".", -1);
    guint64 numbers[2] = {0, 0};

    for (guint i = 0; i < 2; i++) {
        if (g_strv_length(parts) != 2 || !g_ascii_string_to_unsigned(parts[i], 10, 0, 9999, &numbers[i], NULL))
            return refuse(error, path, "Abi=%.20s is not of the form MAJOR.MINOR", text);
    }
    self->abi_major = (guint)numbers[0];
    self->abi_minor = (guint)numbers[1];
    return TRUE;
}

static gboolean
check_implements(const EbPluginManifest *self, const char *path, GError **error)
{
    for (char **item = self->implements; *item != NULL; item++) {
        g_auto(GStrv) parts = g_strsplit(*item, ":", 2);
        EbExtensionPoint point;

        if (!eb_extension_point_from_string(parts[0], &point))
            return refuse(error, path, "Implements names an unknown extension point %.40s", parts[0]);
        if (parts[1] == NULL && point != EB_EXTENSION_DOCTOR_CHECK)
            return refuse(error, path, "Implements=%s lacks the name of the %s", *item, *item);
        if (parts[1] != NULL && parts[1][0] == '\0')
            return refuse(error, path, "Implements=%.60s has an empty name", *item);
    }
    return TRUE;
}

/* Everything is read; what values mean is judged here. */
static gboolean
check_values(EbPluginManifest *self, const char *path, GError **error)
{
    g_autofree char *own_section = NULL;

    if (!eb_plugin_name_is_valid(self->name))
        return refuse(error, path, "Name=%.70s is not of the form [a-z][a-z0-9-]{0,62}", self->name);
    if (!check_implements(self, path, error))
        return FALSE;
    own_section = g_strconcat("plugin.", self->name, NULL);
    if (self->config_section == NULL)
        self->config_section = g_steal_pointer(&own_section);
    else if (strcmp(self->config_section, own_section) != 0)
        return refuse(error, path, "ConfigSection=%.70s must be %s: a plugin is given its own table alone",
                      self->config_section, own_section);
    for (char **item = self->requires; *item != NULL; item++) {
        if (!eb_plugin_name_is_valid(*item) || strcmp(*item, self->name) == 0)
            return refuse(error, path, "Requires=%.70s is not the name of another plugin", *item);
    }
    return TRUE;
}

EbPluginManifest *
eb_plugin_manifest_parse(const char *text, gsize length, const char *path, GError **error)
{
    g_autoptr(EbPluginManifest) self = NULL;
    g_autoptr(GKeyFile) file = NULL;
    g_autoptr(GError) local = NULL;
    g_autofree char *abi = NULL;

    g_return_val_if_fail(text != NULL && path != NULL, NULL);
    if (length > EB_PLUGIN_MANIFEST_MAX) {
        refuse(error, path, "longer than %d bytes", EB_PLUGIN_MANIFEST_MAX);
        return NULL;
    }
    if (!g_utf8_validate_len(text, length, NULL)) {
        refuse(error, path, "not UTF-8");
        return NULL;
    }
    file = g_key_file_new();
    if (length == 0 || !g_key_file_load_from_data(file, text, length, G_KEY_FILE_NONE, &local)) {
        refuse(error, path, "not a key file");
        return NULL;
    }
    if (!check_shape(file, path, error))
        return NULL;
    self = g_new0(EbPluginManifest, 1);
    if ((self->name = read_value(file, "Name", TRUE, path, error)) == NULL ||
        (self->version = read_value(file, "Version", TRUE, path, error)) == NULL ||
        (abi = read_value(file, "Abi", TRUE, path, error)) == NULL ||
        (self->license = read_value(file, "License", TRUE, path, error)) == NULL ||
        (self->implements = read_list(file, "Implements", TRUE, path, error)) == NULL ||
        (self->accesses = read_list(file, "Accesses", FALSE, path, error)) == NULL ||
        (self->requires = read_list(file, "Requires", FALSE, path, error)) == NULL)
        return NULL;
    self->config_section = read_value(file, "ConfigSection", FALSE, path, &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    if (!parse_abi(self, abi, path, error) || !check_values(self, path, error))
        return NULL;
    return g_steal_pointer(&self);
}

gboolean
eb_plugin_manifest_implements(const EbPluginManifest *self, EbExtensionPoint point, const char *name)
{
    const char *point_name = eb_extension_point_to_string(point);
    gsize length = strlen(point_name);

    for (char **item = self->implements; *item != NULL; item++) {
        if (strncmp(*item, point_name, length) != 0)
            continue;
        /* A point without a name declares every name of it. */
        if ((*item)[length] == '\0')
            return TRUE;
        if ((*item)[length] == ':' && (name == NULL || strcmp(*item + length + 1, name) == 0))
            return TRUE;
    }
    return FALSE;
}

void
eb_plugin_manifest_free(EbPluginManifest *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_free(self->version);
    g_free(self->license);
    g_strfreev(self->implements);
    g_free(self->config_section);
    g_strfreev(self->accesses);
    g_strfreev(self->requires);
    g_free(self);
}
