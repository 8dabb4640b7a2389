/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * discord_text_prepare: (transfer full): Markdown of an agent as it may be shown: valid UTF-8; control characters and bidi
 * overrides made visible or dropped; mentions broken; masked links written out; code left as it is but for what Discord
 * would act on inside it. Idempotent. Pure.
 *
 * Mentions of people, roles and everybody and clickable commands are broken by an invisible U+200B, also within code. A
 * link that hides its target is written as "text (<url>)"; where the text cannot be changed (code between backticks) the
 * same U+200B keeps it from being one. Fenced code keeps its links: it shows them as they are written. Every fence becomes
 * one of three backticks on a line of its own (behind spaces, "> " or the mark of a list), the only kind that Discord
 * knows, and nothing else looks like one: backticks that would open code far away are escaped, so that the reader and
 * Discord agree on what is code.
 */
char *discord_text_prepare(const char *text);
/**
 * discord_text_show_people: (transfer full): @text, prepared, with its "<@ID>" whole again, so that people read names: for
 * what errand-box itself says, in messages whose allowed_mentions notify nobody. Roles and everybody stay broken. Pure.
 */
char *discord_text_show_people(const char *text);
/** discord_text_escape: (transfer full): plain text as it looks the same in Discord's Markdown; for names and titles. */
char *discord_text_escape(const char *text);
/** discord_text_title: (transfer full): the name of a thread: one line, 1 to 100 code points. */
char *discord_text_title(const char *text);

G_END_DECLS
