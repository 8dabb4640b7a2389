/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-dirs.h"
#include "core/session/eb-session-parts.h"
#include "core/session/eb-undo.h"

G_BEGIN_DECLS

/**
 * EbGuest: an agent in its guest with its broker: what a launch builds step by step and what ends as one. A pool could
 * keep guests whose launch stopped before EB_LAUNCH_OPEN; "origin" tells people which it was.
 */
typedef struct {
    int ref_count;
    EbSessionParts *parts;
    char *id; /* of the session */
    char *project;
    EbAgentProfile *profile;
    char *instance;
    const char *origin; /* "cold" or "pool" */
    EbSessionDirs *dirs;
    GObject *broker;
    EbBudgetClient *budget; /* (nullable): of the broker, and as long as it */
    EbBrokerRules *rules;   /* (nullable): what the broker goes by; see eb-guest-rules.h */
    EbExec *exec;
    EbAcpClient *client;
    EbSecret *nonce;
    EbSecret *canary;     /* (nullable): a key that nobody has a use for */
    EbRedactSet *secrets; /* everything to mask in this session */
    char *agent_session;
    char *agent_name, *agent_version;    /* (nullable): as the agent says */
    char *notice;                        /* (nullable): what people should know about this start */
    char *provider, *model;              /* (nullable) */
    char *unroutable;                    /* (nullable): providers that could not be used, each with why */
    gint64 begun_us, guest_us, ready_us; /* monotonic; 0 = not yet */
    gint64 turn_over_us;                 /* monotonic: the end of the last turn; 0 = none */
    gboolean abrupt;                     /* do not wait for the agent to end by itself */
    EbUndo *undo;
} EbGuest;

EbGuest *eb_guest_new(EbSessionParts *parts, const char *id, const char *project);
EbGuest *eb_guest_ref(EbGuest *self);
void eb_guest_unref(EbGuest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbGuest, eb_guest_unref)

/** eb_guest_push_*: the compensations of the steps of a launch, in the order of its states. */
void eb_guest_push_lock(EbGuest *self, gpointer lock);
void eb_guest_push_record(EbGuest *self);
void eb_guest_push_directories(EbGuest *self, gboolean fresh);
void eb_guest_push_broker(EbGuest *self);
void eb_guest_push_instance(EbGuest *self);
void eb_guest_push_agent(EbGuest *self);
/**
 * eb_guest_push_cleanup: before anything else ends, gives every file of the state directory to the agent's uid, from
 * within the guest: what belongs to further uids of the guest (rootless containers) could not be removed afterwards.
 */
void eb_guest_push_cleanup(EbGuest *self);
/** eb_guest_keep: the launch is done: record and state directory stay beyond the guest. */
void eb_guest_keep(EbGuest *self);
/** eb_guest_end_async: gives everything back, whatever was reached. */
void eb_guest_end_async(EbGuest *self, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_guest_end_finish(GAsyncResult *result, GError **error);

/**
 * eb_guest_explain_exit: (transfer full): what the end of the agent's process means for people.
 * @code: of eb_exec_wait_finish(); @stderr_tail: (nullable)
 */
GError *eb_guest_explain_exit(EbGuest *self, int code, const char *stderr_tail);

G_END_DECLS
