/* SPDX-License-Identifier: MIT */
/* The egress audit on a real database: what was written is proven, whatever was pruned, and what was changed is found. */
#include "core/state/eb-egress-log.h"
#include "core/state/eb-session-store.h"
#include "eb-test.h"

#include <string.h>

#define SESSION "aaaaaaaaaaaa"
#define MOST (3 * EB_EGRESS_LOG_MAX_OF_SESSION)
#define OTHER "bbbbbbbbbbbb"

static JsonObject *
report(const char *host, guint port)
{
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "kind", "connect");
    json_object_set_string_member(object, "host", host);
    json_object_set_int_member(object, "port", port);
    json_object_set_string_member(object, "decision", "allowed");
    json_object_set_int_member(object, "bytes_down", 12345);
    return object;
}

static EbEgressRow *
new_row(const char *session, guint port)
{
    g_autoptr(JsonObject) object = report("example.org", port);
    return eb_egress_row_new(session, object);
}

static sqlite3 *
open_db(char **dir)
{
    g_autoptr(GError) error = NULL;
    *dir = eb_test_temp_dir("egress");
    g_autofree char *path = g_build_filename(*dir, "state.db", NULL);
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    return db;
}

static void
append(sqlite3 *db, const char *session, guint n, gint64 at_ms)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)eb_egress_row_free);
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < n; i++) {
        EbEgressRow *row = new_row(session, i + 1);
        row->at_ms = at_ms;
        g_ptr_array_add(rows, row);
    }
    g_assert_cmpint(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), ==, SQLITE_OK);
    g_assert_true(eb_egress_store_append(db, rows, &error));
    g_assert_no_error(error);
    g_assert_cmpint(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
}

static EbEgressVerdict
verify(sqlite3 *db, const char *session)
{
    EbEgressVerdict verdict;
    g_autoptr(GError) error = NULL;
    g_assert_true(eb_egress_store_verify(db, session, &verdict, &error));
    g_assert_no_error(error);
    return verdict;
}

static gboolean
survey_names(sqlite3 *db, const char *session)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbEgressSurvey) survey = eb_egress_store_survey(db, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < survey->faults->len; i++)
        if (g_strcmp0(((EbEgressFault *)survey->faults->pdata[i])->session, session) == 0)
            return TRUE;
    return FALSE;
}

/* Every way to change what is there breaks the chain at the row it was done to. */
static void
test_changed(void)
{
    static const struct {
        const char *sql;
        gint64 broken_at;
    } cases[] = {
        {"UPDATE egress SET host = 'other.org' WHERE seq = 3 AND session = '" SESSION "'", 3},
        {"UPDATE egress SET bytes_down = bytes_down + 1 WHERE seq = 1 AND session = '" SESSION "'", 1},
        {"UPDATE egress SET rule = '' WHERE seq = 2 AND session = '" SESSION "'", 2},
        {"UPDATE egress SET at = at - 1 WHERE seq = 5 AND session = '" SESSION "'", 5},
        {"UPDATE egress SET decision = 'host-not-allowed' WHERE seq = 4 AND session = '" SESSION "'", 4},
        {"DELETE FROM egress WHERE seq = 2 AND session = '" SESSION "'", 2},
        {"DELETE FROM egress WHERE seq = 1 AND session = '" SESSION "'", 1},
        {"DELETE FROM egress WHERE seq >= 4 AND session = '" SESSION "'", 4},
        {"DELETE FROM egress WHERE session = '" SESSION "'", 1},
        {"DELETE FROM egress_chain WHERE session = '" SESSION "'", 1},
        {"UPDATE egress SET previous = zeroblob(32) WHERE seq = 3 AND session = '" SESSION "'", 3},
        {"UPDATE egress SET session = '" SESSION "', seq = 6 WHERE seq = 1 AND session = '" OTHER "'", 6},
        {"UPDATE egress SET hash = (SELECT hash FROM egress WHERE seq = 1 AND session = '" SESSION
         "') WHERE seq = 2 AND session = '" SESSION "'",
         2},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *dir = NULL;
        sqlite3 *db = open_db(&dir);
        append(db, SESSION, 3, 1000);
        append(db, OTHER, 2, 1000);
        append(db, SESSION, 2, 2000);
        EbEgressVerdict verdict = verify(db, SESSION);
        g_assert_null(verdict.why);
        g_assert_cmpint(verdict.rows, ==, 5);
        g_assert_false(survey_names(db, SESSION));
        g_assert_cmpint(sqlite3_exec(db, cases[i].sql, NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_changes(db), >, 0);
        verdict = verify(db, SESSION);
        g_assert_nonnull(verdict.why);
        g_assert_cmpint(verdict.broken_at, ==, cases[i].broken_at);
        g_assert_true(survey_names(db, SESSION));
        /* It moved a row of the other one, or left it alone. */
        g_assert_cmpint(survey_names(db, OTHER), ==, strstr(cases[i].sql, "'" OTHER "'") != NULL);
        sqlite3_close(db);
    }
}

/* A look at all chains at once is bounded, by rows and by what it names; both ends of each are seen beyond that. */
static void
test_survey(void)
{
    g_autofree char *dir = NULL;
    sqlite3 *db = open_db(&dir);
    g_autoptr(GError) error = NULL;
    append(db, SESSION, EB_EGRESS_SURVEY_ROWS, 1000);
    append(db, OTHER, 100, 2000);
    g_autoptr(EbEgressSurvey) whole = eb_egress_store_survey(db, &error);
    g_assert_no_error(error);
    g_assert_cmpint(whole->chains, ==, 2);
    g_assert_cmpint(whole->rows, ==, EB_EGRESS_SURVEY_ROWS + 100);
    g_assert_cmpint(whole->checked, ==, EB_EGRESS_SURVEY_ROWS);
    g_assert_cmpuint(whole->faults->len, ==, 0);
    /* Row 1 is the oldest of all, and no longer among those whose hash is looked at: the chain's beginning tells. */
    g_assert_cmpint(sqlite3_exec(db, "DELETE FROM egress WHERE seq = 1 AND session = '" SESSION "'", NULL, NULL, NULL),
                    ==, SQLITE_OK);
    g_assert_true(survey_names(db, SESSION));
    for (guint i = 0; i < EB_EGRESS_SURVEY_BROKEN + 5; i++) {
        g_autofree char *session = g_strdup_printf("c%011u", i);
        append(db, session, 1, 3000);
    }
    g_assert_cmpint(sqlite3_exec(db, "UPDATE egress SET host = 'x' WHERE session LIKE 'c%'", NULL, NULL, NULL), ==,
                    SQLITE_OK);
    g_autoptr(EbEgressSurvey) many = eb_egress_store_survey(db, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(many->faults->len, ==, EB_EGRESS_SURVEY_BROKEN);
    sqlite3_close(db);
}

/* What is too old or too much goes from the beginning; the rest is proven as before, and goes on. */
static void
test_pruned(void)
{
    g_autofree char *dir = NULL;
    g_autoptr(GError) error = NULL;
    sqlite3 *db = open_db(&dir);
    append(db, SESSION, 10, 1000);
    append(db, SESSION, 5, 5000);
    g_assert_true(eb_egress_store_prune(db, 3000, &error));
    g_assert_no_error(error);
    EbEgressVerdict verdict = verify(db, SESSION);
    g_assert_cmpstr(verdict.why, ==, NULL);
    g_assert_cmpint(verdict.rows, ==, 5);
    g_assert_cmpint(verdict.pruned, ==, 10);
    append(db, SESSION, 1, 6000);
    verdict = verify(db, SESSION);
    g_assert_cmpstr(verdict.why, ==, NULL);
    g_assert_cmpint(verdict.rows, ==, 6);
    /* and somebody else's pruning is found */
    g_assert_cmpint(sqlite3_exec(db, "DELETE FROM egress WHERE seq = 11", NULL, NULL, NULL), ==, SQLITE_OK);
    g_assert_cmpint(verify(db, SESSION).broken_at, ==, 11);
    g_assert_cmpint(sqlite3_exec(db, "DELETE FROM egress", NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
}

/* Of a session that is gone nothing stays when its rows are too old, not even where they began. */
static void
test_forgotten(void)
{
    g_autofree char *dir = NULL;
    g_autoptr(GError) error = NULL;
    sqlite3 *db = open_db(&dir);
    append(db, SESSION, 3, 1000);
    g_assert_true(eb_egress_store_prune(db, 3000, &error));
    g_autoptr(sqlite3_stmt) row =
        eb_store_prepare(db, "SELECT (SELECT count(*) FROM egress) + (SELECT count(*) FROM egress_chain)", &error);
    g_assert_cmpint(sqlite3_step(row), ==, SQLITE_ROW);
    g_assert_cmpint(sqlite3_column_int(row, 0), ==, 0);
    g_clear_pointer(&row, sqlite3_finalize);
    sqlite3_close(db);
}

static void
test_most(void)
{
    g_autofree char *dir = NULL;
    sqlite3 *db = open_db(&dir);
    append(db, SESSION, EB_EGRESS_MAX_ROWS, 1000);
    append(db, SESSION, 7, 2000);
    EbEgressVerdict verdict = verify(db, SESSION);
    g_assert_cmpstr(verdict.why, ==, NULL);
    g_assert_cmpint(verdict.rows, ==, EB_EGRESS_MAX_ROWS);
    g_assert_cmpint(verdict.pruned, ==, 7);
    sqlite3_close(db);
}

/* Nothing of a path, and nothing of a key, gets in through a field that a broker fills. */
static void
test_clean(void)
{
    g_autoptr(JsonObject) object = report("evil.org/path?key=sk-secret", 70000);
    g_autofree char *longer = g_strnfill(4000, 'a');
    json_object_set_string_member(object, "rule", longer);
    json_object_set_string_member(object, "kind", "");
    json_object_set_int_member(object, "bytes_up", -5);
    json_object_set_int_member(object, "status", 100000);
    g_autoptr(EbEgressRow) row = eb_egress_row_new(SESSION, object);
    g_assert_cmpstr(row->host, ==, "evil.org#path#key#sk-secret");
    g_assert_cmpuint(strlen(row->rule), ==, EB_EGRESS_TEXT);
    g_assert_cmpstr(row->kind, ==, "unknown");
    g_assert_cmpuint(row->port, ==, 65535);
    g_assert_cmpuint(row->bytes_up, ==, 0);
    g_assert_cmpuint(row->status, ==, 999);
}

static GPtrArray *
read_all(EbStore *store, const char *session)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_egress_store_read_async(store, session, NULL, eb_test_result_ready, &done);
    GPtrArray *rows = eb_egress_store_read_finish(store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return rows;
}

/* What costs a guest nothing does not push out of the rows that are kept what it did reach. */
static void
test_refused(void)
{
    enum { FLOOD = 2 * EB_EGRESS_MAX_ROWS };
    g_autofree char *dir = eb_test_temp_dir("egress-log");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    guint64 lost = 0;
    eb_store_open_async(path, NULL, eb_test_result_ready, &done);
    EbStore *store = eb_store_open_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    EbEgressLog *log = eb_egress_log_new(store);
    eb_egress_log_add(log, new_row(SESSION, 443));
    for (guint i = 0; i < FLOOD; i++) {
        g_autoptr(JsonObject) refused = json_object_new();
        json_object_set_string_member(refused, "kind", "connect");
        json_object_set_string_member(refused, "host", "evil.org");
        json_object_set_string_member(refused, "decision", "host-not-allowed");
        eb_egress_log_add(log, eb_egress_row_new(SESSION, refused));
        if (i % 1000 == 0)
            eb_test_drain();
    }
    eb_egress_log_add(log, new_row(SESSION, 80));
    eb_egress_log_end_session(log, SESSION);
    g_autoptr(GPtrArray) rows = read_all(store, SESSION);
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(rows->pdata[0]), "port", 0), ==, 443);
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(rows->pdata[rows->len - 2]), "port", 0), ==, 80);
    g_assert_cmpuint(rows->len, <, EB_EGRESS_LOG_REFUSED_BURST + 100);
    for (guint i = 0; i + 1 < rows->len; i++)
        lost += (guint64)eb_json_get_int(eb_json_node_object(rows->pdata[i]), "lost", 0);
    g_assert_cmpuint(lost + rows->len - 1, ==, FLOOD + 2);
    eb_store_close(store);
    g_object_unref(store);
    eb_test_drain();
    g_object_unref(log);
    eb_test_drain();
}

/* Rows come in one batch; those that were too many, and a broker that died, are remembered. */
static void
test_log(void)
{
    g_autofree char *dir = eb_test_temp_dir("egress-log");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_store_open_async(path, NULL, eb_test_result_ready, &done);
    EbStore *store = eb_store_open_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    EbEgressLog *log = eb_egress_log_new(store);
    /* Two batches are handed on while the loop does not run, and a third waits. */
    for (guint i = 0; i < MOST + 3; i++)
        eb_egress_log_add(log, new_row(SESSION, 443));
    eb_egress_log_add(log, new_row(OTHER, 443));
    eb_egress_log_flush(log);
    eb_egress_log_note_death(log, SESSION);
    eb_egress_log_end_session(log, SESSION);
    g_autoptr(GPtrArray) rows = read_all(store, SESSION);
    g_assert_cmpuint(rows->len, ==, MOST + 2);
    JsonObject *last = eb_json_node_object(rows->pdata[MOST]);
    g_assert_cmpstr(eb_json_get_string(last, "decision"), ==, "broker-died");
    g_assert_cmpint(eb_json_get_int(last, "lost", 0), ==, 4);
    JsonObject *chain = eb_json_node_object(rows->pdata[MOST + 1]);
    g_assert_cmpstr(eb_json_get_string(chain, "event"), ==, "chain");
    g_assert_cmpint(eb_json_get_int(chain, "broken_at", 0), ==, 0);
    /* A guest that floods costs another session no row. */
    g_autoptr(GPtrArray) others = read_all(store, OTHER);
    g_assert_cmpuint(others->len, ==, 2);
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(others->pdata[0]), "lost", 0), ==, 0);
    eb_store_close(store);
    g_object_unref(store);
    eb_test_drain();
    g_object_unref(log);
    eb_test_drain();
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/egress/changed", test_changed);
    g_test_add_func("/egress/survey", test_survey);
    g_test_add_func("/egress/pruned", test_pruned);
    g_test_add_func("/egress/forgotten", test_forgotten);
    g_test_add_func("/egress/most", test_most);
    g_test_add_func("/egress/clean", test_clean);
    g_test_add_func("/egress/log", test_log);
    g_test_add_func("/egress/refused", test_refused);
    return g_test_run();
}
