/* SPDX-License-Identifier: MIT */
#include "core/state/eb-session-store.h"

#include <string.h>

EbSessionRecord *
eb_session_record_new(const char *id, const char *project, const char *agent)
{
    EbSessionRecord *self = g_new0(EbSessionRecord, 1);
    self->ref_count = 1;
    self->id = g_strdup(id);
    self->project = g_strdup(project);
    self->agent = g_strdup(agent);
    self->state = g_strdup("starting");
    self->guests = g_ptr_array_new_with_free_func(g_free);
    self->hosts = eb_session_rules_list_new();
    self->started_ms = self->last_activity_ms = g_get_real_time() / 1000;
    return self;
}

EbSessionRecord *
eb_session_record_copy(const EbSessionRecord *self)
{
    EbSessionRecord *copy = eb_session_record_new(self->id, self->project, self->agent);
    copy->model = g_strdup(self->model);
    copy->provider = g_strdup(self->provider);
    copy->agent_session = g_strdup(self->agent_session);
    copy->transport = g_strdup(self->transport);
    copy->thread = g_strdup(self->thread);
    copy->owner = g_strdup(self->owner);
    g_free(copy->state);
    copy->state = g_strdup(self->state);
    copy->instance = g_strdup(self->instance);
    copy->run = g_strdup(self->run);
    copy->started_ms = self->started_ms;
    copy->last_activity_ms = self->last_activity_ms;
    copy->turns = self->turns;
    copy->pinned = self->pinned;
    copy->end_reason = g_strdup(self->end_reason);
    for (guint i = 0; i < self->guests->len; i++)
        g_ptr_array_add(copy->guests, g_strdup(self->guests->pdata[i]));
    copy->last_prompt = g_strdup(self->last_prompt);
    for (guint i = 0; i < self->hosts->len; i++)
        g_ptr_array_add(copy->hosts, eb_session_rule_copy(self->hosts->pdata[i]));
    return copy;
}

EbSessionRecord *
eb_session_record_ref(EbSessionRecord *self)
{
    g_atomic_int_inc(&self->ref_count);
    return self;
}

void
eb_session_record_unref(EbSessionRecord *self)
{
    if (self == NULL || !g_atomic_int_dec_and_test(&self->ref_count))
        return;
    char *fields[] = {self->id,         self->project,    self->agent, self->model, self->provider, self->agent_session,
                      self->transport,  self->thread,     self->owner, self->state, self->instance, self->run,
                      self->end_reason, self->last_prompt};
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        g_free(fields[i]);
    g_ptr_array_unref(self->guests);
    g_ptr_array_unref(self->hosts);
    g_free(self);
}

static gboolean
find_guest(const EbSessionRecord *self, const char *id, guint *index)
{
    return g_ptr_array_find_with_equal_func(self->guests, id, g_str_equal, index);
}

gboolean
eb_session_record_has_guest(const EbSessionRecord *self, const char *id)
{
    return id != NULL && find_guest(self, id, NULL);
}

gboolean
eb_session_record_set_guest(EbSessionRecord *self, const char *id, gboolean invited)
{
    guint index = 0;
    gboolean there = find_guest(self, id, &index);
    if (there == invited)
        return FALSE;
    if (there) {
        g_ptr_array_remove_index(self->guests, index);
        return TRUE;
    }
    /* One a line on disk. */
    if (*id == '\0' || strlen(id) > EB_SESSION_MAX_GUEST_BYTES || strpbrk(id, "\r\n") != NULL ||
        self->guests->len >= EB_SESSION_MAX_GUESTS)
        return FALSE;
    g_ptr_array_add(self->guests, g_strdup(id));
    return TRUE;
}

static void
record_free(gpointer data)
{
    eb_session_record_unref(data);
}

/* (nullable): NULL when there are none */
static char *
join_guests(GPtrArray *guests)
{
    g_autoptr(GString) lines = g_string_new(NULL);
    for (guint i = 0; i < guests->len; i++)
        g_string_append_printf(lines, "%s%s", i > 0 ? "\n" : "", (const char *)guests->pdata[i]);
    return lines->len > 0 ? g_string_free(g_steal_pointer(&lines), FALSE) : NULL;
}

static gpointer
save_in_store(sqlite3 *db, gpointer data, GError **error)
{
    const EbSessionRecord *record = data;
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        "INSERT OR REPLACE INTO session (id, project, agent, model, provider, agent_session, transport, thread, owner,"
        " state, instance, run, started, last_activity, turns, end_reason, guests, pinned)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        error);
    if (statement == NULL)
        return NULL;
    const char *const texts[] = {record->id,       record->project,       record->agent,     record->model,
                                 record->provider, record->agent_session, record->transport, record->thread,
                                 record->owner,    record->state,         record->instance,  record->run};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        eb_store_bind_text(statement, (int)i + 1, texts[i]);
    sqlite3_bind_int64(statement, 13, record->started_ms);
    sqlite3_bind_int64(statement, 14, record->last_activity_ms);
    sqlite3_bind_int64(statement, 15, record->turns);
    eb_store_bind_text(statement, 16, record->end_reason);
    g_autofree char *guests = join_guests(record->guests);
    eb_store_bind_text(statement, 17, guests);
    sqlite3_bind_int(statement, 18, record->pinned ? 1 : 0);
    eb_store_step_done(statement, error);
    return NULL;
}

void
eb_session_store_save_async(EbStore *store, const EbSessionRecord *record, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, save_in_store, eb_session_record_copy(record), record_free, NULL, cancellable,
                       callback, user_data);
}

static gpointer
remove_in_store(sqlite3 *db, gpointer data, GError **error)
{
    static const char *const statements[] = {"DELETE FROM event WHERE session = ?1",
                                             "DELETE FROM question WHERE session = ?1",
                                             "DELETE FROM session_rules WHERE session = ?1",
                                             "DELETE FROM message WHERE session = ?1 AND state = 'done'",
                                             "UPDATE message SET session = NULL WHERE session = ?1",
                                             "DELETE FROM session WHERE id = ?1"};
    for (gsize i = 0; i < G_N_ELEMENTS(statements); i++) {
        g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, statements[i], error);
        if (statement == NULL)
            return NULL;
        eb_store_bind_text(statement, 1, data);
        if (!eb_store_step_done(statement, error))
            return NULL;
    }
    return NULL;
}

void
eb_session_store_remove_async(EbStore *store, const char *id, GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data)
{
    eb_store_run_async(store, TRUE, remove_in_store, g_strdup(id), g_free, NULL, cancellable, callback, user_data);
}

static gpointer
record_from_row(sqlite3_stmt *row)
{
    EbSessionRecord *record = g_new0(EbSessionRecord, 1);
    record->hosts = eb_session_rules_list_new();
    record->ref_count = 1;
    char **const fields[] = {&record->id,       &record->project,       &record->agent,     &record->model,
                             &record->provider, &record->agent_session, &record->transport, &record->thread,
                             &record->owner,    &record->state,         &record->instance,  &record->run};
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        *fields[i] = eb_store_column_dup(row, (int)i);
    record->started_ms = sqlite3_column_int64(row, 12);
    record->last_activity_ms = sqlite3_column_int64(row, 13);
    record->turns = (guint)sqlite3_column_int64(row, 14);
    record->end_reason = eb_store_column_dup(row, 15);
    record->guests = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *guests = eb_store_column_dup(row, 16);
    g_auto(GStrv) lines = g_strsplit(guests != NULL ? guests : "", "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++)
        eb_session_record_set_guest(record, lines[i], TRUE);
    record->pinned = sqlite3_column_int(row, 17) != 0;
    return record;
}

#define COLUMNS                                                                                                        \
    "SELECT id, project, agent, model, provider, agent_session, transport, thread, owner, state, instance, run,"       \
    " started, last_activity, turns, end_reason, guests, pinned FROM session"

static gpointer
load_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db, COLUMNS " ORDER BY state = 'ended', last_activity DESC, id LIMIT ?", error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_int(statement, 1, EB_SESSION_STORE_MAX);
    return eb_store_collect(db, statement, record_from_row, record_free, "read the sessions", error);
}

void
eb_session_store_load_async(EbStore *store, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, load_in_store, NULL, NULL, (GDestroyNotify)g_ptr_array_unref, cancellable,
                       callback, user_data);
}

gboolean
eb_session_store_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_take(store, result, NULL, error);
}

GPtrArray *
eb_session_store_load_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}

static gboolean
settle_rows(sqlite3 *db, const char *reason, GError **error)
{
    static const char *const statements[] = {
        "BEGIN IMMEDIATE",
        "DELETE FROM event WHERE session IN (SELECT id FROM session WHERE state <> 'ended' AND agent_session IS NULL)",
        "DELETE FROM session WHERE state <> 'ended' AND agent_session IS NULL",
        "DELETE FROM session_rules WHERE session NOT IN (SELECT id FROM session)",
        "UPDATE session SET state = 'ended', instance = NULL, run = NULL, end_reason = ?1 WHERE state <> 'ended'",
        "COMMIT"};
    for (gsize i = 0; i < G_N_ELEMENTS(statements); i++) {
        g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, statements[i], error);
        if (statement == NULL)
            return FALSE;
        if (sqlite3_bind_parameter_count(statement) > 0)
            eb_store_bind_text(statement, 1, reason);
        if (!eb_store_step_done(statement, error))
            return FALSE;
    }
    return TRUE;
}

static gpointer
id_from_row(sqlite3_stmt *row)
{
    return eb_store_column_dup(row, 0);
}

GPtrArray *
eb_session_store_settle_file(const char *path, const char *reason, GError **error)
{
    sqlite3 *db = eb_store_open_blocking(path, error);
    if (db == NULL)
        return NULL;
    GPtrArray *kept = NULL;
    sqlite3_stmt *rows = settle_rows(db, reason, error) ? eb_store_prepare(db, "SELECT id FROM session", error) : NULL;
    if (rows != NULL)
        kept = eb_store_collect(db, rows, id_from_row, g_free, "read the sessions", error);
    sqlite3_finalize(rows);
    sqlite3_close(db);
    return kept;
}

static gpointer
ids_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) rows = eb_store_prepare(db, "SELECT id FROM session", error);
    return rows != NULL ? eb_store_collect(db, rows, id_from_row, g_free, "read the sessions", error) : NULL;
}

void
eb_session_store_ids_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, ids_in_store, NULL, NULL, (GDestroyNotify)g_ptr_array_unref, NULL, callback,
                       user_data);
}

GPtrArray *
eb_session_store_ids_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}

static gpointer
idle_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) rows =
        eb_store_prepare(db, COLUMNS " WHERE state = 'ended' AND pinned = 0 ORDER BY last_activity, id LIMIT ?", error);
    if (rows == NULL)
        return NULL;
    sqlite3_bind_int(rows, 1, EB_SESSION_STORE_MAX_IDLE);
    return eb_store_collect(db, rows, record_from_row, record_free, "read the sessions", error);
}

void
eb_session_store_idle_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, idle_in_store, NULL, NULL, (GDestroyNotify)g_ptr_array_unref, NULL, callback,
                       user_data);
}
