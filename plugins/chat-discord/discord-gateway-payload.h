/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_GATEWAY_MAX_PAYLOAD: longest payload Discord takes, bytes. */
#define DISCORD_GATEWAY_MAX_PAYLOAD 4096

/**
 * DiscordGatewayPayload: one payload that is sent. It may hold the token: it is in no log, and cleared after use.
 */
typedef struct {
    char text[DISCORD_GATEWAY_MAX_PAYLOAD + 1];
    gsize length;
    gboolean bad; /* too long, or with a token that cannot be one: not to be sent */
} DiscordGatewayPayload;

void discord_gateway_payload_heartbeat(DiscordGatewayPayload *self, gint64 seq);
void discord_gateway_payload_identify(DiscordGatewayPayload *self, EbSecret *token, guint intents);
void discord_gateway_payload_resume(DiscordGatewayPayload *self, EbSecret *token, const char *session_id, gint64 seq);
/** discord_gateway_payload_clear: wipes it. */
void discord_gateway_payload_clear(DiscordGatewayPayload *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DiscordGatewayPayload, discord_gateway_payload_clear)

G_END_DECLS
