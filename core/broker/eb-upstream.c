/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-upstream.h"

#include <libsoup/soup.h>
#include <sodium.h>
#include <string.h>

#include "core/broker/eb-body-stream.h"
#include "core/broker/eb-broker-dial.h"
#include "core/broker/eb-broker-link.h"
#include "core/broker/eb-key-filter.h"

/* Bytes of an answer read at once; what an open stream costs while it waits. */
#define READ_SIZE (32 * 1024)
/* Seconds an unused connection to an upstream stays open: a new one costs a handshake. */
#define POOL_IDLE 120
/* A provider's failures are told once in this time. */
#define REPORT_EVERY (30 * G_USEC_PER_SEC)

struct _EbUpstream {
    EbBroker *broker;       /* (unowned) */
    SoupSession *providers; /* (owned) */
    SoupSession *plain;     /* (owned) */
};

typedef enum {
    PHASE_CONNECT,
    PHASE_REQUEST, /* the body goes up */
    PHASE_ANSWER,  /* nothing came back yet */
    PHASE_BODY,
} Phase;

struct _EbExchange {
    int ref_count;
    EbBroker *broker;       /* (unowned) */
    EbFrontConn *conn;      /* (unowned) (nullable): NULL when it is over */
    EbBrokerConfig *config; /* (owned) */
    EbProvider *provider;   /* (unowned) (nullable): of config */
    EbTarget target;
    SoupMessage *message;      /* (owned) */
    GInputStream *answer;      /* (owned) (nullable) */
    EbBodyStream *body;        /* (owned) (nullable) */
    GCancellable *cancellable; /* (owned) */
    EbKeyFilter filter;
    Phase phase;
    gint64 moved_at;
    gboolean chunked;
    gboolean reading;
    gboolean draining; /* the guest has not taken the last piece */
    gboolean ended;    /* the answer is complete but for what the guest has to take */
    char *buffer;      /* (owned) (nullable): READ_SIZE bytes */
};

/* --- pools --- */

static SoupSession *
session_new(GTlsDatabase *tls_database)
{
    SoupSession *session =
        soup_session_new_with_options("max-conns", EB_BROKER_MAX_EXCHANGES, "max-conns-per-host",
                                      EB_BROKER_MAX_EXCHANGES, "idle-timeout", POOL_IDLE, "timeout", 0, NULL);

    /* Bytes pass as they are, credentials are nobody's but ours, and no proxy of the host's stands between. */
    soup_session_remove_feature_by_type(session, SOUP_TYPE_CONTENT_DECODER);
    soup_session_remove_feature_by_type(session, SOUP_TYPE_AUTH_MANAGER);
    soup_session_set_proxy_resolver(session, NULL);
    if (tls_database != NULL)
        soup_session_set_tls_database(session, tls_database);
    return session;
}

EbUpstream *
eb_upstream_new(EbBroker *broker, GTlsDatabase *tls_database)
{
    EbUpstream *self = g_new0(EbUpstream, 1);

    self->broker = broker;
    self->providers = session_new(tls_database);
    self->plain = session_new(tls_database);
    return self;
}

void
eb_upstream_free(EbUpstream *self)
{
    soup_session_abort(self->providers);
    soup_session_abort(self->plain);
    g_object_unref(self->providers);
    g_object_unref(self->plain);
    g_free(self);
}

/* --- one exchange --- */

static EbExchange *
exchange_ref(EbExchange *self)
{
    self->ref_count++;
    return self;
}

static void
exchange_unref(EbExchange *self)
{
    if (--self->ref_count > 0)
        return;
    g_clear_object(&self->answer);
    g_clear_object(&self->body);
    /* libsoup may hold the message a little longer than we do. */
    g_signal_handlers_disconnect_by_data(self->message, self);
    g_clear_object(&self->message);
    g_clear_object(&self->cancellable);
    eb_key_filter_clear(&self->filter);
    eb_broker_config_unref(self->config);
    g_free(self->buffer);
    g_free(self);
}

/* Lets go of the guest's side; what is still running in libsoup is cancelled and ends by itself. */
static void
exchange_detach(EbExchange *self)
{
    if (self->conn == NULL)
        return;
    if (self->body != NULL)
        eb_front_conn_get_audit(self->conn)->bytes_up += eb_body_stream_get_count(self->body);
    self->conn = NULL;
    self->broker->n_exchanges--;
    if (self->body != NULL)
        eb_body_stream_detach(self->body);
    g_cancellable_cancel(self->cancellable);
    exchange_unref(self);
}

static void
exchange_end(EbExchange *self, gboolean complete)
{
    EbFrontConn *conn = self->conn;

    if (conn == NULL)
        return;
    exchange_detach(self);
    eb_front_conn_end_answer(conn, complete);
}

static void
report_failure(EbExchange *self, guint status, const char *text)
{
    gint64 now = g_get_monotonic_time();

    if (self->provider == NULL || self->broker->link == NULL)
        return;
    if (self->provider->reported_at != 0 && now - self->provider->reported_at < REPORT_EVERY)
        return;
    self->provider->reported_at = now;
    eb_broker_link_send_provider_error(self->broker->link, self->provider->name, status, text);
}

static void
exchange_refuse(EbExchange *self, EbRefusalCode code)
{
    EbFrontConn *conn = self->conn;
    EbRefusal refusal;

    if (conn == NULL)
        return;
    if (self->provider != NULL)
        eb_refusal_set(&refusal, code, self->provider->name, NULL);
    else
        eb_refusal_set_target(&refusal, code, &self->target, NULL);
    report_failure(self, 0, eb_refusal_token(code));
    if (self->phase == PHASE_BODY) {
        exchange_end(self, FALSE);
        return;
    }
    exchange_detach(self);
    eb_front_conn_refuse(conn, &refusal);
}

static EbRefusalCode
code_of_error(const GError *error, Phase phase)
{
    if (error->domain == G_TLS_ERROR)
        return EB_REFUSAL_TLS;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        return EB_REFUSAL_INTERNAL;
    if (error->domain == G_RESOLVER_ERROR || g_error_matches(error, G_IO_ERROR, G_IO_ERROR_HOST_NOT_FOUND))
        return EB_REFUSAL_RESOLVE;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        return EB_REFUSAL_CONNECT_TIMEOUT;
    return phase == PHASE_CONNECT ? EB_REFUSAL_CONNECT : EB_REFUSAL_UPSTREAM;
}

/* --- the answer's body --- */

static void exchange_read(EbExchange *self);

static gboolean
exchange_send(EbExchange *self, const char *bytes, gsize length)
{
    char head[24];
    struct iovec pieces[3] = {{head, 0}, {(void *)bytes, length}, {(void *)"\r\n", 2}};

    eb_front_conn_get_audit(self->conn)->bytes_down += length;
    if (!self->chunked)
        return eb_front_conn_send(self->conn, &pieces[1], 1);
    pieces[0].iov_len = (gsize)g_snprintf(head, sizeof head, "%" G_GSIZE_MODIFIER "x\r\n", length);
    return eb_front_conn_send(self->conn, pieces, 3);
}

static void
exchange_finish(EbExchange *self)
{
    gsize n_held = 0;
    const char *held = eb_key_filter_end(&self->filter, &n_held);
    struct iovec last = {(void *)"0\r\n\r\n", 5};

    self->ended = TRUE;
    if (n_held > 0 && !exchange_send(self, held, n_held)) {
        self->draining = TRUE;
        return;
    }
    if (self->conn != NULL && self->chunked) {
        self->chunked = FALSE;
        if (!eb_front_conn_send(self->conn, &last, 1)) {
            self->draining = TRUE;
            return;
        }
    }
    exchange_end(self, TRUE);
}

static void
exchange_on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbExchange *self = user_data;
    g_autoptr(GError) error = NULL;
    gssize got = g_input_stream_read_finish(G_INPUT_STREAM(source), result, &error);

    self->reading = FALSE;
    if (self->conn != NULL) {
        self->moved_at = g_get_monotonic_time();
        if (got < 0) {
            exchange_end(self, FALSE);
        } else if (got == 0) {
            exchange_finish(self);
        } else {
            gsize n_out = 0;
            const char *out = eb_key_filter_run(&self->filter, self->buffer, (gsize)got, &n_out);

            if (n_out > 0 && !exchange_send(self, out, n_out))
                self->draining = TRUE;
            else
                exchange_read(self);
        }
    }
    exchange_unref(self);
}

static void
exchange_read(EbExchange *self)
{
    if (self->conn == NULL || self->reading)
        return;
    if (self->buffer == NULL)
        self->buffer = g_malloc(READ_SIZE);
    self->reading = TRUE;
    g_input_stream_read_async(self->answer, self->buffer, READ_SIZE, G_PRIORITY_DEFAULT, self->cancellable,
                              exchange_on_read, exchange_ref(self));
}

void
eb_exchange_drained(EbExchange *self)
{
    if (!self->draining)
        return;
    exchange_ref(self);
    self->draining = FALSE;
    self->moved_at = g_get_monotonic_time();
    if (self->ended)
        exchange_finish(self);
    else
        exchange_read(self);
    exchange_unref(self);
}

/* --- the answer's head --- */

static gboolean
answer_header_passes(EbExchange *self, const char *name, const char *value)
{
    static const char *const DROPPED[] = {"connection", "keep-alive",     "proxy-connection",   "proxy-authenticate",
                                          "te",         "trailer",        "transfer-encoding",  "upgrade",
                                          "alt-svc",    "content-length", "proxy-authorization"};

    for (gsize i = 0; i < G_N_ELEMENTS(DROPPED); i++) {
        if (g_ascii_strcasecmp(name, DROPPED[i]) == 0)
            return FALSE;
    }
    if (self->provider != NULL && g_ascii_strcasecmp(name, "set-cookie") == 0)
        return FALSE;
    for (const char *c = name; *c != '\0'; c++) {
        if (!g_ascii_isalnum(*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
            return FALSE;
    }
    for (const char *c = value; *c != '\0'; c++) {
        if (((guchar)*c < ' ' && *c != '\t') || *c == 0x7f)
            return FALSE;
    }
    return !eb_key_filter_finds(&self->filter, value);
}

static void
exchange_begin_answer(EbExchange *self)
{
    SoupMessageHeaders *headers = soup_message_get_response_headers(self->message);
    guint status = soup_message_get_status(self->message);
    GSocketAddress *remote = soup_message_get_remote_address(self->message);
    GString *head = g_string_sized_new(512);
    SoupEncoding encoding = soup_message_headers_get_encoding(headers);
    gboolean bodyless = status == 204 || status == 304 || soup_message_get_method(self->message) == SOUP_METHOD_HEAD;
    const char *name, *value;
    SoupMessageHeadersIter iter;
    gboolean by_close = FALSE;

    g_string_append_printf(head, "HTTP/1.1 %u %s\r\n", status, eb_http_reason_phrase(status));
    soup_message_headers_iter_init(&iter, headers);
    while (soup_message_headers_iter_next(&iter, &name, &value)) {
        if (answer_header_passes(self, name, value))
            g_string_append_printf(head, "%s: %s\r\n", name, value);
    }
    if (encoding == SOUP_ENCODING_CONTENT_LENGTH && status != 204) {
        g_string_append_printf(head, "Content-Length: %" G_GOFFSET_FORMAT "\r\n",
                               soup_message_headers_get_content_length(headers));
    } else if (!bodyless) {
        by_close = eb_front_conn_is_http_1_0(self->conn);
        self->chunked = !by_close;
        if (self->chunked)
            g_string_append(head, "Transfer-Encoding: chunked\r\n");
    }
    eb_front_conn_get_audit(self->conn)->status = status;
    if (G_IS_INET_SOCKET_ADDRESS(remote))
        eb_address_from_inet(g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(remote)),
                             &eb_front_conn_get_audit(self->conn)->address);
    eb_front_conn_begin_answer(self->conn, head, by_close);
}

static void
exchange_on_sent(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbExchange *self = user_data;
    g_autoptr(GError) error = NULL;
    guint status;

    self->answer = soup_session_send_finish(SOUP_SESSION(source), result, &error);
    if (self->conn == NULL) {
        exchange_unref(self);
        return;
    }
    if (self->answer == NULL) {
        exchange_refuse(self, code_of_error(error, self->phase));
        exchange_unref(self);
        return;
    }
    status = soup_message_get_status(self->message);
    if (status < 200 || status > 999) {
        exchange_refuse(self, EB_REFUSAL_UPSTREAM);
        exchange_unref(self);
        return;
    }
    self->phase = PHASE_BODY;
    self->moved_at = g_get_monotonic_time();
    if (status == 401 || status == 403)
        report_failure(self, status, "the provider refuses the key");
    exchange_begin_answer(self);
    exchange_read(self);
    exchange_unref(self);
}

/* --- the request --- */

static void
put_key_on(SoupMessageHeaders *headers, EbProvider *provider)
{
    g_auto(EbSecretView) view = eb_secret_view(provider->key);

    if (provider->kind == EB_PROVIDER_ANTHROPIC) {
        soup_message_headers_replace(headers, "x-api-key", view.bytes);
    } else if (provider->kind == EB_PROVIDER_GEMINI) {
        soup_message_headers_replace(headers, "x-goog-api-key", view.bytes);
    } else {
        char *value = g_strconcat("Bearer ", view.bytes, NULL);

        soup_message_headers_replace(headers, "Authorization", value);
        sodium_memzero(value, strlen(value));
        g_free(value);
    }
}

static SoupMessage *
build_message(const EbHttpRequest *request, const EbRoute *route)
{
    gboolean tls = route->provider != NULL && route->provider->tls;
    const char *query = strchr(route->path, '?');
    g_autofree char *path =
        query != NULL ? g_strndup(route->path, (gsize)(query - route->path)) : g_strdup(route->path);
    g_autoptr(GUri) uri = g_uri_build(G_URI_FLAGS_ENCODED, tls ? "https" : "http", NULL, route->target.host,
                                      route->target.port, path, query != NULL ? query + 1 : NULL, NULL);
    SoupMessage *message = soup_message_new_from_uri(request->method_name, uri);
    SoupMessageHeaders *headers = soup_message_get_request_headers(message);

    for (guint i = 0; i < request->n_headers; i++) {
        if (eb_route_header_passes(route, &request->headers[i]))
            soup_message_headers_append(headers, request->headers[i].name, request->headers[i].value);
    }
    if (route->provider != NULL) {
        soup_message_headers_replace(headers, "Accept-Encoding", "identity");
        put_key_on(headers, route->provider);
    }
    /*
     * Without the second flag libsoup opens a connection, and makes a handshake, for every POST. With it a request is
     * sent a second time when a kept connection turns out to be closed before any answer; see exchange_on_restarted().
     */
    soup_message_add_flags(message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_IDEMPOTENT);
    return message;
}

static void
exchange_set_body(EbExchange *self, const EbHttpRequest *request)
{
    const char *type = eb_http_request_header(request, "Content-Type");
    g_autoptr(GBytes) whole = NULL;

    if (!eb_http_request_has_body(request)) {
        if (request->method == EB_HTTP_POST || request->method == EB_HTTP_PUT || request->method == EB_HTTP_PATCH)
            soup_message_headers_set_content_length(soup_message_get_request_headers(self->message), 0);
        return;
    }
    whole = eb_front_conn_take_body(self->conn);
    if (whole != NULL) {
        g_autoptr(GInputStream) stream = g_memory_input_stream_new_from_bytes(whole);

        eb_front_conn_get_audit(self->conn)->bytes_up += g_bytes_get_size(whole);
        soup_message_set_request_body(self->message, NULL, stream, (gssize)g_bytes_get_size(whole));
    } else {
        self->body = eb_body_stream_new(self->conn);
        soup_message_set_request_body(self->message, NULL, G_INPUT_STREAM(self->body),
                                      request->chunked ? -1 : (gssize)request->content_length);
    }
    if (type != NULL)
        soup_message_headers_replace(soup_message_get_request_headers(self->message), "Content-Type", type);
}

static void
exchange_on_starting(SoupMessage *message, EbExchange *self)
{
    self->phase = self->body != NULL ? PHASE_REQUEST : PHASE_ANSWER;
    self->moved_at = g_get_monotonic_time();
}

static void
exchange_on_wrote_body(SoupMessage *message, EbExchange *self)
{
    self->phase = PHASE_ANSWER;
    self->moved_at = g_get_monotonic_time();
}

/* A body that streamed through is gone and cannot be sent again; the client knows what to do with a 502. */
static void
exchange_on_restarted(SoupMessage *message, EbExchange *self)
{
    if (self->body != NULL && eb_body_stream_get_count(self->body) > 0)
        g_cancellable_cancel(self->cancellable);
}

EbExchange *
eb_exchange_start(EbBroker *broker, EbFrontConn *conn, EbBrokerConfig *config, const EbHttpRequest *request,
                  const EbRoute *route)
{
    EbExchange *self = g_new0(EbExchange, 1);

    self->ref_count = 1;
    self->broker = broker;
    self->conn = conn;
    self->config = eb_broker_config_ref(config);
    self->provider = route->provider;
    self->target = route->target;
    self->cancellable = g_cancellable_new();
    self->moved_at = g_get_monotonic_time();
    self->message = build_message(request, route);
    eb_key_filter_init(&self->filter, route->provider != NULL ? route->provider->key : NULL);
    exchange_set_body(self, request);
    g_signal_connect(self->message, "starting", G_CALLBACK(exchange_on_starting), self);
    g_signal_connect(self->message, "wrote-body", G_CALLBACK(exchange_on_wrote_body), self);
    g_signal_connect(self->message, "restarted", G_CALLBACK(exchange_on_restarted), self);
    broker->n_exchanges++;
    soup_session_send_async(route->provider != NULL ? broker->upstream->providers : broker->upstream->plain,
                            self->message, G_PRIORITY_DEFAULT, self->cancellable, exchange_on_sent, exchange_ref(self));
    return self;
}

void
eb_exchange_body_ready(EbExchange *self)
{
    self->moved_at = g_get_monotonic_time();
    if (self->body != NULL)
        eb_body_stream_wake(self->body);
}

void
eb_exchange_tick(EbExchange *self, gint64 now)
{
    gint64 waited = now - self->moved_at;

    switch (self->phase) {
    case PHASE_CONNECT:
        if (waited >= EB_BROKER_CONNECT_WAIT + EB_BROKER_RESOLVE_WAIT)
            exchange_refuse(self, EB_REFUSAL_CONNECT_TIMEOUT);
        break;
    case PHASE_REQUEST:
    case PHASE_ANSWER:
        if (waited >= EB_BROKER_FIRST_BYTE_WAIT)
            exchange_refuse(self, EB_REFUSAL_FIRST_BYTE_TIMEOUT);
        break;
    case PHASE_BODY:
    default:
        if (waited >= (self->draining ? EB_BROKER_STALL_WAIT : EB_BROKER_IDLE_WAIT))
            exchange_end(self, FALSE);
        break;
    }
}

void
eb_exchange_abort(EbExchange *self)
{
    exchange_detach(self);
}
