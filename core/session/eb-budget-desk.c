/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-budget-desk.h"

#include "core/base/eb-source.h"
#include "core/broker/eb-broker-ctl.h"
#include "core/broker/eb-broker-proto.h"

#include <string.h>

/* Sessions and caps that people were told of; then it begins anew, and some are told twice. */
#define MAX_TOLD 4096
/* What one broker may have with the database at a time: the queue there is everybody's, and holds a thousand. */
#define MAX_WRITING 32
/* What waits for that: a grant and a report of each request that can be open. */
#define MAX_WAITING (2 * EB_BUDGET_MAX_OPEN)

struct _EbBudgetDesk {
    GObject parent_instance;
    EbStore *store;
    EbConfig *config;       /* with the caps that hold */
    EbConfig *started_with; /* what the brokers go by */
    EbBudget *budget;
    GHashTable *told; /* (set of utf8) */
    GQueue waits;     /* (element-type Wait): requests that fit once others give back what they hold, oldest first */
    gboolean serving; /* the waits are being looked at */
};

G_DEFINE_FINAL_TYPE(EbBudgetDesk, eb_budget_desk, G_TYPE_OBJECT)

static guint signal_exhausted;

/* What is to be written down for one broker. */
typedef struct {
    EbBudgetClient *client;
    EbUsageRow *row; /* (nullable): NULL when it is being written */
    gboolean hold;   /* what a request is granted; or what one used */
    guint64 id;      /* of the request that waits for it */
    guint64 tokens;
} Writing;

/* A request of a broker's. */
typedef struct {
    gint64 hold;
    gboolean writing; /* a grant of it is being written down: it has nothing to ask for meanwhile */
} Open;

struct _EbBudgetClient {
    int ref_count;
    EbBudgetDesk *desk;
    EbBrokerCtl *broker; /* (unowned) (nullable): NULL when it is gone */
    char *session;
    guint turn;
    char *person;
    GHashTable *open;   /* (guint64 of the broker -> Open), at most EB_BUDGET_MAX_OPEN */
    GHashTable *models; /* (set of utf8): as rows name them, at most EB_BUDGET_MAX_MODELS */
    GQueue waiting;     /* (element-type Writing), at most MAX_WAITING */
    guint n_writing;    /* at most MAX_WRITING */
    guint n_waits;      /* at most EB_BUDGET_MAX_OWN_WAITS */
};

/* A request, or one for more, that waits. */
typedef struct {
    EbBudgetClient *client; /* (owned) */
    guint64 id;
    JsonObject *asked; /* (owned) */
    gboolean more;
    GSource *timer;
} Wait;

static gint64
now_ms(void)
{
    return g_get_real_time() / 1000;
}

static EbBudgetClient *
client_ref(EbBudgetClient *self)
{
    self->ref_count++;
    return self;
}

static void
client_unref(EbBudgetClient *self)
{
    if (--self->ref_count > 0)
        return;
    g_hash_table_unref(self->open);
    g_hash_table_unref(self->models);
    g_object_unref(self->desk);
    g_free(self->session);
    g_free(self->person);
    g_free(self);
}

static EbBudgetUse
use_of(const EbBudgetClient *self, JsonObject *asked)
{
    return (EbBudgetUse){
        .session = self->session,
        .turn = self->turn,
        .person = self->person,
        .provider = eb_json_get_string(asked, "provider"),
        .model = eb_json_get_string(asked, "model"),
    };
}

/* --- writing down --- */

static void write_next(EbBudgetClient *self);

static void
writing_free(Writing *self)
{
    client_unref(self->client);
    eb_usage_row_free(self->row);
    g_free(self);
}

static void
answer_written(Writing *self)
{
    EbBudgetClient *client = self->client;
    Open *open = g_hash_table_lookup(client->open, &self->id);

    if (open != NULL)
        open->writing = FALSE;
    if (client->broker != NULL)
        eb_broker_ctl_grant(client->broker, self->id, self->tokens, EB_BUDGET_SESSION, FALSE);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Writing *self = user_data;
    EbBudgetClient *client = self->client;
    g_autoptr(GError) error = NULL;
    gboolean written = eb_usage_store_finish(EB_STORE(source), result, &error);

    if (!written && self->hold) {
        /* What is not written down would be forgotten by a kill: it is not given. */
        eb_warning("session %s: nothing can be set aside for a request: %s", client->session, error->message);
        self->tokens = 0;
    } else if (!written) {
        eb_warning("what session %s used could not be written down: %s", client->session, error->message);
    }
    if (self->hold)
        answer_written(self);
    client->n_writing--;
    write_next(client);
    writing_free(self);
}

/* In the order in which they came: what was used is written down after what was granted for it. */
static void
write_next(EbBudgetClient *self)
{
    EbStore *store = self->desk->store;

    while (self->n_writing < MAX_WRITING && self->waiting.length > 0) {
        Writing *next = g_queue_pop_head(&self->waiting);
        self->n_writing++;
        if (next->hold)
            eb_usage_store_hold_async(store, g_steal_pointer(&next->row), on_written, next);
        else
            eb_usage_store_settle_async(store, g_steal_pointer(&next->row), on_written, next);
    }
}

/* Which models there are, is the guest's to say: beyond a number of them they share a row. */
static void
bound_model(EbBudgetClient *self, EbUsageRow *row)
{
    if (g_hash_table_contains(self->models, row->model))
        return;
    if (g_hash_table_size(self->models) < EB_BUDGET_MAX_MODELS) {
        g_hash_table_add(self->models, g_strdup(row->model));
        return;
    }
    g_free(row->model);
    row->model = g_strdup("(other)");
}

static gboolean
may_write(const EbBudgetClient *self)
{
    return self->waiting.length < MAX_WAITING;
}

/* @row: (transfer full) */
static void
write_down(EbBudgetClient *self, EbUsageRow *row, gboolean hold, guint64 id, guint64 tokens)
{
    Writing *writing = g_new0(Writing, 1);

    bound_model(self, row);
    writing->client = client_ref(self);
    writing->row = row;
    writing->hold = hold;
    writing->id = id;
    writing->tokens = tokens;
    g_queue_push_tail(&self->waiting, writing);
    write_next(self);
}

/* @row: (transfer full) (nullable) */
static void
write_settled(EbBudgetClient *self, EbUsageRow *row)
{
    const Writing *last = g_queue_peek_tail(&self->waiting);

    if (row == NULL)
        return;
    if (row->hold == 0 && row->tokens_in + row->tokens_out == 0) {
        eb_usage_row_free(row);
    } else if (row->hold == 0 && !may_write(self) && !last->hold) {
        /* Of a broker that reports what nobody asked for: counted it is, as one with what it said before. */
        last->row->tokens_in += row->tokens_in;
        last->row->tokens_out += row->tokens_out;
        last->row->micros += row->micros;
        eb_usage_row_free(row);
    } else {
        write_down(self, row, FALSE, 0, 0);
    }
}

/* --- telling --- */

static void
tell(EbBudgetClient *self, const EbBudgetDenial *denial, const EbBudgetUse *use)
{
    EbBudgetDesk *desk = self->desk;
    EbBudgetScope scope = denial->scope;
    gboolean daily = scope == EB_BUDGET_PERSON || scope == EB_BUDGET_DAY;
    g_autofree char *key = g_strdup_printf(
        "%s:%d:%d:%u:%" G_GINT64_FORMAT, self->session, scope, eb_budget_judge(desk->budget, denial, use),
        scope == EB_BUDGET_TURN ? self->turn : 0, daily ? eb_budget_day(now_ms()) : 0);

    if (g_hash_table_size(desk->told) >= MAX_TOLD)
        g_hash_table_remove_all(desk->told);
    if (!g_hash_table_add(desk->told, g_steal_pointer(&key)))
        return;
    g_autofree char *text = eb_budget_describe(desk->budget, denial, use, now_ms());
    eb_log_event(G_LOG_LEVEL_MESSAGE, G_LOG_DOMAIN, text, "EB_SESSION", self->session, NULL);
    g_signal_emit(desk, signal_exhausted, 0, self->session, text);
}

/* --- a broker asks --- */

/* @whole: all of it or nothing; @denial: (out): set when nothing was granted */
static gboolean
grant_ask(EbBudgetClient *self, guint64 id, JsonObject *asked, gboolean whole, EbBudgetDenial *denial)
{
    EbBudgetUse use = use_of(self, asked);
    EbUsageRow *row = NULL;
    guint64 tokens = eb_budget_reserve(self->desk->budget, &use, (guint64)eb_json_get_int(asked, "tokens_in", 0),
                                       (guint64)eb_json_get_int(asked, "tokens_out", 0), whole, now_ms(), denial, &row);

    if (row == NULL)
        return FALSE;
    Open *open = g_new0(Open, 1);
    open->hold = row->hold;
    open->writing = TRUE;
    g_hash_table_insert(self->open, g_memdup2(&id, sizeof id), open);
    write_down(self, row, TRUE, id, tokens);
    return TRUE;
}

static gboolean
grant_more(EbBudgetClient *self, guint64 id, JsonObject *asked, gboolean whole, EbBudgetDenial *denial)
{
    Open *open = g_hash_table_lookup(self->open, &id);
    EbUsageRow *row = NULL;
    guint64 tokens = eb_budget_extend(self->desk->budget, open->hold, (guint64)eb_json_get_int(asked, "tokens_out", 0),
                                      whole, denial, &row);

    if (row == NULL)
        return FALSE;
    open->writing = TRUE;
    write_down(self, row, TRUE, id, tokens);
    return TRUE;
}

static void
deny(EbBudgetClient *self, guint64 id, JsonObject *asked, const EbBudgetDenial *denial)
{
    EbBudgetUse use = use_of(self, asked);

    tell(self, denial, &use);
    eb_broker_ctl_grant(self->broker, id, 0, denial->scope, denial->temporary);
}

/*
 * Answers it, unless it can wait and is better off for it: what is left while others hold much may be a few tokens, and an
 * answer that begins with those is cut off. FALSE: it waits.
 */
static gboolean
answer(EbBudgetClient *self, guint64 id, JsonObject *asked, gboolean more, gboolean can_wait)
{
    gboolean (*grant)(EbBudgetClient *, guint64, JsonObject *, gboolean, EbBudgetDenial *) =
        more ? grant_more : grant_ask;
    gboolean whole = !more && eb_json_get_bool(asked, "flag", FALSE);
    EbBudgetDenial denial = {.scope = EB_BUDGET_SESSION};

    if (grant(self, id, asked, TRUE, &denial))
        return TRUE;
    if (can_wait && (whole ? denial.temporary : denial.gains))
        return FALSE;
    if (whole || !grant(self, id, asked, FALSE, &denial))
        deny(self, id, asked, &denial);
    return TRUE;
}

/* --- requests that wait --- */

static void
wait_free(Wait *wait)
{
    eb_clear_source(&wait->timer);
    wait->client->n_waits--;
    client_unref(wait->client);
    json_object_unref(wait->asked);
    g_free(wait);
}

/* FALSE: it waits on; @late: it does not. */
static gboolean
serve_wait(Wait *wait, gboolean late)
{
    EbBudgetClient *client = wait->client;
    const Open *open = g_hash_table_lookup(client->open, &wait->id);

    /* Its broker is gone, or what asked for more is over; or it asked twice. */
    if (client->broker == NULL || (wait->more && (open == NULL || open->writing)) || (!wait->more && open != NULL))
        return TRUE;
    if (!may_write(client))
        return late;
    return answer(client, wait->id, wait->asked, wait->more, !late);
}

static gboolean
on_wait_over(gpointer data)
{
    Wait *wait = data;

    g_queue_remove(&wait->client->desk->waits, wait);
    serve_wait(wait, TRUE);
    wait_free(wait);
    return G_SOURCE_REMOVE;
}

/* Something was given back: whoever it is enough for gets it, in the order they came. */
static void
serve_waits(EbBudgetDesk *self)
{
    if (self->serving)
        return;
    self->serving = TRUE;
    for (GList *link = self->waits.head, *next; link != NULL; link = next) {
        Wait *wait = link->data;
        next = link->next;
        if (!serve_wait(wait, FALSE))
            continue;
        g_queue_delete_link(&self->waits, link);
        wait_free(wait);
    }
    self->serving = FALSE;
}

static gboolean
may_wait(const EbBudgetClient *self)
{
    return self->desk->waits.length < EB_BUDGET_MAX_WAITS && self->n_waits < EB_BUDGET_MAX_OWN_WAITS;
}

static void
put_off(EbBudgetClient *self, guint64 id, JsonObject *asked, gboolean more)
{
    Wait *wait = g_new0(Wait, 1);

    wait->client = client_ref(self);
    wait->id = id;
    wait->asked = json_object_ref(asked);
    wait->more = more;
    wait->timer = g_timeout_source_new(EB_BUDGET_HOLD_MS);
    g_source_set_callback(wait->timer, on_wait_over, wait, NULL);
    g_source_attach(wait->timer, g_main_context_get_thread_default());
    self->n_waits++;
    g_queue_push_tail(&self->desk->waits, wait);
}

/* Those of a broker that is gone: nobody waits for their answer. */
static void
drop_waits(EbBudgetClient *self)
{
    for (GList *link = self->desk->waits.head, *next; link != NULL; link = next) {
        Wait *wait = link->data;
        next = link->next;
        if (wait->client != self)
            continue;
        g_queue_delete_link(&self->desk->waits, link);
        wait_free(wait);
    }
}

/* --- what brokers ask and tell --- */

static void
take_ask(EbBudgetClient *self, guint64 id, JsonObject *asked)
{
    /* It hears nothing, and refuses the request in its time. */
    if (!may_write(self))
        return;
    if (g_hash_table_contains(self->open, &id) || g_hash_table_size(self->open) >= EB_BUDGET_MAX_OPEN)
        eb_broker_ctl_grant(self->broker, id, 0, EB_BUDGET_SESSION, FALSE);
    else if (!answer(self, id, asked, FALSE, may_wait(self)))
        put_off(self, id, asked, FALSE);
}

static void
take_more(EbBudgetClient *self, guint64 id, JsonObject *asked)
{
    const Open *open = g_hash_table_lookup(self->open, &id);

    if (!may_write(self) || (open != NULL && open->writing))
        return;
    if (open == NULL)
        eb_broker_ctl_grant(self->broker, id, 0, EB_BUDGET_SESSION, FALSE);
    else if (!answer(self, id, asked, TRUE, may_wait(self)))
        put_off(self, id, asked, TRUE);
}

/* Once a provider: which model it is, is the guest's to choose. */
static void
note_price(EbBudgetDesk *self, const EbBudgetUse *use)
{
    if (!eb_budget_lacks_price(self->budget, use->provider, use->model))
        return;
    g_autofree char *key = g_strdup_printf("price:%s", use->provider != NULL ? use->provider : "");
    if (!g_hash_table_add(self->told, g_steal_pointer(&key)))
        return;
    g_autofree char *model = eb_log_escape(use->model != NULL ? use->model : "", -1, 96);
    eb_warning("the model %s of provider %s has no price: it counts as the dearest that has one ([provider.%s] prices)",
               model, use->provider, use->provider);
}

static void
take_used(EbBudgetClient *self, guint64 id, JsonObject *told)
{
    const Open *open = g_hash_table_lookup(self->open, &id);
    EbBudgetUse use = use_of(self, told);
    EbBudgetCount count = {
        .in = (guint64)eb_json_get_int(told, "tokens_in", 0),
        .out = (guint64)eb_json_get_int(told, "tokens_out", 0),
        .cached = (guint64)eb_json_get_int(told, "tokens_cached", 0),
        .written = (guint64)eb_json_get_int(told, "tokens_written", 0),
        .estimated = eb_json_get_bool(told, "flag", FALSE),
    };

    if (count.in + count.out > 0)
        note_price(self->desk, &use);
    count.cached = MIN(count.cached, count.in);
    count.written = MIN(count.written, count.in - count.cached);
    write_settled(
        self, eb_budget_settle(self->desk->budget, open != NULL ? open->hold : 0, &use, use.model, &count, now_ms()));
    g_hash_table_remove(self->open, &id);
    serve_waits(self->desk);
}

static void
on_budget(EbBrokerCtl *broker, guint type, JsonObject *told, gpointer user_data)
{
    EbBudgetClient *self = user_data;
    guint64 id = (guint64)eb_json_get_int(told, "id", 0);

    if (type == EB_BROKER_MSG_ASK)
        take_ask(self, id, told);
    else if (type == EB_BROKER_MSG_MORE)
        take_more(self, id, told);
    else if (type == EB_BROKER_MSG_USED)
        take_used(self, id, told);
}

/* What was open went up and may have been answered: all that was set aside for it counts as used. */
static void
forfeit_all(EbBudgetClient *self)
{
    GHashTableIter iter;
    gpointer open;

    g_hash_table_iter_init(&iter, self->open);
    while (g_hash_table_iter_next(&iter, NULL, &open))
        write_settled(self, eb_budget_forfeit(self->desk->budget, ((Open *)open)->hold));
    g_hash_table_remove_all(self->open);
    drop_waits(self);
    /* Nothing was given back, but now it is known to be used. */
    serve_waits(self->desk);
}

static void
on_died(EbBrokerCtl *broker, gboolean restarted, const char *why, gpointer user_data)
{
    forfeit_all(user_data);
}

static void
on_broker_gone(gpointer user_data, GObject *broker)
{
    EbBudgetClient *self = user_data;

    self->broker = NULL;
    forfeit_all(self);
    client_unref(self);
}

EbBudgetClient *
eb_budget_desk_serve(EbBudgetDesk *self, GObject *broker, const char *session)
{
    EbBudgetClient *client = g_new0(EbBudgetClient, 1);

    client->ref_count = 1;
    client->desk = g_object_ref(self);
    client->broker = EB_BROKER_CTL(broker);
    client->session = g_strdup(session);
    client->models = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&client->waiting);
    client->open = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_signal_connect(broker, "budget", G_CALLBACK(on_budget), client);
    g_signal_connect(broker, "died", G_CALLBACK(on_died), client);
    g_object_weak_ref(broker, on_broker_gone, client);
    return client;
}

void
eb_budget_client_set_turn(EbBudgetClient *self, guint turn, const char *person)
{
    char *copy = g_strdup(person);

    self->turn = turn;
    g_free(self->person);
    self->person = copy;
}

gboolean
eb_budget_desk_lacks_price(EbBudgetDesk *self, const char *provider, const char *model)
{
    return eb_budget_lacks_price(self->budget, provider, model);
}

gboolean
eb_budget_desk_take_config(EbBudgetDesk *self, EbConfig *config, GError **error)
{
    const EbBudgetConfig *caps = eb_config_get_budget(config);

    if (!eb_budget_is_capped(eb_config_get_budget(self->started_with)) && eb_budget_is_capped(caps)) {
        eb_set_error(error, EB_ERROR_CONFIG, "budget.restart",
                     "[budget] had no cap when the service started: the first one takes a restart (errand-box down, "
                     "errand-box up)");
        return FALSE;
    }
    eb_budget_set_config(self->budget, caps, eb_config_get_providers(config));
    g_set_object(&self->config, config);
    /* What people were told of the old caps is no news of the new ones. */
    g_hash_table_remove_all(self->told);
    serve_waits(self);
    return TRUE;
}

JsonObject *
eb_budget_desk_to_json(EbBudgetDesk *self, const char *session, guint turn, const char *person)
{
    const EbBudgetUse use = {.session = session, .turn = turn, .person = person != NULL ? person : ""};

    return eb_budget_to_json(self->budget, session != NULL ? &use : NULL, now_ms());
}

/* --- life --- */

static void
on_loaded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbBudgetDesk *self = g_task_get_source_object(task);
    GError *error = NULL;
    g_autoptr(GPtrArray) rows = eb_usage_store_load_finish(EB_STORE(source), result, &error);

    if (rows == NULL) {
        g_task_return_error(task, error);
        return;
    }
    for (guint i = 0; i < rows->len; i++)
        eb_budget_add_past(self->budget, rows->pdata[i]);
    g_task_return_boolean(task, TRUE);
}

void
eb_budget_desk_load_async(EbBudgetDesk *self, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);

    g_task_set_source_tag(task, eb_budget_desk_load_async);
    eb_usage_store_load_async(self->store, eb_budget_day(now_ms()), on_loaded, task);
}

gboolean
eb_budget_desk_load_finish(EbBudgetDesk *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
eb_budget_desk_finalize(GObject *object)
{
    EbBudgetDesk *self = EB_BUDGET_DESK(object);

    eb_budget_free(self->budget);
    g_hash_table_unref(self->told);
    g_object_unref(self->store);
    g_object_unref(self->config);
    g_object_unref(self->started_with);
    G_OBJECT_CLASS(eb_budget_desk_parent_class)->finalize(object);
}

static void
eb_budget_desk_class_init(EbBudgetDeskClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_budget_desk_finalize;
    signal_exhausted = g_signal_new("exhausted", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                    G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_STRING);
}

static void
eb_budget_desk_init(EbBudgetDesk *self)
{
    self->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

EbBudgetDesk *
eb_budget_desk_new(EbStore *store, EbConfig *config)
{
    EbBudgetDesk *self = g_object_new(EB_TYPE_BUDGET_DESK, NULL);

    self->store = g_object_ref(store);
    self->config = g_object_ref(config);
    self->started_with = g_object_ref(config);
    self->budget = eb_budget_new(eb_config_get_budget(config), eb_config_get_providers(config));
    return self;
}
