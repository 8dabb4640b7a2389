/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-front-conn-private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/eb-unix.h"
#include "core/broker/eb-tunnel.h"

/* Bytes thrown away behind a refusal, so that the client gets to read it before it sees the connection close. */
#define LINGER_MAX (16u << 20)
/* A body up to this size that is here already is passed on in one piece. */
#define WHOLE_BODY_MAX (128 * 1024)

static void conn_run(EbFrontConn *self);

/* --- life --- */

static void
conn_drop_held(EbFrontConn *self)
{
    if (self->held != NULL)
        g_string_free(g_steal_pointer(&self->held), TRUE);
}

void
eb_front_conn_release(EbFrontConn *self)
{
    if (self->dead && self->holds == 0) {
        g_free(self->canary);
        g_free(self);
    }
}

static void
conn_end_request(EbFrontConn *self)
{
    eb_audit_end(self->broker, &self->audit);
    g_clear_pointer(&self->meter, eb_meter_end);
    eb_route_clear(&self->asked);
    if (self->request != NULL)
        eb_http_request_clear(self->request);
    g_clear_pointer(&self->request, g_free);
    g_clear_pointer(&self->config, eb_broker_config_unref);
    g_clear_pointer(&self->body, g_byte_array_unref);
    self->body_at = 0;
    self->answer_begun = self->continue_due = self->body_held = FALSE;
}

void
eb_front_conn_destroy(EbFrontConn *self)
{
    EbBroker *broker = self->broker;

    if (self->dead)
        return;
    self->dead = TRUE;
    if (self->opening != NULL)
        eb_opening_cancel(g_steal_pointer(&self->opening));
    if (self->exchange != NULL)
        eb_exchange_abort(g_steal_pointer(&self->exchange));
    conn_end_request(self);
    eb_poller_close(broker->poller, &self->watch);
    eb_broker_tick_remove(broker, &self->ticked);
    g_clear_pointer(&self->in, g_byte_array_unref);
    g_clear_pointer(&self->out, g_byte_array_unref);
    conn_drop_held(self);
    broker->n_connections--;
    eb_broker_resume_accept(broker);
    eb_front_conn_release(self);
}

/* --- writing --- */

static gboolean
conn_has_output(EbFrontConn *self)
{
    return self->out != NULL && self->out->len > self->out_at;
}

static void
conn_keep_output(EbFrontConn *self, const struct iovec *pieces, guint n_pieces, gsize skip)
{
    if (self->out == NULL)
        self->out = g_byte_array_new();
    /* Room is watched for only once it was missed: a unix socket tells of it whenever the other end has read. */
    if (!self->watches_out)
        self->watches_out = eb_poller_modify(self->broker->poller, &self->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    for (guint i = 0; i < n_pieces; i++) {
        gsize length = pieces[i].iov_len;

        if (skip < length)
            g_byte_array_append(self->out, (const guint8 *)pieces[i].iov_base + skip, (guint)(length - skip));
        skip = skip > length ? skip - length : 0;
    }
}

/* FALSE when the guest is gone. */
static gboolean
conn_write(EbFrontConn *self, const struct iovec *pieces, guint n_pieces)
{
    struct iovec with_head[EB_FRONT_MAX_PIECES + 1];
    struct msghdr message = {0};
    ssize_t sent = 0;
    gsize total = 0;

    if (self->held != NULL) {
        with_head[0] = (struct iovec){self->held->str, self->held->len};
        if (n_pieces > 0)
            memcpy(with_head + 1, pieces, n_pieces * sizeof *pieces);
        pieces = with_head;
        n_pieces++;
    }
    message.msg_iov = (struct iovec *)pieces;
    message.msg_iovlen = n_pieces;
    if (!conn_has_output(self)) {
        sent = sendmsg(self->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return FALSE;
        sent = MAX(sent, 0);
    }
    for (guint i = 0; i < n_pieces; i++)
        total += pieces[i].iov_len;
    if ((gsize)sent < total)
        conn_keep_output(self, pieces, n_pieces, (gsize)sent);
    conn_drop_held(self);
    return TRUE;
}

static gboolean
conn_flush(EbFrontConn *self)
{
    ssize_t sent;

    if (!conn_has_output(self))
        return TRUE;
    sent = send(self->watch.fd, self->out->data + self->out_at, self->out->len - self->out_at,
                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    self->out_at += (gsize)sent;
    if (self->out_at == self->out->len) {
        g_clear_pointer(&self->out, g_byte_array_unref);
        self->out_at = 0;
    }
    return TRUE;
}

static void
conn_close_later(EbFrontConn *self)
{
    self->state = EB_FRONT_CLOSING;
    self->deadline = g_get_monotonic_time() + EB_BROKER_LINGER_WAIT;
    eb_poller_requeue(self->broker->poller, &self->watch);
}

static void
conn_next_request(EbFrontConn *self)
{
    self->state = EB_FRONT_HEAD;
    self->deadline = g_get_monotonic_time() + EB_BROKER_KEEP_ALIVE_WAIT;
    /* From the loop, not from here: a guest can queue many requests, and each would be one call deeper. */
    eb_poller_requeue(self->broker->poller, &self->watch);
}

/* --- refusing --- */

/*
 * Behind a refused CONNECT come bytes that were meant for a tunnel, behind a bad request whatever its sender wanted to be
 * read otherwise: neither is a request of this guest's.
 */
static gboolean
conn_may_go_on(EbFrontConn *self, const EbRefusal *refusal)
{
    return self->request != NULL && self->request->method != EB_HTTP_CONNECT && self->keep_alive && self->body_done &&
           !self->answer_begun && eb_refusal_status(refusal->code) != 400;
}

void
eb_front_conn_refuse_now(EbFrontConn *self, const EbRefusal *refusal)
{
    gboolean head_only = self->request != NULL && self->request->method == EB_HTTP_HEAD;
    gboolean keep = conn_may_go_on(self, refusal);
    GString *text;
    struct iovec piece;
    gboolean written = TRUE;

    eb_broker_report_refusal(self->broker, refusal);
    if (self->audit.kind != NULL) {
        self->audit.decision = eb_refusal_token(refusal->code);
        if (self->audit.status == 0)
            self->audit.status = eb_refusal_status(refusal->code);
    }
    if (!self->answer_begun) {
        text = eb_refusal_response(refusal, keep, head_only);
        piece = (struct iovec){text->str, text->len};
        written = conn_write(self, &piece, 1);
        g_string_free(text, TRUE);
    }
    conn_end_request(self);
    if (!written)
        eb_front_conn_destroy(self);
    else if (keep)
        conn_next_request(self);
    else
        conn_close_later(self);
}

void
eb_front_conn_refuse_held(EbFrontConn *self, const EbRefusal *refusal)
{
    if (self->exchange != NULL)
        eb_exchange_abort(g_steal_pointer(&self->exchange));
    eb_front_conn_refuse_now(self, refusal);
}

/* --- for the exchange --- */

EbAudit *
eb_front_conn_get_audit(EbFrontConn *self)
{
    return &self->audit;
}

EbMeter *
eb_front_conn_get_meter(EbFrontConn *self)
{
    return self->meter;
}

gboolean
eb_front_conn_is_http_1_0(EbFrontConn *self)
{
    return self->request == NULL || self->request->http_1_0;
}

static void
body_sink(gpointer user_data, const char *bytes, gsize length)
{
    EbFrontConn *self = user_data;

    g_byte_array_append(self->body, (const guint8 *)bytes, (guint)length);
}

/* FALSE: nothing to read now, or (readable still set) the guest is gone. */
gboolean
eb_front_conn_receive(EbFrontConn *self, gsize most)
{
    ssize_t got = recv(self->watch.fd, self->broker->scratch, most, MSG_DONTWAIT);

    if (got <= 0) {
        self->readable = !(got < 0 && (errno == EAGAIN || errno == EINTR));
        return FALSE;
    }
    if ((gsize)got < most && !self->peer_ended)
        self->readable = FALSE;
    eb_canary_look(self->broker, &self->canary, self->broker->scratch, (gsize)got, "a request");
    if (self->in == NULL)
        self->in = g_byte_array_sized_new((guint)got);
    g_byte_array_append(self->in, (const guint8 *)self->broker->scratch, (guint)got);
    return TRUE;
}

static void
conn_drop_input(EbFrontConn *self, gsize length)
{
    if (self->in == NULL)
        return;
    if (length >= self->in->len)
        g_clear_pointer(&self->in, g_byte_array_unref);
    else if (length > 0)
        g_byte_array_remove_range(self->in, 0, (guint)length);
}

static void
conn_ask_to_continue(EbFrontConn *self)
{
    static const char TEXT[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct iovec piece = {(void *)TEXT, sizeof TEXT - 1};

    self->continue_due = FALSE;
    conn_write(self, &piece, 1);
}

EbBodyResult
eb_front_conn_read_body(EbFrontConn *self, char *buffer, gsize size, gsize *n_read)
{
    while (TRUE) {
        EbRefusal refusal;
        EbHttpResult result;
        gsize consumed = 0;

        if (self->body_held)
            return EB_BODY_WAIT;
        if (self->body != NULL && self->body->len > self->body_at) {
            *n_read = MIN(size, self->body->len - self->body_at);
            memcpy(buffer, self->body->data + self->body_at, *n_read);
            self->body_at += *n_read;
            return EB_BODY_SOME;
        }
        if (self->body_done)
            return EB_BODY_END;
        if (self->continue_due && self->in == NULL)
            conn_ask_to_continue(self);
        if (self->in == NULL && (!self->readable || !eb_front_conn_receive(self, EB_FRONT_PIECE))) {
            if (!self->readable)
                return EB_BODY_WAIT;
            eb_front_conn_destroy(self);
            return EB_BODY_BROKEN;
        }
        if (self->body == NULL)
            self->body = g_byte_array_new();
        g_byte_array_set_size(self->body, 0);
        self->body_at = 0;
        result = eb_http_front_body(&self->front, (const char *)self->in->data, MIN(self->in->len, EB_FRONT_PIECE),
                                    &consumed, body_sink, self, &refusal);
        conn_drop_input(self, consumed);
        self->body_done = result == EB_HTTP_DONE;
        if (result == EB_HTTP_REFUSED) {
            eb_front_conn_refuse_held(self, &refusal);
            return EB_BODY_BROKEN;
        }
        if (!eb_front_conn_meter_body(self, (const char *)self->body->data, self->body->len, self->body_done))
            return self->body_held ? EB_BODY_WAIT : EB_BODY_BROKEN;
    }
}

GBytes *
eb_front_conn_take_body(EbFrontConn *self)
{
    gsize length = (gsize)self->request->content_length;
    GBytes *bytes;

    if (self->request->chunked || self->body_done || self->request->content_length > WHOLE_BODY_MAX)
        return NULL;
    if (self->readable && (self->in == NULL || self->in->len < length))
        eb_front_conn_receive(self, WHOLE_BODY_MAX);
    if (self->in == NULL || self->in->len < length)
        return NULL;
    bytes = g_bytes_new(self->in->data, length);
    conn_drop_input(self, length);
    self->body_done = TRUE;
    self->front.in_body = FALSE;
    return bytes;
}

void
eb_front_conn_begin_answer(EbFrontConn *self, GString *head, gboolean close_delimited)
{
    if (close_delimited || !self->body_done)
        self->keep_alive = FALSE;
    g_string_append(head, self->keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
    self->answer_begun = TRUE;
    self->held = head;
}

void
eb_front_conn_flush_head(EbFrontConn *self)
{
    if (self->held != NULL && !conn_write(self, NULL, 0))
        conn_drop_held(self);
}

gboolean
eb_front_conn_send(EbFrontConn *self, const struct iovec *pieces, guint n_pieces)
{
    if (!conn_write(self, pieces, n_pieces)) {
        eb_front_conn_destroy(self);
        return FALSE;
    }
    return !conn_has_output(self);
}

void
eb_front_conn_end_answer(EbFrontConn *self, gboolean complete)
{
    self->exchange = NULL;
    eb_front_conn_flush_head(self);
    if (!complete && self->audit.kind != NULL)
        self->audit.decision = "broken-off";
    conn_end_request(self);
    if (!complete)
        eb_front_conn_destroy(self);
    else if (self->keep_alive)
        conn_next_request(self);
    else
        conn_close_later(self);
}

void
eb_front_conn_refuse(EbFrontConn *self, const EbRefusal *refusal)
{
    self->exchange = NULL;
    eb_front_conn_refuse_now(self, refusal);
}

/* --- requests --- */

static void
conn_on_opened(gpointer user_data, int fd, const EbAddress *address, GString *answer, const EbRefusal *refusal)
{
    EbFrontConn *self = user_data;
    EbBroker *broker = self->broker;
    struct iovec piece;
    gboolean written;

    if (refusal != NULL) {
        eb_front_conn_refuse_now(self, refusal);
        return;
    }
    piece = (struct iovec){answer->str, answer->len};
    written = conn_write(self, &piece, 1);
    self->audit.address = *address;
    self->audit.status = (guint)g_ascii_strtoull(answer->str + strlen("HTTP/1.1 "), NULL, 10);
    if (fd < 0 && written) {
        conn_end_request(self);
        conn_close_later(self);
        return;
    }
    if (!written || conn_has_output(self)) {
        eb_fd_clear(&fd);
        eb_front_conn_destroy(self);
        return;
    }
    broker->n_connections++;
    eb_tunnel_start(broker, &self->watch, fd, self->in != NULL ? (const char *)self->in->data : NULL,
                    self->in != NULL ? self->in->len : 0, &self->audit);
    eb_front_conn_destroy(self);
}

/* TRUE when a bound refused it: those of all requests being forwarded, and of connections to one host. */
static gboolean
conn_is_busy(EbFrontConn *self, const EbRoute *route)
{
    gboolean exchange = route->kind == EB_ROUTE_FORWARD || route->kind == EB_ROUTE_PROVIDER;
    EbRefusal busy;

    if (exchange && self->broker->n_exchanges >= EB_BROKER_MAX_EXCHANGES)
        eb_refusal_set(&busy, EB_REFUSAL_BUSY, NULL, NULL);
    else if (route->kind != EB_ROUTE_PROVIDER && !eb_audit_count_host(self->broker, &self->audit))
        eb_refusal_set_target(&busy, EB_REFUSAL_BUSY, &route->target, "too many to this host");
    else
        return FALSE;
    eb_front_conn_refuse_now(self, &busy);
    return TRUE;
}

void
eb_front_conn_exchange(EbFrontConn *self, EbRoute *route)
{
    if (conn_is_busy(self, route))
        return;
    self->state = EB_FRONT_EXCHANGE;
    eb_exchange_start(self->broker, self, self->config, self->request, route, &self->exchange);
}

static void
conn_follow(EbFrontConn *self, EbRoute *route)
{
    static const char ESTABLISHED[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    const struct iovec piece = {(void *)ESTABLISHED, sizeof ESTABLISHED - 1};

    switch (route->kind) {
    case EB_ROUTE_OWN:
        self->inner = TRUE;
        conn_write(self, &piece, 1);
        conn_end_request(self);
        conn_next_request(self);
        break;
    case EB_ROUTE_TUNNEL:
    case EB_ROUTE_WEBSOCKET:
        eb_audit_begin(&self->audit, route->kind == EB_ROUTE_TUNNEL ? "connect" : "websocket", route->target.host,
                       route->target.port, self->config);
        self->audit.rule = route->rule;
        if (conn_is_busy(self, route))
            break;
        self->state = EB_FRONT_DIAL;
        eb_opening_start(self->broker, self->config, self->request, route, conn_on_opened, self, &self->opening);
        break;
    case EB_ROUTE_FORWARD:
    case EB_ROUTE_PROVIDER:
        eb_audit_begin(&self->audit, route->kind == EB_ROUTE_FORWARD ? "http" : "provider", route->target.host,
                       route->target.port, self->config);
        self->audit.rule = route->rule;
        self->audit.provider = route->provider != NULL ? route->provider->name : NULL;
        if (route->kind == EB_ROUTE_FORWARD || eb_front_conn_meter(self, route))
            eb_front_conn_exchange(self, route);
        break;
    case EB_ROUTE_PROBE:
        eb_front_conn_begin_answer(self, g_string_new("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"), FALSE);
        eb_front_conn_end_answer(self, TRUE);
        break;
    case EB_ROUTE_REFUSE:
    default:
        eb_audit_begin(&self->audit, self->request->method == EB_HTTP_CONNECT ? "connect" : "http",
                       route->target.port != 0 ? route->target.host : NULL, route->target.port, self->config);
        self->audit.provider = route->provider != NULL ? route->provider->name : NULL;
        eb_front_conn_refuse_now(self, &route->refusal);
        break;
    }
}

static void
conn_take_request(EbFrontConn *self)
{
    EbRoute route;

    self->config = eb_broker_config_ref(self->broker->config);
    self->keep_alive = self->request->keep_alive;
    self->body_done = !eb_http_request_has_body(self->request);
    self->continue_due = self->request->expect_continue && !self->body_done;
    eb_route_request(self->config, self->request, self->inner, &route);
    conn_follow(self, &route);
    eb_route_clear(&route);
}

static void
conn_read_head(EbFrontConn *self)
{
    EbRefusal refusal;

    self->paused = eb_broker_is_behind(self->broker);
    while (self->state == EB_FRONT_HEAD && !self->dead && !self->paused) {
        EbHttpResult result = EB_HTTP_MORE;
        gsize consumed = 0;

        if (self->in != NULL) {
            if (self->request == NULL)
                self->request = g_new(EbHttpRequest, 1);
            self->request->storage = NULL;
            result = eb_http_front_head(&self->front, (const char *)self->in->data, self->in->len, &consumed,
                                        self->request, &refusal);
        }
        if (result == EB_HTTP_DONE) {
            conn_drop_input(self, consumed);
            conn_take_request(self);
            return;
        }
        if (result == EB_HTTP_REFUSED) {
            g_clear_pointer(&self->request, g_free);
            self->body_done = FALSE;
            eb_audit_begin(&self->audit, "http", NULL, 0, self->broker->config);
            eb_front_conn_refuse_now(self, &refusal);
            return;
        }
        g_clear_pointer(&self->request, g_free);
        if (!self->readable)
            return;
        if (self->in == NULL)
            self->deadline = g_get_monotonic_time() + EB_BROKER_HEAD_WAIT;
        if (!eb_front_conn_receive(self, EB_FRONT_PIECE) && self->readable) {
            eb_front_conn_destroy(self);
            return;
        }
        if (self->in == NULL)
            self->deadline = g_get_monotonic_time() + EB_BROKER_KEEP_ALIVE_WAIT;
    }
}

/* --- events --- */

static void
conn_linger(EbFrontConn *self)
{
    if (conn_has_output(self))
        return;
    if (!self->shut) {
        self->shut = TRUE;
        shutdown(self->watch.fd, SHUT_WR);
    }
    g_clear_pointer(&self->in, g_byte_array_unref);
    while (self->readable) {
        ssize_t got = recv(self->watch.fd, self->broker->scratch, EB_BROKER_SCRATCH, MSG_DONTWAIT);

        if (got < 0 && errno == EAGAIN) {
            self->readable = FALSE;
            return;
        }
        self->lingered += (gsize)MAX(got, 0);
        if (got <= 0 || self->lingered > LINGER_MAX) {
            eb_front_conn_destroy(self);
            return;
        }
    }
}

static void
conn_run(EbFrontConn *self)
{
    self->holds++;
    if (!conn_flush(self)) {
        eb_front_conn_destroy(self);
    } else {
        switch (self->state) {
        case EB_FRONT_HEAD:
            /* Answers are taken before the next request is looked at: what is queued here stays bounded. */
            if (!conn_has_output(self))
                conn_read_head(self);
            break;
        case EB_FRONT_EXCHANGE:
            if (self->peer_gone || (self->peer_ended && self->body_done))
                eb_front_conn_destroy(self);
            else if (!conn_has_output(self))
                eb_exchange_drained(self->exchange);
            if (!self->dead && self->exchange != NULL && self->readable && !self->body_done)
                eb_exchange_body_ready(self->exchange);
            break;
        case EB_FRONT_DIAL:
            break;
        case EB_FRONT_CLOSING:
        default:
            conn_linger(self);
            break;
        }
    }
    self->holds--;
    eb_front_conn_release(self);
}

static void
conn_ready(EbWatch *watch, guint32 events)
{
    EbFrontConn *self = watch->data;

    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        self->readable = TRUE;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        self->peer_ended = TRUE;
    if ((events & (EPOLLHUP | EPOLLERR)) != 0)
        self->peer_gone = TRUE;
    if (self->peer_gone && self->state == EB_FRONT_DIAL) {
        eb_front_conn_destroy(self);
        return;
    }
    conn_run(self);
}

static void
conn_tick(gpointer owner, gint64 now)
{
    EbFrontConn *self = owner;
    EbRefusal refusal;

    self->holds++;
    if (now == G_MAXINT64) {
        eb_front_conn_destroy(self);
    } else if (self->state == EB_FRONT_DIAL) {
        if (self->opening != NULL) {
            eb_opening_tick(self->opening, now);
        } else if (self->meter != NULL && eb_meter_is_late(self->meter, now)) {
            eb_refusal_set(&refusal, EB_REFUSAL_BUDGET_TIMEOUT, self->audit.provider, NULL);
            eb_front_conn_refuse_now(self, &refusal);
        }
    } else if (self->body_held && eb_meter_is_late(self->meter, now)) {
        eb_refusal_set(&refusal, EB_REFUSAL_BUDGET_TIMEOUT, self->audit.provider, NULL);
        eb_front_conn_refuse_held(self, &refusal);
    } else if (self->state == EB_FRONT_EXCHANGE) {
        eb_exchange_tick(self->exchange, now);
    } else if (self->paused) {
        conn_run(self);
    } else if (now >= self->deadline) {
        if (self->state == EB_FRONT_HEAD && self->in != NULL) {
            eb_refusal_set(&refusal, EB_REFUSAL_HEAD_TIMEOUT, NULL, NULL);
            self->body_done = FALSE;
            eb_front_conn_refuse_now(self, &refusal);
        } else {
            eb_front_conn_destroy(self);
        }
    }
    self->holds--;
    eb_front_conn_release(self);
}

void
eb_front_conn_accept(EbBroker *broker, int fd)
{
    EbFrontConn *self;

    self = g_new0(EbFrontConn, 1);
    self->broker = broker;
    broker->n_connections++;
    eb_http_front_init(&self->front);
    self->deadline = g_get_monotonic_time() + EB_BROKER_HEAD_WAIT;
    eb_broker_tick_add(broker, &self->ticked, conn_tick, self);
    self->watch.fd = fd;
    if (!eb_poller_add(broker->poller, &self->watch, fd, EPOLLIN | EPOLLRDHUP, conn_ready, self)) {
        eb_front_conn_destroy(self);
        return;
    }
    /* Most clients have sent their request by now; trying spares a turn of the loop. */
    self->readable = TRUE;
    conn_run(self);
}
