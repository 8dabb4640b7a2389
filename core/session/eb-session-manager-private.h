/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-dir-lock.h"
#include "core/session/eb-host-desk.h"
#include "core/session/eb-session-hold.h"
#include "core/session/eb-session-manager.h"
#include "core/session/eb-session-parts.h"
#include "core/session/eb-session.h"

G_BEGIN_DECLS

/** EB_MANAGER_MAX_ERRORS: last errors kept for `status`. */
#define EB_MANAGER_MAX_ERRORS 10

struct _EbSessionManager {
    GObject parent_instance;
    EbSessionParts *parts;
    EbDirLock *state_lock, *run_lock;
    GHashTable *records;  /* (utf8 id -> EbSessionRecord), EB_SESSION_STORE_MAX and what this run adds */
    GHashTable *sessions; /* (utf8 id -> EbSession): live ones; admission bounds them */
    GHashTable *policies; /* (utf8 transport -> EbChatPolicy) (not owned): of transports that have one */
    GPtrArray *decisions; /* answers for sessions that are just ending; of open questions, which are bounded */
    GPtrArray *routers;   /* (element-type EbRouter) */
    GQueue errors;        /* (element-type utf8), at most EB_MANAGER_MAX_ERRORS, newest first */
    GPtrArray *waits;     /* (element-type GTask): stop and close that wait for sessions to end */
    EbHostDesk *desk;
    EbSessionHold *hold;
    GHashTable *told_hold; /* (set of utf8 id): live ones that were told of it; cleared when it is over */
    GHashTable *refused;   /* (set of utf8 "transport thread"): at most EB_HOLD_MAX_REFUSED; cleared likewise */
    GSource *hold_timer;   /* (nullable): a notice is due */
    gboolean swept;
    gboolean sweeping;
    gboolean closing;
    gboolean upkeep;     /* opened for upkeep alone */
    gboolean collecting; /* a gc is under way */
    GSource *close_timer;
    GSource *sweep_timer; /* a creation that a killed run had asked for may end after the sweep at start */
};

/**
 * eb_session_manager_open_with_async: as eb_session_manager_open_async(), with parts that are filled but for store, disk,
 * locks, ids and admission: what tests use to bring their own backend.
 * @parts: (transfer full)
 */
void eb_session_manager_open_with_async(EbSessionParts *parts, const char *state_root, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);

/* for the router */
EbSession *eb_session_manager_find_live(EbSessionManager *self, const char *transport, const char *thread);
/** eb_session_manager_find_record: (transfer none) (nullable): the newest of that thread; @stopped: also stopped ones */
EbSessionRecord *eb_session_manager_find_record(EbSessionManager *self, const char *transport, const char *thread,
                                                gboolean stopped);
/** eb_session_manager_begin: (transfer none): makes, registers and starts; @record: (transfer none) */
EbSession *eb_session_manager_begin(EbSessionManager *self, EbSessionRecord *record, gboolean fresh,
                                    EbChatTransport *transport);
/** eb_session_manager_note_begun: @session is told when it was begun while a hold keeps it waiting. */
void eb_session_manager_note_begun(EbSessionManager *self, EbSession *session);
/** eb_session_manager_note_refused: somebody was refused in @thread (nullable): the channel. */
void eb_session_manager_note_refused(EbSessionManager *self, const char *transport, const char *thread);
/** eb_session_manager_get_policy: (transfer none) (nullable): of the transport of @record */
const EbChatPolicy *eb_session_manager_get_policy(EbSessionManager *self, const EbSessionRecord *record);
/** eb_session_manager_find_transport: (transfer none) (nullable) */
EbChatTransport *eb_session_manager_find_transport(EbSessionManager *self, const char *name);
/** eb_session_manager_watch_hosts: @session begins: its refusals go to the desk. */
void eb_session_manager_watch_hosts(EbSessionManager *self, EbSession *session);
void eb_session_manager_note_error(EbSessionManager *self, const char *text);
/** eb_session_manager_resolve: (transfer full) (nullable): the one id that is, begins or ends with @text. */
char *eb_session_manager_resolve(EbSessionManager *self, const char *text, GError **error);

/**
 * eb_session_manager_answer: as eb_session_answer(), also to the questions of a session in that thread that is not live:
 * it is continued then. For messages of @thread before they are taken for prompts.
 */
EbSessionAnswer eb_session_manager_answer(EbSessionManager *self, const char *transport, const char *thread,
                                          const char *author_id, const char *text, gint64 sent_ms);
/** eb_session_manager_set_guest: as eb_session_set_guest(), also of a session that is not live. */
gboolean eb_session_manager_set_guest(EbSessionManager *self, EbSessionRecord *record, const char *id,
                                      gboolean invited);
/** eb_session_manager_take_up_questions: those of an earlier run that were asked through transport @name. */
void eb_session_manager_take_up_questions(EbSessionManager *self, const char *name, EbChatTransport *transport);
void eb_session_manager_connect_questions(EbSessionManager *self);
/** eb_session_manager_tell_decisions: session @id has ended: what was answered meanwhile continues it. */
void eb_session_manager_tell_decisions(EbSessionManager *self, const char *id);
void eb_decision_free(gpointer data);

/** EB_MANAGER_SWEEP_S: seconds between two looks for guests that no live run has. */
#define EB_MANAGER_SWEEP_S 60
/** EB_MANAGER_FIRST_SWEEP_S: until the first of them: what a killed run had asked for comes to be soon, if at all. */
#define EB_MANAGER_FIRST_SWEEP_S 5
/** eb_session_manager_connect_backend: follows its events and looks for guests of dead runs from now on. */
void eb_session_manager_connect_backend(EbSessionManager *self);
/** eb_session_manager_is_live_instance: an EbSweepIsLive with the manager as its data. */
gboolean eb_session_manager_is_live_instance(const char *instance, gpointer user_data);
/** eb_session_manager_wake_waits: a session has ended: stops and closes that wait look again. */
void eb_session_manager_wake_waits(EbSessionManager *self);

G_END_DECLS
