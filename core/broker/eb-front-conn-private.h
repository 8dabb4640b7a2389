/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-canary.h"
#include "core/broker/eb-exchange.h"
#include "core/broker/eb-front-conn.h"
#include "core/broker/eb-meter.h"
#include "core/broker/eb-opening.h"
#include "core/broker/eb-route.h"

G_BEGIN_DECLS

/* What the files of a guest's connection share; nobody else includes this. */

typedef enum {
    EB_FRONT_HEAD,     /* between requests, or within a head */
    EB_FRONT_DIAL,     /* a tunnel is being opened */
    EB_FRONT_EXCHANGE, /* a request is being answered by an upstream */
    EB_FRONT_CLOSING,  /* writes what is left, then waits for the guest to see it */
} EbFrontState;

struct _EbFrontConn {
    EbBroker *broker; /* (unowned) */
    EbWatch watch;    /* fd owned */
    EbTicked ticked;
    EbFrontState state;
    guint holds; /* running calls that use this connection after it may have ended */
    gboolean dead;
    gboolean readable;
    gboolean peer_ended; /* it sends nothing more; through the relay this is all that shows of a gone client */
    gboolean peer_gone;  /* it reads nothing more either */
    gboolean shut;
    gboolean watches_out;
    gboolean inner; /* behind a CONNECT to the broker itself */
    gboolean keep_alive;
    gboolean body_done;
    gboolean answer_begun;
    gboolean continue_due;
    gboolean paused;    /* its next request waits until the service has taken what is to be told of others */
    gboolean body_held; /* its last piece waits for a grant */
    gint64 deadline;
    gsize lingered;
    EbHttpFront front;
    EbHttpRequest *request; /* (owned) (nullable) */
    EbBrokerConfig *config; /* (owned) (nullable): of the running request */
    GByteArray *in;         /* (owned) (nullable): received, not yet read; bounded by one receive */
    GByteArray *body;       /* (owned) (nullable): at most EB_FRONT_PIECE */
    gsize body_at;
    GByteArray *out; /* (owned) (nullable): bounded by one piece of an answer */
    gsize out_at;
    GString *held;        /* (owned) (nullable): an answer's head that leaves with the first bytes of its body */
    EbOpening *opening;   /* (owned) (nullable) */
    EbExchange *exchange; /* (owned) (nullable) */
    EbMeter *meter;       /* (owned) (nullable): of the running request */
    EbRoute asked;        /* of a request that waits for its grant */
    EbAudit audit;
    EbCanaryTail *canary; /* (owned) (nullable) */
};

/** eb_front_conn_destroy: ends it; the memory goes with the last hold. */
void eb_front_conn_destroy(EbFrontConn *self);
/** eb_front_conn_release: frees it when it has ended and holds is 0. */
void eb_front_conn_release(EbFrontConn *self);
/** eb_front_conn_refuse_now: answers the running request, which has no exchange, with a refusal. */
void eb_front_conn_refuse_now(EbFrontConn *self, const EbRefusal *refusal);
/** eb_front_conn_refuse_held: the same, of one that may have an exchange which has not answered yet. */
void eb_front_conn_refuse_held(EbFrontConn *self, const EbRefusal *refusal);
/** eb_front_conn_receive: FALSE: nothing to read now, or (readable still set) the guest is gone. */
gboolean eb_front_conn_receive(EbFrontConn *self, gsize most);
/** eb_front_conn_exchange: sends the running request up; @route: its path is taken */
void eb_front_conn_exchange(EbFrontConn *self, EbRoute *route);
/** eb_front_conn_meter_body: counts bytes of a request's body before they go up. FALSE: they wait, or it was refused. */
gboolean eb_front_conn_meter_body(EbFrontConn *self, const char *bytes, gsize length, gboolean last);
/** eb_front_conn_meter: begins to count a request to a provider. FALSE: it waits, as for a connection that is being made,
 *  or was refused. */
gboolean eb_front_conn_meter(EbFrontConn *self, EbRoute *route);

G_END_DECLS
