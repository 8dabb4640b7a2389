/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/eb-unix.h"
#include "core/broker/eb-broker-link.h"
#include "core/broker/eb-front-conn.h"
#include "core/broker/eb-meter.h"
#include "core/broker/eb-tunnel.h"
#include "core/broker/eb-upstream.h"

/* Connections accepted in one turn; the rest of the queue waits for the next. */
#define ACCEPT_TURN 32

#define TICK_SOON (G_USEC_PER_SEC / 10)
#define TICK_LATER G_USEC_PER_SEC

/* --- ticking --- */

static gboolean
ticker_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    EbBroker *self = user_data;
    gint64 now = g_get_monotonic_time();
    GList *next;

    g_source_set_ready_time(source, -1);
    for (GList *link = self->ticked.head; link != NULL; link = next) {
        EbTicked *ticked = link->data;

        next = link->next;
        ticked->tick(ticked->owner, now);
    }
    /* A broker without connections does not wake up at all. */
    if (self->ticked.length > 0 && g_source_get_ready_time(source) < 0)
        g_source_set_ready_time(source, now + (self->n_dials > 0 ? TICK_SOON : TICK_LATER));
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs ticker_funcs = {.dispatch = ticker_dispatch};

/* A source needs a callback to carry its data; the dispatch above never calls it. */
static gboolean
ticker_unused(gpointer user_data)
{
    return G_SOURCE_CONTINUE;
}

void
eb_broker_tick_add(EbBroker *self, EbTicked *ticked, void (*tick)(gpointer owner, gint64 now), gpointer owner)
{
    ticked->tick = tick;
    ticked->owner = owner;
    ticked->link.data = ticked;
    ticked->link.prev = ticked->link.next = NULL;
    g_queue_push_tail_link(&self->ticked, &ticked->link);
    if (g_source_get_ready_time(self->ticker) < 0)
        g_source_set_ready_time(self->ticker, g_get_monotonic_time() + TICK_LATER);
}

void
eb_broker_tick_remove(EbBroker *self, EbTicked *ticked)
{
    g_queue_unlink(&self->ticked, &ticked->link);
}

void
eb_broker_tick_soon(EbBroker *self)
{
    gint64 soon = g_get_monotonic_time() + TICK_SOON;
    gint64 set = g_source_get_ready_time(self->ticker);

    if (set < 0 || set > soon)
        g_source_set_ready_time(self->ticker, soon);
}

/* --- accepting --- */

static void
turn_away(int fd)
{
    EbRefusal refusal;
    GString *text;
    ssize_t sent;

    eb_refusal_set(&refusal, EB_REFUSAL_BUSY, NULL, NULL);
    text = eb_refusal_response(&refusal, FALSE, FALSE);
    sent = send(fd, text->str, text->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
    g_string_free(text, TRUE);
    close(fd);
}

static void
accept_ready(EbWatch *watch, guint32 events)
{
    EbBroker *self = watch->data;

    for (guint i = 0; i < ACCEPT_TURN; i++) {
        int fd;

        if (self->config == NULL || eb_broker_is_behind(self)) {
            self->accept_blocked = TRUE;
            return;
        }
        fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            /* Out of descriptors or memory: the next connection that ends comes back here. */
            self->accept_blocked = errno != EAGAIN;
            return;
        }
        if (self->n_connections >= EB_BROKER_MAX_CONNECTIONS)
            turn_away(fd);
        else
            eb_front_conn_accept(self, fd);
    }
    eb_poller_requeue(self->poller, watch);
}

gboolean
eb_broker_is_behind(EbBroker *self)
{
    gboolean behind = self->link != NULL && eb_broker_link_is_full(self->link);

    self->heads_paused = self->heads_paused || behind;
    return behind;
}

void
eb_broker_resume_accept(EbBroker *self)
{
    if (self->heads_paused && !eb_broker_is_behind(self)) {
        self->heads_paused = FALSE;
        g_source_set_ready_time(self->ticker, g_get_monotonic_time());
    }
    if (!self->listening || !self->accept_blocked)
        return;
    self->accept_blocked = FALSE;
    eb_poller_requeue(self->poller, &self->listener);
}

void
eb_broker_set_listener(EbBroker *self, int fd)
{
    self->listening = eb_poller_add(self->poller, &self->listener, fd, EPOLLIN, accept_ready, self);
}

void
eb_broker_set_config(EbBroker *self, EbBrokerConfig *config)
{
    g_clear_pointer(&self->config, eb_broker_config_unref);
    self->config = config;
    /* What a rule refused may be allowed now, and the service wants to hear of it again if not. */
    g_hash_table_remove_all(self->denied);
    eb_broker_resume_accept(self);
}

/* --- reporting --- */

void
eb_audit_begin(EbAudit *audit, const char *kind, const char *host, guint16 port, EbBrokerConfig *config)
{
    *audit = (EbAudit){
        .kind = kind,
        .host = g_strdup(host),
        .port = port,
        .config = config != NULL ? eb_broker_config_ref(config) : NULL,
        .decision = "allowed",
        .started = g_get_monotonic_time(),
    };
}

gboolean
eb_audit_count_host(EbBroker *self, EbAudit *audit)
{
    EbHostCount *count = g_hash_table_lookup(self->hosts, audit->host);

    if (count == NULL) {
        gsize size = strlen(audit->host) + 1;

        count = g_malloc(sizeof *count + size);
        count->n = 0;
        memcpy(count->host, audit->host, size);
        g_hash_table_insert(self->hosts, count->host, count);
    }
    if (count->n >= EB_BROKER_MAX_PER_HOST)
        return FALSE;
    count->n++;
    audit->counted = count;
    return TRUE;
}

void
eb_audit_end(EbBroker *self, EbAudit *audit)
{
    if (audit->kind == NULL)
        return;
    if (audit->counted != NULL && --audit->counted->n == 0)
        g_hash_table_remove(self->hosts, audit->counted->host);
    if (self->link != NULL)
        eb_broker_link_send_audit(self->link, audit);
    g_free(audit->host);
    g_clear_pointer(&audit->config, eb_broker_config_unref);
    *audit = (EbAudit){0};
}

void
eb_broker_report_refusal(EbBroker *self, const EbRefusal *refusal)
{
    if (!eb_refusal_is_policy(refusal->code) || self->link == NULL || refusal->host[0] == '\0')
        return;
    if (g_hash_table_size(self->denied) >= EB_BROKER_MAX_DENIED || g_hash_table_contains(self->denied, refusal->host))
        return;
    g_hash_table_add(self->denied, g_strdup(refusal->host));
    eb_broker_link_send_denied(self->link, refusal);
}

/* --- life --- */

EbBroker *
eb_broker_new(GMainContext *context, GResolver *resolver, EbUpstreamTls *tls, GError **error)
{
    EbPoller *poller = eb_poller_new(context, error);
    EbBroker *self;

    if (poller == NULL) {
        eb_upstream_tls_free(tls);
        return NULL;
    }
    self = g_new0(EbBroker, 1);
    self->context = context;
    self->poller = poller;
    self->resolver = g_object_ref(resolver);
    self->pipes = eb_pipe_pool_new();
    self->upstream = eb_upstream_new(self, tls);
    self->scratch = g_malloc(EB_BROKER_SCRATCH);
    self->hosts = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    self->meters = g_hash_table_new(g_int64_hash, g_int64_equal);
    self->observer = &EB_METER_OBSERVER;
    self->denied = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&self->ticked);
    self->ticker = g_source_new(&ticker_funcs, sizeof(GSource));
    g_source_set_static_name(self->ticker, "eb-broker-ticker");
    g_source_set_callback(self->ticker, ticker_unused, self, NULL);
    g_source_set_ready_time(self->ticker, -1);
    g_source_attach(self->ticker, context);
    return self;
}

void
eb_broker_free(EbBroker *self)
{
    if (self == NULL)
        return;
    /* Every connection and tunnel is on this list; its end takes it off. */
    while (self->ticked.head != NULL) {
        EbTicked *ticked = self->ticked.head->data;

        ticked->tick(ticked->owner, G_MAXINT64);
    }
    if (self->listening)
        eb_poller_close(self->poller, &self->listener);
    eb_upstream_free(self->upstream);
    eb_pipe_pool_free(self->pipes);
    g_source_destroy(self->ticker);
    g_source_unref(self->ticker);
    g_clear_pointer(&self->config, eb_broker_config_unref);
    g_hash_table_unref(self->hosts);
    g_hash_table_unref(self->meters);
    g_hash_table_unref(self->denied);
    g_object_unref(self->resolver);
    g_free(self->scratch);
    eb_poller_free(self->poller);
    g_free(self);
}
