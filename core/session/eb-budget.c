/* SPDX-License-Identifier: MIT */
#include "core/session/eb-budget.h"

#include <string.h>

#define DAY_MS (G_GINT64_CONSTANT(24) * 60 * 60 * 1000)
#define MILLION G_GUINT64_CONSTANT(1000000)

typedef struct {
    gint64 day; /* of a person's and the day's: the sum ends with it */
    guint64 tokens, micros;
    guint64 held_tokens, held_micros;
} Sum;

typedef struct {
    EbUsageRow *row; /* whose it is; tokens_in and micros are what is set aside */
} Hold;

struct _EbBudget {
    const EbBudgetConfig *config;
    GPtrArray *providers; /* (element-type EbProviderConfig) */
    GHashTable *sums;     /* (utf8 -> Sum): sessions that were, people, turns that go on, one day */
    GHashTable *holds;    /* (gint64 -> Hold): requests under way, which the brokers bound */
    gint64 last_hold;
    gint64 day;
};

static void
hold_free(gpointer data)
{
    Hold *hold = data;

    eb_usage_row_free(hold->row);
    g_free(hold);
}

gboolean
eb_budget_is_capped(const EbBudgetConfig *config)
{
    for (guint i = 0; i < EB_BUDGET_SCOPES; i++)
        if (config->caps[i].tokens > 0 || config->caps[i].micros > 0)
            return TRUE;
    return FALSE;
}

gboolean
eb_budget_caps_money(const EbBudgetConfig *config)
{
    for (guint i = 0; i < EB_BUDGET_SCOPES; i++)
        if (config->caps[i].micros > 0)
            return TRUE;
    return FALSE;
}

gint64
eb_budget_day(gint64 now_ms)
{
    return now_ms / DAY_MS;
}

EbBudget *
eb_budget_new(const EbBudgetConfig *config, GPtrArray *providers)
{
    EbBudget *self = g_new0(EbBudget, 1);

    self->config = config;
    self->providers = g_ptr_array_ref(providers);
    self->sums = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->holds = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, hold_free);
    return self;
}

void
eb_budget_set_config(EbBudget *self, const EbBudgetConfig *config, GPtrArray *providers)
{
    self->config = config;
    g_ptr_array_ref(providers);
    g_ptr_array_unref(self->providers);
    self->providers = providers;
}

void
eb_budget_free(EbBudget *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->providers);
    g_hash_table_unref(self->holds);
    g_hash_table_unref(self->sums);
    g_free(self);
}

/* --- sums --- */

static char *
key_of(EbBudgetScope scope, const char *session, guint turn, const char *person)
{
    switch (scope) {
    case EB_BUDGET_TURN:
        return g_strdup_printf("t%s:%u", session, turn);
    case EB_BUDGET_SESSION:
        return g_strdup_printf("s%s", session);
    case EB_BUDGET_PERSON:
        return g_strdup_printf("p%s", person);
    case EB_BUDGET_DAY:
    case EB_BUDGET_SCOPES:
    default:
        return g_strdup("d");
    }
}

static Sum *
sum_of(EbBudget *self, EbBudgetScope scope, const char *session, guint turn, const char *person)
{
    g_autofree char *key = key_of(scope, session, turn, person);
    Sum *sum = g_hash_table_lookup(self->sums, key);

    if (sum == NULL) {
        sum = g_new0(Sum, 1);
        sum->day = scope == EB_BUDGET_PERSON || scope == EB_BUDGET_DAY ? self->day : 0;
        g_hash_table_insert(self->sums, g_steal_pointer(&key), sum);
    }
    return sum;
}

/* What is set aside over midnight stays set aside; what was used before it is of yesterday. */
static void
turn_day(EbBudget *self, gint64 day)
{
    GHashTableIter iter;
    gpointer value;

    if (day <= self->day)
        return;
    self->day = day;
    g_hash_table_iter_init(&iter, self->sums);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Sum *sum = value;
        if (sum->day == 0)
            continue;
        sum->day = day;
        sum->tokens = sum->micros = 0;
        if (sum->held_tokens == 0 && sum->held_micros == 0)
            g_hash_table_iter_remove(&iter);
    }
}

static void
forget_old_turns(EbBudget *self, const char *session, guint turn)
{
    /* A turn that is over has nothing set aside when the next begins but what it left running. */
    for (guint back = 1; back <= 2 && turn > back; back++) {
        g_autofree char *key = key_of(EB_BUDGET_TURN, session, turn - back, NULL);
        const Sum *sum = g_hash_table_lookup(self->sums, key);
        if (sum != NULL && sum->held_tokens == 0)
            g_hash_table_remove(self->sums, key);
    }
}

/* A sum that began anew beyond its type would lift every cap; two of these can still be added up. */
static guint64
add(guint64 sum, guint64 more)
{
    return MIN(sum, (guint64)G_MAXINT64) + MIN(more, (guint64)G_MAXINT64 - MIN(sum, (guint64)G_MAXINT64));
}

static gboolean
counts(EbBudgetScope scope, const char *person)
{
    return scope != EB_BUDGET_PERSON || (person != NULL && *person != '\0');
}

static void
add_used(EbBudget *self, EbBudgetScope scope, const EbUsageRow *row, guint64 tokens, guint64 micros)
{
    if (!counts(scope, row->person))
        return;
    if ((scope == EB_BUDGET_PERSON || scope == EB_BUDGET_DAY) && row->day != self->day)
        return;
    Sum *sum = sum_of(self, scope, row->session, row->turn, row->person);
    sum->tokens = add(sum->tokens, tokens);
    sum->micros = add(sum->micros, micros);
}

void
eb_budget_add_past(EbBudget *self, const EbUsageRow *row)
{
    turn_day(self, row->day);
    for (guint i = EB_BUDGET_SESSION; i < EB_BUDGET_SCOPES; i++)
        add_used(self, (EbBudgetScope)i, row, row->tokens_in + row->tokens_out, row->micros);
}

static void
set_aside(EbBudget *self, const EbUsageRow *row, guint64 tokens, guint64 micros, gboolean back)
{
    for (guint i = 0; i < EB_BUDGET_SCOPES; i++) {
        if (!counts((EbBudgetScope)i, row->person))
            continue;
        Sum *sum = sum_of(self, (EbBudgetScope)i, row->session, row->turn, row->person);
        sum->held_tokens = back ? sum->held_tokens - MIN(tokens, sum->held_tokens) : add(sum->held_tokens, tokens);
        sum->held_micros = back ? sum->held_micros - MIN(micros, sum->held_micros) : add(sum->held_micros, micros);
    }
}

/* --- prices --- */

/* (nullable) */
static GPtrArray *
prices_of(EbBudget *self, const char *provider)
{
    for (guint i = 0; i < self->providers->len; i++) {
        const EbProviderConfig *one = self->providers->pdata[i];
        if (g_strcmp0(one->name, provider) == 0)
            return one->prices;
    }
    return NULL;
}

/* A guest chooses the model, and may not have named it yet: one that has no price is as dear as the dearest. */
static const EbPrice *
price_of(EbBudget *self, const char *provider, const char *model)
{
    GPtrArray *prices = prices_of(self, provider);
    const EbPrice *price = eb_price_find(prices, model);

    return price != NULL ? price : eb_price_dearest(prices);
}

gboolean
eb_budget_lacks_price(EbBudget *self, const char *provider, const char *model)
{
    return eb_budget_caps_money(self->config) && eb_price_find(prices_of(self, provider), model) == NULL;
}

/* --- setting aside --- */

static guint64
left_of(guint64 cap, guint64 used, guint64 held)
{
    return cap == 0 ? G_MAXUINT64 : cap - MIN(used + held, cap);
}

/* What a request may have. */
typedef struct {
    guint64 output; /* tokens */
    EbBudgetScope scope;
    gboolean money; /* that cap's money is what allows so few */
} Room;

/*
 * Output tokens that can be had beside @in of the input, by the cap that allows the fewest. @alone: if nothing were set
 * aside but for @row itself.
 */
static Room
room_for(EbBudget *self, const EbUsageRow *row, guint64 in, const EbPrice *price, gboolean alone)
{
    Room least = {G_MAXUINT64, EB_BUDGET_SESSION, FALSE};
    guint64 cost = price != NULL ? eb_price_of(price, in, 0, 0, 0) : 0;

    for (guint i = 0; i < EB_BUDGET_SCOPES; i++) {
        if (!counts((EbBudgetScope)i, row->person))
            continue;
        const Sum *sum = sum_of(self, (EbBudgetScope)i, row->session, row->turn, row->person);
        guint64 tokens = left_of(self->config->caps[i].tokens, sum->tokens, alone ? row->tokens_in : sum->held_tokens);
        guint64 micros = left_of(self->config->caps[i].micros, sum->micros, alone ? row->micros : sum->held_micros);
        guint64 room = tokens > in ? tokens - in : 0, paid = G_MAXUINT64;
        if (price != NULL && micros != G_MAXUINT64)
            paid = micros <= cost ? 0 : price->output == 0 ? G_MAXUINT64 : (micros - cost) * MILLION / price->output;
        /* Money that is used up stops what has no price too: nobody could say what it costs. */
        if (micros == 0)
            paid = 0;
        if (MIN(room, paid) < least.output)
            least = (Room){MIN(room, paid), (EbBudgetScope)i, paid < room};
    }
    return least;
}

/* Tokens granted of @out, 0 = none. */
static guint64
fit(EbBudget *self, const EbUsageRow *row, guint64 in, guint64 out, gboolean whole, const EbPrice *price,
    EbBudgetDenial *denial)
{
    Room room = room_for(self, row, in, price, FALSE);

    if (room.output > 0 && (!whole || room.output >= out))
        return MIN(out, room.output);
    Room alone = room_for(self, row, in, price, TRUE);
    *denial = (EbBudgetDenial){.scope = room.scope,
                               .money = room.money,
                               .temporary = alone.output > 0 && (!whole || alone.output >= out),
                               .gains = alone.output > room.output};
    return 0;
}

static EbUsageRow *
copy_row(const EbUsageRow *row)
{
    EbUsageRow *copy = eb_usage_row_new(row->session, row->turn, row->day, row->person, row->provider, row->model);

    copy->hold = row->hold;
    copy->tokens_in = row->tokens_in;
    copy->micros = row->micros;
    return copy;
}

guint64
eb_budget_reserve(EbBudget *self, const EbBudgetUse *use, guint64 in, guint64 out, gboolean whole, gint64 now_ms,
                  EbBudgetDenial *denial, EbUsageRow **row)
{
    gint64 day = eb_budget_day(now_ms);
    g_autoptr(EbUsageRow) mine =
        eb_usage_row_new(use->session, use->turn, MAX(day, self->day), use->person, use->provider, use->model);
    const EbPrice *price = price_of(self, use->provider, use->model);
    EbBudgetDenial none = {0};

    *row = NULL;
    turn_day(self, day);
    forget_old_turns(self, use->session, use->turn);
    /* A request without an answer needs room for one token of it all the same. */
    guint64 granted = fit(self, mine, in, MAX(out, 1), whole, price, &none);
    if (granted == 0) {
        *denial = none;
        return 0;
    }
    out = MIN(out, granted);
    mine->hold = ++self->last_hold;
    mine->tokens_in = in + out;
    mine->micros = price != NULL ? eb_price_of(price, in, out, 0, 0) : 0;
    set_aside(self, mine, mine->tokens_in, mine->micros, FALSE);
    *row = copy_row(mine);
    Hold *hold = g_new0(Hold, 1);
    hold->row = g_steal_pointer(&mine);
    g_hash_table_insert(self->holds, &hold->row->hold, hold);
    return MAX(in + out, 1);
}

guint64
eb_budget_extend(EbBudget *self, gint64 hold_id, guint64 tokens, gboolean whole, EbBudgetDenial *denial,
                 EbUsageRow **row)
{
    Hold *hold = g_hash_table_lookup(self->holds, &hold_id);

    *row = NULL;
    *denial = (EbBudgetDenial){.scope = EB_BUDGET_SESSION};
    if (hold == NULL)
        return 0;
    const EbPrice *price = price_of(self, hold->row->provider, hold->row->model);
    tokens = fit(self, hold->row, 0, MAX(tokens, 1), whole, price, denial);
    if (tokens == 0)
        return 0;
    guint64 micros = price != NULL ? eb_price_of(price, 0, tokens, 0, 0) : 0;
    set_aside(self, hold->row, tokens, micros, FALSE);
    hold->row->tokens_in += tokens;
    hold->row->micros += micros;
    *row = copy_row(hold->row);
    return tokens;
}

/* --- settling --- */

/* (transfer full) (nullable) */
static EbUsageRow *
take_hold(EbBudget *self, gint64 hold_id)
{
    Hold *hold = g_hash_table_lookup(self->holds, &hold_id);

    if (hold == NULL)
        return NULL;
    EbUsageRow *row = copy_row(hold->row);
    set_aside(self, row, row->tokens_in, row->micros, TRUE);
    g_hash_table_remove(self->holds, &hold_id);
    return row;
}

static void
book(EbBudget *self, EbUsageRow *row)
{
    for (guint i = 0; i < EB_BUDGET_SCOPES; i++)
        add_used(self, (EbBudgetScope)i, row, row->tokens_in + row->tokens_out, row->micros);
}

EbUsageRow *
eb_budget_settle(EbBudget *self, gint64 hold_id, const EbBudgetUse *use, const char *model, const EbBudgetCount *count,
                 gint64 now_ms)
{
    EbUsageRow *row = hold_id != 0 ? take_hold(self, hold_id) : NULL;
    gint64 day = eb_budget_day(now_ms);

    turn_day(self, day);
    if (row == NULL)
        row = eb_usage_row_new(use->session, use->turn, MAX(day, self->day), use->person, use->provider, use->model);
    if (model != NULL && *model != '\0') {
        g_free(row->model);
        row->model = g_strdup(model);
    }
    const EbPrice *price = price_of(self, row->provider, row->model);
    row->tokens_in = count->in;
    row->tokens_out = count->out;
    row->tokens_cached = count->cached;
    row->estimated = count->estimated;
    row->micros = price != NULL ? eb_price_of(price, count->in, count->out, count->cached, count->written) : 0;
    /* It is charged to the day it ends on, so that yesterday's cap is nothing to go by any more. */
    row->day = self->day;
    book(self, row);
    return row;
}

EbUsageRow *
eb_budget_forfeit(EbBudget *self, gint64 hold_id)
{
    EbUsageRow *row = take_hold(self, hold_id);

    if (row == NULL)
        return NULL;
    row->estimated = TRUE;
    row->day = self->day;
    book(self, row);
    return row;
}

/* --- telling --- */

static const Sum *
sum_of_use(EbBudget *self, EbBudgetScope scope, const EbBudgetUse *use)
{
    return sum_of(self, scope, use->session, use->turn, use->person != NULL ? use->person : "");
}

EbBudgetState
eb_budget_judge(EbBudget *self, const EbBudgetDenial *denial, const EbBudgetUse *use)
{
    const Sum *sum = sum_of_use(self, denial->scope, use);
    gboolean full = denial->money ? sum->micros >= self->config->caps[denial->scope].micros
                                  : sum->tokens >= self->config->caps[denial->scope].tokens;

    return full ? EB_BUDGET_USED_UP : denial->temporary ? EB_BUDGET_SET_ASIDE : EB_BUDGET_TOO_LITTLE;
}

/* (transfer full): "0.04 of 0.05 USD", "1200 of 5000 tokens", and what of them others have set aside */
static char *
describe_sum(EbBudget *self, const EbBudgetDenial *denial, const Sum *sum)
{
    guint64 cap = denial->money ? self->config->caps[denial->scope].micros : self->config->caps[denial->scope].tokens;
    guint64 held = denial->money ? sum->held_micros : sum->held_tokens;
    g_autofree char *used =
        denial->money ? eb_money_format(sum->micros) : g_strdup_printf("%" G_GUINT64_FORMAT, sum->tokens);
    g_autofree char *most = denial->money ? eb_money_format(cap) : g_strdup_printf("%" G_GUINT64_FORMAT, cap);
    g_autofree char *aside = denial->money ? eb_money_format(held) : g_strdup_printf("%" G_GUINT64_FORMAT, held);
    const char *unit = denial->money ? self->config->currency : "tokens";

    return held > 0
               ? g_strdup_printf("%s of %s %s, and %s are set aside for requests under way", used, most, unit, aside)
               : g_strdup_printf("%s of %s %s", used, most, unit);
}

char *
eb_budget_describe(EbBudget *self, const EbBudgetDenial *denial, const EbBudgetUse *use, gint64 now_ms)
{
    static const char *const who[] = {"this turn", "this session", "this person, today",
                                      "all sessions together, today"};
    static const char *const states[] = {
        [EB_BUDGET_USED_UP] = "the budget is used up",
        [EB_BUDGET_TOO_LITTLE] = "what is left of the budget is too little for the next request",
        [EB_BUDGET_SET_ASIDE] = "what is left of the budget is set aside for other requests just now",
    };
    EbBudgetState state = eb_budget_judge(self, denial, use);
    g_autofree char *sum = describe_sum(self, denial, sum_of_use(self, denial->scope, use));
    gboolean daily = denial->scope == EB_BUDGET_PERSON || denial->scope == EB_BUDGET_DAY;

    return g_strdup_printf("%s: %s used %s; %san operator can raise [budget] %s_%s%s and reload the service%s",
                           states[state], who[denial->scope], sum,
                           state == EB_BUDGET_SET_ASIDE ? "agents try again by themselves, and " : "",
                           eb_budget_scope_to_string(denial->scope), denial->money ? "money" : "tokens",
                           state == EB_BUDGET_TOO_LITTLE ? " (or lower reserve_tokens)" : "",
                           daily ? "; at 00:00 UTC a new day begins" : "");
}

static void
add_scope(EbBudget *self, JsonObject *object, EbBudgetScope scope, const EbBudgetUse *use)
{
    const Sum *sum = sum_of(self, scope, use->session, use->turn, use->person);
    JsonObject *one = json_object_new();
    g_autofree char *money = eb_money_format(sum->micros);

    json_object_set_int_member(one, "tokens", (gint64)sum->tokens);
    json_object_set_int_member(one, "held_tokens", (gint64)sum->held_tokens);
    json_object_set_string_member(one, "money", money);
    if (self->config->caps[scope].tokens > 0)
        json_object_set_int_member(one, "max_tokens", (gint64)self->config->caps[scope].tokens);
    else
        json_object_set_null_member(one, "max_tokens");
    if (self->config->caps[scope].micros > 0) {
        g_autofree char *most = eb_money_format(self->config->caps[scope].micros);
        json_object_set_string_member(one, "max_money", most);
    } else {
        json_object_set_null_member(one, "max_money");
    }
    json_object_set_object_member(object, eb_budget_scope_to_string(scope), one);
}

JsonObject *
eb_budget_to_json(EbBudget *self, const EbBudgetUse *use, gint64 now_ms)
{
    static const EbBudgetUse nobody = {.session = "", .person = ""};
    JsonObject *object = json_object_new();

    turn_day(self, eb_budget_day(now_ms));
    json_object_set_string_member(object, "currency", self->config->currency);
    for (guint i = 0; i < EB_BUDGET_SCOPES; i++)
        if (i == EB_BUDGET_DAY || (use != NULL && counts((EbBudgetScope)i, use->person)))
            add_scope(self, object, (EbBudgetScope)i, use != NULL ? use : &nobody);
    return object;
}

char *
eb_budget_json_to_text(JsonObject *object)
{
    static const char *const who[] = {"this turn", "this session", "this person today", "all sessions today"};
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < EB_BUDGET_SCOPES; i++) {
        JsonObject *one = eb_json_get_object(object, eb_budget_scope_to_string((EbBudgetScope)i));
        gint64 most = eb_json_get_int(one, "max_tokens", 0);
        const char *most_money = eb_json_get_string(one, "max_money");
        const char *money = eb_json_get_string(one, "money");
        if (one == NULL || (most == 0 && most_money == NULL && i != EB_BUDGET_SESSION && i != EB_BUDGET_DAY))
            continue;
        g_string_append_printf(text, "%s%s %" G_GINT64_FORMAT, text->len > 0 ? "; " : "", who[i],
                               eb_json_get_int(one, "tokens", 0));
        if (most > 0)
            g_string_append_printf(text, " of %" G_GINT64_FORMAT, most);
        g_string_append(text, " tokens");
        if (money != NULL && (most_money != NULL || strcmp(money, "0.00") != 0))
            g_string_append_printf(text, ", %s%s%s %s", money, most_money != NULL ? " of " : "",
                                   most_money != NULL ? most_money : "", eb_json_get_string(object, "currency"));
    }
    return g_string_free(text, FALSE);
}
