/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-front-conn.h"
#include "core/broker/eb-route.h"

G_BEGIN_DECLS

/** EbUpstream: the client side: one pool of connections for providers, one for plain http. */
EbUpstream *eb_upstream_new(EbBroker *broker, GTlsDatabase *tls_database);
void eb_upstream_free(EbUpstream *self);

/** EbExchange: one request on its way up and its answer on its way down. */
typedef struct _EbExchange EbExchange;

/**
 * eb_exchange_start: builds the request from typed fields and sends it. @route: its path and provider are used up to
 * the end of the call, the configuration is kept alive.
 */
EbExchange *eb_exchange_start(EbBroker *broker, EbFrontConn *conn, EbBrokerConfig *config, const EbHttpRequest *request,
                              const EbRoute *route);
void eb_exchange_body_ready(EbExchange *self);
void eb_exchange_drained(EbExchange *self);
/** eb_exchange_tick: looks at the deadlines. */
void eb_exchange_tick(EbExchange *self, gint64 now);
/** eb_exchange_abort: the connection to the guest is going: nothing of it is called any more. */
void eb_exchange_abort(EbExchange *self);

G_END_DECLS
