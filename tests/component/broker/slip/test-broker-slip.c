/* SPDX-License-Identifier: MIT */
/* A real broker that makes a system call its sandbox does not know: it dies, the service says of what, and it is replaced. */
#include <unistd.h>

#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define COUNT                                                                                                          \
    "POST /provider/anthropic/count HTTP/1.1\r\nHost: x\r\nx-api-key: " TEST_NONCE                                     \
    "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

typedef struct {
    GPtrArray *said; /* (element-type utf8): "call-refused" and "died", in their order */
    guint audit_before;
    EbTestBroker *broker;
} Told;

static void
on_call_refused(EbBrokerCtl *ctl, const char *why, gpointer user_data)
{
    Told *told = user_data;

    g_ptr_array_add(told->said, g_strdup_printf("refused: %s", why));
}

static void
on_died(EbBrokerCtl *ctl, gboolean restarted, const char *why, gpointer user_data)
{
    Told *told = user_data;

    g_ptr_array_add(told->said, g_strdup_printf("died: %s", why));
    told->audit_before = told->broker->audit->len;
}

static gboolean
is_replaced(gpointer user_data)
{
    return eb_broker_ctl_get_pid(EB_BROKER_CTL(user_data)) > 0;
}

static void
test_named(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    Told told = {said, 0, broker};
    int first = eb_broker_ctl_get_pid(broker->ctl), fd;

    g_signal_connect(broker->ctl, "call-refused", G_CALLBACK(on_call_refused), &told);
    g_signal_connect(broker->ctl, "died", G_CALLBACK(on_died), &told);
    for (guint round = 1; round <= 2; round++) {
        g_autofree char *answer = eb_test_broker_ask(broker, COUNT);

        g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
        fd = eb_test_broker_connect(broker);
        g_free(eb_test_receive_all(fd, NULL));
        close(fd);
        while (broker->n_died < round)
            g_main_context_iteration(NULL, TRUE);
        g_assert_true(broker->restarted);
        /* What the dead one had reported already is not lost with it. */
        g_assert_cmpuint(told.audit_before, ==, round);
        eb_test_run_until(is_replaced, broker->ctl);
    }
    g_assert_cmpint(eb_broker_ctl_get_pid(broker->ctl), !=, first);
    g_assert_cmpuint(said->len, ==, 4);
    for (guint i = 0; i < said->len; i++)
        g_assert_cmpstr(said->pdata[i], ==,
                        i % 2 == 0 ? "refused: was killed by SIGSYS: system call getpriority is not allowed"
                                   : "died: was killed by SIGSYS: system call getpriority is not allowed");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/slip/named", test_named);
    return g_test_run();
}
