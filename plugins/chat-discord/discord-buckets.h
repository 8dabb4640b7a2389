/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-answer.h"

G_BEGIN_DECLS

/*
 * The limits of the REST API as one state machine that is told what is sent and answered, and says what may be sent
 * when. No clock, no I/O: each call is given the time. Times are microseconds of one monotonic clock.
 */

/**
 * DISCORD_GLOBAL_MAX, DISCORD_GLOBAL_WINDOW_US: requests in a span of time. Discord allows 50 in a second as it sees
 * them; requests that left 1.2 s apart can arrive within one, so the span is that much longer, and five are kept back.
 */
#define DISCORD_GLOBAL_MAX 45
#define DISCORD_GLOBAL_WINDOW_US (1200 * (gint64)1000)
/**
 * DISCORD_INVALID_MAX, DISCORD_INVALID_WINDOW_US: answers 401, 403 and 429 (not of scope shared) after which nothing is
 * sent. 10,000 in ten minutes get the address banned, for every bot behind it; half leaves room for those.
 */
#define DISCORD_INVALID_MAX 5000
#define DISCORD_INVALID_WINDOW_US (600 * (gint64)G_USEC_PER_SEC)
/** DISCORD_EDGE_WAIT_US, DISCORD_EDGE_WAIT_MAX_US: silence after a block by Cloudflare, doubled while it goes on. */
#define DISCORD_EDGE_WAIT_US (60 * (gint64)G_USEC_PER_SEC)
#define DISCORD_EDGE_WAIT_MAX_US (900 * (gint64)G_USEC_PER_SEC)
/** DISCORD_RESET_MARGIN_US: added to every reset: headers are rounded to milliseconds. */
#define DISCORD_RESET_MARGIN_US (25 * 1000)
/** DISCORD_LANES_MAX: lanes that are known at once; discord_buckets_enter() refuses further ones. */
#define DISCORD_LANES_MAX 8192

/**
 * DiscordLane: what goes by one limit as far as is known beforehand: method, route and top-level id. Answers tell which
 * lanes share a bucket. In a lane, and in a bucket, one request is under way at a time: that keeps the order, and
 * nothing is ever sent on a guess of what remains.
 */
typedef struct _DiscordLane DiscordLane;
typedef struct _DiscordBuckets DiscordBuckets;

/** DiscordVerdict: may it be sent now? */
typedef enum {
    DISCORD_VERDICT_SEND,
    DISCORD_VERDICT_BUSY,    /* after an answer that is still to come */
    DISCORD_VERDICT_WAIT,    /* not before the time told */
    DISCORD_VERDICT_BUDGET,  /* never mind the limits: too many refused ones; again at the time told */
    DISCORD_VERDICT_STOPPED, /* never: the token is no longer good */
} DiscordVerdict;

DiscordBuckets *discord_buckets_new(void);
void discord_buckets_free(DiscordBuckets *self);

/**
 * discord_buckets_enter: (transfer none) (nullable): the lane, valid until discord_buckets_leave(); NULL = too many.
 * @route: static; what has a limit of its own that no header shows gets a route of its own: "/channels/{c}#name"
 * @plain: outside the global limit, and not stopped by a 401
 */
DiscordLane *discord_buckets_enter(DiscordBuckets *self, const char *method, const char *route, const char *major,
                                   gboolean plain, gint64 now);
void discord_buckets_leave(DiscordBuckets *self, DiscordLane *lane, gint64 now);

/**
 * discord_buckets_admit: decides and, with DISCORD_VERDICT_SEND, counts it as sent.
 * @until: (out): when to ask again, for WAIT and BUDGET
 */
DiscordVerdict discord_buckets_admit(DiscordBuckets *self, DiscordLane *lane, gint64 now, gint64 *until);
/** discord_buckets_answer: @jitter: added to the wait that a 429 asks for. */
void discord_buckets_answer(DiscordBuckets *self, DiscordLane *lane, const DiscordAnswer *answer, gint64 jitter,
                            gint64 now);
/** discord_buckets_lost: no answer came and none will; it may have been counted over there. */
void discord_buckets_lost(DiscordBuckets *self, DiscordLane *lane, gint64 now);

/** discord_buckets_count_invalid: refused requests within the last ten minutes. */
guint discord_buckets_count_invalid(DiscordBuckets *self, gint64 now);
/** discord_buckets_count_lanes: for tests of the bound. */
guint discord_buckets_count_lanes(DiscordBuckets *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordBuckets, discord_buckets_free)

G_END_DECLS
