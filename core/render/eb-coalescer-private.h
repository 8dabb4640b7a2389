/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/render/eb-coalescer.h"
#include "core/render/eb-live.h"

/* Messages that are changed by their key, of which is remembered what they show. */
#define EB_COALESCER_MAX_SHOWN 64
/* Messages of tool calls that are complete, but for calls that still run. */
#define EB_COALESCER_MAX_RUNNING 8

struct _EbCoalescer {
    GObject parent_instance;
    EbChatTransport *transport;
    EbLiveChat chat;
    char *thread; /* (nullable): of the first post */
    GCancellable *cancellable;

    /* the queue: eb-coalescer.c */
    GQueue queue; /* (element-type Entry), bounds in eb-coalescer.h */
    gsize queued_bytes;
    gsize queued_file_bytes;
    guint dropped;
    gboolean posting;
    guint post_number; /* of the call under way; an answer of an earlier one is ignored */
    GSource *timer;    /* of the pace */
    gint64 timer_us;
    GSource *deadline;  /* of the call under way */
    GHashTable *shown;  /* (utf8 key -> Shown), at most EB_COALESCER_MAX_SHOWN */
    GPtrArray *flushes; /* (element-type GTask) */

    /* messages for people: eb-coalescer-shape.c */
    guint serial; /* makes keys differ from those of any other coalescer */
    guint lives;
    guint stages;
    guint plans;
    EbLive *text; /* (nullable): grows */
    char *text_key;
    EbLive *tools;          /* (nullable): takes lines */
    GQueue running;         /* (element-type EbLive), at most EB_COALESCER_MAX_RUNNING */
    GHashTable *waits;      /* (utf8 key): shown notices about waiting, at most 8 */
    gboolean staged;        /* the message about the guest is shown and may change */
    gboolean planned;       /* so is the plan of this turn */
    char *last_error;       /* (nullable): of this turn */
    GHashTable *told_tools; /* (utf8 key -> status) */
};

/** eb_coalescer_enqueue: @post: (transfer full): as it is. */
void eb_coalescer_enqueue(EbCoalescer *self, EbChatPost *post);
/** eb_coalescer_enqueue_live: @live: (transfer none): has something to send, or will have. */
void eb_coalescer_enqueue_live(EbCoalescer *self, EbLive *live);
/** eb_coalescer_shape: @post: (transfer full): made into messages for people. */
void eb_coalescer_shape(EbCoalescer *self, EbChatPost *post);
/** eb_coalescer_shape_end: what grows is complete, and nothing is waited for any more. */
void eb_coalescer_shape_end(EbCoalescer *self);
/** eb_coalescer_repeats_tool: a transport that cannot change a post hears of a tool once, and again when it failed. */
gboolean eb_coalescer_repeats_tool(EbCoalescer *self, const EbChatPost *post);
