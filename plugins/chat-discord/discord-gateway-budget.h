/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * DISCORD_IDENTIFY_KEPT: how many of the last IDENTIFYs are remembered, which is also the most in 24 hours. Discord
 * allows 1000 and answers more with a new token for the bot; another program may use the same bot.
 */
#define DISCORD_IDENTIFY_KEPT 250

/**
 * DiscordIdentifyBudget: when this service identified, in ms of the monotonic clock; negative = before the machine
 * started. Kept over restarts, because what uses up a bot's 1000 a day is a service that dies and is started again.
 */
typedef struct {
    gint64 at[DISCORD_IDENTIFY_KEPT]; /* oldest first */
    guint n;
} DiscordIdentifyBudget;

/**
 * discord_identify_budget_wait: ms until one more may be sent: at most 1 in 5.5 s (Discord: 5), 6 in a minute, 20 in
 * 10 minutes, 60 in an hour, 250 in a day.
 */
gint64 discord_identify_budget_wait(const DiscordIdentifyBudget *self, gint64 now);
void discord_identify_budget_note(DiscordIdentifyBudget *self, gint64 now);

/** DISCORD_SENDS_MAX: payloads a connection may send in DISCORD_SENDS_WINDOW ms, heartbeats among them. */
#define DISCORD_SENDS_MAX 120
#define DISCORD_SENDS_WINDOW 60000
/** DISCORD_SENDS_ASKED: how many of them may be heartbeats that the server asked for; the rest is kept for our own. */
#define DISCORD_SENDS_ASKED 60

/** DiscordSends: what a connection sent lately. */
typedef struct {
    gint64 at[DISCORD_SENDS_MAX]; /* a ring */
    guint64 n;
} DiscordSends;

/** discord_sends_wait: ms until there were fewer than @most (1 to DISCORD_SENDS_MAX) within the window. */
gint64 discord_sends_wait(const DiscordSends *self, guint most, gint64 now);
void discord_sends_note(DiscordSends *self, gint64 now);

/** DISCORD_BACKOFF_MAX: longest pause between two tries to connect, ms. */
#define DISCORD_BACKOFF_MAX 60000
/** discord_backoff: ms to wait after @failures in a row: anything between 0 and 1 s doubled each time (full jitter). */
gint64 discord_backoff(guint failures, GRand *random);

G_END_DECLS
