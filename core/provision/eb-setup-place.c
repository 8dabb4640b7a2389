/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-setup-private.h"

/* Files and directories of root's that setup puts onto the host, and takes away again. */

/* What a file of setup's is at most; a longer one that stands in its place is somebody else's. */
#define MAX_TEXT EB_SETUP_LEDGER_MAX_STRING

/* (transfer full) (nullable): a regular text file of MAX_TEXT at most, through no symbolic link; NULL with errno. */
static char *
read_text(const char *path, struct stat *info)
{
    g_autofree char *text = g_malloc(MAX_TEXT + 2);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    gsize length = 0;
    gssize n = -1;

    if (fd < 0)
        return NULL;
    if (fstat(fd, info) == 0 && S_ISREG(info->st_mode))
        while (length <= MAX_TEXT && (n = read(fd, text + length, MAX_TEXT + 1 - length)) > 0)
            length += (gsize)n;
    else
        errno = EINVAL;
    close(fd);
    if (n < 0)
        return NULL;
    text[length] = '\0';
    if (length <= MAX_TEXT && strlen(text) == length && g_utf8_validate(text, (gssize)length, NULL))
        return g_steal_pointer(&text);
    errno = EFBIG;
    return NULL;
}

static char *
digest(const char *text)
{
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);

    return g_strconcat("sha256:", sum, NULL);
}

gboolean
eb_setup_has_file(const char *path, const char *text, mode_t mode)
{
    struct stat info;
    g_autofree char *now = read_text(path, &info);

    return now != NULL && strcmp(now, text) == 0 && info.st_uid == 0 && (info.st_mode & 07777) == mode;
}

gboolean
eb_setup_place_directory(EbSetup *self, const EbSetupStep *step, const char *path, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    struct stat info;

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return TRUE;
    if (!eb_setup_place_directory(self, step, parent, error) ||
        !eb_setup_record(self, step, "directory", path, NULL, NULL, error))
        return FALSE;
    int dir = eb_setup_open_parent(path, error);
    if (dir < 0)
        return FALSE;
    int fd = -1;
    gboolean ok = mkdirat(dir, name, 0700) == 0;
    if (ok) {
        /* Whatever the umask of whoever runs setup is. */
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        ok = fd >= 0 && fchmod(fd, 0755) == 0;
    } else {
        ok = errno == EEXIST;
    }
    if (!ok)
        eb_set_error(error, EB_ERROR_FAILED, "provision.directory", "%s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    close(dir);
    return ok;
}

static gboolean
write_text(const char *path, const char *text, mode_t mode, gid_t gid, GError **error)
{
    g_autofree char *directory = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    g_autofree char *temporary = g_strdup_printf(".%s.setup-new", name);
    gsize length = strlen(text);
    int dir = eb_setup_open_directory(directory, error);
    int fd = -1;
    gboolean ok;

    if (dir < 0)
        return FALSE;
    unlinkat(dir, temporary, 0); /* what an interrupted run left */
    fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    ok = fd >= 0 && write(fd, text, length) == (gssize)length && fchown(fd, 0, gid) == 0 && fchmod(fd, mode) == 0 &&
         fsync(fd) == 0 && renameat(dir, temporary, dir, name) == 0;
    if (!ok) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.file", "%s: %s", path, g_strerror(errno));
        if (fd >= 0)
            unlinkat(dir, temporary, 0);
    }
    if (fd >= 0)
        close(fd);
    close(dir);
    return ok;
}

/* unlinkat(2) of a recorded name; 0 or errno. */
static int
remove_name(const char *path, int flags)
{
    g_autofree char *name = g_path_get_basename(path);
    int dir = eb_setup_open_parent(path, NULL);
    int code = dir >= 0 && unlinkat(dir, name, flags) == 0 ? 0 : errno;

    if (dir >= 0)
        close(dir);
    return code;
}

gboolean
eb_setup_place_file(EbSetup *self, const EbSetupStep *step, const char *path, const char *text, mode_t mode, gid_t gid,
                    GError **error)
{
    g_autofree char *directory = g_path_get_dirname(path);
    g_autofree char *made = digest(text);
    g_autofree char *before = NULL;
    struct stat info;

    if (!eb_setup_place_directory(self, step, directory, error))
        return FALSE;
    errno = 0;
    before = read_text(path, &info);
    if (before == NULL && errno != ENOENT) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.file",
                     "%s is in the way: %s (move it aside, then run setup again)", path,
                     errno == ELOOP || errno == EINVAL ? "it is not a regular file" : g_strerror(errno));
        return FALSE;
    }
    return eb_setup_record(self, step, "file", path, before, made, error) && write_text(path, text, mode, gid, error);
}

static EbUndone
undo_directory(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autoptr(GDir) dir = NULL;
    struct stat info;
    int code;

    if (lstat(entry->name, &info) < 0)
        return EB_UNDO_DONE;
    if (self->options.plan) {
        /* What is in it goes first, so a plan cannot tell whether it will be empty. */
        eb_findings_change(findings, "remove the directory %s, if nothing else is in it by then", entry->name);
        return EB_UNDO_DONE;
    }
    code = remove_name(entry->name, AT_REMOVEDIR);
    if (code == 0) {
        eb_findings_change(findings, "removed the directory %s", entry->name);
        return EB_UNDO_DONE;
    }
    if (code == ENOTEMPTY || code == EEXIST || code == ENOTDIR || code == ELOOP || code == EBUSY) {
        eb_findings_note(findings, "left %s: %s", entry->name,
                         code == EBUSY                      ? "something is mounted there"
                         : code == ENOTDIR || code == ELOOP ? "it is no directory any more"
                                                            : "something else is in it");
        return EB_UNDO_KEPT;
    }
    eb_set_error(error, EB_ERROR_FAILED, "provision.directory", "%s: %s", entry->name, g_strerror(code));
    return EB_UNDO_FAILED;
}

static EbUndone
undo_file(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    struct stat info = {0};
    g_autofree char *now = NULL;
    g_autofree char *sum = NULL;
    int code;

    errno = 0;
    now = read_text(entry->name, &info);
    if (now == NULL && errno == ENOENT)
        return EB_UNDO_DONE;
    sum = now != NULL ? digest(now) : NULL;
    /* The entry may be older than its file: an interrupt between the two. */
    if (now != NULL && g_strcmp0(now, entry->before) == 0)
        return EB_UNDO_DONE;
    if (entry->made != NULL && g_strcmp0(sum, entry->made) != 0) {
        eb_findings_note(findings, "left %s: it was changed since setup wrote it", entry->name);
        return EB_UNDO_KEPT;
    }
    if (entry->before != NULL)
        eb_findings_change(findings, "put %s back as it was", entry->name);
    else
        eb_findings_change(findings, "%s %s", self->options.plan ? "remove" : "removed", entry->name);
    if (self->options.plan)
        return EB_UNDO_DONE;
    if (entry->before != NULL)
        return write_text(entry->name, entry->before, info.st_mode & 07777, info.st_gid, error) ? EB_UNDO_DONE
                                                                                                : EB_UNDO_FAILED;
    code = remove_name(entry->name, 0);
    if (code == 0 || code == ENOENT)
        return EB_UNDO_DONE;
    eb_set_error(error, EB_ERROR_FAILED, "provision.file", "%s: %s", entry->name, g_strerror(code));
    return EB_UNDO_FAILED;
}

EbUndone
eb_setup_undo_place(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    if (strcmp(entry->kind, "directory") == 0)
        return undo_directory(self, entry, findings, error);
    if (strcmp(entry->kind, "file") == 0)
        return undo_file(self, entry, findings, error);
    eb_findings_note(findings, "left %s %s: this version of setup does not know what it is", entry->kind, entry->name);
    return EB_UNDO_KEPT;
}
