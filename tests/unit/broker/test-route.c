/* SPDX-License-Identifier: MIT */
/* Where requests go, whose key is on them, and what comes off. */
#include <string.h>

#include "core/broker/eb-key-filter.h"
#include "core/broker/eb-route.h"
#include "eb-test.h"

#define NONCE "nonce-0123456789"
#define KEY "sk-real-key-9876"

static EbSecret *
secret_of(const char *text)
{
    g_autofree char *copy = g_strdup(text);

    return eb_secret_new_take("test", copy, strlen(copy), NULL);
}

static EbProvider *
provider_new(const char *name, EbProviderKind kind, const char *url)
{
    EbProvider *provider = g_new0(EbProvider, 1);

    provider->name = g_strdup(name);
    provider->kind = kind;
    provider->key = secret_of(KEY);
    provider->nonce = secret_of(NONCE);
    g_assert_true(eb_provider_set_url(provider, url, NULL));
    return provider;
}

static void
provider_free(gpointer data)
{
    EbProvider *provider = data;

    g_free(provider->name);
    g_free(provider->base_path);
    eb_secret_unref(provider->key);
    eb_secret_unref(provider->nonce);
    g_free(provider);
}

static EbBrokerConfig *
config_new(void)
{
    static const char *const ALLOW[] = {"ok.test", NULL};
    static const guint16 PORTS[] = {443, 80};
    EbBrokerConfig *config = g_new0(EbBrokerConfig, 1);

    g_atomic_ref_count_init(&config->refs);
    config->session = g_strdup("s");
    config->relay_port = 47129;
    config->policy = eb_policy_new(TRUE, ALLOW, PORTS, 2, FALSE, NULL);
    config->providers = g_ptr_array_new_with_free_func(provider_free);
    g_ptr_array_add(config->providers, provider_new("a", EB_PROVIDER_ANTHROPIC, "https://a.test"));
    g_ptr_array_add(config->providers, provider_new("ab", EB_PROVIDER_OPENAI, "https://ab.test/v1"));
    g_ptr_array_add(config->providers, provider_new("g", EB_PROVIDER_GEMINI, "https://g.test/base/"));
    return config;
}

typedef struct {
    const char *head; /* request line without version, then headers */
    const char *headers;
    gboolean inner;
    EbRouteKind kind;
    EbRefusalCode code;
    const char *path;
} Row;

#define WITH_BEARER "Authorization: Bearer " NONCE "\r\n"
#define WITH_X "x-api-key: " NONCE "\r\n"
#define WITH_GOOG "X-Goog-Api-Key: " NONCE "\r\n"

static const Row ROWS[] = {
    {"POST /provider/a/v1/messages?beta=true", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/messages?beta=true"},
    {"POST /provider/a/v1/messages", WITH_BEARER, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/messages"},
    {"POST /provider/a/v1/messages", WITH_GOOG, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/messages"},
    {"POST /provider/a/v1/messages", "authorization: bearer  " NONCE "\r\n", FALSE, EB_ROUTE_PROVIDER, 0,
     "/v1/messages"},
    {"POST /provider/a/x?key=" NONCE, "", FALSE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"POST /provider/a/x?alt=sse&key=" NONCE "&b=1", "", FALSE, EB_ROUTE_PROVIDER, 0, "/x?alt=sse&b=1"},
    {"POST /provider/a/x?%6Bey=" NONCE "&keys=1", "", FALSE, EB_ROUTE_PROVIDER, 0, "/x?keys=1"},
    {"POST /provider/a/x?key=wrong&KEY=" NONCE, "", FALSE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"POST /provider/a/x?access_token=theirs&%61ccess_token=theirs", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"POST /provider/a/x?b=1;key=theirs&c=2", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x?b=1&c=2"},
    {"POST /provider/a/x?$key=theirs;c=2", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x?c=2"},
    {"POST /provider/a/x?%24Oauth_Token=theirs&keys=2", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x?keys=2"},
    {"POST /provider/a/x?$alt=json;enum-encoding=int", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0,
     "/x?$alt=json;enum-encoding=int"},
    {"POST /provider/a/x?$httpMethod=GET&$=1&$k", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x?$=1&$k"},
    {"GET /provider/a/v1/files", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_LIST, NULL},
    {"HEAD /provider/a/v1/Files/?limit=9", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_LIST, NULL},
    {"GET /provider/a/v1/messages/b%61tches;x", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_LIST, NULL},
    {"GET /provider/a/v1/chat/completions?after=x", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_LIST, NULL},
    {"GET /provider/a/v1/files/file-7", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/files/file-7"},
    {"POST /provider/a/v1/files", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/files"},
    {"GET /provider/a/v1/models", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/models"},
    {"POST /provider/a/x?key=wrong", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"POST /provider/a/x", "x-api-key: other\r\n" WITH_BEARER, FALSE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"POST /provider/ab/v1/chat/completions", WITH_BEARER, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/chat/completions"},
    {"POST /provider/ab/chat/completions", WITH_BEARER, FALSE, EB_ROUTE_PROVIDER, 0, "/v1/chat/completions"},
    {"POST /provider/g/v1beta/models/m:streamGenerateContent?alt=sse", WITH_GOOG, FALSE, EB_ROUTE_PROVIDER, 0,
     "/base/v1beta/models/m:streamGenerateContent?alt=sse"},
    {"POST http://127.0.0.1:47129/provider/a/x", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"POST http://localhost:47129/provider/a/x", WITH_X, FALSE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"POST /provider/a/x", WITH_X, TRUE, EB_ROUTE_PROVIDER, 0, "/x"},
    {"HEAD /provider/a", "", FALSE, EB_ROUTE_PROBE, 0, NULL},
    {"HEAD /provider/a/", "", FALSE, EB_ROUTE_PROBE, 0, NULL},
    {"CONNECT 127.0.0.1:47129", "", FALSE, EB_ROUTE_OWN, 0, NULL},
    {"CONNECT ok.test:443", "", FALSE, EB_ROUTE_TUNNEL, 0, NULL},
    {"CONNECT ok.test:80", "", FALSE, EB_ROUTE_TUNNEL, 0, NULL},
    {"GET http://ok.test/x", "", FALSE, EB_ROUTE_FORWARD, 0, "/x"},

    {"POST /provider/a/x", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/a/x", "x-api-key: " NONCE "x\r\n", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/a/x", "x-api-key: nonce-012345678\r\n", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/a/x", "x-api-key: " KEY "\r\n", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/a/x", "x-api-key:\r\n", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/a/x", "Authorization: Basic " NONCE "\r\n", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/a/x", "Authorization: " NONCE "\r\n", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/a/x", "Cookie: key=" NONCE "\r\n", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"GET /provider/a?key=x", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NONCE, NULL},
    {"POST /provider/abc/x", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_UNKNOWN, NULL},
    {"POST /provider/ax", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_UNKNOWN, NULL},
    {"POST /provider/A/x", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_UNKNOWN, NULL},
    {"POST /provider/%61/x", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_UNKNOWN, NULL},
    {"POST /provider//x", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_UNKNOWN, NULL},
    {"POST /providers/a/x", WITH_X, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NOT_FOUND, NULL},
    {"GET /", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NOT_FOUND, NULL},
    {"GET http://127.0.0.1:47129/x", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_NOT_FOUND, NULL},
    {"POST /provider/g/../x", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/x/..", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/%2e%2E/x", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/.%2e/x", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/..;/x", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/%2e%2e%3bv=1/x", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/x%2f..%2fy", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/%5c..%5cx", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/%252e%252e/x", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/x%0d%0ay", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/x%zz", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"POST /provider/g/./x", WITH_GOOG, FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_BAD_REQUEST, NULL},
    {"CONNECT evil.test:443", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_HOST, NULL},
    {"CONNECT a.test:443", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_HOST, NULL},
    {"CONNECT A.test.:443", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_HOST, NULL},
    {"CONNECT a.test:80", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PROVIDER_HOST, NULL},
    {"CONNECT x.a.test:443", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_HOST, NULL},
    {"CONNECT ok.test:22", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PORT, NULL},
    {"CONNECT 127.0.0.1:22", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_INTERNAL, NULL},
    {"GET http://evil.test/", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_HOST, NULL},
    {"GET http://ok.test:8080/", "", FALSE, EB_ROUTE_REFUSE, EB_REFUSAL_PORT, NULL},
    {"CONNECT 127.0.0.1:47129", "", TRUE, EB_ROUTE_REFUSE, EB_REFUSAL_METHOD, NULL},
    {"CONNECT ok.test:443", "", TRUE, EB_ROUTE_REFUSE, EB_REFUSAL_METHOD, NULL},
    {"GET http://ok.test/x", "", TRUE, EB_ROUTE_REFUSE, EB_REFUSAL_METHOD, NULL},
};

static void
read_request(const char *line, const char *headers, EbHttpRequest *request)
{
    const char *target = strchr(line, ' ') + 1;
    const char *authority = g_str_has_prefix(target, "http://") ? target + 7 : target;
    g_autofree char *host = g_strndup(authority, strcspn(authority, "/"));
    g_autofree char *text =
        g_strdup_printf("%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", line, host[0] != '\0' ? host : "127.0.0.1:47129", headers);
    EbHttpFront front;
    EbRefusal refusal;
    gsize consumed;

    eb_http_front_init(&front);
    g_assert_cmpint(eb_http_front_head(&front, text, strlen(text), &consumed, request, &refusal), ==, EB_HTTP_DONE);
}

static void
test_table(void)
{
    g_autoptr(EbBrokerConfig) config = config_new();

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        const Row *row = &ROWS[i];
        EbHttpRequest request;
        EbRoute route;

        read_request(row->head, row->headers, &request);
        eb_route_request(config, &request, row->inner, &route);
        g_test_message("%s: %d %s", row->head, route.kind, route.path);
        g_assert_cmpint(route.kind, ==, row->kind);
        if (row->kind == EB_ROUTE_REFUSE)
            g_assert_cmpint(route.refusal.code, ==, row->code);
        else
            g_assert_cmpstr(route.path, ==, row->path);
        eb_route_clear(&route);
        eb_http_request_clear(&request);
    }
}

static void
test_headers(void)
{
    g_autoptr(EbBrokerConfig) config = config_new();
    static const char HEADERS[] =
        "Accept: x\r\nanthropic-version: 2023-06-01\r\n" WITH_X WITH_BEARER WITH_GOOG
        "Api-Key: x\r\nProxy-Authorization: x\r\nCookie: x\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
        "TE: trailers\r\nX-Forwarded-For: 1\r\nKeep-Alive: 5\r\nAccept-Encoding: gzip\r\n"
        "Range: bytes=0-9\r\nX-HTTP-Method-Override: POST\r\nX-Goog-FieldMask: candidates\r\n";
    g_autoptr(GString) passed = g_string_new(NULL);
    EbHttpRequest request;
    EbRoute route;

    read_request("POST /provider/a/x", HEADERS, &request);
    eb_route_request(config, &request, FALSE, &route);
    for (guint i = 0; i < request.n_headers; i++) {
        if (eb_route_header_passes(&route, &request.headers[i]))
            g_string_append_printf(passed, "%s;", request.headers[i].name);
    }
    g_assert_cmpstr(passed->str, ==, "Accept;anthropic-version;");
    eb_route_clear(&route);
    eb_http_request_clear(&request);
    /* A plain request's own login is its own business. */
    g_string_truncate(passed, 0);
    read_request("GET http://ok.test/", "Authorization: Basic x\r\nProxy-Authorization: y\r\nCookie: c\r\n", &request);
    eb_route_request(config, &request, FALSE, &route);
    for (guint i = 0; i < request.n_headers; i++) {
        if (eb_route_header_passes(&route, &request.headers[i]))
            g_string_append_printf(passed, "%s;", request.headers[i].name);
    }
    g_assert_cmpstr(passed->str, ==, "Authorization;Cookie;");
    eb_route_clear(&route);
    eb_http_request_clear(&request);
}

static void
test_join(void)
{
    static const struct {
        const char *base;
        const char *rest;
        const char *joined;
    } PAIRS[] = {
        {"", "/v1/x", "/v1/x"},
        {"/v1", "/v1/x", "/v1/x"},
        {"/v1", "/v1", "/v1"},
        {"/v1", "/v1?a=b", "/v1?a=b"},
        {"/v1", "/v10/x", "/v1/v10/x"},
        {"/v1", "/x/v1", "/v1/x/v1"},
        {"/api/v1beta", "/v1beta/models", "/api/v1beta/models"},
        {"/openai", "/openai/x", "/openai/openai/x"},
        {"", "/..", NULL},
        {"", "/a?x=/../", "/a?x=/../"},
        {"", "/...", "/..."},
        {"", "/a..b", "/a..b"},
        {"", "/v1/f%69les%2Fx%2f%20%7E?a=%69", "/v1/files%2Fx%2f%20~?a=%69"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(PAIRS); i++) {
        g_autofree char *joined = eb_route_join(PAIRS[i].base, PAIRS[i].rest);

        g_assert_cmpstr(joined, ==, PAIRS[i].joined);
    }
}

/* Whatever the pieces, what comes out is the text with its keys blotted out, and no byte waits longer than it must. */
static void
test_key_filter(void)
{
    static const char *const TEXTS[] = {
        "nothing here",
        "data: " KEY "\n\n",
        KEY,
        KEY KEY,
        "sk-real-key-987",
        "sk-sk-real-key-9876x",
        "ssssk-real-key-9876",
        "sk-real-sk-real-key-9876-sk-real",
        "",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(TEXTS); i++) {
        g_auto(GStrv) parts = g_strsplit(TEXTS[i], KEY, -1);
        g_autofree char *expected = g_strjoinv("****************", parts);

        for (gsize step = 1; step < 40; step++) {
            g_autoptr(EbSecret) key = secret_of(KEY);
            g_autoptr(GString) out = g_string_new(NULL);
            gsize length = strlen(TEXTS[i]), n = 0;
            EbKeyFilter filter;
            const char *piece;

            eb_key_filter_init(&filter, key);
            for (gsize at = 0; at < length; at += step) {
                g_autofree char *bytes = g_strndup(TEXTS[i] + at, MIN(step, length - at));

                piece = eb_key_filter_run(&filter, bytes, strlen(bytes), &n);
                g_string_append_len(out, piece, (gssize)n);
                g_assert_cmpuint(filter.held, <, strlen(KEY));
            }
            piece = eb_key_filter_end(&filter, &n);
            g_string_append_len(out, piece, (gssize)n);
            g_assert_cmpstr(out->str, ==, expected);
            eb_key_filter_clear(&filter);
        }
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/route/table", test_table);
    g_test_add_func("/broker/route/headers", test_headers);
    g_test_add_func("/broker/route/join", test_join);
    g_test_add_func("/broker/route/key-filter", test_key_filter);
    return g_test_run();
}
