/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * DISCORD_GATEWAY_MAX_FRAME: longest payload taken from the gateway, bytes. Discord documents none; a GUILD_CREATE of a
 * large server has some MiB.
 */
#define DISCORD_GATEWAY_MAX_FRAME (16 * 1024 * 1024)
/** DISCORD_GATEWAY_MAX_DEPTH: deepest nesting taken; a message with components and a forwarded one has about 20. */
#define DISCORD_GATEWAY_MAX_DEPTH 64
/** DISCORD_GATEWAY_MAX_SEQ: sequence numbers beyond it (2^53) are no numbers of JSON's any more. */
#define DISCORD_GATEWAY_MAX_SEQ (G_GINT64_CONSTANT(1) << 53)

/** DiscordGatewayFrame: what is around a payload's data. The data stays text until somebody wants it. */
typedef struct {
    gint op;           /* -1: none */
    gint64 seq;        /* -1: none */
    char type[48];     /* name of the event, "" = none or longer than any there is */
    gsize data_at;     /* where "d" begins in the text */
    gsize data_length; /* bytes; 0: none */
} DiscordGatewayFrame;

/**
 * discord_gateway_frame_read: the whole @text is checked to be JSON within the limits above, its outermost level read.
 * EB_ERROR_INVALID with eb_json_parse()'s reasons. Pure.
 */
gboolean discord_gateway_frame_read(const char *text, gsize length, DiscordGatewayFrame *frame, GError **error);

/** discord_gateway_frame_parse: (transfer full) (nullable): "d" of the @text that @frame was read from. */
JsonNode *discord_gateway_frame_parse(const char *text, const DiscordGatewayFrame *frame);

/** DiscordPeek: one string that is looked for in an event's data. */
typedef struct {
    const char *member; /* "channel_id", or "author.id" of an object in it */
    char text[64];      /* "": there is none, it has escapes, or is longer */
} DiscordPeek;

/**
 * discord_gateway_frame_peek: looks for @n_peeks strings in "d" without parsing it, in one go. For what decides whether
 * it is parsed at all.
 */
void discord_gateway_frame_peek(const char *text, const DiscordGatewayFrame *frame, DiscordPeek *peeks, gsize n_peeks);

G_END_DECLS
