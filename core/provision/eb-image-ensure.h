/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-image-build.h"

G_BEGIN_DECLS

/**
 * eb_image_check_async: is @alias there and what today's recipe makes? Builds and changes nothing.
 * @agents: (nullable): NULL = whichever agents the image that is there says it has, else the recipe's own
 */
void eb_image_check_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *agents,
                          guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data);
/**
 * eb_image_check_finish:
 * @current: (out)
 * @detail: (out) (transfer full) (optional): one line for people
 */
gboolean eb_image_check_finish(GAsyncResult *result, gboolean *current, char **detail, GError **error);

/**
 * eb_image_ensure_async: the same, and when it is not: builds the image (or takes it from the cache) and imports it.
 * @cache_dir: (nullable): as for eb_image_build_async()
 */
void eb_image_ensure_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *agents,
                           const char *cache_dir, EbImageProgress progress, gpointer progress_data,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/**
 * eb_image_refresh_async: the same, and an image that was imported longer than @max_age_s ago is made anew from what the
 * distribution has today, even when its recipe did not change.
 */
void eb_image_refresh_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *agents,
                            const char *cache_dir, gint64 max_age_s, EbImageProgress progress, gpointer progress_data,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_image_ensure_finish: of both: @changed: (out): FALSE: was current already; @detail: (out) (transfer full) (optional) */
gboolean eb_image_ensure_finish(GAsyncResult *result, gboolean *changed, char **detail, GError **error);

G_END_DECLS
