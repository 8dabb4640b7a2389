/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_POST_MAX_TEXT: code points of one message. */
#define DISCORD_POST_MAX_TEXT 2000
/** DISCORD_POST_MAX_FILES, DISCORD_POST_MAX_FILE_BYTES: of one message, without anything paid for. */
#define DISCORD_POST_MAX_FILES 10
#define DISCORD_POST_MAX_FILE_BYTES (10 * G_GUINT64_CONSTANT(1024) * 1024)

/**
 * discord_post_text: the content of the message that shows @post: the sign of its kind, whom it notifies, its text. A text
 * that does not fit is cut and says so; what is before the text gives way to it. Pure.
 * @first: no message shows it yet: an edit would notify nobody
 *
 * Returns: (transfer full) (nullable): NULL when there is nothing to read in it
 */
char *discord_post_text(const EbChatPost *post, gboolean first);
/**
 * discord_post_body: a message object without files: content, allowed_mentions, flags; for a new one the reference to what
 * it answers as well. Nothing in it can ping anybody but those of post->notify and post->notify_also. Pure.
 * @text: (nullable): from discord_post_text()
 */
JsonObject *discord_post_body(const EbChatPost *post, const char *text, gboolean first);
/** discord_post_check_files: EB_ERROR_QUOTA "discord.files" says which file does not fit. */
gboolean discord_post_check_files(const EbChatPost *post, GError **error);

/** DISCORD_POST_MAX_NOTIFY: people whom one message notifies; further ones are left out. */
#define DISCORD_POST_MAX_NOTIFY 10
/** discord_list_people: (transfer full) (element-type utf8, not owned): the ids among them, each once. @first, @more: (nullable) */
GPtrArray *discord_list_people(const char *first, GPtrArray *more);
/** discord_mention: (transfer full): "<@1> <@2> ", "" for nobody */
char *discord_mention(GPtrArray *people);
/** discord_silence_mentions: sets allowed_mentions of @body: @notify: (nullable): the ids that may be notified */
void discord_silence_mentions(JsonObject *body, GPtrArray *notify);

G_END_DECLS
