/* SPDX-License-Identifier: MIT */
/* What a host answers to a WebSocket's request: what passes is one head of our own making. */
#include <string.h>

#include "core/broker/eb-websocket.h"

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    g_autofree char *accept = eb_websocket_accept("dGhlIHNhbXBsZSBub25jZQ==");
    g_autoptr(GString) head = g_string_new(NULL);
    gsize consumed = 0;
    guint status = 0;
    EbWebsocketResult result =
        eb_websocket_answer((const char *)bytes, length, accept, "chat", head, &consumed, &status);

    if (result == EB_WEBSOCKET_SWITCHED || result == EB_WEBSOCKET_DECLINED) {
        g_assert(consumed <= length && status >= 101 && status <= 599);
        g_assert(g_str_has_suffix(head->str, "\r\n\r\n") && strlen(head->str) == head->len);
        g_assert(strstr(head->str, "\r\n\r\n") == head->str + head->len - 4);
        g_assert((status == 101) == (result == EB_WEBSOCKET_SWITCHED));
        for (gsize i = 0; i < head->len; i++)
            g_assert(head->str[i] != '\n' || (i > 0 && head->str[i - 1] == '\r'));
    }
    if (result == EB_WEBSOCKET_SWITCHED)
        g_assert(strstr(head->str, accept) != NULL);
    return 0;
}
