/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker.h"
#include "core/broker/eb-upstream-tls.h"

G_BEGIN_DECLS

/** EbUpstreamConn: one connection to an upstream, plain or TLS: bytes in, bytes out, never blocking. */
typedef struct _EbUpstreamConn EbUpstreamConn;
/** EbUpstreamReady: reading or writing may have become possible, or the connection is at its end. */
typedef void (*EbUpstreamReady)(EbUpstreamConn *conn, gpointer owner);

struct _EbUpstreamConn {
    EbBroker *broker; /* (unowned) */
    EbWatch watch;    /* fd owned */
    SSL *ssl;         /* (owned) (nullable) */
    EbAddress address;
    gboolean readable;
    gboolean writable;
    gboolean ended; /* the peer sends nothing more, or the connection is broken */
    EbUpstreamReady ready;
    gpointer owner; /* (unowned) */
    /* the pool's */
    EbTarget target;
    gboolean of_provider;
    gint64 idle_since;
    gboolean resting;
    GList link;
};

/** eb_upstream_conn_new: @fd: (transfer full): connected; @ssl: (transfer full) (nullable) */
EbUpstreamConn *eb_upstream_conn_new(EbBroker *broker, int fd, SSL *ssl, EbUpstreamReady ready, gpointer owner);
/** eb_upstream_conn_free: closes it. */
void eb_upstream_conn_free(EbUpstreamConn *self);
void eb_upstream_conn_set_owner(EbUpstreamConn *self, EbUpstreamReady ready, gpointer owner);

typedef enum {
    EB_UPSTREAM_OK,
    EB_UPSTREAM_WAIT,   /* ready will be called */
    EB_UPSTREAM_END,    /* the peer ended the connection properly */
    EB_UPSTREAM_BROKEN, /* anything else */
} EbUpstreamResult;

/** eb_upstream_conn_rest: nothing is expected for a while: gives memory back. TRUE: it did not rest before. */
gboolean eb_upstream_conn_rest(EbUpstreamConn *self);
/** eb_upstream_conn_handshake: goes on with the handshake; at once OK without TLS. */
EbUpstreamResult eb_upstream_conn_handshake(EbUpstreamConn *self);
/** eb_upstream_conn_read: as much as is there and fits; @n_read: (out): also with END and BROKEN, what came before */
EbUpstreamResult eb_upstream_conn_read(EbUpstreamConn *self, char *buffer, gsize size, gsize *n_read);
/** eb_upstream_conn_write: @n_written: (out): WAIT: offer the rest again, unchanged and at least as much. */
EbUpstreamResult eb_upstream_conn_write(EbUpstreamConn *self, const char *bytes, gsize length, gsize *n_written);

G_END_DECLS
