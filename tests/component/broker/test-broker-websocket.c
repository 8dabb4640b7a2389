/* SPDX-License-Identifier: MIT */
/*
 * The real broker process and a host whose every byte the test says: WebSockets, and plain HTTP under the same rules as
 * CONNECT (field reports B38, B39, B41).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define ASK                                                                                                            \
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"                                       \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define SWITCH                                                                                                         \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                                \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

/* A listener in place of the second allowed port; the test itself is the host. */
typedef struct {
    EbTestBroker *broker;
    int listener;
    guint16 port;
} Fixture;

static void
set_up(Fixture *self, gconstpointer unused)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;

    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(self->listener, (struct sockaddr *)&name, sizeof name), ==, 0);
    g_assert_cmpint(listen(self->listener, 1200), ==, 0);
    g_assert_cmpint(getsockname(self->listener, (struct sockaddr *)&name, &length), ==, 0);
    self->port = ntohs(name.sin_port);
    self->broker = eb_test_broker_prepare(NULL);
    self->broker->rules->ports[1] = self->port;
    eb_test_broker_start(self->broker);
}

static void
tear_down(Fixture *self, gconstpointer unused)
{
    close(self->listener);
    eb_test_broker_free(self->broker);
}

static int
host_accept(Fixture *self)
{
    const struct timeval wait = {60, 0};
    int fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return fd;
}

/* Nothing has been dialled: the broker's answers come after it would have been. */
static void
assert_no_connection(Fixture *self)
{
    int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    struct timeval none = {0, 1};

    setsockopt(self->listener, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    g_assert_cmpint(accept4(self->listener, NULL, NULL, flags), <, 0);
}

static int
ask_websocket(Fixture *self, const char *more)
{
    g_autofree char *request = g_strdup_printf(
        "GET http://127.0.0.1:%u/chat HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n%s", self->port, self->port, ASK, more);
    int fd = eb_test_broker_connect(self->broker);

    eb_test_send(fd, request, strlen(request));
    return fd;
}

static void
test_websocket(Fixture *self, gconstpointer unused)
{
    int guest = ask_websocket(self, ""), host = host_accept(self);
    g_autofree char *request = eb_test_receive_until(host, "\r\n\r\n");
    g_autofree char *large = g_strnfill(1 << 20, 'w');
    g_autofree char *answer = NULL;
    g_autofree char *echoed = NULL;
    g_autofree char *rest = NULL;
    JsonObject *row;

    g_assert_true(g_str_has_prefix(request, "GET /chat HTTP/1.1\r\n"));
    g_assert_nonnull(strstr(request, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"));
    /* A frame that comes with the head is not lost. */
    eb_test_send(host, SWITCH "\x81\x05hello", strlen(SWITCH) + 7);
    answer = eb_test_receive_until(guest, "hello");
    g_assert_true(g_str_has_prefix(answer, SWITCH));
    eb_test_send(guest, "\x81\x83mask...", 9);
    g_free(eb_test_receive_until(host, "mask..."));
    /* Both ways, and each side may end on its own. */
    eb_test_send(guest, "last word", 9);
    shutdown(guest, SHUT_WR);
    echoed = eb_test_receive_all(host, NULL);
    g_assert_cmpstr(echoed, ==, "last word");
    eb_test_send(host, large, 1 << 16);
    close(host);
    rest = eb_test_receive_all(guest, NULL);
    g_assert_cmpuint(strlen(rest), ==, 1 << 16);
    close(guest);
    row = eb_test_broker_wait_audit(self->broker, 1);
    g_assert_cmpstr(eb_json_get_string(row, "kind"), ==, "websocket");
    g_assert_cmpint(eb_json_get_int(row, "status", 0), ==, 101);
    g_assert_cmpint(eb_json_get_int(row, "bytes_up", 0), ==, 18);
}

static void
test_websocket_declined(Fixture *self, gconstpointer unused)
{
    static const struct {
        const char *answer;
        const char *seen;
    } ROWS[] = {
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\nsecret",
         "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n"},
        {"HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nsecret", "HTTP/1.1 502 "},
        {"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nsecret",
         "HTTP/1.1 502 "},
        {"\x15\x03\x01secret\r\n\r\n", "HTTP/1.1 502 "},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        int guest = ask_websocket(self, ""), host = host_accept(self);
        g_autofree char *answer = NULL;

        g_free(eb_test_receive_until(host, "\r\n\r\n"));
        eb_test_send(host, ROWS[i].answer, strlen(ROWS[i].answer));
        answer = eb_test_receive_until(guest, "\r\n\r\n");
        g_test_message("%s", answer);
        g_assert_true(g_str_has_prefix(answer, ROWS[i].seen));
        g_assert_null(strstr(answer, "secret"));
        close(host);
        close(guest);
    }
}

/* A guest that goes away in the middle takes its connection to the host along. */
static void
test_websocket_given_up(Fixture *self, gconstpointer unused)
{
    int guest = ask_websocket(self, ""), host = host_accept(self);

    g_free(eb_test_receive_until(host, "\r\n\r\n"));
    close(guest);
    g_free(eb_test_receive_all(host, NULL));
    close(host);
    eb_test_broker_wait_audit(self->broker, 1);
}

/* wss through CONNECT: bytes, whatever they say, both ways; the port decides and not the method. */
static void
test_tunnel_to_any_allowed_port(Fixture *self, gconstpointer unused)
{
    g_autofree char *line = g_strdup_printf("CONNECT 127.0.0.1:%u HTTP/1.1\r\n\r\n", self->port);
    int guest = eb_test_broker_connect(self->broker), host;

    eb_test_send(guest, line, strlen(line));
    host = host_accept(self);
    g_free(eb_test_receive_until(guest, "established\r\n\r\n"));
    eb_test_send(guest, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n", 48);
    g_free(eb_test_receive_until(host, "Upgrade: websocket\r\n\r\n"));
    eb_test_send(host, "HTTP/1.1 101 y\r\n\r\n\x82", 19);
    g_free(eb_test_receive_until(guest, "\r\n\r\n\x82"));
    close(host);
    g_free(eb_test_receive_all(guest, NULL));
    close(guest);
}

/* B38: what is refused through CONNECT is refused as plain HTTP, and by no detour of either. */
static void
test_plain_same_rules(Fixture *self, gconstpointer unused)
{
    const struct {
        const char *request;
        guint status;
        const char *code;
    } rows[] = {
        {"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n", 403, "host-not-allowed"},
        {"GET http://evil.test:@PORT@/ HTTP/1.1\r\nHost: evil.test:@PORT@\r\n", 403, "host-not-allowed"},
        {"GET http://127.0.0.1:@PORT@/ HTTP/1.1\r\nHost: evil.test\r\n", 400, "bad-request"},
        {"GET http://evil.test/ HTTP/1.1\r\nHost: 127.0.0.1:@PORT@\r\n", 400, "bad-request"},
        {"GET http://127.0.0.1:@PORT@@evil.test/ HTTP/1.1\r\nHost: 127.0.0.1:@PORT@\r\n", 400, "bad-request"},
        {"GET http://127.0.0.1:8080/ HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n", 403, "port-not-allowed"},
        {"CONNECT 127.0.0.1:8080 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n", 403, "port-not-allowed"},
        {"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n", 403, "port-not-allowed"},
        {"GET http://10.0.0.1:@PORT@/ HTTP/1.1\r\nHost: 10.0.0.1:@PORT@\r\n", 403, "host-not-allowed"},
        {"GET http://[::ffff:127.0.0.1]:@PORT@/ HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:@PORT@\r\n", 403, NULL},
        {"GET http://0x7f000001:@PORT@/ HTTP/1.1\r\nHost: 0x7f000001:@PORT@\r\n", 400, "bad-request"},
        {"GET http://localhost:@PORT@/ HTTP/1.1\r\nHost: localhost:@PORT@\r\n", 403, "internal-address"},
        {"GET http://127.0.0.1:@PORT@/ HTTP/1.1\r\nHost: 127.0.0.1:@PORT@\r\nUpgrade: h2c\r\n"
         "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n",
         501, "upgrade-not-allowed"},
        {"TRACE http://127.0.0.1:@PORT@/ HTTP/1.1\r\nHost: 127.0.0.1:@PORT@\r\n", 405, "method-not-allowed"},
        {"CONNECT http://127.0.0.1:@PORT@ HTTP/1.1\r\nHost: 127.0.0.1:@PORT@\r\n", 400, "bad-request"},
        {"GET ws://127.0.0.1:@PORT@/ HTTP/1.1\r\nHost: 127.0.0.1:@PORT@\r\n", 400, "scheme-not-allowed"},
        {"GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n", 400, "scheme-not-allowed"},
        {"PRI * HTTP/2.0\r\n", 405, "method-not-allowed"},
    };
    g_autofree char *port = g_strdup_printf("%u", self->port);

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) parts = g_strsplit(rows[i].request, "@PORT@", -1);
        g_autofree char *head = g_strjoinv(port, parts);
        g_autofree char *request = g_strconcat(head, "Connection: close\r\n\r\n", NULL);
        g_autofree char *answer = NULL;

        if (strstr(request, "HTTP2-Settings") != NULL)
            strstr(request, "Connection: close")[0] = 'X';
        answer = eb_test_broker_ask(self->broker, request);
        g_test_message("%s%s", request, answer);
        if (rows[i].code != NULL)
            eb_test_assert_refused(answer, rows[i].status, rows[i].code);
        else
            g_assert_cmpuint(eb_test_status_of(answer), ==, rows[i].status);
    }
    assert_no_connection(self);
}

/* One host's share of a session is bounded, and comes back. */
static void
test_host_bound(Fixture *self, gconstpointer unused)
{
    enum { MOST = 1024 };
    g_autofree char *line = g_strdup_printf("CONNECT 127.0.0.1:%u HTTP/1.1\r\n\r\n", self->port);
    g_autofree int *fds = g_new(int, MOST);
    g_autofree char *refused = NULL;
    int again;

    for (guint i = 0; i < MOST; i++) {
        fds[i] = eb_test_broker_connect(self->broker);
        eb_test_send(fds[i], line, strlen(line));
        g_free(eb_test_receive_until(fds[i], "established\r\n\r\n"));
        close(host_accept(self));
    }
    again = eb_test_broker_connect(self->broker);
    eb_test_send(again, line, strlen(line));
    refused = eb_test_receive_until(again, "\r\n\r\n");
    g_assert_cmpuint(eb_test_status_of(refused), ==, 503);
    close(again);
    for (guint i = 0; i < MOST; i++)
        close(fds[i]);
    eb_test_broker_wait_audit(self->broker, MOST + 1);
    again = eb_test_broker_connect(self->broker);
    eb_test_send(again, line, strlen(line));
    g_free(eb_test_receive_until(again, "established\r\n\r\n"));
    close(again);
}

#define ADD(path, func) g_test_add("/broker/websocket/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    ADD("both-ways", test_websocket);
    ADD("declined", test_websocket_declined);
    ADD("given-up", test_websocket_given_up);
    ADD("through-connect", test_tunnel_to_any_allowed_port);
    ADD("plain-same-rules", test_plain_same_rules);
    ADD("host-bound", test_host_bound);
    return g_test_run();
}
