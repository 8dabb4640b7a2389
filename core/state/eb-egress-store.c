/* SPDX-License-Identifier: MIT */
#include "core/state/eb-egress-store.h"

#include <sodium.h>
#include <string.h>

typedef struct {
    gint64 first, next;
    guint8 anchor[EB_EGRESS_HASH], head[EB_EGRESS_HASH];
} Chain;

static void
copy_hash(sqlite3_stmt *row, int column, guint8 *out)
{
    const void *bytes = sqlite3_column_blob(row, column);

    memset(out, 0, EB_EGRESS_HASH);
    if (bytes != NULL && sqlite3_column_bytes(row, column) == EB_EGRESS_HASH)
        memcpy(out, bytes, EB_EGRESS_HASH);
}

/* A session that has none begins one. @there: (out) (nullable) */
static gboolean
load_chain(sqlite3 *db, const char *session, Chain *chain, gboolean *there, GError **error)
{
    g_autoptr(sqlite3_stmt) row =
        eb_store_prepare(db, "SELECT first, anchor, next, head FROM egress_chain WHERE session = ?", error);
    int step;

    *chain = (Chain){.first = 1, .next = 1};
    if (row == NULL)
        return FALSE;
    eb_store_bind_text(row, 1, session);
    step = sqlite3_step(row);
    if (there != NULL)
        *there = step == SQLITE_ROW;
    if (step == SQLITE_ROW) {
        chain->first = sqlite3_column_int64(row, 0);
        copy_hash(row, 1, chain->anchor);
        chain->next = sqlite3_column_int64(row, 2);
        copy_hash(row, 3, chain->head);
    } else if (step != SQLITE_DONE) {
        eb_store_set_error(error, db, "read the egress audit");
        return FALSE;
    }
    return TRUE;
}

static gboolean
save_chain(sqlite3 *db, const char *session, const Chain *chain, GError **error)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(
        db, "INSERT OR REPLACE INTO egress_chain (session, first, anchor, next, head) VALUES (?,?,?,?,?)", error);

    if (row == NULL)
        return FALSE;
    eb_store_bind_text(row, 1, session);
    sqlite3_bind_int64(row, 2, chain->first);
    sqlite3_bind_blob(row, 3, chain->anchor, EB_EGRESS_HASH, SQLITE_STATIC);
    sqlite3_bind_int64(row, 4, chain->next);
    sqlite3_bind_blob(row, 5, chain->head, EB_EGRESS_HASH, SQLITE_STATIC);
    return eb_store_step_done(row, error);
}

/* --- pruning --- */

/* Rows of before @first go; the last of them is what the rest goes on from. */
static gboolean
cut_chain(sqlite3 *db, const char *session, Chain *chain, gint64 first, GError **error)
{
    g_autoptr(sqlite3_stmt) last = eb_store_prepare(db, "SELECT hash FROM egress WHERE session = ? AND seq = ?", error);
    g_autoptr(sqlite3_stmt) gone = eb_store_prepare(db, "DELETE FROM egress WHERE session = ? AND seq < ?", error);

    if (last == NULL || gone == NULL)
        return FALSE;
    eb_store_bind_text(last, 1, session);
    sqlite3_bind_int64(last, 2, first - 1);
    /* A row that is missing here was taken out: what is left does not fit then, and the verdict says so. */
    if (sqlite3_step(last) == SQLITE_ROW)
        copy_hash(last, 0, chain->anchor);
    eb_store_bind_text(gone, 1, session);
    sqlite3_bind_int64(gone, 2, first);
    chain->first = first;
    return eb_store_step_done(gone, error);
}

static gboolean
drop_chain(sqlite3 *db, const char *session, GError **error)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(
        db, "DELETE FROM egress_chain WHERE session = ?1 AND NOT EXISTS (SELECT 1 FROM session WHERE id = ?1)", error);

    if (row == NULL)
        return FALSE;
    eb_store_bind_text(row, 1, session);
    return eb_store_step_done(row, error);
}

static gpointer
name_of(sqlite3_stmt *row)
{
    return eb_store_column_dup(row, 0);
}

gboolean
eb_egress_store_prune(sqlite3 *db, gint64 before_ms, GError **error)
{
    g_autoptr(sqlite3_stmt) old =
        eb_store_prepare(db,
                         "SELECT session FROM egress WHERE at < ?1 UNION SELECT session FROM egress_chain WHERE first ="
                         " next AND session NOT IN (SELECT id FROM session)",
                         error);

    if (old == NULL)
        return FALSE;
    sqlite3_bind_int64(old, 1, before_ms);
    g_autoptr(GPtrArray) names = eb_store_collect(db, old, name_of, g_free, "read the egress audit", error);
    for (guint i = 0; names != NULL && i < names->len; i++) {
        const char *session = names->pdata[i];
        Chain chain;
        g_autoptr(sqlite3_stmt) last =
            eb_store_prepare(db, "SELECT max(seq) FROM egress WHERE session = ?1 AND at < ?2", error);
        if (last == NULL || !load_chain(db, session, &chain, NULL, error))
            return FALSE;
        eb_store_bind_text(last, 1, session);
        sqlite3_bind_int64(last, 2, before_ms);
        gint64 seq = sqlite3_step(last) == SQLITE_ROW ? sqlite3_column_int64(last, 0) : 0;
        if (seq >= chain.first &&
            (!cut_chain(db, session, &chain, seq + 1, error) || !save_chain(db, session, &chain, error)))
            return FALSE;
        if (chain.first >= chain.next && !drop_chain(db, session, error))
            return FALSE;
    }
    return names != NULL;
}

/* --- appending --- */

static gboolean
insert(sqlite3 *db, const EbEgressRow *row, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        "INSERT INTO egress (session, kind, host, address, decision, rule, provider, seq, at, port, bytes_up,"
        " bytes_down, ms, status, lost, previous, hash) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        error);
    const char *const texts[] = {row->session,  row->kind, row->host,    row->address,
                                 row->decision, row->rule, row->provider};
    const gint64 numbers[] = {
        row->seq,        row->at_ms,  row->port,        (gint64)row->bytes_up, (gint64)row->bytes_down,
        (gint64)row->ms, row->status, (gint64)row->lost};
    int at = 1;

    if (statement == NULL)
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        eb_store_bind_text(statement, at++, texts[i]);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        sqlite3_bind_int64(statement, at++, numbers[i]);
    sqlite3_bind_blob(statement, at++, row->previous, EB_EGRESS_HASH, SQLITE_STATIC);
    sqlite3_bind_blob(statement, at, row->hash, EB_EGRESS_HASH, SQLITE_STATIC);
    return eb_store_step_done(statement, error);
}

static gboolean
append_one(sqlite3 *db, EbEgressRow *row, Chain *chain, GError **error)
{
    eb_egress_row_seal(row, chain->next, chain->head);
    if (!insert(db, row, error))
        return FALSE;
    chain->next++;
    memcpy(chain->head, row->hash, EB_EGRESS_HASH);
    return TRUE;
}

gboolean
eb_egress_store_append(sqlite3 *db, GPtrArray *rows, GError **error)
{
    /* A batch is of few sessions, but in any order. */
    g_autoptr(GHashTable) chains = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    GHashTableIter iter;
    gpointer session, value;

    for (guint i = 0; i < rows->len; i++) {
        EbEgressRow *row = rows->pdata[i];
        Chain *chain = g_hash_table_lookup(chains, row->session);
        if (chain == NULL) {
            chain = g_new0(Chain, 1);
            g_hash_table_insert(chains, row->session, chain);
            if (!load_chain(db, row->session, chain, NULL, error))
                return FALSE;
        }
        if (!append_one(db, row, chain, error))
            return FALSE;
    }
    g_hash_table_iter_init(&iter, chains);
    while (g_hash_table_iter_next(&iter, &session, &value)) {
        Chain *chain = value;
        if (chain->next - chain->first > EB_EGRESS_MAX_ROWS &&
            !cut_chain(db, session, chain, chain->next - EB_EGRESS_MAX_ROWS, error))
            return FALSE;
        if (!save_chain(db, session, chain, error))
            return FALSE;
    }
    return TRUE;
}

char *
eb_egress_store_head(sqlite3 *db, const char *session, GError **error)
{
    char hex[EB_EGRESS_HASH * 2 + 1];
    Chain chain;

    if (!load_chain(db, session, &chain, NULL, error) || chain.next == 1)
        return NULL;
    sodium_bin2hex(hex, sizeof hex, chain.head, EB_EGRESS_HASH);
    return g_strdup_printf("egress audit: %" G_GINT64_FORMAT " rows, head %s", chain.next - 1, hex);
}

/* --- reading --- */

static gpointer
row_from(sqlite3_stmt *row)
{
    EbEgressRow *self = g_new0(EbEgressRow, 1);
    char **const texts[] = {&self->session,  &self->kind, &self->host,    &self->address,
                            &self->decision, &self->rule, &self->provider};

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        *texts[i] = eb_store_column_dup(row, (int)i);
    self->seq = sqlite3_column_int64(row, 7);
    self->at_ms = sqlite3_column_int64(row, 8);
    self->port = (guint)sqlite3_column_int64(row, 9);
    self->bytes_up = (guint64)sqlite3_column_int64(row, 10);
    self->bytes_down = (guint64)sqlite3_column_int64(row, 11);
    self->ms = (guint64)sqlite3_column_int64(row, 12);
    self->status = (guint)sqlite3_column_int64(row, 13);
    self->lost = (guint64)sqlite3_column_int64(row, 14);
    copy_hash(row, 15, self->previous);
    copy_hash(row, 16, self->hash);
    return self;
}

static void
row_free(gpointer data)
{
    eb_egress_row_free(data);
}

/* Oldest first; the newest @max of them, -1 = all. */
static GPtrArray *
read_rows(sqlite3 *db, const char *session, gint64 max, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(
        db,
        "SELECT * FROM (SELECT session, kind, host, address, decision, rule, provider, seq, at, port, bytes_up,"
        " bytes_down, ms, status, lost, previous, hash FROM egress WHERE session = ? ORDER BY seq DESC LIMIT ?)"
        " ORDER BY seq",
        error);

    if (statement == NULL)
        return NULL;
    eb_store_bind_text(statement, 1, session);
    sqlite3_bind_int64(statement, 2, max);
    return eb_store_collect(db, statement, row_from, row_free, "read the egress audit", error);
}

static void
judge(const Chain *chain, gboolean there, GPtrArray *rows, EbEgressVerdict *verdict)
{
    const guint8 *previous = chain->anchor;
    gint64 seq = chain->first;

    *verdict = (EbEgressVerdict){.rows = rows->len, .pruned = chain->first - 1};
    sodium_bin2hex(verdict->head, sizeof verdict->head, chain->head, EB_EGRESS_HASH);
    if (!there && rows->len > 0) {
        verdict->broken_at = ((EbEgressRow *)rows->pdata[0])->seq;
        verdict->why = "the chain's beginning and end were taken out";
        return;
    }
    for (guint i = 0; i < rows->len && verdict->why == NULL; i++, seq++) {
        const EbEgressRow *row = rows->pdata[i];
        if (row->seq != seq)
            verdict->why = "a row was taken out or put in";
        else if (memcmp(row->previous, previous, EB_EGRESS_HASH) != 0)
            verdict->why = "a row does not go on from the one before";
        else if (!eb_egress_row_check(row))
            verdict->why = "a row was changed";
        if (verdict->why != NULL)
            verdict->broken_at = seq;
        previous = row->hash;
    }
    if (verdict->why == NULL && (seq != chain->next || memcmp(previous, chain->head, EB_EGRESS_HASH) != 0)) {
        verdict->broken_at = seq;
        verdict->why = "rows at the end were taken out or put in";
    }
}

static GPtrArray *
read_and_judge(sqlite3 *db, const char *session, EbEgressVerdict *verdict, GError **error)
{
    gboolean there = FALSE;
    Chain chain;

    if (!load_chain(db, session, &chain, &there, error))
        return NULL;
    GPtrArray *rows = read_rows(db, session, -1, error);
    if (rows != NULL)
        judge(&chain, there, rows, verdict);
    return rows;
}

gboolean
eb_egress_store_verify(sqlite3 *db, const char *session, EbEgressVerdict *verdict, GError **error)
{
    g_autoptr(GPtrArray) rows = read_and_judge(db, session, verdict, error);

    return rows != NULL;
}

/* --- a look at all of them --- */

static void
fault_free(gpointer data)
{
    EbEgressFault *self = data;

    g_free(self->session);
    g_free(self);
}

void
eb_egress_survey_free(EbEgressSurvey *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->faults);
    g_free(self);
}

static void
add_fault(EbEgressSurvey *survey, const char *session, gint64 at, const char *why)
{
    for (guint i = 0; i < survey->faults->len; i++)
        if (g_strcmp0(((EbEgressFault *)survey->faults->pdata[i])->session, session) == 0)
            return;
    if (survey->faults->len >= EB_EGRESS_SURVEY_BROKEN)
        return;
    EbEgressFault *fault = g_new0(EbEgressFault, 1);
    *fault = (EbEgressFault){.session = g_strdup(session), .at = at, .why = why};
    g_ptr_array_add(survey->faults, fault);
}

static gboolean
survey_ends(sqlite3 *db, EbEgressSurvey *survey, const char *sql, const char *why, GError **error)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(db, sql, error);
    int step;

    if (row == NULL)
        return FALSE;
    sqlite3_bind_int(row, 1, EB_EGRESS_SURVEY_BROKEN);
    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        g_autofree char *session = eb_store_column_dup(row, 0);
        add_fault(survey, session, sqlite3_column_int64(row, 1), why);
    }
    if (step != SQLITE_DONE)
        eb_store_set_error(error, db, "read the egress audit");
    return step == SQLITE_DONE;
}

/* (transfer full) (nullable): of the newest rows of all sessions: how many each session has (utf8 -> guint) */
static GHashTable *
count_newest(sqlite3 *db, GError **error)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(db, "SELECT session FROM egress ORDER BY at DESC LIMIT ?", error);
    g_autoptr(GHashTable) counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    int step;

    if (row == NULL)
        return NULL;
    sqlite3_bind_int(row, 1, EB_EGRESS_SURVEY_ROWS);
    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        char *session = eb_store_column_dup(row, 0);
        guint count = session != NULL ? GPOINTER_TO_UINT(g_hash_table_lookup(counts, session)) : 0;
        if (session != NULL)
            g_hash_table_insert(counts, session, GUINT_TO_POINTER(count + 1));
    }
    if (step == SQLITE_DONE)
        return g_steal_pointer(&counts);
    eb_store_set_error(error, db, "read the egress audit");
    return NULL;
}

static gboolean
survey_newest(sqlite3 *db, EbEgressSurvey *survey, GError **error)
{
    g_autoptr(GHashTable) counts = count_newest(db, error);
    GHashTableIter iter;
    gpointer session, count;

    if (counts == NULL)
        return FALSE;
    g_hash_table_iter_init(&iter, counts);
    while (g_hash_table_iter_next(&iter, &session, &count)) {
        EbEgressVerdict verdict;
        gboolean there = FALSE;
        Chain chain;
        if (!load_chain(db, session, &chain, &there, error))
            return FALSE;
        g_autoptr(GPtrArray) rows = read_rows(db, session, GPOINTER_TO_UINT(count), error);
        if (rows == NULL)
            return FALSE;
        if (rows->len == 0)
            continue;
        const EbEgressRow *first = rows->pdata[0];
        /* What is before them is not looked at: they go on from what the first of them says. */
        if (first->seq > chain.first) {
            chain.first = first->seq;
            memcpy(chain.anchor, first->previous, EB_EGRESS_HASH);
        }
        judge(&chain, there, rows, &verdict);
        survey->checked += rows->len;
        if (verdict.why != NULL)
            add_fault(survey, session, verdict.broken_at, verdict.why);
    }
    return TRUE;
}

static gboolean
count_all(sqlite3 *db, EbEgressSurvey *survey, GError **error)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(
        db, "SELECT count(*), coalesce(sum(next - first), 0) FROM egress_chain WHERE next > first", error);

    if (row == NULL)
        return FALSE;
    if (sqlite3_step(row) != SQLITE_ROW) {
        eb_store_set_error(error, db, "read the egress audit");
        return FALSE;
    }
    survey->chains = sqlite3_column_int64(row, 0);
    survey->rows = sqlite3_column_int64(row, 1);
    return TRUE;
}

EbEgressSurvey *
eb_egress_store_survey(sqlite3 *db, GError **error)
{
    static const char END[] = "SELECT session, next - 1 FROM egress_chain AS chain WHERE next > first AND NOT EXISTS"
                              " (SELECT 1 FROM egress WHERE session = chain.session AND seq = chain.next - 1"
                              " AND hash = chain.head) LIMIT ?";
    static const char BEGINNING[] = "SELECT session, first FROM egress_chain AS chain WHERE next > first AND NOT EXISTS"
                                    " (SELECT 1 FROM egress WHERE session = chain.session AND seq = chain.first"
                                    " AND previous = chain.anchor) LIMIT ?";
    g_autoptr(EbEgressSurvey) survey = g_new0(EbEgressSurvey, 1);

    survey->faults = g_ptr_array_new_with_free_func(fault_free);
    if (!count_all(db, survey, error) || !survey_newest(db, survey, error) ||
        !survey_ends(db, survey, END, "rows at the end were taken out or changed", error) ||
        !survey_ends(db, survey, BEGINNING, "rows at the beginning were taken out or changed", error))
        return NULL;
    return g_steal_pointer(&survey);
}

/* --- for people --- */

static void
add_node(GPtrArray *nodes, JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_node_take_object(node, object);
    g_ptr_array_add(nodes, node);
}

static gpointer
read_in_store(sqlite3 *db, gpointer data, GError **error)
{
    EbEgressVerdict verdict;
    g_autoptr(GPtrArray) rows = read_and_judge(db, data, &verdict, error);

    if (rows == NULL)
        return NULL;
    GPtrArray *nodes = g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);
    for (guint i = 0; i < rows->len; i++)
        add_node(nodes, eb_egress_row_to_json(rows->pdata[i]));
    JsonObject *chain = json_object_new();
    json_object_set_string_member(chain, "event", "chain");
    json_object_set_int_member(chain, "rows", verdict.rows);
    json_object_set_int_member(chain, "pruned", verdict.pruned);
    if (verdict.why != NULL) {
        json_object_set_int_member(chain, "broken_at", verdict.broken_at);
        json_object_set_string_member(chain, "why", verdict.why);
    } else {
        json_object_set_null_member(chain, "broken_at");
        json_object_set_null_member(chain, "why");
    }
    json_object_set_string_member(chain, "head", verdict.head);
    add_node(nodes, chain);
    return nodes;
}

void
eb_egress_store_read_async(EbStore *store, const char *session, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data)
{
    eb_store_run_async(store, FALSE, read_in_store, g_strdup(session), g_free, (GDestroyNotify)g_ptr_array_unref,
                       cancellable, callback, user_data);
}

GPtrArray *
eb_egress_store_read_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}
