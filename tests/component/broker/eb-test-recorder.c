/* SPDX-License-Identifier: MIT */
#include "tests/component/broker/eb-test-recorder.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/eb-unix.h"
#include "eb-test-strict-http.h"

#define MAX_PEERS 256
#define WAIT (60 * G_USEC_PER_SEC)

static const char MARK[] = "\x01mark";

typedef struct {
    int fd;          /* (owned) */
    GString *bytes;  /* (owned): since the last take */
    gsize answered;  /* bytes of complete requests that were answered */
    gboolean silent; /* what it sends is not HTTP */
} Peer;

struct _EbTestRecorder {
    int listener; /* (owned) */
    int wake;     /* (owned) */
    guint16 port;
    GThread *thread;
    GMutex mutex;
    GCond changed;
    GPtrArray *peers; /* (element-type Peer) (owned) */
};

static void
peer_free(gpointer data)
{
    Peer *peer = data;

    eb_fd_clear(&peer->fd);
    g_string_free(peer->bytes, TRUE);
    g_free(peer);
}

static void
peer_answer(Peer *peer)
{
    static const char ANSWER[] = "HTTP/1.1 209 Recorded\r\nContent-Length: 2\r\n\r\nok";

    while (!peer->silent && peer->answered < peer->bytes->len) {
        g_auto(EbTestStrictRequest) request = {0};
        const char *why = NULL;
        gssize used =
            eb_test_strict_read(peer->bytes->str + peer->answered, peer->bytes->len - peer->answered, &request, &why);

        if (used == 0)
            return;
        if (used < 0) {
            peer->silent = TRUE;
            return;
        }
        peer->answered += (gsize)used;
        g_assert_cmpint(send(peer->fd, ANSWER, sizeof ANSWER - 1, MSG_NOSIGNAL), ==, sizeof ANSWER - 1);
    }
}

static void
recorder_read(EbTestRecorder *self, Peer *peer)
{
    char buffer[65536];
    ssize_t got = recv(peer->fd, buffer, sizeof buffer, 0);

    g_mutex_lock(&self->mutex);
    if (got > 0) {
        g_string_append_len(peer->bytes, buffer, got);
        peer_answer(peer);
    } else {
        eb_fd_clear(&peer->fd);
    }
    g_cond_broadcast(&self->changed);
    g_mutex_unlock(&self->mutex);
}

static void
recorder_accept(EbTestRecorder *self)
{
    Peer *peer = g_new0(Peer, 1);

    peer->fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC);
    peer->bytes = g_string_new(NULL);
    g_mutex_lock(&self->mutex);
    g_ptr_array_add(self->peers, peer);
    g_mutex_unlock(&self->mutex);
}

static gpointer
recorder_run(gpointer data)
{
    EbTestRecorder *self = data;

    while (TRUE) {
        struct pollfd fds[MAX_PEERS + 2] = {{self->wake, POLLIN, 0}, {self->listener, POLLIN, 0}};
        Peer *peers[MAX_PEERS];
        guint n = 0;

        g_mutex_lock(&self->mutex);
        for (guint i = 0; i < self->peers->len && n < MAX_PEERS; i++) {
            Peer *peer = self->peers->pdata[i];

            if (peer->fd < 0)
                continue;
            peers[n] = peer;
            fds[2 + n++] = (struct pollfd){peer->fd, POLLIN, 0};
        }
        g_mutex_unlock(&self->mutex);
        if (poll(fds, 2 + n, -1) < 0)
            continue;
        if (fds[0].revents != 0)
            return NULL;
        for (guint i = 0; i < n; i++) {
            if (fds[2 + i].revents != 0)
                recorder_read(self, peers[i]);
        }
        if (fds[1].revents != 0)
            recorder_accept(self);
    }
}

EbTestRecorder *
eb_test_recorder_new(void)
{
    EbTestRecorder *self = g_new0(EbTestRecorder, 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(self->listener, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(self->listener, 128), ==, 0);
    g_assert_cmpint(getsockname(self->listener, (struct sockaddr *)&address, &length), ==, 0);
    self->port = ntohs(address.sin_port);
    self->wake = eventfd(0, EFD_CLOEXEC);
    self->peers = g_ptr_array_new_with_free_func(peer_free);
    g_mutex_init(&self->mutex);
    g_cond_init(&self->changed);
    self->thread = g_thread_new("recorder", recorder_run, self);
    return self;
}

void
eb_test_recorder_free(EbTestRecorder *self)
{
    const guint64 one = 1;

    g_assert_cmpint(write(self->wake, &one, sizeof one), ==, sizeof one);
    g_thread_join(self->thread);
    g_ptr_array_unref(self->peers);
    g_mutex_clear(&self->mutex);
    g_cond_clear(&self->changed);
    eb_fd_clear(&self->listener);
    eb_fd_clear(&self->wake);
    g_free(self);
}

guint16
eb_test_recorder_get_port(EbTestRecorder *self)
{
    return self->port;
}

static void
free_text(gpointer data)
{
    g_string_free(data, TRUE);
}

/*
 * A connection of our own behind those of the broker: once its end was read, so was what others had sent before it.
 */
static void
recorder_put_mark(EbTestRecorder *self)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(self->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(connect(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(send(fd, MARK, sizeof MARK, MSG_NOSIGNAL), ==, sizeof MARK);
    close(fd);
}

static gboolean
peer_is_mark(const Peer *peer)
{
    return peer->bytes->len == sizeof MARK && memcmp(peer->bytes->str, MARK, sizeof MARK) == 0;
}

static gboolean
recorder_is_busy(EbTestRecorder *self)
{
    gboolean marked = FALSE;

    for (guint i = 0; i < self->peers->len; i++) {
        const Peer *peer = self->peers->pdata[i];

        if (peer->fd >= 0 && peer->answered < peer->bytes->len)
            return TRUE;
        marked = marked || (peer->fd < 0 && peer_is_mark(peer));
    }
    return !marked;
}

GPtrArray *
eb_test_recorder_take(EbTestRecorder *self)
{
    GPtrArray *taken = g_ptr_array_new_with_free_func(free_text);
    gint64 end = g_get_monotonic_time() + WAIT;

    recorder_put_mark(self);
    g_mutex_lock(&self->mutex);
    while (recorder_is_busy(self)) {
        if (!g_cond_wait_until(&self->changed, &self->mutex, end))
            g_error("a request that was never completed keeps its connection open");
    }
    for (guint i = self->peers->len; i-- > 0;) {
        Peer *peer = self->peers->pdata[i];

        if (peer->bytes->len > 0 && !peer_is_mark(peer))
            g_ptr_array_add(taken, g_string_new_len(peer->bytes->str, (gssize)peer->bytes->len));
        g_string_truncate(peer->bytes, 0);
        peer->answered = 0;
        peer->silent = FALSE;
        if (peer->fd < 0)
            g_ptr_array_remove_index(self->peers, i);
    }
    g_mutex_unlock(&self->mutex);
    return taken;
}
