/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-store.h"

#include "core/base/eb-worker.h"
#include "core/state/eb-restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A writer of another process (backup) holds the database for moments at most. */
#define BUSY_TIMEOUT_MS 5000

/* A database that cannot be used is never replaced by an empty one: all that was in it would be gone without a word. */
#define ADVICE_RESTORE                                                                                                 \
    " (it was left as it is; errand-box maint restore FILE --replace brings back a backup and keeps this one aside)"

struct _EbStore {
    GObject parent_instance;
    char *path;
    sqlite3 *db; /* used by the worker alone */
    EbWorker *worker;
};

G_DEFINE_FINAL_TYPE(EbStore, eb_store, G_TYPE_OBJECT)

/* migrations[i] brings version i to i + 1; entries are never changed once released. */
static const char *const migrations[] = {
    "CREATE TABLE session ("
    " id TEXT PRIMARY KEY, project TEXT NOT NULL, agent TEXT NOT NULL, model TEXT, provider TEXT, agent_session TEXT,"
    " transport TEXT, thread TEXT, owner TEXT, state TEXT NOT NULL, instance TEXT, run TEXT,"
    " started INTEGER NOT NULL, last_activity INTEGER NOT NULL, turns INTEGER NOT NULL DEFAULT 0, end_reason TEXT"
    ") STRICT;"
    "CREATE INDEX session_thread ON session (transport, thread);"
    "CREATE TABLE message ("
    " transport TEXT NOT NULL, id TEXT NOT NULL, thread TEXT, session TEXT, author TEXT, body TEXT NOT NULL,"
    " extra TEXT, state TEXT NOT NULL, received INTEGER NOT NULL, changed INTEGER NOT NULL,"
    " PRIMARY KEY (transport, id)"
    ") STRICT;"
    "CREATE INDEX message_state ON message (state, received);"
    "CREATE TABLE event ("
    " session TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL,"
    " body TEXT NOT NULL, PRIMARY KEY (session, seq)"
    ") STRICT, WITHOUT ROWID;",
    "ALTER TABLE session ADD COLUMN guests TEXT;"
    "ALTER TABLE message ADD COLUMN attachments TEXT;"
    "ALTER TABLE message ADD COLUMN sent INTEGER;"
    "CREATE TABLE watermark ("
    " transport TEXT NOT NULL, thread TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (transport, thread)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE question ("
    " id TEXT PRIMARY KEY, session TEXT NOT NULL, message TEXT, body TEXT NOT NULL, digest TEXT NOT NULL,"
    " state TEXT NOT NULL, answer TEXT, answered_by TEXT, asked INTEGER NOT NULL, expires INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX question_session ON question (session, state);",
    "ALTER TABLE session ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;",
    "CREATE TABLE egress ("
    " session TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, host TEXT, address TEXT,"
    " port INTEGER NOT NULL, bytes_up INTEGER NOT NULL, bytes_down INTEGER NOT NULL, ms INTEGER NOT NULL,"
    " decision TEXT NOT NULL, rule TEXT, provider TEXT, status INTEGER NOT NULL, lost INTEGER NOT NULL,"
    " previous BLOB NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (session, seq)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX egress_at ON egress (at);"
    /* first: the oldest row that is kept, anchor: the hash before it; next and head: where the chain goes on. */
    "CREATE TABLE egress_chain ("
    " session TEXT PRIMARY KEY, first INTEGER NOT NULL, anchor BLOB NOT NULL, next INTEGER NOT NULL, head BLOB NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE usage ("
    " session TEXT NOT NULL, turn INTEGER NOT NULL, day INTEGER NOT NULL, person TEXT NOT NULL, provider TEXT NOT NULL,"
    " model TEXT NOT NULL, requests INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,"
    " tokens_cached INTEGER NOT NULL, estimated INTEGER NOT NULL, micros INTEGER NOT NULL,"
    " PRIMARY KEY (session, turn, day, person, provider, model)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX usage_day ON usage (day);"
    /* What is promised to requests under way; what a kill leaves here counts as spent. */
    "CREATE TABLE usage_hold ("
    " id INTEGER PRIMARY KEY, session TEXT NOT NULL, turn INTEGER NOT NULL, day INTEGER NOT NULL, person TEXT NOT NULL,"
    " provider TEXT NOT NULL, model TEXT NOT NULL, tokens INTEGER NOT NULL, micros INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE session_rules ("
    " session TEXT NOT NULL, kind TEXT NOT NULL, rule TEXT NOT NULL, created INTEGER NOT NULL, created_by TEXT,"
    " PRIMARY KEY (session, kind, rule)"
    ") STRICT, WITHOUT ROWID;",
};
G_STATIC_ASSERT(G_N_ELEMENTS(migrations) == EB_STORE_VERSION);

void
eb_store_set_error(GError **error, sqlite3 *db, const char *what)
{
    int code = sqlite3_errcode(db) & 0xff;
    EbErrorCode kind = EB_ERROR_FAILED;
    const char *reason = "state.failed";
    const char *advice = "";
    switch (code) {
    case SQLITE_FULL:
        kind = EB_ERROR_QUOTA;
        reason = "state.disk-full";
        advice = " (free space on the file system of the state directory)";
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        kind = EB_ERROR_INTEGRITY;
        reason = "state.damaged";
        advice = ADVICE_RESTORE;
        break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
        kind = EB_ERROR_DENIED;
        reason = "state.denied";
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        kind = EB_ERROR_BUSY;
        reason = "state.busy";
        break;
    default:
        break;
    }
    eb_set_error(error, kind, reason, "cannot %s: %s%s", what, sqlite3_errmsg(db), advice);
}

sqlite3_stmt *
eb_store_prepare(sqlite3 *db, const char *sql, GError **error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        eb_store_set_error(error, db, "use the database");
        return NULL;
    }
    return statement;
}

void
eb_store_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text, -1, SQLITE_TRANSIENT);
}

gboolean
eb_store_step_done(sqlite3_stmt *statement, GError **error)
{
    if (sqlite3_step(statement) != SQLITE_DONE) {
        eb_store_set_error(error, sqlite3_db_handle(statement), "write the database");
        return FALSE;
    }
    return TRUE;
}

GPtrArray *
eb_store_collect(sqlite3 *db, sqlite3_stmt *statement, EbStoreRowFunc row, GDestroyNotify free_row, const char *what,
                 GError **error)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(free_row);
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW)
        g_ptr_array_add(rows, row(statement));
    if (step != SQLITE_DONE) {
        eb_store_set_error(error, db, what);
        return NULL;
    }
    return g_steal_pointer(&rows);
}

char *
eb_store_column_dup(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text != NULL ? g_utf8_make_valid(text, -1) : NULL;
}

static gboolean
exec_sql(sqlite3 *db, const char *sql, const char *what, GError **error)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        eb_store_set_error(error, db, what);
        return FALSE;
    }
    return TRUE;
}

static int
read_version(sqlite3 *db, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, "PRAGMA user_version", error);
    if (statement == NULL)
        return -1;
    if (sqlite3_step(statement) != SQLITE_ROW) {
        eb_store_set_error(error, db, "read the database");
        return -1;
    }
    return sqlite3_column_int(statement, 0);
}

static gboolean
check_integrity(sqlite3 *db, const char *path, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, "PRAGMA quick_check(5)", error);
    if (statement == NULL)
        return FALSE;
    g_autoptr(GString) problems = g_string_new(NULL);
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *row = (const char *)sqlite3_column_text(statement, 0);
        if (g_strcmp0(row, "ok") == 0)
            continue;
        g_autofree char *line = eb_log_escape(row != NULL ? row : "", -1, 200);
        g_string_append_printf(problems, "%s%s", problems->len > 0 ? "; " : "", line);
    }
    if (step != SQLITE_DONE) {
        eb_store_set_error(error, db, "check the database");
        return FALSE;
    }
    if (problems->len > 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "state.damaged", "the database %s is damaged: %s" ADVICE_RESTORE, path,
                     problems->str);
        return FALSE;
    }
    return TRUE;
}

static gboolean
migrate(sqlite3 *db, const char *path, GError **error)
{
    int version = read_version(db, error);
    if (version < 0)
        return FALSE;
    if (version > EB_STORE_VERSION) {
        eb_set_error(error, EB_ERROR_CONFIG, "state.newer",
                     "the database %s was written by a newer version (schema %d, this program knows %d): use that "
                     "version or another state directory",
                     path, version, EB_STORE_VERSION);
        return FALSE;
    }
    for (; version < EB_STORE_VERSION; version++) {
        g_autofree char *sql =
            g_strdup_printf("BEGIN IMMEDIATE; %s PRAGMA user_version = %d; COMMIT;", migrations[version], version + 1);
        if (!exec_sql(db, sql, "bring the database up to date", error)) {
            sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
            return FALSE;
        }
    }
    return TRUE;
}

static sqlite3 *
open_file(const char *path, GError **error)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    gboolean ok = sqlite3_open_v2(path, &db, flags, NULL) == SQLITE_OK;
    if (!ok) {
        eb_store_set_error(error, db, "open the database");
    } else {
        sqlite3_extended_result_codes(db, 1);
        sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
        /* NORMAL in WAL mode: a power cut may lose the last moments, never the consistency. */
        ok = exec_sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF;",
                      "open the database", error) &&
             check_integrity(db, path, error) && migrate(db, path, error);
    }
    if (!ok) {
        g_prefix_error(error, "%s: ", path);
        sqlite3_close(db);
        return NULL;
    }
    return db;
}

static gboolean
denied(const char *path, const char *why, GError **error)
{
    eb_set_error(error, EB_ERROR_DENIED, "state.denied",
                 "cannot use the database %s: %s (it must be a file that the service's account alone reads and writes)",
                 path, why);
    return FALSE;
}

/* Made here and not by SQLite, whose default mode follows the umask; beside its place, so that an empty file there is
 * never one of ours that was not finished. */
static gboolean
make_file(const char *path, GError **error)
{
    g_autofree char *fresh = g_strconcat(path, ".new", NULL);
    sqlite3 *db = NULL;
    unlink(fresh);
    int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        if (errno != ENOSPC && errno != EDQUOT)
            return denied(path, g_strerror(errno), error);
        eb_set_error(error, EB_ERROR_QUOTA, "state.disk-full",
                     "cannot make the database %s: %s (free space on the file system of the state directory)", path,
                     g_strerror(errno));
        return FALSE;
    }
    close(fd);
    db = open_file(fresh, error);
    if (db == NULL) {
        unlink(fresh);
        return FALSE;
    }
    sqlite3_close(db);
    return rename(fresh, path) == 0 || denied(path, g_strerror(errno), error);
}

static gboolean
check_file(const char *path, const struct stat *info, GError **error)
{
    if (S_ISDIR(info->st_mode) || !S_ISREG(info->st_mode))
        return denied(path, S_ISDIR(info->st_mode) ? "it is a directory" : "it is no regular file", error);
    if (info->st_size > 0) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return denied(path, g_strerror(errno), error);
        close(fd);
        return TRUE;
    }
    eb_set_error(error, EB_ERROR_INTEGRITY, "state.empty", "the database %s is empty: it was cut off%s", path,
                 ADVICE_RESTORE);
    return FALSE;
}

static gboolean
check_missing(const char *path, GError **error)
{
    g_autofree char *log = g_strconcat(path, "-wal", NULL);
    struct stat info;
    if (lstat(log, &info) != 0 || info.st_size == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, "state.missing",
                 "the database %s is gone, but its log %s is there: what that holds would be lost%s", path, log,
                 ADVICE_RESTORE);
    return FALSE;
}

sqlite3 *
eb_store_open_blocking(const char *path, GError **error)
{
    struct stat info;
    g_autofree char *dir = g_path_get_dirname(path);
    if (eb_restore_is_pending(dir)) {
        eb_set_error(error, EB_ERROR_BUSY, "state.restoring",
                     "a restore into %s was interrupted: the next start of the service finishes it (errand-box up)",
                     dir);
        return NULL;
    }
    if (lstat(path, &info) == 0 ? !check_file(path, &info, error)
                                : !check_missing(path, error) || !make_file(path, error))
        return NULL;
    return open_file(path, error);
}

static void
open_in_worker(GTask *task)
{
    EbStore *self = g_task_get_task_data(task);
    GError *error = NULL;
    self->db = eb_store_open_blocking(self->path, &error);
    if (self->db == NULL) {
        g_task_return_error(task, error);
        return;
    }
    g_task_return_boolean(task, TRUE);
}

void
eb_store_open_async(const char *path, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(path != NULL);
    EbStore *self = g_object_new(EB_TYPE_STORE, NULL);
    self->path = g_strdup(path);
    self->worker = eb_worker_new("eb-store", 0);
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_store_open_async);
    g_task_set_check_cancellable(task, FALSE);
    g_task_set_task_data(task, self, g_object_unref);
    eb_worker_run(self->worker, task, open_in_worker);
}

EbStore *
eb_store_open_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_store_open_async), NULL);
    if (!g_task_propagate_boolean(G_TASK(result), error))
        return NULL;
    return g_object_ref(g_task_get_task_data(G_TASK(result)));
}

const char *
eb_store_get_path(EbStore *self)
{
    return self->path;
}

typedef struct {
    EbStore *store; /* not owned: the worker is joined before the store goes */
    gboolean transaction;
    EbStoreFunc func;
    gpointer data;
    GDestroyNotify free_data;
    GDestroyNotify free_result;
} EbStoreCall;

static void
call_free(gpointer data)
{
    EbStoreCall *call = data;
    if (call->free_data != NULL)
        call->free_data(call->data);
    g_free(call);
}

static void
call_in_worker(GTask *task)
{
    EbStoreCall *call = g_task_get_task_data(task);
    sqlite3 *db = call->store->db;
    GError *error = NULL;
    gpointer value = NULL;
    if (!call->transaction || exec_sql(db, "BEGIN IMMEDIATE", "begin a change", &error))
        value = call->func(db, call->data, &error);
    if (call->transaction && error == NULL)
        exec_sql(db, "COMMIT", "save a change", &error);
    if (call->transaction && error != NULL && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    if (error != NULL) {
        if (value != NULL && call->free_result != NULL)
            call->free_result(value);
        g_task_return_error(task, error);
        return;
    }
    g_task_return_pointer(task, value, call->free_result);
}

void
eb_store_run_async(EbStore *self, gboolean transaction, EbStoreFunc func, gpointer data, GDestroyNotify free_data,
                   GDestroyNotify free_result, GCancellable *cancellable, GAsyncReadyCallback callback,
                   gpointer user_data)
{
    g_return_if_fail(EB_IS_STORE(self) && func != NULL);
    EbStoreCall *call = g_new0(EbStoreCall, 1);
    call->store = self;
    call->transaction = transaction;
    call->func = func;
    call->data = data;
    call->free_data = free_data;
    call->free_result = free_result;
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_store_run_async);
    g_task_set_check_cancellable(task, FALSE);
    g_task_set_task_data(task, call, call_free);
    eb_worker_run(self->worker, task, call_in_worker);
}

gpointer
eb_store_run_finish(EbStore *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

gboolean
eb_store_run_take(EbStore *self, GAsyncResult *result, gpointer *value, GError **error)
{
    GError *local = NULL;
    gpointer got = eb_store_run_finish(self, result, &local);

    if (value != NULL)
        *value = local == NULL ? got : NULL;
    if (local == NULL)
        return TRUE;
    g_propagate_error(error, local);
    return FALSE;
}

void
eb_store_close(EbStore *self)
{
    g_return_if_fail(EB_IS_STORE(self));
    if (self->worker != NULL)
        eb_worker_close(self->worker);
    if (self->db != NULL) {
        sqlite3_close(self->db);
        self->db = NULL;
    }
}

static void
eb_store_finalize(GObject *object)
{
    EbStore *self = EB_STORE(object);
    eb_store_close(self);
    g_clear_object(&self->worker);
    g_free(self->path);
    G_OBJECT_CLASS(eb_store_parent_class)->finalize(object);
}

static void
eb_store_class_init(EbStoreClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_store_finalize;
}

static void
eb_store_init(EbStore *self)
{
}
