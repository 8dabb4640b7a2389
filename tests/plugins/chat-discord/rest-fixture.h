/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-rest.h"
#include "scripted-server.h"

G_BEGIN_DECLS

/** RestFixture: a client and the server it speaks to. */
typedef struct {
    ScriptedServer *server;
    DiscordRest *rest;
} RestFixture;

void rest_fixture_set_up(RestFixture *fixture, gconstpointer data);
/** rest_fixture_tear_down: closes, and asserts that nothing holds the client any more. */
void rest_fixture_tear_down(RestFixture *fixture, gconstpointer data);
/** rest_fixture_get, rest_fixture_post: (transfer full): a request for the messages of @channel. */
DiscordRequest *rest_fixture_get(const char *channel);
DiscordRequest *rest_fixture_post(const char *channel, const char *text);
/** rest_fixture_send, ...: @request: (transfer full) */
void rest_fixture_send(RestFixture *fixture, DiscordRequest *request, EbTestResult *done);
JsonNode *rest_fixture_send_and_wait(RestFixture *fixture, DiscordRequest *request, GError **error);
void rest_fixture_expect_error(RestFixture *fixture, DiscordRequest *request, EbErrorCode code, const char *reason);
void rest_fixture_expect_success(RestFixture *fixture, DiscordRequest *request);

G_END_DECLS
