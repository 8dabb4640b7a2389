/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** CONSOLE_SHOW_MAX_TOOLS: tool calls whose last status is remembered. */
#define CONSOLE_SHOW_MAX_TOOLS 4096

/** ConsoleShow: turns posts into what a terminal shows. Decides alone, writes nothing. */
typedef struct _ConsoleShow ConsoleShow;

ConsoleShow *console_show_new(gboolean color);
void console_show_free(ConsoleShow *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ConsoleShow, console_show_free)

/**
 * console_show_post: (transfer full): text for @fd, "" when there is nothing to show.
 * @fd: (out): 1 for what the agent says and does, 2 for what the service says
 * @before: (out) (transfer full) (nullable): goes to stdout first: it ends a line that the agent left open
 */
char *console_show_post(ConsoleShow *self, EbChatPost *post, int *fd, char **before);
/** console_show_break: (transfer full): a newline when the last text did not end with one, else "". */
char *console_show_break(ConsoleShow *self);

/** console_show_json: (transfer full): @post as one line of `try --json`. @question: (nullable): id of the question */
char *console_show_json(EbChatPost *post, const char *question);
/** console_show_json_question: (transfer full): @question as one line of `try --json`. */
char *console_show_json_question(EbChatQuestion *question, const char *id);
/** console_show_question: (transfer full): @question as text with numbered choices. */
char *console_show_question(EbChatQuestion *question, gboolean color);

/** console_choose: (nullable) (transfer none): the choice that text @line picks: number, id or label. */
const EbChatChoice *console_choose(EbChatQuestion *question, const char *line);
/** console_choose_kind: (nullable) (transfer none): the first choice of a kind "allow" or "reject", once before always. */
const EbChatChoice *console_choose_kind(EbChatQuestion *question, const char *kind);

G_END_DECLS
