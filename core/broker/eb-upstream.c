/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-upstream.h"

#include <sodium.h>
#include <string.h>

#include "core/broker/eb-upstream-request.h"

struct _EbUpstream {
    EbBroker *broker;   /* (unowned) */
    EbUpstreamTls *tls; /* (owned) */
    GQueue idle;        /* the one used last first; at most EB_UPSTREAM_MAX_IDLE */
    EbTicked ticked;
    gboolean ticking;
    char *head;  /* (owned) (nullable): made with the first request */
    char *piece; /* (owned) (nullable): the same */
};

EbUpstream *
eb_upstream_new(EbBroker *broker, EbUpstreamTls *tls)
{
    EbUpstream *self = g_new0(EbUpstream, 1);

    self->broker = broker;
    self->tls = tls;
    g_queue_init(&self->idle);
    return self;
}

static void
forget(EbUpstream *self, EbUpstreamConn *conn)
{
    g_queue_unlink(&self->idle, &conn->link);
    if (self->idle.length == 0 && self->ticking) {
        self->ticking = FALSE;
        eb_broker_tick_remove(self->broker, &self->ticked);
    }
}

static void
drop(EbUpstream *self, EbUpstreamConn *conn)
{
    forget(self, conn);
    eb_upstream_conn_free(conn);
}

void
eb_upstream_free(EbUpstream *self)
{
    while (self->idle.head != NULL)
        drop(self, self->idle.head->data);
    eb_upstream_tls_free(self->tls);
    if (self->head != NULL)
        sodium_free(self->head);
    g_free(self->piece);
    g_free(self);
}

EbUpstreamTls *
eb_upstream_get_tls(EbUpstream *self)
{
    return self->tls;
}

/* Nothing may come on an unused connection but the records TLS itself sends: an answer that nobody asked for would be
 * taken for the answer to the next request. */
static void
idle_ready(EbUpstreamConn *conn, gpointer owner)
{
    EbUpstream *self = owner;
    char byte;
    gsize got;

    if (eb_upstream_conn_read(conn, &byte, 1, &got) != EB_UPSTREAM_WAIT || conn->ended)
        drop(self, conn);
}

static void
upstream_tick(gpointer owner, gint64 now)
{
    EbUpstream *self = owner;

    while (self->idle.tail != NULL) {
        EbUpstreamConn *conn = self->idle.tail->data;

        if (now != G_MAXINT64 && now - conn->idle_since < EB_UPSTREAM_IDLE_WAIT)
            return;
        drop(self, conn);
    }
}

EbUpstreamConn *
eb_upstream_take(EbUpstream *self, const EbTarget *target, gboolean of_provider)
{
    GList *next;

    for (GList *link = self->idle.head; link != NULL; link = next) {
        EbUpstreamConn *conn = link->data;

        next = link->next;
        if (conn->of_provider != of_provider || conn->target.port != target->port ||
            strcmp(conn->target.host, target->host) != 0)
            continue;
        if (conn->ended) {
            drop(self, conn);
            continue;
        }
        forget(self, conn);
        return conn;
    }
    return NULL;
}

void
eb_upstream_give(EbUpstream *self, EbUpstreamConn *conn)
{
    if (conn->ended) {
        eb_upstream_conn_free(conn);
        return;
    }
    if (self->idle.length >= EB_UPSTREAM_MAX_IDLE)
        drop(self, self->idle.tail->data);
    conn->idle_since = g_get_monotonic_time();
    eb_upstream_conn_set_owner(conn, idle_ready, self);
    conn->link.prev = conn->link.next = NULL;
    g_queue_push_head_link(&self->idle, &conn->link);
    if (!self->ticking) {
        self->ticking = TRUE;
        eb_broker_tick_add(self->broker, &self->ticked, upstream_tick, self);
    }
}

char *
eb_upstream_head_buffer(EbUpstream *self)
{
    if (self->head == NULL)
        self->head = sodium_malloc(EB_UPSTREAM_HEAD_SIZE);
    if (self->head == NULL)
        g_error("out of locked memory for a request's head");
    return self->head;
}

void
eb_upstream_wipe(EbUpstream *self, gsize length)
{
    sodium_memzero(self->head, length);
}

char *
eb_upstream_piece(EbUpstream *self)
{
    if (self->piece == NULL)
        self->piece = g_malloc(EB_UPSTREAM_PIECE + 2 * EB_UPSTREAM_CHUNK_HEAD);
    return self->piece;
}
