/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-gc.h"

G_BEGIN_DECLS

/** EB_PRESSURE_RECENT_MS: what was used in the last day is not given up. */
#define EB_PRESSURE_RECENT_MS ((gint64)24 * 3600 * 1000)
/** EB_PRESSURE_MAX_ITEMS: looked at in one go. */
#define EB_PRESSURE_MAX_ITEMS 20000

/**
 * eb_pressure_wanted: bytes to free when @free_bytes are left: 0 while it is twice @min_free, from where on people are
 * warned; else up to half a @min_free beyond that, so that it does not come back at once. Pure.
 */
guint64 eb_pressure_wanted(guint64 free_bytes, guint64 min_free);

/** EbPressureItem: something that could be given up when a disk is full. */
typedef struct {
    char *id;        /* of the session, or name of the try's root */
    gboolean is_try; /* a finished try as a whole; else the state that an agent kept for a session that is over */
    guint64 bytes;   /* on disk */
    gint64 used_ms;  /* unix, milliseconds: last */
    gboolean live;   /* runs */
    gboolean pinned;
} EbPressureItem;
EbPressureItem *eb_pressure_item_new(const char *id, gboolean is_try, guint64 bytes, gint64 used_ms);
void eb_pressure_item_free(EbPressureItem *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPressureItem, eb_pressure_item_free)

/**
 * eb_pressure_pick:
 * @items: (element-type EbPressureItem)
 * @wanted: bytes
 * @candidates: (out): how many could go at all
 *
 * Which go, so that @wanted bytes become free, or as many as can be: the longest unused first; nothing that is live,
 * pinned, or was used since @now_ms - EB_PRESSURE_RECENT_MS. Pure.
 * Returns: (transfer container) (element-type EbPressureItem): of @items
 */
GPtrArray *eb_pressure_pick(const GPtrArray *items, guint64 wanted, gint64 now_ms, guint *candidates);

/** eb_pressure_add_sessions: @records: (element-type EbSessionRecord): what they keep below @state_root; blocks. */
void eb_pressure_add_sessions(GPtrArray *items, const char *state_root, const GPtrArray *records);
/** eb_pressure_add_tries: finished tries below @state_dir; blocks. */
void eb_pressure_add_tries(GPtrArray *items, const char *state_dir);
/** eb_pressure_set_aside: quick: for the worker that makes the directories of sessions. FALSE: it stays. */
gboolean eb_pressure_set_aside(const EbPressureItem *item, const char *state_root, GError **error);
/** eb_pressure_remove_try: with its lock; FALSE when it was taken up again meanwhile. Blocks. */
gboolean eb_pressure_remove_try(const EbPressureItem *item, const char *state_dir, GError **error);

G_END_DECLS
