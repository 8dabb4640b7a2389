/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbWatchdogRules: what the watchdog concludes from what it sees, and what it does about it. No I/O and no clock: every
 * call is given the time. Times are microseconds of the monotonic clock, which stands still while the machine sleeps.
 *
 * A look is one attempt to see something. What a look did not get counts only when nothing kept the watchdog itself from
 * looking: after a suspend, or when it was not scheduled, everything that is measured begins again.
 */

/** EbWatchdogLock: what is known of the lock of the service's state directory. */
typedef enum {
    EB_WATCHDOG_LOCK_UNKNOWN = 0, /* it could not be looked at in time */
    EB_WATCHDOG_LOCK_ABSENT,      /* no such file: the service ended in order, or never ran */
    EB_WATCHDOG_LOCK_FREE,        /* a file that nobody holds: the service died */
    EB_WATCHDOG_LOCK_HELD,
    EB_WATCHDOG_LOCK_OTHER, /* held by a program that is not the service: one that restores a backup */
} EbWatchdogLock;

/** EbWatchdogAnswer: what came of a question. */
typedef enum {
    EB_WATCHDOG_ANSWER_NONE = 0, /* nobody takes connections */
    EB_WATCHDOG_ANSWER_SILENT,   /* somebody does, and the answer did not come within the deadline */
    EB_WATCHDOG_ANSWER_GIVEN,
} EbWatchdogAnswer;

/** EbWatchdogLook: one look at the service, or at the backend (which has no lock and no pid). */
typedef struct {
    gint64 begun_us;
    gint64 ended_us;
    EbWatchdogLock lock;
    EbWatchdogAnswer answer;
    gint64 pid; /* of who listens or holds the lock; 0 = unknown */
} EbWatchdogLook;

typedef enum {
    EB_WATCHDOG_SERVICE_UNKNOWN = 0,
    EB_WATCHDOG_SERVICE_UP,
    EB_WATCHDOG_SERVICE_STARTING, /* holds the lock and does not listen yet */
    EB_WATCHDOG_SERVICE_ENDING,   /* holds the lock and does not listen any more */
    EB_WATCHDOG_SERVICE_HANGS,
    EB_WATCHDOG_SERVICE_DEAD,    /* ended without releasing what it had */
    EB_WATCHDOG_SERVICE_STOPPED, /* ended in order */
} EbWatchdogServiceState;
/** eb_watchdog_service_state_to_string: "unknown", "up", "starting", "ending", "hangs", "dead", "stopped". */
const char *eb_watchdog_service_state_to_string(EbWatchdogServiceState state);

typedef enum {
    EB_WATCHDOG_BACKEND_UNKNOWN = 0,
    EB_WATCHDOG_BACKEND_OK,
    EB_WATCHDOG_BACKEND_WEDGED, /* takes connections and does not answer */
    EB_WATCHDOG_BACKEND_DOWN,
} EbWatchdogBackendState;
/** eb_watchdog_backend_state_to_string: "unknown", "ok", "wedged", "down". */
const char *eb_watchdog_backend_state_to_string(EbWatchdogBackendState state);

/** EbWatchdogLimits: milliseconds, unless said otherwise. */
typedef struct {
    guint look;          /* from the begin of one look to the begin of the next */
    guint deadline;      /* of one look */
    guint again;         /* between looks when the backend begins to answer again */
    guint misses;        /* count: looks at the backend in a row that change what is thought of it */
    guint steady;        /* how long a backend that came and went has to answer before that is believed */
    guint flap_window;   /* EB_WATCHDOG_FLAPS failures within it: it comes and goes */
    guint hang;          /* a service that takes connections and is silent so long hangs */
    guint start;         /* one that holds the lock and does not listen so long hangs in its start or its end */
    guint dead;          /* nobody holds the lock so long: its supervisor does not bring it back */
    guint sweep;         /* between two looks for its guests while it stays dead */
    guint sweep_retry;   /* the same, after one that failed */
    guint end;           /* between two ends of a service that hangs */
    guint end_window;    /* EB_WATCHDOG_ENDS within it and no more: starting it again does not help */
    guint report;        /* between two reports to the service while the backend is not well */
    guint late;          /* a watchdog that wakes so much later than it wanted was kept from looking */
    gboolean supervised; /* the service is started again when it ends: one that hangs may be ended */
} EbWatchdogLimits;
/**
 * EB_WATCHDOG_LIMITS: a wedged backend is seen within 14 s (look 5 s, twice a deadline of 4 s), guests of a dead service
 * end after 15 s at the latest and the time that ending takes; both promises are wider (30 s, 60 s).
 */
extern const EbWatchdogLimits EB_WATCHDOG_LIMITS;

/** EB_WATCHDOG_FLAPS, EB_WATCHDOG_ENDS: times that are kept. */
#define EB_WATCHDOG_FLAPS 3
#define EB_WATCHDOG_ENDS 3

/** EbWatchdogAction: what to do now; bits. */
typedef enum {
    EB_WATCHDOG_LOOK_SERVICE = 1 << 0,
    EB_WATCHDOG_LOOK_BACKEND = 1 << 1,
    EB_WATCHDOG_SWEEP_GUESTS = 1 << 2, /* end guests whose run is over */
    EB_WATCHDOG_END_SERVICE = 1 << 3,  /* it hangs and its supervisor starts it again */
} EbWatchdogAction;

typedef struct {
    EbWatchdogLimits limits;
    gint64 now_us, boot_us; /* of the last wake */
    gint64 wanted_us;       /* when the next wake should come */
    gint64 fresh_us;        /* looks that began earlier and saw nothing do not count */

    EbWatchdogServiceState service;
    gint64 service_since_us;
    gint64 service_pid; /* that answered last, or listens */
    gint64 service_due_us;
    gboolean service_open;  /* a look is under way */
    gint64 silent_since_us; /* 0 = it is not */
    gint64 quiet_since_us;  /* lock held and nobody listens; 0 = not so */
    gint64 free_since_us;   /* nobody holds the lock; 0 = somebody does */

    EbWatchdogBackendState backend;
    gint64 backend_since_us;
    gint64 backend_due_us;
    gboolean backend_open;
    EbWatchdogBackendState seen; /* what the last looks in a row saw */
    guint seen_count;
    gint64 seen_since_us;
    gint64 failed_us[EB_WATCHDOG_FLAPS]; /* when the backend ceased to be well, newest first */

    gboolean sweep_open;
    gint64 sweep_due_us;
    gboolean end_open;
    gint64 end_due_us;
    gint64 ended_us[EB_WATCHDOG_ENDS]; /* newest first */

    gboolean told;
    gint64 told_us;
    gint64 told_pid;
    EbWatchdogBackendState told_state;
} EbWatchdogRules;

/** eb_watchdog_rules_init: @boot_us: the clock that goes on while the machine sleeps. */
void eb_watchdog_rules_init(EbWatchdogRules *self, const EbWatchdogLimits *limits, gint64 now_us, gint64 boot_us);
/**
 * eb_watchdog_rules_wake: what is due now. What it names counts as begun; each is answered by the call for it below.
 * Returns: EbWatchdogAction bits
 */
guint eb_watchdog_rules_wake(EbWatchdogRules *self, gint64 now_us, gint64 boot_us);
/** eb_watchdog_rules_next: when to wake next; not before @now_us. */
gint64 eb_watchdog_rules_next(EbWatchdogRules *self, gint64 now_us);

/** eb_watchdog_rules_service: a look at the service is over. Returns: TRUE when the state, or the process, changed. */
gboolean eb_watchdog_rules_service(EbWatchdogRules *self, const EbWatchdogLook *look);
/** eb_watchdog_rules_backend: the same for the backend. */
gboolean eb_watchdog_rules_backend(EbWatchdogRules *self, const EbWatchdogLook *look);
/** eb_watchdog_rules_swept: @good: every guest that was found is gone. */
void eb_watchdog_rules_swept(EbWatchdogRules *self, gboolean good, gint64 now_us);
/** eb_watchdog_rules_ended: @done: the service was sent its end. */
void eb_watchdog_rules_ended(EbWatchdogRules *self, gboolean done, gint64 now_us);

/** eb_watchdog_rules_has_report: should the service that answers now, process @pid, be told of the backend? */
gboolean eb_watchdog_rules_has_report(const EbWatchdogRules *self, gint64 pid, gint64 now_us);
/** eb_watchdog_rules_reported: it was told of @state. */
void eb_watchdog_rules_reported(EbWatchdogRules *self, EbWatchdogBackendState state, gint64 pid, gint64 now_us);
/** eb_watchdog_rules_gave_up: the service hangs and was ended as often as it may be. */
gboolean eb_watchdog_rules_gave_up(const EbWatchdogRules *self, gint64 now_us);

G_END_DECLS
