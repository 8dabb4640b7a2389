/* SPDX-License-Identifier: MIT */
#include "tests/component/broker/eb-test-tls-origin.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT (60 * G_USEC_PER_SEC)
#define DAY (24 * 60 * 60)
#define STEPS 4

/* --- certificates --- */

GBytes *
eb_test_write_certificate(const char *path, const char *alt_name, int days)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alt_name);
    X509_NAME *name = X509_get_subject_name(certificate);
    BIO *bio = BIO_new(BIO_s_mem());
    FILE *file = fopen(path, "w");
    GBytes *pem;
    char *bytes;
    long length;

    g_assert_nonnull(file);
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -30L * DAY);
    X509_gmtime_adj(X509_getm_notAfter(certificate), (long)days * DAY);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const guchar *)"origin", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    g_assert_true(X509_add_ext(certificate, extension, -1) == 1);
    g_assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    g_assert_true(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
    g_assert_true(PEM_write_X509(file, certificate) == 1);
    g_assert_true(fclose(file) == 0);
    g_assert_true(PEM_write_bio_X509(bio, certificate) == 1);
    length = BIO_get_mem_data(bio, &bytes);
    pem = g_bytes_new(bytes, (gsize)length);
    BIO_free(bio);
    X509_EXTENSION_free(extension);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return pem;
}

/* --- the server --- */

struct _EbTestH2Origin {
    gatomicrefcount refs;
    SSL_CTX *context;
    int listener;
    guint16 port;
    GThread *thread;
    GMutex mutex;
    GCond changed;
    gboolean ending;
    guint n_connections;
    guint n_requests;
    guint n_resets;
    guint n_refused;
    guint n_steps;
    GArray *fds;
};

typedef struct {
    EbTestH2Origin *origin;
    SSL *ssl;
    nghttp2_session *session;
} Peer;

typedef struct {
    char *path;
    char *key;
    guint64 received;
    guint64 left; /* of the answer's body */
    char *text;
    gsize text_at;
    guint events;
    gboolean head;
    gboolean answered;
} Stream;

static void
origin_unref(EbTestH2Origin *self)
{
    if (!g_atomic_ref_count_dec(&self->refs))
        return;
    SSL_CTX_free(self->context);
    g_array_unref(self->fds);
    g_mutex_clear(&self->mutex);
    g_cond_clear(&self->changed);
    g_free(self);
}

/* Waits for the test's next step; what was read so far has left by now. */
static void
wait_step(EbTestH2Origin *self, guint n)
{
    gint64 end = g_get_monotonic_time() + WAIT;

    g_mutex_lock(&self->mutex);
    while (self->n_steps < n && !self->ending && g_cond_wait_until(&self->changed, &self->mutex, end))
        continue;
    g_mutex_unlock(&self->mutex);
}

static ssize_t
read_answer(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t size, uint32_t *flags,
            nghttp2_data_source *source, void *user_data)
{
    Peer *peer = user_data;
    Stream *stream = source->ptr;
    gsize n;

    if (strcmp(stream->path, "/reset") == 0) {
        if (stream->events++ > 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        memcpy(buffer, "part", 4);
        return 4;
    }
    if (strcmp(stream->path, "/steps") == 0) {
        if (stream->events > 0)
            wait_step(peer->origin, stream->events);
        if (stream->events == STEPS) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            return 0;
        }
        return g_snprintf((char *)buffer, size, "data: %u\n\n", stream->events++);
    }
    if (stream->text != NULL) {
        n = MIN(size, strlen(stream->text) - stream->text_at);
        memcpy(buffer, stream->text + stream->text_at, n);
        stream->text_at += n;
        if (stream->text[stream->text_at] == '\0')
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)n;
    }
    n = (gsize)MIN(size, stream->left);
    memset(buffer, 'b', n);
    stream->left -= n;
    if (stream->left == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void
answer(Peer *peer, int32_t id, Stream *stream, const char *status, gboolean body)
{
    const nghttp2_nv lines[] = {
        {(uint8_t *)":status", (uint8_t *)status, 7, 3, NGHTTP2_NV_FLAG_NONE},
        {(uint8_t *)"content-type", (uint8_t *)"text/plain", 12, 10, NGHTTP2_NV_FLAG_NONE},
    };
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = read_answer};

    nghttp2_submit_response(peer->session, id, lines, G_N_ELEMENTS(lines), body ? &provider : NULL);
}

static void
serve(Peer *peer, int32_t id, Stream *stream)
{
    EbTestH2Origin *origin = peer->origin;
    gboolean refuse;

    stream->answered = TRUE;
    g_mutex_lock(&origin->mutex);
    origin->n_requests++;
    refuse = strcmp(stream->path, "/refuse") == 0 && origin->n_refused++ == 0;
    g_mutex_unlock(&origin->mutex);
    if (refuse) {
        nghttp2_submit_rst_stream(peer->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    } else if (strcmp(stream->path, "/none") == 0) {
        answer(peer, id, stream, "204", FALSE);
    } else if (strcmp(stream->path, "/hang") != 0) {
        if (strcmp(stream->path, "/count") == 0)
            stream->text = g_strdup_printf("%" G_GUINT64_FORMAT, stream->received);
        else if (g_str_has_prefix(stream->path, "/bytes/"))
            stream->left = g_ascii_strtoull(stream->path + 7, NULL, 10);
        else
            stream->text = g_strdup_printf("hello %s", stream->key != NULL ? stream->key : "");
        if (strcmp(stream->path, "/hints") == 0) {
            const nghttp2_nv hint = {(uint8_t *)":status", (uint8_t *)"103", 7, 3, NGHTTP2_NV_FLAG_NONE};

            nghttp2_submit_headers(peer->session, NGHTTP2_FLAG_NONE, id, NULL, &hint, 1, NULL);
        }
        answer(peer, id, stream, "200", !stream->head);
        if (strcmp(stream->path, "/goaway") == 0)
            nghttp2_submit_goaway(peer->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR, NULL, 0);
    }
}

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, g_new0(Stream, 1));
    return 0;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
          const uint8_t *value, size_t value_length, uint8_t flags, void *user_data)
{
    Stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if (name_length == 5 && memcmp(name, ":path", 5) == 0)
        stream->path = g_strndup((const char *)value, value_length);
    else if (name_length == 7 && memcmp(name, ":method", 7) == 0)
        stream->head = value_length == 4 && memcmp(value, "HEAD", 4) == 0;
    else if (name_length == 9 && memcmp(name, "x-api-key", 9) == 0)
        stream->key = g_strndup((const char *)value, value_length);
    return 0;
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    Peer *peer = user_data;
    Stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        g_mutex_lock(&peer->origin->mutex);
        peer->origin->n_resets++;
        g_cond_broadcast(&peer->origin->changed);
        g_mutex_unlock(&peer->origin->mutex);
    }
    if (stream != NULL && !stream->answered && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
        (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
        serve(peer, frame->hd.stream_id, stream);
    return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t length, void *user_data)
{
    Stream *stream = nghttp2_session_get_stream_user_data(session, id);

    stream->received += length;
    return 0;
}

static int
on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data)
{
    Stream *stream = nghttp2_session_get_stream_user_data(session, id);

    if (stream != NULL) {
        g_free(stream->path);
        g_free(stream->key);
        g_free(stream->text);
        g_free(stream);
    }
    return 0;
}

static nghttp2_session *
session_new(Peer *peer)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_server_new(&session, callbacks, peer);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
    return session;
}

static gboolean
send_all(Peer *peer)
{
    const uint8_t *bytes;
    ssize_t length;

    while ((length = nghttp2_session_mem_send(peer->session, &bytes)) > 0) {
        if (SSL_write(peer->ssl, bytes, (int)length) != length)
            return FALSE;
    }
    return length == 0;
}

static gpointer
peer_run(gpointer data)
{
    Peer *peer = data;
    guint8 buffer[65536];
    int got;

    if (SSL_accept(peer->ssl) == 1) {
        peer->session = session_new(peer);
        while (send_all(peer) && (got = SSL_read(peer->ssl, buffer, sizeof buffer)) > 0 &&
               nghttp2_session_mem_recv(peer->session, buffer, (gsize)got) == got)
            continue;
        nghttp2_session_del(peer->session);
    }
    shutdown(SSL_get_fd(peer->ssl), SHUT_RDWR);
    SSL_free(peer->ssl);
    origin_unref(peer->origin);
    g_free(peer);
    return NULL;
}

static gpointer
origin_run(gpointer data)
{
    EbTestH2Origin *self = data;
    int fd;

    while ((fd = accept(self->listener, NULL, NULL)) >= 0) {
        Peer *peer = g_new0(Peer, 1);
        int on = 1;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        g_mutex_lock(&self->mutex);
        self->n_connections++;
        g_array_append_val(self->fds, fd);
        g_mutex_unlock(&self->mutex);
        g_atomic_ref_count_inc(&self->refs);
        peer->origin = self;
        peer->ssl = SSL_new(self->context);
        SSL_set_fd(peer->ssl, fd);
        g_thread_unref(g_thread_new("h2-peer", peer_run, peer));
    }
    return NULL;
}

static int
choose_h2(SSL *ssl, const guchar **out, guchar *out_length, const guchar *in, guint in_length, void *data)
{
    static const guchar OURS[] = "\x02h2";

    return SSL_select_next_proto((guchar **)out, out_length, OURS, 3, in, in_length) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_NOACK;
}

EbTestH2Origin *
eb_test_h2_origin_new(const char *certificate)
{
    EbTestH2Origin *self = g_new0(EbTestH2Origin, 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    g_atomic_ref_count_init(&self->refs);
    g_mutex_init(&self->mutex);
    g_cond_init(&self->changed);
    self->fds = g_array_new(FALSE, FALSE, sizeof(int));
    self->context = SSL_CTX_new(TLS_server_method());
    g_assert_true(SSL_CTX_use_PrivateKey_file(self->context, certificate, SSL_FILETYPE_PEM) == 1);
    g_assert_true(SSL_CTX_use_certificate_file(self->context, certificate, SSL_FILETYPE_PEM) == 1);
    SSL_CTX_set_alpn_select_cb(self->context, choose_h2, NULL);
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(self->listener, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(self->listener, 16), ==, 0);
    g_assert_cmpint(getsockname(self->listener, (struct sockaddr *)&address, &length), ==, 0);
    self->port = ntohs(address.sin_port);
    self->thread = g_thread_new("h2-origin", origin_run, self);
    return self;
}

void
eb_test_h2_origin_free(EbTestH2Origin *self)
{
    g_mutex_lock(&self->mutex);
    self->ending = TRUE;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->mutex);
    shutdown(self->listener, SHUT_RDWR);
    g_thread_join(self->thread);
    close(self->listener);
    /* The peers' descriptors are closed here, so that none of these numbers is anything else meanwhile. */
    for (guint i = 0; i < self->fds->len; i++)
        shutdown(g_array_index(self->fds, int, i), SHUT_RDWR);
    for (guint i = 0; i < 2000 && !g_atomic_ref_count_compare(&self->refs, 1); i++)
        g_usleep(5000);
    for (guint i = 0; i < self->fds->len; i++)
        close(g_array_index(self->fds, int, i));
    origin_unref(self);
}

guint16
eb_test_h2_origin_get_port(EbTestH2Origin *self)
{
    return self->port;
}

static guint
get_locked(EbTestH2Origin *self, const guint *value)
{
    guint n;

    g_mutex_lock(&self->mutex);
    n = *value;
    g_mutex_unlock(&self->mutex);
    return n;
}

guint
eb_test_h2_origin_get_connections(EbTestH2Origin *self)
{
    return get_locked(self, &self->n_connections);
}

guint
eb_test_h2_origin_get_requests(EbTestH2Origin *self)
{
    return get_locked(self, &self->n_requests);
}

void
eb_test_h2_origin_step(EbTestH2Origin *self)
{
    g_mutex_lock(&self->mutex);
    self->n_steps++;
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->mutex);
}

void
eb_test_h2_origin_wait_resets(EbTestH2Origin *self, guint n)
{
    gint64 end = g_get_monotonic_time() + WAIT;

    g_mutex_lock(&self->mutex);
    while (self->n_resets < n && g_cond_wait_until(&self->changed, &self->mutex, end))
        continue;
    g_assert_cmpuint(self->n_resets, >=, n);
    g_mutex_unlock(&self->mutex);
}
