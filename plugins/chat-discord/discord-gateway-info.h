/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-site.h"

G_BEGIN_DECLS

/** DISCORD_GATEWAY_URL_MAX: longest URL of a gateway that is taken; Discord's have about 50 characters. */
#define DISCORD_GATEWAY_URL_MAX 300

/** DiscordGatewayInfo: the answer of GET /gateway/bot. */
typedef struct {
    char *url;
    gint64 shards;
    gint64 total;
    gint64 remaining;   /* -1: not told */
    gint64 reset_after; /* ms */
} DiscordGatewayInfo;

/** discord_gateway_info_read: FALSE with EB_ERROR_PROTOCOL when there is no URL in @answer (nullable). */
gboolean discord_gateway_info_read(JsonObject *answer, DiscordGatewayInfo *info, GError **error);
void discord_gateway_info_clear(DiscordGatewayInfo *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DiscordGatewayInfo, discord_gateway_info_clear)

/**
 * discord_gateway_url: (transfer full) (nullable): @url with what version and encoding is to be spoken there; NULL with
 * the error of discord_site_check_gateway() when the token may not go there.
 */
char *discord_gateway_url(const DiscordSite *site, const char *url, GError **error);

G_END_DECLS
