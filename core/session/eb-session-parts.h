/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "core/base/eb-paths.h"
#include "core/base/eb-redactor.h"
#include "core/base/eb-worker.h"
#include "core/broker/eb-broker-ctl.h"
#include "core/config/eb-config.h"
#include "core/session/eb-admission.h"
#include "core/session/eb-budget-desk.h"
#include "core/session/eb-gap-check.h"
#include "core/session/eb-questions.h"
#include "core/state/eb-egress-log.h"
#include "core/state/eb-store.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbBrokerOps: how a session's broker is started and ended; eb_broker_ctl_*() outside tests. */
typedef struct {
    void (*start_async)(EbPaths *paths, const char *run_dir, const EbBrokerRules *rules, guint deadline_ms,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    GObject *(*start_finish)(GAsyncResult *result, GError **error);
    void (*stop_async)(GObject *broker, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*stop_finish)(GObject *broker, GAsyncResult *result, GError **error);
    void (*update_async)(GObject *broker, const EbBrokerRules *rules, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*update_finish)(GObject *broker, GAsyncResult *result, GError **error);
} EbBrokerOps;

/** EbLaunchState: where a launch is; also what a step hook is told. */
typedef enum {
    EB_LAUNCH_CHECK = 0,  /* agent, provider, floors, gaps of the backend */
    EB_LAUNCH_CREDENTIAL, /* the provider's key */
    EB_LAUNCH_LOCK,       /* the project, across processes */
    EB_LAUNCH_RECORD,     /* the row in the database */
    EB_LAUNCH_DIRECTORIES,
    EB_LAUNCH_BROKER,
    EB_LAUNCH_GUEST,
    EB_LAUNCH_EXEC, /* the launcher, and its block */
    EB_LAUNCH_INITIALIZE,
    EB_LAUNCH_OPEN,  /* session/new, load or resume */
    EB_LAUNCH_MODEL, /* by a config option, where the agent wants it so */
    EB_LAUNCH_READY,
} EbLaunchState;
const char *eb_launch_state_to_string(EbLaunchState state);

/** EbSessionParts: what all sessions of a manager share. Filled by the manager (or a test), then unchanged. */
typedef struct {
    int ref_count;
    EbConfig *config;
    EbPaths *paths; /* (nullable): in tests whose broker needs none */
    EbContainerBackend *backend;
    const EbBrokerOps *broker;
    GBytes *launch, *relay;
    EbStore *store;
    EbBudgetDesk *budget;
    EbEgressLog *egress; /* audit rows of every session */
    EbWorker *disk;      /* directories and locks */
    char *state_root;
    char *locks_dir;
    char *run_id;  /* of this manager: label "run" of its guests */
    char *home_id; /* of the state directory: label "home", so that two installations keep apart */
    char *image;   /* alias of the guest image */
    guint32 uid, gid;
    EbCredentialLookup lookup;
    gpointer lookup_data;
    GObject *owner;       /* (nullable) (owned): keeps lookup_data and the backend's plugin alive */
    EbRedactSet *secrets; /* registered for every session */
    EbAdmission *live;
    EbAdmission *turns;
    EbGapCheck *gaps;
    EbQuestions *questions; /* of earlier runs */
    /* (nullable): called as each state is entered; tests end the process or fail the step here. */
    gboolean (*step_hook)(EbLaunchState state, gpointer data, GError **error);
    gpointer step_hook_data;
} EbSessionParts;
EbSessionParts *eb_session_parts_new(void);
EbSessionParts *eb_session_parts_ref(EbSessionParts *self);
void eb_session_parts_unref(EbSessionParts *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSessionParts, eb_session_parts_unref)

extern const EbBrokerOps EB_BROKER_OPS_DEFAULT;

G_END_DECLS
