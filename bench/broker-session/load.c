/* SPDX-License-Identifier: MIT */
/*
 * The two ends of the bench: an origin that answers at once, and closed-loop clients, each a thread with blocking
 * sockets, which is what keeps the numbers of all candidates comparable.
 *
 *   load origin PORT
 *   load rate SECONDS CLIENTS MODE ADDRESS [TARGET [HEADER]]
 *
 * MODE: direct (connect, GET, close), connect (connect, CONNECT TARGET, GET, close), post (one connection kept, POST
 * of 2 KiB to TARGET). ADDRESS: unix:PATH or PORT of 127.0.0.1. Prints a line of JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_CLIENTS 256
#define BODY 2048

static const char *mode, *address, *target = "", *header = "X-None: 1";
static atomic_bool stopping;
static atomic_ulong done, failed;

static int
open_socket(void)
{
    int fd;

    if (strncmp(address, "unix:", 5) == 0) {
        struct sockaddr_un unix_address = {.sun_family = AF_UNIX};

        snprintf(unix_address.sun_path, sizeof unix_address.sun_path, "%s", address + 5);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&unix_address, sizeof unix_address) == 0)
            return fd;
    } else {
        struct sockaddr_in inet_address = {.sin_family = AF_INET,
                                           .sin_port = htons((unsigned short)strtoul(address, NULL, 10)),
                                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&inet_address, sizeof inet_address) == 0)
            return fd;
    }
    close(fd);
    return -1;
}

static int
send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return 0;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 1;
}

/* Reads one answer: head, and as much body as Content-Length or the last chunk says. 1 when its status is 200. */
static int
read_answer(int fd, int bodyless)
{
    char buffer[16384];
    size_t have = 0;

    while (have < sizeof buffer - 1) {
        ssize_t got = recv(fd, buffer + have, sizeof buffer - 1 - have, 0);
        char *end, *length;

        if (got <= 0)
            return 0;
        have += (size_t)got;
        buffer[have] = '\0';
        end = strstr(buffer, "\r\n\r\n");
        if (end == NULL)
            continue;
        length = strcasestr(buffer, "\r\nContent-Length:");
        if (bodyless || (length != NULL && have >= (size_t)(end + 4 - buffer) + strtoul(length + 17, NULL, 10)) ||
            (length == NULL && strstr(end, "\r\n0\r\n\r\n") != NULL))
            return strncmp(buffer, "HTTP/1.1 200", 12) == 0;
    }
    return 0;
}

static int
once(int kept)
{
    static const char GET[] = "GET /small HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    int fd = kept >= 0 ? kept : open_socket(), good = fd >= 0;
    char text[BODY + 1024];

    if (good && strcmp(mode, "connect") == 0) {
        snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
        good = send_all(fd, text, strlen(text)) && read_answer(fd, 1);
    }
    if (good && strcmp(mode, "post") == 0) {
        int head = snprintf(text, 1024, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\nContent-Length: %d\r\n\r\n",
                            target, header, BODY);

        memset(text + head, 'x', BODY);
        good = send_all(fd, text, (size_t)head + BODY) && read_answer(fd, 0);
    } else if (good) {
        good = send_all(fd, GET, sizeof GET - 1) && read_answer(fd, 0);
    }
    if (kept < 0 && fd >= 0)
        close(fd);
    return good;
}

static void *
client_run(void *unused)
{
    int kept = strcmp(mode, "post") == 0 ? open_socket() : -1;

    while (!atomic_load(&stopping)) {
        if (once(kept))
            atomic_fetch_add(&done, 1);
        else
            atomic_fetch_add(&failed, 1);
    }
    if (kept >= 0)
        close(kept);
    return NULL;
}

static int
run_rate(double seconds, int clients)
{
    pthread_t threads[MAX_CLIENTS];
    struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, start, end;

    if (clients > MAX_CLIENTS)
        clients = MAX_CLIENTS;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < clients; i++)
        pthread_create(&threads[i], NULL, client_run, NULL);
    nanosleep(&wait, NULL);
    atomic_store(&stopping, 1);
    for (int i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("{\"done\":%lu,\"failed\":%lu,\"seconds\":%.3f}\n", atomic_load(&done), atomic_load(&failed),
           (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
    return 0;
}

/* Answers every head it sees with 200 bytes, or 1 KiB to a POST; bodies are of the size the client above sends. */
static int
run_origin(int port)
{
    struct sockaddr_in inet_address = {
        .sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    char small[512], large[2048];
    int small_length = snprintf(small, sizeof small, "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n%0200d", 0);
    int large_length = snprintf(large, sizeof large, "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n%01024d", 0);
    static size_t bodies[65536];

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&inet_address, sizeof inet_address) != 0 || listen(listener, 4096) != 0) {
        perror("origin");
        return 1;
    }
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    while (1) {
        struct epoll_event events[64];
        int n = epoll_wait(poller, events, 64, -1);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            char buffer[65536];
            ssize_t got;

            if (fd == listener) {
                while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
                    event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
                    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
                    bodies[fd % 65536] = 0;
                }
                continue;
            }
            got = recv(fd, buffer, sizeof buffer - 1, 0);
            if (got <= 0) {
                close(fd);
                continue;
            }
            buffer[got] = '\0';
            if (bodies[fd % 65536] == 0) {
                char *end = strstr(buffer, "\r\n\r\n");

                if (strncmp(buffer, "POST", 4) != 0 || end == NULL) {
                    send(fd, small, (size_t)small_length, MSG_NOSIGNAL);
                    continue;
                }
                bodies[fd % 65536] = BODY + 1;
                got -= end + 4 - buffer;
            }
            bodies[fd % 65536] -= (size_t)got < bodies[fd % 65536] - 1 ? (size_t)got : bodies[fd % 65536] - 1;
            if (bodies[fd % 65536] == 1) {
                bodies[fd % 65536] = 0;
                send(fd, large, (size_t)large_length, MSG_NOSIGNAL);
            }
        }
    }
}

int
main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "origin") == 0)
        return run_origin((int)strtol(argv[2], NULL, 10));
    if (argc < 6 || strcmp(argv[1], "rate") != 0) {
        fprintf(stderr, "usage: load origin PORT | load rate SECONDS CLIENTS MODE ADDRESS [TARGET [HEADER]]\n");
        return 2;
    }
    mode = argv[4];
    address = argv[5];
    target = argc > 6 ? argv[6] : target;
    header = argc > 7 ? argv[7] : header;
    return run_rate(strtod(argv[2], NULL), (int)strtol(argv[3], NULL, 10));
}
