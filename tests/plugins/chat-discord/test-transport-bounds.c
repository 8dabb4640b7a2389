/* SPDX-License-Identifier: MIT */
/* The tables that people and Discord can fill: each at its declared end. */
#include "discord-reactions.h"
#include "discord-view.h"
#include "transport-fixture.h"

#include <string.h>

/* Nothing here is about Discord's own limits. */
static void
lift_limits(Fixture *fixture)
{
    static const char *const buckets[] = {"global", "reactions", "threads", "/channels/{c}/messages",
                                          "/channels/{c}/messages/{m}"};

    for (guint i = 0; i < G_N_ELEMENTS(buckets); i++) {
        g_autoptr(JsonObject) answer =
            fixture_call(fixture, "bucket", "{\"bucket\":\"%s\",\"limit\":100000,\"window_ms\":1000}", buckets[i]);
    }
}

typedef struct {
    guint done;
    guint failed;
    GError *last; /* (nullable) */
} Tally;

static void
tally(Tally *self, gboolean good, GError *error)
{
    self->done++;
    if (good)
        return;
    self->failed++;
    g_clear_error(&self->last);
    self->last = error;
}

static void
on_posted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GError *error = NULL;
    g_autofree char *id = eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, &error);

    tally(user_data, id != NULL, error);
}

static void
post(Fixture *fixture, const char *thread, const char *key, Tally *result)
{
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_TEXT, "text");

    post->key = g_strdup(key);
    eb_chat_transport_post_async(EB_CHAT_TRANSPORT(fixture->transport), post, NULL, on_posted, result);
}

typedef struct {
    Tally *tally;
    guint n;
} Goal;

static gboolean
is_reached(gpointer user_data)
{
    const Goal *goal = user_data;
    return goal->tally->done >= goal->n;
}

static void
wait_done(Tally *self, guint n)
{
    Goal goal = {self, n};
    eb_test_run_until(is_reached, &goal);
}

/* The post that was made first becomes what it shows: a later one of its key is another message. */
static void
test_keys(Fixture *fixture, gconstpointer data)
{
    Tally result = {0};

    lift_limits(fixture);
    for (guint i = 0; i <= DISCORD_VIEW_MAX_KEYS; i++) {
        g_autofree char *key = g_strdup_printf("k%u", i);
        post(fixture, NULL, key, &result);
        wait_done(&result, i + 1);
    }
    g_assert_cmpuint(result.failed, ==, 0);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, DISCORD_VIEW_MAX_KEYS + 1);
    g_autofree char *youngest = fixture_text(fixture, NULL, "k256", "changed");
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, DISCORD_VIEW_MAX_KEYS + 1);
    g_autofree char *oldest = fixture_text(fixture, NULL, "k0", "changed");
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, DISCORD_VIEW_MAX_KEYS + 2);
}

static void
test_waiting(Fixture *fixture, gconstpointer data)
{
    Tally result = {0};

    lift_limits(fixture);
    for (guint i = 0; i < DISCORD_VIEW_MAX_WAITING + 3; i++)
        post(fixture, NULL, "block", &result);
    wait_done(&result, DISCORD_VIEW_MAX_WAITING + 3);
    g_assert_cmpuint(result.failed, ==, 2);
    eb_test_assert_error(result.last, EB_ERROR_QUOTA, "discord.queue-full", NULL);
    g_clear_error(&result.last);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, 1);
}

static void
on_opened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GError *error = NULL;
    g_autofree char *id = eb_chat_transport_open_thread_finish(EB_CHAT_TRANSPORT(source), result, &error);

    tally(user_data, id != NULL, error);
}

static void
test_opening(Fixture *fixture, gconstpointer data)
{
    Tally result = {0};
    g_autoptr(JsonObject) silent = fixture_call(fixture, "silence", "{}");

    for (guint i = 0; i < DISCORD_TRANSPORT_MAX_OPENING + 1; i++) {
        g_autofree char *message = g_strdup_printf("2000000000000%05u", i);
        eb_chat_transport_open_thread_async(EB_CHAT_TRANSPORT(fixture->transport), message, "title", NULL, on_opened,
                                            &result);
    }
    wait_done(&result, 1);
    g_assert_cmpuint(result.done, ==, 1);
    eb_test_assert_error(result.last, EB_ERROR_BUSY, "discord.queue-full", "64 threads");
    g_assert_true(eb_error_get_retry(result.last, NULL));
    fixture_stop(fixture);
    wait_done(&result, DISCORD_TRANSPORT_MAX_OPENING + 1);
    eb_test_assert_error(result.last, EB_ERROR_CANCELLED, NULL, NULL);
    g_clear_error(&result.last);
}

static void
test_views(Fixture *fixture, gconstpointer data)
{
    Tally result = {0};
    g_autoptr(JsonObject) silent = fixture_call(fixture, "silence", "{}");

    for (guint i = 0; i < DISCORD_TRANSPORT_MAX_VIEWS + 1; i++) {
        g_autofree char *thread = g_strdup_printf("2000000000000%05u", i);
        post(fixture, thread, NULL, &result);
    }
    wait_done(&result, 1);
    eb_test_assert_error(result.last, EB_ERROR_QUOTA, "discord.threads", "512 threads");
    fixture_stop(fixture);
    wait_done(&result, DISCORD_TRANSPORT_MAX_VIEWS + 1);
    g_clear_error(&result.last);
}

static void
on_reacted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GError *error = NULL;
    gboolean done = discord_reactions_set_finish(DISCORD_REACTIONS(source), result, &error);

    tally(user_data, done, error);
}

/* What was decided about is forgotten for what is new; while all of it is under way, there is no room. */
static void
test_reactions(Fixture *fixture, gconstpointer data)
{
    g_autofree char *text = g_strdup(FIXTURE_TOKEN);
    g_autoptr(EbSecret) token = eb_secret_new_take("t", text, strlen(text), NULL);
    g_autoptr(DiscordSite) site = discord_site_new(discord_standin_get_api(fixture->standin), token, NULL);
    g_autoptr(DiscordRest) rest = discord_rest_new(site, token);
    g_autoptr(DiscordReactions) reactions = discord_reactions_new(rest);
    Tally result = {0};

    lift_limits(fixture);
    for (guint i = 0; i < DISCORD_REACTIONS_MAX + 1; i++) {
        g_autofree char *message = g_strdup_printf("2000000000000%05u", i);
        discord_reactions_set_async(reactions, FIXTURE_CHANNEL, message, "\u2705", NULL, on_reacted, &result);
    }
    g_assert_cmpuint(discord_reactions_get_size(reactions), ==, DISCORD_REACTIONS_MAX);
    wait_done(&result, 1);
    eb_test_assert_error(result.last, EB_ERROR_QUOTA, "discord.queue-full", NULL);
    g_clear_error(&result.last);
    discord_rest_close(rest);
    wait_done(&result, DISCORD_REACTIONS_MAX + 1);
    g_assert_cmpuint(discord_reactions_get_size(reactions), ==, 0);
    g_clear_error(&result.last);
}

/* More than can be held before anybody listens: whoever then listens is told to read back. */
static void
test_held(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(fixture_start(fixture, FIXTURE_TOKEN, &error));
    for (guint i = 0; i < DISCORD_TRANSPORT_MAX_HELD / 2 + 10; i++) {
        g_autofree char *id = fixture_say(fixture, NULL, "early");
    }
    eb_test_run_for(1000);
    fixture_attach(fixture);
    fixture_wait_told(fixture, "^connection up connected$");
    g_assert_cmpuint(fixture->told->len, <=, DISCORD_TRANSPORT_MAX_HELD + 1);
    g_assert_cmpuint(fixture_count_told(fixture, "^message"), <, DISCORD_TRANSPORT_MAX_HELD / 2);
}

#define ADD(path, func) g_test_add("/discord/bounds/" path, Fixture, NULL, fixture_set_up, func, fixture_close)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    ADD("keys", test_keys);
    ADD("waiting", test_waiting);
    ADD("opening", test_opening);
    ADD("views", test_views);
    ADD("reactions", test_reactions);
    g_test_add("/discord/bounds/held", Fixture, NULL, fixture_open, test_held, fixture_close);
    return g_test_run();
}
