/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * console_text_clean: (transfer full): @text as it may be written to a terminal: valid UTF-8 in which nothing is left
 * that a terminal would obey. Newline and tab stay; every other control character (C0, DEL, C1) becomes \xNN, and what
 * would turn or hide text (bidirectional controls, invisible separators) becomes \u{NNNN}.
 * @text: untrusted, @length: bytes, or -1 when NUL-terminated
 */
char *console_text_clean(const char *text, gssize length);

/** console_text_clean_line: as console_text_clean() for one line: newline and tab become blanks too. */
char *console_text_clean_line(const char *text, gssize length);

/** ConsoleStyle: how something looks; all of them are plain text without colour. */
typedef enum {
    CONSOLE_PLAIN = 0,
    CONSOLE_DIM,
    CONSOLE_BOLD,
    CONSOLE_RED,
    CONSOLE_GREEN,
    CONSOLE_CYAN,
} ConsoleStyle;

/** console_text_style: (transfer full): @text (cleaned already) in @style, each line on its own; plain without @color. */
char *console_text_style(const char *text, ConsoleStyle style, gboolean color);
/** console_text_diff: (transfer full): a unified diff, cleaned, additions green and removals red. */
char *console_text_diff(const char *diff, gboolean color);

G_END_DECLS
