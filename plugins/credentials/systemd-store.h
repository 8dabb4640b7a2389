/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbCredentialsSystemdStore: what the service manager hands over (LoadCredential=, SetCredentialEncrypted=): one file a
 * credential, "errand-box.NAME" or "NAME". Read-only; the manager changes it when it starts the service again.
 */
#define EB_TYPE_CREDENTIALS_SYSTEMD_STORE (eb_credentials_systemd_store_get_type())
G_DECLARE_FINAL_TYPE(EbCredentialsSystemdStore, eb_credentials_systemd_store, EB, CREDENTIALS_SYSTEMD_STORE, GObject)

/** SYSTEMD_PREFIX: of file names that are for this program alone, as the manager's own stores on disk keep them apart. */
#define SYSTEMD_PREFIX "errand-box."
/** SYSTEMD_MAX_FILES: entries of the directory that are looked at for a list. */
#define SYSTEMD_MAX_FILES 256

/** eb_credentials_systemd_store_new: (transfer full): @dir: (nullable): $CREDENTIALS_DIRECTORY; NULL = holds nothing */
EbCredentialsSystemdStore *eb_credentials_systemd_store_new(const char *dir);

G_END_DECLS
