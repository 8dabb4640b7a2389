/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-site.h"

G_BEGIN_DECLS

/**
 * discord_download_async: one file, as discord_rest_download_async() says.
 * @site: outlives it
 * @closing: cancelled when everything ends
 */
void discord_download_async(const DiscordSite *site, const char *url, gsize max_bytes, GCancellable *closing,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** discord_download_finish: (transfer full) (nullable) */
GBytes *discord_download_finish(GAsyncResult *result, GError **error);

G_END_DECLS
