/* SPDX-License-Identifier: MIT */
/* The ledger: caps hold for requests at one time, for money, over midnight, and over a kill. */
#include "core/session/eb-budget.h"
#include "eb-test.h"

#include <string.h>

#define DAY_MS (G_GINT64_CONSTANT(24) * 60 * 60 * 1000)
#define NOON (20000 * DAY_MS + DAY_MS / 2)

typedef struct {
    EbBudgetConfig config;
    GPtrArray *providers;
    EbBudget *budget;
} Fixture;

static void
provider_free(gpointer data)
{
    EbProviderConfig *provider = data;
    g_free(provider->name);
    g_ptr_array_unref(provider->prices);
    g_free(provider);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    EbProviderConfig *provider = g_new0(EbProviderConfig, 1);
    provider->name = g_strdup("main");
    provider->prices = g_ptr_array_new_with_free_func((GDestroyNotify)eb_price_free);
    g_ptr_array_add(provider->prices, eb_price_parse("dear 10 20 1"));
    g_ptr_array_add(provider->prices, eb_price_parse("dear-mini 1 2"));
    f->providers = g_ptr_array_new_with_free_func(provider_free);
    g_ptr_array_add(f->providers, provider);
    f->config.currency = (char *)"USD";
    f->budget = eb_budget_new(&f->config, f->providers);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    eb_budget_free(f->budget);
    g_ptr_array_unref(f->providers);
}

static EbBudgetDenial last_denial;

static guint64
reserve(Fixture *f, const EbBudgetUse *use, guint64 in, guint64 out, gboolean whole, gint64 now, gint64 *hold,
        EbBudgetScope *scope)
{
    g_autoptr(EbUsageRow) row = NULL;
    guint64 tokens = eb_budget_reserve(f->budget, use, in, out, whole, now, &last_denial, &row);
    g_assert_true((tokens > 0) == (row != NULL));
    if (tokens == 0)
        *scope = last_denial.scope;
    if (row != NULL && hold != NULL)
        *hold = row->hold;
    return tokens;
}

static void
settle(Fixture *f, gint64 hold, const EbBudgetUse *use, guint64 in, guint64 out, gint64 now)
{
    EbBudgetCount count = {.in = in, .out = out};
    g_autoptr(EbUsageRow) row = eb_budget_settle(f->budget, hold, use, use->model, &count, now);
    g_assert_cmpuint(row->tokens_in, ==, in);
}

static gint64
number(Fixture *f, const EbBudgetUse *use, const char *scope, const char *member, gint64 now)
{
    g_autoptr(JsonObject) object = eb_budget_to_json(f->budget, use, now);
    return eb_json_get_int(eb_json_get_object(object, scope), member, -1);
}

/* B48: many turns at one time, of many sessions: what is granted, and what is used of it, is never more than the cap. */
static void
test_parallel(Fixture *f, gconstpointer data)
{
    gint64 holds[1000];
    guint64 granted = 0;
    guint n = 0;
    EbBudgetScope scope = EB_BUDGET_SCOPES;

    f->config.caps[EB_BUDGET_DAY].tokens = 100000;
    for (guint i = 0; i < G_N_ELEMENTS(holds); i++) {
        g_autofree char *session = g_strdup_printf("session%u", i % 7);
        const EbBudgetUse use = {session, 1, "ann", "main", "plain"};
        guint64 tokens = reserve(f, &use, 1000, 3000, i % 2 == 0, NOON, &holds[n], &scope);
        granted += tokens;
        n += tokens > 0;
    }
    g_assert_cmpuint(granted, ==, 100000);
    g_assert_cmpuint(n, ==, 25);
    g_assert_cmpint(scope, ==, EB_BUDGET_DAY);
    /* What is given back is there for others; what was used is not. */
    const EbBudgetUse use = {"session0", 1, "ann", "main", "plain"};
    for (guint i = 0; i < n; i++)
        settle(f, holds[i], &use, 1000, 1000, NOON);
    g_assert_cmpint(number(f, &use, "day", "tokens", NOON), ==, 50000);
    g_assert_cmpint(number(f, &use, "day", "held_tokens", NOON), ==, 0);
    g_assert_cmpuint(reserve(f, &use, 1000, 60000, FALSE, NOON, NULL, &scope), ==, 50000);
    g_assert_cmpuint(reserve(f, &use, 1, 1, FALSE, NOON, NULL, &scope), ==, 0);
}

/* Every scope stops what is its own and nothing else. */
static void
test_scopes(Fixture *f, gconstpointer data)
{
    static const struct {
        EbBudgetScope scope;
        EbBudgetUse other; /* not stopped by the first one's use */
    } cases[] = {
        {EB_BUDGET_TURN, {"a", 2, "ann", "main", ""}},
        {EB_BUDGET_SESSION, {"b", 1, "ann", "main", ""}},
        {EB_BUDGET_PERSON, {"a", 1, "bob", "main", ""}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(EbBudget) budget = NULL;
        const EbBudgetUse use = {"a", 1, "ann", "main", ""};
        EbBudgetScope scope = EB_BUDGET_SCOPES;
        gint64 hold = 0;
        memset(f->config.caps, 0, sizeof f->config.caps);
        f->config.caps[cases[i].scope].tokens = 5000;
        eb_budget_free(f->budget);
        f->budget = eb_budget_new(&f->config, f->providers);
        g_assert_cmpuint(reserve(f, &use, 1000, 8000, FALSE, NOON, &hold, &scope), ==, 5000);
        settle(f, hold, &use, 1000, 4500, NOON);
        g_assert_cmpuint(reserve(f, &use, 1, 1, FALSE, NOON, NULL, &scope), ==, 0);
        g_assert_cmpint(scope, ==, cases[i].scope);
        g_autofree char *text = eb_budget_describe(f->budget, &last_denial, &use, NOON);
        g_autofree char *key = g_strconcat("[budget] ", eb_budget_scope_to_string(scope), "_tokens", NULL);
        g_assert_nonnull(strstr(text, key));
        g_assert_nonnull(strstr(text, "5500 of 5000"));
        g_assert_cmpuint(reserve(f, &cases[i].other, 1000, 1000, TRUE, NOON, NULL, &scope), ==, 2000);
    }
}

static void
test_whole_and_more(Fixture *f, gconstpointer data)
{
    const EbBudgetUse use = {"a", 1, "ann", "main", ""};
    EbBudgetScope scope;
    gint64 hold = 0;

    f->config.caps[EB_BUDGET_SESSION].tokens = 10000;
    g_assert_cmpuint(reserve(f, &use, 4000, 8000, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_cmpuint(reserve(f, &use, 4000, 1000, FALSE, NOON, &hold, &scope), ==, 5000);
    g_autoptr(EbUsageRow) row = NULL;
    g_assert_cmpuint(eb_budget_extend(f->budget, hold, 3000, FALSE, &last_denial, &row), ==, 3000);
    g_assert_cmpuint(row->tokens_in, ==, 8000);
    g_clear_pointer(&row, eb_usage_row_free);
    g_assert_cmpuint(eb_budget_extend(f->budget, hold, 3000, FALSE, &last_denial, &row), ==, 2000);
    g_clear_pointer(&row, eb_usage_row_free);
    g_assert_cmpuint(eb_budget_extend(f->budget, hold, 3000, FALSE, &last_denial, &row), ==, 0);
    g_assert_cmpuint(eb_budget_extend(f->budget, hold + 77, 3000, FALSE, &last_denial, &row), ==, 0);
    /* Its broker died: all of it counts. */
    row = eb_budget_forfeit(f->budget, hold);
    g_assert_true(row->estimated);
    g_assert_cmpint(number(f, &use, "session", "tokens", NOON), ==, 10000);
    g_assert_null(eb_budget_forfeit(f->budget, hold));
}

static void
test_money(Fixture *f, gconstpointer data)
{
    const EbBudgetUse dear = {"a", 1, "ann", "main", "dear-2025"};
    const EbBudgetUse mini = {"a", 1, "ann", "main", "dear-mini-2025"};
    const EbBudgetUse unknown = {"a", 1, "ann", "main", "who-knows"};
    const EbBudgetUse unnamed = {"a", 1, "ann", "main", NULL};
    EbBudgetScope scope;
    gint64 hold = 0;

    g_assert_true(eb_money_parse("0.05", &f->config.caps[EB_BUDGET_SESSION].micros));
    /* 1000 in cost 0.01, which leaves 0.04: 2000 out at 20 a million */
    g_assert_cmpuint(reserve(f, &dear, 1000, 8000, FALSE, NOON, &hold, &scope), ==, 3000);
    g_assert_cmpuint(reserve(f, &mini, 1000, 1000, FALSE, NOON, NULL, &scope), ==, 0);
    EbBudgetCount count = {.in = 1000, .out = 1000, .cached = 500};
    g_autoptr(EbUsageRow) row = eb_budget_settle(f->budget, hold, &dear, dear.model, &count, NOON);
    /* 500 at 10, 500 at 1, 1000 at 20 */
    g_assert_cmpuint(row->micros, ==, 5000 + 500 + 20000);
    g_assert_true(eb_budget_lacks_price(f->budget, "main", "who-knows"));
    g_assert_false(eb_budget_lacks_price(f->budget, "main", "dear-2025"));
    /* A model without a price, or one that is not known yet, costs what the dearest does: 100 out are 0.002. */
    g_assert_cmpuint(reserve(f, &unknown, 0, 1226, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_cmpuint(reserve(f, &unnamed, 0, 1226, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_cmpuint(reserve(f, &unknown, 0, 100, TRUE, NOON, &hold, &scope), ==, 100);
    settle(f, hold, &unknown, 0, 100, NOON);
    g_assert_cmpuint(reserve(f, &mini, 0, 11250, TRUE, NOON, &hold, &scope), ==, 11250);
    settle(f, hold, &mini, 0, 11250, NOON);
    g_assert_cmpuint(reserve(f, &unknown, 1, 1, FALSE, NOON, NULL, &scope), ==, 0);
    g_autofree char *text = eb_budget_describe(f->budget, &last_denial, &dear, NOON);
    g_assert_nonnull(strstr(text, "0.05 of 0.05 USD"));
    g_assert_nonnull(strstr(text, "[budget] session_money"));
}

/* A broker that lies about a session of its own does not lift the caps of others. */
static void
test_huge(Fixture *f, gconstpointer data)
{
    const EbBudgetUse use = {"a", 1, "ann", "main", "dear"}, other = {"b", 1, "bob", "main", "dear"};
    EbBudgetScope scope;

    f->config.caps[EB_BUDGET_DAY].tokens = 1000;
    for (guint i = 0; i < 5; i++) {
        const EbBudgetCount count = {.in = G_MAXUINT64 / 4, .out = G_MAXUINT64 / 4};
        g_autoptr(EbUsageRow) row = eb_budget_settle(f->budget, 0, &use, "dear", &count, NOON);
        g_assert_cmpuint(reserve(f, &other, 1, 1, FALSE, NOON, NULL, &scope), ==, 0);
    }
}

static void
assert_denied(Fixture *f, const EbBudgetUse *use, EbBudgetState state, const char *text)
{
    g_autofree char *said = eb_budget_describe(f->budget, &last_denial, use, NOON);
    g_test_message("%s", said);
    g_assert_cmpint(eb_budget_judge(f->budget, &last_denial, use), ==, state);
    g_assert_nonnull(strstr(said, text));
}

/* What others only hold is no end of the budget; what does not fit even without them is. */
static void
test_temporary(Fixture *f, gconstpointer data)
{
    const EbBudgetUse use = {"a", 1, "ann", "main", "dear"};
    EbBudgetScope scope;
    gint64 first = 0, second = 0;

    f->config.caps[EB_BUDGET_SESSION].tokens = 10000;
    g_assert_cmpuint(reserve(f, &use, 1000, 8000, TRUE, NOON, &first, &scope), ==, 9000);
    g_assert_cmpuint(reserve(f, &use, 1000, 2000, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_true(last_denial.temporary);
    assert_denied(f, &use, EB_BUDGET_SET_ASIDE,
                  "used 0 of 10000 tokens, and 9000 are set aside for requests under way");
    g_assert_cmpuint(reserve(f, &use, 3000, 8000, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_false(last_denial.temporary);
    assert_denied(f, &use, EB_BUDGET_TOO_LITTLE, "[budget] session_tokens (or lower reserve_tokens)");
    g_assert_cmpuint(reserve(f, &use, 500, 500, TRUE, NOON, &second, &scope), ==, 1000);
    /* More for one: what it holds itself it cannot wait for. */
    g_autoptr(EbUsageRow) row = NULL;
    g_assert_cmpuint(eb_budget_extend(f->budget, first, 500, FALSE, &last_denial, &row), ==, 0);
    g_assert_true(last_denial.temporary);
    settle(f, second, &use, 500, 500, NOON);
    g_assert_cmpuint(eb_budget_extend(f->budget, first, 500, FALSE, &last_denial, &row), ==, 0);
    g_assert_false(last_denial.temporary);
    settle(f, first, &use, 4000, 5000, NOON);
    g_assert_cmpuint(reserve(f, &use, 1, 1, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_false(last_denial.temporary);
    assert_denied(f, &use, EB_BUDGET_USED_UP, "the budget is used up: this session used 10000 of 10000 tokens");
    /* The cap that is named is the one that did not hold it, whatever the other one says. */
    f->config.caps[EB_BUDGET_SESSION].tokens = 20000;
    g_assert_true(eb_money_parse("0.16", &f->config.caps[EB_BUDGET_SESSION].micros));
    g_assert_cmpuint(reserve(f, &use, 1000, 5000, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_true(last_denial.money);
    assert_denied(f, &use, EB_BUDGET_TOO_LITTLE,
                  "used 0.155 of 0.16 USD; an operator can raise [budget] session_money");
}

/* A new day begins at 00:00 UTC; what was set aside before it is still set aside. */
static void
test_midnight(Fixture *f, gconstpointer data)
{
    const EbBudgetUse use = {"a", 1, "ann", "main", ""};
    EbBudgetScope scope;
    gint64 hold = 0, other = 0;

    f->config.caps[EB_BUDGET_PERSON].tokens = 1000;
    g_assert_cmpuint(reserve(f, &use, 0, 600, TRUE, NOON, &hold, &scope), ==, 600);
    g_assert_cmpuint(reserve(f, &use, 0, 300, TRUE, NOON, &other, &scope), ==, 300);
    settle(f, hold, &use, 0, 600, NOON);
    g_assert_cmpuint(reserve(f, &use, 0, 700, TRUE, NOON, NULL, &scope), ==, 0);
    g_assert_cmpuint(reserve(f, &use, 0, 700, TRUE, NOON + DAY_MS, &hold, &scope), ==, 700);
    g_assert_cmpuint(reserve(f, &use, 0, 1, TRUE, NOON + DAY_MS, NULL, &scope), ==, 0);
    /* The clock of a host that is set back brings no day back. */
    g_assert_cmpuint(reserve(f, &use, 0, 1, TRUE, NOON, NULL, &scope), ==, 0);
}

static EbStore *
open_store(const char *path)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_store_open_async(path, NULL, eb_test_result_ready, &done);
    EbStore *store = eb_store_open_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return store;
}

static void
write_row(EbStore *store, EbUsageRow *row, gboolean hold)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    (hold ? eb_usage_store_hold_async : eb_usage_store_settle_async)(store, row, eb_test_result_ready, &done);
    g_assert_true(eb_usage_store_finish(store, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

/* A run was killed with a request under way: the next one takes what was set aside for used. */
static void
test_killed(Fixture *f, gconstpointer data)
{
    g_autofree char *dir = eb_test_temp_dir("budget");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    const EbBudgetUse use = {"a", 1, "ann", "main", ""};
    EbStore *store = open_store(path);

    f->config.caps[EB_BUDGET_DAY].tokens = 10000;
    for (guint i = 0; i < 3; i++) {
        EbUsageRow *row = NULL;
        g_assert_cmpuint(eb_budget_reserve(f->budget, &use, 1000, 1000, TRUE, NOON, &last_denial, &row), ==, 2000);
        gint64 hold = row->hold;
        write_row(store, row, TRUE);
        EbBudgetCount count = {.in = 10, .out = 20};
        if (i < 2)
            write_row(store, eb_budget_settle(f->budget, hold, &use, "m", &count, NOON), FALSE);
    }
    eb_store_close(store);
    g_object_unref(store);
    eb_test_drain();
    eb_budget_free(f->budget);
    f->budget = eb_budget_new(&f->config, f->providers);
    for (guint i = 0; i < 2; i++) {
        g_auto(EbTestResult) done = {0};
        g_autoptr(GError) error = NULL;
        store = open_store(path);
        eb_usage_store_load_async(store, eb_budget_day(NOON), eb_test_result_ready, &done);
        g_autoptr(GPtrArray) rows = eb_usage_store_load_finish(store, eb_test_result_wait(&done), &error);
        g_assert_no_error(error);
        for (guint k = 0; i == 0 && k < rows->len; k++)
            eb_budget_add_past(f->budget, rows->pdata[k]);
        eb_store_close(store);
        g_object_unref(store);
        eb_test_drain();
    }
    g_assert_cmpint(number(f, &use, "day", "tokens", NOON), ==, 2060);
    g_assert_cmpint(number(f, &use, "session", "tokens", NOON), ==, 2060);
    g_assert_cmpint(number(f, &use, "person", "tokens", NOON), ==, 2060);
    g_assert_cmpint(number(f, &use, "day", "tokens", NOON + DAY_MS), ==, 0);
    g_assert_cmpint(number(f, &use, "session", "tokens", NOON + DAY_MS), ==, 2060);
}

static void
test_prices(Fixture *f, gconstpointer data)
{
    static const char *const bad[] = {"",       "m",      "m 1",           "m 1 2 3 4 5", "m -1 2", "m 1 x",
                                      "m 1. 2", "m .5 2", "m 1.1234567 2", " 1 2",        "m 1  2", "m 99999999999 1"};
    guint64 micros = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_null(eb_price_parse(bad[i]));
    GPtrArray *prices = ((EbProviderConfig *)f->providers->pdata[0])->prices;
    g_assert_cmpstr(eb_price_find(prices, "dear-mini-x")->model, ==, "dear-mini");
    g_assert_cmpstr(eb_price_find(prices, "dear")->model, ==, "dear");
    g_assert_null(eb_price_find(prices, "dea"));
    g_assert_null(eb_price_find(prices, NULL));
    g_ptr_array_insert(prices, 0, eb_price_parse("* 5 5"));
    g_assert_cmpstr(eb_price_find(prices, "other")->model, ==, "*");
    g_assert_cmpstr(eb_price_find(prices, "dear-x")->model, ==, "dear");
    g_assert_true(eb_money_parse("2.5", &micros));
    g_autofree char *text = eb_money_format(micros);
    g_assert_cmpstr(text, ==, "2.50");
    g_autofree char *small = eb_money_format(1);
    g_assert_cmpstr(small, ==, "0.000001");
    /* never over, however much */
    g_assert_cmpuint(eb_price_of(eb_price_find(prices, "dear"), G_GUINT64_CONSTANT(1000000000000),
                                 G_GUINT64_CONSTANT(1000000000000), 0, 0),
                     ==, G_GUINT64_CONSTANT(30000000000000));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/budget/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("parallel", test_parallel);
    ADD("scopes", test_scopes);
    ADD("whole-and-more", test_whole_and_more);
    ADD("money", test_money);
    ADD("huge", test_huge);
    ADD("temporary", test_temporary);
    ADD("midnight", test_midnight);
    ADD("killed", test_killed);
    ADD("prices", test_prices);
    return g_test_run();
}
