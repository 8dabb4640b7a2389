/* SPDX-License-Identifier: MIT */
#include "core/base/eb-own-dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errand-box-plugin.h"

static gboolean
is_ours(const char *path, gboolean leaf, struct stat *info)
{
    if (lstat(path, info) != 0 || !S_ISDIR(info->st_mode))
        return FALSE;
    if (info->st_uid != geteuid() && (leaf || info->st_uid != 0))
        return FALSE;
    return (info->st_mode & 022) == 0 || (!leaf && (info->st_mode & S_ISVTX) != 0);
}

char *
eb_own_dir_resolve(const char *path, GError **error)
{
    char *real = realpath(path, NULL);
    g_autofree char *found = g_strdup(real);
    g_autofree char *at = g_strdup(real);

    free(real);
    if (found == NULL) {
        eb_set_error(error, errno == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_DENIED, "dir.owner", "%s: %s", path,
                     g_strerror(errno));
        return NULL;
    }
    for (gboolean leaf = TRUE;; leaf = FALSE) {
        struct stat info = {0};
        if (!is_ours(at, leaf, &info)) {
            eb_set_error(error, EB_ERROR_DENIED, "dir.owner",
                         "%s is not used: others can change %s (uid %u, mode %04o); name a directory that is %s alone",
                         path, at, (guint)info.st_uid, info.st_mode & 07777, geteuid() == 0 ? "root's" : "your own");
            return NULL;
        }
        if (geteuid() != 0 || strcmp(at, "/") == 0)
            return g_steal_pointer(&found);
        char *parent = g_path_get_dirname(at);
        g_free(at);
        at = parent;
    }
}
