/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>

#include "errand-box-plugin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"memory", "cpus", "allowed_user_ids", NULL};
    static gboolean masking = FALSE;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autofree char *masked = NULL;
    const char *nearest;
    guint64 value = 0;

    eb_config_parse_size(text, &value, NULL);
    eb_config_parse_duration(text, &value, NULL);
    nearest = eb_config_nearest(text, words);
    g_assert_true(nearest == NULL || g_strv_contains(words, nearest));
    if (!masking) {
        g_autoptr(EbSecret) secret = eb_secret_new_random("x", 8);

        eb_log_mask_add(secret);
        masking = TRUE;
    }
    masked = eb_log_mask_text((const char *)data, (gssize)size);
    g_assert_nonnull(masked);
    return 0;
}
