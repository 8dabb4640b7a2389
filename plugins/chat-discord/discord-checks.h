/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * discord_checks_list: (transfer full) (element-type EbDoctorCheck): E-70 to E-74: what `doctor` asks Discord.
 * @token_name: (nullable): name of the credential
 * @channel_id: (nullable): NULL = Discord is not configured, and they say so
 *
 * The token is read from the files of the env-file store. On a host that is a fixture the answers of
 * https://discord.com/api/v10 are the files below /discord.com/api/v10, "users/@me.json" for GET /users/@me.
 */
GPtrArray *discord_checks_list(const char *token_name, const char *channel_id);

G_END_DECLS
