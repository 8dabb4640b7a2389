/* SPDX-License-Identifier: MIT */
/* The relay itself, on this host's loopback: TCP on one side, a unix socket of the test on the other. */
#include "eb-test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BULK (24u * 1024 * 1024)

typedef struct {
    pid_t relay;
    guint16 port;
    char *dir;
    char *path;
    int broker; /* listening; -1: none */
} Fixture;

static int
listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(fd, 1024), ==, 0);
    return fd;
}

/* A broker, and a relay whose account has all the pages in pipes that it may have. */
static const char NO_PIPES[] = "no pipes";

/* An account that nobody else has pipes of. */
#define OTHER_UID 61235

/* In the relay's process, as root: afterwards the kernel gives it tiny pipes alone. */
static void
use_up_pipes(void)
{
    /* What counts is the real account. With either right there is no bound; an exec as root takes what this set has. */
    if (setresuid(OTHER_UID, (uid_t)-1, (uid_t)-1) != 0 || prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0) != 0 ||
        prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) != 0)
        _exit(1);
    for (int i = 0, ends[2]; i < 200 && pipe(ends) == 0; i++)
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
}

/* Descriptors of the relay that are pipes. */
static guint
count_pipes(Fixture *fixture)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)fixture->relay);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    guint n = 0;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *link = g_build_filename(path, name, NULL);
        g_autofree char *target = g_file_read_link(link, NULL);
        n += target != NULL && g_str_has_prefix(target, "pipe:");
    }
    return n;
}

static void
set_up(Fixture *fixture, gconstpointer with_broker)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(fd, 1024), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&address, &length), ==, 0);
    fixture->port = ntohs(address.sin_port);
    fixture->dir = eb_test_temp_dir("relay");
    fixture->path = g_build_filename(fixture->dir, "s", NULL);
    fixture->broker = with_broker != NULL ? listen_unix(fixture->path) : -1;
    fixture->relay = fork();
    if (fixture->relay == 0) {
        g_autofree char *number = g_strdup_printf("%d", fd);
        /* A test that fails takes it along. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (with_broker == NO_PIPES && geteuid() == 0)
            use_up_pipes();
        execl(EB_TEST_RELAY, "relay", "--listen-fd", number, "--connect", fixture->path, NULL);
        _exit(1);
    }
    close(fd);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    int status = 0;

    g_assert_cmpint(waitpid(fixture->relay, &status, WNOHANG), ==, 0); /* it lives */
    kill(fixture->relay, SIGKILL);
    waitpid(fixture->relay, &status, 0);
    if (fixture->broker >= 0)
        close(fixture->broker);
    g_free(fixture->dir);
    g_free(fixture->path);
}

static int
dial(Fixture *fixture)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(fixture->port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(connect(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    return fd;
}

/* One readable byte or an end within the deadline, or the test fails. */
static gssize
take(int fd, void *bytes, gsize size)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    g_assert_cmpint(poll(&wait, 1, EB_TEST_DEADLINE_MS), ==, 1);
    return recv(fd, bytes, size, 0);
}

static int
take_connection(Fixture *fixture)
{
    struct pollfd wait = {.fd = fixture->broker, .events = POLLIN};

    g_assert_cmpint(poll(&wait, 1, EB_TEST_DEADLINE_MS), ==, 1);
    int fd = accept(fixture->broker, NULL, NULL);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static void
test_half_close(Fixture *fixture, gconstpointer data)
{
    char bytes[64];
    int client = dial(fixture);
    int broker = take_connection(fixture);

    g_assert_cmpint(send(client, "question", 8, 0), ==, 8);
    g_assert_cmpint(shutdown(client, SHUT_WR), ==, 0);
    g_assert_cmpint(take(broker, bytes, sizeof bytes), ==, 8);
    g_assert_cmpmem(bytes, 8, "question", 8);
    g_assert_cmpint(take(broker, bytes, sizeof bytes), ==, 0);
    g_assert_cmpint(send(broker, "answer", 6, 0), ==, 6);
    g_assert_cmpint(take(client, bytes, sizeof bytes), ==, 6);
    close(broker);
    g_assert_cmpint(take(client, bytes, sizeof bytes), ==, 0);
    close(client);
}

/* Both directions at once, the reader of one being slow: nothing lost, nothing mixed. */
static void
test_bulk(Fixture *fixture, gconstpointer data)
{
    int ends[2] = {dial(fixture), take_connection(fixture)};
    guint32 sent[2] = {0}, got[2] = {0};
    static guint8 buffer[65536];

    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    while (got[0] < BULK || got[1] < BULK) {
        struct pollfd wait[2];
        for (int i = 0; i < 2; i++)
            wait[i] = (struct pollfd){.fd = ends[i],
                                      .events = (short)((sent[i] < BULK ? POLLOUT : 0) | (got[i] < BULK ? POLLIN : 0))};
        g_assert_cmpint(poll(wait, 2, EB_TEST_DEADLINE_MS), >, 0);
        for (int i = 0; i < 2; i++) {
            if (wait[i].revents & POLLOUT && sent[i] < BULK) {
                gsize size = MIN(sizeof buffer, BULK - sent[i]);
                for (gsize j = 0; j < size; j++)
                    buffer[j] = (guint8)((sent[i] + j) % 251 + (guint)i);
                gssize result = send(ends[i], buffer, size, MSG_NOSIGNAL);
                g_assert_true(result > 0 || errno == EAGAIN);
                sent[i] += result > 0 ? (guint32)result : 0;
            }
            if (wait[i].revents & POLLIN) {
                gssize result = recv(ends[i], buffer, i == 0 ? 3000 : sizeof buffer, 0);
                g_assert_cmpint(result, >, 0);
                for (gssize j = 0; j < result; j++)
                    g_assert_cmpuint(buffer[j], ==, (guint8)((got[i] + (guint32)j) % 251 + (guint)!i));
                got[i] += (guint32)result;
            }
        }
    }
    close(ends[0]);
    g_assert_cmpint(take(ends[1], buffer, 1), ==, 0);
    close(ends[1]);
}

static void
test_bulk_without_pipes(Fixture *fixture, gconstpointer data)
{
    g_autofree char *soft = NULL;
    guint before;

    if (geteuid() != 0) {
        g_test_skip("needs root, to use up the pipes of an account that nobody else uses");
        return;
    }
    g_assert_true(g_file_get_contents("/proc/sys/fs/pipe-user-pages-soft", &soft, NULL, NULL));
    if (g_ascii_strtoull(soft, NULL, 10) == 0 || g_ascii_strtoull(soft, NULL, 10) > 200 * 256) {
        g_test_skip("this host bounds no pipes, or at more than the test uses up");
        return;
    }
    /* Something passed: it has been executed. */
    test_half_close(fixture, data);
    before = count_pipes(fixture);
    test_bulk(fixture, data);
    g_assert_cmpuint(count_pipes(fixture), ==, before);
}

static void
test_bulk_with_pipes(Fixture *fixture, gconstpointer data)
{
    guint before;

    test_half_close(fixture, data);
    before = count_pipes(fixture);
    test_bulk(fixture, data);
    /* Others of the same account may have used up what it may have. */
    if (geteuid() == 0)
        g_assert_cmpuint(count_pipes(fixture), >, before);
}

/* A broker that answers early and closes without reading all: the answer arrives. */
static void
test_early_answer(Fixture *fixture, gconstpointer data)
{
    char bytes[64];
    int client = dial(fixture);
    int broker = take_connection(fixture);

    g_assert_cmpint(send(client, "request", 7, 0), ==, 7);
    g_assert_cmpint(take(broker, bytes, sizeof bytes), ==, 7);
    g_assert_cmpint(send(broker, "413", 3, 0), ==, 3);
    close(broker);
    g_assert_cmpint(take(client, bytes, sizeof bytes), ==, 3);
    g_assert_cmpint(take(client, bytes, sizeof bytes), ==, 0);
    close(client);
}

/* The agent cancels by a reset: the broker sees the end without having to send. */
static void
test_client_reset(Fixture *fixture, gconstpointer data)
{
    const struct linger reset = {.l_onoff = 1};
    char bytes[8];
    int client = dial(fixture);
    int broker = take_connection(fixture);

    setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(client);
    g_assert_cmpint(take(broker, bytes, sizeof bytes), <=, 0);
    close(broker);
}

static void
test_many(Fixture *fixture, gconstpointer data)
{
    enum { COUNT = 300 };
    int clients[COUNT];
    int brokers[COUNT];
    char byte = 'x';

    for (int i = 0; i < COUNT; i++)
        clients[i] = dial(fixture);
    for (int i = 0; i < COUNT; i++)
        brokers[i] = take_connection(fixture);
    for (int i = 0; i < COUNT; i++)
        g_assert_cmpint(send(clients[i], &byte, 1, 0), ==, 1);
    for (int i = 0; i < COUNT; i++)
        g_assert_cmpint(take(brokers[i], &byte, 1), ==, 1);
    for (int i = 0; i < COUNT; i++) {
        close(clients[i]);
        g_assert_cmpint(take(brokers[i], &byte, 1), ==, 0);
        close(brokers[i]);
    }
}

/* Nobody there: a request is not lost while a broker is being restarted... */
static void
test_broker_late(Fixture *fixture, gconstpointer data)
{
    char bytes[64];
    int client = dial(fixture);

    g_assert_cmpint(send(client, "request", 7, 0), ==, 7);
    g_usleep(100000);
    fixture->broker = listen_unix(fixture->path);
    int broker = take_connection(fixture);
    g_assert_cmpint(take(broker, bytes, sizeof bytes), ==, 7);
    close(broker);
    close(client);
}

/* ...and answered when none comes back. */
static void
test_broker_gone(Fixture *fixture, gconstpointer data)
{
    char bytes[512] = {0};
    int client = dial(fixture);

    g_assert_cmpint(send(client, "GET / HTTP/1.1\r\n\r\n", 18, 0), ==, 18);
    g_assert_cmpint(take(client, bytes, sizeof bytes - 1), >, 0);
    g_assert_true(g_str_has_prefix(bytes, "HTTP/1.1 503 "));
    g_assert_nonnull(strstr(bytes, "broker is gone"));
    g_assert_cmpint(take(client, bytes, sizeof bytes), ==, 0);
    close(client);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    signal(SIGPIPE, SIG_IGN);
#define ADD(name, broker, function) g_test_add("/relay/" name, Fixture, broker, set_up, function, tear_down)
    ADD("half-close", "yes", test_half_close);
    ADD("bulk", "yes", test_bulk_with_pipes);
    ADD("bulk-without-pipes", NO_PIPES, test_bulk_without_pipes);
    ADD("early-answer", "yes", test_early_answer);
    ADD("client-reset", "yes", test_client_reset);
    ADD("many", "yes", test_many);
    ADD("broker-late", NULL, test_broker_late);
    ADD("broker-gone", NULL, test_broker_gone);
    return g_test_run();
}
