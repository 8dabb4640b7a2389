/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>

#include "discord-gateway.h"
#include "eb-test.h"

G_BEGIN_DECLS

#define PEER_TOKEN "mock.TOKEN-that-nobody-may-see"
#define PEER_INTENTS 34305

/*
 * GatewayPeer: the other end of a gateway connection, which does only what a test makes it do: GET /gateway/bot and
 * websockets at / and /resume. Every connection is greeted, and heartbeats are answered, unless switched off.
 */
typedef struct {
    SoupServer *server;
    GSocketService *service; /* accepts for it: what libsoup 3.2 accepts itself it never frees */
    guint port;
    DiscordSite *site;
    EbSecret *token;
    DiscordRest *rest;
    DiscordGateway *gateway; /* (nullable) */

    char *gateway_url; /* what GET /gateway/bot names */
    guint interval;    /* ms, of HELLO */
    gboolean mute;     /* no HELLO */
    gboolean deaf;     /* heartbeats are not answered */
    guint refuse;      /* status that upgrades are refused with; 0 = none */
    const char *refuse_location;

    SoupWebsocketConnection *socket; /* (nullable) (owned): the last one */
    guint n_sockets;
    guint n_asked;
    GPtrArray *received; /* (element-type utf8): "2 {..}" but heartbeats, of all connections */
    GPtrArray *paths;
    guint n_beats;
    guint last_close; /* code the client closed with */
    guint n_closed;

    GString *told; /* what the gateway told: "ready-0 MESSAGE_CREATE down " */
    GPtrArray *contents;
    GError *failed; /* (nullable) */
    guint n_told;
    guint slow_ms; /* how long a handler of events takes */
} GatewayPeer;

GatewayPeer *gateway_peer_new(void);
void gateway_peer_free(GatewayPeer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GatewayPeer, gateway_peer_free)

/* A gateway that is not started yet, its signals recorded. */
void gateway_peer_make(GatewayPeer *self, const char *state_path);
/* Stops it the orderly way and lets go of it. */
void gateway_peer_stop(GatewayPeer *self);
/* Lets go of it, which ends it: nothing keeps it. */
void gateway_peer_let_go(GatewayPeer *self);

void gateway_peer_send(GatewayPeer *self, const char *text);
/* An event with a number and a content. */
void gateway_peer_event(GatewayPeer *self, gint64 seq, const char *type, const char *content);
void gateway_peer_ready(GatewayPeer *self);
/* Bytes past the websocket's own writing. */
void gateway_peer_raw(GatewayPeer *self, const void *bytes, gsize length);
/* The connection breaks without a goodbye. */
void gateway_peer_cut(GatewayPeer *self);

/* Waits until @count payloads other than heartbeats came; the last of them. */
const char *gateway_peer_wait_received(GatewayPeer *self, guint count);
/* Waits until the record of what was told is @told. */
void gateway_peer_wait_told(GatewayPeer *self, const char *told);
/* From nothing to READY. */
void gateway_peer_bring_up(GatewayPeer *self, const char *state_path);

G_END_DECLS
