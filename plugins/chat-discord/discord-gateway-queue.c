/* SPDX-License-Identifier: MIT */
#include "discord-gateway-queue.h"

void
discord_gateway_item_free(DiscordGatewayItem *self)
{
    g_clear_pointer(&self->payload, g_bytes_unref);
    g_clear_error(&self->error);
    g_free(self->text);
    g_free(self);
}

static gsize
item_bytes(const DiscordGatewayItem *item)
{
    return item->payload != NULL ? g_bytes_get_size(item->payload) : 0;
}

void
discord_gateway_queue_push(DiscordGatewayQueue *self, DiscordGatewayItem *item)
{
    self->bytes += item_bytes(item);
    g_queue_push_tail(&self->items, item);
}

DiscordGatewayItem *
discord_gateway_queue_pop(DiscordGatewayQueue *self)
{
    DiscordGatewayItem *item = g_queue_pop_head(&self->items);
    if (item != NULL)
        self->bytes -= item_bytes(item);
    return item;
}

void
discord_gateway_queue_clear(DiscordGatewayQueue *self)
{
    DiscordGatewayItem *item;
    while ((item = discord_gateway_queue_pop(self)) != NULL)
        discord_gateway_item_free(item);
}

gboolean
discord_gateway_queue_is_full(const DiscordGatewayQueue *self)
{
    return self->items.length >= DISCORD_GATEWAY_QUEUE_MAX || self->bytes >= DISCORD_GATEWAY_QUEUE_BYTES;
}

gboolean
discord_gateway_queue_is_low(const DiscordGatewayQueue *self)
{
    return self->items.length <= DISCORD_GATEWAY_QUEUE_MAX / 2 && self->bytes <= DISCORD_GATEWAY_QUEUE_BYTES / 2;
}
