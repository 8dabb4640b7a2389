/* SPDX-License-Identifier: MIT */
/* Many posts into several threads at once, against the stand-in, which refuses a client that does not read its limits. */
#include <string.h>

#include "discord-outbox.h"
#include "discord-standin.h"
#include "eb-test.h"

#define TOKEN "mock-outbox"
#define THREADS 5

typedef struct {
    DiscordStandin *standin;
    EbSecret *token;
    DiscordSite *site;
    DiscordRest *rest;
    char *threads[THREADS];
    DiscordOutbox *outboxes[THREADS];
    guint done;
    guint wanted;
    guint failed;
} Fixture;

static void
setup(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    char token[] = TOKEN;
    fixture->standin = discord_standin_new(TOKEN, 0, &error);
    g_assert_no_error(error);
    fixture->token = eb_secret_new_take("chat-token", token, strlen(token), NULL);
    fixture->site = discord_site_new(discord_standin_get_api(fixture->standin), fixture->token, &error);
    g_assert_no_error(error);
    fixture->rest = discord_rest_new(fixture->site, fixture->token);
    for (guint i = 0; i < THREADS; i++) {
        g_autoptr(JsonObject) thread = discord_standin_call(fixture->standin, "thread", "{}");
        fixture->threads[i] = g_strdup(eb_json_get_string(thread, "id"));
        fixture->outboxes[i] = discord_outbox_new(fixture->rest, fixture->threads[i]);
    }
}

static void
teardown(Fixture *fixture, gconstpointer data)
{
    for (guint i = 0; i < THREADS; i++) {
        discord_outbox_close(fixture->outboxes[i]);
        g_object_unref(fixture->outboxes[i]);
        g_free(fixture->threads[i]);
    }
    discord_rest_close(fixture->rest);
    eb_test_drain();
    g_object_unref(fixture->rest);
    discord_site_free(fixture->site);
    eb_secret_unref(fixture->token);
    discord_standin_free(fixture->standin);
}

static void
on_created(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Fixture *fixture = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *id = discord_outbox_create_finish(DISCORD_OUTBOX(source), result, &error);
    if (id == NULL) {
        g_test_message("%s", error->message);
        fixture->failed++;
    }
    fixture->done++;
}

static gboolean
all_done(gpointer user_data)
{
    Fixture *fixture = user_data;
    return fixture->done >= fixture->wanted;
}

/* As one agent's words would come: every thread its next part. */
static void
post(Fixture *fixture, guint parts, gsize padding)
{
    g_autofree char *filler = g_strnfill(padding, 'x');
    fixture->done = 0;
    fixture->wanted = parts * THREADS;
    for (guint part = 0; part < parts; part++)
        for (guint i = 0; i < THREADS; i++) {
            g_autofree char *text = g_strdup_printf("part %u %s", part, filler);
            JsonObject *body = json_object_new();
            json_object_set_string_member(body, "content", text);
            discord_outbox_create_async(fixture->outboxes[i], body, NULL, NULL, on_created, fixture);
        }
    eb_test_run_until(all_done, fixture);
    g_assert_cmpuint(fixture->failed, ==, 0);
}

/* Every part once, in the order of the calls. */
static void
assert_parts(Fixture *fixture, guint parts)
{
    for (guint i = 0; i < THREADS; i++) {
        g_autofree char *filter =
            g_strdup_printf("{\"channel\":\"%s\",\"author\":\"bot\",\"text\":\"^part\"}", fixture->threads[i]);
        g_autoptr(JsonObject) list = discord_standin_call(fixture->standin, "messages", filter);
        JsonArray *items = eb_json_get_array(list, "items");
        g_assert_cmpuint(json_array_get_length(items), ==, parts);
        for (guint part = 0; part < parts; part++) {
            g_autofree char *expected = g_strdup_printf("part %u ", part);
            const char *text = eb_json_get_string(eb_json_array_object(items, part), "content");
            g_assert_true(g_str_has_prefix(text, expected) || g_str_equal(text, g_strchomp(expected)));
        }
    }
}

/* 500 posts: not one is refused. With the service's own sizes (5 in 5 s) it is the same and takes 100 s. */
static void
test_many(Fixture *fixture, gconstpointer data)
{
    g_autoptr(JsonObject) set = discord_standin_call(
        fixture->standin, "bucket", "{\"bucket\":\"/channels/{c}/messages\",\"limit\":5,\"window_ms\":250}");
    gint64 start = g_get_monotonic_time();
    post(fixture, 100, 1900);
    double seconds = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    assert_parts(fixture, 100);
    g_assert_cmpint(discord_standin_stat(fixture->standin, "limited"), ==, 0);
    g_assert_cmpuint(discord_standin_count(fixture->standin, "refusals", "{}"), ==, 0);
    g_assert_cmpuint(discord_standin_count(fixture->standin, "violations", "{}"), ==, 0);
    g_assert_cmpuint(discord_standin_count(fixture->standin, "pings", "{}"), ==, 0);
    g_test_message("500 posts of 1.9 KB in 5 threads: %.1f s, %.0f posts/s, %.0f KB/s", seconds, 500 / seconds,
                   500 * 1.907 / seconds);
}

/* Whatever goes wrong in between: each part once, in order. */
static void
test_faults(Fixture *fixture, gconstpointer data)
{
    static const char *const kinds[] = {"lost",  "502",  "reset",    "half",       "429-user", "429-shared",
                                        "delay", "lost", "bad-json", "429-global", "500"};
    g_autoptr(JsonObject) set = discord_standin_call(
        fixture->standin, "bucket", "{\"bucket\":\"/channels/{c}/messages\",\"limit\":5,\"window_ms\":250}");
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *fault = g_strdup_printf(
            "{\"method\":\"POST\",\"path\":\"/messages$\",\"kind\":\"%s\",\"count\":1,\"skip\":%u,\"seconds\":0.3}",
            kinds[i], 3 + 4 * i);
        g_autoptr(JsonObject) ignored = discord_standin_call(fixture->standin, "fault", fault);
    }
    post(fixture, 20, 10);
    assert_parts(fixture, 20);
    g_assert_cmpint(discord_standin_stat(fixture->standin, "limited"), ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add("/discord/outbox-standin/many", Fixture, NULL, setup, test_many, teardown);
    g_test_add("/discord/outbox-standin/faults", Fixture, NULL, setup, test_faults, teardown);
    return g_test_run();
}
