/* SPDX-License-Identifier: MIT */
#include "core/state/eb-usage-store.h"

/* Sums of one session and day that load() gives; each is a few hundred bytes. */
#define MAX_ROWS 100000

EbUsageRow *
eb_usage_row_new(const char *session, guint turn, gint64 day, const char *person, const char *provider,
                 const char *model)
{
    EbUsageRow *self = g_new0(EbUsageRow, 1);

    self->session = g_strdup(session);
    self->turn = turn;
    self->day = day;
    self->person = g_strdup(person != NULL ? person : "");
    self->provider = g_strdup(provider != NULL ? provider : "");
    self->model = g_strdup(model != NULL ? model : "");
    return self;
}

void
eb_usage_row_free(EbUsageRow *self)
{
    if (self == NULL)
        return;
    g_free(self->session);
    g_free(self->person);
    g_free(self->provider);
    g_free(self->model);
    g_free(self);
}

static void
row_free(gpointer data)
{
    eb_usage_row_free(data);
}

static void
bind_row(sqlite3_stmt *statement, const EbUsageRow *row)
{
    eb_store_bind_text(statement, 1, row->session);
    sqlite3_bind_int64(statement, 2, row->turn);
    sqlite3_bind_int64(statement, 3, row->day);
    eb_store_bind_text(statement, 4, row->person);
    eb_store_bind_text(statement, 5, row->provider);
    eb_store_bind_text(statement, 6, row->model);
}

static gpointer
hold_in_store(sqlite3 *db, gpointer data, GError **error)
{
    const EbUsageRow *row = data;
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        "INSERT OR REPLACE INTO usage_hold (session, turn, day, person, provider, model, tokens, micros, id)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        error);

    if (statement == NULL)
        return NULL;
    bind_row(statement, row);
    sqlite3_bind_int64(statement, 7, (gint64)row->tokens_in);
    sqlite3_bind_int64(statement, 8, (gint64)row->micros);
    sqlite3_bind_int64(statement, 9, row->hold);
    eb_store_step_done(statement, error);
    return NULL;
}

void
eb_usage_store_hold_async(EbStore *store, EbUsageRow *row, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, hold_in_store, row, row_free, NULL, NULL, callback, user_data);
}

#define ADD                                                                                                            \
    "INSERT INTO usage (session, turn, day, person, provider, model, requests, tokens_in, tokens_out, tokens_cached,"  \
    " estimated, micros) "
#define ONTO                                                                                                           \
    " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, tokens_in = tokens_in + excluded.tokens_in,"  \
    " tokens_out = tokens_out + excluded.tokens_out, tokens_cached = tokens_cached + excluded.tokens_cached,"          \
    " estimated = estimated + excluded.estimated, micros = micros + excluded.micros"

static gboolean
drop_hold(sqlite3 *db, gint64 hold, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, "DELETE FROM usage_hold WHERE id = ?", error);

    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, hold);
    return eb_store_step_done(statement, error);
}

static gpointer
settle_in_store(sqlite3 *db, gpointer data, GError **error)
{
    const EbUsageRow *row = data;
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, ADD "VALUES (?,?,?,?,?,?,1,?,?,?,?,?)" ONTO, error);

    if (statement == NULL)
        return NULL;
    /* A model's name is the guest's to choose: of what was refused up there no row is kept. */
    if (row->tokens_in + row->tokens_out == 0) {
        if (row->hold != 0)
            drop_hold(db, row->hold, error);
        return NULL;
    }
    bind_row(statement, row);
    sqlite3_bind_int64(statement, 7, (gint64)row->tokens_in);
    sqlite3_bind_int64(statement, 8, (gint64)row->tokens_out);
    sqlite3_bind_int64(statement, 9, (gint64)row->tokens_cached);
    sqlite3_bind_int64(statement, 10, row->estimated ? (gint64)(row->tokens_in + row->tokens_out) : 0);
    sqlite3_bind_int64(statement, 11, (gint64)row->micros);
    if (eb_store_step_done(statement, error) && row->hold != 0)
        drop_hold(db, row->hold, error);
    return NULL;
}

void
eb_usage_store_settle_async(EbStore *store, EbUsageRow *row, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, TRUE, settle_in_store, row, row_free, NULL, NULL, callback, user_data);
}

gboolean
eb_usage_store_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_take(store, result, NULL, error);
}

/* --- at start --- */

static gboolean
run(sqlite3 *db, const char *sql, gint64 day, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, sql, error);

    if (statement == NULL)
        return FALSE;
    if (sqlite3_bind_parameter_count(statement) > 0)
        sqlite3_bind_int64(statement, 1, day);
    return eb_store_step_done(statement, error);
}

static gpointer
row_from(sqlite3_stmt *row)
{
    g_autofree char *session = eb_store_column_dup(row, 0);
    g_autofree char *person = eb_store_column_dup(row, 2);
    EbUsageRow *self = eb_usage_row_new(session, 0, sqlite3_column_int64(row, 1), person, NULL, NULL);

    self->tokens_in = (guint64)sqlite3_column_int64(row, 3);
    self->tokens_out = (guint64)sqlite3_column_int64(row, 4);
    self->micros = (guint64)sqlite3_column_int64(row, 5);
    return self;
}

static gpointer
load_in_store(sqlite3 *db, gpointer data, GError **error)
{
    static const char *const statements[] = {
        /* Nobody will tell what became of them: all of it may have been used. "WHERE true" tells UPSERT from JOIN. */
        ADD "SELECT session, turn, day, person, provider, model, 1, tokens, 0, 0, tokens, micros FROM usage_hold"
            " WHERE true" ONTO,
        "DELETE FROM usage_hold",
        "DELETE FROM usage WHERE day < ?1 AND session NOT IN (SELECT id FROM session)",
    };
    gint64 today = *(gint64 *)data;

    for (gsize i = 0; i < G_N_ELEMENTS(statements); i++)
        if (!run(db, statements[i], today - EB_USAGE_KEEP_DAYS, error))
            return NULL;
    g_autoptr(sqlite3_stmt) rows =
        eb_store_prepare(db,
                         /* sum() fails beyond 63 bits, total() does not. */
                         "SELECT session, day, person, CAST(total(tokens_in) AS INTEGER),"
                         " CAST(total(tokens_out) AS INTEGER), CAST(total(micros) AS INTEGER) FROM usage"
                         " GROUP BY session, day, person ORDER BY day DESC LIMIT " G_STRINGIFY(MAX_ROWS),
                         error);
    return rows != NULL ? eb_store_collect(db, rows, row_from, row_free, "read what was used", error) : NULL;
}

void
eb_usage_store_load_async(EbStore *store, gint64 today, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, TRUE, load_in_store, g_memdup2(&today, sizeof today), g_free,
                       (GDestroyNotify)g_ptr_array_unref, NULL, callback, user_data);
}

GPtrArray *
eb_usage_store_load_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}
