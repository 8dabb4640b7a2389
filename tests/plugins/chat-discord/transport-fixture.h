/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-standin.h"
#include "discord-transport.h"
#include "eb-test.h"

#define FIXTURE_TOKEN "mock-transport"
#define FIXTURE_CHANNEL DISCORD_STANDIN_CHANNEL

/** FIXTURE_ON_MENTION: the test's data: start_on_mention is set. */
#define FIXTURE_ON_MENTION GINT_TO_POINTER(1)

/** Fixture: the transport, connected to a stand-in of its own, and what it told, one line an event. */
typedef struct {
    DiscordStandin *standin;
    char *dir;
    DiscordConfig *config;
    DiscordTransport *transport;
    GPtrArray *told;     /* (element-type utf8): "message THREAD AUTHOR TEXT", "seen THREAD ID", "connection up", ... */
    GPtrArray *messages; /* (element-type EbChatMessage): of "message" and "edited" */
    GError *failure;     /* (nullable) */
    const EbChatPolicy *policy;
} Fixture;

/** fixture_open: a stand-in and a transport that is not started; fixture_close: the end of both. */
void fixture_open(Fixture *self, gconstpointer data);
void fixture_close(Fixture *self, gconstpointer data);
/** fixture_set_up: started, attached, connected. */
void fixture_set_up(Fixture *self, gconstpointer data);
/** fixture_make_transport: another one in place of the first, as after a restart of the service. */
void fixture_make_transport(Fixture *self);
gboolean fixture_start(Fixture *self, const char *token, GError **error);
void fixture_attach(Fixture *self);
void fixture_stop(Fixture *self);

/** fixture_call: (transfer full): a call of the stand-in's control interface; @format gives its arguments */
JsonObject *fixture_call(Fixture *self, const char *verb, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** fixture_say: (transfer full): alice says something; the message's id. @channel: (nullable): the channel */
char *fixture_say(Fixture *self, const char *channel, const char *text);
guint fixture_count(Fixture *self, const char *list, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** fixture_wait_count: until list @list has @n items; more than that fails. */
void fixture_wait_count(Fixture *self, guint n, const char *list, const char *format, ...) G_GNUC_PRINTF(4, 5);

/** fixture_wait_told: until an event is told whose line matches @pattern (a regular expression). */
void fixture_wait_told(Fixture *self, const char *pattern);
guint fixture_count_told(Fixture *self, const char *pattern);
void fixture_forget_told(Fixture *self);

/** fixture_post: (transfer full) (nullable): posts, waits for it; its message id */
char *fixture_post(Fixture *self, EbChatPost *post, GError **error);
/** fixture_text: (transfer full): as fixture_post() with a text that has to arrive; @key: (nullable) */
char *fixture_text(Fixture *self, const char *thread, const char *key, const char *text);
/** fixture_thread: (transfer full): a thread for a new message of alice */
char *fixture_thread(Fixture *self, const char *title);
gboolean fixture_react(Fixture *self, const char *thread, const char *message, const char *reaction, GError **error);
/** fixture_read_back: (transfer full) (nullable) */
GPtrArray *fixture_read_back(Fixture *self, const char *thread, const char *after, guint max, GError **error);
GBytes *fixture_fetch(Fixture *self, const EbChatAttachment *attachment, gsize max_bytes, GError **error);
