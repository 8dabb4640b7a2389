/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** The range that Debian's own package writes for root: room for 15,000 guests with ids of their own. */
#define EB_ID_RANGES_ROOT "root:1000000:1000000000"
/** EB_ID_RANGES_MIN: a range that one guest and incusd's own default fit in; less is as good as none. */
#define EB_ID_RANGES_MIN (65536 * 8)

/** eb_id_ranges_largest: size of the largest range of @owner in the text of a subuid(5) file (nullable); 0 = none. */
guint64 eb_id_ranges_largest(const char *text, const char *owner);

/** eb_id_ranges_contains: @owner has a range with @id in it. */
gboolean eb_id_ranges_contains(const char *text, const char *owner, guint64 id);

G_END_DECLS
