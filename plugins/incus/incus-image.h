/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-client.h"

G_BEGIN_DECLS

/** incus_image_info_async: @alias: (nullable): one image, or all of the project. */
void incus_image_info_async(IncusClient *client, const char *alias, IncusDeadline *deadline,
                            GAsyncReadyCallback callback, gpointer user_data);
/** incus_image_info_finish: (transfer full) (nullable) (element-type EbImageInfo): empty = none */
GPtrArray *incus_image_info_finish(GAsyncResult *result, GError **error);

/**
 * incus_image_import_async: sends a split image (metadata and root file system) and points @alias at it.
 *
 * incusd names an image by the SHA-256 of both files after one another; that is computed first, and an image that is
 * there already is not sent.
 */
void incus_image_import_async(IncusClient *client, const char *alias, const char *metadata_path,
                              const char *rootfs_path, IncusDeadline *deadline, GAsyncReadyCallback callback,
                              gpointer user_data);
/** incus_image_import_finish: (transfer full) (nullable) */
EbImageInfo *incus_image_import_finish(GAsyncResult *result, GError **error);

/** incus_image_remove_async: an image that is not there is no failure. */
void incus_image_remove_async(IncusClient *client, const char *fingerprint, IncusDeadline *deadline,
                              GAsyncReadyCallback callback, gpointer user_data);
gboolean incus_image_remove_finish(GAsyncResult *result, GError **error);

G_END_DECLS
