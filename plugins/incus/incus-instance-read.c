/* SPDX-License-Identifier: MIT */
#include "incus-instance-json.h"

/* Bounds of what is taken over from one instance or image. */
#define MAX_LABELS 64
#define MAX_PROPERTIES 64
#define MAX_REASON 400

const char *
incus_instance_get_config(JsonObject *instance, const char *key)
{
    JsonObject *config = eb_json_get_object(instance, "expanded_config");
    if (config == NULL)
        config = eb_json_get_object(instance, "config");
    return eb_json_get_string(config, key);
}

gboolean
incus_instance_is_ours(JsonObject *instance)
{
    return incus_instance_get_config(instance, INCUS_LAUNCH_KEY) != NULL;
}

static gboolean
verify_devices(JsonObject *instance, const char *name, GError **error)
{
    JsonObject *devices = eb_json_get_object(instance, "expanded_devices");
    if (devices == NULL) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "incusd told no devices of instance %s", name);
        return FALSE;
    }
    JsonObjectIter iter;
    const char *device;
    json_object_iter_init_ordered(&iter, devices);
    while (json_object_iter_next_ordered(&iter, &device, NULL)) {
        const char *type = eb_json_get_string(eb_json_get_object(devices, device), "type");
        if (g_strcmp0(type, "disk") == 0 || g_strcmp0(type, "none") == 0)
            continue;
        g_autofree char *shown = eb_log_escape(device, -1, 64);
        eb_set_error(error, EB_ERROR_DENIED, "incus.device",
                     "instance %s has a device \"%s\" that is no disk and was not asked for; it is not started", name,
                     shown);
        return FALSE;
    }
    return TRUE;
}

gboolean
incus_instance_verify(JsonObject *instance, GError **error)
{
    static const struct {
        const char *key;
        const char *value;
        gboolean absent_ok; /* absent means @value */
    } wanted[] = {
        {"security.guestapi", "false", FALSE},
        {"security.idmap.isolated", "true", FALSE},
        {"security.privileged", "false", TRUE},
        {"security.syscalls.deny_compat", "true", FALSE},
        {"security.syscalls.deny_default", "true", TRUE},
        {"boot.autostart", "false", FALSE},
    };
    const char *name = eb_json_get_string(instance, "name");
    if (name == NULL) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "incusd described an instance without a name");
        return FALSE;
    }
    if (!verify_devices(instance, name, error))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(wanted); i++) {
        const char *value = incus_instance_get_config(instance, wanted[i].key);
        if ((value == NULL && wanted[i].absent_ok) || g_strcmp0(value, wanted[i].value) == 0)
            continue;
        eb_set_error(error, EB_ERROR_DENIED, "incus.protection", "instance %s lacks %s=%s; it is not started", name,
                     wanted[i].key, wanted[i].value);
        return FALSE;
    }
    if (incus_instance_get_config(instance, "security.syscalls.deny") == NULL ||
        incus_instance_get_config(instance, "limits.memory") == NULL) {
        eb_set_error(error, EB_ERROR_DENIED, "incus.protection",
                     "instance %s lacks its system call rules or memory limit; it is not started", name);
        return FALSE;
    }
    return TRUE;
}

EbInstanceState
incus_instance_state_parse(const char *status)
{
    static const struct {
        const char *status;
        EbInstanceState state;
    } states[] = {
        {"Running", EB_INSTANCE_RUNNING}, {"Ready", EB_INSTANCE_RUNNING},   {"Stopped", EB_INSTANCE_STOPPED},
        {"Frozen", EB_INSTANCE_FROZEN},   {"Freezing", EB_INSTANCE_FROZEN}, {"Error", EB_INSTANCE_ERROR},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(states); i++)
        if (g_strcmp0(status, states[i].status) == 0)
            return states[i].state;
    return EB_INSTANCE_UNKNOWN;
}

static gint64
parse_time(const char *text)
{
    if (text == NULL)
        return 0;
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(text, NULL);
    return time != NULL ? g_date_time_to_unix(time) : 0;
}

static guint64
unsigned_member(JsonObject *object, const char *member)
{
    gint64 value = eb_json_get_int(object, member, 0);
    return value > 0 ? (guint64)value : 0;
}

static void
read_state(EbInstanceInfo *info, JsonObject *state)
{
    JsonObject *disk = eb_json_get_object(eb_json_get_object(state, "disk"), "root");
    info->memory_usage = unsigned_member(eb_json_get_object(state, "memory"), "usage");
    info->disk_usage = unsigned_member(disk, "usage");
    info->tasks = (guint)MIN(unsigned_member(state, "processes"), G_MAXUINT);
    info->cpu_ns = unsigned_member(eb_json_get_object(state, "cpu"), "usage");
}

/* incusd also takes "4GB" and "50%" as a limit; what cannot be read as bytes is unknown. */
static guint64
parse_limit(const char *text)
{
    guint64 bytes = 0;
    if (text == NULL || !eb_config_parse_size(text, &bytes, NULL))
        return 0;
    return bytes;
}

EbInstanceInfo *
incus_instance_info(JsonObject *instance)
{
    const char *name = eb_json_get_string(instance, "name");
    if (name == NULL)
        return NULL;
    EbInstanceInfo *info = eb_instance_info_new(name);
    const char *location = eb_json_get_string(instance, "location");
    JsonObject *config = eb_json_get_object(instance, "config");
    info->state = incus_instance_state_parse(eb_json_get_string(instance, "status"));
    info->memory_limit = parse_limit(incus_instance_get_config(instance, "limits.memory"));
    info->created_unix = parse_time(eb_json_get_string(instance, "created_at"));
    if (location != NULL && *location != '\0' && !g_str_equal(location, "none"))
        info->location = g_strdup(location);
    info->image = g_strdup(eb_json_get_string(config, "volatile.base_image"));
    if (info->labels == NULL)
        info->labels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (config != NULL) {
        JsonObjectIter iter;
        const char *key;
        json_object_iter_init_ordered(&iter, config);
        while (json_object_iter_next_ordered(&iter, &key, NULL)) {
            const char *value = eb_json_get_string(config, key);
            if (value != NULL && g_str_has_prefix(key, INCUS_LABEL_PREFIX) &&
                g_hash_table_size(info->labels) < MAX_LABELS)
                g_hash_table_replace(info->labels, g_strdup(key + strlen(INCUS_LABEL_PREFIX)), g_strdup(value));
        }
    }
    read_state(info, eb_json_get_object(instance, "state"));
    return info;
}

EbImageInfo *
incus_image_info(JsonObject *image, const char *alias)
{
    const char *fingerprint = eb_json_get_string(image, "fingerprint");
    if (fingerprint == NULL)
        return NULL;
    if (alias == NULL)
        alias = eb_json_get_string(eb_json_array_object(eb_json_get_array(image, "aliases"), 0), "name");
    EbImageInfo *info = eb_image_info_new(alias != NULL ? alias : "");
    JsonObject *properties = eb_json_get_object(image, "properties");
    info->fingerprint = g_strdup(fingerprint);
    info->size_bytes = unsigned_member(image, "size");
    info->created_unix = parse_time(eb_json_get_string(image, "uploaded_at"));
    if (info->properties == NULL)
        info->properties = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (properties != NULL) {
        JsonObjectIter iter;
        const char *key;
        json_object_iter_init_ordered(&iter, properties);
        while (json_object_iter_next_ordered(&iter, &key, NULL)) {
            const char *value = eb_json_get_string(properties, key);
            if (value != NULL && g_hash_table_size(info->properties) < MAX_PROPERTIES)
                g_hash_table_replace(info->properties, g_strdup(key), g_strdup(value));
        }
    }
    return info;
}

char *
incus_lxc_log_reason(const char *log, gsize length)
{
    static const char mark[] = " ERROR ";
    const char *found = length > 0 ? memmem(log, length, mark, sizeof mark - 1) : NULL;
    if (found == NULL)
        return NULL;
    const char *start = found + sizeof mark - 1;
    gsize rest = length - (gsize)(start - log);
    const char *end = memchr(start, '\n', rest);
    gsize line = end != NULL ? (gsize)(end - start) : rest;
    while (line > 0 && *start == ' ') {
        start++;
        line--;
    }
    return line > 0 ? eb_log_escape(start, (gssize)line, MAX_REASON) : NULL;
}
