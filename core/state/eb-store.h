/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

#include <sqlite3.h>

G_BEGIN_DECLS

/**
 * EB_STORE_VERSION: what this program writes into user_version. A database is brought up to it when it is opened, and an
 * older program then refuses it: to go back take the backup that was made before the update.
 * 2: guests of a session, attachments, watermarks, questions. 3: pinned sessions. 4: egress audit,
 * usage, rules of a session.
 */
#define EB_STORE_VERSION 4

/**
 * EbStore: the service's SQLite database (WAL) and the one thread that touches it.
 *
 * A database made by a newer program is refused (EB_ERROR_CONFIG "state.newer"), a damaged one too
 * (EB_ERROR_INTEGRITY "state.damaged"); either is left as it is.
 */
#define EB_TYPE_STORE (eb_store_get_type())
G_DECLARE_FINAL_TYPE(EbStore, eb_store, EB, STORE, GObject)

/** eb_store_open_async: @path: of the database, made 0600 when missing. */
void eb_store_open_async(const char *path, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_store_open_finish: (transfer full) (nullable) */
EbStore *eb_store_open_finish(GAsyncResult *result, GError **error);
/**
 * eb_store_open_blocking: (nullable): the same checks for a caller that is in a thread of its own; ended with
 * sqlite3_close().
 */
sqlite3 *eb_store_open_blocking(const char *path, GError **error);
const char *eb_store_get_path(EbStore *self);

/** EbStoreFunc: runs in the store's thread. Returns what run_finish() gives, or sets @error. */
typedef gpointer (*EbStoreFunc)(sqlite3 *db, gpointer data, GError **error);

/**
 * eb_store_run_async:
 * @transaction: TRUE: @func runs in one, which an error rolls back
 * @data: (transfer full): freed with @free_data
 * @free_result: (nullable): for a result nobody fetched
 */
void eb_store_run_async(EbStore *self, gboolean transaction, EbStoreFunc func, gpointer data, GDestroyNotify free_data,
                        GDestroyNotify free_result, GCancellable *cancellable, GAsyncReadyCallback callback,
                        gpointer user_data);
gpointer eb_store_run_finish(EbStore *self, GAsyncResult *result, GError **error);
/** eb_store_run_take: the same where NULL is a good result. @value: (out) (optional): NULL with an error */
gboolean eb_store_run_take(EbStore *self, GAsyncResult *result, gpointer *value, GError **error);

/** eb_store_close: waits for what is queued, then closes the database. */
void eb_store_close(EbStore *self);

/* --- for functions that run in the store's thread --- */

/** eb_store_set_error: converts the state of @db; @what: "save the session". */
void eb_store_set_error(GError **error, sqlite3 *db, const char *what);
/** eb_store_prepare: (transfer full) (nullable) */
sqlite3_stmt *eb_store_prepare(sqlite3 *db, const char *sql, GError **error);
/** eb_store_bind_text: @text: (nullable): NULL for NULL; copied */
void eb_store_bind_text(sqlite3_stmt *statement, int index, const char *text);
/** eb_store_step_done: for statements without rows. */
gboolean eb_store_step_done(sqlite3_stmt *statement, GError **error);
/** EbStoreRowFunc: (transfer full): what one row is. */
typedef gpointer (*EbStoreRowFunc)(sqlite3_stmt *row);
/**
 * eb_store_collect: (transfer full) (nullable): every row of @statement, freed with @free_row; a read that breaks off
 * gives none, so that nobody takes a part for all. @what: "read the sessions"
 */
GPtrArray *eb_store_collect(sqlite3 *db, sqlite3_stmt *statement, EbStoreRowFunc row, GDestroyNotify free_row,
                            const char *what, GError **error);
/** eb_store_column_dup: (transfer full) (nullable): valid UTF-8, NULL for NULL */
char *eb_store_column_dup(sqlite3_stmt *statement, int column);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sqlite3_stmt, sqlite3_finalize)

G_END_DECLS
