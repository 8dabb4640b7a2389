/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-gateway-frame.h"
#include "discord-rest.h"

G_BEGIN_DECLS

/**
 * DiscordGateway: the connection that events come by: opened, kept alive, resumed, identified anew, or given up.
 *
 * Signals:
 *   "ready" (gboolean resumed, JsonObject *data): events come from now on; data is READY's, or NULL when resumed.
 *   "dispatch" (const char *type, JsonObject *data): one event, in order, READY and RESUMED left out.
 *   "down" (const char *why): the connection is lost; it comes back by itself.
 *   "failed" (GError *error): given up: EB_ERROR_UNAUTHENTICATED or EB_ERROR_CONFIG, with what to change.
 */
#define DISCORD_TYPE_GATEWAY (discord_gateway_get_type())
G_DECLARE_FINAL_TYPE(DiscordGateway, discord_gateway, DISCORD, GATEWAY, GObject)

/**
 * discord_gateway_new:
 * @state_path: (nullable): file that keeps what RESUME needs across a restart of the service; written 0600, never
 *   trusted beyond that: whatever is wrong in it means IDENTIFY
 */
DiscordGateway *discord_gateway_new(const DiscordSite *site, DiscordRest *rest, EbSecret *token, guint intents,
                                    const char *state_path);
/**
 * DiscordGatewayFilter: is the event @frame of @text wanted? What is not is never decoded, which is most of what a busy
 * server sends; discord_gateway_frame_peek() tells enough to decide.
 */
typedef gboolean (*DiscordGatewayFilter)(const DiscordGatewayFrame *frame, const char *text, gpointer user_data);
/** discord_gateway_set_filter: @filter: (nullable): asked in order, right before "dispatch" would tell the event */
void discord_gateway_set_filter(DiscordGateway *self, DiscordGatewayFilter filter, gpointer user_data);
void discord_gateway_start(DiscordGateway *self);
/** discord_gateway_stop_async: closes so that the session can be resumed, saves the state. */
void discord_gateway_stop_async(DiscordGateway *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                gpointer user_data);
gboolean discord_gateway_stop_finish(DiscordGateway *self, GAsyncResult *result, GError **error);
gboolean discord_gateway_is_up(DiscordGateway *self);

G_END_DECLS
