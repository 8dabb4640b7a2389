/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "core/provision/eb-provision-client.h"
#include "core/provision/eb-setup.h"

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

/** EbSetupStep: one thing a host needs. Static storage. */
typedef struct {
    const char *id;
    const char *title;
    const char *undo; /* how an operator takes it back */
    /** check: looks only; puts what differs into @findings. FALSE: cannot go on. */
    gboolean (*check)(EbSetup *self, EbFindings *findings, GError **error);
    /** apply: (nullable): makes the differences go away. */
    gboolean (*apply)(EbSetup *self, EbFindings *findings, GError **error);
} EbSetupStep;

struct _EbSetup {
    EbSetupOptions options;
    EbSetupProgress progress;
    gpointer progress_data;
    GPtrArray *rows;

    char *account;
    char *state_dir;
    char *project_root;
    char *daemon_dir; /* INCUS_DIR, else /var/lib/incus */
    gboolean private; /* INCUS_DIR names another directory: a daemon of its own beside the system's */
    char *pid_dir;    /* root alone may write it: what is in there is signalled */
    char *pool;
    char *project; /* (nullable): until the account exists */
    char *image;
    gboolean ranges_changed; /* the id ranges of a running daemon are the ones it started with */

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
/** eb_setup_has_systemd: a running systemd supervises the daemons. */
gboolean eb_setup_has_systemd(EbSetup *self);

/* The steps, by file. */
extern const EbSetupStep eb_setup_step_packages, eb_setup_step_account, eb_setup_step_directories, eb_setup_step_ranges,
    eb_setup_step_kernel; /* eb-setup-host.c */
extern const EbSetupStep eb_setup_step_lxcfs, eb_setup_step_daemon, eb_setup_step_group,
    eb_setup_step_user_socket; /* eb-setup-daemons.c */
extern const EbSetupStep eb_setup_step_pool, eb_setup_step_project, eb_setup_step_profile,
    eb_setup_step_network;                                                  /* eb-setup-objects.c */
extern const EbSetupStep eb_setup_step_credentials, eb_setup_step_settings; /* eb-setup-files.c */
extern const EbSetupStep eb_setup_step_image, eb_setup_step_reach;          /* eb-setup-image.c, eb-setup-reach.c */

G_END_DECLS
