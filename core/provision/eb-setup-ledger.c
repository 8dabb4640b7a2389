/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-setup-ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "ledger.json"
#define NEW_NAME ".ledger.json.new"
#define SCHEMA 1

struct _EbSetupLedger {
    GPtrArray *entries; /* (element-type EbLedgerEntry): oldest first, EB_SETUP_LEDGER_MAX_ENTRIES at most */
};

static void
entry_free(gpointer data)
{
    EbLedgerEntry *entry = data;

    g_free(entry->step);
    g_free(entry->kind);
    g_free(entry->name);
    g_free(entry->before);
    g_free(entry->made);
    g_free(entry);
}

EbSetupLedger *
eb_setup_ledger_new(void)
{
    EbSetupLedger *self = g_new0(EbSetupLedger, 1);

    self->entries = g_ptr_array_new_with_free_func(entry_free);
    return self;
}

void
eb_setup_ledger_free(EbSetupLedger *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->entries);
    g_free(self);
}

static gboolean
find_index(EbSetupLedger *self, const char *kind, const char *name, guint *index)
{
    for (*index = 0; *index < self->entries->len; (*index)++) {
        const EbLedgerEntry *entry = self->entries->pdata[*index];
        if (strcmp(entry->kind, kind) == 0 && strcmp(entry->name, name) == 0)
            return TRUE;
    }
    return FALSE;
}

static gboolean
fits(const char *text)
{
    return text == NULL || (strlen(text) <= EB_SETUP_LEDGER_MAX_STRING && g_utf8_validate(text, -1, NULL));
}

gboolean
eb_setup_ledger_add(EbSetupLedger *self, const char *step, const char *kind, const char *name, const char *before,
                    const char *made, gboolean *changed, GError **error)
{
    gboolean ignored;
    EbLedgerEntry *entry;
    guint index;

    if (changed == NULL)
        changed = &ignored;
    *changed = FALSE;
    if (!fits(name) || !fits(before) || !fits(made)) {
        eb_set_error(error, EB_ERROR_QUOTA, "ledger.full", "%s %.100s is longer than the record of setup takes", kind,
                     name);
        return FALSE;
    }
    if (find_index(self, kind, name, &index)) {
        entry = self->entries->pdata[index];
        *changed = g_strcmp0(entry->made, made) != 0;
        if (*changed) {
            g_free(entry->made);
            entry->made = g_strdup(made);
        }
        return TRUE;
    }
    if (self->entries->len >= EB_SETUP_LEDGER_MAX_ENTRIES) {
        eb_set_error(error, EB_ERROR_QUOTA, "ledger.full", "the record of setup has %d entries already",
                     EB_SETUP_LEDGER_MAX_ENTRIES);
        return FALSE;
    }
    entry = g_new0(EbLedgerEntry, 1);
    entry->step = g_strdup(step);
    entry->kind = g_strdup(kind);
    entry->name = g_strdup(name);
    entry->before = g_strdup(before);
    entry->made = g_strdup(made);
    g_ptr_array_add(self->entries, entry);
    *changed = TRUE;
    return TRUE;
}

const EbLedgerEntry *
eb_setup_ledger_find(EbSetupLedger *self, const char *kind, const char *name)
{
    guint index;

    return find_index(self, kind, name, &index) ? self->entries->pdata[index] : NULL;
}

GPtrArray *
eb_setup_ledger_list(EbSetupLedger *self, const char *step)
{
    GPtrArray *list = g_ptr_array_new();

    for (guint i = self->entries->len; i > 0; i--) {
        EbLedgerEntry *entry = self->entries->pdata[i - 1];
        if (step == NULL || strcmp(entry->step, step) == 0)
            g_ptr_array_add(list, entry);
    }
    return list;
}

gboolean
eb_setup_ledger_remove(EbSetupLedger *self, const char *kind, const char *name)
{
    guint index;

    if (!find_index(self, kind, name, &index))
        return FALSE;
    g_ptr_array_remove_index(self->entries, index);
    return TRUE;
}

guint
eb_setup_ledger_get_length(EbSetupLedger *self)
{
    return self->entries->len;
}

/* --- text --- */

static gboolean
parse_entry(EbSetupLedger *self, JsonObject *object, GError **error)
{
    const char *step = eb_json_get_string(object, "step");
    const char *kind = eb_json_get_string(object, "kind");
    const char *name = eb_json_get_string(object, "name");

    if (step == NULL || kind == NULL || name == NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "ledger.text", "entry %u has no step, kind or name",
                     self->entries->len + 1);
        return FALSE;
    }
    if (eb_setup_ledger_find(self, kind, name) != NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "ledger.text", "%s %s is there twice", kind, name);
        return FALSE;
    }
    return eb_setup_ledger_add(self, step, kind, name, eb_json_get_string(object, "before"),
                               eb_json_get_string(object, "made"), NULL, error);
}

EbSetupLedger *
eb_setup_ledger_parse(const char *text, gsize length, GError **error)
{
    static const EbJsonLimits LIMITS = {EB_SETUP_LEDGER_MAX_BYTES, 8};
    g_autoptr(EbSetupLedger) self = eb_setup_ledger_new();
    g_autoptr(JsonNode) node = eb_json_parse(text, length, &LIMITS, error);
    JsonObject *root = eb_json_node_object(node);
    JsonArray *entries = eb_json_get_array(root, "entries");

    if (node == NULL)
        return NULL;
    if (entries == NULL || eb_json_get_int(root, "schema", 0) != SCHEMA) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "ledger.text", "not a record of this version of setup");
        return NULL;
    }
    for (guint i = 0; i < json_array_get_length(entries); i++)
        if (!parse_entry(self, eb_json_array_object(entries, i), error))
            return NULL;
    return g_steal_pointer(&self);
}

static JsonNode *
entry_to_json(const EbLedgerEntry *entry)
{
    JsonObject *object = json_object_new();
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_object_set_string_member(object, "step", entry->step);
    json_object_set_string_member(object, "kind", entry->kind);
    json_object_set_string_member(object, "name", entry->name);
    if (entry->before != NULL)
        json_object_set_string_member(object, "before", entry->before);
    if (entry->made != NULL)
        json_object_set_string_member(object, "made", entry->made);
    json_node_take_object(node, object);
    return node;
}

char *
eb_setup_ledger_to_text(EbSetupLedger *self)
{
    GString *text = g_string_new(NULL);

    g_string_printf(text, "{\"schema\":%d,\"entries\":[", SCHEMA);
    for (guint i = 0; i < self->entries->len; i++) {
        g_autoptr(JsonNode) node = entry_to_json(self->entries->pdata[i]);
        g_autofree char *line = eb_json_write(node, NULL);
        g_string_append_printf(text, "%s\n%s", i > 0 ? "," : "", line);
    }
    g_string_append(text, "\n]}\n");
    return g_string_free(text, FALSE);
}

/* --- file --- */

static gboolean
fail(const char *dir, GError **error)
{
    eb_set_error(error, errno == EACCES || errno == EPERM ? EB_ERROR_DENIED : EB_ERROR_FAILED, "ledger.file",
                 "%s/" FILE_NAME ": %s", dir, g_strerror(errno));
    return FALSE;
}

/* What is in the file is acted on, as root: nobody else may have had a say in it. */
static gboolean
check_owner(const char *path, const struct stat *info, GError **error)
{
    if (info->st_uid == geteuid() && (info->st_mode & 022) == 0)
        return TRUE;
    eb_set_error(
        error, EB_ERROR_INTEGRITY, "ledger.owner",
        "%s belongs to uid %u (mode %04o), others may have written it: it is not used; look at it, then remove "
        "it",
        path, (guint)info->st_uid, info->st_mode & 07777);
    return FALSE;
}

/* -1 without @error: there is no directory. */
static int
open_dir(const char *dir, GError **error)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;

    if (fd < 0) {
        if (errno != ENOENT)
            fail(dir, error);
        return -1;
    }
    if (fstat(fd, &info) == 0 && check_owner(dir, &info, error))
        return fd;
    close(fd);
    return -1;
}

/* (transfer full) (nullable): NULL without @error: there is no file. */
static char *
read_file(int dir_fd, const char *dir, gsize *length, GError **error)
{
    g_autofree char *path = g_build_filename(dir, FILE_NAME, NULL);
    g_autofree char *text = g_malloc(EB_SETUP_LEDGER_MAX_BYTES + 1);
    int fd = openat(dir_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    gssize n = -1;

    *length = 0;
    if (fd < 0) {
        if (errno != ENOENT)
            fail(dir, error);
        return NULL;
    }
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        errno = EINVAL;
        fail(dir, error);
    } else if (check_owner(path, &info, error)) {
        while (*length <= EB_SETUP_LEDGER_MAX_BYTES &&
               (n = read(fd, text + *length, EB_SETUP_LEDGER_MAX_BYTES + 1 - *length)) > 0)
            *length += (gsize)n;
        if (n < 0)
            fail(dir, error);
    }
    close(fd);
    return n < 0 ? NULL : g_steal_pointer(&text);
}

EbSetupLedger *
eb_setup_ledger_load(const char *dir, GError **error)
{
    g_autoptr(GError) failure = NULL;
    int dir_fd = open_dir(dir, &failure);
    g_autofree char *text = NULL;
    EbSetupLedger *self = NULL;
    gsize length = 0;

    if (dir_fd >= 0) {
        text = read_file(dir_fd, dir, &length, &failure);
        close(dir_fd);
    }
    if (failure == NULL)
        self = text != NULL ? eb_setup_ledger_parse(text, length, &failure) : eb_setup_ledger_new();
    if (failure != NULL && text != NULL)
        g_prefix_error(&failure, "%s/" FILE_NAME ": ", dir);
    if (self == NULL)
        g_propagate_error(error, g_steal_pointer(&failure));
    return self;
}

static gboolean
write_all(int fd, const char *text, gsize length)
{
    while (length > 0) {
        gssize n = write(fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return FALSE;
        text += n;
        length -= (gsize)n;
    }
    return TRUE;
}

static gboolean
replace_file(int dir_fd, const char *text)
{
    int fd;
    gboolean ok;

    /* What an interrupted run left. */
    unlinkat(dir_fd, NEW_NAME, 0);
    fd = openat(dir_fd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ok = fd >= 0 && write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    if (fd >= 0 && close(fd) < 0)
        ok = FALSE;
    return ok && renameat(dir_fd, NEW_NAME, dir_fd, FILE_NAME) == 0 && fsync(dir_fd) == 0;
}

gboolean
eb_setup_ledger_save(EbSetupLedger *self, const char *dir, GError **error)
{
    g_autofree char *text = eb_setup_ledger_to_text(self);
    g_autoptr(GError) failure = NULL;
    gboolean ok = TRUE;
    int dir_fd;

    if (self->entries->len > 0 && mkdir(dir, 0700) < 0 && errno != EEXIST)
        return fail(dir, error);
    dir_fd = open_dir(dir, &failure);
    if (dir_fd < 0 && failure == NULL && self->entries->len == 0)
        return TRUE;
    if (dir_fd < 0) {
        g_propagate_error(error, failure != NULL ? g_steal_pointer(&failure)
                                                 : eb_error_new(EB_ERROR_FAILED, "ledger.file", "%s is gone", dir));
        return FALSE;
    }
    if (strlen(text) > EB_SETUP_LEDGER_MAX_BYTES) {
        errno = EFBIG;
        ok = fail(dir, error);
    } else if (self->entries->len > 0) {
        ok = replace_file(dir_fd, text) || fail(dir, error);
    } else {
        unlinkat(dir_fd, NEW_NAME, 0);
        ok = unlinkat(dir_fd, FILE_NAME, 0) == 0 || errno == ENOENT || fail(dir, error);
        /* Not ours alone any more when this fails. */
        (void)rmdir(dir);
    }
    close(dir_fd);
    return ok;
}
