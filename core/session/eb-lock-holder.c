/* SPDX-License-Identifier: MIT */
#include "core/session/eb-lock-holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_ID 64

gboolean
eb_lock_text_parse(const char *text, pid_t *pid, char **id)
{
    g_auto(GStrv) words = g_strsplit_set(text, " \n", 3);
    guint64 number;

    *id = NULL;
    if (words[0] == NULL || !g_ascii_string_to_unsigned(words[0], 10, 1, G_MAXINT, &number, NULL))
        return FALSE;
    *pid = (pid_t)number;
    for (const char *at = words[1]; at != NULL && (g_ascii_isalnum(*at) || *at == '-' || *at == '\0'); at++) {
        if (*at != '\0')
            continue;
        if (at > words[1] && at - words[1] <= MAX_ID)
            *id = g_strdup(words[1]);
        break;
    }
    return TRUE;
}

/* "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"; one that waits has "->" after the number. */
gboolean
eb_lock_table_has(const char *table, pid_t pid, dev_t device, guint64 inode)
{
    g_auto(GStrv) lines = g_strsplit(table, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        char kind[16], mode[16], access[16];
        unsigned major_number, minor_number;
        guint64 file;
        int holder;
        if (sscanf(*line, "%*d: %15s %15s %15s %d %x:%x:%" G_GUINT64_FORMAT " ", kind, mode, access, &holder,
                   &major_number, &minor_number, &file) != 7 ||
            strcmp(kind, "FLOCK") != 0 || strcmp(access, "WRITE") != 0 || holder != (int)pid || file != inode)
            continue;
        /* A file system of many devices (btrfs, overlay) tells stat(2) another number than this table. */
        if (major(device) == 0 || makedev(major_number, minor_number) == device)
            return TRUE;
    }
    return FALSE;
}

void
eb_lock_holder_clear(EbLockHolder *self)
{
    if (self->pid != 0)
        close(self->pidfd);
    g_free(self->id);
    *self = (EbLockHolder){0};
}

static gboolean
set_nobody(const char *path, GError **error)
{
    eb_set_error(error, EB_ERROR_NOT_FOUND, "lock.free", "nobody holds %s", path);
    return FALSE;
}

gboolean
eb_lock_holder_find(const char *dir, const char *name, EbLockHolder *holder, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *table = NULL;
    char text[EB_LOCK_TEXT_MAX + 1] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    gboolean held = FALSE;
    struct stat info;

    *holder = (EbLockHolder){0};
    if (fd < 0 && errno == ENOENT)
        return set_nobody(path, error);
    if (fd < 0 || fstat(fd, &info) < 0) {
        eb_set_error(error, errno == EACCES ? EB_ERROR_DENIED : EB_ERROR_UNAVAILABLE, "lock.open", "%s: %s", path,
                     g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return FALSE;
    }
    held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    gssize n = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    if (!held)
        return set_nobody(path, error);
    if (n > 0 && eb_lock_text_parse(text, &holder->pid, &holder->id)) {
        holder->pidfd = (int)syscall(SYS_pidfd_open, holder->pid, 0);
        if (holder->pidfd >= 0 && g_file_get_contents("/proc/locks", &table, NULL, NULL) &&
            eb_lock_table_has(table, holder->pid, info.st_dev, info.st_ino))
            return TRUE;
        if (holder->pidfd < 0)
            holder->pid = 0;
    }
    eb_lock_holder_clear(holder);
    eb_set_error(error, EB_ERROR_UNAVAILABLE, "lock.holder", "%s is held, but by no process that can be told", path);
    return FALSE;
}
