/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>

#include "discord-gateway-frame.h"
#include "discord-gateway-payload.h"

G_BEGIN_DECLS

/**
 * DiscordGatewaySocket: one websocket, from the try to open it to its very end. It tells what happens until it is
 * closed; then it only says goodbye, holding itself, and calls gone.
 */
#define DISCORD_TYPE_GATEWAY_SOCKET (discord_gateway_socket_get_type())
G_DECLARE_FINAL_TYPE(DiscordGatewaySocket, discord_gateway_socket, DISCORD, GATEWAY_SOCKET, GObject)

typedef struct {
    void (*opened)(gpointer user_data);
    void (*received)(GBytes *payload, gpointer user_data);
    /* @code: 0 = none came; @why: (nullable): escaped. Nothing but gone comes afterwards. */
    void (*closed)(guint code, const char *why, gpointer user_data);
    void (*gone)(DiscordGatewaySocket *socket, gpointer user_data);
} DiscordGatewaySocketFuncs;

/** discord_gateway_socket_session: (transfer full): a session made for it. @direct: no proxy, for a loopback address */
SoupSession *discord_gateway_socket_session(gboolean direct);
/**
 * discord_gateway_socket_open: (transfer full): @funcs: static
 *
 * A frame longer than DISCORD_GATEWAY_MAX_FRAME ends the connection. libsoup 3.2 has no bound for the sum of a message's
 * fragments; whoever receives it judges its length again.
 */
DiscordGatewaySocket *discord_gateway_socket_open(SoupSession *session, const char *url,
                                                  const DiscordGatewaySocketFuncs *funcs, gpointer user_data);
/** discord_gateway_socket_send: what does not get through is found out by closed, or by an answer that never comes. */
void discord_gateway_socket_send(DiscordGatewaySocket *self, const DiscordGatewayPayload *payload);
/** discord_gateway_socket_close: nothing but gone is told from now on; also ends the try to open it. */
void discord_gateway_socket_close(DiscordGatewaySocket *self, guint code);
/** discord_gateway_socket_drop: as close(), without a goodbye; not even gone is told. */
void discord_gateway_socket_drop(DiscordGatewaySocket *self);

G_END_DECLS
