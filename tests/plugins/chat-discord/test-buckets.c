/* SPDX-License-Identifier: MIT */
/* The limiter alone, with a clock of the test's own. */
#include <string.h>

#include "discord-buckets.h"
#include "eb-test.h"

#define MS 1000
#define SECOND ((gint64)G_USEC_PER_SEC)
#define MESSAGES "/channels/{c}/messages"

static gint64 now;

static DiscordVerdict
admit(DiscordBuckets *buckets, DiscordLane *lane, gint64 *until)
{
    gint64 ignored;
    return discord_buckets_admit(buckets, lane, now, until != NULL ? until : &ignored);
}

static DiscordLane *
enter(DiscordBuckets *buckets, const char *method, const char *route, const char *major)
{
    return discord_buckets_enter(buckets, method, route, major, FALSE, now);
}

/* What a request that was admitted is answered; @reset_ms, @retry_ms: -1 = not said */
static void
answer(DiscordBuckets *buckets, DiscordLane *lane, guint status, const char *hash, gint64 remaining, gint64 reset_ms,
       gint64 retry_ms, DiscordScope scope)
{
    DiscordAnswer said = {
        .status = status,
        .bucket = (char *)hash,
        .remaining = remaining,
        .reset_after_us = reset_ms < 0 ? -1 : reset_ms * MS,
        .retry_after_us = retry_ms < 0 ? -1 : retry_ms * MS,
        .scope = scope,
    };
    discord_buckets_answer(buckets, lane, &said, 0, now);
}

static void
answer_fine(DiscordBuckets *buckets, DiscordLane *lane, const char *hash, gint64 remaining, gint64 reset_ms)
{
    answer(buckets, lane, 200, hash, remaining, reset_ms, -1, DISCORD_SCOPE_NONE);
}

/* One at a time, and none on a guess of what remains. */
static void
test_bucket(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    gint64 until;
    now = 100 * SECOND;
    DiscordLane *lane = enter(buckets, "POST", MESSAGES, "1");
    g_assert_true(enter(buckets, "POST", MESSAGES, "1") == lane);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_BUSY);
    answer_fine(buckets, lane, "a", 1, 5000);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, lane, "a", 0, 4000);
    g_assert_cmpint(admit(buckets, lane, &until), ==, DISCORD_VERDICT_WAIT);
    g_assert_cmpint(until, ==, now + 4000 * MS + DISCORD_RESET_MARGIN_US);
    now = until - 1;
    g_assert_cmpint(admit(buckets, lane, &until), ==, DISCORD_VERDICT_WAIT);
    now++;
    g_assert_cmpint(admit(buckets, lane, &until), ==, DISCORD_VERDICT_SEND);
}

/* Other channels have buckets of their own; the route's hash is known for them from the first answer on. */
static void
test_major(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    now = 100 * SECOND;
    DiscordLane *one = enter(buckets, "POST", MESSAGES, "1");
    DiscordLane *two = enter(buckets, "POST", MESSAGES, "2");
    g_assert_cmpint(admit(buckets, one, NULL), ==, DISCORD_VERDICT_SEND);
    g_assert_cmpint(admit(buckets, two, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, one, "a", 0, 5000);
    answer_fine(buckets, two, "a", 4, 5000);
    g_assert_cmpint(admit(buckets, one, NULL), ==, DISCORD_VERDICT_WAIT);
    g_assert_cmpint(admit(buckets, two, NULL), ==, DISCORD_VERDICT_SEND);
}

/* Setting and removing a reaction share a bucket: known only when both were answered once. */
static void
test_shared_hash(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    gint64 until;
    now = 100 * SECOND;
    DiscordLane *put = enter(buckets, "PUT", "/r", "1");
    DiscordLane *delete = enter(buckets, "DELETE", "/r", "1");
    g_assert_cmpint(admit(buckets, put, NULL), ==, DISCORD_VERDICT_SEND);
    /* Not known yet: not beside another one of the channel, and not when that one is used up. */
    g_assert_cmpint(admit(buckets, delete, NULL), ==, DISCORD_VERDICT_BUSY);
    answer_fine(buckets, put, "r", 0, 250);
    g_assert_cmpint(admit(buckets, delete, &until), ==, DISCORD_VERDICT_WAIT);
    now = until;
    g_assert_cmpint(admit(buckets, delete, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, delete, "r", 0, 250);
    g_assert_cmpint(admit(buckets, put, NULL), ==, DISCORD_VERDICT_WAIT);
    now += 300 * MS;
    g_assert_cmpint(admit(buckets, put, NULL), ==, DISCORD_VERDICT_SEND);
    g_assert_cmpint(admit(buckets, delete, NULL), ==, DISCORD_VERDICT_BUSY);
    /* In another channel both are known from the start. */
    DiscordLane *other_put = enter(buckets, "PUT", "/r", "2");
    DiscordLane *other_delete = enter(buckets, "DELETE", "/r", "2");
    g_assert_cmpint(admit(buckets, other_put, NULL), ==, DISCORD_VERDICT_SEND);
    g_assert_cmpint(admit(buckets, other_delete, NULL), ==, DISCORD_VERDICT_BUSY);
}

/* The same hash, and limits that differ all the same: what one is told does not open the other. */
static void
test_wrong_hash(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    now = 100 * SECOND;
    DiscordLane *a = enter(buckets, "GET", "/a", "1");
    DiscordLane *b = enter(buckets, "GET", "/b", "1");
    g_assert_cmpint(admit(buckets, a, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, a, "same", 1, 1000);
    g_assert_cmpint(admit(buckets, b, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, b, "same", 1, 1000);
    g_assert_cmpint(admit(buckets, a, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, a, "same", 0, 5000);
    now += 4 * SECOND;
    g_assert_cmpint(admit(buckets, b, NULL), ==, DISCORD_VERDICT_WAIT);
    now += 2 * SECOND;
    g_assert_cmpint(admit(buckets, b, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, b, "same", 3, 9000);
    g_assert_cmpint(admit(buckets, a, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, a, "same", 0, 5000);
    g_assert_cmpint(admit(buckets, b, NULL), ==, DISCORD_VERDICT_WAIT);
}

/* A hash that changes is followed. */
static void
test_hash_changes(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    now = 100 * SECOND;
    DiscordLane *a = enter(buckets, "GET", "/a", "1");
    DiscordLane *b = enter(buckets, "GET", "/b", "1");
    g_assert_cmpint(admit(buckets, a, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, a, "x", 5, 1000);
    g_assert_cmpint(admit(buckets, b, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, b, "x", 5, 1000);
    g_assert_cmpint(admit(buckets, a, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, a, "y", 0, 1000);
    g_assert_cmpint(admit(buckets, a, NULL), ==, DISCORD_VERDICT_WAIT);
    g_assert_cmpint(admit(buckets, b, NULL), ==, DISCORD_VERDICT_SEND);
}

/* Renames: refused for ten minutes while the headers say that four remain. Nothing else waits for them. */
static void
test_sublimit(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    gint64 until;
    now = 100 * SECOND;
    DiscordLane *name = enter(buckets, "PATCH", "/channels/{c}#name", "1");
    DiscordLane *archive = enter(buckets, "PATCH", "/channels/{c}", "1");
    DiscordLane *post = enter(buckets, "POST", MESSAGES, "1");
    g_assert_cmpint(admit(buckets, archive, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, archive, "p", 4, 15000);
    g_assert_cmpint(admit(buckets, post, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, post, "m", 4, 5000);
    g_assert_cmpint(admit(buckets, name, NULL), ==, DISCORD_VERDICT_SEND);
    answer(buckets, name, 429, "p", 4, 15000, 600 * 1000, DISCORD_SCOPE_USER);
    g_assert_cmpint(admit(buckets, name, &until), ==, DISCORD_VERDICT_WAIT);
    g_assert_cmpint(until, ==, now + 600 * SECOND);
    g_assert_cmpint(admit(buckets, archive, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, archive, "p", 3, 15000);
    g_assert_cmpint(admit(buckets, post, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, post, "m", 3, 5000);
    now += 600 * SECOND;
    g_assert_cmpint(admit(buckets, name, NULL), ==, DISCORD_VERDICT_SEND);
}

/* After a 429 the bucket is usable again: never frozen. */
static void
test_limited_and_on(void)
{
    static const DiscordScope scopes[] = {DISCORD_SCOPE_USER, DISCORD_SCOPE_SHARED, DISCORD_SCOPE_GLOBAL};
    for (guint i = 0; i < G_N_ELEMENTS(scopes); i++) {
        g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
        gint64 until;
        now = 100 * SECOND;
        DiscordLane *lane = enter(buckets, "POST", MESSAGES, "1");
        DiscordLane *other = enter(buckets, "POST", MESSAGES, "2");
        DiscordLane *plain = discord_buckets_enter(buckets, "POST", "/interactions", "9", TRUE, now);
        for (guint round = 0; round < 3; round++) {
            g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
            answer(buckets, lane, 429, "a", 0, 700, 900, scopes[i]);
            g_assert_cmpint(admit(buckets, lane, &until), ==, DISCORD_VERDICT_WAIT);
            g_assert_cmpint(until, ==, now + 900 * MS);
            gboolean global = scopes[i] == DISCORD_SCOPE_GLOBAL;
            g_assert_cmpint(admit(buckets, other, NULL), ==, global ? DISCORD_VERDICT_WAIT : DISCORD_VERDICT_SEND);
            if (!global)
                answer_fine(buckets, other, "a", 4, 1000);
            g_assert_cmpint(admit(buckets, plain, NULL), ==, DISCORD_VERDICT_SEND);
            answer_fine(buckets, plain, NULL, -1, -1);
            now = until;
        }
        g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
        answer_fine(buckets, lane, "a", 4, 1000);
        g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    }
}

/* A 429 that says nothing at all still waits. */
static void
test_limited_silently(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    gint64 until;
    now = 100 * SECOND;
    DiscordLane *lane = enter(buckets, "POST", MESSAGES, "1");
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer(buckets, lane, 429, NULL, -1, -1, -1, DISCORD_SCOPE_USER);
    g_assert_cmpint(admit(buckets, lane, &until), ==, DISCORD_VERDICT_WAIT);
    g_assert_cmpint(until, >=, now + SECOND);
}

static void
answer_edge(DiscordBuckets *buckets, DiscordLane *lane, gint64 retry_ms)
{
    DiscordAnswer said = {.status = 429,
                          .remaining = -1,
                          .reset_after_us = -1,
                          .retry_after_us = retry_ms < 0 ? -1 : retry_ms * MS,
                          .scope = DISCORD_SCOPE_USER,
                          .edge = TRUE};
    discord_buckets_answer(buckets, lane, &said, 0, now);
}

/* Cloudflare: everything is silent for a minute, and longer each time it goes on. */
static void
test_edge(void)
{
    static const guint waits[] = {60, 120, 240, 480, 900, 900, 900};
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    gint64 until;
    now = 100 * SECOND;
    DiscordLane *lane = enter(buckets, "POST", MESSAGES, "1");
    DiscordLane *other = enter(buckets, "POST", MESSAGES, "2");
    DiscordLane *plain = discord_buckets_enter(buckets, "POST", "/interactions", "9", TRUE, now);
    for (guint i = 0; i < G_N_ELEMENTS(waits); i++) {
        g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
        g_assert_cmpint(admit(buckets, other, NULL), ==, DISCORD_VERDICT_SEND);
        answer_edge(buckets, lane, -1);
        /* Two that were under way are one block. */
        answer_edge(buckets, other, -1);
        g_assert_cmpint(admit(buckets, lane, &until), ==, DISCORD_VERDICT_WAIT);
        g_assert_cmpint(until, ==, now + waits[i] * SECOND);
        g_assert_cmpint(admit(buckets, other, NULL), ==, DISCORD_VERDICT_WAIT);
        g_assert_cmpint(admit(buckets, plain, NULL), ==, DISCORD_VERDICT_WAIT);
        now = until;
    }
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, lane, "a", 4, 1000);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer_edge(buckets, lane, 61 * 1000);
    g_assert_cmpint(admit(buckets, lane, &until), ==, DISCORD_VERDICT_WAIT);
    g_assert_cmpint(until, ==, now + 61 * SECOND);
}

static void
test_global(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    gint64 until;
    guint sent = 0;
    now = 100 * SECOND;
    for (guint i = 0; i < 100; i++) {
        g_autofree char *major = g_strdup_printf("%u", i);
        DiscordLane *lane = enter(buckets, "POST", MESSAGES, major);
        if (admit(buckets, lane, &until) == DISCORD_VERDICT_SEND)
            sent++;
    }
    g_assert_cmpuint(sent, ==, DISCORD_GLOBAL_MAX);
    g_assert_cmpint(until, ==, now + DISCORD_GLOBAL_WINDOW_US);
    /* Interactions are outside of it. */
    for (guint i = 0; i < 100; i++) {
        g_autofree char *major = g_strdup_printf("i%u", i);
        DiscordLane *lane = discord_buckets_enter(buckets, "POST", "/interactions", major, TRUE, now);
        g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    }
}

static void
test_unauthorized(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    now = 100 * SECOND;
    DiscordLane *lane = enter(buckets, "POST", MESSAGES, "1");
    DiscordLane *plain = discord_buckets_enter(buckets, "POST", "/webhooks", "9", TRUE, now);
    /* An interaction's token that is too old says nothing about ours. */
    g_assert_cmpint(admit(buckets, plain, NULL), ==, DISCORD_VERDICT_SEND);
    answer(buckets, plain, 401, NULL, -1, -1, -1, DISCORD_SCOPE_NONE);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer(buckets, lane, 401, NULL, -1, -1, -1, DISCORD_SCOPE_NONE);
    now += 10000 * SECOND;
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_STOPPED);
    g_assert_cmpint(admit(buckets, plain, NULL), ==, DISCORD_VERDICT_SEND);
}

static void
test_invalid_budget(void)
{
    static const struct {
        guint status;
        DiscordScope scope;
        guint counts;
    } cases[] = {
        {403, DISCORD_SCOPE_NONE, 1}, {429, DISCORD_SCOPE_USER, 1},   {429, DISCORD_SCOPE_GLOBAL, 1},
        {404, DISCORD_SCOPE_NONE, 0}, {429, DISCORD_SCOPE_SHARED, 0}, {400, DISCORD_SCOPE_NONE, 0},
        {200, DISCORD_SCOPE_NONE, 0}, {500, DISCORD_SCOPE_NONE, 0},
    };
    now = 100 * SECOND;
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
        DiscordLane *lane = enter(buckets, "GET", "/x", NULL);
        g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
        answer(buckets, lane, cases[i].status, NULL, -1, -1, 1, cases[i].scope);
        g_assert_cmpuint(discord_buckets_count_invalid(buckets, now), ==, cases[i].counts);
    }
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    DiscordLane *lane = enter(buckets, "GET", "/x", NULL);
    gint64 until = 0;
    gint64 start = now;
    guint sent = 0;
    for (;;) {
        DiscordVerdict verdict = admit(buckets, lane, &until);
        if (verdict == DISCORD_VERDICT_BUDGET)
            break;
        if (verdict == DISCORD_VERDICT_WAIT) {
            now = until;
            continue;
        }
        g_assert_cmpint(verdict, ==, DISCORD_VERDICT_SEND);
        sent++;
        answer(buckets, lane, 403, NULL, -1, -1, -1, DISCORD_SCOPE_NONE);
    }
    g_assert_cmpuint(sent, ==, DISCORD_INVALID_MAX);
    g_assert_cmpint(now - start, <, DISCORD_INVALID_WINDOW_US);
    g_assert_cmpint(until, >, now);
    DiscordLane *plain = discord_buckets_enter(buckets, "POST", "/webhooks", "9", TRUE, now);
    g_assert_cmpint(admit(buckets, plain, NULL), ==, DISCORD_VERDICT_BUDGET);
    /* A little at a time again, as the oldest leave the ten minutes: never more than the limit within them. */
    now = until;
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer(buckets, lane, 200, NULL, -1, -1, -1, DISCORD_SCOPE_NONE);
    g_assert_cmpuint(discord_buckets_count_invalid(buckets, now), <, DISCORD_INVALID_MAX);
    now += 2 * DISCORD_INVALID_WINDOW_US;
    g_assert_cmpuint(discord_buckets_count_invalid(buckets, now), ==, 0);
}

/* Answers that never come: what they may have used up over there is not guessed at. */
static void
test_lost(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    now = 100 * SECOND;
    DiscordLane *lane = enter(buckets, "PUT", "/r", "1");
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    discord_buckets_lost(buckets, lane, now);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer_fine(buckets, lane, "r", 0, 250);
    now += 300 * MS;
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    discord_buckets_lost(buckets, lane, now);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_WAIT);
    now += 300 * MS;
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_SEND);
    answer(buckets, lane, 502, NULL, -1, -1, -1, DISCORD_SCOPE_NONE);
    g_assert_cmpint(admit(buckets, lane, NULL), ==, DISCORD_VERDICT_WAIT);
}

static void
test_lanes_bound(void)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    now = 100 * SECOND;
    /* Those with nothing to remember make room. */
    for (guint i = 0; i < 3 * DISCORD_LANES_MAX; i++) {
        g_autofree char *major = g_strdup_printf("%u", i);
        DiscordLane *lane = enter(buckets, "POST", MESSAGES, major);
        g_assert_nonnull(lane);
        discord_buckets_leave(buckets, lane, now);
    }
    g_assert_cmpuint(discord_buckets_count_lanes(buckets), <, DISCORD_LANES_MAX / 2);
    /* Those in use stay, and are as many as the bound says. */
    guint taken = 0;
    for (guint i = 0; i < DISCORD_LANES_MAX + 10; i++) {
        g_autofree char *major = g_strdup_printf("x%u", i);
        taken += enter(buckets, "POST", MESSAGES, major) != NULL;
    }
    g_assert_cmpuint(taken, ==, DISCORD_LANES_MAX);
    g_assert_cmpuint(discord_buckets_count_lanes(buckets), ==, DISCORD_LANES_MAX);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/buckets/bucket", test_bucket);
    g_test_add_func("/discord/buckets/major", test_major);
    g_test_add_func("/discord/buckets/shared-hash", test_shared_hash);
    g_test_add_func("/discord/buckets/wrong-hash", test_wrong_hash);
    g_test_add_func("/discord/buckets/hash-changes", test_hash_changes);
    g_test_add_func("/discord/buckets/sublimit", test_sublimit);
    g_test_add_func("/discord/buckets/limited-and-on", test_limited_and_on);
    g_test_add_func("/discord/buckets/limited-silently", test_limited_silently);
    g_test_add_func("/discord/buckets/edge", test_edge);
    g_test_add_func("/discord/buckets/global", test_global);
    g_test_add_func("/discord/buckets/unauthorized", test_unauthorized);
    g_test_add_func("/discord/buckets/invalid-budget", test_invalid_budget);
    g_test_add_func("/discord/buckets/lost", test_lost);
    g_test_add_func("/discord/buckets/lanes-bound", test_lanes_bound);
    return g_test_run();
}
