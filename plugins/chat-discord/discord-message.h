/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-threads.h"

G_BEGIN_DECLS

/** DISCORD_MESSAGE_MAX_TEXT: bytes of one text; Discord lets nobody write more than 4000 code points. */
#define DISCORD_MESSAGE_MAX_TEXT (16 * 1024)
/** DISCORD_MESSAGE_MAX_ATTACHMENTS: of one message, forwarded ones included; Discord takes 10. */
#define DISCORD_MESSAGE_MAX_ATTACHMENTS 32
/** DISCORD_MESSAGE_MAX_IDS: ids of one deletion that are told; Discord sends 100. */
#define DISCORD_MESSAGE_MAX_IDS 200

/** DiscordVerdict: whether a message is for us, and why not. */
typedef enum {
    DISCORD_HEARD = 0,
    DISCORD_IGNORED_OWN = 1,
    DISCORD_IGNORED_BOT = 2,     /* bots are heard in threads alone, where they have to be invited */
    DISCORD_IGNORED_WEBHOOK = 3, /* nobody in particular said it */
    DISCORD_IGNORED_TYPE = 4,    /* Discord's own: joins, pins, renames */
    DISCORD_IGNORED_PLACE = 5,
    DISCORD_IGNORED_EMPTY = 6, /* nothing in it: also what comes without the Message Content intent */
    DISCORD_IGNORED_BROKEN = 7,
    DISCORD_IGNORED_UNCHANGED = 8, /* a change of what Discord adds to it, not of what the person wrote */
} DiscordVerdict;

/** DiscordListener: who listens. */
typedef struct {
    const char *user_id;     /* (nullable): of the bot */
    gboolean strip_mentions; /* in the channel, mentions of the bot are taken out of the text */
} DiscordListener;

/**
 * discord_message_read: a message object of MESSAGE_CREATE, or from the REST API. Pure.
 * @place: of its channel_id
 * @verdict: (out)
 *
 * Returns: (transfer full) (nullable): NULL when it is ignored
 */
EbChatMessage *discord_message_read(JsonObject *data, DiscordPlace place, const DiscordListener *listener,
                                    DiscordVerdict *verdict);
/** discord_message_read_edit: as discord_message_read() for MESSAGE_UPDATE, which also comes when a link got a preview. */
EbChatMessage *discord_message_read_edit(JsonObject *data, DiscordPlace place, const DiscordListener *listener,
                                         DiscordVerdict *verdict);
/** discord_message_read_deleted: (transfer container) (element-type utf8): ids in MESSAGE_DELETE or ..._BULK, unowned */
GPtrArray *discord_message_read_deleted(JsonObject *data);

/** discord_snowflake_ms: when @id was given out, Unix milliseconds; 0 when it is none. */
gint64 discord_snowflake_ms(const char *id);
/** discord_snowflake_compare: as strcmp(), by number: younger is greater. Both are snowflakes. */
int discord_snowflake_compare(const char *a, const char *b);

/** DiscordFileRef: an attachment's url as it goes through the core: enough to ask for a new one when it expired. */
typedef struct {
    char *channel_id;
    char *message_id;
    char *url;
} DiscordFileRef;
/** discord_file_ref_parse: (transfer full) (nullable): NULL with EB_ERROR_INVALID "discord.attachment" */
DiscordFileRef *discord_file_ref_parse(const char *text, GError **error);
/** discord_file_ref_find: (nullable) (transfer none): url of attachment @id in a message object */
const char *discord_file_ref_find(JsonObject *message, const char *id);
void discord_file_ref_free(DiscordFileRef *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordFileRef, discord_file_ref_free)

G_END_DECLS
