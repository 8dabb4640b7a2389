/* SPDX-License-Identifier: MIT */
/* HTTP/1.1 below an exchange: one request on one connection at a time. */
#include "core/broker/eb-exchange-private.h"

#include <sodium.h>
#include <string.h>

#include "core/broker/eb-upstream-request.h"

/* A body up to this size leaves in one record with the head. */
#define ONE_RECORD (16 * 1024)
/* --- the way up --- */

/* FALSE: it did not take everything; what is left is kept when @keep. */
static gboolean
h1_write(EbExchange *self, const char *bytes, gsize length, gboolean keep, gsize *n_written)
{
    EbUpstreamResult result = eb_upstream_conn_write(self->up, bytes, length, n_written);

    if (*n_written > 0)
        self->moved_at = g_get_monotonic_time();
    if (result == EB_UPSTREAM_OK)
        return TRUE;
    if (result != EB_UPSTREAM_WAIT) {
        self->up_broken = TRUE;
    } else if (keep) {
        self->pending = g_byte_array_sized_new((guint)(length - *n_written));
        g_byte_array_append(self->pending, (const guint8 *)bytes + *n_written, (guint)(length - *n_written));
        self->pending_at = 0;
    }
    return FALSE;
}

static gboolean
h1_flush(EbExchange *self)
{
    gsize written = 0;
    gboolean done;

    if (self->pending == NULL)
        return TRUE;
    done = h1_write(self, (const char *)self->pending->data + self->pending_at, self->pending->len - self->pending_at,
                    FALSE, &written);
    self->pending_at += written;
    if (done) {
        sodium_memzero(self->pending->data, self->pending->len);
        g_clear_pointer(&self->pending, g_byte_array_unref);
        self->pending_at = 0;
    }
    return done;
}

/* The next piece of a body that comes piece by piece. FALSE: not now, or the exchange is over. */
static gboolean
h1_stream_piece(EbExchange *self)
{
    char *piece = eb_upstream_piece(self->broker->upstream), *at = piece + EB_UPSTREAM_CHUNK_HEAD;
    char head[EB_UPSTREAM_CHUNK_HEAD];
    gsize got = 0, head_length = 0, written;

    switch (eb_front_conn_read_body(self->conn, at, EB_UPSTREAM_PIECE, &got)) {
    case EB_BODY_SOME:
        self->streamed += got;
        self->moved_at = g_get_monotonic_time();
        if (self->request->chunked) {
            head_length = eb_upstream_chunk_head(got, head);
            memcpy(at - head_length, head, head_length);
            memcpy(at + got, "\r\n", 2);
            got += 2;
        }
        return h1_write(self, at - head_length, head_length + got, TRUE, &written);
    case EB_BODY_END:
        self->up_done = TRUE;
        return !self->request->chunked || h1_write(self, "0\r\n\r\n", 5, TRUE, &written);
    case EB_BODY_WAIT:
    case EB_BODY_BROKEN: /* the front let go of this exchange */
    default:
        return FALSE;
    }
}

static void
h1_pump_up(EbExchange *self)
{
    while (self->conn != NULL && !self->up_broken) {
        gsize length = 0, written;
        const char *bytes;

        if (!h1_flush(self) || self->up_done)
            break;
        if (self->whole == NULL) {
            if (!h1_stream_piece(self))
                break;
            continue;
        }
        bytes = g_bytes_get_data(self->whole, &length);
        h1_write(self, bytes + self->whole_at, length - self->whole_at, FALSE, &written);
        self->whole_at += written;
        if (self->whole_at < length)
            break;
        self->up_done = TRUE;
    }
    if (self->conn != NULL && self->phase == EB_EXCHANGE_REQUEST && self->up_done && self->pending == NULL)
        self->phase = EB_EXCHANGE_ANSWER;
}

void
eb_exchange_h1_begin(EbExchange *self)
{
    char *head = eb_upstream_head_buffer(self->broker->upstream);
    gsize length = eb_upstream_request_head(self->request, &self->route, head, EB_UPSTREAM_HEAD_SIZE), size = 0;
    gsize used = length, written;
    const char *body = self->whole != NULL ? g_bytes_get_data(self->whole, &size) : NULL;

    if (length == 0) {
        eb_upstream_wipe(self->broker->upstream, EB_UPSTREAM_HEAD_SIZE);
        eb_exchange_refuse(self, EB_REFUSAL_HEAD_TOO_LARGE, NULL);
        return;
    }
    self->phase = EB_EXCHANGE_REQUEST;
    self->moved_at = g_get_monotonic_time();
    eb_front_conn_get_audit(self->conn)->address = self->up->address;
    eb_http_answer_begin(&self->answer, self->request->method == EB_HTTP_HEAD);
    if (size > 0 && length + size <= ONE_RECORD) {
        memcpy(head + length, body, size);
        used += size;
        self->whole_at = size;
    }
    self->up_done = self->whole_at == size && (self->whole != NULL || !eb_http_request_has_body(self->request));
    h1_write(self, head, used, TRUE, &written);
    eb_upstream_wipe(self->broker->upstream, used);
    eb_exchange_h1_run(self);
}

/* --- the way down --- */

/* The answer is complete: the connection is free for the next request when both ends agree on that. */
static void
h1_release(EbExchange *self, gboolean clean)
{
    EbUpstreamConn *up = g_steal_pointer(&self->up);

    if (clean && self->answer.head.keep_alive && self->up_done && self->pending == NULL && !self->up_broken)
        eb_upstream_give(self->broker->upstream, up);
    else
        eb_upstream_conn_free(up);
}

static void
h1_take_body(EbExchange *self, char *bytes, gsize length)
{
    gsize n_body, used;
    EbHttpResult result = eb_http_answer_read_body(&self->answer, bytes, length, &n_body, &used);

    if (result == EB_HTTP_REFUSED) {
        eb_exchange_break(self);
        return;
    }
    if (result == EB_HTTP_DONE)
        h1_release(self, used == length);
    if (result == EB_HTTP_DONE || n_body > 0)
        eb_exchange_pass(self, bytes, n_body, result == EB_HTTP_DONE);
}

static void
h1_take_head(EbExchange *self, char *bytes, gsize length)
{
    g_autoptr(GByteArray) in = g_steal_pointer(&self->in);
    gsize consumed;

    if (in != NULL) {
        g_byte_array_append(in, (const guint8 *)bytes, (guint)length);
        bytes = (char *)in->data;
        length = in->len;
    }
    switch (eb_http_answer_read_head(&self->answer, bytes, length, &consumed)) {
    case EB_HTTP_DONE:
        eb_exchange_begin_answer(self, &self->answer.head);
        if (self->conn == NULL)
            break;
        h1_take_body(self, bytes + consumed, length - consumed);
        if (self->conn != NULL)
            eb_front_conn_flush_head(self->conn);
        break;
    case EB_HTTP_MORE:
        if (in == NULL) {
            in = g_byte_array_sized_new((guint)(length - consumed));
            g_byte_array_append(in, (const guint8 *)bytes + consumed, (guint)(length - consumed));
        } else if (consumed > 0) {
            g_byte_array_remove_range(in, 0, (guint)consumed);
        }
        self->in = g_steal_pointer(&in);
        break;
    case EB_HTTP_REFUSED:
    default:
        eb_exchange_refuse(self, EB_REFUSAL_UPSTREAM, "its answer is malformed");
        break;
    }
}

static void
h1_ended(EbExchange *self, gboolean clean)
{
    if (self->phase != EB_EXCHANGE_BODY) {
        eb_exchange_fail(self, self->heard ? "it ended the connection within the head of its answer"
                                           : "it ended the connection without an answer");
    } else if (self->answer.head.body == EB_HTTP_BODY_CLOSE && clean) {
        h1_release(self, FALSE);
        eb_exchange_pass(self, NULL, 0, TRUE);
    } else {
        eb_exchange_break(self);
    }
}

static void
h1_pump_down(EbExchange *self)
{
    for (guint i = 0; self->conn != NULL && self->up != NULL && !self->draining; i++) {
        EbUpstreamResult result;
        gsize got;

        if (i == EB_UPSTREAM_TURN) {
            eb_poller_requeue(self->broker->poller, &self->up->watch);
            return;
        }
        result = eb_upstream_conn_read(self->up, self->broker->scratch, EB_UPSTREAM_PIECE, &got);
        if (got > 0) {
            self->heard = TRUE;
            self->moved_at = g_get_monotonic_time();
            if (self->phase == EB_EXCHANGE_BODY)
                h1_take_body(self, self->broker->scratch, got);
            else
                h1_take_head(self, self->broker->scratch, got);
        }
        if (result == EB_UPSTREAM_WAIT)
            return;
        if (result != EB_UPSTREAM_OK && self->conn != NULL && self->up != NULL && !self->draining)
            h1_ended(self, result == EB_UPSTREAM_END);
    }
}

void
eb_exchange_h1_run(EbExchange *self)
{
    if (self->conn == NULL || self->up == NULL || self->phase == EB_EXCHANGE_CONNECT)
        return;
    if (!self->up_done || self->pending != NULL)
        h1_pump_up(self);
    if (self->conn != NULL && self->up != NULL && self->phase == EB_EXCHANGE_REQUEST && self->up_done &&
        self->pending == NULL)
        self->phase = EB_EXCHANGE_ANSWER;
    h1_pump_down(self);
}
