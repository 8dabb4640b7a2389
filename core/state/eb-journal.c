/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-journal.h"

#define MAX_OPEN 200

static const char *const state_names[] = {"received", "started", "done"};

void
eb_journal_entry_free(EbJournalEntry *self)
{
    if (self == NULL)
        return;
    eb_chat_message_unref(self->message);
    g_free(self->session);
    g_free(self);
}

typedef struct {
    char *transport;
    char *id;
    char *thread;
    char *author;
    char *body;
    char *extra;
    char *session;
    EbJournalState state;
    gint64 received_ms;
} EbJournalRow;

static void
row_free(gpointer data)
{
    EbJournalRow *row = data;
    g_free(row->transport);
    g_free(row->id);
    g_free(row->thread);
    g_free(row->author);
    g_free(row->body);
    g_free(row->extra);
    g_free(row->session);
    g_free(row);
}

static gpointer
receive_in_store(sqlite3 *db, gpointer data, GError **error)
{
    EbJournalRow *row = data;
    g_autoptr(sqlite3_stmt) insert =
        eb_store_prepare(db,
                         "INSERT INTO message (transport, id, thread, author, body, extra, state, received, changed)"
                         " VALUES (?,?,?,?,?,?,'received',?8,?7) ON CONFLICT DO NOTHING",
                         error);
    if (insert == NULL)
        return NULL;
    const char *const texts[] = {row->transport, row->id, row->thread, row->author, row->body, row->extra};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        sqlite3_bind_text(insert, (int)i + 1, texts[i], -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 7, g_get_real_time() / 1000);
    sqlite3_bind_int64(insert, 8, row->received_ms);
    if (!eb_store_step_done(insert, error))
        return NULL;
    if (sqlite3_changes(db) == 0)
        return GINT_TO_POINTER(1);
    g_autoptr(sqlite3_stmt) prune = eb_store_prepare(
        db,
        "DELETE FROM message WHERE state = 'done' AND received <= (SELECT received FROM message WHERE state = 'done'"
        " ORDER BY received DESC LIMIT 1 OFFSET ?)",
        error);
    if (prune == NULL)
        return NULL;
    sqlite3_bind_int(prune, 1, EB_JOURNAL_MAX_DONE);
    eb_store_step_done(prune, error);
    return NULL;
}

void
eb_journal_receive_async(EbStore *store, const char *transport, EbChatMessage *message, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
    EbJournalRow *row = g_new0(EbJournalRow, 1);
    row->transport = g_strdup(transport);
    row->id = g_strdup(message->id);
    row->thread = g_strdup(message->thread);
    row->author = g_strdup(message->author_id);
    row->body = g_strdup(message->text != NULL ? message->text : "");
    row->received_ms = g_get_real_time() / 1000;
    if (message->extra != NULL) {
        g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
        json_node_set_object(node, message->extra);
        row->extra = eb_json_write(node, NULL);
    }
    eb_store_run_async(store, TRUE, receive_in_store, row, row_free, NULL, cancellable, callback, user_data);
}

gboolean
eb_journal_receive_finish(EbStore *store, GAsyncResult *result, gboolean *repeat, GError **error)
{
    GError *local = NULL;
    gpointer value = eb_store_run_finish(store, result, &local);
    if (local != NULL) {
        g_propagate_error(error, local);
        return FALSE;
    }
    *repeat = value != NULL;
    return TRUE;
}

static gpointer
mark_in_store(sqlite3 *db, gpointer data, GError **error)
{
    EbJournalRow *row = data;
    g_autoptr(sqlite3_stmt) update = eb_store_prepare(
        db,
        "UPDATE message SET state = ?3, session = coalesce(?4, session), changed = ?5 WHERE transport = ?1 AND id = ?2",
        error);
    if (update == NULL)
        return NULL;
    sqlite3_bind_text(update, 1, row->transport, -1, SQLITE_STATIC);
    sqlite3_bind_text(update, 2, row->id, -1, SQLITE_STATIC);
    sqlite3_bind_text(update, 3, state_names[row->state], -1, SQLITE_STATIC);
    sqlite3_bind_text(update, 4, row->session, -1, SQLITE_STATIC);
    sqlite3_bind_int64(update, 5, g_get_real_time() / 1000);
    eb_store_step_done(update, error);
    return NULL;
}

static void
on_marked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    eb_store_run_finish(EB_STORE(source), result, &error);
    if (error != NULL)
        eb_warning("the journal could not be written: %s", error->message);
}

void
eb_journal_mark(EbStore *store, const char *transport, const char *message_id, EbJournalState state,
                const char *session)
{
    EbJournalRow *row = g_new0(EbJournalRow, 1);
    row->transport = g_strdup(transport);
    row->id = g_strdup(message_id);
    row->state = state;
    row->session = g_strdup(session);
    eb_store_run_async(store, FALSE, mark_in_store, row, row_free, NULL, NULL, on_marked, NULL);
}

static gpointer
entry_from_row(sqlite3_stmt *row)
{
    g_autofree char *id = eb_store_column_dup(row, 0);
    g_autofree char *thread = eb_store_column_dup(row, 1);
    g_autofree char *author = eb_store_column_dup(row, 2);
    g_autofree char *body = eb_store_column_dup(row, 3);
    g_autofree char *extra = eb_store_column_dup(row, 4);
    g_autofree char *state = eb_store_column_dup(row, 5);
    EbJournalEntry *entry = g_new0(EbJournalEntry, 1);
    entry->message = eb_chat_message_new(id, thread, author, body);
    entry->message->sent_unix_ms = sqlite3_column_int64(row, 6);
    entry->state = g_strcmp0(state, "started") == 0 ? EB_JOURNAL_STARTED : EB_JOURNAL_RECEIVED;
    entry->session = eb_store_column_dup(row, 7);
    if (extra != NULL) {
        g_autoptr(JsonNode) node = eb_json_parse(extra, strlen(extra), &EB_JSON_LIMITS_SMALL, NULL);
        JsonObject *object = eb_json_node_object(node);
        if (object != NULL)
            entry->message->extra = json_object_ref(object);
    }
    return entry;
}

static gpointer
open_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db,
                         "SELECT id, thread, author, body, extra, state, received, session FROM message"
                         " WHERE transport = ? AND state <> 'done' ORDER BY received, rowid LIMIT ?",
                         error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_text(statement, 1, data, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, MAX_OPEN);
    return eb_store_collect(db, statement, entry_from_row, (GDestroyNotify)eb_journal_entry_free, "read the journal",
                            error);
}

void
eb_journal_open_async(EbStore *store, const char *transport, GCancellable *cancellable, GAsyncReadyCallback callback,
                      gpointer user_data)
{
    eb_store_run_async(store, FALSE, open_in_store, g_strdup(transport), g_free, (GDestroyNotify)g_ptr_array_unref,
                       cancellable, callback, user_data);
}

GPtrArray *
eb_journal_open_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}
