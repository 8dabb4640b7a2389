/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-gateway-state.h"
#include "eb-test.h"

/* A state machine with a clock that the test turns and a record of what it wanted done. */
typedef struct {
    DiscordSite *site;
    DiscordGatewayState *state;
    DiscordGatewayClock now;
    GString *done;    /* names of the actions since the last look, blank between */
    char *url;        /* (nullable): last one to connect to */
    char *why;        /* (nullable): last reason for being down */
    GString *log;     /* lines */
    GError *error;    /* (nullable): given up */
    guint identifies; /* all of them */
    guint connects;
    guint sends;
} Rig;

#define RIG_INTENTS 34305
#define RIG_URL "wss://gateway.discord.gg"
#define RIG_RESUME "wss://gateway-us-east1-b.discord.gg"

Rig *rig_new(guint32 seed);
void rig_free(Rig *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Rig, rig_free)

/* Runs what is to be done into the record. */
void rig_take(Rig *self);
/* What was done since the last call is @expected. */
void rig_expect(Rig *self, const char *expected);
/* Turns the clock to when something is due, calls tick(); ms that passed. */
gint64 rig_wait(Rig *self);
void rig_pass(Rig *self, gint64 ms);
DiscordGatewayVerdict rig_receive(Rig *self, const char *text);
void rig_info(Rig *self, gint64 remaining, gint64 reset_after);

/* From the start to the state named. */
void rig_until_greeting(Rig *self);
void rig_until_up(Rig *self);
/* From UP on a connection that is lost to RESUMED. */
void rig_resume(Rig *self);
