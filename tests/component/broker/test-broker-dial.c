/* SPDX-License-Identifier: MIT */
/*
 * Dialling with real sockets, in a network namespace of its own whose loopback has public addresses: a name is looked
 * up once, what it leads to is judged, and exactly that is dialled, families in turn (RFC 8305). Time is what the test
 * says it is.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/broker/eb-broker-dial.h"
#include "eb-test.h"

#define PORT 8443
#define QUICK_V4 "20.0.0.1"
#define SLOW_V4 "20.0.0.2"
#define QUICK_V6 "2600::1"
#define SLOW_V6 "2600::2"
/* No route leads there. */
#define NOWHERE_V4 "20.1.0.1"
#define NOWHERE_V6 "2601::1"

/* --- a resolver that says what the test wants, once --- */

#define TEST_TYPE_RESOLVER (test_resolver_get_type())
G_DECLARE_FINAL_TYPE(TestResolver, test_resolver, TEST, RESOLVER, GResolver)

struct _TestResolver {
    GResolver parent_instance;
    const char *const *answer; /* NULL: none comes */
    guint n_asked;
};

G_DEFINE_FINAL_TYPE(TestResolver, test_resolver, G_TYPE_RESOLVER)

static void
on_cancelled(GCancellable *cancellable, gpointer user_data)
{
    g_task_return_new_error(user_data, G_IO_ERROR, G_IO_ERROR_CANCELLED, "cancelled");
    g_object_unref(user_data);
}

static void
resolver_ask(GResolver *resolver, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    TestResolver *self = TEST_RESOLVER(resolver);
    GTask *task = g_task_new(resolver, cancellable, callback, user_data);
    GList *list = NULL;

    self->n_asked++;
    if (self->answer == NULL) {
        g_cancellable_connect(cancellable, G_CALLBACK(on_cancelled), task, NULL);
        return;
    }
    for (gsize i = 0; self->answer[i] != NULL; i++)
        list = g_list_append(list, g_inet_address_new_from_string(self->answer[i]));
    if (list != NULL)
        g_task_return_pointer(task, list, (GDestroyNotify)g_resolver_free_addresses);
    else
        g_task_return_new_error(task, G_RESOLVER_ERROR, G_RESOLVER_ERROR_NOT_FOUND, "no such name");
    g_object_unref(task);
}

static GList *
resolver_answer(GResolver *resolver, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
test_resolver_class_init(TestResolverClass *klass)
{
    G_RESOLVER_CLASS(klass)->lookup_by_name_async = resolver_ask;
    G_RESOLVER_CLASS(klass)->lookup_by_name_finish = resolver_answer;
}

static void
test_resolver_init(TestResolver *self)
{
}

/* --- the network --- */

static void
add_v4(int fd, const char *label, const char *text)
{
    struct ifreq request = {0};
    struct sockaddr_in *name = (struct sockaddr_in *)&request.ifr_addr;

    g_strlcpy(request.ifr_name, label, sizeof request.ifr_name);
    name->sin_family = AF_INET;
    g_assert_cmpint(inet_pton(AF_INET, text, &name->sin_addr), ==, 1);
    g_assert_cmpint(ioctl(fd, SIOCSIFADDR, &request), ==, 0);
    /* A netmask of its class would make its whole network local. */
    name->sin_addr.s_addr = INADDR_BROADCAST;
    g_assert_cmpint(ioctl(fd, SIOCSIFNETMASK, &request), ==, 0);
}

static void
add_v6(int fd, const char *text)
{
    struct {
        struct in6_addr address;
        guint32 bits;
        int index;
    } request = {.bits = 128, .index = (int)if_nametoindex("lo")};

    g_assert_cmpint(inet_pton(AF_INET6, text, &request.address), ==, 1);
    g_assert_cmpint(ioctl(fd, SIOCSIFADDR, &request), ==, 0);
}

/* FALSE where that is not allowed. */
static gboolean
enter_network(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int v4, v6;

    if (unshare(CLONE_NEWNET) != 0)
        return FALSE;
    v4 = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    v6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    request.ifr_flags = IFF_UP;
    g_assert_cmpint(ioctl(v4, SIOCSIFFLAGS, &request), ==, 0);
    add_v4(v4, "lo:1", QUICK_V4);
    add_v4(v4, "lo:2", SLOW_V4);
    if (v6 < 0)
        return FALSE;
    add_v6(v6, QUICK_V6);
    add_v6(v6, SLOW_V6);
    close(v4);
    close(v6);
    return TRUE;
}

static socklen_t
name_of(const char *text, struct sockaddr_storage *name)
{
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new_from_string(text, PORT);

    g_assert_true(g_socket_address_to_native(address, name, sizeof *name, NULL));
    return (socklen_t)g_socket_address_get_native_size(address);
}

static int
listen_at(const char *text)
{
    struct sockaddr_storage name;
    socklen_t length = name_of(text, &name);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* A new IPv6 address is looked at for a moment before it can be used. */
    while (bind(fd, (struct sockaddr *)&name, length) != 0) {
        g_assert_cmpint(errno, ==, EADDRNOTAVAIL);
        g_usleep(2000);
    }
    g_assert_cmpint(listen(fd, 0), ==, 0);
    return fd;
}

/* With one connection in its queue of none a listener answers no other: a host that drops what comes. */
static int
fill_queue(const char *text)
{
    struct sockaddr_storage name;
    socklen_t length = name_of(text, &name);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(connect(fd, (struct sockaddr *)&name, length), ==, 0);
    return fd;
}

/* --- the dial --- */

typedef struct {
    TestResolver *resolver;
    EbBroker *broker;
    EbBrokerConfig *config;
    int quick_v4, quick_v6;
    int slow[4];
    EbDial *dial;
    gboolean done;
    int fd;
    char address[EB_ADDRESS_TEXT];
    EbRefusal refusal;
} Fixture;

static void
set_up(Fixture *self, gconstpointer unused)
{
    static const char *const ALLOW[] = {"name.test", "127.0.0.1", NULL};
    static const guint16 PORTS[] = {PORT};

    self->resolver = g_object_new(TEST_TYPE_RESOLVER, NULL);
    self->broker = eb_broker_new(g_main_context_default(), G_RESOLVER(self->resolver), NULL, NULL);
    self->config = g_new0(EbBrokerConfig, 1);
    g_atomic_ref_count_init(&self->config->refs);
    self->config->policy = eb_policy_new(TRUE, ALLOW, PORTS, 1, TRUE, NULL);
    self->config->providers = g_ptr_array_new();
    self->quick_v4 = listen_at(QUICK_V4);
    self->quick_v6 = listen_at(QUICK_V6);
    self->slow[0] = listen_at(SLOW_V4);
    self->slow[1] = fill_queue(SLOW_V4);
    self->slow[2] = listen_at(SLOW_V6);
    self->slow[3] = fill_queue(SLOW_V6);
    self->fd = -1;
}

static void
tear_down(Fixture *self, gconstpointer unused)
{
    if (self->dial != NULL)
        eb_dial_cancel(self->dial);
    if (self->fd >= 0)
        close(self->fd);
    close(self->quick_v4);
    close(self->quick_v6);
    for (guint i = 0; i < 4; i++)
        close(self->slow[i]);
    eb_broker_config_unref(self->config);
    eb_broker_free(self->broker);
    g_object_unref(self->resolver);
}

static void
on_dialed(gpointer user_data, int fd, const EbAddress *address, const EbRefusal *refusal)
{
    Fixture *self = user_data;

    self->done = TRUE;
    self->fd = fd;
    if (fd >= 0)
        eb_address_format(address, self->address);
    else
        self->refusal = *refusal;
}

static void
dial(Fixture *self, const char *const *answer)
{
    EbTarget target;

    self->resolver->answer = answer;
    g_assert_true(eb_target_parse("name.test:8443", 14, 0, &target, NULL));
    eb_dial_start(self->broker, self->config, &target, on_dialed, self, &self->dial);
}

static void
settle(Fixture *self)
{
    while (!self->done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(self->resolver->n_asked, ==, 1);
    g_assert_null(self->dial);
}

/* What is there to be handled now, without waiting. */
static void
handle_pending(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        continue;
}

static gint64
after(gint64 wait)
{
    return g_get_monotonic_time() + wait;
}

static void
test_first(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {QUICK_V4, QUICK_V6, NULL};

    dial(self, ANSWER);
    settle(self);
    g_assert_cmpstr(self->address, ==, QUICK_V4);
    g_assert_cmpint(accept(self->quick_v6, NULL, NULL), <, 0);
}

/* One that fails at once costs nothing; the resolver's first choice of a family is followed. */
static void
test_broken_family(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {NOWHERE_V6, NOWHERE_V4, QUICK_V4, NULL};

    dial(self, ANSWER);
    settle(self);
    g_assert_cmpstr(self->address, ==, QUICK_V4);
}

/* One that does not answer is not waited for: after a quarter of a second the next is tried beside it. */
static void
test_silent_family(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {SLOW_V6, QUICK_V4, NULL};

    dial(self, ANSWER);
    handle_pending();
    g_assert_nonnull(self->dial);
    eb_dial_tick(self->dial, after(0));
    handle_pending();
    g_assert_false(self->done);
    eb_dial_tick(self->dial, after(EB_BROKER_STAGGER_WAIT));
    settle(self);
    g_assert_cmpstr(self->address, ==, QUICK_V4);
}

static void
test_all_silent(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {SLOW_V6, SLOW_V4, NULL};

    dial(self, ANSWER);
    handle_pending();
    eb_dial_tick(self->dial, after(EB_BROKER_STAGGER_WAIT));
    handle_pending();
    eb_dial_tick(self->dial, after(EB_BROKER_CONNECT_WAIT));
    settle(self);
    g_assert_cmpint(self->refusal.code, ==, EB_REFUSAL_CONNECT_TIMEOUT);
}

static void
test_all_fail(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {NOWHERE_V6, NOWHERE_V4, NULL};

    dial(self, ANSWER);
    settle(self);
    g_assert_cmpint(self->refusal.code, ==, EB_REFUSAL_CONNECT);
}

/* What is inside is left out, whatever stands beside it, and never dialled. */
static void
test_judged(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {"127.0.0.1", "::1", "::ffff:20.0.0.1", "::ffff:127.0.0.1", QUICK_V6, NULL};
    int inside = listen_at("127.0.0.1");

    dial(self, ANSWER);
    settle(self);
    g_assert_cmpstr(self->address, ==, "::ffff:20.0.0.1");
    g_assert_cmpint(accept(inside, NULL, NULL), <, 0);
    close(inside);
}

static void
test_all_inside(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {"127.0.0.1", "10.0.0.1", "fe80::1", "64:ff9b::7f00:1", NULL};

    dial(self, ANSWER);
    settle(self);
    g_assert_cmpint(self->refusal.code, ==, EB_REFUSAL_INTERNAL);
}

static void
test_no_name(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {NULL};

    dial(self, ANSWER);
    settle(self);
    g_assert_cmpint(self->refusal.code, ==, EB_REFUSAL_RESOLVE);
}

static void
test_resolver_silent(Fixture *self, gconstpointer unused)
{
    dial(self, NULL);
    handle_pending();
    eb_dial_tick(self->dial, after(0));
    g_assert_false(self->done);
    eb_dial_tick(self->dial, after(EB_BROKER_RESOLVE_WAIT));
    settle(self);
    g_assert_cmpint(self->refusal.code, ==, EB_REFUSAL_RESOLVE_TIMEOUT);
}

/* A guest that goes away takes everything along that was begun for it. */
static void
test_cancelled(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {SLOW_V6, SLOW_V4, NULL};

    dial(self, ANSWER);
    handle_pending();
    eb_dial_tick(self->dial, after(EB_BROKER_STAGGER_WAIT));
    eb_dial_cancel(g_steal_pointer(&self->dial));
    dial(self, NULL);
    eb_dial_cancel(g_steal_pointer(&self->dial));
    handle_pending();
    g_assert_false(self->done);
    g_assert_cmpuint(self->broker->n_dials, ==, 0);
}

/* However many addresses a name has, eight are tried. */
static void
test_many_addresses(Fixture *self, gconstpointer unused)
{
    static const char *const ANSWER[] = {"20.1.0.1", "20.1.0.2", "20.1.0.3", "20.1.0.4", "20.1.0.5",
                                         "20.1.0.6", "20.1.0.7", "20.1.0.8", QUICK_V4,   NULL};

    dial(self, ANSWER);
    settle(self);
    g_assert_cmpint(self->refusal.code, ==, EB_REFUSAL_CONNECT);
}

static void
test_many_dials(Fixture *self, gconstpointer unused)
{
    EbDial *dials[EB_BROKER_MAX_DIALS];
    EbTarget target;

    g_assert_true(eb_target_parse("name.test:8443", 14, 0, &target, NULL));
    for (guint i = 0; i < EB_BROKER_MAX_DIALS; i++)
        eb_dial_start(self->broker, self->config, &target, on_dialed, self, &dials[i]);
    g_assert_false(self->done);
    eb_dial_start(self->broker, self->config, &target, on_dialed, self, &self->dial);
    g_assert_true(self->done);
    g_assert_cmpint(self->refusal.code, ==, EB_REFUSAL_BUSY);
    for (guint i = 0; i < EB_BROKER_MAX_DIALS; i++)
        eb_dial_cancel(dials[i]);
    handle_pending();
    g_assert_cmpuint(self->broker->n_dials, ==, 0);
}

#define ADD(path, func) g_test_add("/broker/dial/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    if (!enter_network())
        return 77;
    ADD("first", test_first);
    ADD("broken-family", test_broken_family);
    ADD("silent-family", test_silent_family);
    ADD("all-silent", test_all_silent);
    ADD("all-fail", test_all_fail);
    ADD("judged", test_judged);
    ADD("all-inside", test_all_inside);
    ADD("no-name", test_no_name);
    ADD("resolver-silent", test_resolver_silent);
    ADD("cancelled", test_cancelled);
    ADD("many-addresses", test_many_addresses);
    ADD("many-dials", test_many_dials);
    return g_test_run();
}
