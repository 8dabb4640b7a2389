/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_POOL_PLAN_MIN: below this much free space (bytes) no loop pool is made: the guest image alone takes 2 GiB. */
#define EB_POOL_PLAN_MIN (G_GUINT64_CONSTANT(8) << 30)

/**
 * eb_pool_plan_size: size of a loop pool in bytes; 0 = make none.
 * @free_bytes: of the file system it would be on
 * @asked: what the operator wants, 0 = choose: half of what is free, 200 GiB at most, whole GiB
 *
 * A loop file is sparse: a pool that promises more than is there gives guests I/O errors, so never more than is free.
 */
guint64 eb_pool_plan_size(guint64 free_bytes, guint64 asked);

G_END_DECLS
