/* SPDX-License-Identifier: MIT */
/*
 * The limiter against a model of the service: 10,000 requests in bursts over many channels, answers that take their
 * time, get lost or are 5xx. As long as the service's headers are true, it never has to refuse one; all get through, in
 * the order of their lane, and not much later than the limits make them.
 */
#include "discord-buckets.h"
#include "eb-test.h"

#define MS 1000
#define SECOND ((gint64)G_USEC_PER_SEC)
#define REQUESTS 10000
#define CHANNELS 40
#define MAX_TRANSIT_MS 180

/* What the service limits; seen bucket sizes are from the field, the last two are what documentation warns of. */
typedef struct {
    const char *method;
    const char *route;
    const char *hash; /* NULL = no limit */
    guint window;     /* routes with one number share a window, whatever their hash */
    guint limit;
    gint64 span;
    gboolean plain;
    guint weight;
} Route;

static const Route routes[] = {
    {"POST", "/channels/{c}/messages", "h1", 1, 5, 5 * SECOND, FALSE, 40},
    {"PATCH", "/channels/{c}/messages/{m}", "h2", 2, 5, 5 * SECOND, FALSE, 30},
    {"DELETE", "/channels/{c}/messages/{m}", "h3", 3, 5, 1 * SECOND, FALSE, 5},
    {"PUT", "/channels/{c}/messages/{m}/reactions", "h4", 4, 1, SECOND / 4, FALSE, 10},
    {"DELETE", "/channels/{c}/messages/{m}/reactions", "h4", 4, 1, SECOND / 4, FALSE, 10},
    {"POST", "/channels/{c}/typing", "h5", 5, 5, 5 * SECOND, FALSE, 20},
    {"PATCH", "/channels/{c}", "h6", 6, 5, 15 * SECOND, FALSE, 2},
    {"GET", "/channels/{c}/messages", NULL, 0, 0, 0, FALSE, 10},
    {"POST", "/interactions/{i}/callback", NULL, 0, 0, 0, TRUE, 10},
    {"GET", "/channels/{c}/pins", "h9", 9, 2, 3 * SECOND, FALSE, 3},
    {"GET", "/channels/{c}/webhooks", "h9", 10, 3, 7 * SECOND, FALSE, 3},
};

typedef struct {
    gint64 end;
    guint used;
} Window;

typedef struct {
    const Route *route;
    guint channel;
    guint order; /* in its lane */
    DiscordLane *lane;
    gint64 wanted_at;
    gboolean flying;
} Request;

typedef struct {
    gint64 time;
    gboolean arrives; /* at the service; otherwise its answer does, here */
    Request *request;
    DiscordAnswer answer;
    gboolean lost;
} Event;

typedef struct {
    GRand *rand;
    DiscordBuckets *buckets;
    GPtrArray *waiting; /* Request, oldest first */
    GSequence *events;
    GHashTable *windows;    /* "WINDOW CHANNEL" -> Window */
    GHashTable *last_order; /* lane -> order of the last one that was answered, plus one */
    GQueue arrivals;        /* gint64: when the last ones came in, within a second */
    guint refused;
    guint done;
    gboolean faults;
} Model;

static int
compare_events(gconstpointer a, gconstpointer b, gpointer user_data)
{
    const Event *left = a;
    const Event *right = b;
    return left->time < right->time ? -1 : left->time > right->time;
}

static gint64
transit(Model *model)
{
    return g_rand_int_range(model->rand, 2, MAX_TRANSIT_MS) * (gint64)MS;
}

static void
add_event(Model *model, Event event)
{
    g_sequence_insert_sorted(model->events, g_memdup2(&event, sizeof event), compare_events, NULL);
}

/* More than 50 within any second, as the service sees them. */
static gboolean
over_global(Model *model, gint64 now)
{
    while (model->arrivals.head != NULL && *(gint64 *)model->arrivals.head->data <= now - SECOND)
        g_free(g_queue_pop_head(&model->arrivals));
    if (model->arrivals.length >= 50)
        return TRUE;
    g_queue_push_tail(&model->arrivals, g_memdup2(&now, sizeof now));
    return FALSE;
}

static gint64
round_to_ms(gint64 us)
{
    return (us + MS / 2) / MS * MS;
}

static void
service_answers(Model *model, Request *request, gint64 now, DiscordAnswer *answer)
{
    const Route *route = request->route;
    *answer = (DiscordAnswer){.status = 200, .remaining = -1, .reset_after_us = -1, .retry_after_us = -1};
    if (!route->plain && over_global(model, now)) {
        answer->status = 429;
        answer->scope = DISCORD_SCOPE_GLOBAL;
        answer->retry_after_us = SECOND;
        model->refused++;
        return;
    }
    if (route->hash == NULL)
        return;
    g_autofree char *key = g_strdup_printf("%u %u", route->window, request->channel);
    Window *window = g_hash_table_lookup(model->windows, key);
    if (window == NULL) {
        window = g_new0(Window, 1);
        g_hash_table_insert(model->windows, g_steal_pointer(&key), window);
    }
    if (now >= window->end) {
        window->end = now + route->span;
        window->used = 0;
    }
    answer->bucket = (char *)route->hash;
    answer->reset_after_us = round_to_ms(window->end - now);
    if (window->used >= route->limit) {
        answer->status = 429;
        answer->scope = DISCORD_SCOPE_USER;
        answer->retry_after_us = answer->reset_after_us;
        answer->remaining = 0;
        model->refused++;
        return;
    }
    window->used++;
    answer->remaining = route->limit - window->used;
}

static void
on_arrival(Model *model, const Event *event)
{
    Event answered = {.time = event->time + transit(model), .request = event->request};
    service_answers(model, event->request, event->time, &answered.answer);
    /* What gets lost before a route's bucket is known cannot be accounted for. */
    if (model->faults && model->done > 500 && answered.answer.status == 200) {
        guint luck = (guint)g_rand_int_range(model->rand, 0, 100);
        answered.lost = luck == 0;
        if (luck == 1) /* counted over there, and answered without a header */
            answered.answer =
                (DiscordAnswer){.status = 502, .remaining = -1, .reset_after_us = -1, .retry_after_us = -1};
    }
    add_event(model, answered);
}

static void
on_answer(Model *model, const Event *event)
{
    Request *request = event->request;
    request->flying = FALSE;
    if (event->lost)
        discord_buckets_lost(model->buckets, request->lane, event->time);
    else
        discord_buckets_answer(model->buckets, request->lane, &event->answer, 0, event->time);
    if (event->lost || event->answer.status != 200)
        return; /* stays where it is and is sent again */
    guint next = GPOINTER_TO_UINT(g_hash_table_lookup(model->last_order, request->lane));
    g_assert_cmpuint(request->order, ==, next);
    g_hash_table_insert(model->last_order, request->lane, GUINT_TO_POINTER(next + 1));
    model->done++;
    g_ptr_array_remove(model->waiting, request);
    g_free(request);
}

/* As the REST client goes through its queue; returns when to look again. */
static gint64
pump(Model *model, gint64 now)
{
    g_autoptr(GHashTable) blocked = g_hash_table_new(NULL, NULL);
    gint64 next = G_MAXINT64;
    for (guint i = 0; i < model->waiting->len; i++) {
        Request *request = g_ptr_array_index(model->waiting, i);
        gint64 until;
        if (request->wanted_at > now) {
            next = MIN(next, request->wanted_at);
            break;
        }
        if (!g_hash_table_add(blocked, request->lane) || request->flying)
            continue;
        switch (discord_buckets_admit(model->buckets, request->lane, now, &until)) {
        case DISCORD_VERDICT_SEND:
            request->flying = TRUE;
            add_event(model, (Event){.time = now + transit(model), .arrives = TRUE, .request = request});
            break;
        case DISCORD_VERDICT_WAIT:
            g_assert_cmpint(until, >, now);
            next = MIN(next, until);
            break;
        case DISCORD_VERDICT_BUSY:
            break;
        default:
            g_assert_not_reached();
        }
    }
    return next;
}

static const Route *
pick_route(Model *model)
{
    guint total = 0;
    for (guint i = 0; i < G_N_ELEMENTS(routes); i++)
        total += routes[i].weight;
    guint at = (guint)g_rand_int_range(model->rand, 0, (gint32)total);
    for (guint i = 0;; i++) {
        if (at < routes[i].weight)
            return &routes[i];
        at -= routes[i].weight;
    }
}

/* Bursts of up to 200 at once, with pauses in between. */
static void
fill(Model *model, gint64 start)
{
    g_autoptr(GHashTable) orders = g_hash_table_new(NULL, NULL);
    gint64 time = start;
    guint burst = 0;
    for (guint i = 0; i < REQUESTS; i++) {
        Request *request = g_new0(Request, 1);
        if (burst-- == 0) {
            burst = (guint)g_rand_int_range(model->rand, 1, 200);
            time += g_rand_int_range(model->rand, 1, 8000) * (gint64)MS;
        }
        request->route = pick_route(model);
        request->channel = (guint)g_rand_int_range(model->rand, 0, CHANNELS);
        request->wanted_at = time;
        g_autofree char *major =
            request->route->plain ? g_strdup_printf("i%u", i) : g_strdup_printf("%u", request->channel);
        request->lane = discord_buckets_enter(model->buckets, request->route->method, request->route->route, major,
                                              request->route->plain, start);
        guint order = GPOINTER_TO_UINT(g_hash_table_lookup(orders, request->lane));
        request->order = order;
        g_hash_table_insert(orders, request->lane, GUINT_TO_POINTER(order + 1));
        g_ptr_array_add(model->waiting, request);
    }
}

/* What the limits make the last one wait for at least, were there no network: the busiest window, and the global limit. */
static gint64
least_span(Model *model, gint64 start)
{
    g_autoptr(GHashTable) counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gint64 longest = 0;
    guint global = 0;
    for (guint i = 0; i < model->waiting->len; i++) {
        Request *request = g_ptr_array_index(model->waiting, i);
        const Route *route = request->route;
        longest = MAX(longest, request->wanted_at - start);
        global += !route->plain;
        if (route->hash == NULL)
            continue;
        char *key = g_strdup_printf("%u %u", route->window, request->channel);
        guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, key)) + 1;
        g_hash_table_insert(counts, key, GUINT_TO_POINTER(count));
        longest = MAX(longest, (gint64)(count / route->limit) * route->span);
    }
    return MAX(longest, global / 50 * SECOND);
}

static void
run_model(guint32 seed, gboolean faults)
{
    Model model = {.rand = g_rand_new_with_seed(seed), .faults = faults};
    gint64 start = 1000 * SECOND;
    gint64 now = start;
    model.buckets = discord_buckets_new();
    model.waiting = g_ptr_array_new();
    model.events = g_sequence_new(g_free);
    model.windows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    model.last_order = g_hash_table_new(NULL, NULL);
    fill(&model, start);
    gint64 least = least_span(&model, start);
    while (model.done < REQUESTS) {
        gint64 next = pump(&model, now);
        GSequenceIter *first = g_sequence_get_begin_iter(model.events);
        Event *event = g_sequence_iter_is_end(first) ? NULL : g_sequence_get(first);
        g_assert_true(event != NULL || next < G_MAXINT64);
        if (event == NULL || next < event->time) {
            now = next;
            continue;
        }
        now = event->time;
        if (event->arrives)
            on_arrival(&model, event);
        else
            on_answer(&model, event);
        g_sequence_remove(first);
    }
    g_test_message("seed %u: %.1f s of simulated time, at least %.1f s, %u refused", seed,
                   (double)(now - start) / (double)SECOND, (double)least / (double)SECOND, model.refused);
    g_assert_cmpuint(model.refused, ==, 0);
    /* Not for the price of standing still: a request under way at a time costs, but not more than as much again. */
    g_assert_cmpint(now - start, <, 2 * least + 60 * SECOND);
    g_assert_cmpuint(discord_buckets_count_invalid(model.buckets, now), ==, 0);
    g_queue_clear_full(&model.arrivals, g_free);
    g_hash_table_unref(model.windows);
    g_hash_table_unref(model.last_order);
    g_sequence_free(model.events);
    g_ptr_array_unref(model.waiting);
    discord_buckets_free(model.buckets);
    g_rand_free(model.rand);
}

static void
test_true_headers(void)
{
    run_model((guint32)g_test_rand_int(), FALSE);
}

static void
test_faults(void)
{
    run_model((guint32)g_test_rand_int(), TRUE);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/buckets-model/true-headers", test_true_headers);
    g_test_add_func("/discord/buckets-model/faults", test_faults);
    return g_test_run();
}
