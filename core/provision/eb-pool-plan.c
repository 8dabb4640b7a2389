/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-pool-plan.h"

#define GIB (G_GUINT64_CONSTANT(1) << 30)
#define LARGEST (200 * GIB)

guint64
eb_pool_plan_size(guint64 free_bytes, guint64 asked)
{
    if (free_bytes < EB_POOL_PLAN_MIN)
        return 0;
    if (asked > 0)
        return MIN(asked, free_bytes / GIB * GIB);
    return MIN(free_bytes / 2 / GIB * GIB, LARGEST);
}
