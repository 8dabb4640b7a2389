/* SPDX-License-Identifier: MIT */
#include "discord-gateway-info.h"

#include <string.h>

/* Discord's window is a day. */
#define RESET_MAX_MS ((gint64)24 * 60 * 60 * 1000)

gboolean
discord_gateway_info_read(JsonObject *answer, DiscordGatewayInfo *info, GError **error)
{
    JsonObject *limit = eb_json_get_object(answer, "session_start_limit");
    const char *url = eb_json_get_string(answer, "url");

    *info = (DiscordGatewayInfo){NULL};
    if (url == NULL || *url == '\0' || strlen(url) > DISCORD_GATEWAY_URL_MAX) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "discord.protocol", "Discord's API names no gateway");
        return FALSE;
    }
    info->url = g_strdup(url);
    info->shards = eb_json_get_int(answer, "shards", 1);
    info->total = MAX(eb_json_get_int(limit, "total", 0), 0);
    info->remaining = MAX(eb_json_get_int(limit, "remaining", -1), -1);
    info->reset_after = CLAMP(eb_json_get_int(limit, "reset_after", 0), 0, RESET_MAX_MS);
    return TRUE;
}

void
discord_gateway_info_clear(DiscordGatewayInfo *self)
{
    g_clear_pointer(&self->url, g_free);
}

char *
discord_gateway_url(const DiscordSite *site, const char *url, GError **error)
{
    if (!discord_site_check_gateway(site, url, error))
        return NULL;
    g_autoptr(GUri) given = g_uri_parse(url, G_URI_FLAGS_NONE, error);
    if (given == NULL)
        return NULL;
    const char *path = g_uri_get_path(given);
    g_autoptr(GUri) whole = g_uri_build(G_URI_FLAGS_NONE, g_uri_get_scheme(given), NULL, g_uri_get_host(given),
                                        g_uri_get_port(given), *path != '\0' ? path : "/", "v=10&encoding=json", NULL);
    return g_uri_to_string(whole);
}
