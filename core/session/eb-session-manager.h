/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/config/eb-config.h"
#include "core/plugin/eb-plugin-registry.h"
#include "core/state/eb-session-store.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_STATE_LOCK_FILE, EB_STATE_DATABASE_FILE: names of the lock and the database in a state root. */
#define EB_STATE_LOCK_FILE "lock"
#define EB_STATE_DATABASE_FILE "state.db"

/**
 * EbSessionManager: owns the state root (lock, database, sessions), admission and the live sessions. The service makes
 * one on its state directory; `try` makes one on a directory of its own below <state_dir>/try, so that both can run.
 * Projects are locked across processes, so one project never has two live sessions.
 *
 * Signals:
 *   "prompt-outcome" (const char *transport (nullable), const char *thread, const char *message_id, int EbPromptOutcome):
 *       as "prompt-outcome" of EbSession.
 *   "turn-ended" (const char *session, const char *thread, const char *stop_reason, GError *error (nullable)): after the
 *       transport was given everything the turn said.
 *   "session-ended" (const char *session (nullable), const char *thread, const char *reason, GError *error (nullable)):
 *       nothing is left of it but its record; also for starts that failed (session NULL when there never was a record).
 *       The error's code tells the exit code of a command that waited for it.
 */
#define EB_TYPE_SESSION_MANAGER (eb_session_manager_get_type())
G_DECLARE_FINAL_TYPE(EbSessionManager, eb_session_manager, EB, SESSION_MANAGER, GObject)

/**
 * eb_session_manager_open_async:
 * @state_root: absolute; made 0700 when missing
 * Takes the lock (EB_ERROR_LOCKED names the pid), opens the database, sweeps what dead runs left (instances, sockets,
 * directories, rows).
 */
void eb_session_manager_open_async(EbConfig *config, EbPaths *paths, EbPluginRegistry *registry, const char *state_root,
                                   GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
EbSessionManager *eb_session_manager_open_finish(GAsyncResult *result, GError **error);
/** eb_session_manager_close_async: drains: ends turns (grace), guests, brokers; sessions stay resumable. */
void eb_session_manager_close_async(EbSessionManager *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);
gboolean eb_session_manager_close_finish(EbSessionManager *self, GAsyncResult *result, GError **error);

/** eb_session_manager_attach_transport: routes messages of @transport to sessions and back. @name: e.g. "console" */
void eb_session_manager_attach_transport(EbSessionManager *self, const char *name, EbChatTransport *transport);

/**
 * eb_session_manager_set_policy: whose answers count in every session of a transport, also in those to come.
 * @policy: (nullable) (transfer none): of the transport, lives as long; NULL = it has none: anyone may answer
 */
void eb_session_manager_set_policy(EbSessionManager *self, const char *transport, const EbChatPolicy *policy);

/** eb_session_record_to_json: (transfer full): one row of `sessions list --json`. */
JsonObject *eb_session_record_to_json(const EbSessionRecord *record);
/** eb_session_manager_list_json: (transfer full): as `sessions list --json`; show_json: one, NULL when unknown. */
JsonNode *eb_session_manager_list_json(EbSessionManager *self);
JsonNode *eb_session_manager_show_json(EbSessionManager *self, const char *id, GError **error);
/** eb_session_manager_status_json: (transfer full): live, queue, turns, last errors: for `status`. */
JsonNode *eb_session_manager_status_json(EbSessionManager *self);
/** eb_session_manager_pin_async: a pinned session is never given up for space, see eb_session_manager_gc_async(). */
void eb_session_manager_pin_async(EbSessionManager *self, const char *id, gboolean pinned, GAsyncReadyCallback callback,
                                  gpointer user_data);
gboolean eb_session_manager_pin_finish(EbSessionManager *self, GAsyncResult *result, GError **error);
/**
 * eb_session_manager_allow_host_async: session @id alone may reach @host as well, from now on and after every restart;
 * EB_ERROR_INVALID, EB_ERROR_DENIED: what eb_host_check() refuses. For an operator at a terminal.
 */
void eb_session_manager_allow_host_async(EbSessionManager *self, const char *id, const char *host,
                                         GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_session_manager_allow_host_finish(EbSessionManager *self, GAsyncResult *result, GError **error);
/** eb_session_manager_deny_host: takes that back. EB_ERROR_NOT_FOUND "host.not-allowed" */
gboolean eb_session_manager_deny_host(EbSessionManager *self, const char *id, const char *host, GError **error);
void eb_session_manager_stop_session_async(EbSessionManager *self, const char *id, gboolean remove,
                                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_session_manager_stop_session_finish(EbSessionManager *self, GAsyncResult *result, GError **error);
/** eb_session_manager_log_async: transcript and events of one session, oldest first. */
void eb_session_manager_log_async(EbSessionManager *self, const char *id, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
/**
 * eb_session_manager_egress_async: the egress audit of one session, also of one that was removed, and whether its chain is
 * whole; see eb_egress_store_read_async().
 */
void eb_session_manager_egress_async(EbSessionManager *self, const char *id, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_manager_log_finish: also of eb_session_manager_egress_async(); (transfer full) (nullable) (element-type JsonNode): each {at, turn, event, ...} */
GPtrArray *eb_session_manager_log_finish(EbSessionManager *self, GAsyncResult *result, GError **error);

/**
 * eb_session_manager_check_async: asks the backend what it can enforce here (kept for ten minutes) and compares it with
 * accept_degraded: EB_ERROR_DEGRADED names the ids. Every start does this by itself; the service calls it to refuse early.
 */
void eb_session_manager_check_async(EbSessionManager *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);
/** eb_session_manager_check_finish: (transfer full) (nullable): also what is accepted stands in it. */
EbProbeReport *eb_session_manager_check_finish(EbSessionManager *self, GAsyncResult *result, GError **error);
/** eb_session_manager_get_probe: (transfer none) (nullable): what the backend said last, accepted or not. */
const EbProbeReport *eb_session_manager_get_probe(EbSessionManager *self);
/** eb_session_manager_take_budget: caps and prices of @config hold from now on; see eb_budget_desk_take_config(). */
gboolean eb_session_manager_take_budget(EbSessionManager *self, EbConfig *config, GError **error);
/**
 * eb_session_manager_facts_async: what the doctor asks the service for: {audit: {chains, rows, checked, broken: [{session, at,
 * why}]}, unpriced: [{provider, model}]}: what was used in the last 30 days and has no price where money is capped.
 */
void eb_session_manager_facts_async(EbSessionManager *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);
/** eb_session_manager_facts_finish: (transfer full) (nullable) */
JsonObject *eb_session_manager_facts_finish(EbSessionManager *self, GAsyncResult *result, GError **error);

/** eb_session_manager_set_accept_all_degraded: for `try` alone: gaps are told in every session instead of refused. */
void eb_session_manager_set_accept_all_degraded(EbSessionManager *self, gboolean accept);

/**
 * eb_session_manager_gc_async: removes what dead runs left, class by class; nothing of a live session or a live try.
 * @plan: counts alone
 * @free_bytes: bytes that shall be freed at least; 0 = what is garbage alone. When that is not enough what agents kept
 *   for sessions that are over goes too, those longest unused first; see eb_pressure_pick(). Their records and what
 *   was said stay.
 */
void eb_session_manager_gc_async(EbSessionManager *self, gboolean plan, guint64 free_bytes,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_manager_gc_finish: (transfer full) (nullable) (element-type EbGcClass): see eb_gc_to_json() */
GPtrArray *eb_session_manager_gc_finish(EbSessionManager *self, GAsyncResult *result, GError **error);

/**
 * eb_session_manager_keys_changed: the brokers of live sessions get the keys that are new, without a restart. The manager
 * calls it itself when the credential stores say so. @name: (nullable): of the credential; NULL = any
 */
void eb_session_manager_keys_changed(EbSessionManager *self, const char *name);

/**
 * eb_session_manager_open_upkeep_async: as eb_session_manager_open_async() on the state directory of a service that does
 * not run, for its upkeep alone: nothing is swept by opening or closing it, and no session starts.
 * @backend: started or not
 */
void eb_session_manager_open_upkeep_async(EbConfig *config, EbPaths *paths, EbContainerBackend *backend,
                                          GAsyncReadyCallback callback, gpointer user_data);

G_END_DECLS
