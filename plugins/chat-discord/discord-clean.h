/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** DISCORD_ZWSP: U+200B, put between two characters that must not act together and should look as if nothing was there. */
#define DISCORD_ZWSP "\xe2\x80\x8b"

/**
 * discord_clean: (transfer full): @text as characters a person can see: valid UTF-8; no control character but newline and
 * tab; terminal sequences gone; what turns the reading direction shown as {U+202E}; invisible characters gone unless a
 * script or an emoji needs them, DISCORD_ZWSP among them unless it stands between two backticks. Idempotent. Pure.
 */
char *discord_clean(const char *text);
/**
 * discord_clean_cut: (transfer full): @text (valid UTF-8) with at most @max_units UTF-16 code units, "…" at its end when
 * something was left out, never cut within what is shown as one character. @max_units is at least 1.
 */
char *discord_clean_cut(const char *text, guint max_units);

G_END_DECLS
