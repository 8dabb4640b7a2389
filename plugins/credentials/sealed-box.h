/* SPDX-License-Identifier: MIT */
#pragma once

#include "sealed-format.h"

G_BEGIN_DECLS

/** SEALED_KEY_FILE_MIN: bytes of a key file; less is no key but a passphrase. */
#define SEALED_KEY_FILE_MIN 32

/** sealed_header_new: a header for a new key: fresh salt, the parameters of today. */
void sealed_header_new(SealedHeader *header, SealedKdf kdf);

/**
 * sealed_key_derive: (transfer full) (nullable): the file's key. Blocks; with a passphrase for a fraction of a second and
 * with the memory that the header names, one at a time in this process.
 * @material: the passphrase, or what is in the key file
 */
EbSecret *sealed_key_derive(const SealedHeader *header, EbSecret *material, GError **error);
/** sealed_key_fits: is @key the one that the file was written with? */
gboolean sealed_key_fits(const SealedHeader *header, EbSecret *key);

/**
 * sealed_open: (transfer full) (nullable) (element-type SealedEntry): of a whole file. EB_ERROR_DENIED "sealed.wrong-key"
 * when it was written with another key; EB_ERROR_INTEGRITY "sealed.damaged" when it was changed.
 */
GPtrArray *sealed_open(const guint8 *bytes, gsize length, EbSecret *key, GError **error);
/** sealed_close: (transfer full) (nullable): the whole file, with a fresh nonce. @header: salt and parameters. */
GBytes *sealed_close(const SealedHeader *header, GPtrArray *entries, EbSecret *key, GError **error);

G_END_DECLS
