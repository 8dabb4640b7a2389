/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-ask.h"

G_BEGIN_DECLS

/** DISCORD_INTERACTIONS_MAX: commands that can still be answered; beyond, the oldest is answered by a plain message. */
#define DISCORD_INTERACTIONS_MAX 200
/** DISCORD_INTERACTIONS_MAX_WAITING: answers to one command that may wait; further ones are plain messages. */
#define DISCORD_INTERACTIONS_MAX_WAITING 20
/** DISCORD_INTERACTIONS_LIFE_MS: how long Discord takes answers (15 minutes), less what a request may take. */
#define DISCORD_INTERACTIONS_LIFE_MS (14 * 60 * 1000)
/** DISCORD_INTERACTIONS_SILENCE_MS: a command that nobody has answered by then is told so. */
#define DISCORD_INTERACTIONS_SILENCE_MS (60 * 1000)
/** DISCORD_INTERACTIONS_ACK_MS: Discord takes the first sign of life within 3 s and not later. */
#define DISCORD_INTERACTIONS_ACK_MS 3000

/**
 * DiscordInteractions: slash commands and buttons. Each is acknowledged as it comes, before anybody looks at what it says,
 * and answered when there is an answer.
 *
 * Signal: "action" (EbChatMessage *message): a command; extra is {"command": NAME, "options": {NAME: TEXT}}.
 */
#define DISCORD_TYPE_INTERACTIONS (discord_interactions_get_type())
G_DECLARE_FINAL_TYPE(DiscordInteractions, discord_interactions, DISCORD, INTERACTIONS, GObject)

DiscordInteractions *discord_interactions_new(DiscordRest *rest, DiscordAsk *ask);
/** discord_interactions_set_place: @guild_id, @channel_id: (nullable): where commands act; others are refused. */
void discord_interactions_set_place(DiscordInteractions *self, const char *application_id, const char *guild_id,
                                    const char *channel_id);
/** discord_interactions_set_times: in place of DISCORD_INTERACTIONS_SILENCE_MS and _LIFE_MS. For tests. */
void discord_interactions_set_times(DiscordInteractions *self, guint silence_ms, guint life_ms);

/**
 * discord_interactions_handle: INTERACTION_CREATE of the channel (@thread NULL) or of thread @thread. One that was told
 * before, or is of another application, is dropped.
 */
void discord_interactions_handle(DiscordInteractions *self, JsonObject *interaction, const char *thread);
/** discord_interactions_refuse: answers @interaction with @text, for the one who did it alone. */
void discord_interactions_refuse(DiscordInteractions *self, JsonObject *interaction, const char *text);

/** discord_interactions_knows: is @id a command that was told? */
gboolean discord_interactions_knows(DiscordInteractions *self, const char *id);
/**
 * discord_interactions_answer_async: @post answers command @id: the first one in place of "thinking", later ones below
 * it, in the order of the calls.
 * @fallback: where it goes as a plain message when Discord does not take answers any more
 */
void discord_interactions_answer_async(DiscordInteractions *self, const char *id, EbChatPost *post,
                                       DiscordOutbox *fallback, GCancellable *cancellable, GAsyncReadyCallback callback,
                                       gpointer user_data);
/** discord_interactions_answer_finish: (transfer full) (nullable): id of the message */
char *discord_interactions_answer_finish(DiscordInteractions *self, GAsyncResult *result, GError **error);
guint discord_interactions_get_open(DiscordInteractions *self);

G_END_DECLS
