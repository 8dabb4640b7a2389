/* SPDX-License-Identifier: MIT */
#include "core/config/eb-pin-digest.h"

#include <string.h>

#define SHA256_BYTES 32
#define SHA512_BYTES 64
#define NPM_PREFIX "sha512-"
#define NPM_LENGTH 95 /* the prefix, and 64 bytes in base64 */

typedef enum {
    SPELLING_NONE = 0,
    SPELLING_HEX256,
    SPELLING_HEX512,
    SPELLING_NPM,
} Spelling;

static Spelling
spelling_of(const char *text)
{
    gsize length = strlen(text);
    gsize n_bytes = 0;

    if (length == 2 * SHA256_BYTES && strspn(text, "0123456789abcdef") == length)
        return SPELLING_HEX256;
    if (length == 2 * SHA512_BYTES && strspn(text, "0123456789abcdef") == length)
        return SPELLING_HEX512;
    if (length != NPM_LENGTH || !g_str_has_prefix(text, NPM_PREFIX))
        return SPELLING_NONE;
    /* Decoding skips what is not of the alphabet: the same bytes have one spelling alone. */
    g_autofree guchar *raw = g_base64_decode(text + strlen(NPM_PREFIX), &n_bytes);
    g_autofree char *again = g_base64_encode(raw, n_bytes);
    return n_bytes == SHA512_BYTES && strcmp(again, text + strlen(NPM_PREFIX)) == 0 ? SPELLING_NPM : SPELLING_NONE;
}

gboolean
eb_pin_digest_is_valid(const char *text)
{
    return spelling_of(text) != SPELLING_NONE;
}

GChecksum *
eb_pin_digest_new_sum(const char *what, const char *digest, GError **error)
{
    Spelling spelling = spelling_of(digest);

    if (spelling != SPELLING_NONE)
        return g_checksum_new(spelling == SPELLING_HEX256 ? G_CHECKSUM_SHA256 : G_CHECKSUM_SHA512);
    g_autofree char *shown = eb_log_escape(digest, -1, 140);
    eb_set_error(error, EB_ERROR_INVALID, "pins.digest", "%s: \"%s\" is no digest", what, shown);
    return NULL;
}

static char *
to_hex(const guchar *bytes, gsize length)
{
    GString *text = g_string_sized_new(2 * length);

    for (gsize i = 0; i < length; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

char *
eb_pin_digest_file_name(const char *digest)
{
    Spelling spelling = spelling_of(digest);

    g_return_val_if_fail(spelling != SPELLING_NONE, NULL);
    if (spelling != SPELLING_NPM)
        return g_strconcat(spelling == SPELLING_HEX256 ? "sha256-" : "sha512-", digest, NULL);
    gsize length = 0;
    g_autofree guchar *raw = g_base64_decode(digest + strlen(NPM_PREFIX), &length);
    g_autofree char *hex = to_hex(raw, length);
    return g_strconcat("sha512-", hex, NULL);
}

char *
eb_pin_digest_spell(const char *like, GChecksum *sum)
{
    if (spelling_of(like) != SPELLING_NPM)
        return g_strdup(g_checksum_get_string(sum));
    guint8 raw[SHA512_BYTES];
    gsize length = sizeof raw;
    g_checksum_get_digest(sum, raw, &length);
    g_autofree char *text = g_base64_encode(raw, length);
    return g_strconcat(NPM_PREFIX, text, NULL);
}

gboolean
eb_pin_digest_check(const char *what, const char *digest, GChecksum *sum, GError **error)
{
    g_autofree char *found = eb_pin_digest_spell(digest, sum);

    if (strcmp(found, digest) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, "pins.digest", "%s is not what is pinned: expected %s, found %s", what,
                 digest, found);
    return FALSE;
}
