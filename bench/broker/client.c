/* SPDX-License-Identifier: MIT */
/*
 * The client of the bench: one thread, one epoll descriptor, closed loop. It is the same for every proxy, so that what
 * differs between two rows is the proxy.
 *
 *   broker-client CASE ADDRESS PATH CLIENTS SECONDS [connect=HOST:PORT] [header=LINE]... [post=BODY] [upload=BYTES]
 *
 * CASE: new (a connection for each request), kept (request after request on one), events (one stream each, ages of its
 * events), idle (opens all with one request each, says so, holds them until stdin ends). ADDRESS: unix:PATH, or a port
 * of 127.0.0.1. With connect= every connection begins with that CONNECT. Prints a line of JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_CLIENTS 4096
#define MAX_SAMPLES (4u << 20)
#define BLOCK (256 * 1024)
#define HEAD 4096

enum state { CLOSED, CONNECTING, TUNNEL, HEAD_DUE, BODY_DUE, RESTING };

struct conn {
    int fd;
    enum state state;
    bool watching_out;
    bool seen_event;
    const char *out;
    size_t out_left;
    long long upload_left;
    size_t n_head;
    long long body_left; /* -1: chunked */
    char head[HEAD];
    char tail[64];
    size_t n_tail;
    long long started;
};

static const char *kind, *address;
static char connect_text[1024], *request_text;
static size_t connect_length, request_length;
static long long upload, end_at;
static char block[BLOCK];
static struct conn *conns;
static int n_clients, poller, n_running, n_resting;
static unsigned long done, failed;
static unsigned long long bytes;
static unsigned *samples, *firsts;
static size_t n_samples, n_firsts;

static long long
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void
add_sample(unsigned *list, size_t *n, long long ns)
{
    if (*n < MAX_SAMPLES)
        list[(*n)++] = (unsigned)(ns < 0 ? 0 : ns > 4000000000ll ? 4000000000u : ns);
}

/* --- one connection --- */

static void conn_begin(struct conn *self);

static void
conn_close(struct conn *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    self->state = CLOSED;
}

static void
conn_fail(struct conn *self)
{
    failed++;
    n_running--;
    conn_close(self);
    if (strcmp(kind, "events") != 0 && strcmp(kind, "idle") != 0 && now_ns() < end_at && failed < 2000)
        conn_begin(self);
}

static void
conn_watch(struct conn *self, bool out)
{
    struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = self};

    if (out != self->watching_out)
        epoll_ctl(poller, EPOLL_CTL_MOD, self->fd, &event);
    self->watching_out = out;
}

static void
conn_push(struct conn *self)
{
    while (self->out_left > 0 || self->upload_left > 0) {
        bool text = self->out_left > 0;
        size_t most = text ? self->out_left : self->upload_left < BLOCK ? (size_t)self->upload_left : BLOCK;
        ssize_t sent = send(self->fd, text ? self->out : block, most, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EAGAIN) {
            conn_watch(self, true);
            return;
        }
        if (sent <= 0) {
            conn_fail(self);
            return;
        }
        if (text) {
            self->out += sent;
            self->out_left -= (size_t)sent;
        } else {
            self->upload_left -= sent;
            bytes += (unsigned long long)sent;
        }
    }
    conn_watch(self, false);
}

static void
conn_send_request(struct conn *self)
{
    self->state = HEAD_DUE;
    self->n_head = self->n_tail = 0;
    self->out = request_text;
    self->out_left = request_length;
    self->upload_left = upload;
    conn_push(self);
}

static void
conn_opened(struct conn *self)
{
    if (connect_length == 0) {
        conn_send_request(self);
        return;
    }
    self->state = TUNNEL;
    self->out = connect_text;
    self->out_left = connect_length;
    conn_push(self);
}

static int
conn_connect(struct conn *self)
{
    if (strncmp(address, "unix:", 5) == 0) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};

        snprintf(name.sun_path, sizeof name.sun_path, "%s", address + 5);
        self->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return connect(self->fd, (struct sockaddr *)&name, sizeof name);
    }
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((unsigned short)strtoul(address, NULL, 10)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    self->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(self->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connect(self->fd, (struct sockaddr *)&name, sizeof name);
}

static void
conn_begin(struct conn *self)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = self};
    int tries = 0;

    memset(self, 0, offsetof(struct conn, head));
    self->started = now_ns();
    n_running++;
    /* A full queue of a unix socket refuses instead of waiting: the client waits in its place. */
    while (conn_connect(self) != 0 && errno != EINPROGRESS) {
        close(self->fd);
        self->fd = -1;
        if (errno != EAGAIN || ++tries > 2000) {
            failed++;
            n_running--;
            self->state = CLOSED;
            return;
        }
        usleep(500);
    }
    if (errno == EINPROGRESS && strncmp(address, "unix:", 5) != 0) {
        self->state = CONNECTING;
        self->watching_out = true;
        event.events |= EPOLLOUT;
    }
    epoll_ctl(poller, EPOLL_CTL_ADD, self->fd, &event);
    if (self->state != CONNECTING)
        conn_opened(self);
}

static void
conn_finish(struct conn *self)
{
    bool again = now_ns() < end_at;

    done++;
    add_sample(samples, &n_samples, now_ns() - self->started);
    if (strcmp(kind, "idle") == 0) {
        self->state = RESTING;
        n_running--;
        n_resting++;
        return;
    }
    if (strcmp(kind, "kept") == 0 && again) {
        self->started = now_ns();
        conn_send_request(self);
        return;
    }
    n_running--;
    conn_close(self);
    if (again && strcmp(kind, "new") == 0)
        conn_begin(self);
}

/* --- what comes back --- */

/* Events carry the time they were sent at: data: {"t":NANOSECONDS, with all of its digits. */
static void
read_events(struct conn *self, const char *text, size_t length)
{
    static char joined[BLOCK + 64];
    const char *at, *mark;
    size_t have = self->n_tail + length;

    memcpy(joined, self->tail, self->n_tail);
    memcpy(joined + self->n_tail, text, length);
    for (at = joined; (mark = memmem(at, (size_t)(joined + have - at), "{\"t\":", 5)) != NULL; at = mark + 24) {
        if (joined + have - mark < 24)
            break;
        long long age = now_ns() - strtoll(mark + 5, NULL, 10);
        add_sample(samples, &n_samples, age);
        if (!self->seen_event)
            add_sample(firsts, &n_firsts, age);
        self->seen_event = true;
    }
    if (mark == NULL)
        mark = joined + have - (joined + have - at < 4 ? joined + have - at : 4);
    self->n_tail = (size_t)(joined + have - mark);
    memcpy(self->tail, mark, self->n_tail);
}

static void
read_body(struct conn *self, const char *text, size_t length)
{
    bool chunked = self->body_left < 0, over = false;

    bytes += length;
    if (strcmp(kind, "events") == 0)
        read_events(self, text, length);
    if (!chunked) {
        self->body_left -= (long long)length;
        over = self->body_left <= 0;
    } else if (length > 0) {
        /* The head is not needed any more and keeps the end of the body. */
        size_t keep = length < 7 ? length : 7, room = 7 - keep;

        room = room < self->n_head ? room : self->n_head;
        memmove(self->head, self->head + self->n_head - room, room);
        memcpy(self->head + room, text + length - keep, keep);
        self->n_head = room + keep;
        over = self->n_head == 7 && memcmp(self->head, "\r\n0\r\n\r\n", 7) == 0;
    }
    if (!over)
        return;
    if (strcmp(kind, "events") == 0) {
        done++;
        n_running--;
        conn_close(self);
    } else {
        conn_finish(self);
    }
}

static void
read_head(struct conn *self, const char *text, size_t length)
{
    size_t take = length < HEAD - 1 - self->n_head ? length : HEAD - 1 - self->n_head;
    size_t before = self->n_head;
    char *end, *field;

    memcpy(self->head + self->n_head, text, take);
    self->n_head += take;
    self->head[self->n_head] = '\0';
    end = strstr(self->head, "\r\n\r\n");
    if (end == NULL) {
        if (self->n_head == HEAD - 1)
            conn_fail(self);
        return;
    }
    if (strncmp(self->head + 8, " 200", 4) != 0) {
        if (failed == 0)
            fprintf(stderr, "%.*s\n", (int)(end - self->head), self->head);
        conn_fail(self);
        return;
    }
    if (self->state == TUNNEL) {
        conn_send_request(self);
        return;
    }
    self->state = BODY_DUE;
    end[2] = '\0';
    field = strcasestr(self->head, "\r\ncontent-length:");
    self->body_left = field != NULL ? strtoll(field + 17, NULL, 10) : -1;
    take = (size_t)(end + 4 - self->head) - before;
    self->n_head = 0;
    read_body(self, text + take, length - take);
}

static void
conn_readable(struct conn *self)
{
    static char buffer[BLOCK];
    ssize_t got = recv(self->fd, buffer, sizeof buffer, MSG_DONTWAIT);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        if (self->state == RESTING)
            n_resting--;
        if (self->state == RESTING)
            conn_close(self);
        else
            conn_fail(self);
        return;
    }
    if (self->state == BODY_DUE)
        read_body(self, buffer, (size_t)got);
    else
        read_head(self, buffer, (size_t)got);
}

static void
conn_event(struct conn *self, unsigned events)
{
    if (self->state == CLOSED)
        return;
    if (self->state == CONNECTING && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        int failure = 0;
        socklen_t size = sizeof failure;

        getsockopt(self->fd, SOL_SOCKET, SO_ERROR, &failure, &size);
        if (failure != 0)
            conn_fail(self);
        else
            conn_opened(self);
        return;
    }
    if ((events & EPOLLOUT) != 0)
        conn_push(self);
    if (self->state != CLOSED && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        conn_readable(self);
}

/* --- the whole --- */

static int
compare(const void *a, const void *b)
{
    unsigned first = *(const unsigned *)a, second = *(const unsigned *)b;

    return first < second ? -1 : first > second;
}

static double
percentile(unsigned *list, size_t n, double part)
{
    return n > 0 ? list[(size_t)((double)(n - 1) * part)] / 1e3 : 0;
}

static void
turn(int timeout_ms)
{
    struct epoll_event events[256];
    int n = epoll_wait(poller, events, 256, timeout_ms);

    for (int i = 0; i < n; i++)
        conn_event(events[i].data.ptr, events[i].events);
}

static void
hold_idle(void)
{
    char nothing[16];

    printf("{\"idle\":%d,\"failed\":%lu}\n", n_resting, failed);
    fflush(stdout);
    while (read(0, nothing, sizeof nothing) > 0)
        continue;
    turn(0);
    printf("{\"still_open\":%d}\n", n_resting);
}

static void
run_all(double seconds)
{
    long long start = now_ns(), stop;
    bool idle = strcmp(kind, "idle") == 0;
    int begun = 0;

    end_at = start + (long long)(seconds * 1e9);
    /* What has not ended by then, ends: a proxy that loses requests must not hold the bench. */
    stop = end_at + 5000000000ll;
    while (begun < n_clients || (n_running > 0 && now_ns() < stop)) {
        while (begun < n_clients && (!idle || n_running < 32))
            conn_begin(&conns[begun++]);
        turn(100);
        if (idle && now_ns() > stop)
            break;
        /* Bytes are counted as they pass, so the long bodies need not be waited for. */
        if (strcmp(kind, "kept") == 0 && now_ns() > end_at && bytes > 64u << 20) {
            n_running = 0;
            break;
        }
    }
    if (idle) {
        hold_idle();
        return;
    }
    qsort(samples, n_samples, sizeof *samples, compare);
    qsort(firsts, n_firsts, sizeof *firsts, compare);
    printf("{\"done\":%lu,\"failed\":%lu,\"seconds\":%.4f,\"bytes\":%llu,\"samples\":%zu,\"p50_us\":%.1f,"
           "\"p99_us\":%.1f,\"max_us\":%.1f,\"first_p50_us\":%.1f,\"first_max_us\":%.1f}\n",
           done, failed + (unsigned long)n_running, (double)(now_ns() - start) / 1e9, bytes, n_samples,
           percentile(samples, n_samples, 0.5), percentile(samples, n_samples, 0.99), percentile(samples, n_samples, 1),
           percentile(firsts, n_firsts, 0.5), percentile(firsts, n_firsts, 1));
}

static void
make_request(const char *path, int argc, char **argv)
{
    const char *body = NULL, *host = "localhost";
    FILE *text;

    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "connect=", 8) == 0)
            host = argv[i] + 8;
        else if (strncmp(argv[i], "post=", 5) == 0)
            body = argv[i] + 5;
        else if (strncmp(argv[i], "upload=", 7) == 0)
            upload = strtoll(argv[i] + 7, NULL, 10);
    }
    if (strcmp(host, "localhost") != 0)
        connect_length =
            (size_t)snprintf(connect_text, sizeof connect_text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host);
    text = open_memstream(&request_text, &request_length);
    fprintf(text, "%s %s HTTP/1.1\r\nHost: %s\r\n", body != NULL || upload > 0 ? "POST" : "GET", path, host);
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "header=", 7) == 0)
            fprintf(text, "%s\r\n", argv[i] + 7);
    }
    if (body != NULL || upload > 0)
        fprintf(text, "Content-Type: application/json\r\nContent-Length: %lld\r\n",
                upload > 0 ? upload : (long long)strlen(body));
    fprintf(text, "\r\n%s", upload == 0 && body != NULL ? body : "");
    fclose(text);
}

int
main(int argc, char **argv)
{
    struct rlimit files;

    if (argc < 6) {
        fprintf(stderr, "usage: broker-client CASE ADDRESS PATH CLIENTS SECONDS [OPTION]...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    kind = argv[1];
    address = argv[2];
    n_clients = (int)strtol(argv[4], NULL, 10);
    if (n_clients < 1 || n_clients > MAX_CLIENTS)
        return 2;
    make_request(argv[3], argc - 6, argv + 6);
    conns = calloc((size_t)n_clients, sizeof *conns);
    samples = malloc(MAX_SAMPLES * sizeof *samples);
    firsts = malloc(MAX_SAMPLES * sizeof *firsts);
    poller = epoll_create1(EPOLL_CLOEXEC);
    run_all(strtod(argv[5], NULL));
    return 0;
}
