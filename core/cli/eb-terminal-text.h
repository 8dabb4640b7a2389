/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * What may reach an operator's terminal. Much of what the commands print was said by somebody else: the service's account,
 * who may be taken over, a guest through it, a backup, a daemon.
 */

/**
 * eb_terminal_text_clean: @text with every control, format and separator character but newline and tab, and every byte
 * that is no UTF-8, shown as \xNN. Returns: (transfer full)
 */
char *eb_terminal_text_clean(const char *text);

/**
 * eb_terminal_text_json: a JSON document that means the same and has none of those characters in it (DEL, C1, format and
 * separators become \uNNNN). @json: well-formed, in UTF-8. Returns: (transfer full)
 */
char *eb_terminal_text_json(const char *json);

G_END_DECLS
