/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/uio.h>

#include "core/broker/eb-broker.h"
#include "core/broker/eb-http-front.h"

G_BEGIN_DECLS

/** EB_FRONT_PIECE: bytes of a request's body held at once. */
#define EB_FRONT_PIECE (64 * 1024)

/** EbFrontConn: one connection of the guest: requests one after the other, until it ends or becomes a tunnel. */
typedef struct _EbFrontConn EbFrontConn;

/** eb_front_conn_accept: @fd: (transfer full) */
void eb_front_conn_accept(EbBroker *broker, int fd);

/* --- for the exchange that answers the running request --- */

typedef enum {
    EB_BODY_SOME,
    EB_BODY_END,
    EB_BODY_WAIT,   /* eb_exchange_body_ready() will be called */
    EB_BODY_BROKEN, /* malformed, or the guest is gone */
} EbBodyResult;

/** eb_front_conn_read_body: @n_read: (out): with EB_BODY_SOME, 1 to @size */
EbBodyResult eb_front_conn_read_body(EbFrontConn *self, char *buffer, gsize size, gsize *n_read);
/** eb_front_conn_take_body: (transfer full) (nullable): the whole body when it is small and here already. */
GBytes *eb_front_conn_take_body(EbFrontConn *self);
/**
 * eb_front_conn_begin_answer: @head: (transfer full): a complete head without its Connection header and last empty
 * line. It leaves with the next send, in one system call, or by eb_front_conn_flush_head().
 */
void eb_front_conn_begin_answer(EbFrontConn *self, GString *head, gboolean close_delimited);
void eb_front_conn_flush_head(EbFrontConn *self);
/** eb_front_conn_get_meter: (transfer none) (nullable): of the running request; see eb-meter.h */
EbMeter *eb_front_conn_get_meter(EbFrontConn *self);
gboolean eb_front_conn_is_http_1_0(EbFrontConn *self);
/** EB_FRONT_MAX_PIECES: pieces of one send. */
#define EB_FRONT_MAX_PIECES 4
/** eb_front_conn_send: FALSE: eb_exchange_drained() will be called; send nothing before. May end the exchange. */
gboolean eb_front_conn_send(EbFrontConn *self, const struct iovec *pieces, guint n_pieces);
/** eb_front_conn_end_answer: @complete: FALSE closes the connection so that the guest sees the cut. */
void eb_front_conn_end_answer(EbFrontConn *self, gboolean complete);
/** eb_front_conn_refuse: instead of an answer; the exchange is over. */
void eb_front_conn_refuse(EbFrontConn *self, const EbRefusal *refusal);
EbAudit *eb_front_conn_get_audit(EbFrontConn *self);

G_END_DECLS
