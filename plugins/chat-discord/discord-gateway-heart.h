/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-gateway-budget.h"

G_BEGIN_DECLS

/* Heartbeat intervals taken, ms; Discord's is 41250. */
#define DISCORD_HEART_MIN 100
#define DISCORD_HEART_MAX (10 * 60 * 1000)
/** DISCORD_HEART_LATE: a beat this late, ms, means that we were not running: the ACK may lie unread. */
#define DISCORD_HEART_LATE 2000
/** DISCORD_HEART_GRACE: how long, ms, such an ACK is given to be read. */
#define DISCORD_HEART_GRACE 5000

/** DiscordHeart: the heartbeats of one connection, and what it may send. All times are ms of the monotonic clock. */
typedef struct {
    gint64 interval; /* 0: no HELLO yet */
    gint64 next;     /* G_MAXINT64: none */
    gboolean acked;
    gboolean graced;
    DiscordSends sends;
} DiscordHeart;

typedef enum {
    DISCORD_HEART_REST, /* nothing to do before next */
    DISCORD_HEART_BEAT, /* send one */
    DISCORD_HEART_DEAD, /* the one before was never answered: nobody is there, whatever writing says */
} DiscordHeartVerdict;

/** discord_heart_stop: the connection is gone; also what a new one starts from. */
void discord_heart_stop(DiscordHeart *self);
/**
 * discord_heart_hello: @interval from HELLO; FALSE = none that can be one. The first beat comes after a random part of
 * it; an answer that the connection before missed is forgotten (Psycheros#42).
 */
gboolean discord_heart_hello(DiscordHeart *self, gint64 interval, GRand *random, gint64 now);
void discord_heart_ack(DiscordHeart *self);
/** discord_heart_tick: to be called when next has come. */
DiscordHeartVerdict discord_heart_tick(DiscordHeart *self, gint64 now);
/** discord_heart_asked: the server asks for a beat: TRUE = send it; FALSE when it asked too often. */
gboolean discord_heart_asked(DiscordHeart *self, gint64 now);

G_END_DECLS
