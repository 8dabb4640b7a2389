/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-gateway-budget.h"

G_BEGIN_DECLS

/** DISCORD_GATEWAY_SAVED_MAX: longest state file that is read, bytes. */
#define DISCORD_GATEWAY_SAVED_MAX (16 * 1024)
/** DISCORD_SESSION_ID_MAX: longest one taken; Discord's have 32 characters. */
#define DISCORD_SESSION_ID_MAX 200

/** DiscordGatewaySession: what RESUME needs. No secret: it is of no use without the token. */
typedef struct {
    char *id;         /* (nullable): NULL = there is none */
    char *resume_url; /* (nullable): forgotten when it did not work */
    gint64 seq;       /* of the last event received */
} DiscordGatewaySession;

void discord_gateway_session_clear(DiscordGatewaySession *self);
/** discord_gateway_session_is_sound: TRUE when @id (nullable) can be a session's: printable ASCII, not too long. */
gboolean discord_gateway_session_is_sound(const char *id);

/** DiscordGatewayClock: both clocks at one moment, milliseconds. Only what is kept in the file goes by the wall's. */
typedef struct {
    gint64 mono;
    gint64 wall;
} DiscordGatewayClock;

/** discord_gateway_saved_write: (transfer full): the state file's text. @seq: of the last event that was handled. */
char *discord_gateway_saved_write(const DiscordGatewaySession *session, gint64 seq, guint intents,
                                  const DiscordIdentifyBudget *budget, DiscordGatewayClock now);
/**
 * discord_gateway_saved_read: whatever is odd in @text is left out: no session then, which means IDENTIFY; a session of
 * other @intents is one with the wrong events. @session and @budget are empty before. FALSE = not our file at all.
 */
gboolean discord_gateway_saved_read(const char *text, gsize length, guint intents, DiscordGatewayClock now,
                                    DiscordGatewaySession *session, DiscordIdentifyBudget *budget);

G_END_DECLS
