/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/config/eb-config.h"

G_BEGIN_DECLS

/** EbSetupResult: what became of one step. */
typedef enum {
    EB_SETUP_OK = 0,       /* nothing to do */
    EB_SETUP_CHANGED = 1,  /* done now */
    EB_SETUP_PLANNED = 2,  /* --plan: would be done */
    EB_SETUP_DEGRADED = 3, /* as good as this host allows; detail names the doctor's id */
    EB_SETUP_FAILED = 4,
} EbSetupResult;
/** eb_setup_result_to_string: "ok", "changed", "planned", "degraded", "failed". */
const char *eb_setup_result_to_string(EbSetupResult result);

/** EbSetupRow: one step of the report. */
typedef struct {
    const char *id;
    const char *title;
    EbSetupResult result;
    char *detail; /* one change or finding a line, "" when there is none */
    char *undo;   /* (nullable): how to take the change back */
    guint ms;
} EbSetupRow;

/** EbSetupOptions: what an operator asks for. All strings are borrowed until the setup is freed. */
typedef struct {
    EbConfig *config;
    EbPaths *paths;
    const char *config_file; /* (nullable): --config or ERRAND_BOX_CONFIG; NULL = the files in /etc/errand-box */
    const char *creds_file;  /* (nullable): --creds */
    const char *env_file;    /* (nullable): --env */
    gboolean plan;           /* look, change nothing */
    gboolean remove_data;    /* undo: sessions and projects too */
    gboolean kernel_modules; /* packages that change the kernel may be installed */

    /** open_backend: (nullable): (transfer none): the backend that takes the guest image; called when the daemon runs.
     *  NULL: the image is left alone. */
    EbContainerBackend *(*open_backend)(gpointer backend_data, GError **error);
    /** wait: runs the program's main loop until *@done; needed with open_backend. */
    void (*wait)(const gboolean *done, gpointer backend_data);
    /** confirm: (nullable): asks an operator at a terminal; NULL: nobody can be asked, which is a no. */
    gboolean (*confirm)(const char *question, gpointer backend_data);
    gpointer backend_data;
    GCancellable *cancellable; /* (nullable): ends the building of the image, the one long step */
} EbSetupOptions;

/**
 * EbSetup: prepares a host step by step. Each step first looks, then changes only what differs, then looks again, so
 * that a second run finds nothing to do and an interrupted one is completed by the next. Blocks: for the CLI alone.
 */
typedef struct _EbSetup EbSetup;

EbSetup *eb_setup_new(const EbSetupOptions *options);
void eb_setup_free(EbSetup *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSetup, eb_setup_free)

/** EbSetupProgress: @text: what goes on now, without newline; @row: (nullable): a step that has just ended. */
typedef void (*EbSetupProgress)(const char *text, const EbSetupRow *row, gpointer user_data);
void eb_setup_set_progress(EbSetup *self, EbSetupProgress progress, gpointer user_data);

/**
 * eb_setup_run: all steps in order; stops at the first that fails and returns its error. The rows up to there are in
 * the report. Needs root, except for a plan. Another setup at work on this machine is waited for.
 */
gboolean eb_setup_run(EbSetup *self, GError **error);
/**
 * eb_setup_undo: takes back what the ledger says setup made here, newest first, except what others use now; one row a
 * step that had something to say. Stops at the first that fails; the next run goes on there. With options.plan it looks
 * and changes nothing. Needs root, except for a plan.
 */
gboolean eb_setup_undo(EbSetup *self, GError **error);
/** eb_setup_get_rows: (transfer none) (element-type EbSetupRow) */
GPtrArray *eb_setup_get_rows(EbSetup *self);
/** eb_setup_to_json: (transfer full): {"schema":1,"steps":[...]} */
JsonNode *eb_setup_to_json(EbSetup *self);

/**
 * eb_setup_stop_daemons: ends, by pid, the daemons that a setup without supervisor started for this configuration:
 * the guests are stopped, pools unmounted, and lxcfs goes when no container daemon is left that needs it.
 */
gboolean eb_setup_stop_daemons(EbSetup *self, GError **error);

G_END_DECLS
