/* SPDX-License-Identifier: MIT */
#pragma once

#include "ds-world.h"

G_BEGIN_DECLS

/** DS_KEPT_MAX: dispatches of one session that can be replayed. */
#define DS_KEPT_MAX 20000

typedef struct _DsConnection DsConnection;

/** DsSession: what RESUME goes on with. */
typedef struct {
    char *id;
    gint64 intents;
    guint64 seq;
    guint64 first_kept;       /* seq of the first of kept */
    GPtrArray *kept;          /* (element-type utf8) */
    DsConnection *connection; /* (nullable) */
    gint64 lost_us;
    gboolean dead;
} DsSession;

/** DsEventFault: what happens to the next matching dispatches. */
typedef struct {
    char *type; /* (nullable): any */
    char *kind; /* drop duplicate delay reorder */
    guint count;
    guint skip;
    guint delay_ms;
} DsEventFault;

typedef struct {
    char *type;
    JsonObject *data;
    gint64 intent;
} DsEvent;

struct _DsGateway {
    DsWorld *world;         /* (unowned) */
    GPtrArray *sessions;    /* (element-type DsSession) */
    GPtrArray *connections; /* (element-type DsConnection) */
    GPtrArray *faults;      /* (element-type DsEventFault) */
    GPtrArray *held;        /* (element-type DsEvent): told after the next one */
    GPtrArray *paused;      /* (element-type DsEvent) (nullable): all wait */
    /* set by tests */
    char *url;        /* (nullable): another URL to name */
    char *resume_url; /* (nullable) */
    guint heartbeat_ms;
    gboolean no_ack;
    gboolean no_hello;
    gboolean no_ready;
    guint shards;
    guint total;
    guint remaining;
    guint reset_after_ms;
    guint identify_interval_ms;
    guint resume_window_ms;
    char *resume;   /* (nullable): invalid-true, invalid-false, or a close code */
    char *identify; /* (nullable): the same for IDENTIFY */
    guint padding;  /* bytes that GUILD_CREATE is longer */
    gint64 last_identify_us;
};

DsGateway *ds_gateway_new(DsWorld *world);
void ds_gateway_free(DsGateway *self);
char *ds_gateway_get_url(DsGateway *self);
guint ds_gateway_get_shards(DsGateway *self);
JsonObject *ds_gateway_start_limit(DsGateway *self);
/** ds_gateway_accept: a websocket to /gateway or /resume. */
void ds_gateway_accept(DsGateway *self, SoupServerMessage *message, const char *path, SoupWebsocketConnection *socket);
/** ds_gateway_drop: ends all connections: @code: of the close frame, 0 = TCP reset, 1 = TCP end without a frame. */
guint ds_gateway_drop(DsGateway *self, guint code);
/** ds_gateway_send_op: to all that are identified. @data: (transfer full) (nullable) */
void ds_gateway_send_op(DsGateway *self, int op, JsonNode *data);
/** ds_gateway_forget: sessions can no longer be resumed. */
void ds_gateway_forget(DsGateway *self);
guint ds_gateway_count(DsGateway *self, gboolean ready);

/* --- ds-events.c --- */
/**
 * ds_gateway_dispatch: tells an event to whoever asked for it.
 * @data: (transfer full); @intent: needed, 0 = none; @channel: (nullable): the bot must see it
 */
void ds_gateway_dispatch(DsGateway *self, const char *type, JsonObject *data, gint64 intent, DsChannel *channel);
/** ds_session_send: one event to one session, now. @data: (transfer none) */
void ds_session_send(DsGateway *self, DsSession *session, const char *type, JsonObject *data);
/** ds_gateway_release: what is paused is told. */
void ds_gateway_release(DsGateway *self);
void ds_event_free(DsEvent *self);
/** ds_gateway_guild_json: (transfer full): @whole: as GUILD_CREATE has it. */
JsonObject *ds_gateway_guild_json(DsWorld *world, gboolean whole);
/** ds_connection_send: @text: a whole payload. */
void ds_connection_send(DsConnection *self, const char *text);

G_END_DECLS
