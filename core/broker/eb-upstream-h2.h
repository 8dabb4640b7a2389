/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-exchange.h"
#include "core/broker/eb-upstream-conn.h"

G_BEGIN_DECLS

/** EB_H2_MAX_STREAMS: requests at once on one connection; the upstream may allow fewer. */
#define EB_H2_MAX_STREAMS 100
/** EB_H2_STREAM_WINDOW: bytes of an answer that may be on their way to a guest that does not read: 5 MiB a second from a
 *  provider 50 ms away, and 128 MiB at most with all of EB_BROKER_MAX_EXCHANGES. */
#define EB_H2_STREAM_WINDOW (256 * 1024)

/** EbH2: one HTTP/2 connection to an upstream, shared by requests. */
typedef struct _EbH2 EbH2;

/** eb_h2_new: @conn: (transfer full): after its handshake. @closed: the connection is of no more use: the owner forgets
 *  it, and it frees itself. */
EbH2 *eb_h2_new(EbUpstreamConn *conn, void (*closed)(EbH2 *h2, gpointer owner), gpointer owner);
/** eb_h2_free: requests that are on their way fail. */
void eb_h2_free(EbH2 *self);
/** eb_h2_accepts: TRUE when a request of this kind to @target can go on it. */
gboolean eb_h2_accepts(EbH2 *self, const EbTarget *target, gboolean of_provider);
/** eb_h2_idle_since: monotonic time of the end of the last request; 0 while there are any. */
gint64 eb_h2_idle_since(EbH2 *self);

/** eb_h2_rest: no request is under way: gives memory back. */
void eb_h2_rest(EbH2 *self);

/* --- for one exchange --- */

void eb_h2_begin(EbH2 *self, EbExchange *exchange);
void eb_h2_body_ready(EbH2 *self, EbExchange *exchange);
void eb_h2_drained(EbH2 *self, EbExchange *exchange);
/** eb_h2_detach: the exchange is over; a stream that is still open is reset. */
void eb_h2_detach(EbH2 *self, EbExchange *exchange);

G_END_DECLS
