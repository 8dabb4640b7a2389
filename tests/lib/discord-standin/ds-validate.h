/* SPDX-License-Identifier: MIT */
#pragma once

#include "ds-request.h"

G_BEGIN_DECLS

typedef enum { DS_BODY_CREATE, DS_BODY_EDIT, DS_BODY_INTERACTION } DsBodyKind;

/** ds_error_at: puts an error into @tree; @path: names and array positions, with dots between. */
void ds_error_at(JsonObject *tree, const char *path, const char *code, const char *message);
/** ds_validate_message: (transfer full): the tree of errors, empty when there are none; violations are recorded. */
JsonObject *ds_validate_message(DsRequest *request, JsonObject *body, DsBodyKind kind);
/** ds_validate_components: into @tree. */
void ds_validate_components(JsonArray *rows, JsonObject *tree);
/** ds_validate_embeds: into @tree. */
void ds_validate_embeds(JsonArray *embeds, JsonObject *tree);
/** ds_validate_commands: (transfer full): a list for bulk overwrite. */
JsonObject *ds_validate_commands(JsonArray *commands);
/** ds_validate_command: one command, into @tree beneath @path. */
void ds_validate_command(JsonObject *command, const char *path, JsonObject *tree);
/** ds_validate_length: text of a member: @min to @max code points when it is there. */
void ds_validate_length(JsonObject *object, const char *member, const char *path, glong min, glong max,
                        gboolean required, JsonObject *tree);
/** ds_clean_content: (transfer full): as Discord keeps it: trimmed, without what it drops. */
char *ds_clean_content(const char *text);
/** ds_is_emoji: a Unicode emoji, percent-decoded. */
gboolean ds_is_emoji(const char *text);

G_END_DECLS
