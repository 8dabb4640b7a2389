/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-egress-log.h"

#include "core/base/eb-source.h"

#define FLUSH_MS 250
#define PRUNE_EVERY (G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC)
/* Sessions with rows missing that no row could say yet, and sessions whose rows are counted. */
#define MAX_LOST 1024
#define MAX_SHARES 1024
/* Batches that the store has at a time. */
#define MAX_BATCHES 2

/* What one session has of the log. */
typedef struct {
    guint pending;
    guint refused;      /* rows of the burst that are used up */
    gint64 refilled_us; /* monotonic */
} Share;

struct _EbEgressLog {
    GObject parent_instance;
    EbStore *store;
    GPtrArray *pending; /* (element-type EbEgressRow), at most EB_EGRESS_LOG_MAX_PENDING */
    guint n_batches;    /* that are being written */
    GHashTable *shares; /* (utf8 session -> Share), at most MAX_SHARES */
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
    written->log->n_batches--;
    if (error != NULL) {
        eb_warning("%u rows of the egress audit could not be written: %s", written->sessions->len, error->message);
        for (guint i = 0; i < written->sessions->len; i++)
            note_lost(written->log, written->sessions->pdata[i], 1);
    }
    g_ptr_array_unref(written->sessions);
    g_object_unref(written->log);
    g_free(written);
}

/* --- shares --- */

static void
refill(Share *share, gint64 now_us)
{
    const gint64 step = EB_EGRESS_LOG_REFUSED_MS * 1000;
    gint64 steps = (now_us - share->refilled_us) / step;

    share->refused -= (guint)MIN(steps, (gint64)share->refused);
    share->refilled_us += steps * step;
}

/* One that says no more than a new one would is not kept. */
static gboolean
is_idle(gpointer session, gpointer value, gpointer now_us)
{
    Share *share = value;

    refill(share, *(gint64 *)now_us);
    return share->pending == 0 && share->refused == 0;
}

static Share *
share_of(EbEgressLog *self, const char *session)
{
    gint64 now_us = g_get_monotonic_time();
    Share *share = g_hash_table_lookup(self->shares, session);

    if (share == NULL) {
        if (g_hash_table_size(self->shares) >= MAX_SHARES)
            g_hash_table_foreach_remove(self->shares, is_idle, &now_us);
        if (g_hash_table_size(self->shares) >= MAX_SHARES)
            return NULL;
        share = g_new0(Share, 1);
        share->refilled_us = now_us;
        g_hash_table_insert(self->shares, g_strdup(session), share);
    }
    refill(share, now_us);
    return share;
}

static void
forget_pending(EbEgressLog *self)
{
    GHashTableIter iter;
    gpointer share;

    g_hash_table_iter_init(&iter, self->shares);
    while (g_hash_table_iter_next(&iter, NULL, &share))
        ((Share *)share)->pending = 0;
}

/* FALSE: it is counted alone. */
static gboolean
take_share(EbEgressLog *self, const EbEgressRow *row)
{
    Share *share = share_of(self, row->session);
    gboolean refused = row->address == NULL && row->bytes_down == 0 && !g_str_equal(row->kind, "broker") &&
                       !g_str_equal(row->kind, "canary");

    if (share == NULL || (refused && share->refused >= EB_EGRESS_LOG_REFUSED_BURST))
        return FALSE;
    if (share->pending >= EB_EGRESS_LOG_MAX_OF_SESSION || self->pending->len >= EB_EGRESS_LOG_MAX_PENDING) {
        if (self->n_batches >= MAX_BATCHES)
            return FALSE;
        eb_egress_log_flush(self);
    }
    share->pending++;
    share->refused += refused;
    return TRUE;
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
    forget_pending(self);
    self->n_batches++;
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

    if (!take_share(self, row)) {
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
    g_hash_table_unref(self->shares);
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
    self->shares = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

EbEgressLog *
eb_egress_log_new(EbStore *store)
{
    EbEgressLog *self = g_object_new(EB_TYPE_EGRESS_LOG, NULL);

    self->store = g_object_ref(store);
    return self;
}
