/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-config.h"

G_BEGIN_DECLS

/** DISCORD_TRANSPORT_MAX_VIEWS: channels and threads with something of ours on its way. */
#define DISCORD_TRANSPORT_MAX_VIEWS 512
/** DISCORD_TRANSPORT_MAX_HELD: events that wait for somebody to listen; more of them are read back instead. */
#define DISCORD_TRANSPORT_MAX_HELD 1000
/** DISCORD_TRANSPORT_MAX_UNKNOWN: places never heard of that are asked about at a time, and events of one that wait. */
#define DISCORD_TRANSPORT_MAX_UNKNOWN 64
/** DISCORD_TRANSPORT_MAX_OPENING: threads that are being opened. */
#define DISCORD_TRANSPORT_MAX_OPENING 64
/** DISCORD_TRANSPORT_START_MS: how long a start waits for Discord before it goes on without. */
#define DISCORD_TRANSPORT_START_MS 15000
/**
 * DISCORD_TRANSPORT_FLUSH_MS, DISCORD_TRANSPORT_CLOSE_MS: of a stop: what waits is sent; the gateway is closed. A channel takes
 * four reactions a second, and a turn that ends changes two.
 */
#define DISCORD_TRANSPORT_FLUSH_MS 8000
#define DISCORD_TRANSPORT_CLOSE_MS 1500

/** DiscordTransport: EbChatTransport "discord": one channel of one Discord server, and its threads. */
#define DISCORD_TYPE_TRANSPORT (discord_transport_get_type())
G_DECLARE_FINAL_TYPE(DiscordTransport, discord_transport, DISCORD, TRANSPORT, GObject)

/**
 * discord_transport_new: connects nowhere.
 * @config: (transfer none): outlives it
 * @state_path: (nullable): file for what a restart needs to lose nothing
 */
DiscordTransport *discord_transport_new(const DiscordConfig *config, const char *state_path);
/**
 * discord_transport_start_async: connects. Done when Discord answered, or when it could not be reached in time: then it
 * goes on trying. What only an operator can change fails.
 * @mock_url: (nullable): value of DISCORD_MOCK_ENV
 */
void discord_transport_start_async(DiscordTransport *self, EbSecret *token, const char *mock_url,
                                   GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
gboolean discord_transport_start_finish(DiscordTransport *self, GAsyncResult *result, GError **error);
/** discord_transport_set_start_ms: in place of DISCORD_TRANSPORT_START_MS. For tests. */
void discord_transport_set_start_ms(DiscordTransport *self, guint ms);
/** discord_transport_stop_async: sends what waits, within bounds, and leaves the connection so that it can be resumed. */
void discord_transport_stop_async(DiscordTransport *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);
gboolean discord_transport_stop_finish(DiscordTransport *self, GAsyncResult *result, GError **error);

G_END_DECLS
