/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbImageCacheCount: what a sweep found. */
typedef struct {
    guint found;   /* builds that are too old, and what killed builds left */
    guint removed; /* of these */
    guint64 bytes; /* that went, or would go */
} EbImageCacheCount;

/**
 * eb_image_cache_sweep:
 * @cache_dir: (nullable): NULL = eb_image_default_cache(); absence is no failure
 * @max_age_s: builds made longer ago go
 * @plan: counts alone
 *
 * As who builds images: root. A directory that others may write is left alone (EB_ERROR_DENIED). While a build runs it is
 * EB_ERROR_BUSY. Blocks.
 */
gboolean eb_image_cache_sweep(const char *cache_dir, gint64 max_age_s, gboolean plan, EbImageCacheCount *count,
                              GError **error);

G_END_DECLS
