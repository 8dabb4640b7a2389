/* SPDX-License-Identifier: MIT */
/*
 * The corpus of framing differences (tests/fixtures/smuggling) against a real broker: what reaches the upstream is read
 * by a strict reader of its own, and is exactly what the case expects: nothing, or one well-formed request. Never two.
 */
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eb-test-strict-http.h"
#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"
#include "tests/component/broker/eb-test-cases.h"
#include "tests/component/broker/eb-test-recorder.h"

/* Cases longer than this are sent whole alone. */
#define MAX_BYTEWISE 1024
/* Looks at the broker's queue before the next byte goes anyway: it does not read while it waits for an answer. */
#define MAX_LOOKS 2000

/* Sent behind a case that leaves the connection open: the broker answers it itself, after all that was before it. */
#define LAST "GET /provider/anthropic/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
#define CLOSED "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

/* Goes on with the other cases: one bad row says less than all of them. */
#define CHECK(test_case, ...)                                                                                          \
    do {                                                                                                               \
        if (!(__VA_ARGS__)) {                                                                                          \
            g_test_message("%s: not so: %s", (test_case)->name, #__VA_ARGS__);                                         \
            g_test_fail();                                                                                             \
        }                                                                                                              \
    } while (FALSE)

typedef struct {
    EbTestBroker *broker;
    EbTestRecorder *recorder;
    GPtrArray *cases;
} World;

static void
world_init(World *self)
{
    self->recorder = eb_test_recorder_new();
    self->broker = eb_test_broker_prepare(NULL);
    self->broker->rules->ports[0] = eb_test_recorder_get_port(self->recorder);
    for (guint i = 0; i < self->broker->rules->providers->len; i++) {
        EbBrokerProvider *provider = self->broker->rules->providers->pdata[i];

        g_free(provider->base_url);
        provider->base_url = g_strdup_printf("http://127.0.0.1:%u", eb_test_recorder_get_port(self->recorder));
    }
    eb_test_broker_start(self->broker);
    self->cases =
        eb_test_cases_read(g_getenv("EB_TEST_SMUGGLING"), TEST_NONCE, eb_test_recorder_get_port(self->recorder));
    g_assert_cmpuint(self->cases->len, >, 200);
}

static void
world_clear(World *self)
{
    g_ptr_array_unref(self->cases);
    eb_test_broker_free(self->broker);
    eb_test_recorder_free(self->recorder);
}

/* --- what went up --- */

static void
check_request(const EbTestCase *self, const EbTestStrictRequest *request)
{
    CHECK(self, eb_test_strict_count(request, "connection") + eb_test_strict_count(request, "upgrade") <= 1);
    CHECK(self, eb_test_strict_count(request, "transfer_encoding") <= 1);
    if (eb_test_strict_count(request, "x-api-key") > 0) {
        CHECK(self, eb_test_strict_count(request, "x-api-key") == 1);
        CHECK(self, g_strcmp0(eb_test_strict_value(request, "x-api-key"), TEST_KEY) == 0);
    }
    for (guint i = 0; i < request->values->len; i++) {
        CHECK(self, strstr(request->values->pdata[i], TEST_NONCE) == NULL);
        CHECK(self, g_strcmp0(request->values->pdata[i], "stolen") != 0);
        CHECK(self, g_strcmp0(request->values->pdata[i], "Bearer stolen") != 0);
    }
    CHECK(self, strstr(request->target, TEST_NONCE) == NULL);
    if (self->expectation != EB_TEST_EXPECT_EACH)
        CHECK(self, strstr(request->target, "smuggled") == NULL);
}

/* How many complete requests arrived; @body: (out): of the last one. Fails on anything malformed. */
static guint
count_requests(const EbTestCase *self, GPtrArray *taken, GString *body, gboolean *incomplete)
{
    guint n = 0;

    for (guint i = 0; i < taken->len; i++) {
        GString *bytes = taken->pdata[i];
        gsize at = 0;

        while (at < bytes->len) {
            g_auto(EbTestStrictRequest) request = {0};
            const char *why = NULL;
            gssize used = eb_test_strict_read(bytes->str + at, bytes->len - at, &request, &why);

            if (used < 0) {
                g_test_message("%s: what went up holds %s: %s", self->name, why, bytes->str);
                g_test_fail();
            }
            if (used <= 0) {
                *incomplete = TRUE;
                break;
            }
            check_request(self, &request);
            g_string_truncate(body, 0);
            g_string_append_len(body, (const char *)request.body->data, request.body->len);
            at += (gsize)used;
            n++;
        }
    }
    return n;
}

typedef struct {
    guint n_recorded; /* answers of the upstream */
    guint n_refused;
    guint refused; /* status of the last refusal */
} Answers;

static Answers
read_answers(const char *answer)
{
    Answers found = {0};

    for (const char *at = answer; (at = strstr(at, "HTTP/1.1 ")) != NULL; at++) {
        guint status = (guint)g_ascii_strtoull(at + 9, NULL, 10);

        found.n_recorded += status == EB_TEST_RECORDED;
        if (status < 400)
            continue;
        g_assert_nonnull(strstr(at, "X-Errand-Box-Refused: "));
        found.n_refused++;
        found.refused = status;
    }
    return found;
}

static void
check_case(const EbTestCase *self, const char *answer, GPtrArray *taken)
{
    static const guint COUNTS[] = {
        [EB_TEST_EXPECT_REFUSE] = 0, [EB_TEST_EXPECT_ONE] = 1, [EB_TEST_EXPECT_ONE_THEN] = 1,
        [EB_TEST_EXPECT_NONE] = 0,   [EB_TEST_EXPECT_RAW] = 0,
    };
    g_autoptr(GString) body = g_string_new(NULL);
    Answers answers = read_answers(answer);
    guint expected = self->expectation == EB_TEST_EXPECT_EACH ? self->number : COUNTS[self->expectation];
    gboolean incomplete = FALSE, refused;

    if (self->expectation == EB_TEST_EXPECT_RAW) {
        CHECK(self, taken->len == 1);
        CHECK(self, g_string_equal(taken->pdata[0], self->text));
        return;
    }
    CHECK(self, count_requests(self, taken, body, &incomplete) == expected);
    CHECK(self, answers.n_recorded == expected);
    if (self->expectation == EB_TEST_EXPECT_NONE) {
        CHECK(self, answers.n_refused <= 1);
        return;
    }
    refused = self->expectation == EB_TEST_EXPECT_REFUSE || self->expectation == EB_TEST_EXPECT_ONE_THEN;
    CHECK(self, answers.n_refused == (refused ? 1 : 0));
    CHECK(self, answers.refused == (refused ? self->number : 0));
    if (!refused) {
        /* Whatever stood before it was read to its end. */
        CHECK(self, !incomplete);
        CHECK(self, g_str_has_suffix(answer, CLOSED) || strstr(self->name, "nothing-behind") != NULL);
    }
    if (self->expectation == EB_TEST_EXPECT_ONE)
        CHECK(self, g_string_equal(body, self->text));
}

/* --- sending --- */

/* Waits until the broker has taken what was sent, so that the next byte comes as a read of its own. */
static void
wait_taken(int fd)
{
    int left = 1;

    for (guint i = 0; i < MAX_LOOKS && ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0; i++)
        sched_yield();
}

static void
run_case(World *world, const EbTestCase *self, gboolean bytewise)
{
    g_autoptr(GPtrArray) taken = NULL;
    g_autoptr(GString) send = g_string_new_len(self->send->str, (gssize)self->send->len);
    g_autofree char *answer = NULL;
    int fd = eb_test_broker_connect(world->broker);

    if (self->expectation != EB_TEST_EXPECT_RAW && self->expectation != EB_TEST_EXPECT_NONE)
        g_string_append(send, LAST);
    for (gsize i = 0; bytewise && i < send->len; i++) {
        eb_test_send(fd, send->str + i, 1);
        wait_taken(fd);
    }
    if (!bytewise)
        eb_test_send(fd, send->str, send->len);
    if (self->expectation == EB_TEST_EXPECT_RAW)
        g_free(eb_test_receive_until(fd, "established\r\n\r\n"));
    if (self->expectation == EB_TEST_EXPECT_RAW || self->expectation == EB_TEST_EXPECT_NONE)
        shutdown(fd, SHUT_WR);
    answer = eb_test_receive_all(fd, NULL);
    close(fd);
    taken = eb_test_recorder_take(world->recorder);
    g_test_message("%s%s: %.20s", self->name, bytewise ? ", byte by byte" : "", answer);
    check_case(self, answer, taken);
}

static void
run_all(gboolean bytewise)
{
    World world;
    guint n = 0;

    world_init(&world);
    for (guint i = 0; i < world.cases->len; i++) {
        const EbTestCase *one = world.cases->pdata[i];

        if (bytewise && one->send->len > MAX_BYTEWISE)
            continue;
        run_case(&world, one, bytewise);
        n++;
    }
    g_test_message("%u cases", n);
    g_assert_cmpuint(world.broker->n_died, ==, 0);
    world_clear(&world);
}

static void
test_whole(void)
{
    run_all(FALSE);
}

static void
test_bytewise(void)
{
    run_all(TRUE);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/smuggling/whole", test_whole);
    g_test_add_func("/broker/smuggling/byte-by-byte", test_bytewise);
    return g_test_run();
}
