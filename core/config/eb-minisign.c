/* SPDX-License-Identifier: MIT */
#include "core/config/eb-minisign.h"

#include <sodium.h>
#include <string.h>

#define KIND_BYTES 2
#define KEY_LINE_BYTES (KIND_BYTES + EB_MINISIGN_KEY_ID_BYTES + EB_MINISIGN_PUBLIC_KEY_BYTES)
#define SIGNATURE_LINE_BYTES (KIND_BYTES + EB_MINISIGN_KEY_ID_BYTES + EB_MINISIGN_SIGNATURE_BYTES)
#define UNTRUSTED "untrusted comment: "
#define TRUSTED "trusted comment: "
#define N_LINES 4

G_STATIC_ASSERT(EB_MINISIGN_HASH_BYTES == crypto_generichash_BYTES_MAX);
G_STATIC_ASSERT(EB_MINISIGN_PUBLIC_KEY_BYTES == crypto_sign_PUBLICKEYBYTES);
G_STATIC_ASSERT(EB_MINISIGN_SIGNATURE_BYTES == crypto_sign_BYTES);

struct _EbMinisignHash {
    crypto_generichash_state state;
};

/* Strict: nothing but the alphabet, padding where it belongs, and exactly @length bytes. */
static gboolean
decode(const char *text, guint8 *bytes, gsize length)
{
    gsize n_bytes = 0;
    const char *end = NULL;

    return sodium_base642bin(bytes, length, text, strlen(text), NULL, &n_bytes, &end, sodium_base64_VARIANT_ORIGINAL) ==
               0 &&
           n_bytes == length && *end == '\0';
}

static gboolean
fail(GError **error, const char *why)
{
    eb_set_error(error, EB_ERROR_INTEGRITY, "pins.signature", "%s", why);
    return FALSE;
}

gboolean
eb_minisign_key_parse(const char *text, EbMinisignKey *key, GError **error)
{
    guint8 bytes[KEY_LINE_BYTES];

    if (!decode(text, bytes, sizeof bytes) || memcmp(bytes, "Ed", KIND_BYTES) != 0)
        return fail(error, "this is no public key of minisign (one line that begins with \"RW\")");
    memcpy(key->id, bytes + KIND_BYTES, sizeof key->id);
    memcpy(key->key, bytes + KIND_BYTES + sizeof key->id, sizeof key->key);
    return TRUE;
}

char *
eb_minisign_key_id(const guint8 *id)
{
    GString *text = g_string_new(NULL);

    for (guint i = EB_MINISIGN_KEY_ID_BYTES; i > 0; i--) /* a little-endian number */
        g_string_append_printf(text, "%02X", id[i - 1]);
    return g_string_free(text, FALSE);
}

void
eb_minisign_signature_free(EbMinisignSignature *self)
{
    g_free(self->trusted_comment);
    g_free(self);
}

static gboolean
read_signature(EbMinisignSignature *self, char **lines, GError **error)
{
    guint8 bytes[SIGNATURE_LINE_BYTES];

    if (!g_str_has_prefix(lines[0], UNTRUSTED) || !g_str_has_prefix(lines[2], TRUSTED))
        return fail(error, "the signature file lacks its comments");
    if (!decode(lines[1], bytes, sizeof bytes) || !decode(lines[3], self->global, sizeof self->global))
        return fail(error, "the signature file holds no signature");
    if (memcmp(bytes, "Ed", KIND_BYTES) == 0)
        return fail(error, "the signature is of minisign's older kind (sign again with minisign 0.10 or later)");
    if (memcmp(bytes, "ED", KIND_BYTES) != 0)
        return fail(error, "the signature is of an unknown kind");
    memcpy(self->key_id, bytes + KIND_BYTES, sizeof self->key_id);
    memcpy(self->signature, bytes + KIND_BYTES + sizeof self->key_id, sizeof self->signature);
    self->trusted_comment = g_strdup(lines[2] + strlen(TRUSTED));
    return TRUE;
}

EbMinisignSignature *
eb_minisign_signature_parse(const char *text, gsize length, GError **error)
{
    g_autoptr(EbMinisignSignature) self = g_new0(EbMinisignSignature, 1);

    if (length == 0 || length > EB_MINISIGN_MAX_BYTES || memchr(text, '\0', length) != NULL) {
        fail(error, "this is no signature file of minisign");
        return NULL;
    }
    g_autofree char *copy = g_strndup(text, length);
    g_auto(GStrv) lines = g_strsplit(copy, "\n", N_LINES + 2);
    guint n_lines = g_strv_length(lines);
    if (n_lines == N_LINES + 1 && *lines[N_LINES] == '\0') /* after the last line's end */
        n_lines--;
    if (n_lines != N_LINES) {
        fail(error, "a signature file of minisign has four lines");
        return NULL;
    }
    for (guint i = 0; i < N_LINES; i++) /* one written on another system */
        if (g_str_has_suffix(lines[i], "\r"))
            lines[i][strlen(lines[i]) - 1] = '\0';
    return read_signature(self, lines, error) ? g_steal_pointer(&self) : NULL;
}

EbMinisignHash *
eb_minisign_hash_new(void)
{
    /* The state wants an alignment that malloc() does not promise. */
    EbMinisignHash *self = g_aligned_alloc0(1, sizeof *self, G_ALIGNOF(EbMinisignHash));

    if (sodium_init() < 0)
        g_error("libsodium cannot be used");
    crypto_generichash_init(&self->state, NULL, 0, EB_MINISIGN_HASH_BYTES);
    return self;
}

void
eb_minisign_hash_update(EbMinisignHash *self, const void *data, gsize length)
{
    crypto_generichash_update(&self->state, data, length);
}

void
eb_minisign_hash_end(EbMinisignHash *self, guint8 *hash)
{
    crypto_generichash_final(&self->state, hash, EB_MINISIGN_HASH_BYTES);
}

void
eb_minisign_hash_free(EbMinisignHash *self)
{
    g_aligned_free(self);
}

gboolean
eb_minisign_verify(const char *what, const EbMinisignSignature *signature, const EbMinisignKey *key, const guint8 *hash,
                   GError **error)
{
    if (memcmp(signature->key_id, key->id, sizeof key->id) != 0) {
        g_autofree char *theirs = eb_minisign_key_id(signature->key_id);
        g_autofree char *ours = eb_minisign_key_id(key->id);
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.signature", "%s is signed with key %s, pinned is key %s", what,
                     theirs, ours);
        return FALSE;
    }
    if (crypto_sign_verify_detached(signature->signature, hash, EB_MINISIGN_HASH_BYTES, key->key) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.signature", "the signature of %s does not fit it", what);
        return FALSE;
    }
    g_autoptr(GByteArray) signed_bytes = g_byte_array_new();
    g_byte_array_append(signed_bytes, signature->signature, sizeof signature->signature);
    g_byte_array_append(signed_bytes, (const guint8 *)signature->trusted_comment,
                        (guint)strlen(signature->trusted_comment));
    if (crypto_sign_verify_detached(signature->global, signed_bytes->data, signed_bytes->len, key->key) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.signature",
                     "the trusted comment of the signature of %s is forged", what);
        return FALSE;
    }
    return TRUE;
}
