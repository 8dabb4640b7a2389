/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-upstream-h2.h"

#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <sodium.h>
#include <string.h>

#include "core/broker/eb-exchange-private.h"
#include "core/broker/eb-upstream-request.h"

/* What the connection as a whole may have on its way; single streams are what is held back. */
#define CONNECTION_WINDOW (4 * 1024 * 1024)
/* Room for the lines that a request has beside the guest's own. */
#define OWN_LINES 8

struct _EbH2 {
    EbUpstreamConn *conn;     /* (owned) */
    nghttp2_session *session; /* (owned) */
    GQueue exchanges;         /* (unowned), by their h2_link */
    GByteArray *pending;      /* (owned) (nullable): at most one frame that the connection did not take */
    gsize pending_at;
    EbExchange *begun; /* (unowned) (nullable): its answer's head is not sent yet */
    guint busy;        /* running calls of the library */
    gboolean broken;
    gint64 idle_since;
    void (*closed)(EbH2 *h2, gpointer owner);
    gpointer owner;
};

/* --- memory: requests hold keys, so everything is wiped before it is given back --- */

static void *
wiping_malloc(size_t size, void *user_data)
{
    return malloc(size);
}

static void
wiping_free(void *pointer, void *user_data)
{
    if (pointer != NULL)
        sodium_memzero(pointer, malloc_usable_size(pointer));
    free(pointer);
}

static void *
wiping_calloc(size_t n, size_t size, void *user_data)
{
    return calloc(n, size);
}

static void *
wiping_realloc(void *pointer, size_t size, void *user_data)
{
    size_t old = pointer != NULL ? malloc_usable_size(pointer) : 0;
    void *grown = malloc(size);

    if (grown == NULL)
        return NULL;
    if (old > 0)
        memcpy(grown, pointer, MIN(old, size));
    wiping_free(pointer, NULL);
    return grown;
}

static nghttp2_mem wiping = {NULL, wiping_malloc, wiping_free, wiping_calloc, wiping_realloc};

/* --- the way up --- */

/* Ends every request that is still on its way. */
static void
h2_break(EbH2 *self)
{
    self->broken = TRUE;
    self->busy++;
    while (self->exchanges.head != NULL) {
        EbExchange *exchange = self->exchanges.head->data;

        eb_exchange_ref(exchange);
        eb_h2_detach(self, exchange);
        eb_exchange_fail(exchange, "the connection ended");
        eb_exchange_unref(exchange);
    }
    self->busy--;
}

static gboolean
h2_flush(EbH2 *self)
{
    EbUpstreamResult result;
    gsize written;

    if (self->pending == NULL)
        return TRUE;
    result = eb_upstream_conn_write(self->conn, (const char *)self->pending->data + self->pending_at,
                                    self->pending->len - self->pending_at, &written);
    self->pending_at += written;
    if (result != EB_UPSTREAM_OK) {
        self->broken = self->broken || result != EB_UPSTREAM_WAIT;
        return FALSE;
    }
    sodium_memzero(self->pending->data, self->pending->len);
    g_clear_pointer(&self->pending, g_byte_array_unref);
    self->pending_at = 0;
    return TRUE;
}

static void
h2_send(EbH2 *self)
{
    const guint8 *bytes;
    ssize_t length = 0;

    self->busy++;
    while (!self->broken && h2_flush(self) && (length = nghttp2_session_mem_send(self->session, &bytes)) > 0) {
        gsize written;
        EbUpstreamResult result = eb_upstream_conn_write(self->conn, (const char *)bytes, (gsize)length, &written);

        if (result == EB_UPSTREAM_OK)
            continue;
        self->broken = result != EB_UPSTREAM_WAIT;
        self->pending = g_byte_array_sized_new((guint)((gsize)length - written));
        g_byte_array_append(self->pending, bytes + written, (guint)((gsize)length - written));
        self->pending_at = 0;
    }
    self->broken = self->broken || length < 0;
    self->busy--;
}

/* The library asks for the next bytes of a request's body. */
static ssize_t
read_body(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t size, uint32_t *flags,
          nghttp2_data_source *source, void *user_data)
{
    EbExchange *exchange = nghttp2_session_get_stream_user_data(session, stream_id);
    gsize got = 0;

    if (exchange == NULL || exchange->conn == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    exchange->moved_at = g_get_monotonic_time();
    if (exchange->whole != NULL) {
        gsize length;
        const char *bytes = g_bytes_get_data(exchange->whole, &length);

        got = MIN(size, length - exchange->whole_at);
        memcpy(buffer, bytes + exchange->whole_at, got);
        exchange->whole_at += got;
        exchange->up_done = exchange->whole_at == length;
    } else {
        switch (eb_front_conn_read_body(exchange->conn, (char *)buffer, size, &got)) {
        case EB_BODY_SOME:
            exchange->streamed += got;
            break;
        case EB_BODY_END:
            exchange->up_done = TRUE;
            break;
        case EB_BODY_WAIT:
            return NGHTTP2_ERR_DEFERRED;
        case EB_BODY_BROKEN:
        default:
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    if (exchange->up_done) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (exchange->phase == EB_EXCHANGE_REQUEST)
            exchange->phase = EB_EXCHANGE_ANSWER;
    }
    return (ssize_t)got;
}

typedef struct {
    nghttp2_nv lines[EB_HTTP_MAX_HEADERS + OWN_LINES];
    guint n;
} Lines;

static void
add_line(Lines *lines, const char *name, const char *value, gsize length, gboolean secret)
{
    lines->lines[lines->n++] = (nghttp2_nv){
        .name = (uint8_t *)name,
        .value = (uint8_t *)value,
        .namelen = strlen(name),
        .valuelen = length,
        .flags = secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE,
    };
}

static void
add_key(Lines *lines, EbProvider *provider, char *buffer)
{
    static const char BEARER[] = "Bearer ";
    g_auto(EbSecretView) view = eb_secret_view(provider->key);
    gsize before = provider->kind == EB_PROVIDER_OPENAI ? sizeof BEARER - 1 : 0;

    memcpy(buffer, BEARER, before);
    memcpy(buffer + before, view.bytes, view.length);
    add_line(lines,
             provider->kind == EB_PROVIDER_ANTHROPIC ? "x-api-key"
             : provider->kind == EB_PROVIDER_GEMINI  ? "x-goog-api-key"
                                                     : "authorization",
             buffer, before + view.length, TRUE);
}

/* The stream's number; negative when the library takes no more. */
static gint32
submit(EbH2 *self, EbExchange *exchange)
{
    const EbHttpRequest *request = exchange->request;
    char *locked = eb_upstream_head_buffer(exchange->broker->upstream);
    g_autoptr(GStringChunk) names = g_string_chunk_new(512);
    nghttp2_data_provider provider = {.read_callback = read_body};
    EbUpstreamFraming framing = eb_upstream_framing(request);
    gboolean has_body = eb_http_request_has_body(request);
    char authority[EB_HOST_MAX + 16], length[24];
    Lines lines = {.n = 0};
    gint32 id;

    eb_upstream_authority(&exchange->route.target, TRUE, authority, sizeof authority);
    add_line(&lines, ":method", request->method_name, strlen(request->method_name), FALSE);
    add_line(&lines, ":scheme", "https", 5, FALSE);
    add_line(&lines, ":authority", authority, strlen(authority), FALSE);
    add_line(&lines, ":path", exchange->route.path, strlen(exchange->route.path), FALSE);
    for (guint i = 0; i < request->n_headers; i++) {
        const EbHttpHeader *header = &request->headers[i];
        char *name;

        if (!eb_route_header_passes(&exchange->route, header))
            continue;
        name = g_string_chunk_insert(names, header->name);
        for (char *c = name; *c != '\0'; c++)
            *c = g_ascii_tolower(*c);
        add_line(&lines, name, header->value, strlen(header->value), FALSE);
    }
    add_line(&lines, "accept-encoding", "identity", 8, FALSE);
    if (framing == EB_UPSTREAM_LENGTH) {
        g_snprintf(length, sizeof length, "%" G_GUINT64_FORMAT, request->content_length);
        add_line(&lines, "content-length", length, strlen(length), FALSE);
    }
    add_key(&lines, exchange->route.provider, locked);
    id = nghttp2_submit_request(self->session, NULL, lines.lines, lines.n, has_body ? &provider : NULL, exchange);
    eb_upstream_wipe(exchange->broker->upstream, EB_UPSTREAM_MAX_KEY + 8);
    return id;
}

void
eb_h2_begin(EbH2 *self, EbExchange *exchange)
{
    gint32 id = -1;

    if (eb_secret_get_length(exchange->route.provider->key) <= EB_UPSTREAM_MAX_KEY)
        id = submit(self, exchange);
    if (id < 0) {
        eb_exchange_refuse(exchange, EB_REFUSAL_UPSTREAM, "the request does not fit into HTTP/2");
        return;
    }
    exchange->h2 = self;
    exchange->stream_id = id;
    exchange->stream_open = TRUE;
    exchange->h2_link.data = exchange;
    g_queue_push_tail_link(&self->exchanges, &exchange->h2_link);
    exchange->up_done = !eb_http_request_has_body(exchange->request);
    exchange->phase = exchange->up_done ? EB_EXCHANGE_ANSWER : EB_EXCHANGE_REQUEST;
    exchange->moved_at = g_get_monotonic_time();
    eb_front_conn_get_audit(exchange->conn)->address = self->conn->address;
    eb_http_answer_begin(&exchange->answer, exchange->request->method == EB_HTTP_HEAD);
    eb_h2_settle(self);
}

void
eb_h2_body_ready(EbH2 *self, EbExchange *exchange)
{
    if (!exchange->stream_open)
        return;
    nghttp2_session_resume_data(self->session, exchange->stream_id);
    eb_h2_settle(self);
}

void
eb_h2_drained(EbH2 *self, EbExchange *exchange)
{
    if (!exchange->stream_open || exchange->owed == 0)
        return;
    nghttp2_session_consume_stream(self->session, exchange->stream_id, exchange->owed);
    exchange->owed = 0;
    eb_h2_settle(self);
}

static void
forget_stream(EbH2 *self, EbExchange *exchange)
{
    exchange->stream_open = FALSE;
    nghttp2_session_set_stream_user_data(self->session, exchange->stream_id, NULL);
}

void
eb_h2_detach(EbH2 *self, EbExchange *exchange)
{
    exchange->h2 = NULL;
    g_queue_unlink(&self->exchanges, &exchange->h2_link);
    if (self->begun == exchange)
        self->begun = NULL;
    if (self->exchanges.length == 0)
        self->idle_since = g_get_monotonic_time();
    if (!exchange->stream_open)
        return;
    forget_stream(self, exchange);
    nghttp2_submit_rst_stream(self->session, NGHTTP2_FLAG_NONE, exchange->stream_id, NGHTTP2_CANCEL);
    /* It leaves from the loop: this may be called out of the library, and from below whoever holds the connection. */
    if (!self->broken)
        eb_poller_requeue(self->conn->broker->poller, &self->conn->watch);
}

/* --- the way down: what the library calls --- */

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
          const uint8_t *value, size_t value_length, uint8_t flags, void *user_data)
{
    EbExchange *exchange = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    /* A trailer, or nobody waits for it any more. */
    if (exchange == NULL || exchange->phase == EB_EXCHANGE_BODY)
        return 0;
    exchange->heard = TRUE;
    return eb_http_answer_add(&exchange->answer, (const char *)name, name_length, (const char *)value, value_length)
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void
take_head(EbH2 *self, EbExchange *exchange, gboolean at_end)
{
    switch (eb_http_answer_finish(&exchange->answer, at_end)) {
    case EB_HTTP_DONE:
        if (self->begun != NULL && self->begun->conn != NULL)
            eb_front_conn_flush_head(self->begun->conn);
        self->begun = exchange;
        eb_exchange_begin_answer(exchange, &exchange->answer.head);
        break;
    case EB_HTTP_MORE:
        break;
    case EB_HTTP_REFUSED:
    default:
        eb_exchange_refuse(exchange, EB_REFUSAL_UPSTREAM, "its answer is malformed");
        break;
    }
}

static int
on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    EbH2 *self = user_data;
    EbExchange *exchange = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    gboolean at_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (exchange == NULL || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    eb_exchange_ref(exchange);
    exchange->moved_at = g_get_monotonic_time();
    if (frame->hd.type == NGHTTP2_HEADERS && exchange->phase != EB_EXCHANGE_BODY)
        take_head(self, exchange, at_end);
    if (at_end && exchange->conn != NULL && exchange->phase == EB_EXCHANGE_BODY) {
        /* Both ways are at their end: nothing is left to be reset. */
        if (exchange->up_done)
            forget_stream(self, exchange);
        eb_exchange_pass(exchange, NULL, 0, TRUE);
    }
    eb_exchange_unref(exchange);
    return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *bytes, size_t length,
        void *user_data)
{
    EbExchange *exchange = nghttp2_session_get_stream_user_data(session, stream_id);

    /* The connection's window is for everybody; a guest that does not read holds up its own stream alone. */
    nghttp2_session_consume_connection(session, length);
    if (exchange == NULL || exchange->phase != EB_EXCHANGE_BODY)
        return 0;
    eb_exchange_ref(exchange);
    exchange->moved_at = g_get_monotonic_time();
    eb_exchange_pass(exchange, (const char *)bytes, length, FALSE);
    if (exchange->conn != NULL && exchange->draining)
        exchange->owed += length;
    else if (exchange->conn != NULL)
        nghttp2_session_consume_stream(session, stream_id, length);
    eb_exchange_unref(exchange);
    return 0;
}

static int
on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user_data)
{
    EbH2 *self = user_data;
    EbExchange *exchange = nghttp2_session_get_stream_user_data(session, stream_id);

    if (exchange == NULL)
        return 0;
    exchange->stream_open = FALSE;
    eb_exchange_ref(exchange);
    eb_h2_detach(self, exchange);
    /* The upstream says that it did nothing with it. */
    if (code == NGHTTP2_REFUSED_STREAM)
        exchange->unprocessed = TRUE;
    /* Unless the answer is complete and the guest only has to take what is left. */
    if (!exchange->ended)
        eb_exchange_fail(exchange, "it reset the stream");
    eb_exchange_unref(exchange);
    return 0;
}

static void
h2_receive(EbH2 *self)
{
    char *scratch = self->conn->broker->scratch;
    EbUpstreamResult result = EB_UPSTREAM_OK;

    self->busy++;
    for (guint i = 0; result == EB_UPSTREAM_OK && !self->broken; i++) {
        gsize got;

        if (i == EB_UPSTREAM_TURN) {
            eb_poller_requeue(self->conn->broker->poller, &self->conn->watch);
            break;
        }
        result = eb_upstream_conn_read(self->conn, scratch, EB_UPSTREAM_PIECE, &got);
        if (got > 0 && nghttp2_session_mem_recv(self->session, (const guint8 *)scratch, got) != (ssize_t)got)
            self->broken = TRUE;
        if (self->begun != NULL && self->begun->conn != NULL)
            eb_front_conn_flush_head(self->begun->conn);
        self->begun = NULL;
    }
    self->broken = self->broken || (result != EB_UPSTREAM_OK && result != EB_UPSTREAM_WAIT);
    self->busy--;
}

/* Sends what is due, and closes what is of no more use; the last thing its callers do with @self. */
void
eb_h2_settle(EbH2 *self)
{
    if (self->busy > 0)
        return;
    h2_send(self);
    if (self->broken)
        h2_break(self);
    if (self->broken || (self->exchanges.length == 0 && nghttp2_session_want_read(self->session) == 0 &&
                         nghttp2_session_want_write(self->session) == 0))
        self->closed(self, self->owner);
}

static void
h2_ready(EbUpstreamConn *conn, gpointer owner)
{
    EbH2 *self = owner;

    h2_receive(self);
    eb_h2_settle(self);
}

/* --- life --- */

static nghttp2_session *
session_new(EbH2 *self)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, EB_H2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, EB_HTTP_MAX_ANSWER_HEAD},
    };
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session *session = NULL;

    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
        g_error("out of memory for HTTP/2");
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    if (nghttp2_session_client_new3(&session, callbacks, self, option, &wiping) != 0)
        g_error("out of memory for HTTP/2");
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, G_N_ELEMENTS(settings));
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    return session;
}

EbH2 *
eb_h2_new(EbUpstreamConn *conn, void (*closed)(EbH2 *h2, gpointer owner), gpointer owner)
{
    EbH2 *self = g_new0(EbH2, 1);

    self->conn = conn;
    self->closed = closed;
    self->owner = owner;
    self->idle_since = g_get_monotonic_time();
    g_queue_init(&self->exchanges);
    self->session = session_new(self);
    eb_upstream_conn_set_owner(conn, h2_ready, self);
    return self;
}

void
eb_h2_free(EbH2 *self)
{
    if (!self->broken)
        h2_break(self);
    nghttp2_session_del(self->session);
    if (self->pending != NULL)
        sodium_memzero(self->pending->data, self->pending->len);
    g_clear_pointer(&self->pending, g_byte_array_unref);
    eb_upstream_conn_free(self->conn);
    g_free(self);
}

gboolean
eb_h2_accepts(EbH2 *self, const EbTarget *target, gboolean of_provider)
{
    const guint32 theirs = nghttp2_session_get_remote_settings(self->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

    return !self->broken && !self->conn->ended && self->conn->of_provider == of_provider &&
           self->conn->target.port == target->port && strcmp(self->conn->target.host, target->host) == 0 &&
           self->exchanges.length < MIN(theirs, EB_H2_MAX_STREAMS) &&
           nghttp2_session_check_request_allowed(self->session) != 0;
}

void
eb_h2_rest(EbH2 *self)
{
    eb_upstream_conn_rest(self->conn);
}

gint64
eb_h2_idle_since(EbH2 *self)
{
    return self->exchanges.length > 0 ? 0 : self->idle_since;
}
