/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-transcript.h"
#include "core/base/eb-json-members.h"
#include "core/base/eb-source.h"

#define FLUSH_MS 250

typedef struct {
    gint64 at_ms;
    guint turn;
    char *kind;
    char *body;
} EbTranscriptEvent;

struct _EbTranscript {
    GObject parent_instance;
    EbStore *store;
    char *session;
    GPtrArray *pending; /* (element-type EbTranscriptEvent), at most EB_TRANSCRIPT_MAX_PENDING */
    guint dropped;
    GSource *timer;
};

G_DEFINE_FINAL_TYPE(EbTranscript, eb_transcript, G_TYPE_OBJECT)

typedef struct {
    char *session;
    GPtrArray *events;
} EbTranscriptBatch;

static void
event_free(gpointer data)
{
    EbTranscriptEvent *event = data;
    g_free(event->kind);
    g_free(event->body);
    g_free(event);
}

static void
batch_free(gpointer data)
{
    EbTranscriptBatch *batch = data;
    g_free(batch->session);
    g_ptr_array_unref(batch->events);
    g_free(batch);
}

static gpointer
write_in_store(sqlite3 *db, gpointer data, GError **error)
{
    EbTranscriptBatch *batch = data;
    g_autoptr(sqlite3_stmt) insert =
        eb_store_prepare(db,
                         "INSERT INTO event (session, seq, at, turn, kind, body) VALUES (?1,"
                         " (SELECT coalesce(max(seq), 0) + 1 FROM event WHERE session = ?1), ?2, ?3, ?4, ?5)",
                         error);
    if (insert == NULL)
        return NULL;
    for (guint i = 0; i < batch->events->len; i++) {
        EbTranscriptEvent *event = batch->events->pdata[i];
        sqlite3_reset(insert);
        sqlite3_bind_text(insert, 1, batch->session, -1, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 2, event->at_ms);
        sqlite3_bind_int64(insert, 3, event->turn);
        sqlite3_bind_text(insert, 4, event->kind, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 5, event->body, -1, SQLITE_STATIC);
        if (!eb_store_step_done(insert, error))
            return NULL;
    }
    g_autoptr(sqlite3_stmt) prune = eb_store_prepare(
        db, "DELETE FROM event WHERE session = ?1 AND seq <= (SELECT max(seq) FROM event WHERE session = ?1) - ?2",
        error);
    if (prune == NULL)
        return NULL;
    sqlite3_bind_text(prune, 1, batch->session, -1, SQLITE_STATIC);
    sqlite3_bind_int(prune, 2, EB_TRANSCRIPT_MAX_EVENTS);
    eb_store_step_done(prune, error);
    return NULL;
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    eb_store_run_finish(EB_STORE(source), result, &error);
    if (error != NULL)
        eb_warning("the transcript could not be written: %s", error->message);
}

static gpointer
withdraw_in_store(sqlite3 *db, gpointer data, GError **error)
{
    char **names = data;
    g_autoptr(sqlite3_stmt) update = eb_store_prepare(
        db,
        "UPDATE event SET body = json_object('withdrawn', json('true'), 'data', json_object('message', ?2))"
        " WHERE session = ?1 AND kind = 'prompt' AND json_extract(body, '$.data.message') = ?2",
        error);
    if (update == NULL)
        return NULL;
    sqlite3_bind_text(update, 1, names[0], -1, SQLITE_STATIC);
    sqlite3_bind_text(update, 2, names[1], -1, SQLITE_STATIC);
    eb_store_step_done(update, error);
    return NULL;
}

static void
free_names(gpointer data)
{
    g_strfreev(data);
}

void
eb_transcript_withdraw(EbStore *store, const char *session, const char *message_id)
{
    const char *names[] = {session, message_id, NULL};
    eb_store_run_async(store, FALSE, withdraw_in_store, g_strdupv((char **)names), free_names, NULL, NULL, on_written,
                       NULL);
}

static void
stop_timer(EbTranscript *self)
{
    eb_clear_source(&self->timer);
}

void
eb_transcript_flush(EbTranscript *self)
{
    g_return_if_fail(EB_IS_TRANSCRIPT(self));
    stop_timer(self);
    if (self->dropped > 0) {
        EbTranscriptEvent *event = g_new0(EbTranscriptEvent, 1);
        event->at_ms = g_get_real_time() / 1000;
        event->kind = g_strdup("notice");
        event->body = g_strdup_printf("{\"text\":\"%u events were not kept: too many at once\"}", self->dropped);
        g_ptr_array_add(self->pending, event);
        self->dropped = 0;
    }
    if (self->pending->len == 0)
        return;
    EbTranscriptBatch *batch = g_new0(EbTranscriptBatch, 1);
    batch->session = g_strdup(self->session);
    batch->events = g_steal_pointer(&self->pending);
    self->pending = g_ptr_array_new_with_free_func(event_free);
    eb_store_run_async(self->store, TRUE, write_in_store, batch, batch_free, NULL, NULL, on_written, NULL);
}

static gboolean
on_flush_timer(gpointer data)
{
    eb_transcript_flush(EB_TRANSCRIPT(data));
    return G_SOURCE_REMOVE;
}

/* The longest prefix of @text that is at most @max bytes and ends with a character. */
static char *
cut_text(const char *text, gsize max)
{
    gsize length = strlen(text);
    if (length <= max)
        return g_strdup(text);
    gsize end = max;
    while (end > 0 && ((guchar)text[end] & 0xc0) == 0x80)
        end--;
    return g_strdup_printf("%.*s… (%" G_GSIZE_FORMAT " more bytes)", (int)end, text, length - end);
}

static char *
make_body(const char *text, JsonObject *data)
{
    g_autoptr(JsonObject) object = json_object_new();
    if (text != NULL && *text != '\0') {
        g_autofree char *cut = cut_text(text, EB_TRANSCRIPT_MAX_BODY / 2);
        json_object_set_string_member(object, "text", cut);
    }
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    json_node_set_object(node, object);
    if (data == NULL)
        return eb_json_write(node, NULL);
    json_object_set_object_member(object, "data", json_object_ref(data));
    gsize length = 0;
    g_autofree char *body = eb_json_write(node, &length);
    if (length <= EB_TRANSCRIPT_MAX_BODY)
        return g_steal_pointer(&body);
    json_object_remove_member(object, "data");
    json_object_set_boolean_member(object, "truncated", TRUE);
    return eb_json_write(node, NULL);
}

void
eb_transcript_add(EbTranscript *self, guint turn, const char *kind, const char *text, JsonObject *data)
{
    g_return_if_fail(EB_IS_TRANSCRIPT(self));
    if (self->pending->len >= EB_TRANSCRIPT_MAX_PENDING) {
        self->dropped++;
        return;
    }
    EbTranscriptEvent *event = g_new0(EbTranscriptEvent, 1);
    event->at_ms = g_get_real_time() / 1000;
    event->turn = turn;
    event->kind = g_strdup(kind);
    event->body = make_body(text, data);
    g_ptr_array_add(self->pending, event);
    if (self->timer == NULL) {
        self->timer = g_timeout_source_new(FLUSH_MS);
        g_source_set_callback(self->timer, on_flush_timer, self, NULL);
        g_source_attach(self->timer, g_main_context_get_thread_default());
    }
}

static void
eb_transcript_dispose(GObject *object)
{
    EbTranscript *self = EB_TRANSCRIPT(object);
    if (self->store != NULL)
        eb_transcript_flush(self);
    stop_timer(self);
    g_clear_object(&self->store);
    G_OBJECT_CLASS(eb_transcript_parent_class)->dispose(object);
}

static void
eb_transcript_finalize(GObject *object)
{
    EbTranscript *self = EB_TRANSCRIPT(object);
    g_ptr_array_unref(self->pending);
    g_free(self->session);
    G_OBJECT_CLASS(eb_transcript_parent_class)->finalize(object);
}

static void
eb_transcript_class_init(EbTranscriptClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_transcript_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_transcript_finalize;
}

static void
eb_transcript_init(EbTranscript *self)
{
    self->pending = g_ptr_array_new_with_free_func(event_free);
}

EbTranscript *
eb_transcript_new(EbStore *store, const char *session)
{
    EbTranscript *self = g_object_new(EB_TYPE_TRANSCRIPT, NULL);
    self->store = g_object_ref(store);
    self->session = g_strdup(session);
    return self;
}

static gpointer
node_from_row(sqlite3_stmt *row)
{
    const char *body = (const char *)sqlite3_column_text(row, 3);
    g_autoptr(JsonNode) node = body != NULL ? eb_json_parse(body, strlen(body), &EB_JSON_LIMITS_SMALL, NULL) : NULL;
    JsonObject *object = eb_json_node_object(node);
    g_autoptr(JsonObject) event = object != NULL ? json_object_ref(object) : json_object_new();
    g_autofree char *kind = eb_store_column_dup(row, 2);
    eb_json_set_time(event, "at", sqlite3_column_int64(row, 0));
    json_object_set_int_member(event, "turn", sqlite3_column_int64(row, 1));
    json_object_set_string_member(event, "event", kind != NULL ? kind : "");
    JsonNode *result = json_node_new(JSON_NODE_OBJECT);
    json_node_set_object(result, event);
    return result;
}

static gpointer
read_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db, "SELECT at, turn, kind, body FROM event WHERE session = ? ORDER BY seq", error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_text(statement, 1, data, -1, SQLITE_STATIC);
    return eb_store_collect(db, statement, node_from_row, (GDestroyNotify)json_node_unref, "read the transcript",
                            error);
}

void
eb_transcript_read_async(EbStore *store, const char *session, GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
    eb_store_run_async(store, FALSE, read_in_store, g_strdup(session), g_free, (GDestroyNotify)g_ptr_array_unref,
                       cancellable, callback, user_data);
}

GPtrArray *
eb_transcript_read_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}
