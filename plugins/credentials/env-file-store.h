/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbCredentialsEnvFileStore: credentials in creds.env files.
 *
 * Looked up in each file in turn; written to the first. Files are read anew for each lookup, so that a change needs no
 * signal and no secret stays in memory for nothing.
 */
#define EB_TYPE_CREDENTIALS_ENV_FILE_STORE (eb_credentials_env_file_store_get_type())
G_DECLARE_FINAL_TYPE(EbCredentialsEnvFileStore, eb_credentials_env_file_store, EB, CREDENTIALS_ENV_FILE_STORE, GObject)

/**
 * eb_credentials_env_file_store_new: (transfer full)
 * @paths: (array zero-terminated=1): absolute paths, at least one
 * @account: name of the account that may own them besides root
 */
EbCredentialsEnvFileStore *eb_credentials_env_file_store_new(const char *const *paths, const char *account);

G_END_DECLS
