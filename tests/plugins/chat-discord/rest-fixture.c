/* SPDX-License-Identifier: MIT */
#include "rest-fixture.h"

#include <string.h>

#define MESSAGES "/channels/{c}/messages"

void
rest_fixture_set_up(RestFixture *fixture, gconstpointer data)
{
    fixture->server = scripted_server_new();
    fixture->rest = discord_rest_new(fixture->server->site, fixture->server->token);
}

void
rest_fixture_tear_down(RestFixture *fixture, gconstpointer data)
{
    discord_rest_close(fixture->rest);
    eb_test_drain();
    g_object_add_weak_pointer(G_OBJECT(fixture->rest), (gpointer *)&fixture->rest);
    g_object_unref(fixture->rest);
    g_assert_null(fixture->rest);
    scripted_server_free(fixture->server);
}

DiscordRequest *
rest_fixture_get(const char *channel)
{
    return discord_request_new("GET", MESSAGES, channel, "/channels/%s/messages?limit=100", channel);
}

DiscordRequest *
rest_fixture_post(const char *channel, const char *text)
{
    DiscordRequest *request = discord_request_new("POST", MESSAGES, channel, "/channels/%s/messages", channel);
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "content", text);
    request->body = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(request->body, object);
    return request;
}

void
rest_fixture_send(RestFixture *fixture, DiscordRequest *request, EbTestResult *done)
{
    discord_rest_send_async(fixture->rest, request, NULL, eb_test_result_ready, done);
}

JsonNode *
rest_fixture_send_and_wait(RestFixture *fixture, DiscordRequest *request, GError **error)
{
    g_auto(EbTestResult) done = {0};
    rest_fixture_send(fixture, request, &done);
    return discord_rest_send_finish(fixture->rest, eb_test_result_wait(&done), error);
}

void
rest_fixture_expect_error(RestFixture *fixture, DiscordRequest *request, EbErrorCode code, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = rest_fixture_send_and_wait(fixture, request, &error);
    g_assert_null(node);
    eb_test_assert_error(error, code, reason, NULL);
    g_assert_null(strstr(error->message, SCRIPTED_TOKEN));
}

void
rest_fixture_expect_success(RestFixture *fixture, DiscordRequest *request)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = rest_fixture_send_and_wait(fixture, request, &error);
    g_assert_no_error(error);
    g_assert_nonnull(node);
}
