/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/provision/eb-settings-text.h"

/* creds.env and errand-box.env: any bytes give entries within bounds or one error, and entries give well-formed text. */

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = eb_env_file_parse((const char *)data, size, &error);
    g_autofree char *toml = NULL;

    g_assert_true((entries == NULL) == (error != NULL));
    if (entries == NULL)
        return 0;
    g_assert_cmpuint(entries->len, <=, EB_ENV_FILE_MAX_ENTRIES);
    for (guint i = 0; i < entries->len; i++) {
        const EbEnvEntry *entry = entries->pdata[i];
        g_assert_cmpstr(eb_env_file_lookup(entries, entry->key), ==, entry->value);
        g_assert_null(strchr(entry->value, '\n'));
    }
    toml = eb_settings_to_toml(entries, &error);
    g_assert_true((toml == NULL) == (error != NULL));
    /* No value ends its own string and becomes configuration of its own. */
    if (toml != NULL) {
        g_auto(GStrv) lines = g_strsplit(toml, "\n", -1);
        for (guint i = 1; lines[i] != NULL; i++) {
            gsize length = strlen(lines[i]);
            g_assert_true(length == 0 || lines[i][length - 1] == ']' || lines[i][length - 1] == '"');
        }
    }
    return 0;
}
