/* SPDX-License-Identifier: MIT */
/* B48: real brokers of two sessions, one service with one database, and requests that race for what is left. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/broker/eb-broker-proto.h"
#include "core/session/eb-budget-desk.h"
#include "core/state/eb-store.h"
#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define CAP 20000
#define EACH 1005
#define REQUESTS 24 /* a session; each uses 42 tokens and has EACH set aside */

typedef struct {
    char *dir;
    EbConfig *config;
    EbStore *store;
    EbBudgetDesk *desk;
    GString *told;
} Service;

static void
on_exhausted(EbBudgetDesk *desk, const char *session, const char *text, gpointer user_data)
{
    g_string_append_printf(user_data, "%s: %s\n", session, text);
}

static void
service_open(Service *self, const char *budget)
{
    g_auto(EbTestResult) opened = {0};
    g_auto(EbTestResult) loaded = {0};
    g_autoptr(GError) error = NULL;

    if (self->dir == NULL)
        self->dir = eb_test_temp_dir("budget-desk");
    g_autofree char *file = g_build_filename(self->dir, "errand-box.toml", NULL);
    g_autofree char *path = g_build_filename(self->dir, "state.db", NULL);
    eb_test_write_file(file, budget);
    self->config = eb_config_load_dir(self->dir, NULL, &error);
    g_assert_no_error(error);
    eb_store_open_async(path, NULL, eb_test_result_ready, &opened);
    self->store = eb_store_open_finish(eb_test_result_wait(&opened), &error);
    g_assert_no_error(error);
    self->desk = eb_budget_desk_new(self->store, self->config);
    eb_budget_desk_load_async(self->desk, eb_test_result_ready, &loaded);
    g_assert_true(eb_budget_desk_load_finish(self->desk, eb_test_result_wait(&loaded), &error));
    self->told = g_string_new(NULL);
    g_signal_connect(self->desk, "exhausted", G_CALLBACK(on_exhausted), self->told);
}

static void
service_close(Service *self)
{
    eb_store_close(self->store);
    eb_test_drain();
    g_clear_object(&self->desk);
    g_clear_object(&self->store);
    g_clear_object(&self->config);
    g_string_free(self->told, TRUE);
}

static EbTestBroker *
session_new(Service *service, const char *id, const char *person)
{
    EbTestBroker *broker = eb_test_broker_prepare(NULL);

    broker->rules->budget = TRUE;
    broker->rules->reserve = eb_config_get_budget(service->config)->reserve;
    eb_test_broker_start(broker);
    eb_budget_client_set_turn(eb_budget_desk_serve(service->desk, G_OBJECT(broker->ctl), id), 1, person);
    return broker;
}

typedef struct {
    EbTestBroker *broker;
    const char *path;
    const char *body; /* (nullable): one that streams */
    GThread *thread;
    char *answer;
    gint *left;
} Request;

static gpointer
run_request(gpointer data)
{
    Request *self = data;
    const char *body = self->body != NULL ? self->body : "{\"stream\":true}";
    g_autofree char *text =
        g_strdup_printf("POST /provider/openai/v1%s/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n"
                        "Authorization: Bearer " TEST_NONCE "\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                        self->path, strlen(body), body);
    self->answer = eb_test_broker_ask(self->broker, text);
    g_atomic_int_add(self->left, -1);
    g_main_context_wakeup(NULL);
    return NULL;
}

static gboolean
is_zero(gpointer data)
{
    return g_atomic_int_get((gint *)data) == 0;
}

static gint64
number(Service *self, const char *scope, const char *member)
{
    g_autoptr(JsonObject) object = eb_budget_desk_to_json(self->desk, "one", 1, "ann");
    return eb_json_get_int(eb_json_get_object(object, scope), member, -1);
}

static gboolean
nothing_held(gpointer data)
{
    return number(data, "day", "held_tokens") == 0;
}

/* How many were answered; the others were refused at the cap, and no more than the cap was ever used or promised. */
static guint
race(Service *service, EbTestBroker *const *brokers)
{
    Request requests[2 * REQUESTS];
    gint left = G_N_ELEMENTS(requests);
    guint answered = 0;

    for (guint i = 0; i < G_N_ELEMENTS(requests); i++) {
        requests[i] = (Request){.broker = brokers[i % 2], .path = "/usage", .left = &left};
        requests[i].thread = g_thread_new("request", run_request, &requests[i]);
    }
    while (!is_zero(&left)) {
        g_assert_cmpint(number(service, "day", "tokens") + number(service, "day", "held_tokens"), <=, CAP);
        g_main_context_iteration(NULL, TRUE);
    }
    for (guint i = 0; i < G_N_ELEMENTS(requests); i++) {
        g_thread_join(requests[i].thread);
        guint status = eb_test_status_of(requests[i].answer);
        g_assert_true(status == 200 || status == 402);
        answered += status == 200;
        g_assert_null(strstr(requests[i].answer, TEST_KEY));
        g_free(requests[i].answer);
    }
    eb_test_run_until(nothing_held, service);
    return answered;
}

static void
test_race(void)
{
    Service service = {0};

    service_open(&service, "[budget]\nday_tokens = 20000\nreserve_tokens = 1000\n");
    {
        g_autoptr(EbTestBroker) one = session_new(&service, "one", "ann");
        g_autoptr(EbTestBroker) two = session_new(&service, "two", "bob");
        EbTestBroker *const brokers[] = {one, two};
        guint answered = race(&service, brokers);
        /* Those that found no room waited for those before them. */
        g_assert_cmpuint(answered, ==, 2 * REQUESTS);
        g_assert_cmpint(number(&service, "day", "tokens"), ==, 42 * answered);
    }
    service_close(&service);
    /* What is left is less than a request needs: both are told, once, by whichever request was first. */
    service_open(&service, "[budget]\nday_tokens = 300\nreserve_tokens = 1000\n");
    {
        g_autoptr(EbTestBroker) one = session_new(&service, "one", "ann");
        g_autoptr(EbTestBroker) two = session_new(&service, "two", "bob");
        EbTestBroker *const brokers[] = {one, two};
        g_assert_cmpint(number(&service, "day", "tokens"), >=, 42 * (CAP / EACH));
        g_assert_cmpuint(race(&service, brokers), ==, 0);
        g_auto(GStrv) lines = g_strsplit(service.told->str, "\n", -1);
        g_assert_cmpuint(g_strv_length(lines), ==, 3);
        g_assert_nonnull(strstr(service.told->str, "one: the budget is used up"));
        g_assert_nonnull(strstr(service.told->str, "two: the budget is used up"));
        g_assert_nonnull(strstr(service.told->str, "[budget] day_tokens"));
        g_assert_null(strstr(service.told->str, TEST_KEY));
    }
    service_close(&service);
    g_free(service.dir);
}

static gboolean
has_held(gpointer data)
{
    return number(data, "session", "held_tokens") > 0;
}

static gboolean
has_died(gpointer data)
{
    return ((EbTestBroker *)data)->n_died > 0;
}

/* A broker that dies with a request under way: all that was set aside for it counts, now and after a restart. */
static void
test_died(void)
{
    Service service = {0};

    service_open(&service, "[budget]\nsession_tokens = 20000\nreserve_tokens = 1000\n");
    {
        g_autoptr(EbTestBroker) one = session_new(&service, "one", "ann");
        gint left = 1;
        Request request = {.broker = one, .path = "/hang", .left = &left};
        request.thread = g_thread_new("request", run_request, &request);
        eb_test_run_until(has_held, &service);
        gint64 held = number(&service, "session", "held_tokens");
        g_assert_cmpint(held, >=, 1000);
        kill(eb_broker_ctl_get_pid(one->ctl), SIGKILL);
        eb_test_run_until(has_died, one);
        eb_test_run_until(is_zero, &left);
        g_thread_join(request.thread);
        g_free(request.answer);
        g_assert_cmpint(number(&service, "session", "held_tokens"), ==, 0);
        g_assert_cmpint(number(&service, "session", "tokens"), ==, held);
    }
    service_close(&service);
    service_open(&service, "[budget]\nsession_tokens = 20000\nreserve_tokens = 1000\n");
    g_assert_cmpint(number(&service, "session", "tokens"), >=, 1000);
    g_assert_cmpint(number(&service, "session", "held_tokens"), ==, 0);
    service_close(&service);
    g_free(service.dir);
}

static gpointer
count_rows(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) rows = eb_store_prepare(db, "SELECT count(*) FROM usage", error);

    g_assert_nonnull(rows);
    g_assert_cmpint(sqlite3_step(rows), ==, SQLITE_ROW);
    return GINT_TO_POINTER(sqlite3_column_int(rows, 0));
}

static guint
rows_of_usage(Service *service)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_store_run_async(service->store, FALSE, count_rows, NULL, NULL, NULL, NULL, eb_test_result_ready, &done);
    gpointer count = eb_store_run_finish(service->store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return GPOINTER_TO_UINT(count);
}

/*
 * A broker that its guest took over reports as fast as it can: others have the database all the same, nothing of it is
 * lost, and what it calls its models does not fill the disk.
 */
static void
test_flood(void)
{
    enum { FLOOD = 6000, EACH_USED = 3 };
    Service service = {0};

    service_open(&service, "[budget]\nday_tokens = 2000000\nreserve_tokens = 1000\n");
    {
        g_autoptr(EbTestBroker) one = session_new(&service, "one", "ann");
        g_auto(EbTestResult) other = {0};
        g_autoptr(GError) error = NULL;
        gint left = 1;
        Request request = {.broker = one, .path = "/usage", .left = &left};

        for (guint i = 0; i < FLOOD; i++) {
            g_autoptr(JsonObject) told = json_object_new();
            g_autofree char *model = g_strdup_printf("model-%u", i);
            json_object_set_int_member(told, "id", 1000000 + i);
            json_object_set_string_member(told, "provider", "openai");
            json_object_set_string_member(told, "model", model);
            json_object_set_int_member(told, "tokens_out", EACH_USED);
            g_signal_emit_by_name(one->ctl, "budget", EB_BROKER_MSG_USED, told);
        }
        EbUsageRow *row = eb_usage_row_new("two", 1, 0, "bob", "openai", "m");
        row->hold = 99999;
        eb_usage_store_hold_async(service.store, row, eb_test_result_ready, &other);
        eb_usage_store_finish(service.store, eb_test_result_wait(&other), &error);
        g_assert_no_error(error);
        /* Its own turn comes when all of that is written down, and no request waits for that longer than it may. */
        for (guint status = 503; status == 503; left = 1) {
            request.thread = g_thread_new("request", run_request, &request);
            eb_test_run_until(is_zero, &left);
            g_thread_join(request.thread);
            status = eb_test_status_of(request.answer);
            g_assert_true(status == 200 || status == 503);
            g_free(request.answer);
        }
        eb_test_run_until(nothing_held, &service);
        g_assert_cmpint(number(&service, "day", "tokens"), ==, FLOOD * EACH_USED + 42);
        g_assert_cmpuint(rows_of_usage(&service), <=, EB_BUDGET_MAX_MODELS + 1);
    }
    service_close(&service);
    service_open(&service, "[budget]\nday_tokens = 2000000\nreserve_tokens = 1000\n");
    g_assert_cmpint(number(&service, "day", "tokens"), ==, FLOOD * EACH_USED + 42);
    service_close(&service);
    g_free(service.dir);
}

static EbTestBroker *
session_with_hang(Service *service, int *hang)
{
    static const char HANG[] = "POST /provider/openai/v1/hang/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n"
                               "Authorization: Bearer " TEST_NONCE "\r\nContent-Length: 15\r\n\r\n{\"stream\":true}";
    EbTestBroker *broker = session_new(service, "one", "ann");

    *hang = eb_test_broker_connect(broker);
    eb_test_send(*hang, HANG, strlen(HANG));
    eb_test_run_until(has_held, service);
    return broker;
}

static gboolean
one_is_answered(gpointer data)
{
    return g_atomic_int_get((gint *)data) <= EB_BUDGET_MAX_OWN_WAITS;
}

static void
raise_caps(Service *service, const char *budget)
{
    g_autofree char *file = g_build_filename(service->dir, "errand-box.toml", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfig) raised = NULL;

    eb_test_write_file(file, budget);
    raised = eb_config_load_dir(service->dir, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(eb_budget_desk_take_config(service->desk, raised, &error));
    g_assert_no_error(error);
}

/*
 * What is left is set aside for a request that hangs: others wait, and no more of them than are let; a cap that is raised
 * lets them through, as many at a time as fit.
 */
static void
test_waits(void)
{
    enum { N = EB_BUDGET_MAX_OWN_WAITS + 1 };
    Service service = {0};
    Request requests[N];
    gint left = N;
    guint busy = 0, answered = 0;
    int hang;

    service_open(&service, "[budget]\nsession_tokens = 20000\nreserve_tokens = 12000\n");
    {
        g_autoptr(EbTestBroker) one = session_with_hang(&service, &hang);
        for (guint i = 0; i < N; i++) {
            requests[i] = (Request){.broker = one, .path = "/usage", .body = "{\"max_tokens\":12000}", .left = &left};
            requests[i].thread = g_thread_new("request", run_request, &requests[i]);
        }
        /* One more than may wait: it is told at once to come again. */
        eb_test_run_until(one_is_answered, &left);
        g_assert_nonnull(strstr(service.told->str, "set aside for other requests just now"));
        raise_caps(&service, "[budget]\nsession_tokens = 60000\nreserve_tokens = 12000\n");
        eb_test_run_until(is_zero, &left);
        close(hang);
        for (guint i = 0; i < N; i++) {
            g_thread_join(requests[i].thread);
            guint status = eb_test_status_of(requests[i].answer);
            busy += status == 503 && strstr(requests[i].answer, "budget-busy") != NULL;
            answered += status == 200;
            g_free(requests[i].answer);
        }
        g_assert_cmpuint(busy, ==, 1);
        g_assert_cmpuint(answered, ==, EB_BUDGET_MAX_OWN_WAITS);
        g_assert_cmpint(number(&service, "session", "max_tokens"), ==, 60000);
        eb_test_run_until(nothing_held, &service);
    }
    service_close(&service);
    g_free(service.dir);
}

/* A broker that was started without a cap does not ask: the first one takes a restart. */
static void
test_first_cap(void)
{
    Service service = {0};

    service_open(&service, "");
    {
        g_autoptr(GError) error = NULL;
        g_autofree char *file = g_build_filename(service.dir, "errand-box.toml", NULL);
        eb_test_write_file(file, "[budget]\nsession_tokens = 40000\n");
        g_autoptr(EbConfig) first = eb_config_load_dir(service.dir, NULL, &error);
        g_assert_false(eb_budget_desk_take_config(service.desk, first, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "budget.restart", "takes a restart");
    }
    service_close(&service);
    g_free(service.dir);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/session-budget/race", test_race);
    g_test_add_func("/session-budget/waits", test_waits);
    g_test_add_func("/session-budget/first-cap", test_first_cap);
    g_test_add_func("/session-budget/died", test_died);
    g_test_add_func("/session-budget/flood", test_flood);
    return g_test_run();
}
