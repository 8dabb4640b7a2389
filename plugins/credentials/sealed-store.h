/* SPDX-License-Identifier: MIT */
#pragma once

#include "sealed-material.h"

G_BEGIN_DECLS

/**
 * EbCredentialsSealedStore: credentials in one encrypted file. Absent until the first seal: then it holds nothing and
 * takes nothing, so that the next store is used.
 */
#define EB_TYPE_CREDENTIALS_SEALED_STORE (eb_credentials_sealed_store_get_type())
G_DECLARE_FINAL_TYPE(EbCredentialsSealedStore, eb_credentials_sealed_store, EB, CREDENTIALS_SEALED_STORE, GObject)

/** eb_credentials_sealed_store_new: (transfer full): @sources: (transfer none): copied */
EbCredentialsSealedStore *eb_credentials_sealed_store_new(const char *path, const SealedSources *sources);

G_END_DECLS
