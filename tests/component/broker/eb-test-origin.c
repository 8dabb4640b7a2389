/* SPDX-License-Identifier: MIT */
#include "tests/component/broker/eb-test-origin.h"

#include <string.h>

#define WAIT (60 * G_USEC_PER_SEC)

struct _EbTestOrigin {
    int ref_count;
    GSocketListener *listener;
    GTlsCertificate *certificate; /* (nullable) */
    GThread *thread;
    GCancellable *cancellable;
    guint16 port;
    GMutex mutex;
    GCond counted; /* n_requests, n_gone, n_whole */
    GCond stepped; /* n_steps, step_end: every stream waits for that */
    guint n_requests;
    guint n_gone;
    guint n_whole;
    guint n_steps;
    gboolean step_end;
    GString *heads;
};

typedef struct {
    EbTestOrigin *origin;
    GIOStream *stream;
    GString *in;
    char *head;
} Peer;

static EbTestOrigin *
origin_ref(EbTestOrigin *self)
{
    g_atomic_int_inc(&self->ref_count);
    return self;
}

static void
origin_unref(EbTestOrigin *self)
{
    if (!g_atomic_int_dec_and_test(&self->ref_count))
        return;
    g_object_unref(self->listener);
    g_object_unref(self->cancellable);
    g_clear_object(&self->certificate);
    g_string_free(self->heads, TRUE);
    g_mutex_clear(&self->mutex);
    g_cond_clear(&self->counted);
    g_cond_clear(&self->stepped);
    g_free(self);
}

static gboolean
peer_fill(Peer *peer)
{
    char buffer[65536];
    gssize got = g_input_stream_read(g_io_stream_get_input_stream(peer->stream), buffer, sizeof buffer,
                                     peer->origin->cancellable, NULL);

    if (got > 0)
        g_string_append_len(peer->in, buffer, got);
    return got > 0;
}

static gboolean
peer_write(Peer *peer, const char *bytes, gsize length)
{
    return g_output_stream_write_all(g_io_stream_get_output_stream(peer->stream), bytes, length, NULL,
                                     peer->origin->cancellable, NULL);
}

static gboolean
peer_answer(Peer *peer, guint status, const char *headers, const char *body)
{
    g_autofree char *text = g_strdup_printf("HTTP/1.1 %u X\r\nContent-Length: %" G_GSIZE_FORMAT "\r\n%s\r\n%s", status,
                                            strlen(body), headers, body);

    return peer_write(peer, text, strlen(text));
}

/* Length of the body, which is read and thrown away; G_MAXUINT64 when it broke off. */
static guint64
peer_skip_body(Peer *peer)
{
    const char *length_header = strcasestr(peer->head, "\r\ncontent-length:");
    guint64 left = length_header != NULL ? g_ascii_strtoull(length_header + 17, NULL, 10) : 0, total = left;

    if (strcasestr(peer->head, "\r\ntransfer-encoding: chunked") != NULL) {
        total = 0;
        while (TRUE) {
            char *line;
            guint64 chunk;

            while ((line = strstr(peer->in->str, "\r\n")) == NULL) {
                if (!peer_fill(peer))
                    return G_MAXUINT64;
            }
            chunk = g_ascii_strtoull(peer->in->str, NULL, 16);
            g_string_erase(peer->in, 0, line - peer->in->str + 2);
            while (peer->in->len < chunk + 2) {
                if (!peer_fill(peer))
                    return G_MAXUINT64;
            }
            g_string_erase(peer->in, 0, (gssize)chunk + 2);
            total += chunk;
            if (chunk == 0)
                return total;
        }
    }
    while (left > 0) {
        gsize here = (gsize)MIN(left, peer->in->len);

        g_string_erase(peer->in, 0, (gssize)here);
        left -= here;
        if (left > 0 && !peer_fill(peer))
            return G_MAXUINT64;
    }
    return total;
}

static void
peer_count(Peer *peer, guint *count)
{
    g_mutex_lock(&peer->origin->mutex);
    *count += 1;
    g_cond_broadcast(&peer->origin->counted);
    g_mutex_unlock(&peer->origin->mutex);
    /* A test may look at it from its loop. */
    g_main_context_wakeup(NULL);
}

static void
peer_count_gone(Peer *peer)
{
    peer_count(peer, &peer->origin->n_gone);
}

/* FALSE: no more steps. */
static gboolean
origin_take_step(EbTestOrigin *self)
{
    gint64 end = g_get_monotonic_time() + WAIT;
    gboolean took = FALSE;

    g_mutex_lock(&self->mutex);
    while (self->n_steps == 0 && !self->step_end) {
        if (!g_cond_wait_until(&self->stepped, &self->mutex, end))
            break;
    }
    if (self->n_steps > 0) {
        self->n_steps--;
        took = TRUE;
    }
    g_mutex_unlock(&self->mutex);
    return took;
}

static gboolean
peer_stream_events(Peer *peer)
{
    static const char HEAD[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    guint n = 0;

    if (!peer_write(peer, HEAD, strlen(HEAD)))
        return FALSE;
    while (origin_take_step(peer->origin)) {
        g_autofree char *event = g_strdup_printf("data: %u\n\n", n++);
        g_autofree char *chunk = g_strdup_printf("%zx\r\n%s\r\n", strlen(event), event);

        if (!peer_write(peer, chunk, strlen(chunk))) {
            peer_count_gone(peer);
            return FALSE;
        }
    }
    return peer_write(peer, "0\r\n\r\n", 5);
}

static gboolean
peer_send_pattern(Peer *peer, guint64 n)
{
    g_autofree char *head = g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: %" G_GUINT64_FORMAT "\r\n\r\n", n);
    char pattern[65536];

    for (gsize i = 0; i < sizeof pattern; i++)
        pattern[i] = (char)('a' + i % 23);
    if (!peer_write(peer, head, strlen(head)))
        return FALSE;
    while (n > 0) {
        gsize here = (gsize)MIN(n, sizeof pattern);

        if (!peer_write(peer, pattern, here))
            return FALSE;
        n -= here;
    }
    return TRUE;
}

/* A model that does not stop by itself: 30 bytes of text an event, and nothing that counts it. */
static gboolean
peer_talk(Peer *peer)
{
    static const char HEAD[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char EVENT[] = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":"
                                "\"thirty bytes of what models say\"}}]}\n\n";
    g_autofree char *chunk = g_strdup_printf("%zx\r\n%s\r\n", strlen(EVENT), EVENT);

    if (!peer_write(peer, HEAD, strlen(HEAD)))
        return FALSE;
    while (peer_write(peer, chunk, strlen(chunk)))
        continue;
    peer_count_gone(peer);
    return FALSE;
}

static gboolean
peer_say_usage(Peer *peer)
{
    return peer_answer(peer, 200, "Content-Type: application/json\r\n",
                       "{\"model\":\"m-2025\",\"choices\":[],\"usage\":{\"prompt_tokens\":40,"
                       "\"completion_tokens\":2,\"total_tokens\":42}}");
}

static gboolean
peer_serve(Peer *peer, const char *path)
{
    guint64 body = peer_skip_body(peer);
    const char *key = strcasestr(peer->head, "\r\nx-api-key:");
    g_autofree char *text = NULL;

    if (body != G_MAXUINT64)
        peer_count(peer, &peer->origin->n_whole);
    if (g_str_has_prefix(path, "/v1/"))
        path += 3;
    if (body == G_MAXUINT64) {
        peer_count_gone(peer);
        return FALSE;
    }
    if (g_str_has_prefix(path, "/echo")) {
        g_autofree char *value = key != NULL ? g_strndup(key + 12, strcspn(key + 12, "\r")) : g_strdup("");

        text = g_strdup_printf("X-Echo:%s\r\nX-Kept: yes\r\n", value);
        return peer_answer(peer, 200, text, peer->head);
    }
    if (g_str_has_prefix(path, "/count")) {
        text = g_strdup_printf("%" G_GUINT64_FORMAT, body);
        return peer_answer(peer, 200, "", text);
    }
    if (g_str_has_prefix(path, "/talk"))
        return peer_talk(peer);
    if (g_str_has_prefix(path, "/usage"))
        return peer_say_usage(peer);
    if (g_str_has_prefix(path, "/sse"))
        return peer_stream_events(peer);
    if (g_str_has_prefix(path, "/hang")) {
        while (peer_fill(peer))
            continue;
        peer_count_gone(peer);
        return FALSE;
    }
    if (g_str_has_prefix(path, "/bytes/"))
        return peer_send_pattern(peer, g_ascii_strtoull(path + 7, NULL, 10));
    if (g_str_has_prefix(path, "/status/"))
        return peer_answer(peer, (guint)g_ascii_strtoull(path + 8, NULL, 10), "", "no");
    if (g_str_has_prefix(path, "/redirect"))
        return peer_answer(peer, 302, "Location: http://elsewhere.test/x\r\n", "");
    if (g_str_has_prefix(path, "/coded"))
        return peer_answer(peer, 200, "Content-Encoding: gzip\r\n", "\x1f\x8b not really");
    if (g_str_has_prefix(path, "/cut")) {
        peer_write(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 42);
        return FALSE;
    }
    return peer_answer(peer, 200, "", "hello");
}

static gpointer
peer_run(gpointer data)
{
    Peer *peer = data;
    gboolean going = TRUE;

    while (going) {
        char *end;
        g_autofree char *path = NULL;

        while ((end = strstr(peer->in->str, "\r\n\r\n")) == NULL && peer_fill(peer))
            continue;
        if (end == NULL)
            break;
        peer->head = g_strndup(peer->in->str, (gsize)(end - peer->in->str) + 4);
        g_string_erase(peer->in, 0, end - peer->in->str + 4);
        g_mutex_lock(&peer->origin->mutex);
        peer->origin->n_requests++;
        g_string_append(peer->origin->heads, peer->head);
        g_cond_broadcast(&peer->origin->counted);
        g_mutex_unlock(&peer->origin->mutex);
        g_main_context_wakeup(NULL);
        path = g_strdup(strchr(peer->head, ' ') + 1);
        path[strcspn(path, " ")] = '\0';
        going = peer_serve(peer, path);
        g_clear_pointer(&peer->head, g_free);
    }
    g_io_stream_close(peer->stream, NULL, NULL);
    g_object_unref(peer->stream);
    g_string_free(peer->in, TRUE);
    origin_unref(peer->origin);
    g_free(peer);
    return NULL;
}

static gpointer
origin_run(gpointer data)
{
    EbTestOrigin *self = data;
    GSocketConnection *connection;

    while ((connection = g_socket_listener_accept(self->listener, NULL, self->cancellable, NULL)) != NULL) {
        Peer *peer = g_new0(Peer, 1);

        peer->origin = origin_ref(self);
        peer->in = g_string_new(NULL);
        peer->stream = G_IO_STREAM(connection);
        if (self->certificate != NULL) {
            peer->stream = g_tls_server_connection_new(G_IO_STREAM(connection), self->certificate, NULL);
            g_object_unref(connection);
        }
        g_thread_unref(g_thread_new("origin-peer", peer_run, peer));
    }
    origin_unref(self);
    return NULL;
}

EbTestOrigin *
eb_test_origin_new(const char *certificate)
{
    EbTestOrigin *self = g_new0(EbTestOrigin, 1);
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, 0);
    g_autoptr(GSocketAddress) bound = NULL;
    g_autoptr(GError) error = NULL;

    self->ref_count = 1;
    g_mutex_init(&self->mutex);
    g_cond_init(&self->counted);
    g_cond_init(&self->stepped);
    self->heads = g_string_new(NULL);
    self->cancellable = g_cancellable_new();
    self->listener = g_socket_listener_new();
    if (certificate != NULL) {
        self->certificate = g_tls_certificate_new_from_file(certificate, &error);
        g_assert_no_error(error);
    }
    g_assert_true(g_socket_listener_add_address(self->listener, address, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP,
                                                NULL, &bound, &error));
    self->port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
    self->thread = g_thread_new("origin", origin_run, origin_ref(self));
    return self;
}

void
eb_test_origin_free(EbTestOrigin *self)
{
    eb_test_origin_step_end(self);
    g_cancellable_cancel(self->cancellable);
    g_thread_join(self->thread);
    g_socket_listener_close(self->listener);
    /* Threads of connections end by the same cancellable and drop their references then. */
    for (guint i = 0; i < 2000 && g_atomic_int_get(&self->ref_count) > 1; i++)
        g_usleep(5000);
    origin_unref(self);
}

guint16
eb_test_origin_get_port(EbTestOrigin *self)
{
    return self->port;
}

guint
eb_test_origin_get_count(EbTestOrigin *self)
{
    guint count;

    g_mutex_lock(&self->mutex);
    count = self->n_requests;
    g_mutex_unlock(&self->mutex);
    return count;
}

guint
eb_test_origin_get_whole(EbTestOrigin *self)
{
    guint count;

    g_mutex_lock(&self->mutex);
    count = self->n_whole;
    g_mutex_unlock(&self->mutex);
    return count;
}

char *
eb_test_origin_get_heads(EbTestOrigin *self)
{
    char *text;

    g_mutex_lock(&self->mutex);
    text = g_strdup(self->heads->str);
    g_mutex_unlock(&self->mutex);
    return text;
}

static void
origin_wait(EbTestOrigin *self, const guint *value, guint count)
{
    gint64 end = g_get_monotonic_time() + WAIT;

    g_mutex_lock(&self->mutex);
    while (*value < count && g_cond_wait_until(&self->counted, &self->mutex, end))
        continue;
    g_assert_cmpuint(*value, >=, count);
    g_mutex_unlock(&self->mutex);
}

void
eb_test_origin_wait_count(EbTestOrigin *self, guint count)
{
    origin_wait(self, &self->n_requests, count);
}

void
eb_test_origin_wait_gone(EbTestOrigin *self, guint count)
{
    origin_wait(self, &self->n_gone, count);
}

void
eb_test_origin_step(EbTestOrigin *self)
{
    g_mutex_lock(&self->mutex);
    self->n_steps++;
    g_cond_broadcast(&self->stepped);
    g_mutex_unlock(&self->mutex);
}

void
eb_test_origin_step_end(EbTestOrigin *self)
{
    g_mutex_lock(&self->mutex);
    self->step_end = TRUE;
    g_cond_broadcast(&self->stepped);
    g_mutex_unlock(&self->mutex);
}
