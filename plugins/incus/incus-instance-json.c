/* SPDX-License-Identifier: MIT */
#include "incus-instance-json.h"

#define DEFAULT_INOTIFY 64
#define AGENT_UID 1000
#define ROOT_DEVICE "root"

/*
 * System calls refused in every guest, in liblxc's syntax.
 *
 * The four ioctls make btrfs subvolumes and snapshots, whose files count for no quota of the guest. AF_VSOCK (40)
 * reaches past the missing network to the host of a virtual machine, and io_uring can open sockets without the call
 * that is filtered. Keys count for the account that guest uid 1000 is mapped to, and a guest could use them all up.
 *
 * 32-bit calls (int 0x80) keep to all of these but the socket rule: socket() has two shapes there, one with its
 * arguments in memory, and liblxc cannot name either for that entry alone. SECURITY.md says what helps.
 */
static const char deny_rules[] = "ioctl errno 1 [1,0x5000940e,SCMP_CMP_MASKED_EQ,0xffffffff]\n"
                                 "ioctl errno 1 [1,0x50009418,SCMP_CMP_MASKED_EQ,0xffffffff]\n"
                                 "ioctl errno 1 [1,0x50009401,SCMP_CMP_MASKED_EQ,0xffffffff]\n"
                                 "ioctl errno 1 [1,0x50009417,SCMP_CMP_MASKED_EQ,0xffffffff]\n"
                                 "socket errno 97 [0,40,SCMP_CMP_EQ]\n"
                                 "io_uring_setup errno 38\n"
                                 "keyctl errno 38\n"
                                 "add_key errno 38\n"
                                 "request_key errno 38";

/* --- writing --- */

static void
set(JsonBuilder *builder, const char *name, const char *value)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_string_value(builder, value);
}

static void
set_bool(JsonBuilder *builder, const char *name, gboolean value)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_boolean_value(builder, value);
}

static void
set_number(JsonBuilder *builder, const char *name, guint64 value)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);
    set(builder, name, text);
}

/* incusd writes config values into files of its own line by line: nothing with a control character goes there. */
static gboolean
is_plain(const char *text)
{
    if (text == NULL || !g_utf8_validate(text, -1, NULL))
        return FALSE;
    for (const char *c = text; *c != '\0'; c++)
        if ((guchar)*c < 0x20 || *c == 0x7f)
            return FALSE;
    return TRUE;
}

static gboolean
is_label_key(const char *key)
{
    gsize length = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-_.");
    return length > 0 && length < 64 && key[length] == '\0';
}

static gboolean
write_labels(JsonBuilder *builder, const EbContainerSpec *spec, GError **error)
{
    GHashTableIter iter;
    gpointer key, value;
    if (spec->labels == NULL)
        return TRUE;
    g_hash_table_iter_init(&iter, spec->labels);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        if (!is_label_key(key) || !is_plain(value)) {
            eb_set_error(error, EB_ERROR_INVALID, "incus.label", "instance %s: a label cannot be written", spec->name);
            return FALSE;
        }
        g_autofree char *name = g_strconcat(INCUS_LABEL_PREFIX, key, NULL);
        set(builder, name, value);
    }
    return TRUE;
}

static void
write_limits(JsonBuilder *builder, const EbContainerSpec *spec)
{
    set_number(builder, "limits.memory", spec->memory_bytes);
    if (spec->pids > 0)
        set_number(builder, "limits.processes", spec->pids);
    if (spec->cpus > 0)
        set_number(builder, "limits.cpu", spec->cpus);
}

static void
write_id_map(JsonBuilder *builder, const EbContainerSpec *spec)
{
    if (spec->agent_uid == 0)
        return;
    g_autofree char *map =
        spec->agent_uid == spec->agent_gid
            ? g_strdup_printf("both %u %u", spec->agent_uid, AGENT_UID)
            : g_strdup_printf("uid %u %u\ngid %u %u", spec->agent_uid, AGENT_UID, spec->agent_gid, AGENT_UID);
    set(builder, "raw.idmap", map);
}

static gboolean
write_config(JsonBuilder *builder, const EbContainerSpec *spec, const char *launch_id, GError **error)
{
    json_builder_set_member_name(builder, "config");
    json_builder_begin_object(builder);
    set(builder, "boot.autostart", "false");
    set(builder, "security.guestapi", "false");
    /* A restricted project demands it, but old versions accept an instance that leaves it out: always send it. */
    set(builder, "security.idmap.isolated", "true");
    set(builder, "security.nesting", spec->nesting ? "true" : "false");
    set(builder, "security.privileged", "false");
    set(builder, "security.syscalls.deny", deny_rules);
    set(builder, "security.syscalls.deny_compat", "true");
    set_number(builder, "linux.sysctl.user.max_inotify_instances", spec->inotify > 0 ? spec->inotify : DEFAULT_INOTIFY);
    write_limits(builder, spec);
    write_id_map(builder, spec);
    set(builder, INCUS_LAUNCH_KEY, launch_id);
    gboolean ok = write_labels(builder, spec, error);
    json_builder_end_object(builder);
    return ok;
}

static gboolean
write_mount(JsonBuilder *builder, const EbContainerMount *mount, const char *pool, GError **error)
{
    if (!is_plain(mount->name) || g_str_equal(mount->name, ROOT_DEVICE) || !is_plain(mount->target) ||
        (mount->volume == NULL && !is_plain(mount->source)) || (mount->volume != NULL && !is_plain(mount->volume))) {
        eb_set_error(error, EB_ERROR_INVALID, "incus.mount", "mount %s cannot be written",
                     mount->name != NULL ? mount->name : "without a name");
        return FALSE;
    }
    json_builder_set_member_name(builder, mount->name);
    json_builder_begin_object(builder);
    set(builder, "type", "disk");
    if (mount->volume != NULL)
        set(builder, "pool", pool);
    set(builder, "source", mount->volume != NULL ? mount->volume : mount->source);
    set(builder, "path", mount->target);
    if (mount->readonly)
        set(builder, "readonly", "true");
    json_builder_end_object(builder);
    return TRUE;
}

static gboolean
write_devices(JsonBuilder *builder, const EbContainerSpec *spec, const char *pool, GError **error)
{
    gboolean ok = TRUE;
    json_builder_set_member_name(builder, "devices");
    json_builder_begin_object(builder);
    json_builder_set_member_name(builder, ROOT_DEVICE);
    json_builder_begin_object(builder);
    set(builder, "type", "disk");
    set(builder, "path", "/");
    set(builder, "pool", pool);
    if (spec->disk_bytes > 0)
        set_number(builder, "size", spec->disk_bytes);
    json_builder_end_object(builder);
    for (guint i = 0; ok && spec->mounts != NULL && i < spec->mounts->len; i++)
        ok = write_mount(builder, spec->mounts->pdata[i], pool, error);
    json_builder_end_object(builder);
    return ok;
}

static gboolean
is_fingerprint(const char *image)
{
    return strlen(image) == 64 && strspn(image, "0123456789abcdef") == 64;
}

JsonNode *
incus_instance_to_json(const EbContainerSpec *spec, const char *pool, const char *launch_id, GError **error)
{
    if (spec->memory_bytes == 0) {
        eb_set_error(error, EB_ERROR_INVALID, "incus.no-memory-limit", "instance %s: every guest has a memory limit",
                     spec->name);
        return NULL;
    }
    if (!is_plain(spec->image) || *spec->image == '\0') {
        eb_set_error(error, EB_ERROR_INVALID, "incus.image", "instance %s names no image", spec->name);
        return NULL;
    }
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    set(builder, "name", spec->name);
    set(builder, "type", "container");
    set_bool(builder, "ephemeral", spec->ephemeral);
    /* An empty list, not a missing one: the default profile may have a network device. */
    json_builder_set_member_name(builder, "profiles");
    json_builder_begin_array(builder);
    json_builder_end_array(builder);
    json_builder_set_member_name(builder, "source");
    json_builder_begin_object(builder);
    set(builder, "type", "image");
    set(builder, is_fingerprint(spec->image) ? "fingerprint" : "alias", spec->image);
    json_builder_end_object(builder);
    if (!write_config(builder, spec, launch_id, error) || !write_devices(builder, spec, pool, error))
        return NULL;
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}

JsonNode *
incus_instance_update_json(const EbContainerSpec *spec, const char *pool, JsonObject *instance, GError **error)
{
    JsonObject *present = eb_json_get_object(instance, "devices");
    gboolean ok = TRUE;
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    if (spec->memory_bytes > 0) {
        json_builder_set_member_name(builder, "config");
        json_builder_begin_object(builder);
        write_limits(builder, spec);
        json_builder_end_object(builder);
    }
    json_builder_set_member_name(builder, "devices");
    json_builder_begin_object(builder);
    for (guint i = 0; ok && spec->mounts != NULL && i < spec->mounts->len; i++) {
        const EbContainerMount *mount = spec->mounts->pdata[i];
        if (mount->name == NULL || eb_json_get_object(present, mount->name) == NULL)
            ok = write_mount(builder, mount, pool, error);
    }
    json_builder_end_object(builder);
    json_builder_end_object(builder);
    return ok ? json_builder_get_root(builder) : NULL;
}

JsonNode *
incus_volume_to_json(const EbContainerMount *mount)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    set(builder, "name", mount->volume);
    set(builder, "type", "custom");
    set(builder, "content_type", "filesystem");
    json_builder_set_member_name(builder, "config");
    json_builder_begin_object(builder);
    if (mount->size_bytes > 0)
        set_number(builder, "size", mount->size_bytes);
    set_number(builder, "initial.uid", AGENT_UID);
    set_number(builder, "initial.gid", AGENT_UID);
    set(builder, "initial.mode", "0700");
    json_builder_end_object(builder);
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}

JsonNode *
incus_state_to_json(const char *action, gboolean force, guint timeout_s)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    set(builder, "action", action);
    set_bool(builder, "force", force);
    json_builder_set_member_name(builder, "timeout");
    json_builder_add_int_value(builder, timeout_s);
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}
