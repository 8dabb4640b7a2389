/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-gc.h"

G_BEGIN_DECLS

/** EB_GC_STALE_S: age of a directory of `image verify` since which nobody works in it. */
#define EB_GC_STALE_S 3600

/** EB_GC_GONE_PREFIX: directories in sessions/ that nobody needs any more and that gc removes. */
#define EB_GC_GONE_PREFIX ".gone-"

/** EbGcGround: where to look, and what must stay. */
typedef struct {
    char *state_dir;  /* of the service */
    char *state_root; /* of the caller, who holds its lock */
    char *locks_dir;
    GHashTable *known;    /* (element-type utf8): ids of sessions with a row */
    GHashTable *live;     /* (element-type utf8): those that run now */
    gboolean plan;        /* count alone */
    gboolean alone;       /* no service runs: its sockets are nobody's */
    gboolean guests_gone; /* no guest of a dead run is left: the directories they had mounted may go */
} EbGcGround;
EbGcGround *eb_gc_ground_new(const char *state_dir, const char *state_root, const char *locks_dir);
void eb_gc_ground_free(EbGcGround *self);

/**
 * eb_gc_disk_quick:
 * Sets aside the directories of sessions without a row, removes what is left of the runs of those that are over, and
 * locks that nobody holds. Does not take long: for the worker that makes the directories of sessions, so that what
 * @ground says of them is still true.
 */
void eb_gc_disk_quick(const EbGcGround *ground, EbGcClass *sessions, EbGcClass *sockets, EbGcClass *locks);
/** eb_gc_disk_sessions: removes what was set aside; may take minutes: for a thread of its own, as the next three. */
void eb_gc_disk_sessions(const EbGcGround *ground, EbGcClass *sessions);
/** eb_gc_disk_tries: roots of tries that were killed. */
void eb_gc_disk_tries(const EbGcGround *ground, EbGcClass *tries);
/** eb_gc_disk_temporary: directories of our own work that ended before its end. */
void eb_gc_disk_temporary(const EbGcGround *ground, EbGcClass *temporary);
/**
 * eb_gc_brokers: brokers whose service is gone. The kernel ends a broker with its parent, so there are none; if there
 * is one nevertheless its pid is told, and it is left alone.
 */
void eb_gc_brokers(EbGcClass *brokers);
/** eb_gc_is_orphan_broker: a broker of this account whose service died. */
gboolean eb_gc_is_orphan_broker(const char *pid);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbGcGround, eb_gc_ground_free)

G_END_DECLS
