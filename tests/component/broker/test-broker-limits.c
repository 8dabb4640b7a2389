/* SPDX-License-Identifier: MIT */
/*
 * Every wait of a guest's connection: it ends what it is there for at its time, not before, and begins again with what
 * moves and with nothing else. The broker runs in this process; what time it is, is what the test says.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/broker/eb-broker.h"
#include "core/broker/eb-front-conn.h"
#include "core/broker/eb-meter.h"
#include "core/broker/eb-upstream.h"
#include "eb-test.h"

#define NONCE "nonce-0123456789"
#define QUESTION "POST /provider/p/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:47129\r\nx-api-key: " NONCE "\r\n"
#define WHOLE QUESTION "Content-Length: 2\r\n\r\n{}"
#define EVENTS "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
/* More than a socket pair takes in. */
#define MUCH (8u << 20)

typedef struct {
    EbBroker *broker;
    GResolver *resolver;
    EbBrokerConfig *config; /* the broker's */
    int guest;
    int listener;
    guint16 port;
    int origin;     /* the connection that was accepted last; -1 */
    GString *heard; /* by the guest */
    GString *asked; /* of the origin */
    gboolean over;  /* the guest was hung up on */
} Fixture;

/* --- the parts --- */

static EbSecret *
secret_of(const char *text)
{
    g_autofree char *copy = g_strdup(text);

    return eb_secret_new_take("test", copy, strlen(copy), NULL);
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
config_new(guint16 port)
{
    static const char *const ALLOW[] = {"127.0.0.1", NULL};
    EbBrokerConfig *config = g_new0(EbBrokerConfig, 1);
    EbProvider *provider = g_new0(EbProvider, 1);
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%u", port);

    provider->name = g_strdup("p");
    provider->kind = EB_PROVIDER_ANTHROPIC;
    provider->key = secret_of("sk-real-key-9876");
    provider->nonce = secret_of(NONCE);
    g_assert_true(eb_provider_set_url(provider, url, NULL));
    g_atomic_ref_count_init(&config->refs);
    config->session = g_strdup("s");
    config->relay_port = 47129;
    config->policy = eb_policy_new(TRUE, ALLOW, &port, 1, TRUE, NULL);
    config->providers = g_ptr_array_new_with_free_func(provider_free);
    g_ptr_array_add(config->providers, provider);
    return config;
}

static void
set_up(Fixture *self, gconstpointer unused)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int ends[2];

    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    g_assert_cmpint(bind(self->listener, (struct sockaddr *)&name, sizeof name), ==, 0);
    g_assert_cmpint(listen(self->listener, 8), ==, 0);
    g_assert_cmpint(getsockname(self->listener, (struct sockaddr *)&name, &length), ==, 0);
    self->port = ntohs(name.sin_port);
    self->origin = -1;
    self->heard = g_string_new(NULL);
    self->asked = g_string_new(NULL);
    self->resolver = g_resolver_get_default();
    self->broker = eb_broker_new(g_main_context_default(), self->resolver, NULL, NULL);
    self->config = config_new(self->port);
    eb_broker_set_config(self->broker, self->config);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), ==, 0);
    self->guest = ends[0];
    eb_front_conn_accept(self->broker, ends[1]);
}

static void
tear_down(Fixture *self, gconstpointer unused)
{
    close(self->guest);
    close(self->listener);
    if (self->origin >= 0)
        close(self->origin);
    eb_broker_free(self->broker);
    g_object_unref(self->resolver);
    g_string_free(self->heard, TRUE);
    g_string_free(self->asked, TRUE);
}

/* --- what the two ends do --- */

static void
say(int fd, const char *text)
{
    g_assert_cmpint(send(fd, text, strlen(text), MSG_NOSIGNAL), ==, strlen(text));
    while (g_main_context_iteration(NULL, FALSE))
        continue;
}

static void
take(int fd, GString *text, gboolean *over)
{
    char buffer[4096];
    ssize_t got;

    while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0)
        g_string_append_len(text, buffer, got);
    *over = *over || got == 0;
}

typedef struct {
    Fixture *fixture;
    const char *text; /* NULL: the end */
} Wait;

static gboolean
guest_heard(gpointer data)
{
    Wait *wait = data;
    Fixture *self = wait->fixture;

    take(self->guest, self->heard, &self->over);
    return wait->text != NULL ? strstr(self->heard->str, wait->text) != NULL : self->over;
}

static gboolean
origin_heard(gpointer data)
{
    Wait *wait = data;
    Fixture *self = wait->fixture;
    gboolean over = FALSE;

    if (self->origin < 0)
        self->origin = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (self->origin >= 0)
        take(self->origin, self->asked, &over);
    return wait->text != NULL ? strstr(self->asked->str, wait->text) != NULL : over;
}

/* The end of the loop's work is not told by an event: it is looked again and again, as nothing else wakes it. */
static gboolean
wake(gpointer data)
{
    return G_SOURCE_CONTINUE;
}

static void
wait_for(Fixture *self, gboolean (*condition)(gpointer), const char *text)
{
    Wait wait = {self, text};
    guint waker = g_timeout_add(1, wake, NULL);

    eb_test_run_until(condition, &wait);
    g_source_remove(waker);
}

#define WAIT_GUEST(text) wait_for(self, guest_heard, text)
#define WAIT_ORIGIN(text) wait_for(self, origin_heard, text)

/* --- time --- */

static void
tick(Fixture *self, gint64 now)
{
    GList *next;

    for (GList *link = self->broker->ticked.head; link != NULL; link = next) {
        EbTicked *ticked = link->data;

        next = link->next;
        ticked->tick(ticked->owner, now);
    }
    while (g_main_context_iteration(NULL, FALSE))
        continue;
}

/* A moment after everything that was noted until now, and no later than everything that is noted from now on. */
static gint64
mark(void)
{
    gint64 begin = g_get_monotonic_time(), now = begin;

    while (now == begin)
        now = g_get_monotonic_time();
    return now;
}

/* When all that was noted before @moment is @wait old at least, and nothing that was noted since is. */
static void
let_pass(Fixture *self, gint64 moment, gint64 wait)
{
    tick(self, moment - 1 + wait);
}

static gboolean
is_open(Fixture *self)
{
    return self->broker->n_connections == 1;
}

#define ASSERT_HEARD(text) g_assert_nonnull(strstr(self->heard->str, text))

/* --- the guest's requests --- */

/* However often a byte of it comes. */
static void
test_head(Fixture *self, gconstpointer unused)
{
    gint64 began = mark();

    say(self->guest, "GET /");
    let_pass(self, began, EB_BROKER_HEAD_WAIT);
    g_assert_true(is_open(self));
    began = mark();
    say(self->guest, "slow");
    let_pass(self, began, EB_BROKER_HEAD_WAIT);
    WAIT_GUEST("head-timeout");
    ASSERT_HEARD("HTTP/1.1 408 ");
}

/* Nothing comes at all, as on a connection that was opened early: there is nobody to answer. */
static void
test_silent(Fixture *self, gconstpointer unused)
{
    let_pass(self, mark(), EB_BROKER_HEAD_WAIT);
    g_assert_true(is_open(self));
    let_pass(self, mark(), EB_BROKER_KEEP_ALIVE_WAIT);
    WAIT_GUEST(NULL);
    g_assert_cmpuint(self->heard->len, ==, 0);
    g_assert_false(is_open(self));
}

static void
test_keep_alive(Fixture *self, gconstpointer unused)
{
    static const char PROBE[] = "HEAD /provider/p HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n\r\n";
    gint64 before;

    say(self->guest, PROBE);
    WAIT_GUEST("\r\n\r\n");
    before = mark();
    g_string_truncate(self->heard, 0);
    say(self->guest, PROBE);
    WAIT_GUEST("\r\n\r\n");
    let_pass(self, before, EB_BROKER_KEEP_ALIVE_WAIT);
    g_assert_true(is_open(self));
    let_pass(self, mark(), EB_BROKER_KEEP_ALIVE_WAIT);
    WAIT_GUEST(NULL);
    g_assert_false(is_open(self));
}

/* Who goes on sending behind a refusal is not listened to for long. */
static void
test_linger(Fixture *self, gconstpointer unused)
{
    gint64 refused = mark();

    say(self->guest, "nonsense\r\n\r\n");
    WAIT_GUEST("HTTP/1.1 400 ");
    g_assert_true(is_open(self));
    let_pass(self, refused, EB_BROKER_LINGER_WAIT);
    g_assert_true(is_open(self));
    refused = mark();
    say(self->guest, "more of it");
    let_pass(self, refused, EB_BROKER_LINGER_WAIT);
    g_assert_false(is_open(self));
}

/* --- the provider --- */

static void
test_first_byte(Fixture *self, gconstpointer unused)
{
    gint64 before = mark();

    say(self->guest, WHOLE);
    WAIT_ORIGIN("{}");
    let_pass(self, before, EB_BROKER_FIRST_BYTE_WAIT);
    g_assert_cmpuint(self->heard->len, ==, 0);
    g_assert_true(is_open(self));
    let_pass(self, mark(), EB_BROKER_FIRST_BYTE_WAIT);
    WAIT_GUEST("answer-timeout");
    ASSERT_HEARD("HTTP/1.1 504 ");
    WAIT_ORIGIN(NULL);
}

/* The wait for the answer begins when the question is asked. */
static void
test_upload(Fixture *self, gconstpointer unused)
{
    gint64 before;

    say(self->guest, QUESTION "Content-Length: 4\r\n\r\n");
    WAIT_ORIGIN("\r\n\r\n");
    for (const char *at = "abcd"; *at != '\0'; at++) {
        const char piece[] = {*at, '\0'};

        before = mark();
        g_string_truncate(self->asked, 0);
        say(self->guest, piece);
        WAIT_ORIGIN(piece);
        let_pass(self, before, EB_BROKER_FIRST_BYTE_WAIT);
        guest_heard(&(Wait){self, ""});
        g_assert_cmpuint(self->heard->len, ==, 0);
    }
    let_pass(self, mark(), EB_BROKER_FIRST_BYTE_WAIT);
    WAIT_GUEST("answer-timeout");
}

/* A stream lives as long as something comes of it, which no total limit cuts off; then the cut is seen. */
static void
test_answer_idle(Fixture *self, gconstpointer unused)
{
    gint64 before;

    say(self->guest, WHOLE);
    WAIT_ORIGIN("{}");
    before = mark();
    say(self->origin, EVENTS);
    WAIT_GUEST("\r\n\r\n");
    let_pass(self, before, EB_BROKER_IDLE_WAIT);
    for (guint i = 0; i < 5; i++) {
        g_autofree char *event = g_strdup_printf("7\r\nevent%u\n\r\n", i), *shown = g_strdup_printf("event%u\n", i);

        before = mark();
        say(self->origin, event);
        WAIT_GUEST(shown);
        let_pass(self, before, EB_BROKER_IDLE_WAIT);
        g_assert_false(self->over);
        g_assert_true(is_open(self));
    }
    let_pass(self, mark(), EB_BROKER_IDLE_WAIT);
    WAIT_GUEST(NULL);
    g_assert_null(strstr(self->heard->str, "\r\n0\r\n"));
    WAIT_ORIGIN(NULL);
}

/* A guest that does not take what it asked for is waited for much less long than a model that thinks. */
static void
test_stall(Fixture *self, gconstpointer reads)
{
    g_autofree char *bytes = g_malloc0(MUCH);
    gsize sent = 0, taken = 0;
    gint64 before;

    say(self->guest, WHOLE);
    WAIT_ORIGIN("{}");
    before = mark();
    say(self->origin, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
    /* Until neither the broker nor the sockets take any more. */
    for (guint quiet = 0; quiet < 50;) {
        ssize_t got = send(self->origin, bytes, MUCH - sent, MSG_NOSIGNAL);

        sent += (gsize)MAX(got, 0);
        quiet = got > 0 ? 0 : quiet + 1;
        while (g_main_context_iteration(NULL, FALSE))
            quiet = 0;
    }
    g_assert_cmpuint(sent, <, MUCH);
    let_pass(self, before, EB_BROKER_STALL_WAIT);
    g_assert_true(is_open(self));
    before = mark();
    if (reads != NULL) {
        /* All that was held for it, and more: the broker asks the provider again. */
        while (taken < sent / 2) {
            ssize_t got = recv(self->guest, bytes, MUCH, 0);

            taken += (gsize)MAX(got, 0);
            g_main_context_iteration(NULL, FALSE);
        }
    }
    let_pass(self, before, EB_BROKER_STALL_WAIT);
    g_assert_cmpint(is_open(self), ==, reads != NULL);
    let_pass(self, mark(), EB_BROKER_IDLE_WAIT);
    g_assert_false(is_open(self));
}

/* One that is kept for the next question, and what asks in between. */
static void
test_pool(Fixture *self, gconstpointer unused)
{
    gint64 before = 0;

    for (guint i = 0; i < 2; i++) {
        say(self->guest, WHOLE);
        WAIT_ORIGIN("{}");
        g_string_truncate(self->asked, 0);
        g_string_truncate(self->heard, 0);
        before = mark();
        say(self->origin, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        WAIT_GUEST("ok");
    }
    let_pass(self, before, EB_UPSTREAM_IDLE_WAIT);
    say(self->guest, WHOLE);
    WAIT_ORIGIN("{}"); /* on the same connection */
    say(self->origin, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    WAIT_GUEST("ok");
    let_pass(self, mark(), EB_UPSTREAM_IDLE_WAIT);
    WAIT_ORIGIN(NULL);
    g_assert_true(is_open(self));
}

/* --- the service, and a WebSocket --- */

/* Who may grant does not answer: nothing goes up. */
static void
test_budget(Fixture *self, gconstpointer unused)
{
    gint64 before = mark();

    self->config->budget = TRUE;
    say(self->guest, WHOLE);
    let_pass(self, before, EB_METER_WAIT);
    g_assert_false(guest_heard(&(Wait){self, "HTTP"}));
    let_pass(self, mark(), EB_METER_WAIT);
    WAIT_GUEST("budget-unknown");
    ASSERT_HEARD("HTTP/1.1 503 ");
    g_assert_cmpint(accept4(self->listener, NULL, NULL, SOCK_CLOEXEC), ==, -1);
}

static void
test_handshake(Fixture *self, gconstpointer unused)
{
    g_autofree char *request = g_strdup_printf("GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                                               "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                                               "Sec-WebSocket-Version: 13\r\n"
                                               "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
                                               self->port, self->port);
    gint64 before = mark();

    say(self->guest, request);
    WAIT_ORIGIN("\r\n\r\n");
    let_pass(self, before, EB_BROKER_HANDSHAKE_WAIT);
    g_assert_false(guest_heard(&(Wait){self, "HTTP"}));
    let_pass(self, mark(), EB_BROKER_HANDSHAKE_WAIT);
    WAIT_GUEST("answer-timeout");
    WAIT_ORIGIN(NULL);
}

#define ADD(path, data, func) g_test_add("/broker/limits/" path, Fixture, data, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    ADD("head", NULL, test_head);
    ADD("silent", NULL, test_silent);
    ADD("keep-alive", NULL, test_keep_alive);
    ADD("linger", NULL, test_linger);
    ADD("first-byte", NULL, test_first_byte);
    ADD("upload", NULL, test_upload);
    ADD("answer-idle", NULL, test_answer_idle);
    ADD("stalled-guest", NULL, test_stall);
    ADD("slow-guest", "reads", test_stall);
    ADD("pool", NULL, test_pool);
    ADD("budget", NULL, test_budget);
    ADD("handshake", NULL, test_handshake);
    return g_test_run();
}
