/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-rest.h"

G_BEGIN_DECLS

/** DiscordStartup: what was found out before the first connection. */
typedef struct {
    char *user_id; /* of the bot */
    char *user_name;
    char *application_id;
    char *guild_id;
    char *channel_name;
    guint64 granted; /* permissions in the channel */
    char *note;      /* (nullable): works, but an operator should know */
} DiscordStartup;
void discord_startup_free(DiscordStartup *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordStartup, discord_startup_free)

/** DiscordStartupPart: what is asked; each needs those before it. */
typedef enum {
    DISCORD_STARTUP_TOKEN = 0,       /* the token works */
    DISCORD_STARTUP_APPLICATION = 1, /* Message Content granted; interactions come by the gateway */
    DISCORD_STARTUP_CHANNEL = 2,     /* there, a text channel of a guild */
    DISCORD_STARTUP_PERMISSIONS = 3, /* the eight that are needed */
} DiscordStartupPart;

/**
 * discord_startup_check_async: may the bot do its work in channel @channel_id?
 *
 * Errors: EB_ERROR_UNAUTHENTICATED "discord.unauthorized", EB_ERROR_CONFIG "discord.not-a-bot", "discord.intent",
 * "discord.interactions-url", "discord.channel", "discord.no-channel", "discord.permissions", each with one sentence that says what to change;
 * when Discord cannot be asked, what discord_rest_send_finish() says, EB_ERROR_UNAVAILABLE and the like: later it may work.
 */
void discord_startup_check_async(DiscordRest *rest, const char *channel_id, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** discord_startup_check_finish: (transfer full) (nullable) */
DiscordStartup *discord_startup_check_finish(GAsyncResult *result, GError **error);
/** discord_startup_check_until_async: as discord_startup_check_async(), up to @last and no further. */
void discord_startup_check_until_async(DiscordRest *rest, const char *channel_id, DiscordStartupPart last,
                                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);

/** DiscordStartupGet: (transfer full) (nullable): answer of GET @path, or NULL with an error as DiscordRest has it. */
typedef JsonNode *(*DiscordStartupGet)(const char *path, gpointer user_data, GError **error);
/**
 * discord_startup_check_with: the same questions and judgement with answers from elsewhere, at once.
 *
 * Returns: (transfer full) (nullable)
 */
DiscordStartup *discord_startup_check_with(DiscordStartupGet get, gpointer user_data, const char *channel_id,
                                           DiscordStartupPart last, GError **error);
/** discord_startup_blame: which part an error of a check is about; FALSE: none, Discord could not be asked. */
gboolean discord_startup_blame(const GError *error, DiscordStartupPart *part);

/** discord_startup_read_user: the answer of /users/@me. Pure, as those below. */
gboolean discord_startup_read_user(DiscordStartup *self, JsonObject *user, GError **error);
/** discord_startup_read_application: the answer of /applications/@me. */
gboolean discord_startup_read_application(DiscordStartup *self, JsonObject *application, GError **error);
gboolean discord_startup_read_channel(DiscordStartup *self, JsonObject *channel, const char *channel_id,
                                      GError **error);
gboolean discord_startup_read_permissions(DiscordStartup *self, JsonObject *guild, JsonObject *member,
                                          JsonObject *channel, const char *channel_id, gint64 now_unix_ms,
                                          GError **error);

G_END_DECLS
