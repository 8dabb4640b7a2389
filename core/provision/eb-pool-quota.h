/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_pool_quota_is_due: TRUE when the file system mounted at @mount is a btrfs that could count by owner ("simple
 * quotas", Linux 6.7) and does not. FALSE also when it cannot be seen from here.
 */
gboolean eb_pool_quota_is_due(const char *mount);

/**
 * eb_pool_quota_enable_simple: lets a btrfs file system count by owner and not by extents shared: the end of a guest costs
 * the kernel a hundredth, and a guest's limit holds for what it wrote itself, not for its image. Kernels before 6.7
 * cannot mount the file system any more.
 * @mount: where it is mounted; nothing may be on it yet, earlier files are counted for nobody
 *
 * Returns: FALSE with EB_ERROR_FAILED (reason "pool.quota")
 */
gboolean eb_pool_quota_enable_simple(const char *mount, GError **error);

G_END_DECLS
