/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-egress-log.h"

#include "core/base/eb-source.h"

#define FLUSH_MS 250
#define PRUNE_EVERY (G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC)
/* Sessions with rows missing that no row could say yet. */
#define MAX_LOST 1024

struct _EbEgressLog {
    GObject parent_instance;
    EbStore *store;
    GPtrArray *pending; /* (element-type EbEgressRow), at most EB_EGRESS_LOG_MAX_PENDING */
    GHashTable *lost;   /* (utf8 session -> count), at most MAX_LOST */
    GSource *timer;
    gint64 pruned_at; /* monotonic, 0 = not yet */
};

G_DEFINE_FINAL_TYPE(EbEgressLog, eb_egress_log, G_TYPE_OBJECT)

typedef struct {
    GPtrArray *rows;
    gboolean prune;
} Batch;

static void
row_free(gpointer data)
{
    eb_egress_row_free(data);
}

static void
batch_free(gpointer data)
{
    Batch *batch = data;
    g_ptr_array_unref(batch->rows);
    g_free(batch);
}

static gpointer
write_in_store(sqlite3 *db, gpointer data, GError **error)
{
    Batch *batch = data;

    if (eb_egress_store_append(db, batch->rows, error) && batch->prune)
        eb_egress_store_prune(db, g_get_real_time() / 1000 - EB_EGRESS_KEEP_MS, error);
    return NULL;
}

static void
note_lost(EbEgressLog *self, const char *session, guint64 count)
{
    guint before = GPOINTER_TO_UINT(g_hash_table_lookup(self->lost, session));

    if (before == 0 && g_hash_table_size(self->lost) >= MAX_LOST)
        return;
    g_hash_table_replace(self->lost, g_strdup(session), GUINT_TO_POINTER((guint)MIN(before + count, G_MAXINT)));
}

typedef struct {
    EbEgressLog *log;
    GPtrArray *sessions; /* (element-type utf8): of each row */
} Written;

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Written *written = user_data;
    g_autoptr(GError) error = NULL;

    eb_store_run_finish(EB_STORE(source), result, &error);
    if (error != NULL) {
        eb_warning("%u rows of the egress audit could not be written: %s", written->sessions->len, error->message);
        for (guint i = 0; i < written->sessions->len; i++)
            note_lost(written->log, written->sessions->pdata[i], 1);
    }
    g_ptr_array_unref(written->sessions);
    g_object_unref(written->log);
    g_free(written);
}

void
eb_egress_log_flush(EbEgressLog *self)
{
    g_return_if_fail(EB_IS_EGRESS_LOG(self));
    gint64 now = g_get_monotonic_time();

    eb_clear_source(&self->timer);
    if (self->pending->len == 0)
        return;
    Batch *batch = g_new0(Batch, 1);
    Written *written = g_new0(Written, 1);
    batch->rows = g_steal_pointer(&self->pending);
    batch->prune = self->pruned_at == 0 || now - self->pruned_at >= PRUNE_EVERY;
    if (batch->prune)
        self->pruned_at = now;
    self->pending = g_ptr_array_new_with_free_func(row_free);
    written->log = g_object_ref(self);
    written->sessions = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < batch->rows->len; i++)
        g_ptr_array_add(written->sessions, g_strdup(((EbEgressRow *)batch->rows->pdata[i])->session));
    eb_store_run_async(self->store, TRUE, write_in_store, batch, batch_free, NULL, NULL, on_written, written);
}

static gboolean
on_timer(gpointer data)
{
    eb_egress_log_flush(EB_EGRESS_LOG(data));
    return G_SOURCE_REMOVE;
}

void
eb_egress_log_add(EbEgressLog *self, EbEgressRow *row)
{
    g_return_if_fail(EB_IS_EGRESS_LOG(self) && row != NULL);

    if (self->pending->len >= EB_EGRESS_LOG_MAX_PENDING) {
        note_lost(self, row->session, row->lost + 1);
        eb_egress_row_free(row);
        return;
    }
    row->lost += GPOINTER_TO_UINT(g_hash_table_lookup(self->lost, row->session));
    g_hash_table_remove(self->lost, row->session);
    g_ptr_array_add(self->pending, row);
    if (self->timer != NULL)
        return;
    self->timer = g_timeout_source_new(FLUSH_MS);
    g_source_set_callback(self->timer, on_timer, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
}

void
eb_egress_log_note_death(EbEgressLog *self, const char *session)
{
    g_autoptr(JsonObject) report = json_object_new();

    /* Whatever was open has no row, and nobody knows how much it was: one stands for all of it. */
    json_object_set_string_member(report, "kind", "broker");
    json_object_set_string_member(report, "decision", "broker-died");
    json_object_set_int_member(report, "lost", 1);
    eb_egress_log_add(self, eb_egress_row_new(session, report));
}

static gpointer
head_in_store(sqlite3 *db, gpointer data, GError **error)
{
    return eb_egress_store_head(db, data, error);
}

static void
on_head(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree char *session = user_data;
    g_autofree char *head = eb_store_run_finish(EB_STORE(source), result, NULL);

    if (head != NULL)
        eb_log_event(G_LOG_LEVEL_MESSAGE, G_LOG_DOMAIN, head, "EB_SESSION", session, NULL);
}

void
eb_egress_log_end_session(EbEgressLog *self, const char *session)
{
    g_return_if_fail(EB_IS_EGRESS_LOG(self));

    eb_egress_log_flush(self);
    eb_store_run_async(self->store, FALSE, head_in_store, g_strdup(session), g_free, g_free, NULL, on_head,
                       g_strdup(session));
}

static void
eb_egress_log_dispose(GObject *object)
{
    EbEgressLog *self = EB_EGRESS_LOG(object);

    eb_clear_source(&self->timer);
    g_clear_object(&self->store);
    G_OBJECT_CLASS(eb_egress_log_parent_class)->dispose(object);
}

static void
eb_egress_log_finalize(GObject *object)
{
    EbEgressLog *self = EB_EGRESS_LOG(object);

    g_ptr_array_unref(self->pending);
    g_hash_table_unref(self->lost);
    G_OBJECT_CLASS(eb_egress_log_parent_class)->finalize(object);
}

static void
eb_egress_log_class_init(EbEgressLogClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_egress_log_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_egress_log_finalize;
}

static void
eb_egress_log_init(EbEgressLog *self)
{
    self->pending = g_ptr_array_new_with_free_func(row_free);
    self->lost = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

EbEgressLog *
eb_egress_log_new(EbStore *store)
{
    EbEgressLog *self = g_object_new(EB_TYPE_EGRESS_LOG, NULL);

    self->store = g_object_ref(store);
    return self;
}
