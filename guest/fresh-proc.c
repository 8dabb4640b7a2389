/* SPDX-License-Identifier: MIT */
#include "guest/fresh-proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define MAX_KEPT 48       /* mounts below /proc: lxcfs has eight */
#define MAX_KEPT_PATH 128 /* bytes of such a mount point */
#define MAX_MOUNTINFO_LINE 4096

struct kept {
    int fd;
    char path[MAX_KEPT_PATH];
};

/* Field five of a line of mountinfo: the mount point. Lines with octal escapes are never below /proc here. */
static const char *
mount_point(char *line)
{
    char *field = line;

    for (int i = 0; i < 4 && field != NULL; i++) {
        field = strchr(field, ' ');
        if (field != NULL)
            field++;
    }
    if (field != NULL)
        field[strcspn(field, " \n")] = '\0';
    return field;
}

/* Detached clones of everything mounted below /proc, in the order of mounting. */
static int
clone_mounts(struct kept *kept)
{
    char line[MAX_MOUNTINFO_LINE];
    int count = 0;
    FILE *table = fopen("/proc/self/mountinfo", "re");

    if (table == NULL)
        return -1;
    while (fgets(line, sizeof line, table) != NULL && count < MAX_KEPT) {
        const char *path = mount_point(line);
        if (path == NULL || strncmp(path, "/proc/", 6) != 0 || strlen(path) >= MAX_KEPT_PATH)
            continue;
        int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
        if (fd < 0)
            continue; /* hidden below another mount: not seen by anybody */
        kept[count].fd = fd;
        memcpy(kept[count].path, path, strlen(path) + 1);
        count++;
    }
    fclose(table);
    return count;
}

const char *
fresh_proc_mount(void)
{
    struct kept kept[MAX_KEPT];
    const char *wrong = NULL;

    /* Slave, not private: directories that the host plugs in later must still appear. Shared again below that:
     * rootless containers want their mounts to propagate among themselves. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0)
        return "cannot separate the mounts";
    int count = clone_mounts(kept);
    if (count < 0)
        return "cannot read the mounts";
    /* The old /proc stays below: the kernel allows a new one only where a whole one can be seen. */
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return "cannot mount /proc";
    for (int i = 0; i < count; i++) {
        if (wrong == NULL && move_mount(kept[i].fd, "", AT_FDCWD, kept[i].path, MOVE_MOUNT_F_EMPTY_PATH) < 0 &&
            errno != ENOENT)
            wrong = "cannot move a mount to the new /proc";
        close(kept[i].fd);
    }
    return wrong;
}
