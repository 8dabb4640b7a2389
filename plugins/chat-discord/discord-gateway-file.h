/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** discord_gateway_file_load_async: at most @max bytes of @path; a longer file is refused. */
void discord_gateway_file_load_async(const char *path, gsize max, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
/** discord_gateway_file_load_finish: (transfer full) (nullable): EB_ERROR_NOT_FOUND, EB_ERROR_INVALID, .. */
GBytes *discord_gateway_file_load_finish(GAsyncResult *result, GError **error);

/** discord_gateway_file_save_async: @path is replaced as a whole, readable for this account alone. */
void discord_gateway_file_save_async(const char *path, const char *text, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
gboolean discord_gateway_file_save_finish(GAsyncResult *result, GError **error);

G_END_DECLS
