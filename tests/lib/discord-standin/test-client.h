/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-standin.h"

#include <libsoup/soup.h>

G_BEGIN_DECLS

#define CLIENT_TOKEN "mock-test"
#define CHANNEL "/channels/" DISCORD_STANDIN_CHANNEL
#define QUIET "\"allowed_mentions\":{\"parse\":[]}"

/** Client: asks a stand-in of its own, whose limits are out of the way, and keeps the last answer. */
typedef struct {
    DiscordStandin *standin;
    SoupSession *session;
    guint status;
    int code;
    JsonNode *answer;
    SoupMessageHeaders *headers; /* of the last answer */
    const char *authorization;
    const char *agent;
    const char *type;
} Client;

/** client_set_up, client_tear_down: for g_test_add() */
void client_set_up(Client *self, gconstpointer data);
void client_tear_down(Client *self, gconstpointer data);
void client_send(Client *self, SoupMessage *message);
/** client_ask: @path: below the API's base; @body: (nullable): JSON */
void client_ask(Client *self, const char *method, const char *path, const char *body);
/** client_expect: of the last answer: status and Discord's code */
void client_expect(Client *self, guint status, int code);
/** client_complains: whether the last answer's tree of errors has @error at @path. */
gboolean client_complains(Client *self, const char *path, const char *error);
/** client_expanded: (transfer full): @text with "{*Nx}" as N times x. */
char *client_expanded(const char *text);
/** client_string_of: (transfer full) (nullable): a member of the last answer */
char *client_string_of(Client *self, const char *member);
/** client_post: (transfer full): the id of a message that the bot posted */
char *client_post(Client *self, const char *channel, const char *text);
/** client_say: (transfer full): the id of a message that a person posted */
char *client_say(Client *self, const char *json);
void client_control(Client *self, const char *verb, const char *format, ...) G_GNUC_PRINTF(3, 4);

G_END_DECLS
