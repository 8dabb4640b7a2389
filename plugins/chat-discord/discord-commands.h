/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-rest.h"

G_BEGIN_DECLS

/**
 * discord_commands_to_json: (transfer full) (nullable): the list as Discord takes it: names lower case, 32 characters;
 * summaries cut at 100; NULL with EB_ERROR_INVALID "discord.commands" for what Discord would refuse. Pure.
 */
JsonArray *discord_commands_to_json(const EbChatCommand *commands, gsize n_commands, GError **error);
/** discord_commands_equal: is @registered, as Discord gives it back, the same as @wanted? Pure. */
gboolean discord_commands_equal(JsonArray *wanted, JsonArray *registered);

/**
 * discord_commands_register_async: makes the commands of application and guild be @commands: asks first, since a day has
 * 200 changes.
 *
 * Errors: EB_ERROR_DENIED "discord.50001" when the bot was invited without its commands.
 */
void discord_commands_register_async(DiscordRest *rest, const char *application_id, const char *guild_id,
                                     const EbChatCommand *commands, gsize n_commands, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
/** discord_commands_register_finish: @changed: (out) (optional) */
gboolean discord_commands_register_finish(DiscordRest *rest, GAsyncResult *result, gboolean *changed, GError **error);

G_END_DECLS
