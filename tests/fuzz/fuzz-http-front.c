/* SPDX-License-Identifier: MIT */
/* The guest-facing parser, whole and byte by byte: both must see the same requests and the same bodies. */
#include <string.h>

#include "core/broker/eb-http-front.h"

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

#define MAX_REQUESTS 8

static void
collect(gpointer user_data, const char *bytes, gsize length)
{
    g_string_append_len(user_data, bytes, (gssize)length);
}

/* Reads requests one after the other, @step bytes more each time, and writes down what it saw. */
static GString *
read_all(const char *bytes, gsize length, gsize step)
{
    GString *seen = g_string_new(NULL);
    EbHttpFront front;
    gsize at = 0;

    eb_http_front_init(&front);
    for (guint n = 0; n < MAX_REQUESTS; n++) {
        EbHttpRequest request;
        EbRefusal refusal = {0};
        gsize consumed = 0, have = MIN(step, length - at);
        EbHttpResult result;

        while ((result = eb_http_front_head(&front, bytes + at, have, &consumed, &request, &refusal)) == EB_HTTP_MORE &&
               have < length - at)
            have = MIN(have + step, length - at);
        g_string_append_printf(seen, "<%d %s", result, result == EB_HTTP_REFUSED ? eb_refusal_token(refusal.code) : "");
        if (result != EB_HTTP_DONE)
            break;
        g_assert(consumed > 0 && consumed <= EB_HTTP_MAX_HEAD && at + consumed <= length);
        g_assert(!(request.chunked && request.content_length > 0));
        g_string_append_printf(seen, " %s %s %s:%u %u", request.method_name, request.target,
                               request.form != EB_HTTP_ORIGIN ? request.host.host : "",
                               request.form != EB_HTTP_ORIGIN ? request.host.port : 0, request.n_headers);
        for (guint i = 0; i < request.n_headers; i++) {
            /* What is passed on can never hold a line of its own. */
            g_assert(strpbrk(request.headers[i].name, "\r\n :") == NULL);
            g_assert(strpbrk(request.headers[i].value, "\r\n") == NULL);
        }
        at += consumed;
        result = eb_http_request_has_body(&request) ? EB_HTTP_MORE : EB_HTTP_DONE;
        g_string_append(seen, " [");
        while (result == EB_HTTP_MORE && at < length) {
            result = eb_http_front_body(&front, bytes + at, MIN(step, length - at), &consumed, collect, seen, &refusal);
            if (result == EB_HTTP_REFUSED)
                break;
            g_assert(consumed <= length - at);
            at += consumed;
        }
        g_string_append_printf(seen, "] %d>", result);
        eb_http_request_clear(&request);
        if (result != EB_HTTP_DONE)
            break;
    }
    return seen;
}

int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    GString *whole = read_all((const char *)bytes, length, G_MAXSIZE / 2);
    GString *pieces = read_all((const char *)bytes, length, length > 4096 ? 977 : 1);

    if (!g_string_equal(whole, pieces))
        g_error("read two ways:\n%s\n%s", whole->str, pieces->str);
    g_string_free(whole, TRUE);
    g_string_free(pieces, TRUE);
    return 0;
}
