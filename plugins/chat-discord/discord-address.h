/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-site.h"

G_BEGIN_DECLS

/**
 * DiscordAddress: a host and port that is connected to at addresses alone that discord_site_check_address() lets pass.
 *
 * The judged addresses are the very ones that are then connected to, so a name that resolves differently a second time
 * (DNS rebinding) gains nothing: there is no second time. The name stays what TLS verifies.
 */
#define DISCORD_TYPE_ADDRESS (discord_address_get_type())
G_DECLARE_FINAL_TYPE(DiscordAddress, discord_address, DISCORD, ADDRESS, GNetworkAddress)

/** discord_address_new: (transfer full): @site: outlives it */
GSocketConnectable *discord_address_new(const DiscordSite *site, const char *host, guint16 port);

G_END_DECLS
