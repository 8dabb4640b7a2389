/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>

#include "discord-site.h"
#include "eb-test.h"

G_BEGIN_DECLS

/** ScriptedAnswer: how one request is answered. */
typedef struct {
    guint status;        /* 0 = the connection is cut instead */
    const char *headers; /* (nullable): "Name: value" lines */
    const char *body;    /* (nullable): NULL = {} */
    gboolean hang;       /* never answered */
    gboolean chunked;    /* the length of the body is not announced */
    gboolean cut;        /* the body is shorter than announced: the connection ends in the middle of it */
} ScriptedAnswer;

/** ScriptedRequest: one that came. */
typedef struct {
    char *line; /* "POST /channels/1/messages" */
    char *body;
    gsize body_length;
    char *authorization; /* (nullable) */
    char *user_agent;
    char *content_type;
    char *cookie;
    gint64 time;
} ScriptedRequest;

/** ScriptedServer: answers request after request with what a test queued, then with 200 and {"id":"N"}. */
typedef struct {
    SoupServer *server;
    GSocketService *service; /* (nullable): accepts for it: libsoup's own listener never lets go of what it accepted */
    guint16 port;
    char *url; /* "http://127.0.0.1:PORT" */
    DiscordSite *site;
    EbSecret *token;
    GQueue answers;      /* ScriptedAnswer (owned) */
    GHashTable *by_line; /* "POST /channels/2/messages" -> GQueue of ScriptedAnswer: goes first */
    GPtrArray *requests; /* ScriptedRequest */
    GPtrArray *hanging;  /* SoupServerMessage */
    guint next_id;
    guint open; /* under way now */
    guint most; /* and at most */
} ScriptedServer;

#define SCRIPTED_TOKEN "mock.TOKEN-that-nobody-may-see"

ScriptedServer *scripted_server_new(void);
void scripted_server_free(ScriptedServer *self);
void scripted_server_push(ScriptedServer *self, ScriptedAnswer answer);
void scripted_server_push_for(ScriptedServer *self, const char *line, ScriptedAnswer answer);
const ScriptedRequest *scripted_server_get(ScriptedServer *self, guint index);
/** scripted_server_lines: (transfer full): all that came, "LINE;LINE;" */
char *scripted_server_lines(ScriptedServer *self);
/** scripted_server_refuse, scripted_server_return: nobody listens there; then somebody does again. */
void scripted_server_refuse(ScriptedServer *self);
void scripted_server_return(ScriptedServer *self);
/** scripted_server_wait: until @count requests came. */
void scripted_server_wait(ScriptedServer *self, guint count);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(ScriptedServer, scripted_server_free)

G_END_DECLS
