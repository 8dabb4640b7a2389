/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EnvFile: one creds.env, read whole. */
typedef struct {
    char *path;
    char *text; /* NUL-terminated, wiped when freed */
    gsize length;
    GPtrArray *entries; /* (element-type EbEnvEntry) */
    guint32 uid, gid;   /* of the file */
} EnvFile;

void env_file_free(EnvFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EnvFile, env_file_free)

/**
 * env_file_read: (transfer full) (nullable): blocks.
 * @extra_uid: an owner that is fine besides root and the running user
 *
 * EB_ERROR_NOT_FOUND: no such file. EB_ERROR_DENIED with reason "credentials.unreadable": it is not ours to read; with
 * "credentials.exposed": others could read or change it, so that it is not used.
 */
EnvFile *env_file_read(const char *path, guint32 extra_uid, GError **error);

/**
 * env_file_edit: (transfer full) (nullable): the new text of a file: @key set to @value, or left out when @value is
 * NULL. All other lines stay as they are. @text: (nullable)
 */
char *env_file_edit(const char *text, const char *key, const char *value, gsize value_length, GError **error);

/** env_file_write: replaces @path atomically with mode 0600; blocks. @uid, @gid: the owner when run by root. */
gboolean env_file_write(const char *path, const char *text, guint32 uid, guint32 gid, GError **error);

G_END_DECLS
