/* SPDX-License-Identifier: MIT */
/*
 * What is told before an event is decoded: most of what a busy server sends is of other channels, or of ourselves, and is
 * not worth it. Whatever is not certain here is decoded and judged by what handles it.
 */
#include "discord-transport-private.h"

#include <string.h>

enum { PEEK_CHANNEL, PEEK_ID, PEEK_AUTHOR, PEEK_GUILD, PEEK_EDITED, N_PEEKS };

gboolean
discord_transport_wants(const DiscordGatewayFrame *frame, const char *text, gpointer user_data)
{
    DiscordTransport *self = user_data;
    DiscordPeek peeks[N_PEEKS] = {
        {"channel_id", ""}, {"id", ""}, {"author.id", ""}, {"guild_id", ""}, {"edited_timestamp", ""}};
    gboolean create = strcmp(frame->type, "MESSAGE_CREATE") == 0;

    if (!create && strcmp(frame->type, "MESSAGE_UPDATE") != 0)
        return discord_transport_handles(frame->type);
    discord_gateway_frame_peek(text, frame, peeks, G_N_ELEMENTS(peeks));
    DiscordPlace place = discord_threads_place(self->threads, peeks[PEEK_CHANNEL].text);
    gboolean own = self->user_id != NULL && strcmp(peeks[PEEK_AUTHOR].text, self->user_id) == 0;
    if (place == DISCORD_PLACE_OTHER)
        return FALSE;
    /* A preview of a link, or our own work: no person changed anything. */
    if (!create)
        return peeks[PEEK_EDITED].text[0] != '\0' && !own;
    if (!own || place == DISCORD_PLACE_UNKNOWN || self->stopping || self->failed || self->guild_id == NULL ||
        strcmp(peeks[PEEK_GUILD].text, self->guild_id) != 0 || !discord_is_snowflake(peeks[PEEK_ID].text) ||
        g_hash_table_contains(self->unknown, peeks[PEEK_CHANNEL].text))
        return TRUE;
    discord_transport_emit_texts(self, "seen", place == DISCORD_PLACE_THREAD ? peeks[PEEK_CHANNEL].text : NULL,
                                 peeks[PEEK_ID].text);
    return FALSE;
}
