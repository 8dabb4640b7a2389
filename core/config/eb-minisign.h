/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * Signatures as the program minisign makes them (its format is described at its own pages): Ed25519 over the BLAKE2b of
 * the file. The older kind over the file itself is refused: it cannot be checked while a file is read.
 */

#define EB_MINISIGN_KEY_ID_BYTES 8
#define EB_MINISIGN_PUBLIC_KEY_BYTES 32
#define EB_MINISIGN_SIGNATURE_BYTES 64
/** EB_MINISIGN_HASH_BYTES: of the BLAKE2b that is signed. */
#define EB_MINISIGN_HASH_BYTES 64
/** EB_MINISIGN_MAX_BYTES: longest signature file: minisign's own limits of the two comments, and the signatures. */
#define EB_MINISIGN_MAX_BYTES 10240

/** EbMinisignKey: a public key. */
typedef struct {
    guint8 id[EB_MINISIGN_KEY_ID_BYTES];
    guint8 key[EB_MINISIGN_PUBLIC_KEY_BYTES];
} EbMinisignKey;

/** EbMinisignSignature: what a signature file holds. */
typedef struct {
    guint8 key_id[EB_MINISIGN_KEY_ID_BYTES];
    guint8 signature[EB_MINISIGN_SIGNATURE_BYTES];
    guint8 global[EB_MINISIGN_SIGNATURE_BYTES]; /* over signature and trusted comment */
    char *trusted_comment;                      /* without "trusted comment: " */
} EbMinisignSignature;

/** eb_minisign_key_parse: @text: the one line "RW..." of a public key file. */
gboolean eb_minisign_key_parse(const char *text, EbMinisignKey *key, GError **error);
/** eb_minisign_key_id: (transfer full): the id as minisign prints it: 16 hex digits. */
char *eb_minisign_key_id(const guint8 *id);

/** eb_minisign_signature_parse: (transfer full) (nullable): @length: bytes, no NUL needed */
EbMinisignSignature *eb_minisign_signature_parse(const char *text, gsize length, GError **error);
void eb_minisign_signature_free(EbMinisignSignature *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbMinisignSignature, eb_minisign_signature_free)

/** EbMinisignHash: takes in a file piece by piece. */
typedef struct _EbMinisignHash EbMinisignHash;

EbMinisignHash *eb_minisign_hash_new(void);
void eb_minisign_hash_update(EbMinisignHash *self, const void *data, gsize length);
/** eb_minisign_hash_end: once, after all of it. @hash: (out): EB_MINISIGN_HASH_BYTES */
void eb_minisign_hash_end(EbMinisignHash *self, guint8 *hash);
void eb_minisign_hash_free(EbMinisignHash *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbMinisignHash, eb_minisign_hash_free)

/**
 * eb_minisign_verify: the signature of the file, then that of the trusted comment.
 * @what: names the file in the error
 * @hash: of the file
 *
 * Returns: FALSE with EB_ERROR_INTEGRITY; for another key's signature it names both key ids.
 */
gboolean eb_minisign_verify(const char *what, const EbMinisignSignature *signature, const EbMinisignKey *key,
                            const guint8 *hash, GError **error);

G_END_DECLS
