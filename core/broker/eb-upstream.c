/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-upstream.h"

#include <malloc.h>
#include <sodium.h>
#include <string.h>

#include "core/broker/eb-upstream-request.h"

/* So many connections that begin to rest in one tick are worth a walk through the heap. */
#define TRIM_AT 16

struct _EbUpstream {
    EbBroker *broker;   /* (unowned) */
    EbUpstreamTls *tls; /* (owned) */
    GQueue idle;        /* the one used last first; at most EB_UPSTREAM_MAX_IDLE */
    GPtrArray *h2;      /* (element-type EbH2) (owned): at most EB_UPSTREAM_MAX_H2 */
    EbTicked ticked;
    gboolean ticking;
    char *head;  /* (owned) (nullable): made with the first request */
    char *piece; /* (owned) (nullable): the same */
};

static void upstream_tick(gpointer owner, gint64 now);

EbUpstream *
eb_upstream_new(EbBroker *broker, EbUpstreamTls *tls)
{
    EbUpstream *self = g_new0(EbUpstream, 1);

    self->broker = broker;
    self->tls = tls;
    g_queue_init(&self->idle);
    self->h2 = g_ptr_array_new();
    return self;
}

/* On the list of what ticks as long as there is anything to look at. */
static void
set_ticking(EbUpstream *self)
{
    gboolean wanted = self->idle.length > 0 || self->h2->len > 0;

    if (wanted == self->ticking)
        return;
    self->ticking = wanted;
    if (wanted)
        eb_broker_tick_add(self->broker, &self->ticked, upstream_tick, self);
    else
        eb_broker_tick_remove(self->broker, &self->ticked);
}

static void
forget(EbUpstream *self, EbUpstreamConn *conn)
{
    g_queue_unlink(&self->idle, &conn->link);
    set_ticking(self);
}

static void
drop(EbUpstream *self, EbUpstreamConn *conn)
{
    forget(self, conn);
    eb_upstream_conn_free(conn);
}

static void
drop_h2(EbH2 *h2, gpointer owner)
{
    EbUpstream *self = owner;

    g_ptr_array_remove_fast(self->h2, h2);
    set_ticking(self);
    eb_h2_free(h2);
}

void
eb_upstream_free(EbUpstream *self)
{
    while (self->idle.head != NULL)
        drop(self, self->idle.head->data);
    while (self->h2->len > 0)
        drop_h2(self->h2->pdata[0], self);
    g_ptr_array_unref(self->h2);
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

/*
 * Nothing may come on an unused connection but the records TLS itself sends: an answer that nobody asked for would be
 * taken for the answer to the next request.
 */
static gboolean
is_silent(EbUpstreamConn *conn)
{
    char byte;
    gsize got;

    return eb_upstream_conn_read(conn, &byte, 1, &got) == EB_UPSTREAM_WAIT && !conn->ended;
}

static void
idle_ready(EbUpstreamConn *conn, gpointer owner)
{
    if (!is_silent(conn))
        drop(owner, conn);
}

static void
upstream_tick(gpointer owner, gint64 now)
{
    EbUpstream *self = owner;
    guint n_rested = 0;

    while (self->idle.tail != NULL) {
        EbUpstreamConn *conn = self->idle.tail->data;

        if (now != G_MAXINT64 && now - conn->idle_since < EB_UPSTREAM_IDLE_WAIT)
            break;
        drop(self, conn);
    }
    for (GList *link = self->idle.tail; link != NULL; link = link->prev) {
        EbUpstreamConn *conn = link->data;

        if (now - conn->idle_since < EB_UPSTREAM_REST_WAIT)
            break;
        n_rested += eb_upstream_conn_rest(conn) ? 1 : 0;
    }
    /* What many had at once stays with the process otherwise. */
    if (n_rested >= TRIM_AT)
        malloc_trim(0);
    for (guint i = self->h2->len; i > 0; i--) {
        EbH2 *h2 = self->h2->pdata[i - 1];
        gint64 since = eb_h2_idle_since(h2);

        if (now == G_MAXINT64 || (since != 0 && now - since >= EB_UPSTREAM_IDLE_WAIT))
            drop_h2(h2, self);
        else if (since != 0 && now - since >= EB_UPSTREAM_REST_WAIT)
            eb_h2_rest(h2);
    }
}

EbH2 *
eb_upstream_find_h2(EbUpstream *self, const EbTarget *target, gboolean of_provider)
{
    for (guint i = 0; i < self->h2->len; i++) {
        if (eb_h2_accepts(self->h2->pdata[i], target, of_provider))
            return self->h2->pdata[i];
    }
    return NULL;
}

EbH2 *
eb_upstream_add_h2(EbUpstream *self, EbUpstreamConn *conn)
{
    EbH2 *h2;

    if (self->h2->len >= EB_UPSTREAM_MAX_H2) {
        eb_upstream_conn_free(conn);
        return NULL;
    }
    h2 = eb_h2_new(conn, drop_h2, self);
    g_ptr_array_add(self->h2, h2);
    set_ticking(self);
    return h2;
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
        /* What came since may not have been told yet: the end of it, for one. */
        conn->readable = TRUE;
        if (!is_silent(conn)) {
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
    if (!is_silent(conn)) {
        eb_upstream_conn_free(conn);
        return;
    }
    if (self->idle.length >= EB_UPSTREAM_MAX_IDLE)
        drop(self, self->idle.tail->data);
    conn->idle_since = g_get_monotonic_time();
    conn->resting = FALSE;
    eb_upstream_conn_set_owner(conn, idle_ready, self);
    conn->link.prev = conn->link.next = NULL;
    g_queue_push_head_link(&self->idle, &conn->link);
    set_ticking(self);
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
