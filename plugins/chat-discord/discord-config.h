/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_CONFIG_MAX_IDS: entries of one list of ids. */
#define DISCORD_CONFIG_MAX_IDS 1000
/** DISCORD_CONFIG_LATE_MS, DISCORD_CONFIG_LATE_MAX_MS: late_age when absent; its upper end. */
#define DISCORD_CONFIG_LATE_MS (15 * 60 * G_GUINT64_CONSTANT(1000))
#define DISCORD_CONFIG_LATE_MAX_MS (7 * 24 * 3600 * G_GUINT64_CONSTANT(1000))

/** DiscordConfig: the table [plugin.chat-discord]. */
typedef struct {
    char *token_name; /* credential */
    char *channel_id;
    EbChatPolicy policy; /* all of it owned */
    char *warning;       /* (nullable): what an operator should know and may want */
} DiscordConfig;

/** discord_config_is_present: FALSE when nothing is configured: the plugin is on by default and then does nothing. */
gboolean discord_config_is_present(EbConfigSection *section);
/**
 * discord_config_read: checks everything and reports all problems at once, each with file and line. Ids are checked to
 * be ids: a name is refused, and no list is ever taken for an empty one.
 *
 * Returns: (transfer full) (nullable): NULL with EB_ERROR_CONFIG "discord.config"
 */
DiscordConfig *discord_config_read(EbConfigSection *section, GError **error);
void discord_config_free(DiscordConfig *self);

/** discord_is_snowflake: an id as Discord writes them: 15 to 20 digits, no zero in front, within 64 bits. */
gboolean discord_is_snowflake(const char *text);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordConfig, discord_config_free)

G_END_DECLS
