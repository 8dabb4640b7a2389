/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-rest.h"

G_BEGIN_DECLS

/** DISCORD_REACTIONS_MAX: messages whose reaction of ours is remembered; the one set longest ago makes room. */
#define DISCORD_REACTIONS_MAX 1024

/**
 * DiscordReactions: one reaction of ours on a message at most. A later wish overtakes an earlier one that was not fulfilled
 * yet; what an earlier run left is found and taken away. While Discord cannot be reached a wish waits, an hour at most.
 */
#define DISCORD_TYPE_REACTIONS (discord_reactions_get_type())
G_DECLARE_FINAL_TYPE(DiscordReactions, discord_reactions, DISCORD, REACTIONS, GObject)

DiscordReactions *discord_reactions_new(DiscordRest *rest);
/**
 * discord_reactions_set_async: @emoji: (nullable): NULL = none. That the message is gone, that its author blocked us, or
 * that the thread is archived is no error: there is nothing to be done then.
 */
void discord_reactions_set_async(DiscordReactions *self, const char *channel_id, const char *message_id,
                                 const char *emoji, GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);
gboolean discord_reactions_set_finish(DiscordReactions *self, GAsyncResult *result, GError **error);
/** discord_reactions_resume: the service is back: what waits is tried now. */
void discord_reactions_resume(DiscordReactions *self);
/** discord_reactions_close: what waits for the service to come back ends with EB_ERROR_CANCELLED. */
void discord_reactions_close(DiscordReactions *self);
guint discord_reactions_get_size(DiscordReactions *self);
/** discord_reactions_get_busy: messages whose reaction is being changed; those that wait for Discord to come back are none. */
guint discord_reactions_get_busy(DiscordReactions *self);

G_END_DECLS
