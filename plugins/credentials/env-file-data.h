/* SPDX-License-Identifier: MIT */
#pragma once

#include "creds-file.h"

G_BEGIN_DECLS

/** EnvFile: one creds.env, read whole. */
typedef struct {
    char *path;
    char *text; /* NUL-terminated, wiped when freed */
    gsize length;
    GPtrArray *entries; /* (element-type EbEnvEntry) */
    CredsOwner owner;
    gint64 modified; /* unix seconds */
} EnvFile;

void env_file_free(EnvFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EnvFile, env_file_free)

/** env_file_read: (transfer full) (nullable): blocks; errors of creds_file_open(), or EB_ERROR_CONFIG of the text. */
EnvFile *env_file_read(const char *path, CredsOwner extra, GError **error);

/**
 * env_file_edit: (transfer full) (nullable): the new text of a file: @key set to @value, or left out when @value is
 * NULL. All other lines stay as they are. @text: (nullable)
 */
char *env_file_edit(const char *text, const char *key, const char *value, gsize value_length, GError **error);

/** env_file_write: as creds_file_replace(). */
gboolean env_file_write(const char *path, const char *text, CredsOwner owner, GError **error);

G_END_DECLS
