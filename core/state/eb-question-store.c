/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-question-store.h"

static const char *const state_names[] = {"open", "answered", "applied", "expired", "closed"};

const char *
eb_question_state_to_string(EbQuestionState state)
{
    return (guint)state < G_N_ELEMENTS(state_names) ? state_names[state] : "closed";
}

EbQuestionRow *
eb_question_row_new(void)
{
    return g_new0(EbQuestionRow, 1);
}

void
eb_question_row_free(EbQuestionRow *self)
{
    if (self == NULL)
        return;
    char *fields[] = {self->id,     self->session, self->message,    self->body,
                      self->digest, self->answer,  self->answered_by};
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        g_free(fields[i]);
    g_free(self);
}

static void
row_free(gpointer data)
{
    eb_question_row_free(data);
}

/* --- adding --- */

static void
prune(sqlite3 *db, GError **error)
{
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db, "DELETE FROM question WHERE rowid <= ? AND state NOT IN ('open', 'answered')", error);
    if (statement == NULL)
        return;
    sqlite3_bind_int64(statement, 1, sqlite3_last_insert_rowid(db) - EB_QUESTION_STORE_MAX_OVER);
    eb_store_step_done(statement, error);
}

static gpointer
add_in_store(sqlite3 *db, gpointer data, GError **error)
{
    const EbQuestionRow *row = data;
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        "INSERT INTO question (id, session, message, body, digest, state, answer, answered_by, asked, expires)"
        " VALUES (?,?,?,?,?,?,?,?,?,?)",
        error);
    if (statement == NULL)
        return NULL;
    const char *const texts[] = {row->id,     row->session,    row->message,
                                 row->body,   row->digest,     eb_question_state_to_string(row->state),
                                 row->answer, row->answered_by};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        eb_store_bind_text(statement, (int)i + 1, texts[i]);
    sqlite3_bind_int64(statement, 9, row->asked_ms);
    sqlite3_bind_int64(statement, 10, row->expires_ms);
    if (eb_store_step_done(statement, error))
        prune(db, error);
    return NULL;
}

void
eb_question_store_add_async(EbStore *store, EbQuestionRow *row, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, TRUE, add_in_store, row, row_free, NULL, NULL, callback, user_data);
}

gboolean
eb_question_store_add_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_take(store, result, NULL, error);
}

/* --- changing --- */

typedef struct {
    char *id;
    EbQuestionState from, to;
    char *message; /* (nullable): set this and nothing else */
    char *answer;
    char *answered_by;
} EbChange;

static void
change_free(gpointer data)
{
    EbChange *change = data;
    g_free(change->id);
    g_free(change->message);
    g_free(change->answer);
    g_free(change->answered_by);
    g_free(change);
}

static gpointer
move_in_store(sqlite3 *db, gpointer data, GError **error)
{
    const EbChange *change = data;
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db,
                         "UPDATE question SET state = ?3, answer = coalesce(?4, answer),"
                         " answered_by = coalesce(?5, answered_by) WHERE id = ?1 AND state = ?2",
                         error);
    if (statement == NULL)
        return NULL;
    eb_store_bind_text(statement, 1, change->id);
    eb_store_bind_text(statement, 2, eb_question_state_to_string(change->from));
    eb_store_bind_text(statement, 3, eb_question_state_to_string(change->to));
    eb_store_bind_text(statement, 4, change->answer);
    eb_store_bind_text(statement, 5, change->answered_by);
    if (!eb_store_step_done(statement, error))
        return NULL;
    return GINT_TO_POINTER(sqlite3_changes(db));
}

void
eb_question_store_move_async(EbStore *store, const char *id, EbQuestionState from, EbQuestionState to,
                             const char *answer, const char *answered_by, GAsyncReadyCallback callback,
                             gpointer user_data)
{
    EbChange *change = g_new0(EbChange, 1);
    change->id = g_strdup(id);
    change->from = from;
    change->to = to;
    change->answer = g_strdup(answer);
    change->answered_by = g_strdup(answered_by);
    eb_store_run_async(store, FALSE, move_in_store, change, change_free, NULL, NULL, callback, user_data);
}

gboolean
eb_question_store_move_finish(EbStore *store, GAsyncResult *result, gboolean *moved, GError **error)
{
    gpointer changed = NULL;
    gboolean done = eb_store_run_take(store, result, &changed, error);
    *moved = GPOINTER_TO_INT(changed) > 0;
    return done;
}

static void
on_changed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    eb_store_run_finish(EB_STORE(source), result, &error);
    if (error != NULL)
        eb_warning("what became of a question could not be written down: %s", error->message);
}

static gpointer
end_in_store(sqlite3 *db, gpointer data, GError **error)
{
    const EbChange *change = data;
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        change->message != NULL ? "UPDATE question SET message = ?2 WHERE id = ?1"
                                : "UPDATE question SET state = ?2 WHERE id = ?1 AND state IN ('open', 'answered')",
        error);
    if (statement == NULL)
        return NULL;
    eb_store_bind_text(statement, 1, change->id);
    eb_store_bind_text(statement, 2,
                       change->message != NULL ? change->message : eb_question_state_to_string(change->to));
    eb_store_step_done(statement, error);
    return NULL;
}

void
eb_question_store_set_message(EbStore *store, const char *id, const char *message)
{
    EbChange *change = g_new0(EbChange, 1);
    change->id = g_strdup(id);
    change->message = g_strdup(message);
    eb_store_run_async(store, FALSE, end_in_store, change, change_free, NULL, NULL, on_changed, NULL);
}

void
eb_question_store_end(EbStore *store, const char *id, EbQuestionState state)
{
    EbChange *change = g_new0(EbChange, 1);
    change->id = g_strdup(id);
    change->to = state;
    eb_store_run_async(store, FALSE, end_in_store, change, change_free, NULL, NULL, on_changed, NULL);
}

/* --- loading --- */

static gpointer
row_from_row(sqlite3_stmt *statement)
{
    EbQuestionRow *row = eb_question_row_new();
    row->id = eb_store_column_dup(statement, 0);
    row->session = eb_store_column_dup(statement, 1);
    row->message = eb_store_column_dup(statement, 2);
    row->body = eb_store_column_dup(statement, 3);
    row->digest = eb_store_column_dup(statement, 4);
    g_autofree char *state = eb_store_column_dup(statement, 5);
    /* What is not known is over. */
    row->state = g_strcmp0(state, "open") == 0       ? EB_QUESTION_OPEN
                 : g_strcmp0(state, "answered") == 0 ? EB_QUESTION_ANSWERED
                                                     : EB_QUESTION_CLOSED;
    row->answer = eb_store_column_dup(statement, 6);
    row->answered_by = eb_store_column_dup(statement, 7);
    row->asked_ms = sqlite3_column_int64(statement, 8);
    row->expires_ms = sqlite3_column_int64(statement, 9);
    return row;
}

static gpointer
load_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) old =
        eb_store_prepare(db, "DELETE FROM question WHERE state NOT IN ('open', 'answered') AND expires < ?", error);
    if (old == NULL)
        return NULL;
    sqlite3_bind_int64(old, 1, g_get_real_time() / 1000 - EB_QUESTION_STORE_KEEP_MS);
    if (!eb_store_step_done(old, error))
        return NULL;
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        "SELECT id, session, message, body, digest, state, answer, answered_by, asked, expires FROM"
        " (SELECT * FROM question WHERE state IN ('open', 'answered') ORDER BY asked DESC, id DESC LIMIT ?)"
        " ORDER BY asked, id",
        error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_int(statement, 1, EB_QUESTION_STORE_MAX);
    return eb_store_collect(db, statement, row_from_row, row_free, "read the open questions", error);
}

void
eb_question_store_load_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, load_in_store, NULL, NULL, (GDestroyNotify)g_ptr_array_unref, NULL, callback,
                       user_data);
}

GPtrArray *
eb_question_store_load_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}
