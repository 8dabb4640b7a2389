/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-dir-lock.h"
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
    GHashTable *records;   /* (utf8 id -> EbSessionRecord), EB_SESSION_STORE_MAX and what this run adds */
    GHashTable *sessions;  /* (utf8 id -> EbSession): live ones; admission bounds them */
    GHashTable *operators; /* (utf8 transport -> GStrv): of transports that have a policy */
    GPtrArray *routers;    /* (element-type EbRouter) */
    GQueue errors;         /* (element-type utf8), at most EB_MANAGER_MAX_ERRORS, newest first */
    GPtrArray *waits;      /* (element-type GTask): stop and close that wait for sessions to end */
    gboolean swept;
    gboolean sweeping;
    gboolean closing;
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
void eb_session_manager_note_error(EbSessionManager *self, const char *text);
/** eb_session_manager_resolve: (transfer full) (nullable): the one id that is, begins or ends with @text. */
char *eb_session_manager_resolve(EbSessionManager *self, const char *text, GError **error);

/** EB_MANAGER_SWEEP_S: seconds between two looks for guests that no live run has. */
#define EB_MANAGER_SWEEP_S 60
/** eb_session_manager_connect_backend: follows its events and looks for guests of dead runs from now on. */
void eb_session_manager_connect_backend(EbSessionManager *self);
/** eb_session_manager_wake_waits: a session has ended: stops and closes that wait look again. */
void eb_session_manager_wake_waits(EbSessionManager *self);

G_END_DECLS
