/* SPDX-License-Identifier: MIT */
#include "eb-container-spec.h"

#include <string.h>

#include "eb-error.h"

/* What a spec may hold; far above any real one. */
#define MOUNTS_MAX 32
#define LABELS_MAX 32
#define LABEL_VALUE_MAX 1024
#define NAME_MAX_BYTES 63

G_DEFINE_BOXED_TYPE(EbContainerSpec, eb_container_spec, eb_container_spec_copy, eb_container_spec_free)

static void
mount_free(gpointer data)
{
    EbContainerMount *mount = data;

    g_free((char *)mount->name);
    g_free((char *)mount->source);
    g_free((char *)mount->volume);
    g_free((char *)mount->target);
    g_free(mount);
}

static EbContainerMount *
mount_new(const char *name, const char *source, const char *volume, guint64 size_bytes, const char *target,
          gboolean readonly)
{
    EbContainerMount *mount = g_new0(EbContainerMount, 1);

    mount->name = g_strdup(name);
    mount->source = g_strdup(source);
    mount->volume = g_strdup(volume);
    mount->size_bytes = size_bytes;
    mount->target = g_strdup(target);
    mount->readonly = readonly;
    return mount;
}

static GHashTable *
string_table_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

static void
string_table_copy(GHashTable *to, GHashTable *from)
{
    GHashTableIter iter;
    gpointer key;
    gpointer value;

    g_hash_table_iter_init(&iter, from);
    while (g_hash_table_iter_next(&iter, &key, &value))
        g_hash_table_replace(to, g_strdup(key), g_strdup(value));
}

EbContainerSpec *
eb_container_spec_new(const char *name, const char *image)
{
    EbContainerSpec *self = g_new0(EbContainerSpec, 1);

    self->name = g_strdup(name);
    self->image = g_strdup(image);
    self->mounts = g_ptr_array_new_with_free_func(mount_free);
    self->labels = string_table_new();
    return self;
}

EbContainerSpec *
eb_container_spec_copy(const EbContainerSpec *self)
{
    EbContainerSpec *copy;

    g_return_val_if_fail(self != NULL, NULL);
    copy = eb_container_spec_new(self->name, self->image);
    copy->ephemeral = self->ephemeral;
    copy->nesting = self->nesting;
    copy->memory_bytes = self->memory_bytes;
    copy->cpus = self->cpus;
    copy->pids = self->pids;
    copy->disk_bytes = self->disk_bytes;
    copy->inotify = self->inotify;
    copy->agent_uid = self->agent_uid;
    copy->agent_gid = self->agent_gid;
    for (guint i = 0; i < self->mounts->len; i++) {
        const EbContainerMount *mount = g_ptr_array_index(self->mounts, i);

        g_ptr_array_add(copy->mounts, mount_new(mount->name, mount->source, mount->volume, mount->size_bytes,
                                                mount->target, mount->readonly));
    }
    string_table_copy(copy->labels, self->labels);
    return copy;
}

void
eb_container_spec_free(EbContainerSpec *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_free(self->image);
    g_ptr_array_unref(self->mounts);
    g_hash_table_unref(self->labels);
    g_free(self);
}

void
eb_container_spec_add_directory(EbContainerSpec *self, const char *name, const char *source, const char *target,
                                gboolean readonly)
{
    g_return_if_fail(self != NULL && name != NULL && source != NULL && target != NULL);
    g_ptr_array_add(self->mounts, mount_new(name, source, NULL, 0, target, readonly));
}

void
eb_container_spec_add_volume(EbContainerSpec *self, const char *name, const char *volume, guint64 size_bytes,
                             const char *target)
{
    g_return_if_fail(self != NULL && name != NULL && volume != NULL && target != NULL);
    g_ptr_array_add(self->mounts, mount_new(name, NULL, volume, size_bytes, target, FALSE));
}

void
eb_container_spec_set_label(EbContainerSpec *self, const char *key, const char *value)
{
    g_return_if_fail(self != NULL && key != NULL);
    if (value != NULL)
        g_hash_table_replace(self->labels, g_strdup(key), g_strdup(value));
    else
        g_hash_table_remove(self->labels, key);
}

/* --- validation --- */

static gboolean
is_name(const char *name)
{
    gsize length = name != NULL ? strlen(name) : 0;

    return length >= 1 && length <= NAME_MAX_BYTES && g_ascii_islower(name[0]) && name[length - 1] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

/* Absolute, no empty, "." or ".." part, no control byte, no trailing slash. */
static gboolean
is_clean_path(const char *path)
{
    g_auto(GStrv) parts = NULL;

    if (path == NULL || path[0] != '/' || path[1] == '\0' || strlen(path) >= 4096)
        return FALSE;
    for (const char *at = path; *at != '\0'; at++) {
        if (g_ascii_iscntrl(*at))
            return FALSE;
    }
    parts = g_strsplit(path + 1, "/", -1);
    for (char **part = parts; *part != NULL; part++) {
        if (**part == '\0' || strcmp(*part, ".") == 0 || strcmp(*part, "..") == 0)
            return FALSE;
    }
    return TRUE;
}

static gboolean
is_below(const char *path, const char *parent)
{
    gsize length = strlen(parent);

    return strncmp(path, parent, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static gboolean G_GNUC_PRINTF(3, 4) refuse(GError **error, const char *reason, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    eb_set_error(error, EB_ERROR_INVALID, reason, "%s", message);
    return FALSE;
}

static gboolean
validate_mount(const EbContainerSpec *self, guint index, GError **error)
{
    /* A guest's init covers these with file systems of its own, so a mount there would vanish (or harm it). */
    static const char *const covered[] = {"/run", "/tmp", "/dev", "/proc", "/sys", NULL};
    const EbContainerMount *mount = g_ptr_array_index(self->mounts, index);

    if (!is_name(mount->name))
        return refuse(error, "spec.mount", "mount %u of %s has a bad name", index, self->name);
    if ((mount->source != NULL) == (mount->volume != NULL))
        return refuse(error, "spec.mount", "mount %s needs a source or a volume, not both", mount->name);
    if (mount->source != NULL && !is_clean_path(mount->source))
        return refuse(error, "spec.mount", "mount %s has a source that is no clean absolute path", mount->name);
    if (mount->volume != NULL && !is_name(mount->volume))
        return refuse(error, "spec.mount", "mount %s has a bad volume name", mount->name);
    if (!is_clean_path(mount->target))
        return refuse(error, "spec.mount", "mount %s has a target that is no clean absolute path", mount->name);
    for (gsize i = 0; covered[i] != NULL; i++) {
        if (is_below(mount->target, covered[i]))
            return refuse(error, "spec.mount", "mount %s has its target below %s", mount->name, covered[i]);
    }
    for (guint i = 0; i < index; i++) {
        const EbContainerMount *other = g_ptr_array_index(self->mounts, i);

        if (strcmp(other->name, mount->name) == 0 || strcmp(other->target, mount->target) == 0)
            return refuse(error, "spec.mount", "mounts %s and %s share a name or target", other->name, mount->name);
    }
    return TRUE;
}

static gboolean
validate_labels(const EbContainerSpec *self, GError **error)
{
    GHashTableIter iter;
    gpointer key;
    gpointer value;

    if (g_hash_table_size(self->labels) > LABELS_MAX)
        return refuse(error, "spec.label", "%s has more than %d labels", self->name, LABELS_MAX);
    g_hash_table_iter_init(&iter, self->labels);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        if (!is_name(key))
            return refuse(error, "spec.label", "%s has a label with a bad name", self->name);
        if (strlen(value) > LABEL_VALUE_MAX || !g_utf8_validate(value, -1, NULL) || strpbrk(value, "\r\n") != NULL)
            return refuse(error, "spec.label", "label %s of %s has a bad value", (const char *)key, self->name);
    }
    return TRUE;
}

gboolean
eb_container_spec_validate(const EbContainerSpec *self, GError **error)
{
    g_return_val_if_fail(self != NULL, FALSE);
    if (!is_name(self->name))
        return refuse(error, "spec.name", "bad instance name (small letters, digits, dashes, 63 at most)");
    if (self->image == NULL || self->image[0] == '\0' || strlen(self->image) > 255 ||
        strpbrk(self->image, " \t\r\n") != NULL)
        return refuse(error, "spec.image", "instance %s has no proper image name", self->name);
    if (self->memory_bytes == 0)
        return refuse(error, "spec.memory", "instance %s has no memory limit", self->name);
    if (self->cpus == 0 || self->pids == 0)
        return refuse(error, "spec.limits", "instance %s has no cpu or no pids limit", self->name);
    if (self->agent_uid == G_MAXUINT32 || self->agent_gid == G_MAXUINT32 ||
        (self->agent_uid == 0) != (self->agent_gid == 0))
        return refuse(error, "spec.agent-id", "instance %s has half an agent id", self->name);
    if (self->mounts->len > MOUNTS_MAX)
        return refuse(error, "spec.mount", "%s has more than %d mounts", self->name, MOUNTS_MAX);
    for (guint i = 0; i < self->mounts->len; i++) {
        if (!validate_mount(self, i, error))
            return FALSE;
    }
    return validate_labels(self, error);
}

/* --- the other values --- */

EbExecSpec *
eb_exec_spec_new(const char *const *argv)
{
    EbExecSpec *self = g_new0(EbExecSpec, 1);

    self->argv = g_strdupv((char **)argv);
    return self;
}

EbExecSpec *
eb_exec_spec_copy(const EbExecSpec *self)
{
    EbExecSpec *copy;

    g_return_val_if_fail(self != NULL, NULL);
    copy = g_memdup2(self, sizeof(*self));
    copy->argv = g_strdupv(self->argv);
    copy->cwd = g_strdup(self->cwd);
    return copy;
}

void
eb_exec_spec_free(EbExecSpec *self)
{
    if (self == NULL)
        return;
    g_strfreev(self->argv);
    g_free(self->cwd);
    g_free(self);
}

EbInstanceInfo *
eb_instance_info_new(const char *name)
{
    EbInstanceInfo *self = g_new0(EbInstanceInfo, 1);

    self->name = g_strdup(name);
    self->state = EB_INSTANCE_UNKNOWN;
    self->labels = string_table_new();
    return self;
}

void
eb_instance_info_free(EbInstanceInfo *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_hash_table_unref(self->labels);
    g_free(self->location);
    g_free(self->image);
    g_free(self);
}

EbImageInfo *
eb_image_info_new(const char *alias)
{
    EbImageInfo *self = g_new0(EbImageInfo, 1);

    self->alias = g_strdup(alias);
    self->properties = string_table_new();
    return self;
}

void
eb_image_info_free(EbImageInfo *self)
{
    if (self == NULL)
        return;
    g_free(self->alias);
    g_free(self->fingerprint);
    g_hash_table_unref(self->properties);
    g_free(self);
}

static void
probe_item_free(gpointer data)
{
    EbProbeItem *item = data;

    g_free(item->guarantee);
    g_free(item->degraded_id);
    g_free(item->detail);
    g_free(item);
}

EbProbeReport *
eb_probe_report_new(const char *server, const char *access)
{
    EbProbeReport *self = g_new0(EbProbeReport, 1);

    self->server = g_strdup(server);
    self->access = g_strdup(access);
    self->items = g_ptr_array_new_with_free_func(probe_item_free);
    return self;
}

void
eb_probe_report_add(EbProbeReport *self, const char *guarantee, gboolean enforced, const char *degraded_id,
                    const char *detail)
{
    EbProbeItem *item;

    g_return_if_fail(self != NULL && guarantee != NULL);
    item = g_new0(EbProbeItem, 1);
    item->guarantee = g_strdup(guarantee);
    item->enforced = enforced;
    item->degraded_id = g_strdup(degraded_id);
    item->detail = g_strdup(detail != NULL ? detail : "");
    g_ptr_array_add(self->items, item);
}

void
eb_probe_report_free(EbProbeReport *self)
{
    if (self == NULL)
        return;
    g_free(self->server);
    g_free(self->access);
    g_ptr_array_unref(self->items);
    g_free(self);
}
