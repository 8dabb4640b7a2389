/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_NEEDED: the eight permissions the bot needs in its channel, 0x4C00018C40. */
#define DISCORD_NEEDED G_GUINT64_CONSTANT(326417615936)

/**
 * discord_permissions_compute: what member @user_id may do in a channel.
 * @guild: with owner_id, roles[]; @member: with roles[], communication_disabled_until; @channel: with
 *   permission_overwrites[]
 */
guint64 discord_permissions_compute(JsonObject *guild, JsonObject *member, JsonObject *channel, const char *user_id,
                                    gint64 now_unix_ms);
/** discord_permissions_missing: (transfer full): names of those of DISCORD_NEEDED that are not in @granted; "" = none. */
char *discord_permissions_missing(guint64 granted);
/** discord_invite_url: (transfer full) */
char *discord_invite_url(const char *application_id);

G_END_DECLS
