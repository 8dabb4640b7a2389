/* SPDX-License-Identifier: MIT */
#include "guest/tmpfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* An inode costs the guest about a kilobyte of memory: one for each 4 KiB of size bounds both together. */
#define BYTES_PER_INODE 4096u
#define MIN_INODES 1024u

enum where { WHERE_PLAIN, WHERE_TMPFS, WHERE_OTHER };

/* Whether something is mounted on @path: its device differs from its parent's. /dev is a tmpfs itself, so the file
 * system's type alone would not tell for /dev/shm. */
static int
look(const char *path, enum where *where)
{
    struct stat self;
    struct stat parent;
    struct statfs kind;
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int failure = fstat(fd, &self) < 0 || fstatat(fd, "..", &parent, 0) < 0 || fstatfs(fd, &kind) < 0 ? -errno : 0;
    close(fd);
    if (failure != 0)
        return failure;
    if (self.st_dev == parent.st_dev)
        *where = WHERE_PLAIN;
    else
        *where = kind.f_type == TMPFS_MAGIC ? WHERE_TMPFS : WHERE_OTHER;
    return 0;
}

int
tmpfs_ensure(const char *path, uint64_t size, unsigned mode)
{
    char options[96];
    enum where where = WHERE_PLAIN;
    uint64_t inodes = size / BYTES_PER_INODE > MIN_INODES ? size / BYTES_PER_INODE : MIN_INODES;
    unsigned long flags = MS_NOSUID | MS_NODEV;

    int result = look(path, &where);
    if (result == -ENOENT) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return -errno;
        result = look(path, &where);
    }
    if (result < 0 || where == WHERE_OTHER)
        return result;
    snprintf(options, sizeof options, "mode=%04o,size=%llu,nr_inodes=%llu", mode, (unsigned long long)size,
             (unsigned long long)inodes);
    if (where == WHERE_TMPFS)
        flags |= MS_REMOUNT;
    if (mount("tmpfs", path, "tmpfs", flags, options) == 0)
        return 0;
    /* A tmpfs that holds more than the new size keeps its old one. */
    return where == WHERE_TMPFS && errno == EINVAL ? 0 : -errno;
}
