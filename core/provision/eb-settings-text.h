/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** The keys an operator may hand over (array zero-terminated=1). */
extern const char *const EB_CREDENTIAL_KEYS[]; /* creds.env; ERRAND_CRED_NAME besides */
extern const char *const EB_SETTING_KEYS[];    /* errand-box.env */

/**
 * eb_settings_show_key: (transfer full): @key for an error message, when it reads as the name of a variable. A token alone on
 * its line, whose base64 ends with "=", is read as a key.
 */
char *eb_settings_show_key(const char *key);
/**
 * eb_settings_check_keys: refuses a key that is not in @known, with the nearest that is.
 * @entries: (element-type EbEnvEntry)
 */
gboolean eb_settings_check_keys(GPtrArray *entries, const char *const *known, GError **error);
/** eb_settings_check_credentials: the same for creds.env, where ERRAND_CRED_NAME is any further credential. */
gboolean eb_settings_check_credentials(GPtrArray *entries, GError **error);

/** EB_SETTINGS_MARK: first line of every file that setup writes; one without it is an operator's and left alone. */
#define EB_SETTINGS_MARK "# written by errand-box setup; a later setup --env replaces it"

/**
 * eb_settings_to_toml: the settings of errand-box.env as configuration.
 * @entries: (element-type EbEnvEntry)
 *
 * Returns: (transfer full) (nullable): EB_ERROR_CONFIG when they do not make sense together.
 */
char *eb_settings_to_toml(GPtrArray *entries, GError **error);

G_END_DECLS
