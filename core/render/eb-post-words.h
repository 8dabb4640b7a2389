/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/* Words for posts that carry data, for chats that show messages alone. Pure; texts are not yet prepared for any chat. */

/** eb_post_words: (transfer full) (nullable): for GUEST, READY, PLAN and PERMISSION from their data, else the post's own
 *  text; NULL when there is nothing worth a message. */
char *eb_post_words(const EbChatPost *post);

/** EbTextPrepare: as EbChatLimits.prepare; (nullable) stands for an unchanged copy. */
typedef char *(*EbTextPrepare)(const char *text);
/** eb_post_prepare: (transfer full): @text through @prepare. */
char *eb_post_prepare(const char *text, EbTextPrepare prepare);

/**
 * eb_post_words_fenced: (transfer full): @body as a code block behind @title that takes at most @max_units (at least 64)
 * with all that is around it, prepared; what does not fit is left out line by line and counted in a last line.
 * @title: (nullable): a line before it
 * @info: (nullable): language of the block
 * @keep_end: TRUE: the last lines are kept instead of the first
 */
char *eb_post_words_fenced(const char *title, const char *info, const char *body, guint max_units, gboolean keep_end,
                           EbTextPrepare prepare);

G_END_DECLS
