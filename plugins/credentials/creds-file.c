/* SPDX-License-Identifier: MIT */
#include "creds-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

CredsOwner
creds_owner_of_account(const char *account)
{
    char buffer[4096];
    struct passwd entry, *found = NULL;

    if (getpwnam_r(account, &entry, buffer, sizeof buffer, &found) != 0 || found == NULL)
        return (CredsOwner){0, 0};
    return (CredsOwner){found->pw_uid, found->pw_gid};
}

CredsOwner
creds_owner_of_directory(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    struct stat info;

    if (stat(dir, &info) != 0)
        return (CredsOwner){0, 0};
    return (CredsOwner){info.st_uid, info.st_gid};
}

CredsFileId
creds_file_id(const char *path)
{
    struct stat info;

    if (path == NULL || lstat(path, &info) != 0)
        return (CredsFileId){0};
    return (CredsFileId){info.st_dev,          info.st_ino,         (guint64)info.st_size, info.st_mtim.tv_sec,
                         info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

gboolean
creds_file_id_equal(const CredsFileId *a, const CredsFileId *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void
creds_file_clear(CredsFile *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
}

static gboolean
check_owner(const char *path, const struct stat *info, CredsOwner extra, guint forbidden, gsize max_bytes,
            GError **error)
{
    if (!S_ISREG(info->st_mode)) {
        eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed",
                     "%s is not a regular file (put a file there, or move it away)", path);
        return FALSE;
    }
    if ((info->st_mode & forbidden) != 0) {
        eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed",
                     "%s can be read or written by others (mode %04o): chmod 600 it, and replace what it holds if "
                     "others had accounts here",
                     path, (guint)(info->st_mode & 07777));
        return FALSE;
    }
    if (info->st_uid != 0 && info->st_uid != geteuid() && info->st_uid != extra.uid) {
        eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed",
                     "%s belongs to uid %u: chown it to root or the service's account, and replace what it holds if "
                     "that account is not yours",
                     path, (guint)info->st_uid);
        return FALSE;
    }
    if ((guint64)info->st_size > max_bytes) {
        eb_set_error(error, EB_ERROR_CONFIG, "credentials.long",
                     "%s is longer than %" G_GSIZE_FORMAT " bytes: it is no file of ours, move it away", path,
                     max_bytes);
        return FALSE;
    }
    return TRUE;
}

gboolean
creds_file_open(CredsFile *self, const char *path, CredsOwner extra, guint forbidden, gsize max_bytes, GError **error)
{
    struct stat info;
    /* No link is followed: a link would let another directory's owner choose the file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        int saved = errno;
        if (saved == ENOENT || saved == ENOTDIR)
            eb_set_error(error, EB_ERROR_NOT_FOUND, "credentials.absent", "%s: no such file", path);
        else if (saved == ELOOP)
            eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed",
                         "%s is a symbolic link, which is not followed: put the file itself there", path);
        else
            eb_set_error(error, EB_ERROR_DENIED, "credentials.unreadable", "%s: %s", path, g_strerror(saved));
        return FALSE;
    }
    if (fstat(fd, &info) != 0 || !check_owner(path, &info, extra, forbidden, max_bytes, error)) {
        close(fd);
        return FALSE;
    }
    *self = (CredsFile){fd, (gsize)info.st_size, {info.st_uid, info.st_gid}, info.st_mtim.tv_sec};
    return TRUE;
}

gssize
creds_file_read(CredsFile *self, const char *path, void *buffer, gsize size, GError **error)
{
    gsize at = 0;

    while (at < size) {
        ssize_t got = pread(self->fd, (char *)buffer + at, size - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            eb_set_error(error, EB_ERROR_FAILED, "credentials.read", "%s: %s", path, g_strerror(errno));
            return -1;
        }
        if (got == 0)
            break;
        at += (gsize)got;
    }
    return (gssize)at;
}

static gboolean
write_all(int fd, const char *bytes, gsize length)
{
    for (gsize at = 0; at < length;) {
        ssize_t put = write(fd, bytes + at, length - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return FALSE;
        at += (gsize)put;
    }
    return fsync(fd) == 0;
}

static gboolean
fill_new(int dir, const char *name, const void *bytes, gsize length, CredsOwner owner)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    gboolean good;

    if (fd < 0)
        return FALSE;
    good = fchmod(fd, 0600) == 0 && (geteuid() != 0 || fchown(fd, owner.uid, owner.gid) == 0) &&
           write_all(fd, bytes, length);
    int saved = errno;
    close(fd);
    errno = saved;
    return good;
}

/* What a change that was killed left beside the file: values in it that nobody knows to be there. */
static void
sweep(int dir)
{
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *entry;

    if (list == NULL) {
        if (again >= 0)
            close(again);
        return;
    }
    while ((entry = readdir(list)) != NULL)
        if (g_str_has_prefix(entry->d_name, CREDS_FILE_UNFINISHED))
            unlinkat(dir, entry->d_name, 0);
    closedir(list);
}

/* Under its name at once, whole: by a rename, or by a link, which an older file of that name refuses. */
static gboolean
put_file(const char *path, const void *bytes, gsize length, CredsOwner owner, gboolean replace, GError **error)
{
    g_autofree char *dir_path = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    /* A key file is made without the lock of its directory, so that no other change may take it for a rest. */
    g_autofree char *new_name =
        g_strdup_printf("%s%08x", replace ? CREDS_FILE_UNFINISHED : ".errand-seal.", g_random_int());
    int dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    gboolean good = FALSE;

    if (dir >= 0) {
        good = fill_new(dir, new_name, bytes, length, owner) &&
               (replace ? renameat(dir, new_name, dir, name) : linkat(dir, new_name, dir, name, 0)) == 0 &&
               fsync(dir) == 0;
        int saved = errno;
        if (!good || !replace)
            unlinkat(dir, new_name, 0);
        close(dir);
        errno = saved;
    }
    if (good)
        return TRUE;
    if (errno == EEXIST)
        eb_set_error(error, EB_ERROR_EXISTS, "credentials.exists", "%s is there already", path);
    else
        eb_set_error(error, errno == EACCES || errno == EPERM || errno == EROFS ? EB_ERROR_DENIED : EB_ERROR_FAILED,
                     "credentials.write", "%s: %s", path, g_strerror(errno));
    return FALSE;
}

gboolean
creds_file_replace(const char *path, const void *bytes, gsize length, CredsOwner owner, GError **error)
{
    return put_file(path, bytes, length, owner, TRUE, error);
}

gboolean
creds_file_create(const char *path, const void *bytes, gsize length, CredsOwner owner, GError **error)
{
    return put_file(path, bytes, length, owner, FALSE, error);
}

int
creds_file_lock(const char *path, GCancellable *cancellable, GError **error)
{
    g_autofree char *dir = g_path_get_dirname(path);
    gint64 end = g_get_monotonic_time() + CREDS_LOCK_MS * G_TIME_SPAN_MILLISECOND;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            eb_set_error(error, EB_ERROR_NOT_FOUND, "credentials.absent",
                         "there is no directory %s: make it, or have it made (errand-box setup)", dir);
        else
            eb_set_error(error, EB_ERROR_DENIED, "credentials.unreadable", "%s: %s", dir, g_strerror(errno));
        return -1;
    }
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (g_get_monotonic_time() >= end || g_cancellable_is_cancelled(cancellable)) {
            eb_set_error(error, EB_ERROR_BUSY, "credentials.locked", "another program is changing credentials in %s",
                         dir);
            close(fd);
            return -1;
        }
        g_usleep(10 * 1000);
    }
    sweep(fd);
    return fd;
}

void
creds_file_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}
