/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-front-conn.h"
#include "core/broker/eb-http-answer.h"
#include "core/broker/eb-route.h"

G_BEGIN_DECLS

/** EbExchange: one request on its way up and its answer on its way down. */
typedef struct _EbExchange EbExchange;

/**
 * eb_exchange_start: sends the request of @conn, which is parsed already, to where @route says.
 * @route: its path is taken; its provider belongs to @config, which is kept alive
 * @slot: where @conn keeps the running exchange; set before anything of @conn is called, which may be before this
 *   returns
 */
void eb_exchange_start(EbBroker *broker, EbFrontConn *conn, EbBrokerConfig *config, const EbHttpRequest *request,
                       EbRoute *route, EbExchange **slot);
/** eb_exchange_body_ready: more of the request's body may be there. */
void eb_exchange_body_ready(EbExchange *self);
/** eb_exchange_drained: the guest took what it was sent. */
void eb_exchange_drained(EbExchange *self);
/** eb_exchange_tick: looks at the deadlines. */
void eb_exchange_tick(EbExchange *self, gint64 now);
/** eb_exchange_abort: the connection to the guest is going: nothing of it is called any more. */
void eb_exchange_abort(EbExchange *self);

/**
 * EbAnswerObserver: sees what providers answer as it passes to the guest: framing taken off, nothing held, the key not
 * yet blotted out. Whoever looks at it keeps no copy of what it does not need.
 */
struct _EbAnswerObserver {
    /** begin: Returns: (nullable): what the others are called with; NULL: this answer is not looked at. */
    gpointer (*begin)(EbBroker *broker, EbFrontConn *conn, const EbHttpAnswerHead *head);
    /** bytes: FALSE: the answer is cut off here. */
    gboolean (*bytes)(gpointer watched, const char *bytes, gsize length);
    /** end: called once; @complete: FALSE when the answer broke off or the guest went away */
    void (*end)(gpointer watched, gboolean complete);
};

G_END_DECLS
