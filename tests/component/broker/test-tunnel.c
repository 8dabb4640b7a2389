/* SPDX-License-Identifier: MIT */
/* A tunnel between two socket pairs: each side ends on its own, and both bounds of its life, at times the test says. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/broker/eb-tunnel.h"
#include "eb-test.h"

typedef struct {
    EbBroker *broker;
    GResolver *resolver;
    EbWatch client;
    int guest;
    int host;
} Fixture;

static void
unexpected(EbWatch *watch, guint32 events)
{
    g_error("an event for a watch that was handed over");
}

static void
make_pair(int *near, int *far)
{
    int ends[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), ==, 0);
    *near = ends[0];
    *far = ends[1];
}

static void
set_up(Fixture *self, gconstpointer unused)
{
    EbAudit audit = {0};
    int client, upstream;

    self->resolver = g_resolver_get_default();
    self->broker = eb_broker_new(g_main_context_default(), self->resolver, NULL, NULL);
    make_pair(&client, &self->guest);
    make_pair(&upstream, &self->host);
    g_assert_true(eb_poller_add(self->broker->poller, &self->client, client, EPOLLIN, unexpected, NULL));
    eb_audit_begin(&audit, "connect", "host.test", 443, NULL);
    g_assert_true(eb_audit_count_host(self->broker, &audit));
    self->broker->n_connections = 1;
    eb_tunnel_start(self->broker, &self->client, upstream, "early", 5, &audit);
}

static void
tear_down(Fixture *self, gconstpointer unused)
{
    close(self->guest);
    close(self->host);
    eb_broker_free(self->broker);
    g_object_unref(self->resolver);
}

static void
handle_pending(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        continue;
}

static void
assert_received(int fd, const char *text)
{
    char buffer[64];
    ssize_t got;

    handle_pending();
    got = recv(fd, buffer, sizeof buffer, 0);
    g_assert_cmpmem(buffer, MAX(got, 0), text, strlen(text));
}

static gboolean
is_open(Fixture *self)
{
    return self->broker->n_connections == 1;
}

static void
tick(Fixture *self, gint64 later)
{
    EbTicked *ticked = self->broker->ticked.head->data;

    ticked->tick(ticked->owner, g_get_monotonic_time() + later);
}

static void
test_half_close(Fixture *self, gconstpointer from_host)
{
    int first = from_host != NULL ? self->host : self->guest, second = from_host != NULL ? self->guest : self->host;

    assert_received(self->host, "early");
    g_assert_cmpint(send(first, "last", 4, 0), ==, 4);
    shutdown(first, SHUT_WR);
    assert_received(second, "last");
    assert_received(second, "");
    g_assert_true(is_open(self));
    /* The other way goes on for as long as it likes. */
    for (guint i = 0; i < 3; i++) {
        g_assert_cmpint(send(second, "more", 4, 0), ==, 4);
        assert_received(first, "more");
    }
    shutdown(second, SHUT_WR);
    assert_received(first, "");
    g_assert_false(is_open(self));
    g_assert_cmpuint(g_hash_table_size(self->broker->hosts), ==, 0);
}

static void
test_idle(Fixture *self, gconstpointer unused)
{
    assert_received(self->host, "early");
    tick(self, EB_BROKER_IDLE_WAIT - G_USEC_PER_SEC * 5);
    g_assert_true(is_open(self));
    tick(self, EB_BROKER_IDLE_WAIT);
    g_assert_false(is_open(self));
    assert_received(self->guest, "");
    assert_received(self->host, "");
}

/* Bytes of either side begin the wait anew: what came before does not count any more. */
static void
test_busy(Fixture *self, gconstpointer from_host)
{
    int first = from_host != NULL ? self->host : self->guest, second = from_host != NULL ? self->guest : self->host;

    assert_received(self->host, "early");
    for (guint i = 0; i < 3; i++) {
        EbTicked *ticked = self->broker->ticked.head->data;
        gint64 before = g_get_monotonic_time(), moved = before;

        while (moved == before)
            moved = g_get_monotonic_time();
        g_assert_cmpint(send(first, "busy", 4, 0), ==, 4);
        assert_received(second, "busy");
        ticked->tick(ticked->owner, before + EB_BROKER_IDLE_WAIT);
        g_assert_true(is_open(self));
    }
    tick(self, EB_BROKER_IDLE_WAIT);
    g_assert_false(is_open(self));
}

/* However busy it is. */
static void
test_total(Fixture *self, gconstpointer unused)
{
    assert_received(self->host, "early");
    g_assert_cmpint(send(self->host, "busy", 4, 0), ==, 4);
    assert_received(self->guest, "busy");
    tick(self, EB_BROKER_TUNNEL_WAIT);
    g_assert_false(is_open(self));
}

#define ADD(path, data, func) g_test_add("/broker/tunnel/" path, Fixture, data, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    ADD("guest-ends-first", NULL, test_half_close);
    ADD("host-ends-first", "host", test_half_close);
    ADD("idle", NULL, test_idle);
    ADD("guest-is-busy", NULL, test_busy);
    ADD("host-is-busy", "host", test_busy);
    ADD("total", NULL, test_total);
    return g_test_run();
}
