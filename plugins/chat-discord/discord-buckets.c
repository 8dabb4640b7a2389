/* SPDX-License-Identifier: MIT */
#include "discord-buckets.h"

/* Lanes beyond which those with nothing to remember are dropped. */
#define PRUNE_AT 1024
/* What a limit without a number is taken for. */
#define DEFAULT_WAIT_US (5 * G_USEC_PER_SEC)
/* Longest wait for the other limits of a channel before a route is used whose bucket nobody has told yet. */
#define UNKNOWN_WAIT_MAX_US (10 * G_USEC_PER_SEC)
#define INVALID_SLOTS 60

typedef struct {
    gint64 remaining; /* -1 = not known */
    gint64 reset_at;
    gint64 blocked_until; /* asked for by a 429 */
    guint in_flight;
} Window;

typedef struct {
    Window window;
    guint lanes;
} Bucket;

/* What is known of a method and route in every channel. */
typedef struct {
    char *hash;  /* of its bucket, "" = it has none */
    gint64 span; /* longest reset-after seen */
} RouteFacts;

struct _DiscordLane {
    char *key;    /* "METHOD ROUTE MAJOR" */
    char *route;  /* "METHOD ROUTE" */
    char *major;  /* "" = none */
    char *shared; /* (nullable): key of @bucket */
    Bucket *bucket;
    Window own; /* lanes of one bucket can have limits that differ all the same: both are kept */
    gboolean plain;
    gboolean was_unknown; /* when what is under way was sent */
    guint users;
};

struct _DiscordBuckets {
    GHashTable *lanes;   /* key -> DiscordLane (owned) */
    GHashTable *buckets; /* "HASH MAJOR" -> Bucket (owned) */
    GHashTable *facts;   /* "METHOD ROUTE" -> RouteFacts (owned); routes are static, so few */
    guint in_flight;
    guint unknown_in_flight; /* that were sent when their route was not in @facts */
    guint prune_at;
    gint64 sent[DISCORD_GLOBAL_MAX]; /* ring: when the last ones were sent */
    guint sent_at;
    gint64 global_until;
    gint64 edge_until;
    guint edge_count;
    gboolean stopped;
    guint invalid[INVALID_SLOTS]; /* ring by slot number */
    gint64 invalid_slot;          /* the newest */
};

static void
lane_set_bucket(DiscordBuckets *self, DiscordLane *lane, const char *hash)
{
    g_autofree char *key = *hash != '\0' ? g_strdup_printf("%s %s", hash, lane->major) : NULL;
    if (g_strcmp0(key, lane->shared) == 0)
        return;
    if (lane->bucket != NULL) {
        lane->bucket->window.in_flight -= lane->own.in_flight;
        if (--lane->bucket->lanes == 0)
            g_hash_table_remove(self->buckets, lane->shared);
    }
    g_free(lane->shared);
    lane->shared = g_steal_pointer(&key);
    lane->bucket = NULL;
    if (lane->shared == NULL)
        return;
    lane->bucket = g_hash_table_lookup(self->buckets, lane->shared);
    if (lane->bucket == NULL) {
        lane->bucket = g_new0(Bucket, 1);
        lane->bucket->window.remaining = -1;
        g_hash_table_insert(self->buckets, g_strdup(lane->shared), lane->bucket);
    }
    lane->bucket->lanes++;
    lane->bucket->window.in_flight += lane->own.in_flight;
}

static void
lane_free(gpointer data)
{
    DiscordLane *lane = data;
    g_free(lane->key);
    g_free(lane->route);
    g_free(lane->major);
    g_free(lane->shared);
    g_free(lane);
}

static void
facts_free(gpointer data)
{
    RouteFacts *facts = data;
    g_free(facts->hash);
    g_free(facts);
}

DiscordBuckets *
discord_buckets_new(void)
{
    DiscordBuckets *self = g_new0(DiscordBuckets, 1);
    self->lanes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, lane_free);
    self->buckets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->facts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, facts_free);
    self->prune_at = PRUNE_AT;
    for (guint i = 0; i < DISCORD_GLOBAL_MAX; i++)
        self->sent[i] = G_MININT64 / 2;
    return self;
}

void
discord_buckets_free(DiscordBuckets *self)
{
    if (self == NULL)
        return;
    g_hash_table_unref(self->lanes);
    g_hash_table_unref(self->buckets);
    g_hash_table_unref(self->facts);
    g_free(self);
}

/* --- windows --- */

/* When the next one may be sent, at most @now when at once. */
static gint64
window_ready_at(const Window *window, gint64 now)
{
    gint64 reset = window->remaining == 0 ? window->reset_at : now;
    return MAX(reset, window->blocked_until);
}

static gboolean
window_is_idle(const Window *window, gint64 now)
{
    return window->in_flight == 0 && window->reset_at <= now && window->blocked_until <= now;
}

static void
window_take(Window *window, gint64 now)
{
    window->in_flight++;
    if (window->remaining > 0 && window->reset_at > now)
        window->remaining--;
    else
        window->remaining = -1;
}

static void
window_lost(Window *window, gint64 span, gint64 now)
{
    window->in_flight--;
    /* It may have opened a new window over there and used it up. */
    if (window->remaining < 0 && span > 0) {
        window->remaining = 0;
        window->reset_at = now + span + DISCORD_RESET_MARGIN_US;
    }
}

static void
window_answer(Window *window, const DiscordAnswer *answer, gint64 span, gint64 now)
{
    if (answer->remaining < 0) {
        window_lost(window, span, now);
        return;
    }
    window->in_flight--;
    gint64 reset_after = answer->reset_after_us >= 0 ? answer->reset_after_us : MAX(answer->retry_after_us, 0);
    if (reset_after == 0 && answer->remaining == 0)
        reset_after = DEFAULT_WAIT_US;
    window->remaining = MAX(0, answer->remaining - (gint64)window->in_flight);
    window->reset_at = now + reset_after + DISCORD_RESET_MARGIN_US;
}

/* --- lanes --- */

static gboolean
lane_is_idle(gpointer key, gpointer value, gpointer user_data)
{
    DiscordLane *lane = value;
    const gint64 *now = user_data;
    return lane->users == 0 && window_is_idle(&lane->own, *now) &&
           (lane->bucket == NULL || window_is_idle(&lane->bucket->window, *now));
}

static void
prune(DiscordBuckets *self, gint64 now)
{
    GHashTableIter iter;
    gpointer key;
    gpointer value;
    g_hash_table_iter_init(&iter, self->lanes);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        if (!lane_is_idle(key, value, &now))
            continue;
        lane_set_bucket(self, value, "");
        g_hash_table_iter_remove(&iter);
    }
    self->prune_at = MAX(PRUNE_AT, 2 * g_hash_table_size(self->lanes));
    self->prune_at = MIN(self->prune_at, DISCORD_LANES_MAX);
}

DiscordLane *
discord_buckets_enter(DiscordBuckets *self, const char *method, const char *route, const char *major, gboolean plain,
                      gint64 now)
{
    g_autofree char *key = g_strdup_printf("%s %s %s", method, route, major != NULL ? major : "");
    DiscordLane *lane = g_hash_table_lookup(self->lanes, key);
    if (lane == NULL) {
        if (g_hash_table_size(self->lanes) >= self->prune_at)
            prune(self, now);
        if (g_hash_table_size(self->lanes) >= DISCORD_LANES_MAX)
            return NULL;
        lane = g_new0(DiscordLane, 1);
        lane->key = g_steal_pointer(&key);
        lane->route = g_strdup_printf("%s %s", method, route);
        lane->major = g_strdup(major != NULL ? major : "");
        lane->plain = plain;
        lane->own.remaining = -1;
        const RouteFacts *facts = g_hash_table_lookup(self->facts, lane->route);
        lane_set_bucket(self, lane, facts != NULL ? facts->hash : "");
        g_hash_table_insert(self->lanes, lane->key, lane);
    }
    lane->users++;
    return lane;
}

void
discord_buckets_leave(DiscordBuckets *self, DiscordLane *lane, gint64 now)
{
    lane->users--;
}

static gboolean
is_known(DiscordBuckets *self, const DiscordLane *lane)
{
    return lane->plain || g_hash_table_contains(self->facts, lane->route);
}

/*
 * A route whose bucket nobody has told yet may share any bucket of its channel (setting and removing a reaction do): it
 * is sent when nothing else is under way there and none of those is used up, and nothing else is sent before it is
 * answered. Once, as routes keep their bucket.
 */
static DiscordVerdict
admit_beside(DiscordBuckets *self, DiscordLane *lane, gint64 now, gint64 *until)
{
    gboolean known = is_known(self, lane);
    GHashTableIter iter;
    gpointer value;
    if (known && self->unknown_in_flight == 0)
        return DISCORD_VERDICT_SEND;
    g_hash_table_iter_init(&iter, self->lanes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        DiscordLane *other = value;
        if (other->plain || !g_str_equal(other->major, lane->major))
            continue;
        if (other->own.in_flight > 0 && (!known || !is_known(self, other)))
            return DISCORD_VERDICT_BUSY;
        if (!known && other->own.remaining == 0)
            *until = MAX(*until, MIN(other->own.reset_at, now + UNKNOWN_WAIT_MAX_US));
    }
    return DISCORD_VERDICT_SEND;
}

/* --- the budget of refused requests --- */

static void
invalid_turn(DiscordBuckets *self, gint64 now)
{
    gint64 slot = now / (DISCORD_INVALID_WINDOW_US / INVALID_SLOTS);
    gint64 first = MAX(self->invalid_slot + 1, slot - INVALID_SLOTS + 1);
    for (gint64 i = first; i <= slot; i++)
        self->invalid[i % INVALID_SLOTS] = 0;
    self->invalid_slot = MAX(self->invalid_slot, slot);
}

guint
discord_buckets_count_invalid(DiscordBuckets *self, gint64 now)
{
    guint count = 0;
    invalid_turn(self, now);
    for (guint i = 0; i < INVALID_SLOTS; i++)
        count += self->invalid[i];
    return count;
}

/* When enough of the oldest have left the window. */
static gint64
budget_until(DiscordBuckets *self, guint count)
{
    for (gint64 slot = self->invalid_slot - INVALID_SLOTS + 1; slot <= self->invalid_slot; slot++) {
        count -= self->invalid[(slot + INVALID_SLOTS) % INVALID_SLOTS];
        if (count < DISCORD_INVALID_MAX)
            return (slot + INVALID_SLOTS) * (DISCORD_INVALID_WINDOW_US / INVALID_SLOTS);
    }
    return (self->invalid_slot + INVALID_SLOTS) * (DISCORD_INVALID_WINDOW_US / INVALID_SLOTS);
}

/* --- decisions --- */

DiscordVerdict
discord_buckets_admit(DiscordBuckets *self, DiscordLane *lane, gint64 now, gint64 *until)
{
    *until = now;
    if (self->stopped && !lane->plain)
        return DISCORD_VERDICT_STOPPED;
    guint invalid = discord_buckets_count_invalid(self, now);
    if (invalid >= DISCORD_INVALID_MAX) {
        *until = budget_until(self, invalid);
        return DISCORD_VERDICT_BUDGET;
    }
    /* Any of those under way may be refused as well. */
    if (invalid + self->in_flight >= DISCORD_INVALID_MAX || lane->own.in_flight > 0 ||
        (lane->bucket != NULL && lane->bucket->window.in_flight > 0))
        return DISCORD_VERDICT_BUSY;
    *until = MAX(*until, self->edge_until);
    *until = MAX(*until, window_ready_at(&lane->own, now));
    if (lane->bucket != NULL)
        *until = MAX(*until, window_ready_at(&lane->bucket->window, now));
    if (!lane->plain) {
        *until = MAX(*until, self->global_until);
        *until = MAX(*until, self->sent[self->sent_at] + DISCORD_GLOBAL_WINDOW_US);
        if (admit_beside(self, lane, now, until) == DISCORD_VERDICT_BUSY)
            return DISCORD_VERDICT_BUSY;
    }
    if (*until > now)
        return DISCORD_VERDICT_WAIT;
    self->in_flight++;
    lane->was_unknown = !is_known(self, lane);
    self->unknown_in_flight += lane->was_unknown;
    window_take(&lane->own, now);
    if (lane->bucket != NULL)
        window_take(&lane->bucket->window, now);
    if (!lane->plain) {
        self->sent[self->sent_at] = now;
        self->sent_at = (self->sent_at + 1) % DISCORD_GLOBAL_MAX;
    }
    return DISCORD_VERDICT_SEND;
}

/* Returns the longest window that the route's bucket is known to have. */
static gint64
learn_route(DiscordBuckets *self, DiscordLane *lane, const DiscordAnswer *answer)
{
    RouteFacts *facts = g_hash_table_lookup(self->facts, lane->route);
    const char *told = answer->bucket;
    /* Errors from before the limiter carry no header; only a success without one means that there is no bucket. */
    if (told == NULL && facts == NULL && answer->status < 300)
        told = "";
    if (facts == NULL && told != NULL) {
        facts = g_new0(RouteFacts, 1);
        g_hash_table_insert(self->facts, g_strdup(lane->route), facts);
    }
    if (facts == NULL)
        return 0;
    facts->span = MAX(facts->span, answer->reset_after_us);
    if (told == NULL || g_strcmp0(told, facts->hash) == 0)
        return facts->span;
    g_free(facts->hash);
    facts->hash = g_strdup(told);
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, self->lanes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        DiscordLane *other = value;
        if (g_str_equal(other->route, lane->route))
            lane_set_bucket(self, other, facts->hash);
    }
    return facts->span;
}

static void
edge_answer(DiscordBuckets *self, const DiscordAnswer *answer, gint64 jitter, gint64 now)
{
    /* Answers to what was under way together are one block, not several. */
    if (now < self->edge_until)
        return;
    gint64 wait = DISCORD_EDGE_WAIT_US << MIN(self->edge_count, 4);
    self->edge_count++;
    wait = MIN(wait, DISCORD_EDGE_WAIT_MAX_US);
    self->edge_until = now + MAX(wait, answer->retry_after_us) + jitter;
}

static void
limit_answer(DiscordBuckets *self, DiscordLane *lane, const DiscordAnswer *answer, gint64 jitter, gint64 now)
{
    gint64 wait = answer->retry_after_us >= 0 ? answer->retry_after_us : answer->reset_after_us;
    gint64 until = now + (wait >= 0 ? wait : DEFAULT_WAIT_US) + jitter;
    if (answer->scope == DISCORD_SCOPE_GLOBAL && !lane->plain)
        self->global_until = MAX(self->global_until, until);
    else
        /* This kind of request alone: limits that no header shows (renames: 2 in ten minutes) hold up nothing else. What
         * holds for the bucket is in its headers. */
        lane->own.blocked_until = MAX(lane->own.blocked_until, until);
}

void
discord_buckets_answer(DiscordBuckets *self, DiscordLane *lane, const DiscordAnswer *answer, gint64 jitter, gint64 now)
{
    self->in_flight--;
    self->unknown_in_flight -= lane->was_unknown;
    gint64 span = learn_route(self, lane, answer);
    window_answer(&lane->own, answer, span, now);
    if (lane->bucket != NULL)
        window_answer(&lane->bucket->window, answer, span, now);
    if (answer->status == 401 || answer->status == 403 ||
        (answer->status == 429 && answer->scope != DISCORD_SCOPE_SHARED)) {
        invalid_turn(self, now);
        self->invalid[self->invalid_slot % INVALID_SLOTS]++;
    }
    if (answer->status == 401 && !lane->plain)
        self->stopped = TRUE;
    if (answer->edge)
        edge_answer(self, answer, jitter, now);
    else if (answer->status == 429)
        limit_answer(self, lane, answer, jitter, now);
    if (!answer->edge && answer->status < 500)
        self->edge_count = 0;
}

void
discord_buckets_lost(DiscordBuckets *self, DiscordLane *lane, gint64 now)
{
    self->in_flight--;
    self->unknown_in_flight -= lane->was_unknown;
    const RouteFacts *facts = g_hash_table_lookup(self->facts, lane->route);
    gint64 span = facts != NULL ? facts->span : 0;
    window_lost(&lane->own, span, now);
    if (lane->bucket != NULL)
        window_lost(&lane->bucket->window, span, now);
}

guint
discord_buckets_count_lanes(DiscordBuckets *self)
{
    return g_hash_table_size(self->lanes);
}
