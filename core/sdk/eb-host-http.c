/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "eb-error.h"
#include "eb-host-private.h"

/* How long the head of an answer may be. */
#define HEAD_MAX (32 * 1024)

/* Value of header @name (lower case) in the lower-case head, NULL when absent. */
static const char *
find_header(const char *head, const char *name)
{
    g_autofree char *start = g_strdup_printf("\r\n%s:", name);
    const char *found = strstr(head, start);

    if (found == NULL)
        return NULL;
    found += strlen(start);
    return found + strspn(found, " \t");
}

/* Chunks in [text, end) become @body. */
static EbHostHttp
read_chunks(const char *text, const char *end, GString *body)
{
    for (;;) {
        const char *line = memmem(text, (gsize)(end - text), "\r\n", 2);
        guint64 size;
        char *stop;

        if (line == NULL)
            return end - text > 1024 ? EB_HOST_HTTP_BROKEN : EB_HOST_HTTP_MORE;
        if (!g_ascii_isxdigit(*text))
            return EB_HOST_HTTP_BROKEN;
        size = g_ascii_strtoull(text, &stop, 16);
        if ((stop != line && *stop != ';') || size > EB_HOST_MAX_READ)
            return EB_HOST_HTTP_BROKEN;
        if (size == 0)
            return EB_HOST_HTTP_DONE; /* what may trail says nothing we want */
        text = line + 2;
        if ((guint64)(end - text) < size + 2)
            return EB_HOST_HTTP_MORE;
        g_string_append_len(body, text, (gssize)size);
        if (text[size] != '\r' || text[size + 1] != '\n')
            return EB_HOST_HTTP_BROKEN;
        text += size + 2;
    }
}

EbHostHttp
eb_host_http_parse(const char *text, gsize length, gboolean ended, int *status, GString *body)
{
    const char *end = text + length;
    const char *rest = length > 0 ? memmem(text, MIN(length, HEAD_MAX), "\r\n\r\n", 4) : NULL;
    g_autofree char *head = NULL;
    const char *field;

    g_string_truncate(body, 0);
    if (rest == NULL)
        return ended || length >= HEAD_MAX ? EB_HOST_HTTP_BROKEN : EB_HOST_HTTP_MORE;
    head = g_ascii_strdown(text, rest - text);
    rest += 4;
    if (sscanf(head, "http/1.%*1d %3d", status) != 1)
        return EB_HOST_HTTP_BROKEN;
    field = find_header(head, "transfer-encoding");
    if (field != NULL) {
        EbHostHttp state = g_str_has_prefix(field, "chunked") ? read_chunks(rest, end, body) : EB_HOST_HTTP_BROKEN;
        return state == EB_HOST_HTTP_MORE && ended ? EB_HOST_HTTP_BROKEN : state;
    }
    field = find_header(head, "content-length");
    if (field != NULL) {
        guint64 wanted = g_ascii_strtoull(field, NULL, 10);
        if ((guint64)(end - rest) >= wanted) {
            g_string_append_len(body, rest, (gssize)wanted);
            return EB_HOST_HTTP_DONE;
        }
        return ended || wanted > EB_HOST_MAX_READ ? EB_HOST_HTTP_BROKEN : EB_HOST_HTTP_MORE;
    }
    if (!ended)
        return EB_HOST_HTTP_MORE;
    g_string_append_len(body, rest, end - rest);
    return EB_HOST_HTTP_DONE;
}
