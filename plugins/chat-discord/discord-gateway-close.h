/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_GATEWAY_CLOSE_KEEP: what we close with: any code but 1000 and 1001, which end the session. */
#define DISCORD_GATEWAY_CLOSE_KEEP 4000

/** DiscordGatewayClose: what a lost connection asks for. */
typedef enum {
    DISCORD_GATEWAY_CLOSE_RESUME,   /* the session goes on */
    DISCORD_GATEWAY_CLOSE_FAULT,    /* as RESUME, but something we sent was wrong: not at once, and said loudly */
    DISCORD_GATEWAY_CLOSE_IDENTIFY, /* the session is over: a new one */
    DISCORD_GATEWAY_CLOSE_LIMITED,  /* a new one, after the limit's minute */
    DISCORD_GATEWAY_CLOSE_GIVE_UP,  /* no further try can help */
} DiscordGatewayClose;

/**
 * discord_gateway_close_class: @code: as the server sent it; 0, 1005 or 1006 without one. Only the codes that Discord
 * documents as final end the connecting for good.
 */
DiscordGatewayClose discord_gateway_close_class(guint code);
/** discord_gateway_close_name: (transfer none): a few words for the log. */
const char *discord_gateway_close_name(guint code);
/** discord_gateway_close_error: (transfer full): for a code of class GIVE_UP: what to change, in one sentence. */
GError *discord_gateway_close_error(guint code);

G_END_DECLS
