/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "errand-box-plugin.h"

/* Whatever the scanner accepts, json-glib must read, and what is written again must be acceptable too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    gboolean accepted = eb_json_scan(text, size, NULL, NULL);
    g_autoptr(JsonNode) node = eb_json_parse(text, size, NULL, NULL);
    g_autofree char *escaped = eb_log_escape(text, (gssize)size, 256);
    g_autofree char *again = NULL;
    gsize length = 0;

    g_assert_true(g_utf8_validate(escaped, -1, NULL));
    g_assert_cmpint(node != NULL, ==, accepted);
    if (node == NULL)
        return 0;
    again = eb_json_write(node, &length);
    if (!eb_json_scan(again, length, NULL, NULL))
        g_error("written again, %s is no JSON", again);
    return 0;
}
