/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** EbDiffLimits: bounds of one diff; a text beyond max_bytes is only counted. */
typedef struct {
    gsize max_bytes; /* of either side */
    guint max_lines; /* of the result; the rest is counted in a last line */
    guint max_width; /* bytes of a line */
    guint context;   /* unchanged lines around a change */
} EbDiffLimits;
/** EB_DIFF_LIMITS_DEFAULT: 512 KiB, 120 lines, 240 bytes, 2 lines. */
extern const EbDiffLimits EB_DIFF_LIMITS_DEFAULT;

/**
 * eb_diff_unified:
 * @old_text: (nullable): NULL = new file
 * @limits: (nullable)
 * @added: (out), @removed: (out): lines, of the whole change
 *
 * Returns: (transfer full): hunks in unified form without file header; "" when nothing changed.
 */
char *eb_diff_unified(const char *old_text, const char *new_text, const EbDiffLimits *limits, guint *added,
                      guint *removed);

G_END_DECLS
