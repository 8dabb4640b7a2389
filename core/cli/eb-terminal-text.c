/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-terminal-text.h"

#include <string.h>

#include "core/base/eb-shown.h"
#include "errand-box-plugin.h"

char *
eb_terminal_text_clean(const char *text)
{
    g_autoptr(GString) clean = g_string_new(NULL);

    for (const char *at = text; *at != '\0';) {
        gsize length = strcspn(at, "\n\t");
        g_autofree char *part = eb_log_escape(at, (gssize)length, G_MAXSIZE);
        g_string_append(clean, part);
        at += length;
        if (*at != '\0')
            g_string_append_c(clean, *at++);
    }
    return g_string_free(g_steal_pointer(&clean), FALSE);
}

char *
eb_terminal_text_json(const char *json)
{
    g_autoptr(GString) clean = g_string_new(NULL);

    for (const char *at = json; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        /* Below DEL a well-formed document has newlines between its parts alone. */
        if (c < 0x7f || eb_is_shown(c)) {
            g_string_append_len(clean, at, g_utf8_next_char(at) - at);
        } else if (c <= 0xffff) {
            g_string_append_printf(clean, "\\u%04x", c);
        } else {
            c -= 0x10000;
            g_string_append_printf(clean, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
        }
    }
    return g_string_free(g_steal_pointer(&clean), FALSE);
}
