/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "core/provision/eb-provision-client.h"
#include "core/provision/eb-setup-ledger.h"
#include "core/provision/eb-setup.h"
#include "core/provision/eb-supervisor.h"

/* What the steps share. Only core/provision/eb-setup*.c include this. */

G_BEGIN_DECLS

/** EbFindings: what a step's look found and did. */
typedef struct {
    GPtrArray *changes; /* (element-type utf8): what differs from what is wanted, one sentence each */
    GPtrArray *notes;   /* (element-type utf8): worth telling, needs no change */
    gboolean degraded;
} EbFindings;
void eb_findings_change(EbFindings *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
void eb_findings_note(EbFindings *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** eb_findings_degraded: a note that makes the step's result "degraded". */
void eb_findings_degraded(EbFindings *self, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** EbUndone: what became of one entry of the ledger. */
typedef enum {
    EB_UNDO_FAILED = 0,
    EB_UNDO_DONE = 1, /* taken back, or there was nothing left of it: forget the entry */
    EB_UNDO_KEPT = 2, /* somebody else uses it: the entry stays, and a note says why */
} EbUndone;

/** EbSetupStep: one thing a host needs. Static storage. */
typedef struct {
    const char *id;
    const char *title;
    const char *undo_hint; /* (nullable): what --undo does about it, for --plan */
    /** check: looks only; puts what differs into @findings. FALSE: cannot go on. */
    gboolean (*check)(EbSetup *self, EbFindings *findings, GError **error);
    /** apply: (nullable): makes the differences go away. */
    gboolean (*apply)(EbSetup *self, EbFindings *findings, GError **error);
    /** undo: (nullable): takes back one entry of this step in the ledger, newest entry first; NULL:
     *  eb_setup_undo_place(). With options.plan it only says so. What it takes back goes into @findings as a change, what it leaves as a note. */
    EbUndone (*undo)(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error);
} EbSetupStep;

struct _EbSetup {
    EbSetupOptions options;
    EbSetupProgress progress;
    gpointer progress_data;
    GPtrArray *rows;

    char *account;
    char *state_dir;
    char *project_root;
    char *daemon_dir;                 /* INCUS_DIR, else /var/lib/incus */
    gboolean private;                 /* INCUS_DIR names another directory: a daemon of its own beside the system's */
    EbSupervisor *service_supervisor; /* (nullable): of the service: until the steps about it look */
    gboolean units_changed;           /* what runs was started from other units */
    char *start_problem;              /* (nullable): why the service did not come up */
    char *pid_dir;                    /* root alone may write it: what is in there is signalled */
    char *settings_file;              /* absolute */
    char *pool;
    char *project; /* (nullable): until the account exists */
    char *image;
    EbSupervisor *supervisor; /* (nullable): of the system's daemons; NULL: none, or a private daemon */
    gboolean reach_renewed;   /* what incus-user kept of the account was removed by this run */
    gboolean lxcfs_refused;   /* its supervisor did not start it */
    char *ledger_dir;         /* root's alone, beside the daemon's directory or in /var/lib */
    EbSetupLedger *ledger;    /* (nullable): until a run has begun */

    EbProvisionClient *client; /* the admin socket of the container daemon */
};

/** eb_setup_find_bad_input: (nullable): the step that cannot take the file an operator handed over. Changes nothing. */
const EbSetupStep *eb_setup_find_bad_input(EbSetup *self, GError **error);
/** eb_setup_say: progress text. */
void eb_setup_say(EbSetup *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** eb_setup_account_ids: FALSE when the account does not exist (yet). */
gboolean eb_setup_account_ids(EbSetup *self, uid_t *uid, gid_t *gid);
/** eb_setup_get_project: (transfer none) (nullable): configured, else user-<uid> of the account. */
const char *eb_setup_get_project(EbSetup *self);

/** eb_setup_steps: (transfer none): all steps in their order. */
const EbSetupStep *const *eb_setup_steps(guint *n);
/** eb_setup_take_lock: one setup at a time on a machine. Returns: descriptor, or -1. */
int eb_setup_take_lock(EbSetup *self, GError **error);
/** eb_setup_begin: finds the supervisor and loads the ledger; a plan by a user who may not look goes on without. */
gboolean eb_setup_begin(EbSetup *self, GError **error);
/** eb_setup_add_row: (transfer none): runs a step's worth of findings into a row of the report; frees @findings' lists. */
EbSetupRow *eb_setup_add_row(EbSetup *self, const EbSetupStep *step, EbFindings *findings, EbSetupResult result,
                             gint64 start, const GError *failure);
void eb_findings_reset(EbFindings *self);

/*
 * What apply calls before each change, so that it can be taken back (eb-setup-undo.c).
 */

/**
 * eb_setup_record: puts (kind, name) of @step into the ledger and waits until that is on disk.
 * @before: (nullable): what stands there now, NULL = nothing; @made: (nullable): what will stand there. No secrets.
 */
gboolean eb_setup_record(EbSetup *self, const EbSetupStep *step, const char *kind, const char *name, const char *before,
                         const char *made, GError **error);
/**
 * eb_setup_open_directory: an O_PATH descriptor of @path, for the ...at() calls. Symbolic links are followed as far as root
 * made them in directories of root's, and nowhere else. Returns: -1 with @error
 */
int eb_setup_open_directory(const char *path, GError **error);
/** eb_setup_open_parent: the same of the directory that @path is in. */
int eb_setup_open_parent(const char *path, GError **error);
/**
 * eb_setup_place_directory: makes @path and what is missing above it (root, 0755), each recorded as a "directory".
 */
gboolean eb_setup_place_directory(EbSetup *self, const EbSetupStep *step, const char *path, GError **error);
/**
 * eb_setup_place_file: records a "file" and replaces @path as a whole, owned by root and @gid; makes its directory when
 * missing. The text that stood there (64 KiB at most) comes back with --undo: nothing secret is placed by this.
 */
gboolean eb_setup_place_file(EbSetup *self, const EbSetupStep *step, const char *path, const char *text, mode_t mode,
                             gid_t gid, GError **error);
/** eb_setup_has_file: @path is what eb_setup_place_file() would make of it. For check. */
gboolean eb_setup_has_file(const char *path, const char *text, mode_t mode);
/**
 * eb_setup_undo_place: undo of "directory" (removed when empty) and "file" (removed, or what stood there put back,
 * unless somebody changed it since). Usable as a step's undo as it is.
 */
EbUndone eb_setup_undo_place(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error);

/** Undo of what stands in the container daemon (eb-setup-objects-undo.c). */
EbUndone eb_setup_undo_pool(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error);
EbUndone eb_setup_undo_project(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error);
EbUndone eb_setup_undo_profile(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error);
EbUndone eb_setup_undo_network(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error);
EbUndone eb_setup_undo_image(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error);
/** eb_setup_credentials_stay: (transfer full) (nullable): why creds.env is not setup's alone. */
char *eb_setup_credentials_stay(EbSetup *self);
/** eb_setup_keeps_setting: is a kernel's setting, which is @now, for our file of sysctl.d? Not one that somebody else has as high
 *  or higher: at the next start of the host ours would come after theirs, and lower it. @ours: setup raised it earlier. */
gboolean eb_setup_keeps_setting(guint64 now, guint64 wanted, gboolean ours);
/** eb_setup_knows_incus_user: incus-user keeps something of @uid (eb-setup-incus-user.c). */
gboolean eb_setup_knows_incus_user(EbSetup *self, guint uid);
/** eb_setup_forget_incus_user: what it keeps of @uid goes, so that it is made anew when the account asks next. A
 *  certificate that reaches other projects than user-@uid stays. */
gboolean eb_setup_forget_incus_user(EbSetup *self, guint uid, GError **error);
/** eb_setup_find_other_member: (nullable): an account other than ours in a group. */
const char *eb_setup_find_other_member(EbSetup *self, const char *group_name);
/** eb_setup_find_running_guest: (transfer full) (nullable): a guest of some session that runs in our project. */
char *eb_setup_find_running_guest(EbSetup *self);
/** eb_setup_find_others: (transfer full) (nullable): what of others is in the container daemon, when it answers. */
char *eb_setup_find_others(EbSetup *self);
/** eb_setup_want_restart: a daemon that runs now has to be restarted, by this run or a later one: it read the id ranges
 *  when it started. */
gboolean eb_setup_want_restart(EbSetup *self, GError **error);
/** eb_setup_remove_range: takes @line out of a subuid(5) file, unless a process lives in its ids. @keep_file: also when
 *  nothing is left in it. */
EbUndone eb_setup_remove_range(EbSetup *self, const char *file, const char *line, gboolean keep_file,
                               EbFindings *findings, GError **error);
/** eb_setup_will_remove: a plan alone: --undo would remove the directory @path of the account. */
gboolean eb_setup_will_remove(EbSetup *self, const char *path);
/** eb_setup_find_process_of: some process that runs as @uid; 0: none. */
pid_t eb_setup_find_process_of(uid_t uid);

/* The steps, by file. */
extern const EbSetupStep eb_setup_step_packages;                           /* eb-setup-packages.c */
extern const EbSetupStep eb_setup_step_account, eb_setup_step_directories; /* eb-setup-account.c */
extern const EbSetupStep eb_setup_step_ranges, eb_setup_step_kernel;       /* eb-setup-host.c */
extern const EbSetupStep eb_setup_step_lxcfs, eb_setup_step_daemon, eb_setup_step_group,
    eb_setup_step_user_socket; /* eb-setup-daemons.c */
extern const EbSetupStep eb_setup_step_pool, eb_setup_step_project, eb_setup_step_profile,
    eb_setup_step_network;                                                  /* eb-setup-objects.c */
extern const EbSetupStep eb_setup_step_credentials, eb_setup_step_settings; /* eb-setup-files.c */
extern const EbSetupStep eb_setup_step_units;                               /* eb-setup-units.c */
extern const EbSetupStep eb_setup_step_start;                               /* eb-setup-start.c */
extern const EbSetupStep eb_setup_step_image, eb_setup_step_reach;          /* eb-setup-image.c, eb-setup-reach.c */

G_END_DECLS
