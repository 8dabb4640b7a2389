/* SPDX-License-Identifier: MIT */
/*
 * A guest's bytes on their whole way up: the front's parser, the route, the writer of the upstream's request. What comes
 * out for one request is read again by a strict reader that shares no code with them, and must be exactly one request,
 * with this body, one Host, one framing, the provider's key once and no other; whole and byte by byte.
 */
#include <string.h>

#include "core/broker/eb-route.h"
#include "core/broker/eb-upstream-request.h"
#include "eb-test-strict-http.h"

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

#define KEY "sk-live-0123456789abcdef"
#define NONCE "nonce-fedcba9876543210"
#define MAX_REQUESTS 8

typedef struct {
    GString *sent; /* what goes up for this request */
    GString *body; /* what it carries */
    EbUpstreamFraming framing;
} Way;

static EbSecret *
secret_of(const char *text)
{
    g_autofree char *copy = g_strdup(text);

    return eb_secret_new_take("fuzz", copy, strlen(copy), NULL);
}

static void
add_provider(EbBrokerConfig *config, const char *name, EbProviderKind kind, const char *url)
{
    EbProvider *provider = g_new0(EbProvider, 1);

    provider->name = g_strdup(name);
    provider->kind = kind;
    provider->key = secret_of(KEY);
    provider->nonce = secret_of(NONCE);
    g_assert(eb_provider_set_url(provider, url, NULL));
    g_ptr_array_add(config->providers, provider);
}

/* Lives as long as the program, as one broker's does between two changes of its rules. */
static EbBrokerConfig *
fuzz_config(void)
{
    static const char *const ALLOW[] = {"127.0.0.1", "*.allowed.test", "::1", NULL};
    static const guint16 PORTS[] = {80, 443, 8080};
    static EbBrokerConfig *config;

    if (config == NULL) {
        config = g_new0(EbBrokerConfig, 1);
        g_atomic_ref_count_init(&config->refs);
        config->session = g_strdup("fuzz");
        config->relay_port = 47129;
        config->policy = eb_policy_new(TRUE, ALLOW, PORTS, G_N_ELEMENTS(PORTS), TRUE, NULL);
        config->providers = g_ptr_array_new();
        add_provider(config, "anthropic", EB_PROVIDER_ANTHROPIC, "https://api.anthropic.test");
        add_provider(config, "openai", EB_PROVIDER_OPENAI, "http://127.0.0.1:9/v1");
        add_provider(config, "gemini", EB_PROVIDER_GEMINI, "https://[::1]:444/base");
    }
    return config;
}

static void
carry(gpointer user_data, const char *bytes, gsize length)
{
    Way *way = user_data;
    char head[EB_UPSTREAM_CHUNK_HEAD];

    if (length == 0)
        return;
    g_string_append_len(way->body, bytes, (gssize)length);
    if (way->framing == EB_UPSTREAM_CHUNKED)
        g_string_append_len(way->sent, head, (gssize)eb_upstream_chunk_head(length, head));
    g_string_append_len(way->sent, bytes, (gssize)length);
    if (way->framing == EB_UPSTREAM_CHUNKED)
        g_string_append(way->sent, "\r\n");
}

static void
begin(Way *way, const EbHttpRequest *request, const EbRoute *route)
{
    static char head[EB_UPSTREAM_HEAD_SIZE];
    gsize length = eb_upstream_request_head(request, route, head, sizeof head);

    /* Whatever head is taken from a guest must fit. */
    g_assert(length > 0);
    way->framing = eb_upstream_framing(request);
    g_string_append_len(way->sent, head, (gssize)length);
}

/* Every header that could carry a key, as the upstream would read it. */
static void
check_keys(const EbTestStrictRequest *seen, const EbRoute *route)
{
    static const char *const NAMES[] = {"authorization", "x-api-key", "x-goog-api-key",
                                        "api-key",       "cookie",    "proxy-authorization"};
    guint n_keys = 0;

    if (route->kind != EB_ROUTE_PROVIDER) {
        for (guint i = 0; i < seen->values->len; i++)
            g_assert(strstr(seen->values->pdata[i], KEY) == NULL);
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
        const char *value = eb_test_strict_value(seen, NAMES[i]);

        n_keys += eb_test_strict_count(seen, NAMES[i]);
        g_assert(value == NULL || strcmp(value, KEY) == 0 || strcmp(value, "Bearer " KEY) == 0);
    }
    g_assert(n_keys == 1);
    /* No server may find the guest's way of asking in the place where a key could stand. */
    for (const char *at = strchr(seen->target, '?'); at != NULL; at = strchr(at + 1, '&'))
        g_assert(g_ascii_strncasecmp(at + 1, "key=", 4) != 0);
}

static void
check(Way *way, const EbRoute *route)
{
    g_auto(EbTestStrictRequest) seen = {0};
    const char *why = NULL;
    gssize used;

    if (way->framing == EB_UPSTREAM_CHUNKED)
        g_string_append(way->sent, "0\r\n\r\n");
    used = eb_test_strict_read(way->sent->str, way->sent->len, &seen, &why);
    if (used != (gssize)way->sent->len)
        g_error("not exactly one request (%s):\n%s", why != NULL ? why : "more, or less", way->sent->str);
    g_assert(seen.body->len == way->body->len);
    g_assert(way->body->len == 0 || memcmp(seen.body->data, way->body->str, way->body->len) == 0);
    for (const char *const *name = (const char *const[]){"upgrade", "te", "trailer", "keep-alive", "proxy-connection",
                                                         "proxy-authorization", "expect", NULL};
         *name != NULL; name++)
        g_assert(eb_test_strict_count(&seen, *name) == 0);
    check_keys(&seen, route);
}

/* Reads one request's body to its end; FALSE when it is cut off or malformed: nothing complete went up. */
static gboolean
read_body(EbHttpFront *front, const char *bytes, gsize length, gsize step, gsize *at, Way *way)
{
    EbHttpResult result = EB_HTTP_MORE;
    EbRefusal refusal;
    gsize used = 0;

    while (result == EB_HTTP_MORE && *at < length) {
        result = eb_http_front_body(front, bytes + *at, MIN(step, length - *at), &used, carry, way, &refusal);
        *at += result != EB_HTTP_REFUSED ? used : 0;
    }
    return result == EB_HTTP_DONE;
}

static void
read_all(const char *bytes, gsize length, gsize step, GString *log)
{
    EbHttpFront front;
    gsize at = 0;

    eb_http_front_init(&front);
    for (guint n = 0; n < MAX_REQUESTS; n++) {
        Way way = {g_string_new(NULL), g_string_new(NULL), EB_UPSTREAM_NO_BODY};
        EbHttpRequest request;
        EbRefusal refusal;
        EbRoute route;
        EbHttpResult result;
        gsize used = 0, have = MIN(step, length - at);
        gboolean whole = FALSE;

        while ((result = eb_http_front_head(&front, bytes + at, have, &used, &request, &refusal)) == EB_HTTP_MORE &&
               have < length - at)
            have = MIN(have + step, length - at);
        if (result == EB_HTTP_DONE) {
            gboolean up;

            at += used;
            eb_route_request(fuzz_config(), &request, FALSE, &route);
            up = route.kind == EB_ROUTE_PROVIDER || route.kind == EB_ROUTE_FORWARD;
            if (up)
                begin(&way, &request, &route);
            whole = !eb_http_request_has_body(&request) || read_body(&front, bytes, length, step, &at, &way);
            if (up && whole)
                check(&way, &route);
            g_string_append_printf(log, "<%d %u %" G_GSIZE_FORMAT ">", route.kind, whole, way.body->len);
            g_string_append_len(log, way.body->str, whole ? (gssize)way.body->len : 0);
            eb_route_clear(&route);
            eb_http_request_clear(&request);
        }
        g_string_free(way.sent, TRUE);
        g_string_free(way.body, TRUE);
        if (result != EB_HTTP_DONE || !whole)
            break;
    }
}

int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    g_autoptr(GString) whole = g_string_new(NULL);
    g_autoptr(GString) pieces = g_string_new(NULL);

    /* A guest that knows the key has nothing to find; libFuzzer reads it out of the comparisons below. */
    if (g_strstr_len((const char *)bytes, (gssize)length, KEY) != NULL)
        return 0;
    read_all((const char *)bytes, length, G_MAXSIZE / 2, whole);
    read_all((const char *)bytes, length, length > 4096 ? 977 : 1, pieces);
    if (!g_string_equal(whole, pieces))
        g_error("read two ways:\n%s\n%s", whole->str, pieces->str);
    return 0;
}
