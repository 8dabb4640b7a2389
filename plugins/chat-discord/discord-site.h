/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_API_BASE, DISCORD_MOCK_ENV: where the service is; the variable that points tests at a stand-in. */
#define DISCORD_API_BASE "https://discord.com/api/v10"
#define DISCORD_MOCK_ENV "ERRAND_DISCORD_MOCK_URL"

/**
 * DiscordSite: which service this is: Discord, or in a test a stand-in on a loopback address. Decides what may be
 * connected to; everything that opens a connection asks here first. Pure.
 */
typedef struct {
    char *api_base; /* without a slash at the end */
    gboolean mock;
} DiscordSite;

/**
 * discord_site_new: (transfer full) (nullable)
 * @mock_url: (nullable): value of DISCORD_MOCK_ENV; NULL or "" = Discord itself
 * @token: refused with a @mock_url unless it begins with "mock", and without one if it does
 *
 * A mock URL is http://ADDRESS:PORT[/PATH], ADDRESS a literal of 127.0.0.0/8 or [::1], without user info, query or
 * fragment; anything else is EB_ERROR_CONFIG "discord.mock-url".
 */
DiscordSite *discord_site_new(const char *mock_url, EbSecret *token, GError **error);
void discord_site_free(DiscordSite *self);
/**
 * discord_site_check_gateway: may the token be sent to the websocket @url? Discord: wss, host gateway.discord.gg or below
 * discord.gg; stand-in: ws on a loopback literal. EB_ERROR_DENIED "discord.gateway-url".
 */
gboolean discord_site_check_gateway(const DiscordSite *self, const char *url, GError **error);
/**
 * discord_site_check_attachment: may a file be fetched from @url? Discord: https, cdn.discordapp.com or
 * media.discordapp.net, port 443; stand-in: http on a loopback literal. EB_ERROR_DENIED "discord.attachment-url".
 */
gboolean discord_site_check_attachment(const DiscordSite *self, const char *url, GError **error);
/** discord_site_check_address: may a connection that was made lead to @address? Discord: never an internal one. */
gboolean discord_site_check_address(const DiscordSite *self, GInetAddress *address, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordSite, discord_site_free)

G_END_DECLS
