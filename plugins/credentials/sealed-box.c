/* SPDX-License-Identifier: MIT */
#include "sealed-box.h"

#include <sodium.h>
#include <string.h>

#define KEY_BYTES 32
#define CONTEXT "ebsealed"

G_STATIC_ASSERT(KEY_BYTES == crypto_kdf_KEYBYTES);
G_STATIC_ASSERT(KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
G_STATIC_ASSERT(SEALED_NONCE_BYTES == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
G_STATIC_ASSERT(SEALED_TAG_BYTES == crypto_aead_xchacha20poly1305_ietf_ABYTES);
G_STATIC_ASSERT(SEALED_SALT_BYTES == crypto_pwhash_argon2id_SALTBYTES);

/* What is derived from the file's key. */
enum {
    SUBKEY_CIPHER = 1,
    SUBKEY_CHECK = 2,
};

void
sealed_header_new(SealedHeader *header, SealedKdf kdf)
{
    memset(header, 0, sizeof *header);
    header->kdf = kdf;
    if (kdf == SEALED_KDF_PASSPHRASE) {
        header->passes = SEALED_NEW_PASSES;
        header->memory_kib = SEALED_NEW_MEMORY_KIB;
    }
    randombytes_buf(header->salt, sizeof header->salt);
}

static int
stretch(const SealedHeader *header, const EbSecretView *material, guint8 *key)
{
    static GMutex one_at_a_time;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&one_at_a_time);

    return crypto_pwhash_argon2id(key, KEY_BYTES, material->bytes, material->length, header->salt, header->passes,
                                  (gsize)header->memory_kib * 1024, crypto_pwhash_argon2id_ALG_ARGON2ID13);
}

EbSecret *
sealed_key_derive(const SealedHeader *header, EbSecret *material, GError **error)
{
    g_auto(EbSecretView) view = eb_secret_view(material);
    guint8 *key;
    EbSecret *secret = NULL;
    int failed;

    if (header->kdf == SEALED_KDF_KEY_FILE && view.length < SEALED_KEY_FILE_MIN) {
        eb_set_error(error, EB_ERROR_CONFIG, "sealed.short-key",
                     "a key file holds at least %d random bytes: this is another file, or a part of one",
                     SEALED_KEY_FILE_MIN);
        return NULL;
    }
    key = sodium_malloc(KEY_BYTES);
    if (key == NULL) {
        eb_set_error(error, EB_ERROR_QUOTA, "secret.memory", "no protected memory for the key of sealed credentials");
        return NULL;
    }
    if (header->kdf == SEALED_KDF_PASSPHRASE)
        failed = stretch(header, &view, key);
    else
        failed = crypto_generichash(key, KEY_BYTES, (const guint8 *)view.bytes, view.length, header->salt,
                                    sizeof header->salt);
    if (failed == 0)
        secret = eb_secret_new_take("seal-key", (char *)key, KEY_BYTES, error);
    else
        eb_set_error(error, EB_ERROR_QUOTA, "sealed.memory", "no %u MiB of memory to stretch the passphrase with",
                     header->memory_kib / 1024);
    sodium_free(key);
    return secret;
}

static void
derive(EbSecret *key, guint64 id, guint8 *out, gsize length)
{
    g_auto(EbSecretView) view = eb_secret_view(key);

    crypto_kdf_derive_from_key(out, length, id, CONTEXT, (const guint8 *)view.bytes);
}

gboolean
sealed_key_fits(const SealedHeader *header, EbSecret *key)
{
    guint8 check[SEALED_CHECK_BYTES];

    derive(key, SUBKEY_CHECK, check, sizeof check);
    return sodium_memcmp(check, header->check, sizeof check) == 0;
}

GPtrArray *
sealed_open(const guint8 *bytes, gsize length, EbSecret *key, GError **error)
{
    SealedHeader header;
    GPtrArray *entries = NULL;
    unsigned long long plain_length = 0;

    if (!sealed_header_decode(bytes, length, &header, error) || !sealed_header_check_length(&header, length, error))
        return NULL;
    if (!sealed_key_fits(&header, key)) {
        eb_set_error(error, EB_ERROR_DENIED, "sealed.wrong-key", "it was sealed with another %s",
                     header.kdf == SEALED_KDF_PASSPHRASE ? "passphrase" : "key");
        return NULL;
    }
    guint8 *plain = sodium_malloc(header.payload + KEY_BYTES);
    if (plain == NULL) {
        eb_set_error(error, EB_ERROR_QUOTA, "secret.memory", "no protected memory for sealed credentials");
        return NULL;
    }
    guint8 *subkey = plain + header.payload;
    derive(key, SUBKEY_CIPHER, subkey, KEY_BYTES);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(plain, &plain_length, NULL, bytes + SEALED_HEADER_BYTES,
                                                   header.payload, bytes, SEALED_HEADER_BYTES, header.nonce,
                                                   subkey) == 0)
        entries = sealed_entries_decode(plain, (gsize)plain_length, error);
    else
        eb_set_error(error, EB_ERROR_INTEGRITY, "sealed.damaged",
                     "the file was changed or is damaged: put a backup in its place");
    sodium_free(plain);
    return entries;
}

GBytes *
sealed_close(const SealedHeader *given, GPtrArray *entries, EbSecret *key, GError **error)
{
    gsize size = sealed_entries_size(entries, error);
    SealedHeader header = *given;

    if (size == 0)
        return NULL;
    guint8 *plain = sodium_malloc(size + KEY_BYTES);
    if (plain == NULL) {
        eb_set_error(error, EB_ERROR_QUOTA, "secret.memory", "no protected memory for sealed credentials");
        return NULL;
    }
    guint8 *subkey = plain + size;
    guint8 *out = g_malloc(SEALED_HEADER_BYTES + size + SEALED_TAG_BYTES);
    sealed_entries_encode(entries, plain);
    derive(key, SUBKEY_CIPHER, subkey, KEY_BYTES);
    derive(key, SUBKEY_CHECK, header.check, sizeof header.check);
    randombytes_buf(header.nonce, sizeof header.nonce);
    header.payload = (guint32)(size + SEALED_TAG_BYTES);
    sealed_header_encode(&header, out);
    crypto_aead_xchacha20poly1305_ietf_encrypt(out + SEALED_HEADER_BYTES, NULL, plain, size, out, SEALED_HEADER_BYTES,
                                               NULL, header.nonce, subkey);
    sodium_free(plain);
    return g_bytes_new_take(out, SEALED_HEADER_BYTES + size + SEALED_TAG_BYTES);
}
