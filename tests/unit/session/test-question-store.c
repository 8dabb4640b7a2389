/* SPDX-License-Identifier: MIT */
/* Questions and guests on a real database. */
#include "core/state/eb-question-store.h"
#include "core/state/eb-session-store.h"
#include "eb-test.h"

static EbStore *
open_store(const char *path)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_store_open_async(path, NULL, eb_test_result_ready, &done);
    EbStore *store = eb_store_open_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return store;
}

static void
close_store(EbStore *store)
{
    eb_store_close(store);
    g_object_unref(store);
    eb_test_drain();
}

static EbQuestionRow *
new_row(const char *id, gint64 asked_ms)
{
    EbQuestionRow *row = eb_question_row_new();
    row->id = g_strdup(id);
    row->session = g_strdup("aaaaaaaaaaaa");
    row->body = g_strdup("{}");
    row->digest = g_strdup("d");
    row->asked_ms = asked_ms;
    row->expires_ms = asked_ms + 1000;
    return row;
}

static gboolean
add(EbStore *store, EbQuestionRow *row, GError **error)
{
    g_auto(EbTestResult) done = {0};
    eb_question_store_add_async(store, row, eb_test_result_ready, &done);
    return eb_question_store_add_finish(store, eb_test_result_wait(&done), error);
}

static gboolean
move(EbStore *store, const char *id, EbQuestionState from, EbQuestionState to, const char *answer, const char *by)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    gboolean moved = FALSE;
    eb_question_store_move_async(store, id, from, to, answer, by, eb_test_result_ready, &done);
    g_assert_true(eb_question_store_move_finish(store, eb_test_result_wait(&done), &moved, &error));
    g_assert_no_error(error);
    return moved;
}

static GPtrArray *
load(EbStore *store)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_question_store_load_async(store, eb_test_result_ready, &done);
    GPtrArray *rows = eb_question_store_load_finish(store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return rows;
}

static guint
count_rows(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_prepare_v2(db, "SELECT count(*) FROM question", -1, &statement, NULL), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_step(statement), ==, SQLITE_ROW);
    guint rows = (guint)sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return rows;
}

/* An agent that asks and takes back for ever fills no disk; what is open stays, however old. */
static void
test_bound(void)
{
    g_autofree char *dir = eb_test_temp_dir("question-store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    gint64 now_ms = g_get_real_time() / 1000;
    EbStore *store = open_store(path);
    g_autoptr(GError) error = NULL;
    g_assert_true(add(store, new_row("open", now_ms), &error));
    for (guint i = 0; i < EB_QUESTION_STORE_MAX_OVER + 200; i++) {
        g_autofree char *id = g_strdup_printf("back-%u", i);
        g_assert_true(add(store, new_row(id, now_ms), &error));
        eb_question_store_end(store, id, EB_QUESTION_CLOSED);
    }
    g_autoptr(GPtrArray) open = load(store);
    g_assert_cmpuint(open->len, ==, 1);
    g_assert_cmpstr(((EbQuestionRow *)open->pdata[0])->id, ==, "open");
    g_assert_cmpuint(count_rows(path), ==, EB_QUESTION_STORE_MAX_OVER + 1);
    close_store(store);
}

static void
test_life(void)
{
    g_autofree char *dir = eb_test_temp_dir("question-store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_autoptr(GError) error = NULL;
    gint64 now_ms = g_get_real_time() / 1000;
    EbStore *store = open_store(path);
    g_assert_true(add(store, new_row("one", now_ms), &error));
    g_assert_no_error(error);
    g_assert_false(add(store, new_row("one", now_ms), &error));
    g_assert_nonnull(error);
    g_assert_true(add(store, new_row("two", now_ms + 1), NULL));
    eb_question_store_set_message(store, "one", "message-1");
    close_store(store);
    store = open_store(path);
    g_autoptr(GPtrArray) rows = load(store);
    g_assert_cmpuint(rows->len, ==, 2);
    const EbQuestionRow *one = rows->pdata[0];
    g_assert_cmpstr(one->id, ==, "one");
    g_assert_cmpstr(one->message, ==, "message-1");
    g_assert_cmpint(one->state, ==, EB_QUESTION_OPEN);
    g_assert_cmpint(one->expires_ms, ==, now_ms + 1000);
    g_assert_null(((EbQuestionRow *)rows->pdata[1])->message);
    /* Of two answers one counts; what was applied is never open again. */
    g_assert_true(move(store, "one", EB_QUESTION_OPEN, EB_QUESTION_ANSWERED, "yes", "author"));
    g_assert_false(move(store, "one", EB_QUESTION_OPEN, EB_QUESTION_ANSWERED, "no", "other"));
    g_autoptr(GPtrArray) answered = load(store);
    g_assert_cmpint(((EbQuestionRow *)answered->pdata[0])->state, ==, EB_QUESTION_ANSWERED);
    g_assert_cmpstr(((EbQuestionRow *)answered->pdata[0])->answer, ==, "yes");
    g_assert_cmpstr(((EbQuestionRow *)answered->pdata[0])->answered_by, ==, "author");
    g_assert_true(move(store, "one", EB_QUESTION_ANSWERED, EB_QUESTION_APPLIED, NULL, NULL));
    g_assert_false(move(store, "one", EB_QUESTION_ANSWERED, EB_QUESTION_APPLIED, NULL, NULL));
    eb_question_store_end(store, "one", EB_QUESTION_CLOSED);
    eb_question_store_end(store, "two", EB_QUESTION_EXPIRED);
    g_assert_false(move(store, "two", EB_QUESTION_OPEN, EB_QUESTION_ANSWERED, "yes", "author"));
    g_assert_false(move(store, "unknown", EB_QUESTION_OPEN, EB_QUESTION_ANSWERED, "yes", "author"));
    g_autoptr(GPtrArray) left = load(store);
    g_assert_cmpuint(left->len, ==, 0);
    close_store(store);
}

static void
test_bounds(void)
{
    g_autofree char *dir = eb_test_temp_dir("question-store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    EbStore *store = open_store(path);
    gint64 now_ms = g_get_real_time() / 1000;
    for (guint i = 0; i < EB_QUESTION_STORE_MAX + 5; i++) {
        g_autofree char *id = g_strdup_printf("q-%03u", i);
        g_assert_true(add(store, new_row(id, now_ms + i), NULL));
    }
    g_autoptr(GPtrArray) rows = load(store);
    g_assert_cmpuint(rows->len, ==, EB_QUESTION_STORE_MAX);
    g_assert_cmpstr(((EbQuestionRow *)rows->pdata[0])->id, ==, "q-005");
    /* What is long over is forgotten, what is open is not. */
    g_assert_true(add(store, new_row("old-open", 1000), NULL));
    g_assert_true(add(store, new_row("old-closed", 1000), NULL));
    eb_question_store_end(store, "old-closed", EB_QUESTION_CLOSED);
    g_autoptr(GPtrArray) again = load(store);
    g_assert_cmpuint(again->len, ==, EB_QUESTION_STORE_MAX);
    g_assert_true(add(store, new_row("old-closed", 1000), NULL));
    g_assert_false(add(store, new_row("old-open", 1000), NULL));
    close_store(store);
}

static void
test_guests(void)
{
    g_autofree char *dir = eb_test_temp_dir("question-store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    EbStore *store = open_store(path);
    g_autoptr(EbSessionRecord) record = eb_session_record_new("aaaaaaaaaaaa", "web", "agent");
    g_assert_true(eb_session_record_set_guest(record, "100", TRUE));
    g_assert_false(eb_session_record_set_guest(record, "100", TRUE));
    g_assert_true(eb_session_record_set_guest(record, "200", TRUE));
    g_assert_false(eb_session_record_set_guest(record, "", TRUE));
    g_assert_false(eb_session_record_set_guest(record, "a\nb", TRUE));
    g_autofree char *long_id = g_strnfill(EB_SESSION_MAX_GUEST_BYTES + 1, '1');
    g_assert_false(eb_session_record_set_guest(record, long_id, TRUE));
    g_assert_false(eb_session_record_set_guest(record, "300", FALSE));
    g_auto(EbTestResult) saved = {0};
    eb_session_store_save_async(store, record, NULL, eb_test_result_ready, &saved);
    /* Changed after it was given away: what is written is as it was. */
    g_assert_true(eb_session_record_set_guest(record, "200", FALSE));
    g_assert_true(eb_session_store_finish(store, eb_test_result_wait(&saved), NULL));
    g_auto(EbTestResult) loaded = {0};
    eb_session_store_load_async(store, NULL, eb_test_result_ready, &loaded);
    g_autoptr(GPtrArray) records = eb_session_store_load_finish(store, eb_test_result_wait(&loaded), NULL);
    const EbSessionRecord *read = records->pdata[0];
    g_assert_cmpuint(read->guests->len, ==, 2);
    g_assert_true(eb_session_record_has_guest(read, "100"));
    g_assert_true(eb_session_record_has_guest(read, "200"));
    g_assert_false(eb_session_record_has_guest(read, NULL));
    for (guint i = 0; record->guests->len < EB_SESSION_MAX_GUESTS; i++) {
        g_autofree char *id = g_strdup_printf("g-%u", i);
        g_assert_true(eb_session_record_set_guest(record, id, TRUE));
    }
    g_assert_false(eb_session_record_set_guest(record, "one more", TRUE));
    /* With the session go its questions. */
    g_assert_true(add(store, new_row("one", g_get_real_time() / 1000), NULL));
    g_auto(EbTestResult) removed = {0};
    eb_session_store_remove_async(store, "aaaaaaaaaaaa", NULL, eb_test_result_ready, &removed);
    g_assert_true(eb_session_store_finish(store, eb_test_result_wait(&removed), NULL));
    g_autoptr(GPtrArray) rows = load(store);
    g_assert_cmpuint(rows->len, ==, 0);
    close_store(store);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/question-store/bound", test_bound);
    g_test_add_func("/question-store/life", test_life);
    g_test_add_func("/question-store/bounds", test_bounds);
    g_test_add_func("/question-store/guests", test_guests);
    return g_test_run();
}
