/* SPDX-License-Identifier: MIT */
/*
 * A tunnel between two socket pairs: each side ends on its own, both bounds of its life, at times the test says, and bulk
 * with pipes and without.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

/* --- bulk, with pipes and without --- */

#define BULK (8u << 20)

/* Sends and takes in turn, a little less than is sent, so that the tunnel meets a full receiver again and again. */
static void
pass_bulk(Fixture *self)
{
    static guint8 block[128 * 1024];
    gsize sent = 0, got = 0;
    guint rounds = 0;

    while (got < BULK) {
        gssize n;

        for (gsize i = 0; i < sizeof block; i++)
            block[i] = (guint8)((sent + i) % 251);
        n = sent < BULK ? send(self->host, block, MIN(sizeof block, BULK - sent), MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        sent += (gsize)MAX(n, 0);
        handle_pending();
        n = recv(self->guest, block, 100 * 1024, MSG_DONTWAIT);
        for (gssize i = 0; i < n; i++)
            g_assert_cmpuint(block[i], ==, (guint8)((got + (gsize)i) % 251));
        g_assert_true(n > 0 || rounds++ < 1000);
        got += (gsize)MAX(n, 0);
        handle_pending();
    }
    g_assert_cmpuint(sent, ==, BULK);
    g_assert_cmpint(recv(self->guest, block, 1, MSG_DONTWAIT), <, 0);
}

/* Descriptors that are pipes. */
static guint
count_pipes(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    const char *name;
    guint n = 0;

    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *link = g_build_filename("/proc/self/fd", name, NULL);
        g_autofree char *target = g_file_read_link(link, NULL);

        n += target != NULL && g_str_has_prefix(target, "pipe:");
    }
    return n;
}

static void
test_bulk(Fixture *self, gconstpointer unused)
{
    guint before = count_pipes();

    pass_bulk(self);
    /* Others of the same account may have used up what it may have. */
    if (geteuid() == 0)
        g_assert_cmpuint(count_pipes(), >, before);
}

/* An account that nobody else has pipes of. */
#define OTHER_UID 61234

/* Makes what follows count as another account's, without root's right to any number of pipes; or root's again. */
static void
be_other_account(gboolean other)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    const guint32 rights = CAP_TO_MASK(CAP_SYS_RESOURCE) | CAP_TO_MASK(CAP_SYS_ADMIN);

    g_assert_cmpint(setresuid(other ? OTHER_UID : 0, (uid_t)-1, (uid_t)-1), ==, 0);
    g_assert_cmpint(syscall(SYS_capget, &header, data), ==, 0);
    data[0].effective = other ? data[0].effective & ~rights : data[0].permitted;
    g_assert_cmpint(syscall(SYS_capset, &header, data), ==, 0);
}

/* The account has all the pages in pipes that it may have: what the kernel gives then is not worth using. */
static void
test_bulk_without_pipes(Fixture *self, gconstpointer unused)
{
    int ends[400], size = 1 << 20;
    gsize n = 0;
    guint before;

    if (geteuid() != 0) {
        g_test_skip("needs root, to use up the pipes of an account that nobody else uses");
        return;
    }
    be_other_account(TRUE);
    while (size >= 1 << 16 && n < G_N_ELEMENTS(ends) && pipe2(ends + n, O_CLOEXEC) == 0) {
        n += 2;
        if (fcntl(ends[n - 1], F_SETPIPE_SZ, size) < 0)
            size /= 2;
    }
    if (n == G_N_ELEMENTS(ends)) {
        g_test_skip("this host bounds no pipes, or at more than the test uses up");
    } else {
        before = count_pipes();
        pass_bulk(self);
        g_assert_cmpuint(count_pipes(), ==, before);
    }
    while (n > 0)
        close(ends[--n]);
    be_other_account(FALSE);
}

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
    ADD("bulk", NULL, test_bulk);
    ADD("bulk-without-pipes", NULL, test_bulk_without_pipes);
    return g_test_run();
}
