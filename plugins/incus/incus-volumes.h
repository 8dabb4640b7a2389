/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-client.h"

G_BEGIN_DECLS

/**
 * incus_volumes_ensure_async: makes the custom volumes that @spec mounts and that do not exist.
 *
 * One that exists is left as it is, its size too: it holds what a session left there.
 */
void incus_volumes_ensure_async(IncusClient *client, const char *pool, const EbContainerSpec *spec,
                                IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data);
/**
 * incus_volumes_ensure_finish:
 * @made: (element-type utf8): gets the names of those that were made here, on failure too
 */
gboolean incus_volumes_ensure_finish(GAsyncResult *result, GPtrArray *made, GError **error);

/** incus_volume_path: (transfer full) */
char *incus_volume_path(IncusClient *client, const char *pool, const char *volume);

G_END_DECLS
