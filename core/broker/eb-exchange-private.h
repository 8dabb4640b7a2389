/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-dial.h"
#include "core/broker/eb-exchange.h"
#include "core/broker/eb-http-answer.h"
#include "core/broker/eb-key-filter.h"
#include "core/broker/eb-upstream-h2.h"
#include "core/broker/eb-upstream.h"

G_BEGIN_DECLS

/* What eb-exchange.c shares with the protocols below it; nobody else includes this. */

typedef enum {
    EB_EXCHANGE_CONNECT,
    EB_EXCHANGE_REQUEST, /* the body goes up */
    EB_EXCHANGE_ANSWER,  /* nothing came back yet */
    EB_EXCHANGE_BODY,
} EbExchangePhase;

struct _EbExchange {
    int ref_count;
    EbBroker *broker;             /* (unowned) */
    EbFrontConn *conn;            /* (unowned) (nullable): NULL when it is over */
    EbExchange **slot;            /* (unowned): of conn */
    EbBrokerConfig *config;       /* (owned) */
    EbRoute route;                /* its path owned; its provider of config */
    const EbHttpRequest *request; /* (unowned): conn's, valid as long as conn is set */
    EbDial *dial;                 /* (owned) (nullable) */
    EbUpstreamConn *up;           /* (owned) (nullable): with HTTP/1.1, and while connecting */
    EbH2 *h2;                     /* (unowned) (nullable): with HTTP/2 */
    GList h2_link;
    gint32 stream_id;
    gboolean stream_open;
    gsize owed; /* bytes whose window is given back when the guest took them */
    EbExchangePhase phase;
    gint64 moved_at;
    gboolean kept;        /* up was used before */
    gboolean unprocessed; /* the upstream says that it did nothing with the request */
    gboolean retried;     /* a second connection was tried */
    gboolean heard;       /* something came back */
    /* the way up */
    GBytes *whole; /* (owned) (nullable): the body, when it was small and here at once */
    gsize whole_at;
    guint64 streamed;    /* bytes of the body that were read from the guest piece by piece */
    GByteArray *pending; /* (owned) (nullable): bytes the connection did not take: at most one head or piece */
    gsize pending_at;
    gboolean up_done;
    gboolean up_broken; /* it takes nothing more; an answer may be there all the same */
    /* the way down */
    EbHttpAnswer answer;
    GByteArray *in; /* (owned) (nullable): an unfinished head: at most EB_HTTP_MAX_ANSWER_HEAD and a piece */
    EbKeyFilter filter;
    gpointer watched; /* (nullable): the observer's */
    gboolean chunked;
    gboolean draining; /* the guest has not taken the last piece */
    gboolean ended;    /* the answer is complete but for what the guest has to take */
};

EbExchange *eb_exchange_ref(EbExchange *self);
void eb_exchange_unref(EbExchange *self);

/**
 * eb_exchange_fail: the connection let the request down. It is sent once more on a connection of its own when nothing of
 * an answer came, its body is still here as a whole, and it cannot be carried out twice by that: the upstream says that
 * it did nothing with it, or it is idempotent and came upon the end of a kept connection (RFC 9110, section 9.2.2).
 * Otherwise it is refused, or its answer cut off. @detail: static text
 */
void eb_exchange_fail(EbExchange *self, const char *detail);
/** eb_exchange_refuse: @detail: (nullable): static text. Once the answer has begun it is cut off instead. */
void eb_exchange_refuse(EbExchange *self, EbRefusalCode code, const char *detail);
/** eb_exchange_begin_answer: passes the head on; it leaves with the first bytes of the body or with the next flush.
 * May refuse instead: conn is NULL then. */
void eb_exchange_begin_answer(EbExchange *self, const EbHttpAnswerHead *head);
/** eb_exchange_pass: passes bytes of the body on. @last: nothing follows: ends the exchange. See draining. */
void eb_exchange_pass(EbExchange *self, const char *bytes, gsize length, gboolean last);
/** eb_exchange_break: the answer broke off. */
void eb_exchange_break(EbExchange *self);

/** eb_exchange_h1_begin: up is connected and speaks HTTP/1.1. */
void eb_exchange_h1_begin(EbExchange *self);
void eb_exchange_h1_run(EbExchange *self);

/** eb_h2_settle: sends what is due; @h2 may be gone afterwards. */
void eb_h2_settle(EbH2 *h2);

G_END_DECLS
