/* SPDX-License-Identifier: MIT */
/* What an upstream answers: one framing or none at all, and nothing is read two ways. */
#include <string.h>

#include "core/broker/eb-http-answer.h"
#include "core/broker/eb-upstream-request.h"
#include "eb-test.h"

typedef struct {
    const char *name;
    gboolean to_head;
    const char *bytes;
    EbHttpResult head; /* what becomes of the head */
    EbHttpResult body; /* and of the body, all bytes given */
    const char *text;  /* the body's bytes */
    gboolean keep_alive;
} Row;

#define OK "HTTP/1.1 200 OK\r\n"
#define REFUSED EB_HTTP_REFUSED, EB_HTTP_REFUSED, "", FALSE

static const Row ROWS[] = {
    {"length", FALSE, OK "Content-Length: 5\r\n\r\nhello", EB_HTTP_DONE, EB_HTTP_DONE, "hello", TRUE},
    {"length of nothing", FALSE, OK "Content-Length: 0\r\n\r\n", EB_HTTP_DONE, EB_HTTP_DONE, "", TRUE},
    {"chunked", FALSE, OK "Transfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nT: x\r\n\r\n",
     EB_HTTP_DONE, EB_HTTP_DONE, "Wikipedia", TRUE},
    {"cut chunk", FALSE, OK "Transfer-Encoding: chunked\r\n\r\n4\r\nWi", EB_HTTP_DONE, EB_HTTP_MORE, "Wi", TRUE},
    {"cut length", FALSE, OK "Content-Length: 5\r\n\r\nhel", EB_HTTP_DONE, EB_HTTP_MORE, "hel", TRUE},
    {"until the end", FALSE, OK "\r\nall of it", EB_HTTP_DONE, EB_HTTP_MORE, "all of it", FALSE},
    {"no text", FALSE, "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", EB_HTTP_DONE, EB_HTTP_DONE, "", TRUE},
    {"1.0", FALSE, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", EB_HTTP_DONE, EB_HTTP_DONE, "ok", FALSE},
    {"close", FALSE, OK "Connection: close\r\nContent-Length: 2\r\n\r\nok", EB_HTTP_DONE, EB_HTTP_DONE, "ok", FALSE},
    {"head", TRUE, OK "Content-Length: 5\r\n\r\n", EB_HTTP_DONE, EB_HTTP_DONE, "", TRUE},
    {"head, chunked", TRUE, OK "Transfer-Encoding: chunked\r\n\r\n", EB_HTTP_DONE, EB_HTTP_DONE, "", TRUE},
    {"204", FALSE, "HTTP/1.1 204 No Content\r\n\r\n", EB_HTTP_DONE, EB_HTTP_DONE, "", TRUE},
    {"304", FALSE, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", EB_HTTP_DONE, EB_HTTP_DONE, "", TRUE},
    {"interim", FALSE,
     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\nok",
     EB_HTTP_DONE, EB_HTTP_DONE, "ok", TRUE},

    {"length and chunked", FALSE, OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", REFUSED},
    {"two lengths", FALSE, OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", REFUSED},
    {"length list", FALSE, OK "Content-Length: 5, 5\r\n\r\n", REFUSED},
    {"length +5", FALSE, OK "Content-Length: +5\r\n\r\n", REFUSED},
    {"length too long", FALSE, OK "Content-Length: 18446744073709551617\r\n\r\n", REFUSED},
    {"xchunked", FALSE, OK "Transfer-Encoding: xchunked\r\n\r\n", REFUSED},
    {"gzip, chunked", FALSE, OK "Transfer-Encoding: gzip, chunked\r\n\r\n", REFUSED},
    {"chunked in 1.0", FALSE, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", REFUSED},
    {"folded", FALSE, OK "X: a\r\n b\r\nContent-Length: 0\r\n\r\n", REFUSED},
    {"space before the colon", FALSE, OK "Content-Length : 5\r\n\r\n", REFUSED},
    {"no colon", FALSE, OK "Content-Length\r\n\r\n", REFUSED},
    {"bare line feed", FALSE, "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", REFUSED},
    {"line feeds in the status line", FALSE, "HTTP/1.1 200 O\nContent-Length: 9\n\nK\r\n\r\n", REFUSED},
    {"line feed in a value", FALSE, OK "X: a\nContent-Length: 9\r\n\r\n", REFUSED},
    {"control byte", FALSE, OK "X: a\x01\r\n\r\n", REFUSED},
    {"switching", FALSE, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", REFUSED},
    {"no status", FALSE, "HTTP/1.1 OK\r\n\r\n", REFUSED},
    {"status 600", FALSE, "HTTP/1.1 600 X\r\n\r\n", REFUSED},
    {"HTTP/2", FALSE, "HTTP/2 200 OK\r\n\r\n", REFUSED},
    {"not HTTP", FALSE, "220 smtp.test ready\r\n\r\n", REFUSED},
    {"bad chunk", FALSE, OK "Transfer-Encoding: chunked\r\n\r\nzz\r\nWiki\r\n", EB_HTTP_DONE, EB_HTTP_REFUSED, "",
     TRUE},
    {"chunk ends early", FALSE, OK "Transfer-Encoding: chunked\r\n\r\n3\r\nWiki\r\n0\r\n\r\n", EB_HTTP_DONE,
     EB_HTTP_REFUSED, "", TRUE},
};

static void
check(const Row *row, gsize step)
{
    g_autofree char *bytes = g_strdup(row->bytes);
    g_autoptr(GString) text = g_string_new(NULL);
    gsize length = strlen(bytes), at = 0, have = MIN(step, length), consumed;
    EbHttpAnswer answer;
    EbHttpResult result;

    eb_http_answer_begin(&answer, row->to_head);
    while (TRUE) {
        result = eb_http_answer_read_head(&answer, bytes + at, have - at, &consumed);
        at += consumed;
        if (result != EB_HTTP_MORE || have == length)
            break;
        have = MIN(have + step, length);
    }
    g_assert_cmpint(result, ==, row->head);
    if (result == EB_HTTP_DONE) {
        g_assert_cmpint(answer.head.keep_alive, ==, row->keep_alive);
        do {
            gsize n_body;

            result = eb_http_answer_read_body(&answer, bytes + at, MIN(step, length - at), &n_body, &consumed);
            g_string_append_len(text, bytes + at, (gssize)n_body);
            at += consumed;
        } while (result == EB_HTTP_MORE && at < length);
        g_assert_cmpint(result, ==, row->body);
        if (result != EB_HTTP_REFUSED)
            g_assert_cmpstr(text->str, ==, row->text);
    }
    eb_http_answer_clear(&answer);
}

static void
test_rows(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_test_message("%s", ROWS[i].name);
        for (gsize step = 1; step <= 64; step = step == 64 ? 65 : MIN(step * 3, 64))
            check(&ROWS[i], step);
        check(&ROWS[i], 1 << 20);
    }
}

static EbHttpResult
result_of(const GString *text)
{
    EbHttpAnswer answer;
    EbHttpResult result;
    gsize consumed;

    eb_http_answer_begin(&answer, FALSE);
    result = eb_http_answer_read_head(&answer, text->str, text->len, &consumed);
    eb_http_answer_clear(&answer);
    return result;
}

static void
test_bounds(void)
{
    g_autoptr(GString) lines = g_string_new(OK);
    g_autoptr(GString) large = g_string_new(OK "X: ");
    g_autoptr(GString) interim = g_string_new(NULL);

    for (guint i = 0; i < EB_HTTP_MAX_ANSWER_HEADERS - 1; i++)
        g_string_append(lines, "X: y\r\n");
    g_string_append(lines, "Content-Length: 0\r\n");
    g_string_append(lines, "\r\n");
    g_assert_cmpint(result_of(lines), ==, EB_HTTP_DONE);
    g_string_insert(lines, (gssize)lines->len - 2, "X: y\r\n");
    g_assert_cmpint(result_of(lines), ==, EB_HTTP_REFUSED);

    while (large->len < EB_HTTP_MAX_ANSWER_HEAD - 4)
        g_string_append_c(large, 'x');
    g_string_append(large, "\r\n\r\n");
    g_assert_cmpint(result_of(large), ==, EB_HTTP_DONE);
    g_string_insert_c(large, (gssize)large->len - 4, 'x');
    g_assert_cmpint(result_of(large), ==, EB_HTTP_REFUSED);
    /* Also when its end never comes. */
    g_string_truncate(large, large->len - 4);
    g_string_append(large, "xxxxxxxx");
    g_assert_cmpint(result_of(large), ==, EB_HTTP_REFUSED);

    for (guint i = 0; i <= EB_HTTP_MAX_INTERIM; i++)
        g_string_append(interim, "HTTP/1.1 102 Processing\r\n\r\n");
    g_assert_cmpint(result_of(interim), ==, EB_HTTP_REFUSED);
}

static void
test_lines_of_http2(void)
{
    EbHttpAnswer answer;

    eb_http_answer_begin(&answer, FALSE);
    g_assert_false(eb_http_answer_add(&answer, "x", 1, "y", 1)); /* the status comes first */
    eb_http_answer_clear(&answer);
    eb_http_answer_begin(&answer, FALSE);
    g_assert_true(eb_http_answer_add(&answer, ":status", 7, "103", 3));
    g_assert_cmpint(eb_http_answer_finish(&answer, FALSE), ==, EB_HTTP_MORE);
    g_assert_true(eb_http_answer_add(&answer, ":status", 7, "200", 3));
    g_assert_false(eb_http_answer_add(&answer, ":status", 7, "200", 3));
    g_assert_false(eb_http_answer_add(&answer, "x", 1, "a\nb", 3));
    g_assert_true(eb_http_answer_add(&answer, "x", 1, "a", 1));
    g_assert_cmpint(eb_http_answer_finish(&answer, FALSE), ==, EB_HTTP_DONE);
    g_assert_cmpuint(answer.head.n_headers, ==, 1);
    g_assert_cmpint(answer.head.body, ==, EB_HTTP_BODY_CLOSE);
    eb_http_answer_clear(&answer);
    eb_http_answer_begin(&answer, FALSE);
    g_assert_true(eb_http_answer_add(&answer, ":status", 7, "200", 3));
    g_assert_cmpint(eb_http_answer_finish(&answer, TRUE), ==, EB_HTTP_DONE);
    g_assert_true(answer.head.has_length);
    g_assert_cmpint(answer.head.body, ==, EB_HTTP_BODY_NONE);
    eb_http_answer_clear(&answer);
}

static void
test_authority(void)
{
    static const struct {
        const char *target;
        gboolean tls;
        const char *text;
    } AUTHORITIES[] = {
        {"h.test:443", TRUE, "h.test"}, {"h.test:443", FALSE, "h.test:443"}, {"h.test:80", FALSE, "h.test"},
        {"[::1]:443", TRUE, "[::1]"},   {"[::1]:8443", TRUE, "[::1]:8443"},  {"1.2.3.4:80", TRUE, "1.2.3.4:80"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(AUTHORITIES); i++) {
        char text[EB_HOST_MAX + 16];
        const char *why;
        EbTarget target;

        g_assert_true(eb_target_parse(AUTHORITIES[i].target, strlen(AUTHORITIES[i].target), 0, &target, &why));
        eb_upstream_authority(&target, AUTHORITIES[i].tls, text, sizeof text);
        g_assert_cmpstr(text, ==, AUTHORITIES[i].text);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/http-answer/rows", test_rows);
    g_test_add_func("/http-answer/bounds", test_bounds);
    g_test_add_func("/http-answer/lines-of-http2", test_lines_of_http2);
    g_test_add_func("/http-answer/authority", test_authority);
    return g_test_run();
}
