/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-line-framer.h"
#include "core/base/eb-spawn.h"
#include "core/control/eb-control-client.h"
#include "core/selftest/eb-selftest-plan.h"
#include "core/selftest/eb-selftest-strays.h"
#include "core/selftest/eb-selftest-verdict.h"
#include "core/selftest/eb-selftest.h"

G_BEGIN_DECLS

/** EB_SELFTEST_LOG_LINES: last lines of a service's log kept for a report. */
#define EB_SELFTEST_LOG_LINES 600
/** EB_SELFTEST_MAX_REPORTS: violations that a log is kept of. */
#define EB_SELFTEST_MAX_REPORTS 50

/** EbSelftestRun: what all workers share. */
typedef struct {
    EbSelftestOptions options;
    char *dir; /* of everything this run makes */
    EbSelftestPlan *plan;
    GCancellable *cancellable;
    EbSelftestStrays *strays;
    GMutex lock; /* of what follows */
    guint kills;
    GHashTable *killed_at; /* (utf8 "way step" -> guint) */
    GHashTable *groups;    /* (utf8 -> guint) */
    GPtrArray *violations; /* (element-type utf8) */
    GArray *starts_ms;     /* (element-type guint) */
    guint starts, prompts, sessions;
    guint missed;      /* tries of a kill that the backend was too slow for; made again */
    char *refusal;     /* (nullable): last words of a service that never started */
    guint late_guests; /* that came to be after the start that looked for them; gone by the next */
    char *slowest;     /* (nullable): the kill before the slowest start */
    guint slowest_ms;
} EbSelftestRun;

/** eb_selftest_run_list: instances of the state directory @home; from a worker's thread, waits for the main one. */
GHashTable *eb_selftest_run_list(EbSelftestRun *run, const char *home, GError **error);
/** eb_selftest_run_violation: @log: (nullable): kept in a file beside the report. */
void eb_selftest_run_violation(EbSelftestRun *run, const char *text, const char *log);
/** eb_selftest_run_refuse: no service starts on this host: there is nothing to kill. FALSE: one has started before. */
gboolean eb_selftest_run_refuse(EbSelftestRun *run, const char *last_words);
/** eb_selftest_run_killed: counts one, and tells of every tenth. */
void eb_selftest_run_killed(EbSelftestRun *run, const EbSelftestTarget *target);
void eb_selftest_run_missed(EbSelftestRun *run);
void eb_selftest_run_started(EbSelftestRun *run, guint ms, const char *after);
void eb_selftest_run_know(EbSelftestRun *run, int pid, gboolean known);

/** EbSelftestService: one service program as a child, its log and its control socket; of one thread. */
typedef struct {
    EbSelftestRun *run;
    GMainContext *context;
    char *root, *config;
    EbChild *child; /* (nullable): running */
    gboolean dead;
    int log_fd;
    GSource *log_source;
    EbLineFramer *framer;
    GQueue lines;            /* (element-type utf8), at most EB_SELFTEST_LOG_LINES */
    EbControlClient *client; /* (nullable) */
    gint64 started_us;
    /* of this life */
    gboolean ready;
    GHashTable *marks;   /* (utf8 step -> utf8 subject): the last of each */
    GHashTable *touched; /* (set of utf8): sessions it has worked on */
    gboolean answers;    /* questions are answered with yes */
    /* the kill that is wanted */
    const char *armed; /* (nullable): at this mark */
    guint delay_us;
    gboolean freeze; /* stop it there first: it is looked at before it is killed */
    gboolean frozen;
    gboolean killed; /* it was carried out */
    /* for longer than one life */
    GHashTable *told;    /* (set of utf8): ids of messages whose loss was told */
    GHashTable *late;    /* (set of utf8): sessions that could not start because the backend took too long */
    GHashTable *opened;  /* (set of utf8): sessions whose agent was given a prompt; taken out by the worker */
    GHashTable *removed; /* (set of utf8): sessions whose removal was confirmed; the same */
} EbSelftestService;

EbSelftestService *eb_selftest_service_new(EbSelftestRun *run, const char *root, const char *config);
void eb_selftest_service_free(EbSelftestService *self);
gboolean eb_selftest_service_start(EbSelftestService *self, GError **error);
/**
 * eb_selftest_service_arm: kill at the next mark @step.
 * @freeze: stop it there first: what it would do next it never does, and there is time to look
 */
void eb_selftest_service_arm(EbSelftestService *self, const char *step, guint delay_us, gboolean freeze);
/** EbSelftestDone: is what is waited for there? */
typedef gboolean (*EbSelftestDone)(EbSelftestService *self, gpointer data);
/** eb_selftest_service_wait: FALSE: not in time, the service died, or the run was cancelled. */
gboolean eb_selftest_service_wait(EbSelftestService *self, EbSelftestDone done, gpointer data, guint ms);
gboolean eb_selftest_service_wait_killed(EbSelftestService *self, guint ms);
/** eb_selftest_service_wait_frozen: TRUE: it stands still; to be killed with eb_selftest_service_kill_frozen(). */
gboolean eb_selftest_service_wait_frozen(EbSelftestService *self, guint ms);
void eb_selftest_service_kill_frozen(EbSelftestService *self);
/** eb_selftest_service_wait_mark: the same for a mark of this life. */
gboolean eb_selftest_service_wait_mark(EbSelftestService *self, const char *step, guint ms);
/** eb_selftest_service_call: (transfer full) (nullable): asks the service; @params: (transfer full) */
JsonNode *eb_selftest_service_call(EbSelftestService *self, const char *method, JsonObject *params, guint ms,
                                   GError **error);
/** eb_selftest_service_send: the same without waiting for the answer. */
void eb_selftest_service_send(EbSelftestService *self, const char *method, JsonObject *params);
/** eb_selftest_service_signal: TERM or KILL; waits for the end. @status: (out) (optional) */
gboolean eb_selftest_service_end(EbSelftestService *self, int signum, guint ms, int *status);
/** eb_selftest_service_drain: takes what the log has by now. */
void eb_selftest_service_drain(EbSelftestService *self);
char *eb_selftest_service_log(EbSelftestService *self);

/** eb_selftest_worker: the thread of one service: kills it until the plan is empty, then clears everything away. */
gpointer eb_selftest_worker(gpointer data);
typedef struct {
    EbSelftestRun *run;
    guint number;
    char *root, *config;
} EbSelftestJob;

G_END_DECLS
