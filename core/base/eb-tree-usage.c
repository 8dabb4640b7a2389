/* SPDX-License-Identifier: MIT */
#include "core/base/eb-tree-usage.h"

#include "core/base/eb-tree-remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    dev_t device;
    guint seen;
    guint64 blocks; /* of 512 bytes */
} Usage;

static void
add_directory(Usage *self, int parent, const char *name, guint depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while (self->seen < EB_TREE_USAGE_MAX && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (g_str_equal(entry->d_name, ".") || g_str_equal(entry->d_name, ".."))
            continue;
        self->seen++;
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_dev != self->device)
            continue;
        self->blocks += (guint64)MAX(info.st_blocks, 0);
        if (S_ISDIR(info.st_mode) && depth < EB_TREE_MAX_DEPTH)
            add_directory(self, dirfd(dir), entry->d_name, depth + 1);
    }
    closedir(dir);
}

guint64
eb_tree_usage_at(int dir_fd, const char *name)
{
    Usage self = {0};
    struct stat info;

    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    self.device = info.st_dev;
    self.blocks = (guint64)MAX(info.st_blocks, 0);
    if (S_ISDIR(info.st_mode))
        add_directory(&self, dir_fd, name, 1);
    return self.blocks * 512;
}
