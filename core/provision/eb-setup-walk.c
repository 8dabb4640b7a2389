/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-setup-private.h"

/* Root works below directories of the service's account, which can put a link in the place of any of them at any moment. So
 * root goes there step by step with descriptors, and takes the word of a link only where root alone could have made it. */

/* Of the directory itself: who else could put a link into it? In a sticky one nobody replaces what is root's. */
static gboolean
is_roots(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && (info.st_uid == 0 || info.st_uid == geteuid()) &&
           ((info.st_mode & 022) == 0 || (info.st_mode & S_ISVTX) != 0);
}

static int
step(int parent, const char *name, gboolean trusted)
{
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;

    if (fd >= 0 || (errno != ENOTDIR && errno != ELOOP))
        return fd;
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (!S_ISLNK(info.st_mode) || !trusted || (info.st_uid != 0 && info.st_uid != geteuid())) {
        errno = S_ISLNK(info.st_mode) ? ELOOP : ENOTDIR;
        return -1;
    }
    return openat(parent, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int
eb_setup_open_directory(const char *path, GError **error)
{
    g_auto(GStrv) names = g_strsplit(path, "/", -1);
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    gboolean trusted = TRUE;

    for (guint i = 0; fd >= 0 && names[i] != NULL; i++) {
        int next;
        if (*names[i] == '\0' || strcmp(names[i], ".") == 0)
            continue;
        trusted = trusted && is_roots(fd);
        next = step(fd, names[i], trusted);
        int saved = errno;
        close(fd);
        errno = saved;
        fd = next;
    }
    if (fd < 0)
        eb_set_error(error, errno == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_DENIED, "provision.directory", "%s: %s",
                     path,
                     errno == ELOOP ? "there is a symbolic link on the way that others than root could have made"
                                    : g_strerror(errno));
    return fd;
}

int
eb_setup_open_parent(const char *path, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(path);

    return eb_setup_open_directory(parent, error);
}
