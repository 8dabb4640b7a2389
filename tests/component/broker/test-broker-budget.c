/* SPDX-License-Identifier: MIT */
/* The real broker process, a real origin, and a service that grants what it likes: what a budget does to requests. */
#include <string.h>
#include <unistd.h>

#include "core/broker/eb-broker-proto.h"
#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

typedef struct {
    EbTestBroker *broker;
    guint64 left; /* tokens that can still be granted */
    guint64 granted;
    guint n_asked, n_more, n_used;
    gboolean silent; /* does not answer */
    gboolean later;  /* what it does not grant may be granted later */
    guint64 used;    /* in and out of the last report */
    gboolean estimated;
    char *model;
} Service;

static void
on_budget(EbBrokerCtl *ctl, guint type, JsonObject *told, gpointer user_data)
{
    Service *self = user_data;
    guint64 id = (guint64)eb_json_get_int(told, "id", 0);
    guint64 in = (guint64)eb_json_get_int(told, "tokens_in", 0), out = (guint64)eb_json_get_int(told, "tokens_out", 0);

    if (type == EB_BROKER_MSG_USED) {
        self->n_used++;
        self->used = in + out;
        self->estimated = eb_json_get_bool(told, "flag", FALSE);
        g_free(self->model);
        self->model = g_strdup(eb_json_get_string(told, "model"));
        return;
    }
    self->n_asked += type == EB_BROKER_MSG_ASK;
    self->n_more += type == EB_BROKER_MSG_MORE;
    if (self->silent)
        return;
    guint64 tokens = MIN(in + out, self->left);
    self->left -= tokens;
    self->granted += tokens;
    eb_broker_ctl_grant(ctl, id, tokens, 1, self->later);
}

static Service *
service_new(guint64 left, gboolean budget)
{
    Service *self = g_new0(Service, 1);

    self->broker = eb_test_broker_prepare(NULL);
    self->broker->rules->budget = budget;
    self->broker->rules->reserve = 1000;
    self->broker->rules->overshoot = 100;
    self->left = left;
    eb_test_broker_start(self->broker);
    g_signal_connect(self->broker->ctl, "budget", G_CALLBACK(on_budget), self);
    return self;
}

static void
service_free(Service *self)
{
    g_signal_handlers_disconnect_by_data(self->broker->ctl, self);
    eb_test_broker_free(self->broker);
    g_free(self->model);
    g_free(self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Service, service_free)

static void
begin(Service *self, const char *path, const char *body, int *fd)
{
    g_autofree char *request =
        g_strdup_printf("POST /provider/openai%s HTTP/1.1\r\nHost: 127.0.0.1:47129\r\nAuthorization: Bearer " TEST_NONCE
                        "\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                        path, strlen(body), body);

    *fd = eb_test_broker_connect(self->broker);
    eb_test_send(*fd, request, strlen(request));
}

static gboolean
is_used(gpointer data)
{
    return ((Service *)data)->n_used > 0;
}

typedef struct {
    int fd;
    char *answer;
    gint done;
} Reader;

static gpointer
read_answer(gpointer data)
{
    Reader *self = data;
    self->answer = eb_test_receive_all(self->fd, NULL);
    g_atomic_int_set(&self->done, 1);
    g_main_context_wakeup(NULL);
    return NULL;
}

static gboolean
is_read(gpointer data)
{
    return g_atomic_int_get(&((Reader *)data)->done) != 0;
}

/* (transfer full): the loop runs meanwhile: it is the service. */
static char *
ask(Service *self, const char *path, const char *body)
{
    Reader reader = {0};

    begin(self, path, body, &reader.fd);
    GThread *thread = g_thread_new("reader", read_answer, &reader);
    eb_test_run_until(is_read, &reader);
    g_thread_join(thread);
    close(reader.fd);
    return reader.answer;
}

static void
test_counted(void)
{
    static const gboolean budgets[] = {FALSE, TRUE};

    for (gsize i = 0; i < G_N_ELEMENTS(budgets); i++) {
        g_autoptr(Service) service = service_new(100000, budgets[i]);
        g_autofree char *answer = ask(service, "/v1/usage/chat/completions", "{\"model\":\"m\"}");
        g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
        eb_test_run_until(is_used, service);
        g_assert_cmpuint(service->used, ==, 42);
        g_assert_false(service->estimated);
        g_assert_cmpstr(service->model, ==, "m-2025");
        g_assert_cmpuint(service->n_asked, ==, budgets[i] ? 1 : 0);
    }
}

/* Refused before anything goes up, once and for all; nothing of the key is in what is said. */
static void
test_exhausted(void)
{
    g_autoptr(Service) service = service_new(0, TRUE);
    g_autofree char *answer = ask(service, "/v1/chat/completions", "{\"model\":\"m\"}");

    eb_test_assert_refused(answer, 402, "budget-exhausted");
    g_assert_nonnull(strstr(answer, "what this session may use is used up"));
    g_assert_null(strstr(answer, TEST_KEY));
    g_assert_null(strstr(answer, TEST_NONCE));
    g_assert_cmpuint(eb_test_origin_get_count(service->broker->origin), ==, 0);
    JsonObject *row = eb_test_broker_wait_audit(service->broker, 1);
    g_assert_cmpstr(eb_json_get_string(row, "decision"), ==, "budget-exhausted");
    /* What costs nothing still goes. */
    g_autofree char *count = ask(service, "/v1/messages/count_tokens", "{}");
    g_assert_cmpuint(eb_test_status_of(count), ==, 200);
}

/* What others only hold may be given back: a status that libraries try again, and when. */
static void
test_busy(void)
{
    g_autoptr(Service) service = service_new(0, TRUE);
    service->later = TRUE;
    g_autofree char *answer = ask(service, "/v1/chat/completions", "{\"model\":\"m\"}");

    eb_test_assert_refused(answer, 503, "budget-busy");
    g_assert_nonnull(strstr(answer, "\r\nRetry-After: 10\r\n"));
    g_assert_nonnull(strstr(answer, "of what this session may use"));
    g_assert_cmpuint(eb_test_origin_get_count(service->broker->origin), ==, 0);
}

static void
test_uncounted(void)
{
    static const struct {
        const char *path, *body;
    } cases[] = {
        {"/v1/batches", "{}"},
        {"/v1/messages/batches", "{}"},
        {"/v1/images/generations", "{}"},
        {"/v1/responses", "{\"model\":\"m\",\"background\":true}"},
        {"/v1/responses", "{\"model\":\"m\",\"b\\u0061ckground\":true}"},
        {"/v1/responses?fields=output", "{\"model\":\"m\"}"},
    };
    g_autoptr(Service) service = service_new(100000, TRUE);

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *answer = ask(service, cases[i].path, cases[i].body);
        eb_test_assert_refused(answer, 403, "budget-uncounted");
    }
    g_assert_cmpuint(eb_test_origin_get_count(service->broker->origin), ==, 0);
}

/* B48: the cap is reached while an answer streams: more is asked for, is not there, and the answer is cut off. */
static void
test_mid_stream(void)
{
    g_autoptr(Service) service = service_new(3000, TRUE);
    Reader reader = {0};

    begin(service, "/v1/talk/chat/completions", "{\"model\":\"m\",\"stream\":true}", &reader.fd);
    GThread *thread = g_thread_new("reader", read_answer, &reader);
    eb_test_run_until(is_read, &reader);
    g_thread_join(thread);
    close(reader.fd);
    eb_test_run_until(is_used, service);
    g_assert_cmpuint(eb_test_status_of(reader.answer), ==, 200);
    /* A cut is seen as one: no last chunk. */
    g_assert_false(g_str_has_suffix(reader.answer, "0\r\n\r\n"));
    g_assert_cmpuint(service->n_more, >=, 1);
    g_assert_cmpuint(service->granted, ==, 3000);
    g_assert_true(service->estimated);
    /* What one read of the socket brings can go past the overshoot, no more. */
    g_assert_cmpuint(service->used, >, 3000);
    g_assert_cmpuint(service->used, <, 3000 + 100 + 64 * 1024 / 3);
    JsonObject *row = eb_test_broker_wait_audit(service->broker, 1);
    g_assert_cmpstr(eb_json_get_string(row, "decision"), ==, "broken-off");
    g_free(reader.answer);
}

/* --- a guest that wants more than its cap --- */

static gboolean
is_head_up(gpointer data)
{
    return eb_test_origin_get_count(((Service *)data)->broker->origin) > 0;
}

/* (transfer full): the answer to a request whose body comes only when its head is at the provider. */
static char *
ask_late(Service *self, const char *framing, const char *body)
{
    g_autofree char *head =
        g_strdup_printf("POST /provider/openai/v1/usage/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n"
                        "Authorization: Bearer " TEST_NONCE "\r\nConnection: close\r\n%s\r\n\r\n",
                        framing);
    Reader reader = {.fd = eb_test_broker_connect(self->broker)};

    eb_test_send(reader.fd, head, strlen(head));
    eb_test_run_until(is_head_up, self);
    eb_test_send(reader.fd, body, strlen(body));
    GThread *thread = g_thread_new("reader", read_answer, &reader);
    eb_test_run_until(is_read, &reader);
    g_thread_join(thread);
    close(reader.fd);
    return reader.answer;
}

/* What is said when the grant is there already is read before the provider has a whole request. */
static void
test_late_body(void)
{
    static const struct {
        const char *framing, *body;
        guint status;
        guint n_more;
    } cases[] = {
        {"Content-Length: 20", "{\"background\": true}", 403, 0},
        {"Transfer-Encoding: chunked",
         "6\r\n{\"back\r\n"
         "d\r\nground\": true\r\n1\r\n}\r\n0\r\n\r\n",
         403, 0},
        {"Content-Length: 22", "{\"max_tokens\": 500000}", 402, 1},
        {"Transfer-Encoding: chunked", "10\r\n{\"max_tokens\": 5\r\n6\r\n00000}\r\n0\r\n\r\n", 402, 1},
        {"Content-Length: 22", "{\"max_tokens\": 160000}", 200, 1},
        {"Transfer-Encoding: chunked", "16\r\n{\"max_tokens\": 160000}\r\n0\r\n\r\n", 200, 1},
        {"Content-Length: 20", "{\"max_tokens\": 1000}", 200, 0},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Service) service = service_new(200000, TRUE);
        g_autofree char *answer = ask_late(service, cases[i].framing, cases[i].body);

        g_test_message("%s %s", cases[i].framing, cases[i].body);
        g_assert_cmpuint(eb_test_status_of(answer), ==, cases[i].status);
        eb_test_run_until(is_used, service);
        g_assert_cmpuint(service->n_more, ==, cases[i].n_more);
        g_assert_cmpuint(service->used, ==, cases[i].status == 200 ? 42 : 0);
        g_assert_cmpuint(eb_test_origin_get_whole(service->broker->origin), ==, cases[i].status == 200 ? 1 : 0);
    }
}

/* Behind more than is looked at before the head goes up. */
static void
test_long_body(void)
{
    static const struct {
        const char *end;
        guint status;
    } cases[] = {
        {"\",\"background\":true}", 403},
        {"\",\"max_tokens\":500000}", 402},
        {"\",\"model\":\"dearer\"}", 403},
        {"\",\"max_tokens\":5}", 200},
    };
    g_autofree char *filler = g_strnfill(300 * 1024, 'x');

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Service) service = service_new(400000, TRUE);
        g_autofree char *body = g_strconcat("{\"model\":\"m\",\"prompt\":\"", filler, cases[i].end, NULL);
        g_autofree char *answer = ask(service, "/v1/usage/chat/completions", body);

        g_test_message("%s", cases[i].end);
        g_assert_cmpuint(eb_test_status_of(answer), ==, cases[i].status);
        g_assert_cmpuint(eb_test_origin_get_whole(service->broker->origin), ==, cases[i].status == 200 ? 1 : 0);
    }
}

/* What follows a body is another request's and says nothing of this one. */
static void
test_pipelined(void)
{
    g_autoptr(Service) service = service_new(50000, TRUE);
    static const char first[] = "{\"max_tokens\":100000}", second[] = "{\"stream\":true}";
    g_autofree char *body = g_strdup_printf("%sPOST /provider/openai/v1/usage/chat/completions HTTP/1.1\r\n"
                                            "Host: x\r\nContent-Length: 15\r\n\r\n%s",
                                            first, second);
    g_autofree char *request = g_strdup_printf(
        "POST /provider/openai/v1/usage/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TEST_NONCE
        "\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
        strlen(first), body);
    Reader reader = {.fd = eb_test_broker_connect(service->broker)};

    eb_test_send(reader.fd, request, strlen(request));
    GThread *thread = g_thread_new("reader", read_answer, &reader);
    eb_test_run_until(is_read, &reader);
    g_thread_join(thread);
    close(reader.fd);
    eb_test_assert_refused(reader.answer, 402, "budget-exhausted");
    g_assert_cmpuint(eb_test_origin_get_count(service->broker->origin), ==, 0);
    g_free(reader.answer);
}

static gboolean
is_whole(gpointer data)
{
    return eb_test_origin_get_whole(((Service *)data)->broker->origin) > 0;
}

/* Whoever goes away before the answer has had it made all the same. */
static void
test_cut(void)
{
    static const struct {
        const char *path, *body;
        guint64 used;
    } cases[] = {
        {"/v1/hang/chat/completions", "{\"max_tokens\":3000}", 6 + 3000},
        {"/v1/hang/chat/completions", "{\"stream\":true}", 5 + 1000},
        {"/v1/hang/chat/completions", "{}", 1000},
        {"/v1/sse/chat/completions", "{\"stream\":true}", 5 + 1000},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Service) service = service_new(500000, TRUE);
        int fd;

        g_test_message("%s %s", cases[i].path, cases[i].body);
        begin(service, cases[i].path, cases[i].body, &fd);
        eb_test_run_until(is_whole, service);
        close(fd);
        eb_test_run_until(is_used, service);
        g_assert_cmpuint(service->used, ==, cases[i].used);
        g_assert_true(service->estimated);
    }
}

/* Answers that nobody saw being made are not to be had where there is a budget. */
static void
test_kept_answers(void)
{
    g_autoptr(Service) service = service_new(500000, TRUE);
    g_autofree char *answer = eb_test_broker_ask(
        service->broker,
        "GET /provider/openai/v1/chat/completions/one HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TEST_NONCE
        "\r\nConnection: close\r\n\r\n");

    eb_test_assert_refused(answer, 403, "budget-uncounted");
    g_assert_cmpuint(eb_test_origin_get_count(service->broker->origin), ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker-budget/counted", test_counted);
    g_test_add_func("/broker-budget/exhausted", test_exhausted);
    g_test_add_func("/broker-budget/busy", test_busy);
    g_test_add_func("/broker-budget/uncounted", test_uncounted);
    g_test_add_func("/broker-budget/mid-stream", test_mid_stream);
    g_test_add_func("/broker-budget/late-body", test_late_body);
    g_test_add_func("/broker-budget/long-body", test_long_body);
    g_test_add_func("/broker-budget/pipelined", test_pipelined);
    g_test_add_func("/broker-budget/cut", test_cut);
    g_test_add_func("/broker-budget/kept-answers", test_kept_answers);
    return g_test_run();
}
