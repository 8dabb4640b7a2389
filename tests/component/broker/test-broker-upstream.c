/* SPDX-License-Identifier: MIT */
/* The real broker process in front of upstreams that answer in every way an upstream can. */
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/broker/eb-upstream.h"
#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"
#include "tests/component/broker/eb-test-tls-origin.h"

#define X_KEY "x-api-key: " TEST_NONCE "\r\n"

static char *
ask(EbTestBroker *broker, const char *method, const char *path)
{
    g_autofree char *request = g_strdup_printf(
        "%s /provider/anthropic%s HTTP/1.1\r\nHost: x\r\n" X_KEY "Connection: close\r\n\r\n", method, path);

    return eb_test_broker_ask(broker, request);
}

/* --- an upstream that sends what it is told to, byte for byte --- */

typedef struct {
    int listener;
    guint16 port;
    GThread *thread;
    GMutex mutex;
    GCond changed;
    const char *bytes; /* the answer to every request */
    gsize length;
    guint n_connections;
    guint n_requests;
    guint answers;   /* requests of a connection that are answered; then it is closed */
    gboolean silent; /* closed without a byte where there is no answer any more */
    guint steps;     /* bytes of the answer that may leave; G_MAXUINT: all */
    gsize n_sent;    /* of the running answer */
    gboolean ending;
} Script;

static void
script_send(Script *self, int fd)
{
    for (gsize at = 0; at < self->length;) {
        gsize n;

        g_mutex_lock(&self->mutex);
        while (self->steps <= at && !self->ending)
            g_cond_wait(&self->changed, &self->mutex);
        n = MIN(self->length, self->steps) - at;
        g_mutex_unlock(&self->mutex);
        if (self->ending || send(fd, self->bytes + at, n, MSG_NOSIGNAL) < 0)
            return;
        at += n;
        g_mutex_lock(&self->mutex);
        self->n_sent = at;
        g_cond_broadcast(&self->changed);
        g_mutex_unlock(&self->mutex);
    }
}

static void
script_serve(Script *self, int fd)
{
    for (guint n = 0;; n++) {
        g_autoptr(GString) in = g_string_new(NULL);
        char buffer[4096];

        while (strstr(in->str, "\r\n\r\n") == NULL) {
            ssize_t got = recv(fd, buffer, sizeof buffer, 0);

            if (got <= 0)
                return;
            g_string_append_len(in, buffer, got);
        }
        g_mutex_lock(&self->mutex);
        self->n_requests++;
        g_cond_broadcast(&self->changed);
        g_mutex_unlock(&self->mutex);
        if (n >= self->answers)
            return;
        script_send(self, fd);
        if (n + 1 == self->answers && !self->silent)
            return;
    }
}

static gpointer
script_run(gpointer data)
{
    Script *self = data;
    int fd;

    while ((fd = accept(self->listener, NULL, NULL)) >= 0) {
        self->n_connections++;
        script_serve(self, fd);
        close(fd);
    }
    return NULL;
}

static void
script_start(Script *self, EbTestBroker *broker)
{
    EbBrokerProvider *provider = broker->rules->providers->pdata[0];
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocket) socket = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, 0, &error);
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, 0);
    g_autoptr(GSocketAddress) bound = NULL;

    g_assert_true(g_socket_bind(socket, address, FALSE, &error) && g_socket_listen(socket, &error));
    bound = g_socket_get_local_address(socket, &error);
    self->port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
    self->listener = dup(g_socket_get_fd(socket));
    /* GSocket made it non-blocking. */
    g_unix_set_fd_nonblocking(self->listener, FALSE, NULL);
    g_mutex_init(&self->mutex);
    g_cond_init(&self->changed);
    self->steps = G_MAXUINT;
    self->answers = 1;
    self->thread = g_thread_new("script", script_run, self);
    g_free(provider->base_url);
    provider->base_url = g_strdup_printf("http://127.0.0.1:%u", self->port);
    eb_test_broker_start(broker);
}

static void
script_stop(Script *self)
{
    g_mutex_lock(&self->mutex);
    self->ending = TRUE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->mutex);
    shutdown(self->listener, SHUT_RDWR);
}

static void
script_end(Script *self)
{
    g_thread_join(self->thread);
    close(self->listener);
    g_mutex_clear(&self->mutex);
    g_cond_clear(&self->changed);
}

static void
script_say(Script *self, const char *bytes, gsize length)
{
    self->bytes = bytes;
    self->length = length;
}

#define OK "HTTP/1.1 200 OK\r\n"

static void
test_answers(void)
{
    static const struct {
        const char *name;
        const char *method;
        const char *bytes;
        guint status;
        const char *end; /* how the guest's answer ends; NULL: refused as upstream-failed */
        gboolean cut;
    } ROWS[] = {
        {"length", "GET", OK "Content-Length: 5\r\n\r\nhello", 200, "\r\n\r\nhello", FALSE},
        {"chunked", "GET", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200,
         "\r\n\r\n5\r\nhello\r\n0\r\n\r\n", FALSE},
        {"until the end", "GET", OK "\r\nhello", 200, "hello\r\n0\r\n\r\n", FALSE},
        {"interim", "GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK "Content-Length: 2\r\n\r\nok", 200,
         "\r\n\r\nok", FALSE},
        {"head", "HEAD", OK "Content-Length: 5\r\n\r\n", 200, "\r\n\r\n", FALSE},
        {"no content", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "\r\n\r\n", FALSE},
        {"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "\r\n\r\n", FALSE},
        {"redirect", "GET", "HTTP/1.1 307 X\r\nLocation: https://elsewhere.test/\r\nContent-Length: 0\r\n\r\n", 307,
         "\r\n\r\n", FALSE},
        {"cut length", "GET", OK "Content-Length: 50\r\n\r\nhello", 200, "hello", TRUE},
        {"cut chunk", "GET", OK "Transfer-Encoding: chunked\r\n\r\n50\r\nhello", 200, "hello\r\n", TRUE},
        {"bad chunk", "GET", OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 200, "\r\n\r\n", TRUE},
        {"length and chunked", "GET", OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502, NULL,
         FALSE},
        {"two lengths", "GET", OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 502, NULL, FALSE},
        {"folded", "GET", OK "X: a\r\n b\r\nContent-Length: 0\r\n\r\n", 502, NULL, FALSE},
        {"switching", "GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 502, NULL, FALSE},
        {"cut head", "GET", "HTTP/1.1 200 OK\r\nContent-Le", 502, NULL, FALSE},
        {"nothing", "GET", "", 502, NULL, FALSE},
        {"another protocol", "GET", "SSH-2.0-x\r\n\r\n", 502, NULL, FALSE},
    };
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    Script script = {0};

    script_start(&script, broker);
    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_autofree char *answer = NULL;

        g_test_message("%s", ROWS[i].name);
        script_say(&script, ROWS[i].bytes, strlen(ROWS[i].bytes));
        answer = ask(broker, ROWS[i].method, "/x");
        g_assert_cmpuint(eb_test_status_of(answer), ==, ROWS[i].status);
        if (ROWS[i].end == NULL)
            eb_test_assert_refused(answer, ROWS[i].status, "upstream-failed");
        else
            g_assert_true(g_str_has_suffix(answer, ROWS[i].end));
        g_assert_cmpint(g_str_has_suffix(answer, "0\r\n\r\n"), ==,
                        !ROWS[i].cut && ROWS[i].end != NULL && g_str_has_suffix(ROWS[i].end, "0\r\n\r\n"));
        g_assert_cmpuint(script.n_requests, ==, i + 1);
    }
    script_stop(&script);
    script_end(&script);
}

static void
test_large_head(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    g_autoptr(GString) bytes = g_string_new(OK "Content-Length: 2\r\n");
    g_autofree char *answer = NULL;
    g_autofree char *refused = NULL;
    Script script = {0};

    script_start(&script, broker);
    for (guint i = 0; i < 50; i++)
        g_string_append_printf(bytes, "X-%u: %01000u\r\n", i, i);
    g_string_append(bytes, "\r\nok");
    script_say(&script, bytes->str, bytes->len);
    answer = ask(broker, "GET", "/x");
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    g_assert_nonnull(strstr(answer, "X-49: 0"));
    for (guint i = 0; i < 20; i++)
        g_string_insert(bytes, (gssize)strlen(OK), "X-More: 0123456789012345678901234567890123456789\r\n");
    while (bytes->len < 70000)
        g_string_insert(bytes, (gssize)strlen(OK "Content-"), "X-More-And-More-");
    g_string_insert(bytes, (gssize)strlen(OK), "A: b\r\n");
    script_say(&script, bytes->str, bytes->len);
    refused = ask(broker, "GET", "/x");
    eb_test_assert_refused(refused, 502, "upstream-failed");
    script_stop(&script);
    script_end(&script);
}

/* One byte of the body at a time: each is with the guest before the next one exists (none of them begins the key). */
static void
test_byte_by_byte(void)
{
    static const char BYTES[] = OK "Content-Type: text/event-stream\r\nContent-Length: 20\r\n\r\n: abcdefghijklmnopq\n";
    static const char REQUEST[] = "GET /provider/anthropic/x HTTP/1.1\r\nHost: x\r\n" X_KEY "\r\n";
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    gsize head = (gsize)(strstr(BYTES, "\r\n\r\n") - BYTES) + 4;
    g_autofree char *first = NULL;
    Script script = {0};
    int fd;

    script_start(&script, broker);
    script_say(&script, BYTES, strlen(BYTES));
    script.steps = (guint)head;
    fd = eb_test_broker_connect(broker);
    eb_test_send(fd, REQUEST, strlen(REQUEST));
    first = eb_test_receive_until(fd, "\r\n\r\n");
    g_assert_true(g_str_has_suffix(first, "\r\n\r\n"));
    for (gsize at = head; at < strlen(BYTES); at++) {
        char byte;

        g_mutex_lock(&script.mutex);
        script.steps = (guint)at + 1;
        g_cond_broadcast(&script.changed);
        g_mutex_unlock(&script.mutex);
        g_assert_cmpint(recv(fd, &byte, 1, 0), ==, 1);
        g_assert_cmpint(byte, ==, BYTES[at]);
    }
    close(fd);
    script_stop(&script);
    script_end(&script);
}

/* An answer that nobody asked for is never taken for the answer to the next request. */
static void
test_answer_ahead(void)
{
    static const char BYTES[] = OK "Content-Length: 2\r\n\r\nok" OK "Content-Length: 6\r\n\r\nforged";
    static const char PLAIN[] = OK "Content-Length: 2\r\n\r\nok";
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    Script script = {0};

    script_start(&script, broker);
    script.answers = 100;
    script_say(&script, BYTES, strlen(BYTES));
    for (guint i = 0; i < 3; i++) {
        g_autofree char *answer = ask(broker, "GET", "/x");

        g_assert_true(g_str_has_suffix(answer, "\r\n\r\nok"));
        g_assert_cmpuint(script.n_connections, ==, i + 1);
    }
    /* One that keeps to its request is kept. */
    script_say(&script, PLAIN, strlen(PLAIN));
    for (guint i = 0; i < 3; i++) {
        g_autofree char *answer = ask(broker, "GET", "/x");

        g_assert_true(g_str_has_suffix(answer, "\r\n\r\nok"));
        g_assert_cmpuint(script.n_connections, ==, 4);
    }
    script_stop(&script);
    eb_test_broker_free(g_steal_pointer(&broker));
    script_end(&script);
}

/* The same when it comes later, on a connection that waits for its next request. */
static void
test_answer_while_kept(void)
{
    static const char BYTES[] = OK "Content-Length: 2\r\n\r\nok" OK "Content-Length: 6\r\n\r\nforged";
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    Script script = {0};

    script_start(&script, broker);
    script_say(&script, BYTES, strlen(BYTES));
    script.answers = 100;
    script.steps = (guint)(strstr(BYTES, "ok") - BYTES) + 2;
    first = ask(broker, "GET", "/x");
    g_assert_true(g_str_has_suffix(first, "\r\n\r\nok"));
    g_mutex_lock(&script.mutex);
    script.steps = G_MAXUINT;
    g_cond_broadcast(&script.changed);
    while (script.n_sent < script.length)
        g_cond_wait(&script.changed, &script.mutex);
    g_mutex_unlock(&script.mutex);
    second = ask(broker, "GET", "/x");
    g_assert_true(g_str_has_suffix(second, "\r\n\r\nok"));
    g_assert_cmpuint(script.n_connections, ==, 2);
    script_stop(&script);
    eb_test_broker_free(g_steal_pointer(&broker));
    script_end(&script);
}

/* A kept connection that its other end closes: without a request on it, and right when one comes. */
static void
test_closed_when_kept(void)
{
    static const char BYTES[] = OK "Content-Length: 2\r\n\r\nok";
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    Script script = {0};

    script_start(&script, broker);
    script_say(&script, BYTES, strlen(BYTES));
    for (guint i = 0; i < 5; i++) {
        g_autofree char *answer = ask(broker, "GET", "/x");

        g_assert_true(g_str_has_suffix(answer, "\r\n\r\nok"));
    }
    g_assert_cmpuint(script.n_connections, ==, 5);
    /* Now it takes the second request of a connection and closes: sent once more, elsewhere. */
    script.silent = TRUE;
    for (guint i = 0; i < 3; i++) {
        g_autofree char *answer = ask(broker, "GET", "/x");

        g_assert_true(g_str_has_suffix(answer, "\r\n\r\nok"));
    }
    g_assert_cmpuint(script.n_connections, ==, 8);
    g_assert_cmpuint(script.n_requests, ==, 10);
    /* On a connection of its own a request is never repeated. */
    script.answers = 0;
    for (guint i = 0; i < 2; i++) {
        g_autofree char *answer = ask(broker, "GET", "/x");

        eb_test_assert_refused(answer, 502, "upstream-failed");
    }
    g_assert_cmpuint(script.n_requests, ==, 13);
    script_stop(&script);
    script_end(&script);
}

/* Nobody knows what became of the first: a question that is asked twice is paid twice. */
static void
test_post_is_sent_once(void)
{
    static const char BYTES[] = OK "Content-Length: 2\r\n\r\nok";
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    Script script = {0};

    script_start(&script, broker);
    script_say(&script, BYTES, strlen(BYTES));
    script.silent = TRUE;
    g_autofree char *first = ask(broker, "POST", "/x");
    g_autofree char *second = ask(broker, "POST", "/x");
    g_assert_true(g_str_has_suffix(first, "\r\n\r\nok"));
    eb_test_assert_refused(second, 502, "upstream-failed");
    g_assert_cmpuint(script.n_connections, ==, 1);
    g_assert_cmpuint(script.n_requests, ==, 2);
    script_stop(&script);
    script_end(&script);
}

/* Open connections of this machine to @port, as the kernel has them. */
static guint
count_connections(guint16 port)
{
    g_autofree char *table = NULL;
    g_autofree char *peer = g_strdup_printf("0100007F:%04X 01 ", port);
    guint n = 0;

    g_assert_true(g_file_get_contents("/proc/net/tcp", &table, NULL, NULL));
    for (const char *at = table; (at = strstr(at, peer)) != NULL; at++)
        n++;
    return n;
}

/* More requests at once than connections are kept afterwards. */
static void
test_kept_bound(void)
{
    static const char REQUEST[] =
        "POST /provider/anthropic/sse HTTP/1.1\r\nHost: x\r\n" X_KEY "Content-Length: 0\r\nConnection: close\r\n\r\n";
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    guint16 port = eb_test_origin_get_port(broker->origin);
    int fds[EB_UPSTREAM_MAX_IDLE + 8];

    for (gsize i = 0; i < G_N_ELEMENTS(fds); i++) {
        fds[i] = eb_test_broker_connect(broker);
        eb_test_send(fds[i], REQUEST, strlen(REQUEST));
        /* Fewer connections are made at once than are kept. */
        if (i % 64 == 63)
            eb_test_origin_wait_count(broker->origin, (guint)i + 1);
    }
    eb_test_origin_wait_count(broker->origin, G_N_ELEMENTS(fds));
    g_assert_cmpuint(count_connections(port), ==, G_N_ELEMENTS(fds));
    eb_test_origin_step_end(broker->origin);
    for (gsize i = 0; i < G_N_ELEMENTS(fds); i++) {
        g_autofree char *answer = eb_test_receive_all(fds[i], NULL);

        g_assert_true(g_str_has_suffix(answer, "0\r\n\r\n"));
        close(fds[i]);
    }
    for (guint i = 0; i < 1000 && count_connections(port) > EB_UPSTREAM_MAX_IDLE; i++)
        g_usleep(10000);
    g_assert_cmpuint(count_connections(port), ==, EB_UPSTREAM_MAX_IDLE);
}

/* --- certificates --- */

static void
test_certificates(void)
{
    static const struct {
        const char *name;
        const char *alt_name;
        int days;
        guint status;
    } ROWS[] = {
        {"right", "IP:127.0.0.1", 7, 200},
        {"another address", "IP:127.0.0.2", 7, 502},
        {"the address as a name", "DNS:127.0.0.1", 7, 502},
        {"another name", "DNS:elsewhere.test", 7, 502},
        {"expired", "IP:127.0.0.1", -7, 502},
    };
    g_autofree char *directory = eb_test_temp_dir("tls");
    g_autofree char *pem = g_build_filename(directory, "origin.pem", NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_autoptr(GBytes) certificate = eb_test_write_certificate(pem, ROWS[i].alt_name, ROWS[i].days);
        g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(pem);
        g_autofree char *answer = NULL;

        g_test_message("%s", ROWS[i].name);
        broker->rules->ca_pem = g_steal_pointer(&certificate);
        eb_test_broker_start(broker);
        answer = ask(broker, "GET", "/x");
        g_assert_cmpuint(eb_test_status_of(answer), ==, ROWS[i].status);
        if (ROWS[i].status != 200)
            eb_test_assert_refused(answer, 502, "certificate-refused");
        /* Whatever was sent, the key was not. */
        g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, ROWS[i].status == 200 ? 1 : 0);
    }
}

/* --- HTTP/2 --- */

typedef struct {
    EbTestBroker *broker;
    EbTestH2Origin *origin;
} H2;

static void
h2_start(H2 *self)
{
    g_autofree char *directory = eb_test_temp_dir("h2");
    g_autofree char *pem = g_build_filename(directory, "origin.pem", NULL);
    g_autoptr(GBytes) certificate = eb_test_write_certificate(pem, "IP:127.0.0.1", 7);
    EbBrokerProvider *provider;

    self->origin = eb_test_h2_origin_new(pem);
    self->broker = eb_test_broker_prepare(NULL);
    self->broker->rules->ca_pem = g_steal_pointer(&certificate);
    provider = self->broker->rules->providers->pdata[0];
    g_free(provider->base_url);
    provider->base_url = g_strdup_printf("https://127.0.0.1:%u", eb_test_h2_origin_get_port(self->origin));
    eb_test_broker_start(self->broker);
}

static void
h2_end(H2 *self)
{
    g_assert_cmpuint(self->broker->n_died, ==, 0);
    eb_test_broker_free(self->broker);
    eb_test_h2_origin_free(self->origin);
}

static void
test_h2_answers(void)
{
    static const struct {
        const char *method;
        const char *path;
        guint status;
        const char *end;
    } ROWS[] = {
        {"GET", "/hello", 200, "hello ************************\r\n0\r\n\r\n"},
        {"HEAD", "/hello", 200, "\r\n\r\n"},
        {"POST", "/count", 200, "1\r\n0\r\n0\r\n\r\n"},
        {"GET", "/none", 204, "\r\n\r\n"},
        {"GET", "/hints", 200, "\r\n0\r\n\r\n"},
        {"GET", "/refuse", 200, "\r\n0\r\n\r\n"},
        {"GET", "/bytes/3000000", 200, "b\r\n0\r\n\r\n"},
        {"GET", "/reset", 200, "part\r\n"},
        {"GET", "/hello", 200, "\r\n0\r\n\r\n"},
    };
    H2 h2;

    h2_start(&h2);
    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_autofree char *answer = ask(h2.broker, ROWS[i].method, ROWS[i].path);

        g_test_message("%s", ROWS[i].path);
        g_assert_cmpuint(eb_test_status_of(answer), ==, ROWS[i].status);
        g_assert_true(g_str_has_suffix(answer, ROWS[i].end));
        g_assert_null(strstr(answer, TEST_KEY));
    }
    /* The refused one opened a second connection and then found the first one open. */
    g_assert_cmpuint(eb_test_h2_origin_get_connections(h2.origin), <=, 2);
    g_assert_cmpuint(eb_test_h2_origin_get_requests(h2.origin), ==, G_N_ELEMENTS(ROWS) + 1);
    h2_end(&h2);
}

static void
test_h2_goaway(void)
{
    H2 h2;

    h2_start(&h2);
    for (guint i = 0; i < 3; i++) {
        g_autofree char *answer = ask(h2.broker, "GET", "/goaway");

        g_assert_true(g_str_has_suffix(answer, "\r\n0\r\n\r\n"));
    }
    g_assert_cmpuint(eb_test_h2_origin_get_requests(h2.origin), ==, 3);
    h2_end(&h2);
}

static void
test_h2_events(void)
{
    static const char REQUEST[] =
        "GET /provider/anthropic/steps HTTP/1.1\r\nHost: x\r\n" X_KEY "Connection: close\r\n\r\n";
    g_autofree char *rest = NULL;
    H2 h2;
    int fd;

    h2_start(&h2);
    fd = eb_test_broker_connect(h2.broker);
    eb_test_send(fd, REQUEST, strlen(REQUEST));
    for (guint i = 0; i < 4; i++) {
        g_autofree char *expected = g_strdup_printf("data: %u\n\n", i);
        g_autofree char *event = eb_test_receive_until(fd, expected);

        eb_test_h2_origin_step(h2.origin);
    }
    rest = eb_test_receive_all(fd, NULL);
    g_assert_true(g_str_has_suffix(rest, "0\r\n\r\n"));
    close(fd);
    h2_end(&h2);
}

static guint64
peak_kib(EbTestBroker *broker)
{
    g_autofree char *status = eb_test_broker_proc(broker, "status", NULL);

    return g_ascii_strtoull(strstr(status, "VmHWM:") + 6, NULL, 10);
}

/* A guest that does not read holds up its own stream, not the connection and not the broker's memory. */
static void
test_h2_slow_reader(void)
{
    static const char REQUEST[] =
        "GET /provider/anthropic/bytes/20000000 HTTP/1.1\r\nHost: x\r\n" X_KEY "Connection: close\r\n\r\n";
    g_autofree char *other = NULL;
    g_autofree char *answer = NULL;
    guint64 before;
    gsize length;
    H2 h2;
    int fd;

    h2_start(&h2);
    other = ask(h2.broker, "GET", "/hello");
    before = peak_kib(h2.broker);
    fd = eb_test_broker_connect(h2.broker);
    eb_test_send(fd, REQUEST, strlen(REQUEST));
    g_free(eb_test_receive_until(fd, "\r\n\r\n"));
    for (guint i = 0; i < 20; i++) {
        g_autofree char *beside = ask(h2.broker, "GET", "/bytes/100000");

        g_assert_true(g_str_has_suffix(beside, "b\r\n0\r\n\r\n"));
    }
    g_assert_cmpuint(peak_kib(h2.broker) - before, <, 8 * 1024);
    answer = eb_test_receive_all(fd, &length);
    g_assert_cmpuint(length, >, 19000000);
    g_assert_true(g_str_has_suffix(answer, "0\r\n\r\n"));
    g_assert_cmpuint(eb_test_h2_origin_get_connections(h2.origin), ==, 1);
    close(fd);
    h2_end(&h2);
}

static void
test_h2_upload_and_cancel(void)
{
    static const char HANG[] = "GET /provider/anthropic/hang HTTP/1.1\r\nHost: x\r\n" X_KEY "\r\n";
    const gsize total = 5 << 20;
    g_autofree char *head = g_strdup_printf("POST /provider/anthropic/count HTTP/1.1\r\nHost: x\r\n" X_KEY
                                            "Content-Length: %" G_GSIZE_FORMAT "\r\nConnection: close\r\n\r\n",
                                            total);
    g_autofree char *body = g_malloc0(total);
    g_autofree char *answer = NULL;
    g_autofree char *chunked = NULL;
    H2 h2;
    int fd;

    h2_start(&h2);
    fd = eb_test_broker_connect(h2.broker);
    eb_test_send(fd, head, strlen(head));
    eb_test_send(fd, body, total);
    answer = eb_test_receive_all(fd, NULL);
    g_assert_nonnull(strstr(answer, "5242880"));
    close(fd);
    chunked = eb_test_broker_ask(h2.broker, "POST /provider/anthropic/count HTTP/1.1\r\nHost: x\r\n" X_KEY
                                            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                                            "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    g_assert_nonnull(strstr(chunked, "\r\n11\r\n"));
    fd = eb_test_broker_connect(h2.broker);
    eb_test_send(fd, HANG, strlen(HANG));
    while (eb_test_h2_origin_get_requests(h2.origin) < 3)
        g_usleep(1000);
    close(fd);
    eb_test_h2_origin_wait_resets(h2.origin, 1);
    h2_end(&h2);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/upstream/answers", test_answers);
    g_test_add_func("/broker/upstream/large-head", test_large_head);
    g_test_add_func("/broker/upstream/byte-by-byte", test_byte_by_byte);
    g_test_add_func("/broker/upstream/answer-ahead", test_answer_ahead);
    g_test_add_func("/broker/upstream/answer-while-kept", test_answer_while_kept);
    g_test_add_func("/broker/upstream/closed-when-kept", test_closed_when_kept);
    g_test_add_func("/broker/upstream/post-is-sent-once", test_post_is_sent_once);
    g_test_add_func("/broker/upstream/kept-bound", test_kept_bound);
    g_test_add_func("/broker/upstream/certificates", test_certificates);
    g_test_add_func("/broker/upstream/h2/answers", test_h2_answers);
    g_test_add_func("/broker/upstream/h2/goaway", test_h2_goaway);
    g_test_add_func("/broker/upstream/h2/events", test_h2_events);
    g_test_add_func("/broker/upstream/h2/slow-reader", test_h2_slow_reader);
    g_test_add_func("/broker/upstream/h2/upload-and-cancel", test_h2_upload_and_cancel);
    return g_test_run();
}
