/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** EbAnswerMatch: what a text is to a list of choices. */
typedef enum {
    EB_ANSWER_NONE = 0,    /* no answer: something else was said */
    EB_ANSWER_CHOICE = 1,  /* one of them */
    EB_ANSWER_UNCLEAR = 2, /* a number that is none of them, or a name that two have */
} EbAnswerMatch;

/**
 * eb_answer_match: pure. A number from 1 ("2", "2.", "2)"), or the name of a choice in any case, with space around it.
 * @labels: (element-type utf8)
 * @index: (out): from 0, for EB_ANSWER_CHOICE alone
 */
EbAnswerMatch eb_answer_match(const char *text, GPtrArray *labels, guint *index);

G_END_DECLS
