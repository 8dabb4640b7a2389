/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-cache.h"

#include "core/base/eb-tree-remove.h"
#include "core/base/eb-tree-usage.h"
#include "core/provision/eb-image-build.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOVE_DEADLINE_MS (5 * 60 * 1000)
/* Names in a cache that are looked at. */
#define MAX_ENTRIES 10000

/* A build is named by its recipe's digest, one under way "partial-": eb-image-build.c. */
static gboolean
is_too_old(int dir, const char *name, gint64 max_age_s)
{
    struct stat info;

    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode))
        return FALSE;
    if (g_str_has_prefix(name, EB_IMAGE_PARTIAL)) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        gboolean dead = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (fd >= 0)
            close(fd);
        return dead;
    }
    return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64 &&
           info.st_mtime + max_age_s < g_get_real_time() / G_USEC_PER_SEC;
}

static gboolean
sweep(int dir, gint64 max_age_s, gboolean plan, EbImageCacheCount *count, GError **error)
{
    int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    gboolean good = TRUE;

    for (guint seen = 0; stream != NULL && seen < MAX_ENTRIES && (entry = readdir(stream)) != NULL; seen++) {
        if (!is_too_old(dir, entry->d_name, max_age_s))
            continue;
        guint64 bytes = eb_tree_usage_at(dir, entry->d_name);
        count->found++;
        if (!plan && !eb_tree_remove_at(dir, entry->d_name, REMOVE_DEADLINE_MS, NULL, good ? error : NULL)) {
            good = FALSE;
            continue;
        }
        count->removed += plan ? 0 : 1;
        count->bytes += bytes;
    }
    if (stream != NULL)
        closedir(stream);
    return good;
}

static gboolean
check(int dir, const char *path, GError **error)
{
    struct stat info;

    if (fstat(dir, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 022) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "image.cache", "%s does not belong to this account alone: it is left as it is",
                 path);
    return FALSE;
}

gboolean
eb_image_cache_sweep(const char *cache_dir, gint64 max_age_s, gboolean plan, EbImageCacheCount *count, GError **error)
{
    g_autofree char *path = cache_dir != NULL ? g_strdup(cache_dir) : eb_image_default_cache();
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    gboolean good = FALSE;

    *count = (EbImageCacheCount){0};
    if (dir < 0)
        return errno == ENOENT;
    if (check(dir, path, error)) {
        int lock = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
            good = sweep(dir, max_age_s, plan, count, error);
        else
            eb_set_error(error, EB_ERROR_BUSY, "image.lock", "an image is being built in %s", path);
        if (lock >= 0)
            close(lock);
    }
    close(dir);
    return good;
}
