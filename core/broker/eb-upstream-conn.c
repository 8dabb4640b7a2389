/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-upstream-conn.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>

/* --- the socket below TLS: it knows what epoll said, which spares the read that would only say "nothing more" --- */

static ssize_t
socket_read(EbUpstreamConn *self, char *buffer, gsize size)
{
    ssize_t got;

    if (!self->readable) {
        errno = EAGAIN;
        return -1;
    }
    do
        got = recv(self->watch.fd, buffer, size, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        self->readable = FALSE;
    else if (got > 0 && (gsize)got < size && !self->ended)
        self->readable = FALSE;
    return got;
}

static ssize_t
socket_write(EbUpstreamConn *self, const char *bytes, gsize length)
{
    ssize_t sent;

    do
        sent = send(self->watch.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN)
        self->writable = FALSE;
    return sent;
}

static int
bio_read(BIO *bio, char *buffer, int size)
{
    ssize_t got = socket_read(BIO_get_data(bio), buffer, (gsize)size);

    BIO_clear_retry_flags(bio);
    if (got < 0 && errno == EAGAIN)
        BIO_set_retry_read(bio);
    return (int)got;
}

static int
bio_write(BIO *bio, const char *bytes, int length)
{
    ssize_t sent = socket_write(BIO_get_data(bio), bytes, (gsize)length);

    BIO_clear_retry_flags(bio);
    if (sent < 0 && errno == EAGAIN)
        BIO_set_retry_write(bio);
    return (int)sent;
}

static long
bio_control(BIO *bio, int command, long number, void *pointer)
{
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *
bio_method(void)
{
    static BIO_METHOD *method;

    if (method == NULL) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "eb-upstream");
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_control);
    }
    return method;
}

/* --- life --- */

static void
conn_ready(EbWatch *watch, guint32 events)
{
    EbUpstreamConn *self = watch->data;

    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        self->readable = TRUE;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        self->ended = TRUE;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        self->writable = TRUE;
    self->ready(self, self->owner);
}

EbUpstreamConn *
eb_upstream_conn_new(EbBroker *broker, int fd, SSL *ssl, EbUpstreamReady ready, gpointer owner)
{
    EbUpstreamConn *self = g_new0(EbUpstreamConn, 1);

    self->broker = broker;
    self->ssl = ssl;
    self->ready = ready;
    self->owner = owner;
    self->readable = self->writable = TRUE;
    self->link.data = self;
    if (ssl != NULL) {
        BIO *bio = BIO_new(bio_method());

        BIO_set_data(bio, self);
        BIO_set_init(bio, 1);
        SSL_set_bio(ssl, bio, bio);
    }
    /* It fails for want of memory in the kernel alone; then nothing ever happens here and the deadlines end it. */
    eb_poller_add(broker->poller, &self->watch, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, conn_ready, self);
    return self;
}

void
eb_upstream_conn_free(EbUpstreamConn *self)
{
    if (self == NULL)
        return;
    if (self->ssl != NULL && SSL_is_init_finished(self->ssl) && !self->ended) {
        SSL_shutdown(self->ssl);
        ERR_clear_error();
    }
    g_clear_pointer(&self->ssl, SSL_free);
    eb_poller_close(self->broker->poller, &self->watch);
    g_free(self);
}

void
eb_upstream_conn_set_owner(EbUpstreamConn *self, EbUpstreamReady ready, gpointer owner)
{
    self->ready = ready;
    self->owner = owner;
}

gboolean
eb_upstream_conn_rest(EbUpstreamConn *self)
{
    gboolean rested = self->resting;

    if (self->ssl != NULL)
        SSL_free_buffers(self->ssl);
    self->resting = TRUE;
    return !rested;
}

/* --- bytes --- */

static EbUpstreamResult
result_of(EbUpstreamConn *self, int returned)
{
    switch (SSL_get_error(self->ssl, returned)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return EB_UPSTREAM_WAIT;
    case SSL_ERROR_ZERO_RETURN:
        return EB_UPSTREAM_END;
    default:
        self->ended = TRUE;
        return EB_UPSTREAM_BROKEN;
    }
}

EbUpstreamResult
eb_upstream_conn_handshake(EbUpstreamConn *self)
{
    int returned;

    if (self->ssl == NULL)
        return EB_UPSTREAM_OK;
    ERR_clear_error();
    returned = SSL_do_handshake(self->ssl);
    return returned == 1 ? EB_UPSTREAM_OK : result_of(self, returned);
}

static EbUpstreamResult
read_plain(EbUpstreamConn *self, char *buffer, gsize size, gsize *n_read)
{
    ssize_t got = socket_read(self, buffer, size);

    if (got > 0) {
        *n_read = (gsize)got;
        return EB_UPSTREAM_OK;
    }
    if (got < 0 && errno == EAGAIN)
        return EB_UPSTREAM_WAIT;
    self->ended = TRUE;
    return got == 0 ? EB_UPSTREAM_END : EB_UPSTREAM_BROKEN;
}

EbUpstreamResult
eb_upstream_conn_read(EbUpstreamConn *self, char *buffer, gsize size, gsize *n_read)
{
    *n_read = 0;
    if (self->ssl == NULL)
        return read_plain(self, buffer, size, n_read);
    ERR_clear_error();
    while (*n_read < size) {
        int got = SSL_read(self->ssl, buffer + *n_read, (int)(size - *n_read));

        if (got <= 0) {
            EbUpstreamResult result = result_of(self, got);

            return result == EB_UPSTREAM_WAIT && *n_read > 0 ? EB_UPSTREAM_OK : result;
        }
        *n_read += (gsize)got;
    }
    return EB_UPSTREAM_OK;
}

EbUpstreamResult
eb_upstream_conn_write(EbUpstreamConn *self, const char *bytes, gsize length, gsize *n_written)
{
    *n_written = 0;
    if (self->ssl != NULL)
        ERR_clear_error();
    while (*n_written < length) {
        ssize_t sent;

        if (self->ssl != NULL) {
            int returned = SSL_write(self->ssl, bytes + *n_written, (int)(length - *n_written));

            if (returned <= 0)
                return result_of(self, returned);
            sent = returned;
        } else {
            sent = socket_write(self, bytes + *n_written, length - *n_written);
            if (sent < 0)
                return errno == EAGAIN ? EB_UPSTREAM_WAIT : EB_UPSTREAM_BROKEN;
        }
        *n_written += (gsize)sent;
    }
    return EB_UPSTREAM_OK;
}
