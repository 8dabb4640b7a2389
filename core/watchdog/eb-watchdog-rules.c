/* SPDX-License-Identifier: MIT */
#include "core/watchdog/eb-watchdog-rules.h"

#include <string.h>

/* More than a clock's step in difference: the machine slept. */
#define SLEPT_US (2 * G_USEC_PER_SEC)
/* Each question to a service that is silent takes a place in its queue of connections, which is short. */
#define SILENT_LOOKS 3

const EbWatchdogLimits EB_WATCHDOG_LIMITS = {
    .look = 5000,
    .deadline = 4000,
    .again = 2000,
    .misses = 2,
    .steady = 60000,
    .flap_window = 600000,
    .hang = 60000,
    /* Guests of a dead run are ended one after the other at the start; a slow pool takes its time for each. */
    .start = 600000,
    .dead = 10000,
    .sweep = 60000,
    .sweep_retry = 10000,
    .end = 120000,
    .end_window = 3600000,
    .report = 15000,
    .late = 5000,
};

const char *
eb_watchdog_service_state_to_string(EbWatchdogServiceState state)
{
    static const char *const names[] = {"unknown", "up", "starting", "ending", "hangs", "dead", "stopped"};
    return (guint)state < G_N_ELEMENTS(names) ? names[state] : names[0];
}

const char *
eb_watchdog_backend_state_to_string(EbWatchdogBackendState state)
{
    static const char *const names[] = {"unknown", "ok", "wedged", "down"};
    return (guint)state < G_N_ELEMENTS(names) ? names[state] : names[0];
}

static gint64
ms(guint milliseconds)
{
    return (gint64)milliseconds * 1000;
}

/* A clock that goes back shows no time passed, never a very long one. */
static gboolean
has_passed(gint64 since_us, gint64 now_us, guint milliseconds)
{
    return since_us != 0 && now_us - since_us >= ms(milliseconds);
}

/* Times are remembered as "not 0". */
static void
begin(gint64 *since_us, gint64 at_us)
{
    if (*since_us == 0)
        *since_us = MAX(at_us, 1);
}

static void
push(gint64 *list, guint length, gint64 at_us)
{
    memmove(list + 1, list, (length - 1) * sizeof *list);
    list[0] = MAX(at_us, 1);
}

static gboolean
all_within(const gint64 *list, guint length, gint64 now_us, guint window)
{
    return list[length - 1] != 0 && now_us - list[length - 1] < ms(window);
}

void
eb_watchdog_rules_init(EbWatchdogRules *self, const EbWatchdogLimits *limits, gint64 now_us, gint64 boot_us)
{
    *self = (EbWatchdogRules){.limits = *limits};
    self->now_us = self->wanted_us = now_us;
    self->boot_us = boot_us;
    self->service_since_us = self->backend_since_us = now_us;
    self->service_due_us = self->backend_due_us = now_us;
}

/* --- the clock --- */

/* What was not seen meanwhile proves nothing, and right after it everything is slow. */
static void
start_over(EbWatchdogRules *self, gint64 now_us)
{
    self->fresh_us = now_us;
    self->silent_since_us = 0;
    self->quiet_since_us = 0;
    self->free_since_us = 0;
    self->seen = EB_WATCHDOG_BACKEND_UNKNOWN;
    self->seen_count = 0;
    self->service_due_us = MIN(self->service_due_us, now_us);
    self->backend_due_us = MIN(self->backend_due_us, now_us);
}

static gboolean
must_sweep(const EbWatchdogRules *self, gint64 now_us)
{
    return !self->sweep_open && now_us >= self->sweep_due_us &&
           has_passed(self->free_since_us, now_us, self->limits.dead);
}

static gboolean
must_end(const EbWatchdogRules *self, gint64 now_us)
{
    return self->limits.supervised && self->service == EB_WATCHDOG_SERVICE_HANGS && !self->end_open &&
           now_us >= self->end_due_us && !all_within(self->ended_us, EB_WATCHDOG_ENDS, now_us, self->limits.end_window);
}

guint
eb_watchdog_rules_wake(EbWatchdogRules *self, gint64 now_us, gint64 boot_us)
{
    gboolean slept = (boot_us - self->boot_us) - (now_us - self->now_us) > SLEPT_US;
    gboolean late = now_us - self->wanted_us > ms(self->limits.late);
    guint actions = 0;

    self->now_us = now_us;
    self->boot_us = boot_us;
    if (slept || late)
        start_over(self, now_us);
    if (!self->service_open && now_us >= self->service_due_us) {
        self->service_open = TRUE;
        self->service_due_us = now_us + ms(self->limits.look);
        actions |= EB_WATCHDOG_LOOK_SERVICE;
    }
    if (!self->backend_open && now_us >= self->backend_due_us) {
        self->backend_open = TRUE;
        self->backend_due_us = now_us + ms(self->limits.look);
        actions |= EB_WATCHDOG_LOOK_BACKEND;
    }
    if (must_sweep(self, now_us)) {
        self->sweep_open = TRUE;
        actions |= EB_WATCHDOG_SWEEP_GUESTS;
    }
    if (must_end(self, now_us)) {
        self->end_open = TRUE;
        actions |= EB_WATCHDOG_END_SERVICE;
    }
    return actions;
}

gint64
eb_watchdog_rules_next(EbWatchdogRules *self, gint64 now_us)
{
    /* Also with both looks under way: what only time decides is decided by then. */
    gint64 next = now_us + ms(self->limits.look);

    if (!self->service_open)
        next = MIN(next, self->service_due_us);
    if (!self->backend_open)
        next = MIN(next, self->backend_due_us);
    if (!self->sweep_open && self->free_since_us != 0)
        next = MIN(next, MAX(self->sweep_due_us, self->free_since_us + ms(self->limits.dead)));
    self->wanted_us = MAX(next, now_us);
    return self->wanted_us;
}

/* --- the service --- */

static gboolean
set_service(EbWatchdogRules *self, EbWatchdogServiceState state, gint64 now_us)
{
    if (self->service == state)
        return FALSE;
    self->service = state;
    self->service_since_us = now_us;
    return TRUE;
}

static gboolean
is_gone(EbWatchdogServiceState state)
{
    return state == EB_WATCHDOG_SERVICE_DEAD || state == EB_WATCHDOG_SERVICE_STOPPED;
}

/* Somebody holds the lock and did not answer. */
static EbWatchdogServiceState
judge_held(EbWatchdogRules *self, const EbWatchdogLook *look)
{
    self->free_since_us = 0;
    if (look->answer == EB_WATCHDOG_ANSWER_SILENT) {
        self->quiet_since_us = 0;
        begin(&self->silent_since_us, look->begun_us);
        if (has_passed(self->silent_since_us, look->ended_us, self->limits.hang))
            return EB_WATCHDOG_SERVICE_HANGS;
        return is_gone(self->service) ? EB_WATCHDOG_SERVICE_STARTING : self->service;
    }
    self->silent_since_us = 0;
    begin(&self->quiet_since_us, look->begun_us);
    if (has_passed(self->quiet_since_us, look->ended_us, self->limits.start))
        return EB_WATCHDOG_SERVICE_HANGS;
    if (self->service == EB_WATCHDOG_SERVICE_UP || self->service == EB_WATCHDOG_SERVICE_ENDING)
        return EB_WATCHDOG_SERVICE_ENDING;
    return EB_WATCHDOG_SERVICE_STARTING;
}

static EbWatchdogServiceState
judge_service(EbWatchdogRules *self, const EbWatchdogLook *look)
{
    switch (look->lock) {
    case EB_WATCHDOG_LOCK_HELD:
        return judge_held(self, look);
    case EB_WATCHDOG_LOCK_ABSENT:
    case EB_WATCHDOG_LOCK_FREE:
        self->silent_since_us = self->quiet_since_us = 0;
        begin(&self->free_since_us, look->ended_us);
        return look->lock == EB_WATCHDOG_LOCK_FREE ? EB_WATCHDOG_SERVICE_DEAD : EB_WATCHDOG_SERVICE_STOPPED;
    case EB_WATCHDOG_LOCK_OTHER:
        /* It takes as long as it takes, and what it works on is left alone. */
        self->silent_since_us = self->quiet_since_us = self->free_since_us = 0;
        return EB_WATCHDOG_SERVICE_STOPPED;
    case EB_WATCHDOG_LOCK_UNKNOWN:
        break;
    }
    /* Neither that it lives nor that it does not: nothing is done about it. */
    self->silent_since_us = self->quiet_since_us = self->free_since_us = 0;
    return EB_WATCHDOG_SERVICE_UNKNOWN;
}

gboolean
eb_watchdog_rules_service(EbWatchdogRules *self, const EbWatchdogLook *look)
{
    EbWatchdogServiceState state;

    self->service_open = FALSE;
    if (look->answer == EB_WATCHDOG_ANSWER_GIVEN) {
        self->silent_since_us = self->quiet_since_us = self->free_since_us = 0;
        gboolean other = look->pid != 0 && look->pid != self->service_pid;
        self->service_pid = look->pid;
        if (set_service(self, EB_WATCHDOG_SERVICE_UP, look->ended_us))
            return TRUE;
        /* It was started again between two looks. */
        if (other)
            self->service_since_us = look->ended_us;
        return other;
    }
    if (look->begun_us < self->fresh_us)
        return FALSE;
    if (look->pid != 0 && self->service_pid != 0 && look->pid != self->service_pid) {
        /* Another one than the one that was measured so far. */
        self->silent_since_us = self->quiet_since_us = 0;
        set_service(self, EB_WATCHDOG_SERVICE_STARTING, look->ended_us);
    }
    state = judge_service(self, look);
    if (self->silent_since_us != 0)
        self->service_due_us = MAX(self->service_due_us, look->begun_us + SILENT_LOOKS * ms(self->limits.look));
    if (look->pid != 0)
        self->service_pid = look->pid;
    if (is_gone(state))
        self->service_pid = 0;
    return set_service(self, state, look->ended_us);
}

/* --- the backend --- */

static gboolean
comes_and_goes(const EbWatchdogRules *self, gint64 now_us)
{
    return all_within(self->failed_us, EB_WATCHDOG_FLAPS, now_us, self->limits.flap_window);
}

static gboolean
is_believed(const EbWatchdogRules *self, const EbWatchdogLook *look)
{
    /* The first good answer of all: there is nothing it could contradict. */
    if (self->backend == EB_WATCHDOG_BACKEND_UNKNOWN && self->seen == EB_WATCHDOG_BACKEND_OK)
        return TRUE;
    if (self->seen_count < self->limits.misses)
        return FALSE;
    return self->seen != EB_WATCHDOG_BACKEND_OK || !comes_and_goes(self, look->ended_us) ||
           has_passed(self->seen_since_us, look->ended_us, self->limits.steady);
}

gboolean
eb_watchdog_rules_backend(EbWatchdogRules *self, const EbWatchdogLook *look)
{
    static const EbWatchdogBackendState states[] = {EB_WATCHDOG_BACKEND_DOWN, EB_WATCHDOG_BACKEND_WEDGED,
                                                    EB_WATCHDOG_BACKEND_OK};
    EbWatchdogBackendState now = states[look->answer];

    self->backend_open = FALSE;
    if (now != EB_WATCHDOG_BACKEND_OK && look->begun_us < self->fresh_us)
        return FALSE;
    if (now != self->seen) {
        self->seen = now;
        self->seen_count = 0;
        self->seen_since_us = look->begun_us;
    }
    self->seen_count = MIN(self->seen_count + 1, G_MAXUINT16);
    if (now == self->backend)
        return FALSE;
    if (!is_believed(self, look)) {
        /* Something is changing: looked at more closely. */
        gint64 soon = now == EB_WATCHDOG_BACKEND_OK ? look->ended_us + ms(self->limits.again) : look->ended_us;
        self->backend_due_us = MIN(self->backend_due_us, soon);
        return FALSE;
    }
    if (self->backend == EB_WATCHDOG_BACKEND_OK)
        push(self->failed_us, EB_WATCHDOG_FLAPS, look->ended_us);
    self->backend = now;
    self->backend_since_us = self->seen_since_us;
    /* The service is told at once. */
    self->service_due_us = MIN(self->service_due_us, look->ended_us);
    return TRUE;
}

/* --- what was done --- */

void
eb_watchdog_rules_swept(EbWatchdogRules *self, gboolean good, gint64 now_us)
{
    self->sweep_open = FALSE;
    self->sweep_due_us = now_us + ms(good ? self->limits.sweep : self->limits.sweep_retry);
}

void
eb_watchdog_rules_ended(EbWatchdogRules *self, gboolean done, gint64 now_us)
{
    self->end_open = FALSE;
    self->end_due_us = now_us + ms(self->limits.end);
    if (done)
        push(self->ended_us, EB_WATCHDOG_ENDS, now_us);
}

gboolean
eb_watchdog_rules_has_report(const EbWatchdogRules *self, gint64 pid, gint64 now_us)
{
    if (self->backend == EB_WATCHDOG_BACKEND_UNKNOWN)
        return FALSE;
    if (!self->told || self->told_pid != pid || self->told_state != self->backend)
        return TRUE;
    return self->backend != EB_WATCHDOG_BACKEND_OK && now_us - self->told_us >= ms(self->limits.report);
}

void
eb_watchdog_rules_reported(EbWatchdogRules *self, EbWatchdogBackendState state, gint64 pid, gint64 now_us)
{
    self->told = TRUE;
    self->told_us = now_us;
    self->told_pid = pid;
    self->told_state = state;
}

gboolean
eb_watchdog_rules_gave_up(const EbWatchdogRules *self, gint64 now_us)
{
    return self->service == EB_WATCHDOG_SERVICE_HANGS &&
           all_within(self->ended_us, EB_WATCHDOG_ENDS, now_us, self->limits.end_window);
}
