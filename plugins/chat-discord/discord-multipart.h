/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_MULTIPART_MAX_FILES, DISCORD_MULTIPART_MAX_BYTES: of one request; what the service takes at most. */
#define DISCORD_MULTIPART_MAX_FILES 10
#define DISCORD_MULTIPART_MAX_BYTES (25 * 1024 * 1024)

/**
 * discord_multipart_name: (transfer full): @name as it may stand in a header between quotes: one segment, no controls,
 * quotes or separators, at most 200 bytes, never empty. Pure.
 */
char *discord_multipart_name(const char *name);
/**
 * discord_multipart_build: (transfer full) (nullable): a multipart/form-data body: payload_json, files[0], ... Pure.
 * @payload: (nullable): gets "attachments" for the files when it has none
 * @files: (element-type EbChatFile)
 * @boundary: does not occur in the content: random
 *
 * Errors: EB_ERROR_QUOTA "discord.upload-size"
 */
GBytes *discord_multipart_build(JsonNode *payload, GPtrArray *files, const char *boundary, GError **error);

G_END_DECLS
