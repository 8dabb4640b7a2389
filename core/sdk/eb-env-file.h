/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/**
 * The KEY=VALUE files an operator hands over (creds.env, errand-box.env): one assignment a line, "#" comments, blank
 * lines, optional single or double quotes around the whole value, nothing expanded and nothing escaped.
 */

/** EbEnvEntry: one assignment. The value may be a secret: its memory is wiped when the entry is freed. */
typedef struct {
    char *key;   /* [A-Za-z_][A-Za-z0-9_]* */
    char *value; /* may be empty */
    guint line;  /* from 1 */
} EbEnvEntry;

/** EB_ENV_FILE_MAX_BYTES, EB_ENV_FILE_MAX_ENTRIES: bounds of one file. */
#define EB_ENV_FILE_MAX_BYTES (1024 * 1024)
#define EB_ENV_FILE_MAX_ENTRIES 1000

/**
 * eb_env_file_parse:
 * @text: bytes, need not be NUL-terminated
 * @length: bytes
 *
 * Returns: (transfer full) (nullable) (element-type EbEnvEntry): in the file's order; NULL with EB_ERROR_CONFIG, which
 * names the line and what is wrong with it, never a value.
 */
EB_API GPtrArray *eb_env_file_parse(const char *text, gsize length, GError **error);

/** eb_env_file_lookup: (transfer none) (nullable): value of @key. */
EB_API const char *eb_env_file_lookup(GPtrArray *entries, const char *key);

/**
 * eb_env_file_key_for_credential: (transfer full): the key that holds credential @name in a creds.env:
 * ERRAND_CHAT_TOKEN for "chat-token", ERRAND_PROVIDER_CREDENTIAL for "model-key", ERRAND_GITHUB_TOKEN for
 * "github-token", ERRAND_CRED_ACME_DISK for "acme-disk".
 */
EB_API char *eb_env_file_key_for_credential(const char *name);
/** eb_env_file_credential_for_key: (transfer full) (nullable): the other way; NULL when @key is none of these. */
EB_API char *eb_env_file_credential_for_key(const char *key);

G_END_DECLS
