/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-gateway-state.h"

G_BEGIN_DECLS

/**
 * DISCORD_GATEWAY_QUEUE_MAX, DISCORD_GATEWAY_QUEUE_BYTES: how much may be received and not yet handled. libsoup reads
 * whatever comes and cannot be told to stop, so beyond this the connection is closed with a code that keeps the session,
 * and resumed when half of it was handled: Discord then sends what is missing, in order.
 */
#define DISCORD_GATEWAY_QUEUE_MAX 4096
#define DISCORD_GATEWAY_QUEUE_BYTES ((gsize)48 * 1024 * 1024)

typedef enum {
    DISCORD_GATEWAY_TELL_EVENT,
    DISCORD_GATEWAY_TELL_READY,
    DISCORD_GATEWAY_TELL_RESUMED,
    DISCORD_GATEWAY_TELL_DOWN,
    DISCORD_GATEWAY_TELL_FAILED,
} DiscordGatewayTell;

/** DiscordGatewayItem: something to be told, in the order it happened. */
typedef struct {
    DiscordGatewayTell tell;
    guint epoch;
    DiscordGatewayFrame frame; /* of the first three */
    GBytes *payload;           /* (nullable) */
    char *text;                /* (nullable) */
    GError *error;             /* (nullable) */
} DiscordGatewayItem;

void discord_gateway_item_free(DiscordGatewayItem *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordGatewayItem, discord_gateway_item_free)

/** DiscordGatewayQueue: the items; zero-filled = empty. */
typedef struct {
    GQueue items;
    gsize bytes;
} DiscordGatewayQueue;

/** discord_gateway_queue_push: @item: (transfer full) */
void discord_gateway_queue_push(DiscordGatewayQueue *self, DiscordGatewayItem *item);
/** discord_gateway_queue_pop: (transfer full) (nullable) */
DiscordGatewayItem *discord_gateway_queue_pop(DiscordGatewayQueue *self);
void discord_gateway_queue_clear(DiscordGatewayQueue *self);
/** discord_gateway_queue_is_full: no further payload may be taken. */
gboolean discord_gateway_queue_is_full(const DiscordGatewayQueue *self);
/** discord_gateway_queue_is_low: one that was full may be filled again. */
gboolean discord_gateway_queue_is_low(const DiscordGatewayQueue *self);

G_END_DECLS
