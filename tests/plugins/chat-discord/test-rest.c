/* SPDX-License-Identifier: MIT */
/* The REST client against a server that answers what each test wants. */
#include <string.h>

#include "rest-fixture.h"

static void
test_request(RestFixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = rest_fixture_send_and_wait(fixture, rest_fixture_post("7", "hi \"x\""), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(eb_json_get_string(eb_json_node_object(node), "id"), ==, "1");
    const ScriptedRequest *request = scripted_server_get(fixture->server, 0);
    g_assert_cmpstr(request->line, ==, "POST /channels/7/messages");
    g_assert_cmpstr(request->body, ==, "{\"content\":\"hi \\\"x\\\"\"}");
    g_assert_cmpstr(request->content_type, ==, "application/json");
    g_assert_cmpstr(request->authorization, ==, "Bot " SCRIPTED_TOKEN);
    g_assert_true(g_regex_match_simple("^DiscordBot \\(https://[^ ,]+, [0-9.]+\\)$", request->user_agent, 0, 0));
}

static void
test_empty_answer(RestFixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 204, .body = ""});
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = rest_fixture_send_and_wait(fixture, rest_fixture_get("1"), &error);
    g_assert_no_error(error);
    g_assert_true(JSON_NODE_HOLDS_NULL(node));
}

static void
test_errors(RestFixture *fixture, gconstpointer data)
{
    static const struct {
        guint status;
        const char *body;
        EbErrorCode code;
        const char *reason;
        const char *text;
        guint number;
    } cases[] = {
        {403, "{\"code\":50001,\"message\":\"Missing Access\"}", EB_ERROR_DENIED, "discord.50001", "Missing Access",
         50001},
        {404, "{\"code\":10003,\"message\":\"Unknown Channel\"}", EB_ERROR_NOT_FOUND, "discord.10003", NULL, 10003},
        {404, "", EB_ERROR_NOT_FOUND, "discord.http-404", "no reason given", 0},
        {404, "<html>", EB_ERROR_NOT_FOUND, "discord.http-404", NULL, 0},
        {400,
         "{\"code\":50035,\"message\":\"Invalid Form Body\",\"errors\":{\"embeds\":{\"0\":{\"title\":{\"_errors\":"
         "[{\"code\":\"X\",\"message\":\"too long\"}]}}}}}",
         EB_ERROR_INVALID, "discord.50035", "Invalid Form Body (embeds.0.title: too long)", 50035},
        {413, "{\"code\":40005,\"message\":\"a\\u0007\\nb\"}", EB_ERROR_INVALID, "discord.40005", "a\\x07\\x0ab",
         40005},
        {302, "{}", EB_ERROR_PROTOCOL, "discord.http-302", NULL, 0},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = cases[i].status, .body = cases[i].body});
        g_autoptr(JsonNode) node = rest_fixture_send_and_wait(fixture, rest_fixture_get("1"), &error);
        g_assert_null(node);
        eb_test_assert_error(error, cases[i].code, cases[i].reason, cases[i].text);
        g_assert_cmpuint(discord_error_code(error), ==, cases[i].number);
    }
    g_assert_cmpuint(fixture->server->requests->len, ==, G_N_ELEMENTS(cases));
}

/* --- repeats --- */

static void
test_5xx(RestFixture *fixture, gconstpointer data)
{
    static const char *const bodies[] = {"", "<html>", "{\"message\":\"x\"}"};
    discord_rest_set_speed(fixture->rest, 100);
    for (guint i = 0; i < 3; i++)
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 500 + i, .body = bodies[i]});
    rest_fixture_expect_success(fixture, rest_fixture_get("1"));
    g_assert_cmpuint(fixture->server->requests->len, ==, 4);
    for (guint i = 0; i < 5; i++)
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 503, .body = ""});
    g_autoptr(GError) error = NULL;
    guint retry_ms;
    g_assert_null(rest_fixture_send_and_wait(fixture, rest_fixture_get("1"), &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "discord.unreachable", "503");
    g_assert_true(eb_error_get_retry(error, &retry_ms));
    g_assert_cmpuint(fixture->server->requests->len, ==, 8);
}

/* Who does not say that it may be sent twice is not sent twice: it may have been done the first time. */
static void
test_not_repeatable(RestFixture *fixture, gconstpointer data)
{
    discord_rest_set_speed(fixture->rest, 100);
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 502, .body = ""});
    rest_fixture_expect_error(fixture, rest_fixture_post("1", "x"), EB_ERROR_UNAVAILABLE, "discord.unreachable");
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 0});
    rest_fixture_expect_error(fixture, rest_fixture_post("1", "x"), EB_ERROR_UNAVAILABLE, "discord.unreachable");
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .cut = TRUE, .body = "{\"i"});
    rest_fixture_expect_error(fixture, rest_fixture_post("1", "x"), EB_ERROR_UNAVAILABLE, "discord.unreachable");
    g_assert_cmpuint(fixture->server->requests->len, ==, 3);
    DiscordRequest *guarded = rest_fixture_post("1", "x");
    guarded->repeatable = TRUE;
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 0});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .cut = TRUE, .body = "{\"i"});
    rest_fixture_expect_success(fixture, guarded);
    g_assert_cmpuint(fixture->server->requests->len, ==, 6);
}

/* But what never reached anybody is. */
static void
test_nobody_there(RestFixture *fixture, gconstpointer data)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    discord_rest_set_speed(fixture->rest, 5);
    scripted_server_refuse(fixture->server);
    rest_fixture_send(fixture, rest_fixture_post("1", "x"), &done);
    eb_test_run_for(100);
    g_assert_null(done.result);
    scripted_server_return(fixture->server);
    g_autoptr(JsonNode) node = discord_rest_send_finish(fixture->rest, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(fixture->server->requests->len, ==, 1);
}

/* A page in place of an answer is none, whatever its status. */
static void
test_no_json(RestFixture *fixture, gconstpointer data)
{
    static const char *const bodies[] = {"<html>surprise</html>", "{\"id\":"};
    discord_rest_set_speed(fixture->rest, 100);
    for (guint i = 0; i < G_N_ELEMENTS(bodies); i++) {
        guint before = fixture->server->requests->len;
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = bodies[i]});
        rest_fixture_expect_error(fixture, rest_fixture_post("1", "x"), EB_ERROR_PROTOCOL, "discord.answer");
        g_assert_cmpuint(fixture->server->requests->len, ==, before + 1);
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = bodies[i]});
        rest_fixture_expect_success(fixture, rest_fixture_get("1"));
        g_assert_cmpuint(fixture->server->requests->len, ==, before + 3);
    }
}

/* --- order, places, ends --- */

typedef struct {
    GString *done;
    guint count;
} Order;

typedef struct {
    Order *order;
    guint index;
} OrderedCall;

static void
on_ordered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    OrderedCall *call = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    g_string_append_printf(call->order->done, "%u%s;", call->index, error != NULL ? "!" : "");
    call->order->count++;
    g_free(call);
}

static void
send_ordered(RestFixture *fixture, Order *order, guint index, DiscordRequest *request, GCancellable *cancellable)
{
    OrderedCall *call = g_new(OrderedCall, 1);
    *call = (OrderedCall){order, index};
    discord_rest_send_async(fixture->rest, request, cancellable, on_ordered, call);
}

typedef struct {
    Order *order;
    guint count;
} OrderedWait;

static gboolean
is_ordered(gpointer user_data)
{
    OrderedWait *wait = user_data;
    return wait->order->count >= wait->count;
}

static void
wait_ordered(Order *order, guint count)
{
    OrderedWait wait = {order, count};
    eb_test_run_until(is_ordered, &wait);
}

/* One after another in a channel, also over a 5xx, while other channels go on beside it. */
static void
test_order(RestFixture *fixture, gconstpointer data)
{
    Order order = {g_string_new(NULL), 0};
    discord_rest_set_speed(fixture->rest, 20);
    scripted_server_push_for(fixture->server, "POST /channels/1/messages", (ScriptedAnswer){.status = 500, .body = ""});
    for (guint i = 0; i < 4; i++) {
        DiscordRequest *request = rest_fixture_post("1", "x");
        request->repeatable = TRUE;
        send_ordered(fixture, &order, i, request, NULL);
    }
    send_ordered(fixture, &order, 9, rest_fixture_post("2", "x"), NULL);
    wait_ordered(&order, 5);
    g_assert_cmpstr(order.done->str, ==, "9;0;1;2;3;");
    g_string_free(order.done, TRUE);
}

/* Requests that hang, in as many channels as you like, do not hold up one in another. */
static void
test_hung_beside(RestFixture *fixture, gconstpointer data)
{
    Order order = {g_string_new(NULL), 0};
    for (guint i = 0; i < 8; i++) {
        g_autofree char *channel = g_strdup_printf("%u", 100 + i);
        g_autofree char *line = g_strdup_printf("POST /channels/%s/messages", channel);
        scripted_server_push_for(fixture->server, line, (ScriptedAnswer){.hang = TRUE});
        send_ordered(fixture, &order, i, rest_fixture_post(channel, "x"), NULL);
    }
    scripted_server_wait(fixture->server, 8);
    rest_fixture_expect_success(fixture, rest_fixture_post("1", "x"));
    g_assert_cmpuint(order.count, ==, 0);
    discord_rest_close(fixture->rest);
    wait_ordered(&order, 8);
    g_assert_null(strstr(order.done->str, "0;"));
    g_string_free(order.done, TRUE);
}

/* Cancelled while it waits, or while it is under way: its place is free for the next. */
static void
test_cancel(RestFixture *fixture, gconstpointer data)
{
    Order order = {g_string_new(NULL), 0};
    g_autoptr(GCancellable) flying = g_cancellable_new();
    g_autoptr(GCancellable) waiting = g_cancellable_new();
    g_autoptr(GCancellable) before = g_cancellable_new();
    g_cancellable_cancel(before);
    scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
    send_ordered(fixture, &order, 0, rest_fixture_post("1", "a"), flying);
    send_ordered(fixture, &order, 1, rest_fixture_post("1", "b"), waiting);
    send_ordered(fixture, &order, 2, rest_fixture_post("1", "c"), NULL);
    send_ordered(fixture, &order, 3, rest_fixture_post("1", "d"), before);
    scripted_server_wait(fixture->server, 1);
    g_cancellable_cancel(waiting);
    wait_ordered(&order, 2);
    g_cancellable_cancel(flying);
    wait_ordered(&order, 4);
    g_assert_cmpstr(order.done->str, ==, "3!;1!;0!;2;");
    g_assert_cmpuint(fixture->server->requests->len, ==, 2);
    g_assert_nonnull(strstr(scripted_server_get(fixture->server, 1)->body, "\"c\""));
    g_string_free(order.done, TRUE);
}

static void
test_patience(RestFixture *fixture, gconstpointer data)
{
    DiscordRequest *request = rest_fixture_get("1");
    request->patience_ms = 200;
    scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
    rest_fixture_expect_error(fixture, request, EB_ERROR_TIMEOUT, "discord.patience");
    rest_fixture_expect_success(fixture, rest_fixture_get("1"));
}

static void
test_bound(RestFixture *fixture, gconstpointer data)
{
    Order order = {g_string_new(NULL), 0};
    scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
    for (guint i = 0; i < DISCORD_REST_MAX_QUEUED; i++)
        send_ordered(fixture, &order, i, rest_fixture_post("1", "x"), NULL);
    rest_fixture_expect_error(fixture, rest_fixture_get("2"), EB_ERROR_QUOTA, "discord.queue-full");
    discord_rest_close(fixture->rest);
    wait_ordered(&order, DISCORD_REST_MAX_QUEUED);
    g_assert_null(strstr(order.done->str, "7;"));
    rest_fixture_expect_error(fixture, rest_fixture_get("2"), EB_ERROR_CANCELLED, "discord.cancelled");
    g_string_free(order.done, TRUE);
}

/* --- what is sent, and where --- */

static void
test_paths(RestFixture *fixture, gconstpointer data)
{
    static const char *const bad[] = {
        "/channels/../users/@me", "channels/1", "/channels//x", "/channels/1#x", "/channels/1 HTTP/1.1", "/a\\b", ""};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        rest_fixture_expect_error(fixture, discord_request_new("GET", "/x", NULL, "%s", bad[i]), EB_ERROR_INVALID,
                                  "discord.path");
    g_assert_cmpuint(fixture->server->requests->len, ==, 0);
    rest_fixture_expect_success(
        fixture, discord_request_new("PUT", "/r", "1", "/channels/1/messages/2/reactions/%s/@me", "%E2%9C%85"));
    g_assert_cmpuint(fixture->server->requests->len, ==, 1);
}

/* The token does not follow a redirect, wherever it leads. */
static void
test_redirect(RestFixture *fixture, gconstpointer data)
{
    static const guint statuses[] = {301, 302, 303, 307, 308};
    g_autoptr(ScriptedServer) other = scripted_server_new();
    g_autofree char *headers = g_strdup_printf("Location: %s/steal", other->url);
    for (guint i = 0; i < G_N_ELEMENTS(statuses); i++) {
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = statuses[i], .headers = headers});
        g_autofree char *reason = g_strdup_printf("discord.http-%u", statuses[i]);
        rest_fixture_expect_error(fixture, rest_fixture_get("1"), EB_ERROR_PROTOCOL, reason);
    }
    g_assert_cmpuint(other->requests->len, ==, 0);
}

static void
test_no_cookies(RestFixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .headers = "Set-Cookie: __cfduid=1; Path=/"});
    rest_fixture_expect_success(fixture, rest_fixture_get("1"));
    rest_fixture_expect_success(fixture, rest_fixture_get("1"));
    g_assert_null(scripted_server_get(fixture->server, 1)->cookie);
}

static void
test_answer_size(RestFixture *fixture, gconstpointer data)
{
    g_autofree char *huge = g_strnfill(9 * 1024 * 1024, ' ');
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = huge});
    rest_fixture_expect_error(fixture, rest_fixture_get("1"), EB_ERROR_QUOTA, "discord.answer-size");
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = huge, .chunked = TRUE});
    rest_fixture_expect_error(fixture, rest_fixture_get("1"), EB_ERROR_QUOTA, "discord.answer-size");
    rest_fixture_expect_success(fixture, rest_fixture_get("1"));
}

static void
test_upload(RestFixture *fixture, gconstpointer data)
{
    static const char content[] = "a\0b\r\n--x";
    g_autoptr(GBytes) bytes = g_bytes_new(content, sizeof content);
    DiscordRequest *request = rest_fixture_post("1", "see");
    request->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_ptr_array_add(request->files, eb_chat_file_new("a b.txt", "text/plain", bytes));
    rest_fixture_expect_success(fixture, request);
    const ScriptedRequest *got = scripted_server_get(fixture->server, 0);
    g_assert_true(g_str_has_prefix(got->content_type, "multipart/form-data; boundary=errand-box-"));
    SoupMessageHeaders *headers = soup_message_headers_new(SOUP_MESSAGE_HEADERS_MULTIPART);
    soup_message_headers_append(headers, "Content-Type", got->content_type);
    g_autoptr(GBytes) body = g_bytes_new(got->body, got->body_length);
    SoupMultipart *multipart = soup_multipart_new_from_message(headers, body);
    g_assert_nonnull(multipart);
    g_assert_cmpint(soup_multipart_get_length(multipart), ==, 2);
    SoupMessageHeaders *part_headers;
    GBytes *part;
    g_assert_true(soup_multipart_get_part(multipart, 1, &part_headers, &part));
    g_assert_true(g_bytes_equal(part, bytes));
    g_assert_cmpstr(soup_message_headers_get_one(part_headers, "Content-Disposition"), ==,
                    "form-data; name=\"files[0]\"; filename=\"a b.txt\"");
    soup_multipart_free(multipart);
    soup_message_headers_unref(headers);
}

/* --- secrets --- */

static GString *logged;

static GLogWriterOutput
collect(GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
    for (gsize i = 0; i < n_fields; i++)
        if (fields[i].length < 0)
            g_string_append_printf(logged, "%s=%s\n", fields[i].key, (const char *)fields[i].value);
        else
            g_string_append_len(logged, fields[i].value, fields[i].length);
    return G_LOG_WRITER_HANDLED;
}

/* Everything that libraries and we log while everything goes wrong. */
static void
test_token_not_logged(void)
{
    if (g_test_subprocess()) {
        RestFixture fixture;
        logged = g_string_new(NULL);
        g_setenv("G_MESSAGES_DEBUG", "all", TRUE);
        g_log_set_writer_func(collect, NULL, NULL);
        rest_fixture_set_up(&fixture, NULL);
        discord_rest_set_speed(fixture.rest, 100);
        scripted_server_push(fixture.server, (ScriptedAnswer){.status = 500, .body = ""});
        scripted_server_push(fixture.server, (ScriptedAnswer){.status = 0});
        scripted_server_push(fixture.server, (ScriptedAnswer){.status = 429, .body = "{\"retry_after\":6.5}"});
        rest_fixture_expect_success(&fixture, rest_fixture_get("1"));
        scripted_server_push(fixture.server, (ScriptedAnswer){.status = 403, .body = "{\"code\":50001}"});
        rest_fixture_expect_error(&fixture, rest_fixture_get("1"), EB_ERROR_DENIED, "discord.50001");
        scripted_server_push(fixture.server, (ScriptedAnswer){.status = 401, .body = "{}"});
        rest_fixture_expect_error(&fixture, rest_fixture_get("1"), EB_ERROR_UNAUTHENTICATED, "discord.unauthorized");
        g_assert_true(g_strcmp0(scripted_server_get(fixture.server, 0)->authorization, "Bot " SCRIPTED_TOKEN) == 0);
        g_assert_nonnull(strstr(logged->str, "answered 403, code 50001"));
        g_assert_null(strstr(logged->str, "TOKEN-that"));
        rest_fixture_tear_down(&fixture, NULL);
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr_unmatched("*TOKEN-that*");
    g_test_trap_assert_stdout_unmatched("*TOKEN-that*");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, function)                                                                                            \
    g_test_add("/discord/rest/" name, RestFixture, NULL, rest_fixture_set_up, function, rest_fixture_tear_down)
    ADD("request", test_request);
    ADD("empty-answer", test_empty_answer);
    ADD("errors", test_errors);
    ADD("5xx", test_5xx);
    ADD("not-repeatable", test_not_repeatable);
    ADD("nobody-there", test_nobody_there);
    ADD("no-json", test_no_json);
    ADD("order", test_order);
    ADD("hung-beside", test_hung_beside);
    ADD("cancel", test_cancel);
    ADD("patience", test_patience);
    ADD("bound", test_bound);
    ADD("paths", test_paths);
    ADD("redirect", test_redirect);
    ADD("no-cookies", test_no_cookies);
    ADD("answer-size", test_answer_size);
    ADD("upload", test_upload);
    g_test_add_func("/discord/rest/token-not-logged", test_token_not_logged);
    return g_test_run();
}
