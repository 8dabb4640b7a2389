/* SPDX-License-Identifier: MIT */
#include "console-text.h"

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

/* Nothing that a terminal obeys is left, whatever an agent says. */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autofree char *text = console_text_clean((const char *)data, (gssize)size);
    g_autofree char *diff = console_text_diff(text, FALSE);

    if (!g_utf8_validate(text, -1, NULL))
        g_error("no UTF-8");
    for (const char *c = text; *c != '\0'; c = g_utf8_next_char(c)) {
        gunichar u = g_utf8_get_char(c);
        if ((u < 0x20 && u != '\n' && u != '\t') || (u >= 0x7f && u < 0xa0) || (u >= 0x202a && u <= 0x202e))
            g_error("a control character is left");
    }
    if (!g_utf8_validate(diff, -1, NULL))
        g_error("a diff that is no UTF-8");
    return 0;
}
