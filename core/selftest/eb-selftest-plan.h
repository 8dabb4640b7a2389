/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbSelftestWay: what is being done when the service is killed. */
typedef enum {
    EB_SELFTEST_START = 0,    /* the service starts, with what the kill before left */
    EB_SELFTEST_PROMPT,       /* a new session: its launch and its turn */
    EB_SELFTEST_CONTINUE,     /* a prompt to a session without a guest */
    EB_SELFTEST_ABORT,        /* a stop while its guest is being made */
    EB_SELFTEST_STOP,         /* a stop in the middle of a turn */
    EB_SELFTEST_STOP_ENDED,   /* a stop of a session without a guest */
    EB_SELFTEST_REMOVE,       /* a removal of a session with a guest */
    EB_SELFTEST_REMOVE_ENDED, /* a removal of a session without one */
    EB_SELFTEST_CLOSE,        /* the service was told to end */
} EbSelftestWay;
#define EB_SELFTEST_N_WAYS (EB_SELFTEST_CLOSE + 1)
/** eb_selftest_way_to_string: "start", "prompt", ... for reports. */
const char *eb_selftest_way_to_string(EbSelftestWay way);

/** EbSelftestTarget: one place where the service is killed: the mark @step (eb_log_step()) while @way is under way. */
typedef struct {
    EbSelftestWay way;
    const char *step;
} EbSelftestTarget;

/** eb_selftest_targets: (transfer none): every one there is; @n: (out) */
const EbSelftestTarget *eb_selftest_targets(guint *n);
/** eb_selftest_target_group: "start", "launch", "turn", "stop", "delete" or "close": what a report sums up. */
const char *eb_selftest_target_group(const EbSelftestTarget *target);

/** EB_SELFTEST_MAX_DELAY_US: longest time between a mark and the kill. */
#define EB_SELFTEST_MAX_DELAY_US 60000

/** EbSelftestKill: one kill that is to be made. */
typedef struct {
    guint number; /* from 0 */
    const EbSelftestTarget *target;
    guint delay_us; /* after the mark; 0 = at once */
} EbSelftestKill;

/**
 * EbSelftestPlan: which kills are made, in which order: rounds through all targets, each shuffled; the first round kills
 * at the marks, later ones also between them. The same seed gives the same plan. Used from several threads.
 */
typedef struct _EbSelftestPlan EbSelftestPlan;

EbSelftestPlan *eb_selftest_plan_new(guint kills, guint32 seed);
void eb_selftest_plan_free(EbSelftestPlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSelftestPlan, eb_selftest_plan_free)
/** eb_selftest_plan_next: FALSE: all are given out. */
gboolean eb_selftest_plan_next(EbSelftestPlan *self, EbSelftestKill *kill);

/**
 * eb_selftest_read_mark: is @line of a service's log a mark?
 * @step: (out) (transfer full): its name
 * @subject: (out) (transfer full) (nullable): the session, instance or message it is about
 */
gboolean eb_selftest_read_mark(const char *line, char **step, char **subject);

G_END_DECLS
