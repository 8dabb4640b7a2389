/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-pool-quota.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Of linux/btrfs.h since 6.7, which the oldest headers we build with lack. */
#define ENABLE_SIMPLE_QUOTA 4
#define FEATURE_SIMPLE_QUOTA (G_GUINT64_CONSTANT(1) << 16)

/* -1: not there, or no btrfs: the daemon may have mounted it where only itself sees it */
static int
open_pool(const char *mount)
{
    struct statfs about;
    int fd = open(mount, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (fstatfs(fd, &about) == 0 && about.f_type == BTRFS_SUPER_MAGIC)
        return fd;
    close(fd);
    errno = ENOTTY;
    return -1;
}

gboolean
eb_pool_quota_is_due(const char *mount)
{
    struct btrfs_ioctl_feature_flags supported[3], own;
    int fd = open_pool(mount);
    gboolean due;

    if (fd < 0)
        return FALSE;
    due = ioctl(fd, BTRFS_IOC_GET_SUPPORTED_FEATURES, supported) == 0 &&
          (supported[0].incompat_flags & FEATURE_SIMPLE_QUOTA) != 0 && ioctl(fd, BTRFS_IOC_GET_FEATURES, &own) == 0 &&
          (own.incompat_flags & FEATURE_SIMPLE_QUOTA) == 0;
    close(fd);
    return due;
}

gboolean
eb_pool_quota_enable_simple(const char *mount, GError **error)
{
    struct btrfs_ioctl_quota_ctl_args args = {.cmd = ENABLE_SIMPLE_QUOTA};
    int fd = open_pool(mount);
    int failure = fd < 0 || ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args) < 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (failure != 0)
        eb_set_error(error, EB_ERROR_FAILED, "pool.quota", "simple quotas cannot be enabled in %s: %s", mount,
                     g_strerror(failure));
    return failure == 0;
}
