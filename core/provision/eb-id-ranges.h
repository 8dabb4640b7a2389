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

/**
 * eb_id_ranges_without: (transfer full) (nullable): the text of a subuid(5) file without the last line that is @line; all
 * other bytes as they are. NULL: there is no such line.
 */
char *eb_id_ranges_without(const char *text, const char *line);

/** eb_id_map_overlaps: some id outside, in the text of a /proc/PID/uid_map, is in the range of the line "root:start:count". */
gboolean eb_id_map_overlaps(const char *map, const char *line);

G_END_DECLS
