/* SPDX-License-Identifier: MIT */
#include <sodium.h>
#include <string.h>

#include "sealed-box.h"

/* A sealed file: any bytes as its header, and any bytes as what was sealed, give entries within bounds or one error. */

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

static void
fuzz_header(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    SealedHeader header;
    guint8 again[SEALED_HEADER_BYTES];

    if (!sealed_header_decode(data, size, &header, &error)) {
        g_assert_nonnull(error);
        return;
    }
    g_assert_cmpuint(header.memory_kib, <=, SEALED_MAX_MEMORY_KIB);
    g_assert_cmpuint(header.passes, <=, SEALED_MAX_PASSES);
    g_assert_cmpuint(header.payload, <=, SEALED_MAX_BYTES);
    sealed_header_encode(&header, again);
    g_assert_cmpmem(again, sizeof again, data, sizeof again);
}

static void
fuzz_entries(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = sealed_entries_decode(data, size, &error);

    g_assert_true((entries == NULL) == (error != NULL));
    if (entries == NULL)
        return;
    g_assert_cmpuint(entries->len, <=, SEALED_MAX_ENTRIES);
    gsize length = sealed_entries_size(entries, NULL);
    g_assert_cmpuint(length, ==, size);
    g_autofree guint8 *again = g_malloc(length);
    sealed_entries_encode(entries, again);
    g_assert_cmpmem(again, length, data, size);
}

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_assert_cmpint(sodium_init(), >=, 0);
    if (size == 0 || size > SEALED_MAX_BYTES - SEALED_HEADER_BYTES - SEALED_TAG_BYTES)
        return 0;
    if (data[0] == 'h')
        fuzz_header(data + 1, size - 1);
    else
        fuzz_entries(data + 1, size - 1);
    return 0;
}
