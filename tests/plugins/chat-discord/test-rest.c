/* SPDX-License-Identifier: MIT */
/* The REST client against a server that answers what each test wants. */
#include "discord-rest.h"
#include "scripted-server.h"

#define MESSAGES "/channels/{c}/messages"

typedef struct {
    ScriptedServer *server;
    DiscordRest *rest;
} Fixture;

static void
setup(Fixture *fixture, gconstpointer data)
{
    fixture->server = scripted_server_new();
    fixture->rest = discord_rest_new(fixture->server->site, fixture->server->token);
}

static void
teardown(Fixture *fixture, gconstpointer data)
{
    discord_rest_close(fixture->rest);
    eb_test_drain();
    g_object_add_weak_pointer(G_OBJECT(fixture->rest), (gpointer *)&fixture->rest);
    g_object_unref(fixture->rest);
    g_assert_null(fixture->rest);
    scripted_server_free(fixture->server);
}

static DiscordRequest *
make_get(const char *channel)
{
    return discord_request_new("GET", MESSAGES, channel, "/channels/%s/messages?limit=100", channel);
}

static DiscordRequest *
make_post(const char *channel, const char *text)
{
    DiscordRequest *request = discord_request_new("POST", MESSAGES, channel, "/channels/%s/messages", channel);
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "content", text);
    request->body = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(request->body, object);
    return request;
}

static void
send_request(Fixture *fixture, DiscordRequest *request, EbTestResult *done)
{
    discord_rest_send_async(fixture->rest, request, NULL, eb_test_result_ready, done);
}

static JsonNode *
send_and_wait(Fixture *fixture, DiscordRequest *request, GError **error)
{
    g_auto(EbTestResult) done = {0};
    send_request(fixture, request, &done);
    return discord_rest_send_finish(fixture->rest, eb_test_result_wait(&done), error);
}

static void
test_request(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = send_and_wait(fixture, make_post("7", "hi \"x\""), &error);
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
test_empty_answer(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 204, .body = ""});
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = send_and_wait(fixture, make_get("1"), &error);
    g_assert_no_error(error);
    g_assert_true(JSON_NODE_HOLDS_NULL(node));
}

static void
test_errors(Fixture *fixture, gconstpointer data)
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
        {200, "<html>surprise</html>", EB_ERROR_PROTOCOL, "discord.answer", "no JSON", 0},
        {200, "{\"id\":", EB_ERROR_PROTOCOL, "discord.answer", "no JSON", 0},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = cases[i].status, .body = cases[i].body});
        g_autoptr(JsonNode) node = send_and_wait(fixture, make_get("1"), &error);
        g_assert_null(node);
        eb_test_assert_error(error, cases[i].code, cases[i].reason, cases[i].text);
        g_assert_cmpuint(discord_error_code(error), ==, cases[i].number);
    }
    g_assert_cmpuint(fixture->server->requests->len, ==, G_N_ELEMENTS(cases));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, function) g_test_add("/discord/rest/" name, Fixture, NULL, setup, function, teardown)
    ADD("request", test_request);
    ADD("empty-answer", test_empty_answer);
    ADD("errors", test_errors);
    return g_test_run();
}
