/* SPDX-License-Identifier: MIT */
#pragma once

#include "ds-world.h"

G_BEGIN_DECLS

typedef struct _DsRequest DsRequest;

/** DsRoute: one call of the API. */
typedef struct {
    const char *method;
    const char *template; /* parts in braces go into args */
    void (*handle)(DsRequest *request);
    guint limit; /* of its bucket; 0 = none */
    guint window_ms;
    const char *bucket; /* (nullable): routes with one name share */
    gboolean plain;     /* needs no authorization and is outside the global limit */
} DsRoute;

/** DsUpload: a part of a multipart body. */
typedef struct {
    char *field; /* files[n] */
    char *name;
    char *type;
    GBytes *bytes;
} DsUpload;

struct _DsRequest {
    DsWorld *world;
    SoupServerMessage *message;
    const DsRoute *route; /* (nullable) */
    char *method;
    char *path; /* below /api/v10 */
    char *args[4];
    GHashTable *query;  /* (nullable) */
    JsonObject *body;   /* (nullable) */
    JsonArray *list;    /* (nullable): a body that is an array */
    GPtrArray *uploads; /* (nullable) (element-type DsUpload) */
    gboolean authorized;
    guint status;
    int code; /* of the error, or 0 */
    gint64 began_us;
};

void ds_request_free(DsRequest *self);
const char *ds_request_query(DsRequest *self, const char *name);

/* Each ends the request. */
void ds_answer(DsRequest *self, guint status, JsonNode *node);
void ds_answer_object(DsRequest *self, guint status, JsonObject *object);
void ds_answer_empty(DsRequest *self);
void ds_refuse(DsRequest *self, guint status, int code, const char *message);
/** ds_refuse_code: with the usual status and words of @code. */
void ds_refuse_code(DsRequest *self, int code);
/** ds_refuse_errors: 400 50035. @errors: (transfer full): the tree */
void ds_refuse_errors(DsRequest *self, JsonObject *errors);

/* Each finds what the path names, or refuses and gives NULL. */
DsChannel *ds_request_channel(DsRequest *self, const char *id, guint64 needs);
DsMessage *ds_request_message(DsRequest *self, DsChannel *channel, const char *id);

/** ds_routes_find: fills args. */
const DsRoute *ds_routes_find(DsRequest *self, gboolean *path_known);
extern const DsRoute ds_routes_messages[];
extern const DsRoute ds_routes_threads[];
extern const DsRoute ds_routes_guild[];
extern const DsRoute ds_routes_interactions[];

/** ds_rest_handle: a request below /api. @server_message is answered now, or paused until it is. */
void ds_rest_handle(DsWorld *world, SoupServerMessage *message, const char *path, GHashTable *query);
/** ds_cdn_handle: an attachment. */
void ds_cdn_handle(DsWorld *world, SoupServerMessage *message, const char *path, GHashTable *query);

/* --- ds-body.c --- */
/** ds_body_read: JSON or multipart into body, list, uploads; FALSE: refused. */
gboolean ds_body_read(DsRequest *self);

/* --- ds-faults.c --- */
/** ds_faults_take: TRUE: the request was answered otherwise, or will be. */
gboolean ds_faults_take(DsRequest *self, void (*go_on)(DsRequest *));
/** ds_break: the connection of @message ends: with a reset, or after @raw (nullable) was sent. */
void ds_break(SoupServerMessage *message, const char *raw);
/** ds_socket_of: (transfer none) (nullable) */
GSocket *ds_socket_of(SoupServerMessage *message);

/* --- shared by messages and interactions --- */
/** ds_post_message: makes a message of a checked body. (nullable): refused. */
DsMessage *ds_make_message(DsRequest *self, DsChannel *channel, JsonObject *body, gboolean users_only);
/** ds_change_message: FALSE: refused. */
gboolean ds_change_message(DsRequest *self, DsMessage *message, JsonObject *body, gboolean users_only);

G_END_DECLS
