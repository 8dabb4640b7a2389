/* SPDX-License-Identifier: MIT */
/* The opening handshake of RFC 6455 as a forwarder sees it: what is asked, what goes up, what comes back. */
#include <string.h>

#include "core/broker/eb-websocket.h"
#include "eb-test.h"

/* The key of section 1.3, and what answers it. */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define HOST "GET http://ok.test/chat?x=1 HTTP/1.1\r\nHost: ok.test\r\n"
#define ASK "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define KEYED "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n"

static EbBrokerConfig *
config_new(void)
{
    static const char *const ALLOW[] = {"ok.test", "2606:4700::1", NULL};
    static const guint16 PORTS[] = {443, 80, 8080};
    EbBrokerConfig *config = g_new0(EbBrokerConfig, 1);

    g_atomic_ref_count_init(&config->refs);
    config->session = g_strdup("s");
    config->relay_port = 47129;
    config->policy = eb_policy_new(TRUE, ALLOW, PORTS, 3, FALSE, NULL);
    config->providers = g_ptr_array_new();
    return config;
}

typedef struct {
    const char *request;
    EbRouteKind kind;
    const char *code; /* with EB_ROUTE_REFUSE */
} AskRow;

static const AskRow ASKED[] = {
    {HOST ASK KEYED, EB_ROUTE_WEBSOCKET, NULL},
    {HOST "upgrade: WebSocket\r\nConnection: keep-alive, UPGRADE\r\n" KEYED, EB_ROUTE_WEBSOCKET, NULL},
    {HOST "Connection: close\r\n", EB_ROUTE_FORWARD, NULL},
    /* Another protocol, or more than one. */
    {HOST "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n", EB_ROUTE_REFUSE,
     "upgrade-not-allowed"},
    {HOST "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n" KEYED, EB_ROUTE_REFUSE, "upgrade-not-allowed"},
    {HOST ASK "Upgrade: websocket\r\n" KEYED, EB_ROUTE_REFUSE, "upgrade-not-allowed"},
    {HOST "Upgrade: TLS/1.0\r\nConnection: Upgrade\r\n", EB_ROUTE_REFUSE, "upgrade-not-allowed"},
    {HOST "Upgrade:\r\nConnection: Upgrade\r\n", EB_ROUTE_REFUSE, "upgrade-not-allowed"},
    /* Not to an allowed host. */
    {"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n" ASK KEYED, EB_ROUTE_REFUSE, "host-not-allowed"},
    {"GET http://ok.test:22/ HTTP/1.1\r\nHost: ok.test:22\r\n" ASK KEYED, EB_ROUTE_REFUSE, "port-not-allowed"},
    {"GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n" ASK KEYED, EB_ROUTE_REFUSE, "internal-address"},
    {"GET /provider/p/v1 HTTP/1.1\r\nHost: x\r\n" ASK KEYED, EB_ROUTE_REFUSE, "upgrade-not-allowed"},
    {"GET http://127.0.0.1:47129/provider/p/ HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n" ASK KEYED, EB_ROUTE_REFUSE,
     "upgrade-not-allowed"},
    {"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n" ASK KEYED, EB_ROUTE_REFUSE, "upgrade-not-allowed"},
    /* Not the handshake of RFC 6455. */
    {"POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 0\r\n" ASK KEYED, EB_ROUTE_REFUSE,
     "bad-request"},
    {"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 1\r\n" ASK KEYED, EB_ROUTE_REFUSE,
     "bad-request"},
    {"GET http://ok.test/ HTTP/1.0\r\nHost: ok.test\r\n" ASK KEYED, EB_ROUTE_REFUSE, "bad-request"},
    {HOST "Upgrade: websocket\r\n" KEYED, EB_ROUTE_REFUSE, "bad-request"},
    {HOST "Upgrade: websocket\r\nConnection: upgraded\r\n" KEYED, EB_ROUTE_REFUSE, "bad-request"},
    {HOST ASK "Sec-WebSocket-Key: " KEY "\r\n", EB_ROUTE_REFUSE, "bad-request"},
    {HOST ASK "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: " KEY "\r\n", EB_ROUTE_REFUSE, "bad-request"},
    {HOST ASK "Sec-WebSocket-Version: 13\r\n", EB_ROUTE_REFUSE, "bad-request"},
    {HOST ASK KEYED "Sec-WebSocket-Key: " KEY "\r\n", EB_ROUTE_REFUSE, "bad-request"},
    {HOST ASK KEYED "Sec-WebSocket-Version: 13\r\n", EB_ROUTE_REFUSE, "bad-request"},
    {HOST ASK "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2hvcnQ=\r\n", EB_ROUTE_REFUSE, "bad-request"},
    {HOST ASK "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n", EB_ROUTE_REFUSE,
     "bad-request"},
};

static void
test_asked(void)
{
    g_autoptr(EbBrokerConfig) config = config_new();

    for (gsize i = 0; i < G_N_ELEMENTS(ASKED); i++) {
        g_autofree char *text = g_strconcat(ASKED[i].request, "\r\n", NULL);
        g_autofree EbHttpRequest *request = g_new0(EbHttpRequest, 1);
        EbHttpFront front;
        EbRefusal refusal;
        EbRoute route = {0};
        gsize consumed;

        g_test_message("%s", text);
        eb_http_front_init(&front);
        if (eb_http_front_head(&front, text, strlen(text), &consumed, request, &refusal) == EB_HTTP_DONE) {
            eb_route_request(config, request, FALSE, &route);
            refusal = route.refusal;
        }
        g_assert_cmpint(route.kind, ==, ASKED[i].kind);
        if (ASKED[i].code != NULL)
            g_assert_cmpstr(eb_refusal_token(refusal.code), ==, ASKED[i].code);
        eb_route_clear(&route);
        eb_http_request_clear(request);
    }
}

static void
test_sent(void)
{
    static const char REQUEST[] = "GET http://ok.test:8080/chat?x=1 HTTP/1.1\r\nHost: ok.test:8080\r\n" ASK KEYED
                                  "Sec-WebSocket-Protocol: a, b\r\nProxy-Authorization: Basic eA==\r\nVia: 1.1 x\r\n"
                                  "Proxy-Connection: keep-alive\r\nAuthorization: Bearer own\r\nX: y\r\n\r\n";
    g_autoptr(EbBrokerConfig) config = config_new();
    g_autofree EbHttpRequest *request = g_new0(EbHttpRequest, 1);
    EbHttpFront front;
    EbRefusal refusal;
    EbRoute route;
    GString *sent;
    gsize consumed;

    eb_http_front_init(&front);
    g_assert_cmpint(eb_http_front_head(&front, REQUEST, sizeof REQUEST - 1, &consumed, request, &refusal), ==,
                    EB_HTTP_DONE);
    eb_route_request(config, request, FALSE, &route);
    sent = eb_websocket_request(request, &route);
    g_assert_cmpstr(
        sent->str, ==,
        "GET /chat?x=1 HTTP/1.1\r\nHost: ok.test:8080\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" KEYED
        "Sec-WebSocket-Protocol: a, b\r\nAuthorization: Bearer own\r\nX: y\r\n\r\n");
    g_string_free(sent, TRUE);
    eb_route_clear(&route);
    eb_http_request_clear(request);
}

#define SWITCH "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
#define ACCEPTED "Sec-WebSocket-Accept: " ACCEPT "\r\n"

typedef struct {
    const char *answer;
    EbWebsocketResult result;
    const char *head; /* (nullable): not looked at */
} AnswerRow;

static const AnswerRow ANSWERS[] = {
    {"", EB_WEBSOCKET_MORE, NULL},
    {SWITCH ACCEPTED, EB_WEBSOCKET_MORE, NULL},
    {SWITCH ACCEPTED "\r\n\x81\x01x", EB_WEBSOCKET_SWITCHED, SWITCH ACCEPTED "\r\n"},
    {"HTTP/1.1 101\r\nupgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n" ACCEPTED "Set-Cookie: a=b\r\n\r\n",
     EB_WEBSOCKET_SWITCHED, SWITCH ACCEPTED "Set-Cookie: a=b\r\n\r\n"},
    {SWITCH ACCEPTED "Sec-WebSocket-Protocol: b\r\nContent-Length: 5\r\n\r\n", EB_WEBSOCKET_SWITCHED,
     SWITCH ACCEPTED "Sec-WebSocket-Protocol: b\r\n\r\n"},
    {SWITCH ACCEPTED "Sec-WebSocket-Protocol: c\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {"\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {SWITCH "\r\n", EB_WEBSOCKET_BAD, NULL},
    {SWITCH "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {SWITCH ACCEPTED ACCEPTED "\r\n", EB_WEBSOCKET_BAD, NULL},
    {"HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" ACCEPTED "\r\n", EB_WEBSOCKET_BAD, NULL},
    {SWITCH "Upgrade: h2c\r\n" ACCEPTED "\r\n", EB_WEBSOCKET_BAD, NULL},
    {"HTTP/1.1 101 x\r\nConnection: Upgrade\r\n" ACCEPTED "\r\n", EB_WEBSOCKET_BAD, NULL},
    {"HTTP/1.1 101 x\r\nUpgrade: websocket\r\n" ACCEPTED "\r\n", EB_WEBSOCKET_BAD, NULL},
    {"HTTP/1.0 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" ACCEPTED "\r\n", EB_WEBSOCKET_BAD, NULL},
    {SWITCH ACCEPTED "X y\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {SWITCH ACCEPTED "X : y\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {SWITCH ACCEPTED "X: y\n Z: y\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {"HTTP/1.1 100 Continue\r\n\r\n" SWITCH ACCEPTED "\r\n", EB_WEBSOCKET_BAD, NULL},
    {"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nWWW-Authenticate: x\r\n\r\nno", EB_WEBSOCKET_DECLINED,
     "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
    {"HTTP/1.1 200 OK\r\n\r\n", EB_WEBSOCKET_DECLINED, NULL},
    {"HTTP/1.1 999 x\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {"HTTP/2 101\r\n\r\n", EB_WEBSOCKET_BAD, NULL},
    {"\x00\x00\x12\x04\r\n\r\n", EB_WEBSOCKET_MORE, NULL},
};

static void
test_answers(void)
{
    g_autofree char *accept = eb_websocket_accept(KEY);

    g_assert_cmpstr(accept, ==, ACCEPT);
    for (gsize i = 0; i < G_N_ELEMENTS(ANSWERS); i++) {
        g_autoptr(GString) head = g_string_new(NULL);
        const char *answer = ANSWERS[i].answer;
        gsize consumed = 0;
        guint status = 0;

        g_test_message("%s", answer);
        g_assert_cmpint(eb_websocket_answer(answer, strlen(answer), accept, "a, b", head, &consumed, &status), ==,
                        ANSWERS[i].result);
        if (ANSWERS[i].head != NULL)
            g_assert_cmpstr(head->str, ==, ANSWERS[i].head);
        if (ANSWERS[i].result == EB_WEBSOCKET_SWITCHED)
            g_assert_cmpuint(consumed, ==, (gsize)(strstr(answer, "\r\n\r\n") + 4 - answer));
    }
}

static void
test_answer_bounds(void)
{
    g_autofree char *accept = eb_websocket_accept(KEY);
    g_autofree char *endless = g_strnfill(EB_WEBSOCKET_MAX_ANSWER, 'x');
    g_autoptr(GString) many = g_string_new(SWITCH ACCEPTED);
    g_autoptr(GString) head = g_string_new(NULL);
    gsize consumed;
    guint status;

    g_assert_cmpint(eb_websocket_answer(endless, EB_WEBSOCKET_MAX_ANSWER - 1, accept, NULL, head, &consumed, &status),
                    ==, EB_WEBSOCKET_MORE);
    g_assert_cmpint(eb_websocket_answer(endless, EB_WEBSOCKET_MAX_ANSWER, accept, NULL, head, &consumed, &status), ==,
                    EB_WEBSOCKET_BAD);
    for (guint i = 0; i < 100; i++)
        g_string_append(many, "X: y\r\n");
    g_string_append(many, "\r\n");
    g_assert_cmpint(eb_websocket_answer(many->str, many->len, accept, NULL, head, &consumed, &status), ==,
                    EB_WEBSOCKET_BAD);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/websocket/asked", test_asked);
    g_test_add_func("/broker/websocket/sent", test_sent);
    g_test_add_func("/broker/websocket/answers", test_answers);
    g_test_add_func("/broker/websocket/answer-bounds", test_answer_bounds);
    return g_test_run();
}
