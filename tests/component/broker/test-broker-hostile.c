/* SPDX-License-Identifier: MIT */
/*
 * Bytes a guest sends to wear the broker out. It is the same process afterwards. What could be read two ways is in
 * test-broker-smuggling.c.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define POST "POST /provider/anthropic/count HTTP/1.1\r\nHost: x\r\nx-api-key: " TEST_NONCE "\r\n"

static void
test_huge_heads(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *filler = g_strnfill(1 << 20, 'a');
    g_autofree char *target = g_strconcat("GET /", filler, NULL);
    g_autofree char *header = g_strconcat(POST "X: ", filler, NULL);
    g_autoptr(GString) many = g_string_new(POST);
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    g_autofree char *third = NULL;

    while (many->len < 1 << 20)
        g_string_append(many, "X: y\r\n");
    first = eb_test_broker_ask(broker, target);
    second = eb_test_broker_ask(broker, header);
    third = eb_test_broker_ask(broker, many->str);
    eb_test_assert_refused(first, 414, "target-too-long");
    eb_test_assert_refused(second, 431, "head-too-large");
    eb_test_assert_refused(third, 431, "head-too-large");
    g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 0);
}

static void
test_inner(void)
{
    static const char *const INNER[] = {
        "CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        "CONNECT 127.0.0.1:47129 HTTP/1.1\r\nHost: 127.0.0.1:47129\r\nConnection: close\r\n\r\n",
        "GET http://127.0.0.1:443/ HTTP/1.1\r\nHost: 127.0.0.1:443\r\nConnection: close\r\n\r\n",
    };
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();

    for (gsize i = 0; i < G_N_ELEMENTS(INNER); i++) {
        g_autofree char *request =
            g_strconcat("CONNECT 127.0.0.1:47129 HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n\r\n", INNER[i], NULL);
        g_autofree char *answer = eb_test_broker_ask(broker, request);
        const char *second = strstr(answer, "\r\n\r\n") + 4;

        g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
        eb_test_assert_refused(second, 405, "method-not-allowed");
    }
}

/* More connections than the kernel's default queue, all at once, and most of them silent. */
static void
test_flood(void)
{
    enum { N = 600 };
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    int fds[N];
    g_autofree char *answer = NULL;

    for (guint i = 0; i < N; i++) {
        fds[i] = eb_test_broker_connect(broker);
        eb_test_send(fds[i], "POST /", i % 2 == 0 ? 6 : 0);
    }
    answer = eb_test_broker_ask(broker, POST "Content-Length: 0\r\nConnection: close\r\n\r\n");
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    for (guint i = 0; i < N; i++)
        close(fds[i]);
}

static void
test_noise(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    int pid = eb_broker_ctl_get_pid(broker->ctl);

    for (guint i = 0; i < 300; i++) {
        char bytes[512];
        int fd = eb_test_broker_connect(broker);
        gsize length = (gsize)g_test_rand_int_range(1, sizeof bytes);

        for (gsize j = 0; j < length; j++)
            bytes[j] = (char)g_test_rand_int_range(0, 256);
        /* Half of them begin as a request does. */
        if (i % 2 == 0)
            memcpy(bytes, "GET /", MIN(length, 5));
        eb_test_send(fd, bytes, length);
        shutdown(fd, SHUT_WR);
        g_free(eb_test_receive_all(fd, NULL));
        close(fd);
    }
    g_assert_cmpint(eb_broker_ctl_get_pid(broker->ctl), ==, pid);
    g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/hostile/huge-heads", test_huge_heads);
    g_test_add_func("/broker/hostile/inner", test_inner);
    g_test_add_func("/broker/hostile/flood", test_flood);
    g_test_add_func("/broker/hostile/noise", test_noise);
    return g_test_run();
}
