/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** eb_text_units: length of @text (valid UTF-8) in UTF-16 code units; @length: bytes, -1 when NUL-terminated. */
gsize eb_text_units(const char *text, gssize length);

/**
 * eb_text_cut: where to cut one line of valid UTF-8 so that what is before takes at most @room units (at least 2).
 * @prose: prefers spaces, and keeps addresses, mentions, links and code within the line whole as far as possible
 *
 * Never within a grapheme cluster unless one alone is longer than @room; never within a character.
 *
 * Returns: bytes, at least one character's unless @length is 0
 */
gsize eb_text_cut(const char *line, gsize length, gsize room, gboolean prose);

/** eb_text_cut_all: (transfer full): @text cut to @room units at a grapheme border, with "…" when something is left out. */
char *eb_text_cut_all(const char *text, gsize room);

G_END_DECLS
