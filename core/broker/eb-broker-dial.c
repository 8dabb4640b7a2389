/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/eb-unix.h"

typedef struct {
    EbWatch watch; /* fd owned; -1 when not tried or failed */
    EbDial *dial;  /* (unowned) */
} Attempt;

struct _EbDial {
    EbBroker *broker;       /* (unowned) */
    EbBrokerConfig *config; /* (owned) */
    EbTarget target;
    EbDialFunc func; /* NULL after cancelling */
    gpointer user_data;
    EbDial **slot;           /* (unowned) */
    GCancellable *resolving; /* (owned) (nullable): set while the name is looked up */
    gboolean timed_out;
    gint64 deadline;
    gint64 next_at;
    guint n_addresses;
    guint n_tried;
    guint n_open;
    EbAddress addresses[EB_DIAL_MAX_ADDRESSES];
    Attempt attempts[EB_DIAL_MAX_ADDRESSES];
};

static void
dial_close_attempts(EbDial *self, int keep)
{
    for (guint i = 0; i < self->n_tried; i++) {
        if (self->attempts[i].watch.fd < 0)
            continue;
        if ((int)i == keep)
            eb_poller_remove(self->broker->poller, &self->attempts[i].watch);
        else
            eb_poller_close(self->broker->poller, &self->attempts[i].watch);
    }
}

static void
dial_free(EbDial *self)
{
    self->broker->n_dials--;
    g_clear_object(&self->resolving);
    eb_broker_config_unref(self->config);
    g_free(self);
}

static void
dial_fail(EbDial *self, EbRefusalCode code, const char *detail)
{
    EbDialFunc func = self->func;
    gpointer user_data = self->user_data;
    EbRefusal refusal;

    eb_refusal_set_target(&refusal, code, &self->target, detail);
    *self->slot = NULL;
    dial_close_attempts(self, -1);
    dial_free(self);
    func(user_data, -1, NULL, &refusal);
}

static void
dial_succeed(EbDial *self, guint which)
{
    EbDialFunc func = self->func;
    gpointer user_data = self->user_data;
    EbAddress address = self->addresses[which];
    int fd = self->attempts[which].watch.fd;

    *self->slot = NULL;
    dial_close_attempts(self, (int)which);
    dial_free(self);
    func(user_data, fd, &address, NULL);
}

static socklen_t
fill_sockaddr(const EbAddress *address, guint16 port, struct sockaddr_storage *storage)
{
    memset(storage, 0, sizeof *storage);
    if (address->length == 4) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)storage;

        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, address->bytes, 4);
        return sizeof *v4;
    } else {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)storage;

        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        memcpy(&v6->sin6_addr, address->bytes, 16);
        return sizeof *v6;
    }
}

static void dial_next(EbDial *self);

static void
attempt_ready(EbWatch *watch, guint32 events)
{
    Attempt *attempt = watch->data;
    EbDial *self = attempt->dial;
    int failure = 0;
    socklen_t length = sizeof failure;

    if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0)
        failure = errno;
    if (failure == 0 && (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) == EPOLLOUT) {
        dial_succeed(self, (guint)(attempt - self->attempts));
        return;
    }
    if (failure == 0 && (events & (EPOLLHUP | EPOLLERR)) == 0)
        return;
    eb_poller_close(self->broker->poller, watch);
    self->n_open--;
    dial_next(self);
}

/* Begins the next address. When none is left and none is open, the dial has failed. */
static void
dial_next(EbDial *self)
{
    while (self->n_tried < self->n_addresses) {
        guint which = self->n_tried++;
        const EbAddress *address = &self->addresses[which];
        Attempt *attempt = &self->attempts[which];
        struct sockaddr_storage storage;
        socklen_t length = fill_sockaddr(address, self->target.port, &storage);
        int on = 1, fd;

        attempt->dial = self;
        attempt->watch.fd = -1;
        fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(fd, (struct sockaddr *)&storage, length) != 0 && errno != EINPROGRESS) {
            close(fd);
            continue;
        }
        if (!eb_poller_add(self->broker->poller, &attempt->watch, fd, EPOLLOUT, attempt_ready, attempt)) {
            close(fd);
            attempt->watch.fd = -1;
            continue;
        }
        self->n_open++;
        self->next_at = g_get_monotonic_time() + EB_BROKER_STAGGER_WAIT;
        return;
    }
    if (self->n_open == 0)
        dial_fail(self, EB_REFUSAL_CONNECT, NULL);
}

void
eb_dial_tick(EbDial *self, gint64 now)
{
    if (self->resolving != NULL) {
        if (now >= self->deadline) {
            self->timed_out = TRUE;
            g_cancellable_cancel(self->resolving);
        }
        return;
    }
    if (now >= self->deadline)
        dial_fail(self, EB_REFUSAL_CONNECT_TIMEOUT, NULL);
    else if (now >= self->next_at && self->n_tried < self->n_addresses)
        dial_next(self);
}

static void
dial_begin(EbDial *self)
{
    self->deadline = g_get_monotonic_time() + EB_BROKER_CONNECT_WAIT;
    dial_next(self);
}

/* --- names --- */

gboolean
eb_address_from_inet(GInetAddress *inet, EbAddress *address)
{
    gsize size = g_inet_address_get_native_size(inet);

    if (size != 4 && size != 16)
        return FALSE;
    address->length = (guint8)size;
    memcpy(address->bytes, g_inet_address_to_bytes(inet), size);
    return TRUE;
}

guint
eb_dial_select(EbPolicy *policy, const EbTarget *target, GList *addresses, EbAddress *chosen)
{
    EbAddress by_family[2][EB_DIAL_MAX_ADDRESSES];
    guint counts[2] = {0, 0}, first = 0, n = 0;

    for (GList *link = addresses; link != NULL; link = link->next) {
        EbAddress address = {0};
        guint family;

        if (!eb_address_from_inet(link->data, &address) || !eb_policy_judge_address(policy, target, &address))
            continue;
        family = address.length == 16 ? 1 : 0;
        if (counts[0] + counts[1] == 0)
            first = family;
        if (counts[family] < EB_DIAL_MAX_ADDRESSES)
            by_family[family][counts[family]++] = address;
    }
    /* The resolver's first choice first, then families in turn, so that a broken one costs a quarter of a second. */
    for (guint i = 0; n < EB_DIAL_MAX_ADDRESSES && (i < counts[0] || i < counts[1]); i++) {
        for (guint j = 0; j < 2 && n < EB_DIAL_MAX_ADDRESSES; j++) {
            guint family = j == 0 ? first : 1 - first;

            if (i < counts[family])
                chosen[n++] = by_family[family][i];
        }
    }
    return n;
}

static void
dial_on_resolved(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbDial *self = user_data;
    g_autoptr(GError) error = NULL;
    GList *addresses = g_resolver_lookup_by_name_finish(G_RESOLVER(source), result, &error);
    gboolean found = addresses != NULL;

    g_clear_object(&self->resolving);
    if (self->func == NULL) {
        g_resolver_free_addresses(addresses);
        dial_free(self);
        return;
    }
    self->n_addresses = eb_dial_select(self->config->policy, &self->target, addresses, self->addresses);
    g_resolver_free_addresses(addresses);
    if (self->n_addresses > 0)
        dial_begin(self);
    else if (found)
        dial_fail(self, EB_REFUSAL_INTERNAL, "the name resolves to internal addresses alone");
    else
        dial_fail(self, self->timed_out ? EB_REFUSAL_RESOLVE_TIMEOUT : EB_REFUSAL_RESOLVE, NULL);
}

void
eb_dial_start(EbBroker *broker, EbBrokerConfig *config, const EbTarget *target, EbDialFunc func, gpointer user_data,
              EbDial **slot)
{
    EbDial *self;

    if (broker->n_dials >= EB_BROKER_MAX_DIALS) {
        EbRefusal refusal;

        eb_refusal_set_target(&refusal, EB_REFUSAL_BUSY, target, "too many are being opened at once");
        func(user_data, -1, NULL, &refusal);
        return;
    }
    self = g_new0(EbDial, 1);
    self->slot = slot;
    *slot = self;
    self->broker = broker;
    self->config = eb_broker_config_ref(config);
    self->target = *target;
    self->func = func;
    self->user_data = user_data;
    broker->n_dials++;
    eb_broker_tick_soon(broker);
    if (target->literal) {
        self->addresses[0] = target->address;
        self->n_addresses = 1;
        dial_begin(self);
        return;
    }
    self->resolving = g_cancellable_new();
    self->deadline = g_get_monotonic_time() + EB_BROKER_RESOLVE_WAIT;
    g_resolver_lookup_by_name_async(broker->resolver, self->target.host, self->resolving, dial_on_resolved, self);
}

void
eb_dial_cancel(EbDial *self)
{
    self->func = NULL;
    if (self->resolving != NULL) {
        /* Its callback frees it. */
        g_cancellable_cancel(self->resolving);
        return;
    }
    dial_close_attempts(self, -1);
    dial_free(self);
}
