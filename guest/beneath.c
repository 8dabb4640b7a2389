/* SPDX-License-Identifier: MIT */
#include "guest/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
open_beneath(int base, const char *path, int flags, unsigned mode)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, base, path, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

int
beneath_open_dir(int base, const char *path, unsigned mode)
{
    char part[256];
    int here = open_beneath(base, ".", O_DIRECTORY | O_RDONLY, 0);

    while (here >= 0 && *path != '\0') {
        size_t length = strcspn(path, "/");
        if (length >= sizeof part) {
            close(here);
            return -ENAMETOOLONG;
        }
        memcpy(part, path, length);
        part[length] = '\0';
        path += length + (path[length] == '/');
        if (length == 0)
            continue;
        int next = open_beneath(here, part, O_DIRECTORY | O_RDONLY, 0);
        if (next == -ENOENT) {
            next = mkdirat(here, part, mode) < 0 && errno != EEXIST
                       ? -errno
                       : open_beneath(here, part, O_DIRECTORY | O_RDONLY, 0);
        }
        close(here);
        here = next;
    }
    return here;
}

static int
write_whole(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

/* A fresh file under a name nobody can have foreseen, then renamed over: rename replaces a link, it does not follow. */
static int
write_and_rename(int dir, const char *name, unsigned mode, const uint8_t *data, size_t size)
{
    uint64_t random;
    char temporary[48];

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    snprintf(temporary, sizeof temporary, ".errand-%016llx", (unsigned long long)random);
    int fd = open_beneath(dir, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return fd;
    int result = write_whole(fd, data, size);
    if (result == 0 && fchmod(fd, mode) < 0)
        result = -errno;
    close(fd);
    if (result == 0 && renameat(dir, temporary, dir, name) < 0)
        result = -errno;
    if (result < 0)
        unlinkat(dir, temporary, 0);
    return result;
}

int
beneath_write_file(int base, const char *path, unsigned mode, const uint8_t *data, size_t size)
{
    char parent[1100];
    const char *slash = strrchr(path, '/');
    size_t length = slash != NULL ? (size_t)(slash - path) : 0;

    if (length >= sizeof parent)
        return -ENAMETOOLONG;
    memcpy(parent, path, length);
    parent[length] = '\0';
    int dir = beneath_open_dir(base, parent, 0700);
    if (dir < 0)
        return dir;
    int result = write_and_rename(dir, slash != NULL ? slash + 1 : path, mode, data, size);
    close(dir);
    return result;
}
