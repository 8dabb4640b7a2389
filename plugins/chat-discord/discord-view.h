/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-outbox.h"

G_BEGIN_DECLS

/** DISCORD_VIEW_MAX_KEYS: posts of one thread that can still be changed; the oldest becomes what it shows. */
#define DISCORD_VIEW_MAX_KEYS 256
/** DISCORD_VIEW_MAX_WAITING: changes of a post that wait for its message to be there. */
#define DISCORD_VIEW_MAX_WAITING 64
/** DISCORD_VIEW_TYPING_MS: how often the typing indicator is refreshed; it lasts 10 s. */
#define DISCORD_VIEW_TYPING_MS 8000

/**
 * DiscordView: what one channel or thread shows of ours: which message shows which post, and whether we are typing there.
 *
 * Signal: "gone" (const char *state): as DiscordOutbox's
 */
#define DISCORD_TYPE_VIEW (discord_view_get_type())
G_DECLARE_FINAL_TYPE(DiscordView, discord_view, DISCORD, VIEW, GObject)

DiscordView *discord_view_new(DiscordRest *rest, const char *channel_id);
/** discord_view_get_outbox: (transfer none) */
DiscordOutbox *discord_view_get_outbox(DiscordView *self);
/**
 * discord_view_post_async: shows @post, changes what shows it already, or takes that away.
 * discord_view_post_finish: (transfer full) (nullable): id of the message; "" when nothing is to be seen
 */
void discord_view_post_async(DiscordView *self, EbChatPost *post, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data);
char *discord_view_post_finish(DiscordView *self, GAsyncResult *result, GError **error);
void discord_view_set_busy(DiscordView *self, gboolean busy);
/** discord_view_is_idle: nothing waits, nothing can be changed any more, nobody is typing: it may be forgotten. */
gboolean discord_view_is_idle(DiscordView *self);
guint discord_view_get_n_keys(DiscordView *self);

G_END_DECLS
