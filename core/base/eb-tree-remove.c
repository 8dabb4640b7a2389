/* SPDX-License-Identifier: MIT */
#include "core/base/eb-tree-remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    int top_fd;
    gint64 deadline_us;
    guint64 removed;
    guint64 left;
    guint moved;
    gboolean late;
    int first_errno;
} EbTreeRemoval;

static void
note_failure(EbTreeRemoval *self)
{
    if (self->first_errno == 0)
        self->first_errno = errno;
    self->left++;
}

/* A directory of ours may forbid even us to list it. The chmod goes through the descriptor, so it cannot meet a link. */
static int
open_directory(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    int path_fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (path_fd < 0)
        return -1;
    char link[64];
    g_snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
    int saved = chmod(link, 0700) < 0 ? errno : 0;
    close(path_fd);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && saved != 0)
        errno = saved;
    return fd;
}

static gboolean empty_directory(EbTreeRemoval *self, int fd, guint depth);

static void
remove_directory(EbTreeRemoval *self, int parent, const char *name, guint depth)
{
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) {
        self->removed++;
        return;
    }
    if (depth >= EB_TREE_MAX_DEPTH) {
        char up[32];
        g_snprintf(up, sizeof up, ".eb-moved-%u", self->moved++);
        /* Counts as progress: the next pass over the top finds it there. */
        if (renameat(parent, name, self->top_fd, up) == 0)
            self->removed++;
        else
            note_failure(self);
        return;
    }
    int fd = open_directory(parent, name);
    if (fd < 0) {
        note_failure(self);
        return;
    }
    gboolean empty = empty_directory(self, fd, depth + 1);
    if (empty && unlinkat(parent, name, AT_REMOVEDIR) == 0)
        self->removed++;
    else if (empty)
        note_failure(self);
}

/* Takes @fd. FALSE when something stayed. */
static gboolean
empty_directory(EbTreeRemoval *self, int fd, guint depth)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        note_failure(self);
        close(fd);
        return FALSE;
    }
    guint64 left_before = self->left;
    struct dirent *entry;
    while (!self->late && (entry = readdir(dir)) != NULL) {
        if (g_str_equal(entry->d_name, ".") || g_str_equal(entry->d_name, ".."))
            continue;
        self->late = g_get_monotonic_time() > self->deadline_us;
        if (unlinkat(dirfd(dir), entry->d_name, 0) == 0)
            self->removed++;
        else if (errno == EISDIR || errno == EPERM)
            remove_directory(self, dirfd(dir), entry->d_name, depth);
        else if (errno != ENOENT)
            note_failure(self);
    }
    gboolean ok = !self->late && self->left == left_before;
    closedir(dir);
    return ok;
}

static gboolean
remove_passes(EbTreeRemoval *self)
{
    /* What was moved up from the depths may be seen in the next pass only; without progress there is none. */
    for (;;) {
        guint64 before = self->removed;
        self->left = 0;
        self->first_errno = 0;
        int fd = openat(self->top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            note_failure(self);
            return FALSE;
        }
        empty_directory(self, fd, 1);
        if (self->late || self->removed == before)
            return !self->late && self->left == 0;
    }
}

gboolean
eb_tree_remove_at(int dir_fd, const char *name, guint deadline_ms, guint64 *left, GError **error)
{
    g_return_val_if_fail(
        name != NULL && strchr(name, '/') == NULL && !g_str_equal(name, "..") && !g_str_equal(name, "."), FALSE);
    EbTreeRemoval self = {.deadline_us = g_get_monotonic_time() + (gint64)deadline_ms * 1000};
    if (left != NULL)
        *left = 0;
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return TRUE;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return TRUE;
    self.top_fd = open_directory(dir_fd, name);
    if (self.top_fd < 0) {
        eb_set_error(error, EB_ERROR_DENIED, "tree.remove", "cannot remove %s: %s", name, g_strerror(errno));
        return FALSE;
    }
    gboolean ok = remove_passes(&self);
    close(self.top_fd);
    if (ok && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0) {
        ok = FALSE;
        note_failure(&self);
    }
    if (left != NULL)
        *left = self.left;
    if (self.late)
        eb_set_error(error, EB_ERROR_TIMEOUT, "tree.remove", "removing %s took longer than %u s; the rest stays", name,
                     deadline_ms / 1000);
    else if (!ok)
        eb_set_error(error, EB_ERROR_DENIED, "tree.remove",
                     "%" G_GUINT64_FORMAT " entries of %s could not be removed: %s", self.left, name,
                     g_strerror(self.first_errno));
    return ok;
}
