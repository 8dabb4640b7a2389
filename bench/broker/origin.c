/* SPDX-License-Identifier: MIT */
/*
 * The origin of the bench: one thread, one epoll descriptor, answers at once.
 *
 *   broker-origin PORT UNIX-PATH TLS-PORT CERTIFICATE KEY API-KEY
 *
 * GET /small 200 bytes, GET /bytes/N that many; a POST is read to its end and answered with 1 KiB of JSON as a model
 * provider would, but for those with API-KEY in a header alone, so that a proxy which forgot to put the key on shows
 * errors and no figures. A POST to /upload needs no key. A body with "events=N every=US" is answered with N events, one
 * each US microseconds, each with the time it was sent at. Streams are apart: the second event of each comes after a part
 * of the interval that differs from stream to stream, so that their events are spread over it evenly whoever the proxy is
 * and however fast it was to begin them. With " together" behind it all streams send at the same instants.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define INPUT 16384
#define BLOCK (256 * 1024)

struct conn {
    int fd;
    bool listens;
    bool encrypts; /* a listener whose connections speak TLS */
    bool watching_out;
    bool closed;
    SSL *tls;
    size_t n_in;
    char *in;
    long long body_left;  /* of the request being read */
    long long block_left; /* of the answer being sent */
    long long n_events, every_ns, due_ns;
    struct conn *next; /* waiting for its next event, or closed in this round */
};

static const char *api_key;
static char block[BLOCK], small_answer[512], model_answer[2048];
static int small_length, model_length, poller, timer;
static SSL_CTX *tls;
static struct conn *first_due, *last_due, *closed;
static unsigned long long n_streams;

static long long
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static ssize_t
conn_read(struct conn *self, char *buffer, size_t size)
{
    int got, why;

    if (self->tls == NULL)
        return recv(self->fd, buffer, size, MSG_DONTWAIT);
    got = SSL_read(self->tls, buffer, (int)size);
    if (got > 0)
        return got;
    why = SSL_get_error(self->tls, got);
    errno = EAGAIN;
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -1 : 0;
}

static ssize_t
conn_write(struct conn *self, const char *bytes, size_t length)
{
    int sent;

    if (self->tls == NULL)
        return send(self->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    sent = SSL_write(self->tls, bytes, (int)length);
    return sent;
}

static void
conn_close(struct conn *self)
{
    if (self->closed)
        return;
    self->closed = true;
    if (self->tls != NULL)
        SSL_free(self->tls);
    close(self->fd);
    free(self->in);
    self->in = NULL;
    /* One that waits for an event is found there when its time comes. */
    if (self->n_events == 0) {
        self->next = closed;
        closed = self;
    }
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
conn_pour(struct conn *self)
{
    while (self->block_left > 0) {
        ssize_t sent = conn_write(self, block, self->block_left < BLOCK ? (size_t)self->block_left : BLOCK);

        if (sent <= 0) {
            if (errno == EAGAIN)
                conn_watch(self, true);
            else
                conn_close(self);
            return;
        }
        self->block_left -= sent;
    }
    conn_watch(self, false);
}

/* --- events --- */

static void
arm_timer(void)
{
    struct itimerspec when = {{0, 0}, {0, 0}};

    if (first_due != NULL) {
        when.it_value.tv_sec = first_due->due_ns / 1000000000;
        when.it_value.tv_nsec = first_due->due_ns % 1000000000;
    }
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* All streams of a run have the same interval, so who had its event just now is due last; a new one may be due before. */
static void
conn_await(struct conn *self)
{
    struct conn **at = &first_due;

    if (first_due != NULL && last_due->due_ns <= self->due_ns)
        at = &last_due->next;
    while (*at != NULL && (*at)->due_ns <= self->due_ns)
        at = &(*at)->next;
    self->next = *at;
    *at = self;
    if (self->next == NULL)
        last_due = self;
}

/* When the second event of a stream is due. Steps of the golden section fill the interval evenly at any number. */
static long long
second_due(const struct conn *self, bool together)
{
    long long now = now_ns();
    double part = (double)++n_streams * 0.6180339887498949;

    if (together)
        return (now / self->every_ns + 1) * self->every_ns;
    return now + (long long)((part - (double)(unsigned long long)part) * (double)self->every_ns);
}

static void
conn_send_event(struct conn *self)
{
    char text[256], chunk[320];
    int length = snprintf(text, sizeof text,
                          "data: {\"t\":%019lld,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%040d\"}}]}\n\n",
                          now_ns(), 0);
    int whole = snprintf(chunk, sizeof chunk, "%x\r\n%s\r\n%s", length, text, self->n_events == 1 ? "0\r\n\r\n" : "");

    self->n_events--;
    if (conn_write(self, chunk, (size_t)whole) != whole)
        conn_close(self);
}

static void
run_due(void)
{
    unsigned long long ticks;
    ssize_t got = read(timer, &ticks, sizeof ticks);
    long long now = now_ns();

    (void)got;
    while (first_due != NULL && first_due->due_ns <= now) {
        struct conn *self = first_due;

        first_due = self->next;
        if (self->closed) {
            self->next = closed;
            closed = self;
            continue;
        }
        self->due_ns += self->every_ns;
        conn_send_event(self);
        if (!self->closed && self->n_events > 0) {
            conn_await(self);
        } else if (self->closed && self->n_events > 0) {
            self->next = closed;
            closed = self;
        }
    }
    arm_timer();
}

static void
conn_start_events(struct conn *self, const char *order)
{
    static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    char *rest;

    self->n_events = strtoll(order + 7, &rest, 10);
    self->every_ns = strtoll(strstr(rest, "every=") + 6, &rest, 10) * 1000;
    conn_write(self, HEAD, sizeof HEAD - 1);
    conn_send_event(self);
    if (self->closed || self->n_events <= 0)
        return;
    self->due_ns = second_due(self, strncmp(rest, " together", 9) == 0);
    conn_await(self);
    arm_timer();
}

/* --- requests --- */

static void
conn_answer(struct conn *self, const char *body)
{
    static const char NO_KEY[] = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    char *number;

    if (strncmp(self->in, "GET /bytes/", 11) == 0) {
        char head[128];
        int length;

        self->block_left = strtoll(self->in + 11, NULL, 10);
        length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n", self->block_left);
        conn_write(self, head, (size_t)length);
        conn_pour(self);
    } else if (strncmp(self->in, "POST /upload ", 13) == 0 || strncmp(self->in, "POST ", 5) != 0) {
        conn_write(self, small_answer, (size_t)small_length);
    } else if (strstr(self->in, api_key) == NULL) {
        conn_write(self, NO_KEY, sizeof NO_KEY - 1);
    } else if ((number = strstr(body, "events=")) != NULL) {
        conn_start_events(self, number);
    } else {
        conn_write(self, model_answer, (size_t)model_length);
    }
}

/* FALSE when more has to arrive. A body that does not fit is let pass and counted. */
static bool
conn_take_request(struct conn *self)
{
    char *end = strstr(self->in, "\r\n\r\n"), *field;
    size_t head, have;
    long long length;

    if (end == NULL)
        return false;
    *end = '\0';
    field = strcasestr(self->in, "\r\ncontent-length:");
    *end = '\r';
    length = field != NULL ? strtoll(field + 17, NULL, 10) : 0;
    head = (size_t)(end + 4 - self->in);
    have = self->n_in - head;
    if ((long long)have < length && (long long)head + length < INPUT)
        return false;
    if ((long long)have < length) {
        self->body_left = length - (long long)have;
        self->n_in = head;
        return true;
    }
    conn_answer(self, end + 4);
    if (self->closed)
        return false;
    self->n_in -= head + (size_t)length;
    memmove(self->in, self->in + head + (size_t)length, self->n_in + 1);
    return true;
}

static void
conn_readable(struct conn *self)
{
    static char discarded[BLOCK];
    bool large = self->body_left > 0;
    ssize_t got =
        large ? conn_read(self, discarded, BLOCK) : conn_read(self, self->in + self->n_in, INPUT - 1 - self->n_in);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        conn_close(self);
        return;
    }
    if (large) {
        self->body_left -= got;
        if (self->body_left <= 0) {
            conn_answer(self, "");
            self->n_in = 0;
        }
        return;
    }
    self->n_in += (size_t)got;
    self->in[self->n_in] = '\0';
    while (self->body_left <= 0 && conn_take_request(self))
        continue;
    /* What TLS has decrypted already makes no descriptor readable. */
    if (!self->closed && self->tls != NULL && SSL_pending(self->tls) > 0)
        conn_readable(self);
}

/* --- listening --- */

static void
conn_new(struct conn *listener, int fd)
{
    struct conn *self = calloc(1, sizeof *self);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = self};
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    self->fd = fd;
    self->in = malloc(INPUT);
    self->in[0] = '\0';
    if (listener->encrypts) {
        self->tls = SSL_new(tls);
        SSL_set_fd(self->tls, fd);
        SSL_set_accept_state(self->tls);
    }
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void
listen_on(int family, struct sockaddr *name, socklen_t length, bool encrypts)
{
    struct conn *self = calloc(1, sizeof *self);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = self};
    int on = 1;

    self->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    self->listens = true;
    self->encrypts = encrypts;
    setsockopt(self->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(self->fd, name, length) != 0 || listen(self->fd, 4096) != 0) {
        perror("origin");
        exit(1);
    }
    epoll_ctl(poller, EPOLL_CTL_ADD, self->fd, &event);
}

static void
listen_on_port(const char *port, bool encrypts)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((unsigned short)strtoul(port, NULL, 10)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    listen_on(AF_INET, (struct sockaddr *)&name, sizeof name, encrypts);
}

static void
serve(void)
{
    struct epoll_event events[128];

    for (;;) {
        int n = epoll_wait(poller, events, 128, -1);

        for (int i = 0; i < n; i++) {
            struct conn *self = events[i].data.ptr;
            int fd;

            if (self == NULL) {
                run_due();
            } else if (self->listens) {
                while ((fd = accept4(self->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
                    conn_new(self, fd);
            } else {
                if (!self->closed && (events[i].events & EPOLLOUT) != 0)
                    conn_pour(self);
                if (!self->closed && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
                    conn_readable(self);
            }
        }
        while (closed != NULL) {
            struct conn *self = closed;

            closed = self->next;
            free(self);
        }
    }
}

static void
make_answers(void)
{
    char json[1200];
    int length =
        snprintf(json, sizeof json,
                 "{\"id\":\"bench\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"bench\",\"choices\":"
                 "[{\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":"
                 "\"%0800d\"}}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":30}}",
                 0);

    small_length =
        snprintf(small_answer, sizeof small_answer, "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n%0200d", 0);
    model_length =
        snprintf(model_answer, sizeof model_answer,
                 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, json);
}

int
main(int argc, char **argv)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    struct rlimit files;

    if (argc != 7) {
        fprintf(stderr, "usage: broker-origin PORT UNIX-PATH TLS-PORT CERTIFICATE KEY API-KEY\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    api_key = argv[6];
    make_answers();
    tls = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_file(tls, argv[4], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, argv[5], SSL_FILETYPE_PEM) != 1) {
        fprintf(stderr, "origin: the certificate cannot be used\n");
        return 1;
    }
    poller = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    listen_on_port(argv[1], false);
    listen_on_port(argv[3], true);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", argv[2]);
    unlink(name.sun_path);
    listen_on(AF_UNIX, (struct sockaddr *)&name, sizeof name, false);
    serve();
}
