/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-exchange.h"

#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "core/broker/eb-broker-dial.h"
#include "core/broker/eb-broker-link.h"
#include "core/broker/eb-exchange-private.h"
#include "core/broker/eb-meter.h"
#include "core/broker/eb-upstream-request.h"

/* A provider's failures are told once in this time. */
#define REPORT_EVERY (30 * G_USEC_PER_SEC)

/* --- life --- */

EbExchange *
eb_exchange_ref(EbExchange *self)
{
    self->ref_count++;
    return self;
}

void
eb_exchange_unref(EbExchange *self)
{
    if (--self->ref_count > 0)
        return;
    eb_http_answer_clear(&self->answer);
    eb_key_filter_clear(&self->filter);
    eb_route_clear(&self->route);
    eb_broker_config_unref(self->config);
    g_clear_pointer(&self->whole, g_bytes_unref);
    g_clear_pointer(&self->in, g_byte_array_unref);
    g_free(self);
}

static void
clear_pending(EbExchange *self)
{
    /* The key may be in it. */
    if (self->pending != NULL)
        sodium_memzero(self->pending->data, self->pending->len);
    g_clear_pointer(&self->pending, g_byte_array_unref);
    self->pending_at = 0;
}

/* Lets go of the guest and of the upstream: whatever runs in these calls' callers finds conn unset. */
static void
exchange_detach(EbExchange *self, gboolean complete)
{
    if (self->conn == NULL)
        return;
    eb_front_conn_get_audit(self->conn)->bytes_up +=
        self->streamed + (self->whole != NULL ? g_bytes_get_size(self->whole) : 0);
    if (self->watched != NULL)
        self->broker->observer->end(g_steal_pointer(&self->watched), complete);
    self->conn = NULL;
    self->request = NULL;
    self->broker->n_exchanges--;
    if (self->dial != NULL)
        eb_dial_cancel(g_steal_pointer(&self->dial));
    g_clear_pointer(&self->up, eb_upstream_conn_free);
    if (self->h2 != NULL)
        eb_h2_detach(self->h2, self);
    clear_pending(self);
    eb_exchange_unref(self);
}

static void
exchange_end(EbExchange *self, gboolean complete)
{
    EbFrontConn *conn = self->conn;

    if (conn == NULL)
        return;
    exchange_detach(self, complete);
    eb_front_conn_end_answer(conn, complete);
}

void
eb_exchange_break(EbExchange *self)
{
    exchange_end(self, FALSE);
}

static void
report_failure(EbExchange *self, guint status, const char *text)
{
    EbProvider *provider = self->route.provider;
    gint64 now = g_get_monotonic_time();

    if (provider == NULL || self->broker->link == NULL)
        return;
    if (provider->reported_at != 0 && now - provider->reported_at < REPORT_EVERY)
        return;
    provider->reported_at = now;
    eb_broker_link_send_provider_error(self->broker->link, provider->name, status, text);
}

/* Without telling the service. */
static void
exchange_refuse_quietly(EbExchange *self, EbRefusalCode code, const char *detail)
{
    EbFrontConn *conn = self->conn;
    EbRefusal refusal;

    if (self->phase == EB_EXCHANGE_BODY) {
        exchange_end(self, FALSE);
        return;
    }
    if (self->route.provider != NULL)
        eb_refusal_set(&refusal, code, self->route.provider->name, detail);
    else
        eb_refusal_set_target(&refusal, code, &self->route.target, detail);
    exchange_detach(self, FALSE);
    eb_front_conn_refuse(conn, &refusal);
}

void
eb_exchange_refuse(EbExchange *self, EbRefusalCode code, const char *detail)
{
    if (self->conn == NULL)
        return;
    g_autofree char *reason = self->route.provider != NULL ? eb_refusal_reason(code, detail) : NULL;
    report_failure(self, 0, reason);
    exchange_refuse_quietly(self, code, detail);
}

/* --- the answer --- */

static gboolean
answer_header_passes(EbExchange *self, const EbHttpHeader *header)
{
    if (header->hop)
        return FALSE;
    if (self->route.provider == NULL)
        return TRUE;
    return g_ascii_strcasecmp(header->name, "Set-Cookie") != 0 && !eb_key_filter_finds(&self->filter, header->value);
}

static void
append_text(GString *text, const char *string)
{
    g_string_append_len(text, string, (gssize)strlen(string));
}

/* It was asked not to be: neither the key nor what it cost could be found in it. */
static gboolean
is_coded(const EbHttpAnswerHead *head)
{
    for (guint i = 0; i < head->n_headers; i++)
        if (g_ascii_strcasecmp(head->headers[i].name, "Content-Encoding") == 0 && head->headers[i].value[0] != '\0' &&
            g_ascii_strcasecmp(head->headers[i].value, "identity") != 0)
            return TRUE;
    return FALSE;
}

void
eb_exchange_begin_answer(EbExchange *self, const EbHttpAnswerHead *head)
{
    EbAudit *audit = eb_front_conn_get_audit(self->conn);
    gboolean by_close = FALSE;
    GString *text;

    if (self->route.provider != NULL && (head->status == 401 || head->status == 403))
        report_failure(self, head->status, "the provider refuses the key");
    /* The guest has no key that it could mend. */
    if (self->route.provider != NULL && head->status == 401) {
        exchange_refuse_quietly(self, EB_REFUSAL_PROVIDER_KEY, NULL);
        return;
    }
    if (self->route.provider != NULL && is_coded(head)) {
        eb_exchange_refuse(self, EB_REFUSAL_UPSTREAM, "its answer is compressed, which it was asked not to do");
        return;
    }
    self->phase = EB_EXCHANGE_BODY;
    text = g_string_sized_new(1024);
    g_string_append_printf(text, "HTTP/1.1 %u ", head->status);
    append_text(text, eb_http_reason_phrase(head->status));
    append_text(text, "\r\n");
    for (guint i = 0; i < head->n_headers; i++) {
        const EbHttpHeader *header = &head->headers[i];

        if (!answer_header_passes(self, header))
            continue;
        append_text(text, header->name);
        append_text(text, ": ");
        append_text(text, header->value);
        append_text(text, "\r\n");
    }
    if (head->has_length && head->status != 204) {
        g_string_append_printf(text, "Content-Length: %" G_GUINT64_FORMAT "\r\n", head->length);
    } else if (head->body != EB_HTTP_BODY_NONE) {
        by_close = eb_front_conn_is_http_1_0(self->conn);
        self->chunked = !by_close;
        if (self->chunked)
            append_text(text, "Transfer-Encoding: chunked\r\n");
    }
    audit->status = head->status;
    if (self->route.provider != NULL && self->broker->observer != NULL)
        self->watched = self->broker->observer->begin(self->broker, self->conn, head);
    eb_front_conn_begin_answer(self->conn, text, by_close);
}

/* FALSE: it must drain first, or the guest is gone. */
static gboolean
exchange_send(EbExchange *self, const char *bytes, gsize length, gboolean last)
{
    char head[EB_UPSTREAM_CHUNK_HEAD];
    struct iovec pieces[3];
    guint n = 0;

    eb_front_conn_get_audit(self->conn)->bytes_down += length;
    if (!self->chunked) {
        pieces[n++] = (struct iovec){(void *)bytes, length};
    } else if (length > 0) {
        pieces[n++] = (struct iovec){head, eb_upstream_chunk_head(length, head)};
        pieces[n++] = (struct iovec){(void *)bytes, length};
        pieces[n++] = last ? (struct iovec){(void *)"\r\n0\r\n\r\n", 7} : (struct iovec){(void *)"\r\n", 2};
    } else if (last) {
        pieces[n++] = (struct iovec){(void *)"0\r\n\r\n", 5};
    }
    return eb_front_conn_send(self->conn, pieces, n);
}

void
eb_exchange_pass(EbExchange *self, const char *bytes, gsize length, gboolean last)
{
    gsize n_out = 0, n_held = 0;
    const char *out;
    gboolean sent;

    if (self->conn == NULL)
        return;
    if (self->watched != NULL && length > 0 && !self->broker->observer->bytes(self->watched, bytes, length)) {
        exchange_end(self, FALSE);
        return;
    }
    out = length > 0 ? eb_key_filter_run(&self->filter, bytes, length, &n_out) : "";
    sent = exchange_send(self, out, n_out, last && self->filter.held == 0);
    if (last && self->conn != NULL && self->filter.held > 0) {
        /* A few bytes that only looked like the beginning of a key. */
        const char *held = eb_key_filter_end(&self->filter, &n_held);

        sent = exchange_send(self, held, n_held, TRUE);
    }
    if (self->conn == NULL)
        return;
    self->ended = last;
    self->draining = !sent;
    if (sent && last)
        exchange_end(self, TRUE);
}

void
eb_exchange_drained(EbExchange *self)
{
    if (!self->draining)
        return;
    eb_exchange_ref(self);
    self->draining = FALSE;
    self->moved_at = g_get_monotonic_time();
    if (self->ended)
        exchange_end(self, TRUE);
    else if (self->h2 != NULL)
        eb_h2_drained(self->h2, self);
    else
        eb_exchange_h1_run(self);
    eb_exchange_unref(self);
}

/* --- the connection --- */

static void
exchange_begin_h2(EbExchange *self, EbH2 *h2)
{
    self->whole_at = 0;
    eb_h2_begin(h2, self);
}

/* The handshake is over: what was agreed on? */
static void
exchange_begin(EbExchange *self)
{
    EbUpstream *upstream = self->broker->upstream;
    const guchar *protocol = NULL;
    guint length = 0;
    EbH2 *h2;

    if (self->up->ssl != NULL)
        SSL_get0_alpn_selected(self->up->ssl, &protocol, &length);
    if (length != 2 || memcmp(protocol, "h2", 2) != 0) {
        eb_exchange_h1_begin(self);
        return;
    }
    /* Others that were opening one at the same time may have been faster. */
    h2 = eb_upstream_find_h2(upstream, &self->route.target, TRUE);
    if (h2 != NULL)
        g_clear_pointer(&self->up, eb_upstream_conn_free);
    else
        h2 = eb_upstream_add_h2(upstream, g_steal_pointer(&self->up));
    if (h2 != NULL)
        exchange_begin_h2(self, h2);
    else
        eb_exchange_refuse(self, EB_REFUSAL_BUSY, NULL);
}

static void
exchange_shake_hands(EbExchange *self)
{
    const char *why;

    switch (eb_upstream_conn_handshake(self->up)) {
    case EB_UPSTREAM_OK:
        exchange_begin(self);
        break;
    case EB_UPSTREAM_WAIT:
        break;
    case EB_UPSTREAM_END:
    case EB_UPSTREAM_BROKEN:
    default:
        why = eb_upstream_tls_why(self->up->ssl);
        if (why != NULL)
            eb_exchange_refuse(self, EB_REFUSAL_TLS, why);
        else
            eb_exchange_refuse(self, EB_REFUSAL_UPSTREAM, "the TLS handshake failed");
        break;
    }
}

static void
exchange_ready(EbUpstreamConn *conn, gpointer owner)
{
    EbExchange *self = owner;

    eb_exchange_ref(self);
    if (self->phase == EB_EXCHANGE_CONNECT)
        exchange_shake_hands(self);
    else
        eb_exchange_h1_run(self);
    eb_exchange_unref(self);
}

static void
exchange_on_dialed(gpointer user_data, int fd, const EbAddress *address, const EbRefusal *refusal)
{
    EbExchange *self = user_data;
    EbProvider *provider = self->route.provider;
    SSL *ssl = NULL;

    if (fd < 0) {
        eb_exchange_refuse(self, refusal->code, refusal->detail);
        return;
    }
    if (provider != NULL && provider->tls) {
        ssl = eb_upstream_tls_open(eb_upstream_get_tls(self->broker->upstream), &self->route.target, TRUE);
        if (ssl == NULL) {
            close(fd);
            eb_exchange_refuse(self, EB_REFUSAL_UPSTREAM, "TLS cannot be set up");
            return;
        }
    }
    self->up = eb_upstream_conn_new(self->broker, fd, ssl, exchange_ready, self);
    self->up->address = *address;
    self->up->target = self->route.target;
    self->up->of_provider = provider != NULL;
    exchange_ready(self->up, self);
}

static void
exchange_dial(EbExchange *self)
{
    self->phase = EB_EXCHANGE_CONNECT;
    self->kept = FALSE;
    eb_dial_start(self->broker, self->config, &self->route.target, exchange_on_dialed, self, &self->dial);
}

/* A question to a model that is asked twice is paid twice, and counted once. */
static gboolean
may_repeat(const EbExchange *self)
{
    if (self->heard || self->retried || self->streamed > 0)
        return FALSE;
    return self->unprocessed ||
           (self->kept && self->request->method != EB_HTTP_POST && self->request->method != EB_HTTP_PATCH);
}

/*
 * A kept connection may turn out to be closed by its other end just now. What streamed through is gone and cannot be
 * sent again; the client knows what to do with a 502.
 */
void
eb_exchange_fail(EbExchange *self, const char *detail)
{
    if (self->conn == NULL)
        return;
    if (!may_repeat(self)) {
        eb_exchange_refuse(self, EB_REFUSAL_UPSTREAM, detail);
        return;
    }
    self->retried = TRUE;
    g_clear_pointer(&self->up, eb_upstream_conn_free);
    clear_pending(self);
    self->whole_at = 0;
    self->up_done = self->up_broken = FALSE;
    self->moved_at = g_get_monotonic_time();
    exchange_dial(self);
}

void
eb_exchange_start(EbBroker *broker, EbFrontConn *conn, EbBrokerConfig *config, const EbHttpRequest *request,
                  EbRoute *route, EbExchange **slot)
{
    EbExchange *self = g_new0(EbExchange, 1);
    gboolean of_provider = route->provider != NULL;
    /* One view for all that looks at the key in this call: each opening and closing is two system calls. */
    g_auto(EbSecretView) view = {0};
    EbH2 *h2;

    if (of_provider)
        view = eb_secret_view(route->provider->key);
    *slot = self;
    self->ref_count = 2; /* the slot's, and this call's */
    self->broker = broker;
    self->conn = conn;
    self->config = eb_broker_config_ref(config);
    self->route = *route;
    route->path = NULL;
    self->request = request;
    self->moved_at = g_get_monotonic_time();
    eb_key_filter_init(&self->filter, route->provider != NULL ? route->provider->key : NULL);
    if (eb_http_request_has_body(request))
        self->whole = eb_front_conn_take_body(conn);
    broker->n_exchanges++;
    h2 = eb_upstream_find_h2(broker->upstream, &self->route.target, of_provider);
    if (h2 == NULL)
        self->up = eb_upstream_take(broker->upstream, &self->route.target, of_provider);
    self->kept = h2 != NULL || self->up != NULL;
    if (h2 != NULL) {
        exchange_begin_h2(self, h2);
    } else if (self->up != NULL) {
        eb_upstream_conn_set_owner(self->up, exchange_ready, self);
        eb_exchange_h1_begin(self);
    } else {
        exchange_dial(self);
    }
    eb_exchange_unref(self);
}

void
eb_exchange_body_ready(EbExchange *self)
{
    if (self->phase == EB_EXCHANGE_CONNECT || self->up_done)
        return;
    eb_exchange_ref(self);
    if (self->h2 != NULL)
        eb_h2_body_ready(self->h2, self);
    else
        eb_exchange_h1_run(self);
    eb_exchange_unref(self);
}

/* The provider does not know that nobody waits, or knows it too late. */
static void
exchange_note_unanswered(EbExchange *self)
{
    EbMeter *meter = self->conn != NULL ? eb_front_conn_get_meter(self->conn) : NULL;

    if (meter != NULL && self->up_done && self->phase == EB_EXCHANGE_ANSWER)
        eb_meter_note_unanswered(meter);
}

void
eb_exchange_tick(EbExchange *self, gint64 now)
{
    gint64 waited = now - self->moved_at;

    if (self->dial != NULL) {
        eb_dial_tick(self->dial, now);
        return;
    }
    switch (self->phase) {
    case EB_EXCHANGE_CONNECT:
        if (waited >= EB_BROKER_CONNECT_WAIT + EB_BROKER_RESOLVE_WAIT)
            eb_exchange_refuse(self, EB_REFUSAL_CONNECT_TIMEOUT, NULL);
        break;
    case EB_EXCHANGE_REQUEST:
    case EB_EXCHANGE_ANSWER:
        if (waited >= EB_BROKER_FIRST_BYTE_WAIT) {
            exchange_note_unanswered(self);
            eb_exchange_refuse(self, EB_REFUSAL_FIRST_BYTE_TIMEOUT, NULL);
        }
        break;
    case EB_EXCHANGE_BODY:
    default:
        if (waited >= (self->draining ? EB_BROKER_STALL_WAIT : EB_BROKER_IDLE_WAIT))
            eb_exchange_break(self);
        break;
    }
}

void
eb_exchange_abort(EbExchange *self)
{
    exchange_note_unanswered(self);
    exchange_detach(self, FALSE);
}
