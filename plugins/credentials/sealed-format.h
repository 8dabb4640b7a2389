/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * A sealed file: SEALED_HEADER_BYTES of header, then the encrypted entries. All numbers little-endian.
 *
 *    0  8  "EBSEALED"
 *    8  2  version: 1
 *   10  1  where the key comes from: 1 passphrase (Argon2id), 2 key file (BLAKE2b)
 *   11  1  cipher: 1 = XChaCha20-Poly1305 (IETF), the whole header as additional data
 *   12  4  Argon2id: passes
 *   16  4  Argon2id: KiB of memory
 *   20 16  salt, new with each key
 *   36 24  nonce, new with each write
 *   60 16  check of the key: tells a wrong passphrase from a damaged file
 *   76  4  bytes behind the header
 *   80 16  BLAKE2b of the 80 bytes before: tells a damaged header from a wrong passphrase
 *
 * Entries: u32 number; of each u8 bytes of name, name, i64 expiry, i64 last change, u32 bytes of value, value.
 */
#define SEALED_HEADER_BYTES 96
/** SEALED_MAX_BYTES, SEALED_MAX_ENTRIES: bounds of one file. */
#define SEALED_MAX_BYTES (1024 * 1024)
#define SEALED_MAX_ENTRIES 256
#define SEALED_SALT_BYTES 16
#define SEALED_NONCE_BYTES 24
#define SEALED_CHECK_BYTES 16
#define SEALED_TAG_BYTES 16
/** Bounds of Argon2id that a file may ask for, so that none takes the host's memory or its day; and what new ones get. */
#define SEALED_MIN_MEMORY_KIB 8192
#define SEALED_MAX_MEMORY_KIB (256 * 1024)
#define SEALED_MAX_PASSES 16
#define SEALED_NEW_MEMORY_KIB (64 * 1024)
#define SEALED_NEW_PASSES 3

typedef enum {
    SEALED_KDF_PASSPHRASE = 1,
    SEALED_KDF_KEY_FILE = 2,
} SealedKdf;

typedef struct {
    SealedKdf kdf;
    guint32 passes, memory_kib; /* 0 with a key file */
    guint8 salt[SEALED_SALT_BYTES];
    guint8 nonce[SEALED_NONCE_BYTES];
    guint8 check[SEALED_CHECK_BYTES];
    guint32 payload; /* bytes */
} SealedHeader;

/**
 * sealed_header_decode: of the first @length bytes of a file. EB_ERROR_INTEGRITY "sealed.not-sealed", "sealed.truncated" or
 * "sealed.damaged"; EB_ERROR_NOT_SUPPORTED "sealed.version".
 */
gboolean sealed_header_decode(const guint8 *bytes, gsize length, SealedHeader *header, GError **error);
void sealed_header_encode(const SealedHeader *header, guint8 bytes[SEALED_HEADER_BYTES]);
/** sealed_header_check_length: does a file of @length bytes hold what its header says? */
gboolean sealed_header_check_length(const SealedHeader *header, gsize length, GError **error);

typedef struct {
    char *name;
    EbSecret *secret;        /* (owned) */
    gint64 expires, changed; /* unix seconds, 0 = none, unknown */
} SealedEntry;
SealedEntry *sealed_entry_new(const char *name, EbSecret *secret, gint64 expires, gint64 changed);
void sealed_entry_free(gpointer entry);
/** sealed_entries_find: (nullable) (transfer none) */
SealedEntry *sealed_entries_find(GPtrArray *entries, const char *name);

/** sealed_entries_decode: (transfer full) (nullable) (element-type SealedEntry): EB_ERROR_INTEGRITY "sealed.damaged". */
GPtrArray *sealed_entries_decode(const guint8 *bytes, gsize length, GError **error);
/** sealed_entries_size: bytes of the encoded @entries; 0 with EB_ERROR_QUOTA "sealed.full" beyond the bounds. */
gsize sealed_entries_size(GPtrArray *entries, GError **error);
/** sealed_entries_encode: into @out, which has room for sealed_entries_size() bytes. */
void sealed_entries_encode(GPtrArray *entries, guint8 *out);

G_END_DECLS
