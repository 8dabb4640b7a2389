/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-exchange.h"
#include "core/broker/eb-upstream-conn.h"
#include "core/broker/eb-upstream-h2.h"

G_BEGIN_DECLS

/** EB_UPSTREAM_MAX_IDLE: connections kept for the next request, all hosts; the longest unused goes first. */
#define EB_UPSTREAM_MAX_IDLE 256
/** EB_UPSTREAM_IDLE_WAIT: how long one is kept, in microseconds: a new one costs a handshake. */
#define EB_UPSTREAM_IDLE_WAIT (120 * G_USEC_PER_SEC)
/** EB_UPSTREAM_REST_WAIT: how long an unused one keeps its record buffers, in microseconds. */
#define EB_UPSTREAM_REST_WAIT G_USEC_PER_SEC

/** EB_UPSTREAM_PIECE: bytes of an answer or of a request's body that are moved at once. */
#define EB_UPSTREAM_PIECE (64 * 1024)
/** EB_UPSTREAM_TURN: pieces read from one connection before the others get their turn. */
#define EB_UPSTREAM_TURN 8
/** EB_UPSTREAM_MAX_H2: HTTP/2 connections; without a free one a request waits for none and is refused. */
#define EB_UPSTREAM_MAX_H2 64

/** EbUpstream: the connections to upstreams that are not in use. */

/** eb_upstream_new: @tls: (transfer full) */
EbUpstream *eb_upstream_new(EbBroker *broker, EbUpstreamTls *tls);
void eb_upstream_free(EbUpstream *self);
EbUpstreamTls *eb_upstream_get_tls(EbUpstream *self);

/**
 * eb_upstream_take: (transfer full) (nullable): the connection to @target that was used last, if one is open. Those of
 * providers and those of plain forwarding are never mixed.
 */
EbUpstreamConn *eb_upstream_take(EbUpstream *self, const EbTarget *target, gboolean of_provider);
/** eb_upstream_give: @conn: (transfer full): nothing is on its way on it in either direction */
void eb_upstream_give(EbUpstream *self, EbUpstreamConn *conn);

/** eb_upstream_find_h2: (transfer none) (nullable): an HTTP/2 connection that takes another request to @target. */
EbH2 *eb_upstream_find_h2(EbUpstream *self, const EbTarget *target, gboolean of_provider);
/** eb_upstream_add_h2: (transfer none) (nullable): @conn: (transfer full): just opened; NULL when there are too many. */
EbH2 *eb_upstream_add_h2(EbUpstream *self, EbUpstreamConn *conn);

/** eb_upstream_head_buffer: locked memory, EB_UPSTREAM_HEAD_SIZE bytes; valid within one call; to be wiped. */
char *eb_upstream_head_buffer(EbUpstream *self);
/** eb_upstream_wipe: wipes @length bytes of that buffer. */
void eb_upstream_wipe(EbUpstream *self, gsize length);
/** eb_upstream_piece: EB_UPSTREAM_PIECE bytes and room for a chunk's frame; valid within one call. */
char *eb_upstream_piece(EbUpstream *self);

G_END_DECLS
