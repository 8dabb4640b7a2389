/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_image_trial_async: starts a throw-away guest from an image and proves in it, as a session would use it, that the
 * launcher runs and that each program answers --version. The guest and its directory are gone at the end, however it
 * comes; the launcher holds the guest's life, so that it ends with this program too.
 *
 * @alias: the image
 * @programs: (array zero-terminated=1): commands on the guest's PATH
 * @sessions_dir: a directory whose subdirectories the backend may mount; made when missing
 */
void eb_image_trial_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *programs,
                          const char *sessions_dir, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data);
/** eb_image_trial_finish: (transfer full) (nullable): "NAME VERSION" a line; NULL with what does not work in @error. */
char *eb_image_trial_finish(GAsyncResult *result, GError **error);

G_END_DECLS
