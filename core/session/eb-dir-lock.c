/* SPDX-License-Identifier: MIT */
#include "core/session/eb-dir-lock.h"

#include "core/session/eb-lock-holder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file removed between open and flock is tried again; more than this many times is no coincidence. */
#define MAX_TRIES 20

struct _EbDirLock {
    int fd;
    char *path;
};

static char *
read_holder(int fd)
{
    char text[EB_LOCK_TEXT_MAX + 1] = "";
    g_autofree char *id = NULL;
    pid_t pid = 0;
    if (pread(fd, text, sizeof text - 1, 0) <= 0 || !eb_lock_text_parse(text, &pid, &id))
        return g_strdup("another process");
    return id != NULL ? g_strdup_printf("process %d (instance %s)", (int)pid, id)
                      : g_strdup_printf("process %d", (int)pid);
}

static gboolean
is_still_there(int fd, const char *path)
{
    struct stat ours, named;
    return fstat(fd, &ours) == 0 && lstat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

EbDirLock *
eb_dir_lock_take(const char *dir, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    for (guint tries = 0; tries < MAX_TRIES; tries++) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            eb_set_error(error, errno == ENOSPC || errno == EDQUOT ? EB_ERROR_QUOTA : EB_ERROR_DENIED, "lock.open",
                         "cannot open the lock %s: %s", path, g_strerror(errno));
            return NULL;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            g_autofree char *holder = read_holder(fd);
            close(fd);
            eb_set_error(error, EB_ERROR_LOCKED, "lock.held", "%s holds %s", holder, path);
            return NULL;
        }
        if (!is_still_there(fd, path)) {
            close(fd);
            continue;
        }
        g_autofree char *pid = g_strdup_printf("%d\n", (int)getpid());
        if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, strlen(pid), 0) < 0) {
            /* For people alone; a full disk does not weaken the lock. */
        }
        EbDirLock *self = g_new0(EbDirLock, 1);
        self->fd = fd;
        self->path = g_steal_pointer(&path);
        return self;
    }
    eb_set_error(error, EB_ERROR_BUSY, "lock.busy", "the lock %s keeps changing hands", path);
    return NULL;
}

void
eb_dir_lock_set_id(EbDirLock *self, const char *id)
{
    g_autofree char *text = g_strdup_printf("%d %s\n", (int)getpid(), id);
    if (pwrite(self->fd, text, strlen(text), 0) < 0) {
        /* For people alone, as above. */
    }
}

void
eb_dir_lock_release(EbDirLock *self)
{
    if (self == NULL)
        return;
    /* Removed while still held: who opened it meanwhile sees that it is no longer there and tries again. */
    unlink(self->path);
    close(self->fd);
    g_free(self->path);
    g_free(self);
}

EbDirLockState
eb_dir_lock_look(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    /* Root looks too, and the account may have put a pipe there, which would never open. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? EB_DIR_LOCK_ABSENT : EB_DIR_LOCK_UNKNOWN;
    EbDirLockState state = EB_DIR_LOCK_FREE;
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        state = errno == EWOULDBLOCK ? EB_DIR_LOCK_HELD : EB_DIR_LOCK_UNKNOWN;
    close(fd);
    return state;
}

gboolean
eb_dir_lock_is_held(const char *dir, const char *name)
{
    return eb_dir_lock_look(dir, name) == EB_DIR_LOCK_HELD;
}
