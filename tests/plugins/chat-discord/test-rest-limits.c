/* SPDX-License-Identifier: MIT */
/* The REST client and the limits of the service: waits as it is told to, and stops before anybody is banned. */
#include <string.h>

#include "rest-fixture.h"

#define SPEED 50

/* Microseconds of the client's clock between two requests. */
static gint64
between(RestFixture *fixture, guint first, guint second)
{
    return (scripted_server_get(fixture->server, second)->time - scripted_server_get(fixture->server, first)->time) *
           SPEED;
}

typedef struct {
    GString *text;
    guint longest;
} LimitedNote;

static void
on_limited(DiscordRest *rest, const char *route, guint seconds, gpointer user_data)
{
    LimitedNote *note = user_data;
    g_string_append_printf(note->text, "%s;", route);
    note->longest = MAX(note->longest, seconds);
}

static gboolean
is_limited(gpointer user_data)
{
    return ((LimitedNote *)user_data)->text->len > 0;
}

/* Until the client has read the answer that makes it wait. */
static void
wait_limited(LimitedNote *note)
{
    g_string_truncate(note->text, 0);
    eb_test_run_until(is_limited, note);
}

/* retry_after is a float, comes in the header and in the body, and the larger of the two counts. */
static void
test_retry_after(RestFixture *fixture, gconstpointer data)
{
    static const struct {
        const char *headers;
        const char *body;
        gint64 least_ms;
    } cases[] = {
        {"Retry-After: 1", "{\"retry_after\":3.25}", 3250},
        {"Retry-After: 4", "{\"retry_after\":0.5}", 4000},
        {"X-RateLimit-Reset-After: 2.5\nX-RateLimit-Remaining: 0", "{\"message\":\"x\"}", 2500},
        {NULL, "{\"retry_after\":2.999,\"global\":true}", 2999},
        {"Retry-After: nonsense", "{\"retry_after\":\"2\"}", 1000},
        {"Retry-After: -3", "{\"retry_after\":-1}", 1000},
    };
    discord_rest_set_speed(fixture->rest, SPEED);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        scripted_server_push(fixture->server,
                             (ScriptedAnswer){.status = 429, .headers = cases[i].headers, .body = cases[i].body});
        rest_fixture_expect_success(fixture, rest_fixture_get("1"));
        g_assert_cmpuint(fixture->server->requests->len, ==, 2 * i + 2);
        g_assert_cmpint(between(fixture, 2 * i, 2 * i + 1), >=, cases[i].least_ms * 1000);
    }
}

/* B25: a page of Cloudflare's in place of an answer: nothing at all is sent for a minute, from no channel. */
static void
test_cloudflare(RestFixture *fixture, gconstpointer data)
{
    static const ScriptedAnswer pages[] = {
        {.status = 429, .headers = "Server: cloudflare\nRetry-After: 5", .body = "<html>error code: 1015</html>"},
        {.status = 403, .headers = "Server: cloudflare", .body = "<!DOCTYPE html><title>Access denied</title>"},
        {.status = 429, .body = ""},
    };
    LimitedNote note = {g_string_new(NULL), 0};
    discord_rest_set_speed(fixture->rest, SPEED);
    g_signal_connect(fixture->rest, "limited", G_CALLBACK(on_limited), &note);
    for (guint i = 0; i < G_N_ELEMENTS(pages); i++) {
        g_auto(EbTestResult) first = {0};
        g_auto(EbTestResult) second = {0};
        g_auto(EbTestResult) third = {0};
        g_autoptr(GError) error = NULL;
        guint before = fixture->server->requests->len;
        scripted_server_push(fixture->server, pages[i]);
        rest_fixture_send(fixture, rest_fixture_get("1"), &first);
        wait_limited(&note);
        DiscordRequest *plain = discord_request_new("POST", "/interactions", "9", "/interactions/9/x/callback");
        plain->plain = TRUE;
        rest_fixture_send(fixture, rest_fixture_get("2"), &second);
        rest_fixture_send(fixture, plain, &third);
        g_autoptr(JsonNode) one = discord_rest_send_finish(fixture->rest, eb_test_result_wait(&first), &error);
        g_assert_no_error(error);
        g_autoptr(JsonNode) two = discord_rest_send_finish(fixture->rest, eb_test_result_wait(&second), &error);
        g_assert_no_error(error);
        g_autoptr(JsonNode) three = discord_rest_send_finish(fixture->rest, eb_test_result_wait(&third), &error);
        g_assert_no_error(error);
        g_assert_cmpuint(fixture->server->requests->len, ==, before + 4);
        for (guint k = 1; k < 4; k++)
            g_assert_cmpint(between(fixture, before, before + k), >=, 60 * (gint64)G_USEC_PER_SEC);
    }
    g_assert_cmpuint(note.longest, >=, 59);
    g_string_free(note.text, TRUE);
}

/* It goes on and on: given back as unreachable in the end, after a handful of requests. */
static void
test_cloudflare_for_good(RestFixture *fixture, gconstpointer data)
{
    discord_rest_set_speed(fixture->rest, 20000);
    for (guint i = 0; i < 20; i++)
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 429, .body = "<html>1015</html>"});
    rest_fixture_expect_error(fixture, rest_fixture_get("1"), EB_ERROR_UNAVAILABLE, "discord.unreachable");
    g_assert_cmpuint(fixture->server->requests->len, ==, 11);
}

static void
test_global(RestFixture *fixture, gconstpointer data)
{
    LimitedNote note = {g_string_new(NULL), 0};
    g_auto(EbTestResult) first = {0};
    g_auto(EbTestResult) second = {0};
    g_autoptr(GError) error = NULL;
    discord_rest_set_speed(fixture->rest, SPEED);
    g_signal_connect(fixture->rest, "limited", G_CALLBACK(on_limited), &note);
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 429,
                                                           .headers = "X-RateLimit-Global: true\nRetry-After: 65",
                                                           .body = "{\"retry_after\":64.57,\"global\":true}"});
    rest_fixture_send(fixture, rest_fixture_get("1"), &first);
    wait_limited(&note);
    rest_fixture_send(fixture, rest_fixture_get("2"), &second);
    DiscordRequest *plain = discord_request_new("POST", "/interactions", "9", "/interactions/9/x/callback");
    plain->plain = TRUE;
    rest_fixture_expect_success(fixture, plain);
    g_autoptr(JsonNode) one = discord_rest_send_finish(fixture->rest, eb_test_result_wait(&first), &error);
    g_assert_no_error(error);
    g_autoptr(JsonNode) two = discord_rest_send_finish(fixture->rest, eb_test_result_wait(&second), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(scripted_server_get(fixture->server, 1)->line, ==, "POST /interactions/9/x/callback");
    g_assert_null(scripted_server_get(fixture->server, 1)->authorization);
    g_assert_cmpint(between(fixture, 0, 2), >=, 65 * (gint64)G_USEC_PER_SEC);
    g_assert_cmpint(between(fixture, 0, 3), >=, 65 * (gint64)G_USEC_PER_SEC);
    g_string_free(note.text, TRUE);
}

/* A rename that has to wait ten minutes: nothing else waits with it, and whoever has no patience is told. */
static void
test_sublimit(RestFixture *fixture, gconstpointer data)
{
    LimitedNote note = {g_string_new(NULL), 0};
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_signal_connect(fixture->rest, "limited", G_CALLBACK(on_limited), &note);
    DiscordRequest *rename = discord_request_new("PATCH", "/channels/{c}#name", "1", "/channels/1");
    rename->patience_ms = 500;
    scripted_server_push(fixture->server,
                         (ScriptedAnswer){.status = 429,
                                          .headers = "X-RateLimit-Bucket: p\nX-RateLimit-Remaining: 4\n"
                                                     "X-RateLimit-Reset-After: 15\nX-RateLimit-Scope: user",
                                          .body = "{\"retry_after\":598.123,\"global\":false}"});
    rest_fixture_send(fixture, rename, &done);
    scripted_server_wait(fixture->server, 1);
    rest_fixture_expect_success(fixture, discord_request_new("PATCH", "/channels/{c}", "1", "/channels/1"));
    rest_fixture_expect_success(fixture, rest_fixture_post("1", "x"));
    g_assert_null(discord_rest_send_finish(fixture->rest, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, "discord.patience", "500 ms");
    g_assert_cmpstr(note.text->str, ==, "/channels/{c}#name;");
    g_assert_cmpuint(note.longest, >=, 590);
    g_assert_cmpuint(fixture->server->requests->len, ==, 3);
    g_string_free(note.text, TRUE);
}

/* --- no more --- */

static void
on_unauthorized(DiscordRest *rest, gpointer user_data)
{
    ++*(guint *)user_data;
}

static void
test_unauthorized(RestFixture *fixture, gconstpointer data)
{
    guint told = 0;
    g_signal_connect(fixture->rest, "unauthorized", G_CALLBACK(on_unauthorized), &told);
    DiscordRequest *plain = discord_request_new("PATCH", "/webhooks", "9", "/webhooks/9/x/messages/@original");
    plain->plain = TRUE;
    scripted_server_push(fixture->server,
                         (ScriptedAnswer){.status = 401, .body = "{\"code\":50027,\"message\":\"x\"}"});
    rest_fixture_expect_error(fixture, plain, EB_ERROR_UNAUTHENTICATED, "discord.unauthorized");
    g_assert_cmpuint(told, ==, 0);
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 401, .body = "{\"message\":\"401\",\"code\":0}"});
    rest_fixture_expect_error(fixture, rest_fixture_get("1"), EB_ERROR_UNAUTHENTICATED, "discord.unauthorized");
    g_assert_cmpuint(told, ==, 1);
    rest_fixture_expect_error(fixture, rest_fixture_get("2"), EB_ERROR_UNAUTHENTICATED, "discord.unauthorized");
    rest_fixture_expect_error(fixture, rest_fixture_post("3", "x"), EB_ERROR_UNAUTHENTICATED, "discord.unauthorized");
    g_assert_cmpuint(fixture->server->requests->len, ==, 2);
    g_assert_cmpuint(told, ==, 1);
}

/* Refused over and over by a caller that does not learn: silence long before the address is banned. */
static void
test_invalid_budget(RestFixture *fixture, gconstpointer data)
{
    enum { BATCH = 100 };
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < 6000; i++)
        scripted_server_push(fixture->server,
                             (ScriptedAnswer){.status = 403, .body = "{\"code\":50013,\"message\":\"x\"}"});
    for (guint done = 0; done < 6000 && error == NULL; done += BATCH) {
        EbTestResult results[BATCH] = {0};
        for (guint i = 0; i < BATCH; i++) {
            g_autofree char *channel = g_strdup_printf("%u", i);
            DiscordRequest *request = rest_fixture_get(channel);
            request->plain = TRUE; /* outside the global limit, so that it does not take minutes */
            rest_fixture_send(fixture, request, &results[i]);
        }
        for (guint i = 0; i < BATCH; i++) {
            g_clear_error(&error);
            g_assert_null(discord_rest_send_finish(fixture->rest, eb_test_result_wait(&results[i]), &error));
            eb_test_result_clear(&results[i]);
            if (g_error_matches(error, EB_ERROR, EB_ERROR_DENIED))
                g_clear_error(&error);
        }
    }
    guint retry_ms;
    eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.invalid-budget", "bans the address");
    g_assert_true(eb_error_get_retry(error, &retry_ms));
    rest_fixture_expect_error(fixture, rest_fixture_post("2", "x"), EB_ERROR_QUOTA, "discord.invalid-budget");
    g_assert_cmpuint(fixture->server->requests->len, ==, 5000);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, function)                                                                                            \
    g_test_add("/discord/rest-limits/" name, RestFixture, NULL, rest_fixture_set_up, function, rest_fixture_tear_down)
    ADD("retry-after", test_retry_after);
    ADD("cloudflare", test_cloudflare);
    ADD("cloudflare-for-good", test_cloudflare_for_good);
    ADD("global", test_global);
    ADD("sublimit", test_sublimit);
    ADD("unauthorized", test_unauthorized);
    ADD("invalid-budget", test_invalid_budget);
    return g_test_run();
}
