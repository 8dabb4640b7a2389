/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/config/eb-minisign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const guint8 hash[EB_MINISIGN_HASH_BYTES];
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) key_error = NULL;
    g_autoptr(EbMinisignSignature) signature = eb_minisign_signature_parse((const char *)data, size, &error);
    g_autofree char *line = g_strndup((const char *)data, size);
    EbMinisignKey key = {0};

    if (!eb_minisign_key_parse(line, &key, &key_error))
        g_assert_true(key_error->domain == EB_ERROR);
    if (signature == NULL) {
        g_assert_true(error->domain == EB_ERROR);
        return 0;
    }
    g_assert_cmpuint(strlen(signature->trusted_comment), <, EB_MINISIGN_MAX_BYTES);
    /* Whatever is read, it is no signature of this. */
    memcpy(key.id, signature->key_id, sizeof key.id);
    g_assert_false(eb_minisign_verify("x", signature, &key, hash, &error));
    g_assert_true(g_error_matches(error, EB_ERROR, EB_ERROR_INTEGRITY));
    return 0;
}
