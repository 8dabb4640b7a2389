/* SPDX-License-Identifier: MIT */
/* The guest-facing parser: what is refused, and that nothing is read two ways. */
#include <string.h>

#include "core/broker/eb-http-front.h"
#include "eb-test.h"

#define HEAD(request_line, rest) request_line " HTTP/1.1\r\nHost: h.test\r\n" rest "\r\n"

typedef struct {
    const char *name;
    const char *bytes;
    EbRefusalCode code; /* EB_REFUSAL_NONE: accepted */
} Row;

static const Row ROWS[] = {
    {"get", HEAD("GET /provider/p/x", ""), EB_REFUSAL_NONE},
    {"1.0", "GET / HTTP/1.0\r\nHost: h.test\r\n\r\n", EB_REFUSAL_NONE},
    {"connect", "CONNECT h.test:443 HTTP/1.1\r\nHost: h.test:443\r\n\r\n", EB_REFUSAL_NONE},
    {"connect, no host", "CONNECT h.test:443 HTTP/1.1\r\n\r\n", EB_REFUSAL_NONE},
    {"connect, host without port", "CONNECT h.test:443 HTTP/1.1\r\nHost: h.test\r\n\r\n", EB_REFUSAL_NONE},
    {"absolute", HEAD("GET http://h.test/x?y=1", ""), EB_REFUSAL_NONE},
    {"absolute, other case", "GET http://H.TEST./x HTTP/1.1\r\nHost: h.test\r\n\r\n", EB_REFUSAL_NONE},
    {"absolute, port", "GET http://h.test:8080/ HTTP/1.1\r\nHost: h.test:8080\r\n\r\n", EB_REFUSAL_NONE},
    {"length", HEAD("POST /", "Content-Length: 5\r\n"), EB_REFUSAL_NONE},
    {"chunked", HEAD("POST /", "Transfer-Encoding: chunked\r\n"), EB_REFUSAL_NONE},
    {"chunked, case", HEAD("POST /", "Transfer-Encoding: Chunked\r\n"), EB_REFUSAL_NONE},
    {"expect", HEAD("POST /", "Expect: 100-continue\r\nContent-Length: 5\r\n"), EB_REFUSAL_NONE},
    {"empty value", HEAD("GET /", "X-Empty:\r\n"), EB_REFUSAL_NONE},
    {"bytes beyond ascii", HEAD("GET /", "X-Name: \xc3\xbc\r\n"), EB_REFUSAL_NONE},

    {"length and chunked", HEAD("POST /", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
     EB_REFUSAL_BAD_REQUEST},
    {"chunked and length", HEAD("POST /", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
     EB_REFUSAL_BAD_REQUEST},
    {"two lengths", HEAD("POST /", "Content-Length: 5\r\nContent-Length: 6\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"one length twice", HEAD("POST /", "Content-Length: 5\r\nContent-Length: 5\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"length list", HEAD("POST /", "Content-Length: 5, 5\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"length +5", HEAD("POST /", "Content-Length: +5\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"length -1", HEAD("POST /", "Content-Length: -1\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"length 0x5", HEAD("POST /", "Content-Length: 0x5\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"length empty", HEAD("POST /", "Content-Length:\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"length 5 5", HEAD("POST /", "Content-Length: 5 5\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"length overflow", HEAD("POST /", "Content-Length: 18446744073709551617\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"xchunked", HEAD("POST /", "Transfer-Encoding: xchunked\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"gzip, chunked", HEAD("POST /", "Transfer-Encoding: gzip, chunked\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"chunked twice", HEAD("POST /", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
     EB_REFUSAL_BAD_REQUEST},
    {"chunked, identity", HEAD("POST /", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
     EB_REFUSAL_BAD_REQUEST},
    {"chunked with quotes", HEAD("POST /", "Transfer-Encoding: \"chunked\"\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"chunked with vt",
     HEAD("POST /", "Transfer-Encoding: \x0b"
                    "chunked\r\n"),
     EB_REFUSAL_BAD_REQUEST},
    {"space before colon", HEAD("POST /", "Content-Length : 5\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"tab before colon", HEAD("POST /", "Transfer-Encoding\t: chunked\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"obs-fold", HEAD("POST /", "X: a\r\n b\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"obs-fold by tab", HEAD("POST /", "Transfer-Encoding:\r\n\tchunked\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"first header indented", "GET / HTTP/1.1\r\n Host: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"bare lf", "GET / HTTP/1.1\nHost: h.test\n\n", EB_REFUSAL_BAD_REQUEST},
    {"one bare lf", "GET / HTTP/1.1\r\nHost: h.test\nX: y\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"bare cr", "GET / HTTP/1.1\r\nHost: h.test\rX: y\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"cr cr lf", "GET / HTTP/1.1\r\nHost: h.test\r\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"lf cr", "GET / HTTP/1.1\r\nHost: h.test\r\n\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"no colon", HEAD("GET /", "Header\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"no name", HEAD("GET /", ": x\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"name with space", HEAD("GET /", "X Y: z\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"name beyond ascii", HEAD("GET /", "X\xc3\xbc: z\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"value with esc", HEAD("GET /", "X: \x1b[0m\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"value with del", HEAD("GET /", "X: \x7f\r\n"), EB_REFUSAL_BAD_REQUEST},
    {"no host", "GET / HTTP/1.1\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"chunked, 1.0", "POST / HTTP/1.0\r\nHost: h.test\r\nTransfer-Encoding: chunked\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"no host, 1.0", "GET / HTTP/1.0\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"two hosts", "GET / HTTP/1.1\r\nHost: h.test\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"host with path", "GET / HTTP/1.1\r\nHost: h.test/x\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"host with user", "GET / HTTP/1.1\r\nHost: a@h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"host list", "GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"host mismatch", "GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"port mismatch", "GET http://a.test:81/ HTTP/1.1\r\nHost: a.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"connect mismatch", "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"connect with body", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\n",
     EB_REFUSAL_BAD_REQUEST},
    {"connect chunked", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n",
     EB_REFUSAL_BAD_REQUEST},
    {"connect without port", "CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"connect to url", "CONNECT http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"absolute with user", "GET http://u:p@h.test/ HTTP/1.1\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"absolute https", HEAD("GET https://h.test/", ""), EB_REFUSAL_SCHEME},
    {"absolute file", HEAD("GET file:///etc/passwd", ""), EB_REFUSAL_SCHEME},
    {"asterisk", HEAD("OPTIONS *", ""), EB_REFUSAL_BAD_REQUEST},
    {"authority with get", HEAD("GET h.test:80", ""), EB_REFUSAL_BAD_REQUEST},
    {"fragment", HEAD("GET /x#y", ""), EB_REFUSAL_BAD_REQUEST},
    {"backslash", HEAD("GET /x\\y", ""), EB_REFUSAL_BAD_REQUEST},
    {"target beyond ascii", HEAD("GET /\xc3\xbc", ""), EB_REFUSAL_BAD_REQUEST},
    {"two spaces", HEAD("GET  /", ""), EB_REFUSAL_BAD_REQUEST},
    {"tab for space", "GET\t/ HTTP/1.1\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"no version", "GET /\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"0.9", "GET / HTTP/0.9\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"2.0", "GET / HTTP/2.0\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"1.10", "GET / HTTP/1.10\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"http/2 preface", "PRI * HTTP/2.0\r\n\r\n", EB_REFUSAL_METHOD},
    {"trace", HEAD("TRACE /", ""), EB_REFUSAL_METHOD},
    {"lower case method", "get / HTTP/1.1\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
    {"unknown method", HEAD("BREW /", ""), EB_REFUSAL_METHOD},
    {"h2c",
     HEAD("GET /",
          "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"),
     EB_REFUSAL_UPGRADE},
    {"websocket-or-h2c", HEAD("GET /", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n"), EB_REFUSAL_UPGRADE},
    {"expectation", HEAD("POST /", "Expect: 200-ok\r\nContent-Length: 5\r\n"), EB_REFUSAL_EXPECTATION},
    {"tls", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", EB_REFUSAL_BAD_REQUEST},
    {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: h.test\r\n\r\n", EB_REFUSAL_BAD_REQUEST},
};

static EbHttpResult
read_head(const char *bytes, gsize length, gsize step, EbHttpRequest *request, EbRefusal *refusal, gsize *consumed)
{
    EbHttpFront front;
    EbHttpResult result = EB_HTTP_MORE;

    eb_http_front_init(&front);
    for (gsize have = MIN(step, length); result == EB_HTTP_MORE; have = MIN(have + step, length)) {
        result = eb_http_front_head(&front, bytes, have, consumed, request, refusal);
        if (have == length)
            break;
    }
    return result;
}

static void
test_table(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        static const gsize STEPS[] = {65536, 1, 3, 7};
        const Row *row = &ROWS[i];

        for (gsize j = 0; j < G_N_ELEMENTS(STEPS); j++) {
            EbHttpRequest request;
            EbRefusal refusal = {0};
            gsize consumed = 0;
            EbHttpResult result = read_head(row->bytes, strlen(row->bytes), STEPS[j], &request, &refusal, &consumed);

            g_test_message("%s: %s", row->name, result == EB_HTTP_REFUSED ? refusal.detail : "read");
            if (row->code == EB_REFUSAL_NONE) {
                g_assert_cmpint(result, ==, EB_HTTP_DONE);
                g_assert_cmpuint(consumed, ==, strlen(row->bytes));
                eb_http_request_clear(&request);
            } else {
                g_assert_cmpint(result, ==, EB_HTTP_REFUSED);
                g_assert_cmpint(refusal.code, ==, row->code);
            }
        }
    }
}

static void
test_fields(void)
{
    static const char BYTES[] = "POST http://H.test:81/a/b?c=d HTTP/1.1\r\nhost: h.TEST:81\r\nX-One:  1 \r\n"
                                "Connection: close, x-one\r\nContent-Length: 3\r\n\r\nabcGET";
    EbHttpRequest request;
    EbRefusal refusal;
    gsize consumed = 0;

    g_assert_cmpint(read_head(BYTES, sizeof BYTES - 1, 65536, &request, &refusal, &consumed), ==, EB_HTTP_DONE);
    g_assert_cmpstr(BYTES + consumed, ==, "abcGET");
    g_assert_cmpint(request.method, ==, EB_HTTP_POST);
    g_assert_cmpint(request.form, ==, EB_HTTP_ABSOLUTE);
    g_assert_cmpstr(request.path, ==, "/a/b?c=d");
    g_assert_cmpstr(request.host.host, ==, "h.test");
    g_assert_cmpuint(request.host.port, ==, 81);
    g_assert_cmpuint(request.content_length, ==, 3);
    g_assert_false(request.keep_alive);
    g_assert_cmpstr(eb_http_request_header(&request, "x-one"), ==, "1");
    /* What Connection names goes no further. */
    for (guint i = 0; i < request.n_headers; i++)
        g_assert_cmpint(request.headers[i].hop != FALSE, ==, TRUE);
    eb_http_request_clear(&request);
}

static void
test_bounds(void)
{
    g_autoptr(GString) text = g_string_new("GET / HTTP/1.1\r\nHost: h.test\r\n");
    g_autofree char *target = g_strnfill(EB_HTTP_MAX_TARGET + 100, 'a');
    g_autofree char *line = g_strdup_printf("GET /%s", target);
    EbHttpRequest request;
    EbRefusal refusal;
    gsize consumed;

    /* Refused while it is still coming in, not at its end. */
    g_assert_cmpint(read_head(line, strlen(line), 65536, &request, &refusal, &consumed), ==, EB_HTTP_REFUSED);
    g_assert_cmpint(refusal.code, ==, EB_REFUSAL_TARGET_TOO_LONG);
    for (guint i = 0; i < EB_HTTP_MAX_HEADERS; i++)
        g_string_append(text, "X: y\r\n");
    g_string_append(text, "\r\n");
    g_assert_cmpint(read_head(text->str, text->len, 65536, &request, &refusal, &consumed), ==, EB_HTTP_REFUSED);
    g_assert_cmpint(refusal.code, ==, EB_REFUSAL_HEAD_TOO_LARGE);
    g_string_assign(text, "GET / HTTP/1.1\r\nX: ");
    while (text->len < EB_HTTP_MAX_HEAD)
        g_string_append_c(text, 'x');
    g_assert_cmpint(read_head(text->str, text->len, 65536, &request, &refusal, &consumed), ==, EB_HTTP_REFUSED);
    g_assert_cmpint(refusal.code, ==, EB_REFUSAL_HEAD_TOO_LARGE);
    /* A NUL hides nothing. */
    g_assert_cmpint(read_head("GET / HTTP/1.1\r\nHost: h\0\r\n\r\n", 29, 65536, &request, &refusal, &consumed), ==,
                    EB_HTTP_REFUSED);
}

typedef struct {
    const char *name;
    const char *body;
    const char *decoded; /* NULL: refused */
    gsize left;          /* bytes of the next request behind it */
} BodyRow;

static const BodyRow BODIES[] = {
    {"one", "3\r\nabc\r\n0\r\n\r\n", "abc", 0},
    {"two", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", 0},
    {"hex", "A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 0},
    {"none", "0\r\n\r\n", "", 0},
    {"next request", "1\r\na\r\n0\r\n\r\nGET /", "a", 5},
    {"trailer", "1\r\na\r\n0\r\nX: y\r\n\r\n", "a", 0},
    {"extension", "1;x=y\r\na\r\n0\r\n\r\n", NULL, 0},
    {"extension with quotes", "1;x=\"\r\n\"\r\na\r\n0\r\n\r\n", NULL, 0},
    {"no number", "\r\na\r\n0\r\n\r\n", NULL, 0},
    {"not hex", "g\r\na\r\n0\r\n\r\n", NULL, 0},
    {"minus", "-1\r\na\r\n0\r\n\r\n", NULL, 0},
    {"0x", "0x1\r\na\r\n0\r\n\r\n", NULL, 0},
    {"overflow", "fffffffffffffffff\r\na\r\n0\r\n\r\n", NULL, 0},
    {"too long", "1\r\nab\r\n0\r\n\r\n", NULL, 0},
    {"bare lf", "1\na\n0\n\n", NULL, 0},
};

static void
collect(gpointer user_data, const char *bytes, gsize length)
{
    g_string_append_len(user_data, bytes, (gssize)length);
}

static void
test_bodies(void)
{
    static const char START[] = HEAD("POST /", "Transfer-Encoding: chunked\r\n");

    for (gsize i = 0; i < G_N_ELEMENTS(BODIES); i++) {
        const BodyRow *row = &BODIES[i];

        for (gsize step = 1; step <= 64; step *= 2) {
            g_autoptr(GString) decoded = g_string_new(NULL);
            gsize length = strlen(row->body), at = 0, consumed = 0;
            EbHttpResult result = EB_HTTP_MORE;
            EbHttpRequest request;
            EbHttpFront front;
            EbRefusal refusal;

            eb_http_front_init(&front);
            g_assert_cmpint(eb_http_front_head(&front, START, sizeof START - 1, &consumed, &request, &refusal), ==,
                            EB_HTTP_DONE);
            while (result == EB_HTTP_MORE && at < length) {
                result = eb_http_front_body(&front, row->body + at, MIN(step, length - at), &consumed, collect, decoded,
                                            &refusal);
                at += consumed;
            }
            g_test_message("%s by %" G_GSIZE_FORMAT, row->name, step);
            if (row->decoded == NULL) {
                g_assert_cmpint(result, ==, EB_HTTP_REFUSED);
            } else {
                g_assert_cmpint(result, ==, EB_HTTP_DONE);
                g_assert_cmpstr(decoded->str, ==, row->decoded);
                g_assert_cmpuint(length - at, ==, row->left);
            }
            eb_http_request_clear(&request);
        }
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/front/table", test_table);
    g_test_add_func("/broker/front/fields", test_fields);
    g_test_add_func("/broker/front/bounds", test_bounds);
    g_test_add_func("/broker/front/bodies", test_bodies);
    return g_test_run();
}
