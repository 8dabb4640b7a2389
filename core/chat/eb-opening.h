/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_OPENING_MAX_PROJECT: characters of a project's name. */
#define EB_OPENING_MAX_PROJECT 64
/** EB_OPENING_MAX_VALUE: bytes of the name of a model or an agent. */
#define EB_OPENING_MAX_VALUE 200

/** EbOpening: the first message of a session, taken apart. */
typedef struct {
    char *project; /* (nullable): NULL = a project of its own */
    char *model;   /* (nullable) */
    char *agent;   /* (nullable) */
    char *prompt;  /* the rest, as it was written; may be empty */
} EbOpening;

/**
 * eb_opening_parse:
 * @text: valid UTF-8
 *
 *   [NAME:] [--model X | --model=X | -m X | -m=X] [--agent X | --agent=X | -a X | -a=X] [--] PROMPT
 *
 * The options may also stand before the name. NAME is [A-Za-z0-9_][A-Za-z0-9._-]{0,63}; with anything else before the
 * colon the text is simply a prompt, and so it is when the colon is followed by what no sentence begins with: "//" (a
 * URL), another colon, a backslash, "=" or a digit ("main.c:12: error"). An option that is written wrong is an error,
 * EB_ERROR_INVALID "opening.option", which says what to write: it is never given to an agent as part of its prompt. Phones
 * write "--" as a dash; that is taken for what was meant.
 *
 * Returns: (transfer full) (nullable)
 */
EbOpening *eb_opening_parse(const char *text, GError **error);
void eb_opening_free(EbOpening *self);

/**
 * eb_opening_title: (transfer full): what the thread is called: "project: first line that is not blank", never empty, at
 * most @max_characters (16 or more), without control characters; cut at a character, with an ellipsis.
 */
char *eb_opening_title(const EbOpening *self, guint max_characters);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbOpening, eb_opening_free)

G_END_DECLS
