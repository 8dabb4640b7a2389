/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbSupervisorKind: what starts services on this host, and starts them again. */
typedef enum {
    EB_SUPERVISOR_NONE = 0,
    EB_SUPERVISOR_SYSTEMD = 1,
    EB_SUPERVISOR_S6 = 2,
} EbSupervisorKind;
/** eb_supervisor_kind_to_string: "none", "systemd", "s6". */
const char *eb_supervisor_kind_to_string(EbSupervisorKind kind);

/** EbUnitState: a service as its supervisor sees it. */
typedef enum {
    EB_UNIT_MISSING = 0,  /* the supervisor does not know it */
    EB_UNIT_DOWN = 1,     /* not started, or stopped as asked */
    EB_UNIT_STARTING = 2, /* its process runs and is not ready */
    EB_UNIT_READY = 3,
    EB_UNIT_STOPPING = 4,
    EB_UNIT_WAITING = 5, /* it ended, and the supervisor is about to start it again */
    EB_UNIT_FAILED = 6,  /* it ended, and the supervisor leaves it so */
} EbUnitState;
/** eb_unit_state_to_string: "missing", "down", "starting", "ready", "stopping", "waiting", "failed". */
const char *eb_unit_state_to_string(EbUnitState state);

/** EbUnitStatus: what the supervisor tells of one service. */
typedef struct {
    EbUnitState state;
    pid_t pid;       /* for display; 0: none */
    gint64 since_s;  /* when @state began: seconds of the wall clock; 0: unknown */
    int exit_code;   /* of the last end; -1: none, or by a signal */
    int exit_signal; /* that ended it last; 0: none */
    guint restarts;  /* by itself, since it was last started; systemd alone counts them */
    gboolean enabled;
    char *text;   /* (nullable): what the service says of itself; systemd alone */
    char *config; /* (nullable): ERRAND_BOX_CONFIG in its environment */
} EbUnitStatus;
void eb_unit_status_clear(EbUnitStatus *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbUnitStatus, eb_unit_status_clear)

/**
 * eb_unit_parse_systemd: the output of `systemctl show` with EB_UNIT_SYSTEMD_PROPERTIES into @status, which is empty.
 * Lines it does not know are passed over; EB_ERROR_PROTOCOL when what it needs is not there.
 */
#define EB_UNIT_SYSTEMD_PROPERTIES                                                                                     \
    "LoadState,ActiveState,SubState,MainPID,ExecMainCode,ExecMainStatus,NRestarts,StatusText,UnitFileState,"           \
    "StateChangeTimestamp,Environment"
gboolean eb_unit_parse_systemd(const char *text, EbUnitStatus *status, GError **error);
/**
 * eb_unit_parse_s6: the line that `s6-svstat -o` prints for EB_UNIT_S6_FIELDS.
 * @notifies: the service tells when it is ready; one that does not is as good as ready once it runs
 * @now_s: wall clock
 */
#define EB_UNIT_S6_FIELDS "up,wantedup,normallyup,ready,pid,exitcode,signum,updownfor"
gboolean eb_unit_parse_s6(const char *text, gboolean notifies, gint64 now_s, EbUnitStatus *status, GError **error);

/**
 * EbSupervisor: starts and stops services through whatever supervises them on this host, by their names there, and
 * signals nothing itself. All calls but those named _async block up to their deadline.
 */
#define EB_TYPE_SUPERVISOR (eb_supervisor_get_type())
G_DECLARE_FINAL_TYPE(EbSupervisor, eb_supervisor, EB, SUPERVISOR, GObject)

/** EB_SUPERVISOR_S6_VARIABLE: names the scan directory, before the places that are looked at. */
#define EB_SUPERVISOR_S6_VARIABLE "ERRAND_BOX_S6_SCANDIR"
/** EB_SUPERVISOR_QUERY_MS: a question to a supervisor that answers takes some milliseconds. */
#define EB_SUPERVISOR_QUERY_MS 5000

/**
 * eb_supervisor_find: (transfer full) (nullable): a scan directory that is named wins, then a running systemd, then an
 * s6-svscan in one of the usual places, else kind "none". EB_ERROR_CONFIG: the named directory has no s6-svscan, or
 * others than root can write it.
 * @scan_dir: (nullable): of s6; NULL or "": the variable above
 */
EbSupervisor *eb_supervisor_find(const char *scan_dir, GError **error);
/** eb_supervisor_new_systemd: (transfer full): @systemctl: program, by name or absolute path. */
EbSupervisor *eb_supervisor_new_systemd(const char *systemctl);
EbSupervisorKind eb_supervisor_get_kind(EbSupervisor *self);
/** eb_supervisor_get_scan_dir: (transfer none) (nullable): of s6. */
const char *eb_supervisor_get_scan_dir(EbSupervisor *self);

/*
 * @unit below: "errand-boxd", "lxcfs": the name of a service directory with s6; with systemd a name without a dot
 * means the .service of that name. With kind "none" every unit is missing.
 */

/** eb_supervisor_query: @status: (out): empty before. A unit that is missing is no error. */
gboolean eb_supervisor_query(EbSupervisor *self, const char *unit, EbUnitStatus *status, GError **error);
/** eb_supervisor_has_unit: FALSE also when the supervisor does not answer. */
gboolean eb_supervisor_has_unit(EbSupervisor *self, const char *unit);
/**
 * eb_supervisor_start: starts @unit and waits until it is ready; one that runs is left alone. When it does not become
 * ready the error is the supervisor's; ask eb_supervisor_query() what became of it. EB_ERROR_TIMEOUT: not yet ready.
 */
gboolean eb_supervisor_start(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error);
/** eb_supervisor_stop: ends @unit, keeps it ended, and waits until it is down. */
gboolean eb_supervisor_stop(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error);
/** eb_supervisor_restart: also one that is down. */
gboolean eb_supervisor_restart(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error);
/** eb_supervisor_reload: looks again at what units there are. */
gboolean eb_supervisor_reload(EbSupervisor *self, GError **error);
/** eb_supervisor_set_enabled: is @unit started when the host starts? With s6 a directory that is there is. */
gboolean eb_supervisor_set_enabled(EbSupervisor *self, const char *unit, gboolean enabled, GError **error);
/**
 * eb_supervisor_read_log: (transfer full) (nullable): the end of what @unit last wrote, at most 16 KiB: from the journal,
 * or from "current" in the directory that log/logdir of its service directory names. NULL when there is none or it may not be read.
 */
char *eb_supervisor_read_log(EbSupervisor *self, const char *unit);

/** eb_supervisor_where_log: (transfer full) (nullable): for people: the file, or what to type. */
char *eb_supervisor_where_log(EbSupervisor *self, const char *unit);

/** eb_supervisor_query_async, eb_supervisor_restart_async: the same in a thread, for programs with a main loop. */
void eb_supervisor_query_async(EbSupervisor *self, const char *unit, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
/** eb_supervisor_query_finish: @status: (out): empty before. */
gboolean eb_supervisor_query_finish(EbSupervisor *self, GAsyncResult *result, EbUnitStatus *status, GError **error);
void eb_supervisor_restart_async(EbSupervisor *self, const char *unit, guint deadline_ms, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_supervisor_restart_finish(EbSupervisor *self, GAsyncResult *result, GError **error);

G_END_DECLS
