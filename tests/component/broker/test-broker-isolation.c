/* SPDX-License-Identifier: MIT */
/* What one session's broker suffers is its own business: not the service's, and not another session's. */
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/broker/eb-broker-link.h"
#include "core/broker/eb-broker.h"
#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define BATCH 100
#define COUNT                                                                                                          \
    "POST /provider/anthropic/count HTTP/1.1\r\nHost: x\r\nx-api-key: " TEST_NONCE                                     \
    "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static void
kill_broker(EbTestBroker *broker)
{
    int pid_fd = (int)syscall(SYS_pidfd_open, eb_broker_ctl_get_pid(broker->ctl), 0u);

    g_assert_cmpint(syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0u), ==, 0);
    close(pid_fd);
}

static gboolean
has_pid(gpointer user_data)
{
    return eb_broker_ctl_get_pid(EB_BROKER_CTL(user_data)) > 0;
}

/* Every tunnel of the dead broker ends, none hangs; the session is told once; the next connection is served. */
static void
test_killed_amid_tunnels(void)
{
    enum { N = EB_BROKER_MAX_DIALS * 3 / 4 };
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *line = g_strdup_printf("CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                                            eb_test_origin_get_port(broker->origin));
    g_autofree char *answer = NULL;
    int fds[N], first = eb_broker_ctl_get_pid(broker->ctl);

    for (guint i = 0; i < N; i++) {
        fds[i] = eb_test_broker_connect(broker);
        eb_test_send(fds[i], line, strlen(line));
    }
    for (guint i = 0; i < N; i++) {
        g_autofree char *head = eb_test_receive_until(fds[i], "\r\n\r\n");

        g_assert_cmpuint(eb_test_status_of(head), ==, 200);
        /* Half of them are in the middle of an answer that never ends. */
        if (i % 2 == 0)
            eb_test_send(fds[i], "GET /hang HTTP/1.1\r\nHost: x\r\n\r\n", 32);
    }
    kill_broker(broker);
    while (broker->n_died == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(broker->restarted);
    for (guint i = 0; i < N; i++) {
        g_free(eb_test_receive_all(fds[i], NULL));
        close(fds[i]);
    }
    eb_test_run_until(has_pid, broker->ctl);
    g_assert_cmpint(eb_broker_ctl_get_pid(broker->ctl), !=, first);
    answer = eb_test_broker_ask(broker, COUNT);
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    g_assert_cmpuint(broker->n_died, ==, 1);
}

/* One guest asks for ever new hosts that nobody allowed, as fast as it can, while the service does something else. */
typedef struct {
    EbTestBroker *broker;
    guint n;
    gint answered; /* batches */
} Flood;

static gpointer
flood_with_refusals(gpointer data)
{
    Flood *self = data;
    int fd = eb_test_broker_connect(self->broker);

    for (guint i = 0; i < self->n; i += BATCH) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *last = g_strdup_printf("errand-box refused h%u.x.test:80", i + BATCH - 1);

        for (guint j = i; j < i + BATCH; j++)
            g_string_append_printf(text, "GET http://h%u.x.test/ HTTP/1.1\r\nHost: h%u.x.test\r\n\r\n", j, j);
        eb_test_send(fd, text->str, text->len);
        g_free(eb_test_receive_until(fd, last));
        g_atomic_int_inc(&self->answered);
    }
    close(fd);
    return NULL;
}

static gboolean
all_is_told(gpointer user_data)
{
    EbTestBroker *broker = user_data;

    return broker->audit->len >= *(guint64 *)g_object_get_data(G_OBJECT(broker->ctl), "expected");
}

static glong
memory_kib(EbTestBroker *broker)
{
    g_autofree char *status = eb_test_broker_proc(broker, "status", NULL);
    const char *line = status != NULL ? strstr(status, "RssAnon:") : NULL;

    g_assert_nonnull(line);
    return (glong)g_ascii_strtoll(line + 8, NULL, 10);
}

/*
 * The service's loop does not run while one guest floods: nothing piles up without bound in its broker, which takes no more
 * requests when it can tell of no more; another session's broker answers all the while; and when the service looks again
 * it is told of every one.
 */
static void
test_reports_are_bounded(void)
{
    enum { N = 20000 };
    g_autoptr(EbTestBroker) flooded = eb_test_broker_new();
    g_autoptr(EbTestBroker) other = eb_test_broker_new();
    g_autofree char *answer = NULL;
    Flood flood = {.broker = flooded, .n = N};
    GThread *thread = g_thread_new("flood", flood_with_refusals, &flood);
    guint64 expected = N;
    glong grown;

    for (gint before = -1; before != g_atomic_int_get(&flood.answered) || before == 0;) {
        before = g_atomic_int_get(&flood.answered);
        g_usleep(G_USEC_PER_SEC / 10);
    }
    g_assert_cmpint(g_atomic_int_get(&flood.answered), <, N / BATCH);
    answer = eb_test_broker_ask(other, COUNT);
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    grown = memory_kib(flooded);
    g_test_message("%d batches, %ld KiB", g_atomic_int_get(&flood.answered), grown);
#ifndef __SANITIZE_ADDRESS__
    g_assert_cmpint(grown, <, 16 * 1024);
#endif
    g_object_set_data(G_OBJECT(flooded->ctl), "expected", &expected);
    eb_test_run_until(all_is_told, flooded);
    g_thread_join(thread);
    for (guint i = 0; i < flooded->audit->len; i++)
        g_assert_cmpint(json_object_get_int_member_with_default(flooded->audit->pdata[i], "lost", 0), ==, 0);
    g_assert_cmpuint(flooded->n_denied, >, 0);
    g_assert_cmpuint(flooded->n_denied, <=, EB_BROKER_MAX_DENIED);
    g_assert_cmpuint(flooded->audit->len, ==, N);
    g_assert_cmpuint(other->audit->len + other->n_denied, <=, 1);
    g_assert_cmpuint(flooded->n_died + other->n_died, ==, 0);
}

/* More connections than a session may have: those beyond are told so at once, the others are served, and so is a neighbour. */
static void
test_connections_are_bounded(void)
{
    enum { N = EB_BROKER_MAX_CONNECTIONS + 64 };
    g_autoptr(EbTestBroker) flooded = NULL;
    g_autoptr(EbTestBroker) other = NULL;
    g_autofree int *fds = g_new(int, N);
    g_autofree char *answer = NULL;
    struct rlimit files;
    guint busy = 0;

    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &files), ==, 0);
    if (files.rlim_max < 2 * N) {
        g_test_skip("this account may not open enough descriptors");
        return;
    }
    files.rlim_cur = files.rlim_max;
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &files), ==, 0);
    flooded = eb_test_broker_new();
    other = eb_test_broker_new();
    for (guint i = 0; i < N; i++) {
        fds[i] = eb_test_broker_connect(flooded);
        eb_test_send(fds[i], "POST /", 6);
    }
    answer = eb_test_broker_ask(other, COUNT);
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    for (guint i = EB_BROKER_MAX_CONNECTIONS; i < N; i++) {
        g_autofree char *refused = eb_test_receive_all(fds[i], NULL);

        busy += eb_test_status_of(refused) == 503;
    }
    g_assert_cmpuint(busy, ==, N - EB_BROKER_MAX_CONNECTIONS);
    for (guint i = 0; i < N; i++)
        close(fds[i]);
    /* And room again once they are gone. */
    g_free(g_steal_pointer(&answer));
    answer = eb_test_broker_ask(flooded, COUNT);
    while (eb_test_status_of(answer) == 503) {
        g_free(answer);
        g_usleep(1000);
        answer = eb_test_broker_ask(flooded, COUNT);
    }
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/isolation/killed-amid-tunnels", test_killed_amid_tunnels);
    g_test_add_func("/broker/isolation/reports-are-bounded", test_reports_are_bounded);
    g_test_add_func("/broker/isolation/connections-are-bounded", test_connections_are_bounded);
    return g_test_run();
}
