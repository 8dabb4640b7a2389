/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-session-rules.h"

G_BEGIN_DECLS

/** EB_SESSION_MAX_GUESTS: people one session lets in besides its owner. */
#define EB_SESSION_MAX_GUESTS 100
/** EB_SESSION_MAX_GUEST_BYTES: of one id. */
#define EB_SESSION_MAX_GUEST_BYTES 200

/** EB_SESSION_REMOVED: end_reason of a session whose removal has begun: what is left of it goes, whatever happens. */
#define EB_SESSION_REMOVED "being removed"

/** EbSessionRecord: what is kept of a session. Strings are nullable unless said otherwise. */
typedef struct {
    int ref_count;
    char *id;      /* not NULL: 12 characters of [a-z0-9] */
    char *project; /* not NULL */
    char *agent;   /* not NULL */
    char *model;
    char *provider;
    char *agent_session; /* the agent's own ACP session id */
    char *transport;
    char *thread;
    char *owner;
    char *state;                         /* not NULL: starting, ready, working, idle, ended */
    char *instance;                      /* name of its guest while it has one */
    char *run;                           /* the run of the service it is live in */
    gint64 started_ms, last_activity_ms; /* unix, milliseconds */
    guint turns;
    char *end_reason;
    GPtrArray
        *guests; /* (element-type utf8) (not nullable): ids of people the owner let in, at most EB_SESSION_MAX_GUESTS */
    gboolean pinned;   /* never given up for space */
    char *last_prompt; /* what its agent was told last; not kept on disk */
    /* (element-type EbSessionRule) (not nullable): hosts allowed for it alone, at most EB_SESSION_RULES_MAX_HOSTS; kept in
       rows of their own */
    GPtrArray *hosts;
} EbSessionRecord;

/** eb_session_record_new: state "starting", both times now. */
EbSessionRecord *eb_session_record_new(const char *id, const char *project, const char *agent);
EbSessionRecord *eb_session_record_copy(const EbSessionRecord *self);
EbSessionRecord *eb_session_record_ref(EbSessionRecord *self);
void eb_session_record_unref(EbSessionRecord *self);
/** eb_session_record_set_guest: FALSE when nothing changed, the id is none that can be kept, or there are too many. */
gboolean eb_session_record_set_guest(EbSessionRecord *self, const char *id, gboolean invited);
gboolean eb_session_record_has_guest(const EbSessionRecord *self, const char *id);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSessionRecord, eb_session_record_unref)

/** EB_SESSION_STORE_MAX: records that load() gives: the most recently used; older ones stay in the database. */
#define EB_SESSION_STORE_MAX 2000

/** eb_session_store_save_async: inserts or replaces the row of @record (copied). */
void eb_session_store_save_async(EbStore *store, const EbSessionRecord *record, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_store_remove_async: the row with its events and finished messages; what still waits is kept for another
 *  session. Absence is no error. */
void eb_session_store_remove_async(EbStore *store, const char *id, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_store_load_async: every record, live ones first, then by last activity. */
void eb_session_store_load_async(EbStore *store, GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);
/** eb_session_store_idle_async: ended sessions that are not pinned, those longest unused first, at most
 *  EB_SESSION_STORE_MAX_IDLE. */
void eb_session_store_idle_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data);
/** EB_SESSION_STORE_MAX_IDLE: rows looked at in one go. */
#define EB_SESSION_STORE_MAX_IDLE 10000
/** eb_session_store_ids_async: of every row, also of those beyond EB_SESSION_STORE_MAX. */
void eb_session_store_ids_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_store_ids_finish: (transfer full) (nullable) (element-type utf8) */
GPtrArray *eb_session_store_ids_finish(EbStore *store, GAsyncResult *result, GError **error);
/**
 * eb_session_store_settle_file:
 * @path: a database whose owner died; the caller holds that owner's lock
 *
 * Live rows become ended with @reason, rows whose agent never had a session go. Blocks: for workers.
 * Returns: (transfer full) (nullable) (element-type utf8): ids of the rows that stay
 */
GPtrArray *eb_session_store_settle_file(const char *path, const char *reason, GError **error);
/** eb_session_store_finish: for save and remove. */
gboolean eb_session_store_finish(EbStore *store, GAsyncResult *result, GError **error);
/** eb_session_store_load_finish: of load and idle: (transfer full) (nullable) (element-type EbSessionRecord) */
GPtrArray *eb_session_store_load_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
