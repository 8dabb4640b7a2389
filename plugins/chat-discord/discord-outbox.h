/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-rest.h"

G_BEGIN_DECLS

/** DISCORD_OUTBOX_MAX: requests that may wait for one thread; further ones are refused with EB_ERROR_QUOTA. */
#define DISCORD_OUTBOX_MAX 600
/** DISCORD_OUTBOX_MAX_BYTES: of files that may wait for one thread; further ones are refused in the same way. */
#define DISCORD_OUTBOX_MAX_BYTES (64 * 1024 * 1024)
/** DISCORD_OUTBOX_CALL_PATIENCE_MS: what a call gets that has none: a limit of its own must not hold up the posts. */
#define DISCORD_OUTBOX_CALL_PATIENCE_MS 90000

/**
 * DiscordOutbox: what is on its way into one channel or thread, strictly in order: one request at a time, a change of a
 * message that waits is replaced by a later change of the same one, what can never be shown is given up and the rest goes
 * on, what may be shown later waits for the service to come back: by itself, again and again, and at once when
 * discord_outbox_resume() tells.
 *
 * Every body gets allowed_mentions that allow none when it has none, and a reply never fails for a message that is gone.
 * What a thread has archived is unarchived once for what must be written to it. Requests with limits that no header shows
 * (renames) do not belong here: they would hold up the posts behind them.
 *
 * Signal: "gone" (const char *state): the thread cannot be written to any more: archived (and not to be opened again by
 * us), deleted, or lost (no access: what waits fails at once, and so do new ones within the next minute).
 */
#define DISCORD_TYPE_OUTBOX (discord_outbox_get_type())
G_DECLARE_FINAL_TYPE(DiscordOutbox, discord_outbox, DISCORD, OUTBOX, GObject)

DiscordOutbox *discord_outbox_new(DiscordRest *rest, const char *channel_id);
/** discord_outbox_close: everything that waits ends with EB_ERROR_CANCELLED, and so do later ones. */
void discord_outbox_close(DiscordOutbox *self);
/**
 * discord_outbox_create_async: a new message. @body: (transfer full): everything but nonce; @files: (nullable)
 * discord_outbox_create_finish: (transfer full): its id
 */
void discord_outbox_create_async(DiscordOutbox *self, JsonObject *body, GPtrArray *files, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
char *discord_outbox_create_finish(DiscordOutbox *self, GAsyncResult *result, GError **error);
/** discord_outbox_edit_async: @body: (transfer full) */
void discord_outbox_edit_async(DiscordOutbox *self, const char *message_id, JsonObject *body, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
gboolean discord_outbox_edit_finish(DiscordOutbox *self, GAsyncResult *result, GError **error);
/** discord_outbox_call_async: @request: (transfer full): any other that must keep its place (a reaction, an archive). */
void discord_outbox_call_async(DiscordOutbox *self, DiscordRequest *request, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
/** discord_outbox_call_finish: (transfer full) (nullable) */
JsonNode *discord_outbox_call_finish(DiscordOutbox *self, GAsyncResult *result, GError **error);
/** discord_outbox_resume: the service is back: what waits is tried again. */
void discord_outbox_resume(DiscordOutbox *self);
/** discord_outbox_get_queued: requests that wait or are under way. */
guint discord_outbox_get_queued(DiscordOutbox *self);

G_END_DECLS
