/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/state/eb-archive.h"

/* Headers and manifests of backups: any bytes give a name of the fixed set, or one error. */

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbArchiveManifest) manifest = eb_archive_manifest_parse((const char *)data, size, &error);

    g_assert_true((manifest == NULL) == (error != NULL));
    for (guint i = 0; manifest != NULL && i < manifest->files->len; i++)
        g_assert_true(eb_archive_check_name(((const EbArchiveFile *)manifest->files->pdata[i])->name));
    for (gsize at = 0; at + EB_ARCHIVE_BLOCK <= size; at += EB_ARCHIVE_BLOCK) {
        g_autoptr(GError) local = NULL;
        EbArchiveEntry entry;
        gboolean end = FALSE;
        if (!eb_archive_parse_header(data + at, &entry, &end, &local)) {
            g_assert_nonnull(local);
            continue;
        }
        g_assert_true(end || (eb_archive_check_name(entry.name) && entry.size <= EB_ARCHIVE_MAX_SIZE));
        g_assert_null(strstr(entry.name, ".."));
    }
    return 0;
}
