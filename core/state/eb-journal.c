/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-journal.h"

#include <string.h>

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

/* --- attachments --- */

static char *
write_attachments(const GPtrArray *attachments)
{
    if (attachments == NULL || attachments->len == 0)
        return NULL;
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_ARRAY);
    JsonArray *array = json_array_new();
    json_node_take_array(node, array);
    for (guint i = 0; i < MIN(attachments->len, EB_JOURNAL_MAX_ATTACHMENTS); i++) {
        const EbChatAttachment *attachment = attachments->pdata[i];
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "id", attachment->id);
        json_object_set_string_member(object, "name", attachment->name);
        if (attachment->content_type != NULL)
            json_object_set_string_member(object, "type", attachment->content_type);
        json_object_set_int_member(object, "size", (gint64)MIN(attachment->size_bytes, (guint64)G_MAXINT64));
        if (attachment->url != NULL)
            json_object_set_string_member(object, "url", attachment->url);
        json_array_add_object_element(array, object);
    }
    return eb_json_write(node, NULL);
}

static void
read_attachments(EbChatMessage *message, const char *text)
{
    g_autoptr(JsonNode) node = text != NULL ? eb_json_parse(text, strlen(text), &EB_JSON_LIMITS_SMALL, NULL) : NULL;
    if (node == NULL || !JSON_NODE_HOLDS_ARRAY(node))
        return;
    JsonArray *array = json_node_get_array(node);
    for (guint i = 0; i < json_array_get_length(array); i++) {
        JsonObject *object = eb_json_array_object(array, i);
        const char *id = eb_json_get_string(object, "id");
        gint64 size = eb_json_get_int(object, "size", 0);
        if (id != NULL)
            eb_chat_message_add_attachment(message, id, eb_json_get_string(object, "name"),
                                           eb_json_get_string(object, "type"), (guint64)MAX(size, 0),
                                           eb_json_get_string(object, "url"));
    }
}

/* --- one message --- */

typedef struct {
    char *transport;
    char *id;
    char *thread;
    char *author;
    char *body; /* (nullable): of a change: NULL = withdrawn */
    char *extra;
    char *attachments;
    char *session;
    EbJournalState state;
    gint64 sent_ms;
    gint64 received_ms;
} EbJournalRow;

static EbJournalRow *
row_new(const char *transport, const char *id)
{
    EbJournalRow *row = g_new0(EbJournalRow, 1);
    row->transport = g_strdup(transport);
    row->id = g_strdup(id);
    return row;
}

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
    g_free(row->attachments);
    g_free(row->session);
    g_free(row);
}

static gboolean
check_room(sqlite3 *db, GError **error)
{
    g_autoptr(sqlite3_stmt) count =
        eb_store_prepare(db, "SELECT count(*) FROM message WHERE state IN ('received', 'started')", error);
    if (count == NULL)
        return FALSE;
    if (sqlite3_step(count) != SQLITE_ROW) {
        eb_store_set_error(error, db, "read the journal");
        return FALSE;
    }
    if (sqlite3_column_int(count, 0) <= EB_JOURNAL_MAX_OPEN)
        return TRUE;
    eb_set_error(error, EB_ERROR_QUOTA, "journal.full",
                 "%d messages wait to be handled already: say it again when some of them are", EB_JOURNAL_MAX_OPEN);
    return FALSE;
}

static gboolean
prune(sqlite3 *db, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        "DELETE FROM message WHERE state = 'done' AND received <= (SELECT received FROM message WHERE state = 'done'"
        " ORDER BY received DESC LIMIT 1 OFFSET ?)",
        error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int(statement, 1, EB_JOURNAL_MAX_DONE);
    return eb_store_step_done(statement, error);
}

static gpointer
receive_in_store(sqlite3 *db, gpointer data, GError **error)
{
    EbJournalRow *row = data;
    g_autoptr(sqlite3_stmt) insert =
        eb_store_prepare(db,
                         "INSERT INTO message (transport, id, thread, author, body, extra, attachments, state,"
                         " received, changed, sent) VALUES (?,?,?,?,?,?,?,?,?9,?9,?10) ON CONFLICT DO NOTHING",
                         error);
    if (insert == NULL)
        return NULL;
    const char *const texts[] = {row->transport, row->id,    row->thread,      row->author,
                                 row->body,      row->extra, row->attachments, state_names[row->state]};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        sqlite3_bind_text(insert, (int)i + 1, texts[i], -1, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 9, row->received_ms);
    if (row->sent_ms > 0)
        sqlite3_bind_int64(insert, 10, row->sent_ms);
    if (!eb_store_step_done(insert, error))
        return NULL;
    if (sqlite3_changes(db) == 0)
        return GINT_TO_POINTER(1);
    /* After the insert, so that a repeat is one however full it is: the transaction takes a refused row back. */
    if (check_room(db, error))
        prune(db, error);
    return NULL;
}

void
eb_journal_receive_async(EbStore *store, const char *transport, EbChatMessage *message, EbJournalState state,
                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    const char *text = message->text != NULL ? message->text : "";
    if (strlen(text) > EB_JOURNAL_MAX_BYTES) {
        g_autoptr(GTask) task = g_task_new(store, cancellable, callback, user_data);
        g_task_return_error(task, eb_error_new(EB_ERROR_INVALID, "journal.size", "a message has at most %d bytes",
                                               EB_JOURNAL_MAX_BYTES));
        return;
    }
    EbJournalRow *row = row_new(transport, message->id);
    row->thread = g_strdup(message->thread);
    row->author = g_strdup(message->author_id);
    row->body = g_strdup(text);
    row->attachments = write_attachments(message->attachments);
    row->state = state;
    row->sent_ms = message->sent_unix_ms;
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
    gpointer value = NULL;
    if (!eb_store_run_take(store, result, &value, error))
        return FALSE;
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

void
eb_journal_mark_async(EbStore *store, const char *transport, const char *message_id, EbJournalState state,
                      const char *session, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbJournalRow *row = row_new(transport, message_id);
    row->state = state;
    row->session = g_strdup(session);
    eb_store_run_async(store, FALSE, mark_in_store, row, row_free, NULL, cancellable, callback, user_data);
}

gboolean
eb_journal_mark_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    gpointer value = NULL;
    return eb_store_run_take(store, result, &value, error);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
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
    eb_journal_mark_async(store, transport, message_id, state, session, NULL, on_written, NULL);
}

/* --- reading --- */

#define ENTRY_COLUMNS "id, thread, author, body, extra, state, coalesce(sent, received), session, attachments"

static gpointer
entry_from_row(sqlite3_stmt *row)
{
    g_autofree char *id = eb_store_column_dup(row, 0);
    g_autofree char *thread = eb_store_column_dup(row, 1);
    g_autofree char *author = eb_store_column_dup(row, 2);
    g_autofree char *body = eb_store_column_dup(row, 3);
    g_autofree char *extra = eb_store_column_dup(row, 4);
    g_autofree char *state = eb_store_column_dup(row, 5);
    g_autofree char *attachments = eb_store_column_dup(row, 8);
    EbJournalEntry *entry = g_new0(EbJournalEntry, 1);
    entry->message = eb_chat_message_new(id, thread, author, body);
    entry->message->sent_unix_ms = sqlite3_column_int64(row, 6);
    for (gsize i = 0; i < G_N_ELEMENTS(state_names); i++)
        if (g_strcmp0(state, state_names[i]) == 0)
            entry->state = (EbJournalState)i;
    entry->session = eb_store_column_dup(row, 7);
    if (extra != NULL) {
        g_autoptr(JsonNode) node = eb_json_parse(extra, strlen(extra), &EB_JSON_LIMITS_SMALL, NULL);
        JsonObject *object = eb_json_node_object(node);
        if (object != NULL)
            entry->message->extra = json_object_ref(object);
    }
    read_attachments(entry->message, attachments);
    return entry;
}

static gpointer
open_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db,
                         "SELECT " ENTRY_COLUMNS " FROM message"
                         " WHERE transport = ? AND state IN ('received', 'started') ORDER BY received, rowid LIMIT ?",
                         error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_text(statement, 1, data, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, EB_JOURNAL_MAX_OPEN);
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

/* --- changes by people --- */

static gpointer
change_in_store(sqlite3 *db, gpointer data, GError **error)
{
    EbJournalRow *row = data;
    g_autoptr(sqlite3_stmt) select =
        eb_store_prepare(db, "SELECT " ENTRY_COLUMNS " FROM message WHERE transport = ? AND id = ?", error);
    if (select == NULL)
        return NULL;
    sqlite3_bind_text(select, 1, row->transport, -1, SQLITE_STATIC);
    sqlite3_bind_text(select, 2, row->id, -1, SQLITE_STATIC);
    g_autoptr(GPtrArray) found =
        eb_store_collect(db, select, entry_from_row, (GDestroyNotify)eb_journal_entry_free, "read the journal", error);
    if (found == NULL || found->len == 0)
        return NULL;
    g_autoptr(sqlite3_stmt) update = eb_store_prepare(
        db,
        row->body != NULL ? "UPDATE message SET body = ?3 WHERE transport = ?1 AND id = ?2 AND state = 'received'"
                          : "UPDATE message SET body = '', attachments = NULL, state ="
                            " CASE state WHEN 'received' THEN 'done' ELSE state END WHERE transport = ?1 AND id = ?2",
        error);
    if (update == NULL)
        return NULL;
    sqlite3_bind_text(update, 1, row->transport, -1, SQLITE_STATIC);
    sqlite3_bind_text(update, 2, row->id, -1, SQLITE_STATIC);
    if (row->body != NULL)
        sqlite3_bind_text(update, 3, row->body, -1, SQLITE_STATIC);
    if (!eb_store_step_done(update, error))
        return NULL;
    return g_ptr_array_steal_index(found, 0);
}

static void
entry_free(gpointer data)
{
    eb_journal_entry_free(data);
}

void
eb_journal_edit_async(EbStore *store, const char *transport, const char *message_id, const char *text,
                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbJournalRow *row = row_new(transport, message_id);
    row->body = g_strndup(text, EB_JOURNAL_MAX_BYTES);
    eb_store_run_async(store, TRUE, change_in_store, row, row_free, entry_free, cancellable, callback, user_data);
}

void
eb_journal_withdraw_async(EbStore *store, const char *transport, const char *message_id, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, TRUE, change_in_store, row_new(transport, message_id), row_free, entry_free, cancellable,
                       callback, user_data);
}

EbJournalEntry *
eb_journal_change_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}

/* --- watermarks --- */

static gpointer
set_watermark_in_store(sqlite3 *db, gpointer data, GError **error)
{
    EbJournalRow *row = data;
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db,
                         row->id != NULL ? "INSERT INTO watermark (transport, thread, message) VALUES (?1, ?2, ?3)"
                                           " ON CONFLICT DO UPDATE SET message = excluded.message"
                                         : "DELETE FROM watermark WHERE transport = ?1 AND thread = ?2",
                         error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_text(statement, 1, row->transport, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, row->thread, -1, SQLITE_STATIC);
    if (row->id != NULL)
        sqlite3_bind_text(statement, 3, row->id, -1, SQLITE_STATIC);
    eb_store_step_done(statement, error);
    return NULL;
}

void
eb_journal_set_watermark_async(EbStore *store, const char *transport, const char *thread, const char *message_id,
                               GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(message_id != NULL);
    EbJournalRow *row = row_new(transport, message_id);
    row->thread = g_strdup(thread != NULL ? thread : "");
    eb_store_run_async(store, FALSE, set_watermark_in_store, row, row_free, NULL, NULL, callback, user_data);
}

gboolean
eb_journal_set_watermark_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    gpointer value = NULL;
    return eb_store_run_take(store, result, &value, error);
}

void
eb_journal_set_watermark(EbStore *store, const char *transport, const char *thread, const char *message_id)
{
    eb_journal_set_watermark_async(store, transport, thread, message_id, on_written, NULL);
}

void
eb_journal_forget_watermark(EbStore *store, const char *transport, const char *thread)
{
    EbJournalRow *row = row_new(transport, NULL);
    row->thread = g_strdup(thread != NULL ? thread : "");
    eb_store_run_async(store, FALSE, set_watermark_in_store, row, row_free, NULL, NULL, on_written, NULL);
}

static gpointer
watermarks_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) drop =
        eb_store_prepare(db,
                         "DELETE FROM watermark WHERE transport = ?1 AND thread <> '' AND thread NOT IN"
                         " (SELECT thread FROM session WHERE transport = ?1 AND thread IS NOT NULL"
                         " ORDER BY last_activity DESC LIMIT ?2)",
                         error);
    if (drop == NULL)
        return NULL;
    sqlite3_bind_text(drop, 1, data, -1, SQLITE_STATIC);
    sqlite3_bind_int(drop, 2, EB_JOURNAL_MAX_WATERMARKS);
    if (!eb_store_step_done(drop, error))
        return NULL;
    g_autoptr(sqlite3_stmt) select =
        eb_store_prepare(db, "SELECT thread, message FROM watermark WHERE transport = ?", error);
    if (select == NULL)
        return NULL;
    sqlite3_bind_text(select, 1, data, -1, SQLITE_STATIC);
    g_autoptr(GHashTable) watermarks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    int step;
    while ((step = sqlite3_step(select)) == SQLITE_ROW)
        g_hash_table_replace(watermarks, eb_store_column_dup(select, 0), eb_store_column_dup(select, 1));
    if (step != SQLITE_DONE) {
        eb_store_set_error(error, db, "read the journal");
        return NULL;
    }
    return g_steal_pointer(&watermarks);
}

void
eb_journal_watermarks_async(EbStore *store, const char *transport, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, TRUE, watermarks_in_store, g_strdup(transport), g_free,
                       (GDestroyNotify)g_hash_table_unref, cancellable, callback, user_data);
}

GHashTable *
eb_journal_watermarks_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}
