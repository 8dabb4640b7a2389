/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** EB_TEXT_SPLIT_MIN: smallest bound that eb_text_split() keeps. */
#define EB_TEXT_SPLIT_MIN 64

/** eb_text_units: length of @text (valid UTF-8) in UTF-16 code units, the way chat services count. */
gsize eb_text_units(const char *text, gssize length);

/**
 * eb_text_split:
 * @text: valid UTF-8, Markdown
 * @max_units: UTF-16 code units of a part; 0 = one part
 *
 * Cuts at line ends where possible, else at spaces, never within a character. A code fence open at a cut is closed and
 * opened again in the next part; its info string is repeated when it is short. Parts of white space alone are left out.
 *
 * Returns: (transfer full) (element-type utf8)
 */
GPtrArray *eb_text_split(const char *text, guint max_units);

G_END_DECLS
