/* SPDX-License-Identifier: MIT */
/*
 * Carries TCP connections of the guest's loopback to the host's unix socket, byte for byte. One thread, one epoll
 * descriptor, edge-triggered; an idle connection costs two descriptors and one slot of a table.
 */
#include "guest/diag.h"
#include "guest/relay-flow.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 4096u
#define EVENTS_AT_ONCE 64
#define ACCEPTS_AT_ONCE 64
/* A broker that is being restarted is waited for: an agent's request made in between just takes longer. */
#define CONNECT_PATIENCE_MS 3000
#define CONNECT_RETRY_MS 20

enum state { STATE_FREE, STATE_CONNECTING, STATE_OPEN, STATE_CLOSED };
enum { CLIENT, BROKER };

struct connection {
    struct flow_end end[2];
    struct connection *next; /* in the one list its state says: free, waiting, or closed in this round */
    enum state state;
    bool again;
    long long give_up_ms;
};

static const char NO_BROKER[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                "Content-Type: text/plain\r\n"
                                "Content-Length: 44\r\n"
                                "Retry-After: 1\r\n"
                                "Connection: close\r\n"
                                "\r\n"
                                "errand-box: this session's broker is gone.\r\n";

static struct connection *table;
static struct connection *free_list;
static struct connection *waiting;
static struct connection *closed;
static size_t n_again;
static size_t n_open;
static size_t n_used; /* slots of the table used so far */
static long long last_retry_ms;
static int epoll = -1;
static int listener = -1;
static bool accepting;
static struct sockaddr_un broker = {.sun_family = AF_UNIX};

static long long
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
set_accepting(bool on)
{
    struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = NULL};

    if (on != accepting && epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &event) == 0)
        accepting = on;
}

static struct connection *
take_slot(void)
{
    struct connection *self = free_list;

    if (self != NULL)
        free_list = self->next;
    else
        self = &table[n_used++];
    *self = (struct connection){.end = {{.fd = -1}, {.fd = -1, .splices = true}}};
    n_open++;
    return self;
}

/* The slot is used again only after the round: an event for it may still be in the batch being worked on. */
static void
close_connection(struct connection *self)
{
    for (int i = 0; i < 2; i++) {
        flow_release(&self->end[i]);
        if (self->end[i].fd >= 0)
            close(self->end[i].fd);
    }
    if (self->again)
        n_again--;
    self->again = false;
    self->state = STATE_CLOSED;
    self->next = closed;
    closed = self;
}

static void
abort_connection(struct connection *self)
{
    const struct linger reset = {.l_onoff = 1};

    /* A cut-off answer must not look like one that ended. */
    setsockopt(self->end[CLIENT].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close_connection(self);
}

static void
recycle_closed(void)
{
    while (closed != NULL) {
        struct connection *self = closed;
        closed = self->next;
        self->state = STATE_FREE;
        self->next = free_list;
        free_list = self;
        n_open--;
        set_accepting(true);
    }
}

/* Which connection and end an event is for: the table is aligned, so the lowest bit is free. */
static void *
tag(struct connection *self, int which)
{
    return (void *)((uintptr_t)self | (uintptr_t)which);
}

static bool
watch(struct connection *self, int which, int operation, bool out)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLRDHUP | EPOLLET | (out ? EPOLLOUT : 0),
        .data.ptr = tag(self, which),
    };
    return epoll_ctl(epoll, operation, self->end[which].fd, &event) == 0;
}

/* Room is watched for only once it was missed: most connections never need it. */
static bool
want_out(struct flow_end *end)
{
    size_t offset = (size_t)((uint8_t *)end - (uint8_t *)table);
    struct connection *self = &table[offset / sizeof *table];

    if (end->want_out)
        return true;
    end->want_out = true;
    return watch(self, end == &self->end[BROKER] ? BROKER : CLIENT, EPOLL_CTL_MOD, true);
}

static void
move(struct connection *self, int from)
{
    enum flow_result result = flow_move(&self->end[from], &self->end[!from], want_out);

    if (result == FLOW_AGAIN && !self->again) {
        self->again = true;
        n_again++;
    } else if (result == FLOW_CLOSE) {
        close_connection(self);
    } else if (result == FLOW_ABORT) {
        abort_connection(self);
    }
}

static void
on_event(struct connection *self, int which, uint32_t events)
{
    struct flow_end *end = &self->end[which];

    if (self->state != STATE_OPEN)
        return;
    if (events & EPOLLERR && which == CLIENT) {
        abort_connection(self); /* the agent reset it: the broker must see that at once */
        return;
    }
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        end->readable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        end->hung_up = true;
    move(self, which);
    if (self->state == STATE_OPEN && events & EPOLLOUT)
        move(self, !which);
}

/* 0: open; otherwise the errno of the attempt. */
static int
try_connect(struct connection *self)
{
    int fd = self->end[BROKER].fd;

    if (fd < 0)
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    self->end[BROKER].fd = fd;
    if (connect(fd, (struct sockaddr *)&broker, sizeof broker) < 0)
        return errno;
    self->state = STATE_OPEN;
    if (!watch(self, CLIENT, EPOLL_CTL_ADD, false) || !watch(self, BROKER, EPOLL_CTL_ADD, false))
        abort_connection(self);
    return 0;
}

static bool
worth_waiting(int failure)
{
    /* EAGAIN: its queue is full. EACCES: it is made, but not opened to us yet. */
    return failure == EAGAIN || failure == ENOENT || failure == ECONNREFUSED || failure == EACCES;
}

static void
answer_no_broker(struct connection *self)
{
    char request[16384];
    int fd = self->end[CLIENT].fd;

    /* Closing with unread bytes would reset the connection and take the answer with it. */
    for (int i = 0; i < 64 && recv(fd, request, sizeof request, MSG_DONTWAIT) > 0; i++)
        continue;
    ssize_t sent = send(fd, NO_BROKER, sizeof NO_BROKER - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
    close_connection(self);
}

static void
retry_waiting(void)
{
    struct connection *list = waiting;
    long long now = now_ms();

    if (now - last_retry_ms < CONNECT_RETRY_MS)
        return;
    last_retry_ms = now;
    waiting = NULL;
    while (list != NULL) {
        struct connection *self = list;
        list = self->next;
        int failure = try_connect(self);
        if (failure == 0)
            continue;
        if (!worth_waiting(failure) || now >= self->give_up_ms) {
            answer_no_broker(self);
        } else {
            self->next = waiting;
            waiting = self;
        }
    }
}

static void
accept_some(void)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        if (free_list == NULL && n_used == MAX_CONNECTIONS) {
            set_accepting(false);
            return;
        }
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            /* Out of descriptors or memory: they come back with a connection that ends. */
            if (n_open > 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                set_accepting(false);
            return;
        }
        struct connection *self = take_slot();
        self->end[CLIENT].fd = fd;
        int failure = try_connect(self);
        if (failure == 0)
            continue;
        if (!worth_waiting(failure)) {
            answer_no_broker(self);
            continue;
        }
        self->state = STATE_CONNECTING;
        self->give_up_ms = now_ms() + CONNECT_PATIENCE_MS;
        self->next = waiting;
        waiting = self;
    }
}

static void
run_again(void)
{
    for (size_t i = 0; i < n_used && n_again > 0; i++) {
        struct connection *self = &table[i];
        if (!self->again)
            continue;
        self->again = false;
        n_again--;
        move(self, CLIENT);
        if (self->state == STATE_OPEN)
            move(self, BROKER);
    }
}

static _Noreturn void
serve(void)
{
    struct epoll_event events[EVENTS_AT_ONCE];

    for (;;) {
        int timeout = n_again > 0 ? 0 : waiting != NULL ? CONNECT_RETRY_MS : -1;
        int count = epoll_wait(epoll, events, EVENTS_AT_ONCE, timeout);
        for (int i = 0; i < count; i++) {
            uintptr_t pointer = (uintptr_t)events[i].data.ptr;
            if (pointer == 0)
                accept_some();
            else
                on_event((struct connection *)(pointer & ~(uintptr_t)1), (int)(pointer & 1), events[i].events);
        }
        if (n_again > 0)
            run_again();
        if (waiting != NULL)
            retry_waiting();
        recycle_closed();
    }
}

/* On a host whose default is BBR the kernel paces these connections by a timer, which is most of what bulk costs;
 * nothing can be congested on a loopback. Accepted sockets inherit it. */
static void
do_not_pace(void)
{
    static const char RENO[] = "reno";

    setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, RENO, sizeof RENO - 1);
}

static void
set_up(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGPIPE, SIG_IGN);
    do_not_pace();
    /* Untouched slots cost no memory. */
    table = mmap(NULL, MAX_CONNECTIONS * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        diag_die("no memory");
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
        diag_die("cannot watch the listening socket: %s", strerror(errno));
    accepting = true;
}

int
main(int argc, char **argv)
{
    diag_set_program("relay");
    if (argc != 5 || strcmp(argv[1], "--listen-fd") != 0 || strcmp(argv[3], "--connect") != 0)
        diag_die("usage: relay --listen-fd N --connect PATH");
    char *end = NULL;
    long number = strtol(argv[2], &end, 10);
    if (*argv[2] == '\0' || *end != '\0' || number < 0 || number > 65535)
        diag_die("%s is no descriptor", argv[2]);
    listener = (int)number;
    if (fcntl(listener, F_SETFL, O_NONBLOCK) < 0)
        diag_die("descriptor %d cannot be listened on: %s", listener, strerror(errno));
    if (strlen(argv[4]) >= sizeof broker.sun_path)
        diag_die("the socket's path is too long");
    memcpy(broker.sun_path, argv[4], strlen(argv[4]) + 1);
    set_up();
    serve();
}
