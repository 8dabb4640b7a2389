/* SPDX-License-Identifier: MIT */
/* The parser of upstreams' answers, whole and in pieces: both must see the same answers and the same bodies. */
#include <string.h>

#include "core/broker/eb-http-answer.h"

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

#define MAX_ANSWERS 8

static GString *
read_all(const guint8 *input, gsize length, gboolean to_head, gsize step)
{
    GString *seen = g_string_new(NULL);
    g_autofree char *bytes = g_memdup2(input, length);
    gsize at = 0;

    for (guint n = 0; n < MAX_ANSWERS; n++) {
        EbHttpAnswer answer;
        EbHttpResult result;
        gsize consumed = 0, n_body, body_at, have = at + MIN(step, length - at);

        eb_http_answer_begin(&answer, to_head);
        while ((result = eb_http_answer_read_head(&answer, bytes + at, have - at, &consumed)) == EB_HTTP_MORE) {
            g_assert(consumed <= have - at);
            at += consumed;
            if (have == length)
                break;
            have += MIN(step, length - have);
        }
        g_string_append_printf(seen, "<%d", result);
        if (result == EB_HTTP_DONE) {
            at += consumed;
            g_assert(answer.head.status >= 200 && answer.head.status <= 599);
            g_string_append_printf(seen, " %u %d %u [", answer.head.status, answer.head.body, answer.head.n_headers);
            for (guint i = 0; i < answer.head.n_headers; i++) {
                g_assert(strpbrk(answer.head.headers[i].name, "\r\n :") == NULL);
                g_assert(strpbrk(answer.head.headers[i].value, "\r\n") == NULL);
            }
            body_at = seen->len;
            do {
                gsize here = MIN(step, length - at);

                result = eb_http_answer_read_body(&answer, bytes + at, here, &n_body, &consumed);
                if (result == EB_HTTP_REFUSED)
                    break;
                g_assert(n_body <= consumed && consumed <= here);
                g_string_append_len(seen, bytes + at, (gssize)n_body);
                at += consumed;
            } while (result == EB_HTTP_MORE && at < length);
            /* What came before the fault may have been passed on piece by piece. */
            if (result == EB_HTTP_REFUSED)
                g_string_truncate(seen, body_at);
            g_string_append_printf(seen, "] %d>", result);
        }
        eb_http_answer_clear(&answer);
        if (result != EB_HTTP_DONE || at == length)
            break;
    }
    return seen;
}

int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    gboolean to_head = length > 0 && bytes[0] == '!';
    GString *whole, *pieces;

    if (to_head) {
        bytes++;
        length--;
    }
    whole = read_all(bytes, length, to_head, G_MAXSIZE / 2);
    pieces = read_all(bytes, length, to_head, length > 4096 ? 977 : 1);
    if (!g_string_equal(whole, pieces))
        g_error("read two ways:\n%s\n%s", whole->str, pieces->str);
    g_string_free(whole, TRUE);
    g_string_free(pieces, TRUE);
    return 0;
}
