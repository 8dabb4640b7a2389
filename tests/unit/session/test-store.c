/* SPDX-License-Identifier: MIT */
/* The database on a real file: records, journal, transcript, damage, versions, a full disk. */
#include "core/base/eb-worker.h"
#include "core/state/eb-journal.h"
#include "core/state/eb-session-store.h"
#include "core/state/eb-transcript.h"
#include "eb-test.h"

#include <string.h>
#include <sys/stat.h>

static EbStore *
open_store(const char *path, GError **error)
{
    g_auto(EbTestResult) done = {0};
    eb_store_open_async(path, NULL, eb_test_result_ready, &done);
    return eb_store_open_finish(eb_test_result_wait(&done), error);
}

/* Tasks that just ended may hold the store for one more turn of the loop. */
static void
close_store(EbStore *store)
{
    eb_store_close(store);
    g_object_unref(store);
    eb_test_drain();
}

static GPtrArray *
load(EbStore *store)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_session_store_load_async(store, NULL, eb_test_result_ready, &done);
    GPtrArray *records = eb_session_store_load_finish(store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return records;
}

static void
save(EbStore *store, EbSessionRecord *record)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_session_store_save_async(store, record, NULL, eb_test_result_ready, &done);
    eb_session_store_finish(store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
}

static void
test_records(void)
{
    g_autofree char *dir = eb_test_temp_dir("store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_autoptr(GError) error = NULL;
    EbStore *store = open_store(path, &error);
    g_assert_no_error(error);
    struct stat info;
    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    g_autoptr(EbSessionRecord) one = eb_session_record_new("aaaaaaaaaaaa", "web", "opencode");
    one->thread = g_strdup("main");
    one->turns = 3;
    g_autoptr(EbSessionRecord) two = eb_session_record_new("bbbbbbbbbbbb", "api", "kage");
    g_free(two->state);
    two->state = g_strdup("ended");
    two->end_reason = g_strdup("idle");
    save(store, one);
    save(store, two);
    one->turns = 4;
    save(store, one);
    close_store(store);

    store = open_store(path, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) records = load(store);
    g_assert_cmpuint(records->len, ==, 2);
    const EbSessionRecord *first = records->pdata[0];
    const EbSessionRecord *second = records->pdata[1];
    g_assert_cmpstr(first->id, ==, "aaaaaaaaaaaa");
    g_assert_cmpuint(first->turns, ==, 4);
    g_assert_cmpstr(first->thread, ==, "main");
    g_assert_null(first->model);
    g_assert_cmpstr(second->end_reason, ==, "idle");
    g_auto(EbTestResult) removed = {0};
    eb_session_store_remove_async(store, "aaaaaaaaaaaa", NULL, eb_test_result_ready, &removed);
    g_assert_true(eb_session_store_finish(store, eb_test_result_wait(&removed), &error));
    g_autoptr(GPtrArray) left = load(store);
    g_assert_cmpuint(left->len, ==, 1);
    close_store(store);
}

static void
run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
}

static void
test_newer_version(void)
{
    g_autofree char *dir = eb_test_temp_dir("store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    run_sql(path, "PRAGMA user_version = 999; CREATE TABLE kept (x)");
    g_autofree char *before = NULL;
    g_autofree char *after = NULL;
    gsize before_length, after_length;
    g_file_get_contents(path, &before, &before_length, NULL);
    g_autoptr(GError) error = NULL;
    g_assert_null(open_store(path, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "state.newer", "schema 999");
    run_sql(path, "SELECT x FROM kept");
    g_assert_true(g_file_get_contents(path, &after, &after_length, NULL));
    g_assert_cmpuint(before_length, ==, after_length);
}

static void
test_damaged(void)
{
    g_autofree char *dir = eb_test_temp_dir("store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    EbStore *store = open_store(path, NULL);
    for (guint i = 0; i < 200; i++) {
        g_autofree char *id = g_strdup_printf("session%05u", i);
        g_autoptr(EbSessionRecord) record = eb_session_record_new(id, "project-with-a-name", "agent");
        save(store, record);
    }
    close_store(store);
    g_autofree char *content = NULL;
    gsize length;
    g_assert_true(g_file_get_contents(path, &content, &length, NULL));
    g_assert_cmpuint(length, >, 8192);
    for (gsize i = 4096; i < length; i += 7)
        content[i] ^= 0x5a;
    g_assert_true(g_file_set_contents(path, content, (gssize)length, NULL));
    g_autoptr(GError) error = NULL;
    g_assert_null(open_store(path, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "state.damaged", path);
    g_autofree char *kept = NULL;
    gsize kept_length;
    g_assert_true(g_file_get_contents(path, &kept, &kept_length, NULL));
    g_assert_cmpmem(kept, kept_length, content, length);

    g_autofree char *other = g_build_filename(dir, "text.db", NULL);
    eb_test_write_file(other, "this is no database, and long enough to be read as a header of one, surely so");
    g_clear_error(&error);
    g_assert_null(open_store(other, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "state.damaged", NULL);
}

static void
test_link_is_refused(void)
{
    g_autofree char *dir = eb_test_temp_dir("store");
    g_autofree char *target = g_build_filename(dir, "target.db", NULL);
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_assert_cmpint(symlink(target, path), ==, 0);
    g_autoptr(GError) error = NULL;
    g_assert_null(open_store(path, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, NULL, path);
    g_assert_false(g_file_test(target, G_FILE_TEST_EXISTS));
}

static gpointer
limit_pages(sqlite3 *db, gpointer data, GError **error)
{
    sqlite3_exec(db, "PRAGMA max_page_count = 24", NULL, NULL, NULL);
    return NULL;
}

/* SQLite's own page limit gives the same SQLITE_FULL a full disk does. */
static void
test_full(void)
{
    g_autofree char *dir = eb_test_temp_dir("store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    EbStore *store = open_store(path, NULL);
    g_auto(EbTestResult) limited = {0};
    eb_store_run_async(store, FALSE, limit_pages, NULL, NULL, NULL, NULL, eb_test_result_ready, &limited);
    eb_store_run_finish(store, eb_test_result_wait(&limited), NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *big = g_strnfill(20000, 'b');
    for (guint i = 0; i < 50 && error == NULL; i++) {
        g_autofree char *id = g_strdup_printf("session%05u", i);
        g_autoptr(EbSessionRecord) record = eb_session_record_new(id, big, "agent");
        g_auto(EbTestResult) done = {0};
        eb_session_store_save_async(store, record, NULL, eb_test_result_ready, &done);
        eb_session_store_finish(store, eb_test_result_wait(&done), &error);
    }
    eb_test_assert_error(error, EB_ERROR_QUOTA, "state.disk-full", "free space");
    g_autoptr(GPtrArray) records = load(store);
    g_assert_cmpuint(records->len, >=, 1);
    close_store(store);
}

static gboolean
receive(EbStore *store, const char *id, const char *text)
{
    g_autoptr(EbChatMessage) message = eb_chat_message_new(id, "thread", "author", text);
    message->extra = json_object_new();
    json_object_set_string_member(message->extra, "project", "web");
    g_auto(EbTestResult) done = {0};
    gboolean repeat = FALSE;
    eb_journal_receive_async(store, "console", message, EB_JOURNAL_RECEIVED, NULL, eb_test_result_ready, &done);
    g_assert_true(eb_journal_receive_finish(store, eb_test_result_wait(&done), &repeat, NULL));
    return repeat;
}

static void
test_journal(void)
{
    g_autofree char *dir = eb_test_temp_dir("store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    EbStore *store = open_store(path, NULL);
    g_assert_false(receive(store, "1", "first"));
    g_assert_false(receive(store, "2", "second"));
    g_assert_false(receive(store, "3", "third"));
    g_assert_true(receive(store, "2", "second again"));
    eb_journal_mark(store, "console", "1", EB_JOURNAL_DONE, "aaaaaaaaaaaa");
    eb_journal_mark(store, "console", "2", EB_JOURNAL_STARTED, "aaaaaaaaaaaa");
    close_store(store);
    store = open_store(path, NULL);
    g_auto(EbTestResult) done = {0};
    eb_journal_open_async(store, "console", NULL, eb_test_result_ready, &done);
    g_autoptr(GPtrArray) open = eb_journal_open_finish(store, eb_test_result_wait(&done), NULL);
    g_assert_cmpuint(open->len, ==, 2);
    const EbJournalEntry *second = open->pdata[0];
    const EbJournalEntry *third = open->pdata[1];
    g_assert_cmpint(second->state, ==, EB_JOURNAL_STARTED);
    g_assert_cmpstr(second->message->text, ==, "second");
    g_assert_cmpstr(second->session, ==, "aaaaaaaaaaaa");
    g_assert_cmpint(third->state, ==, EB_JOURNAL_RECEIVED);
    g_assert_cmpstr(eb_json_get_string(third->message->extra, "project"), ==, "web");
    g_assert_true(receive(store, "1", "done long ago"));
    close_store(store);
}

static GPtrArray *
read_events(EbStore *store)
{
    g_auto(EbTestResult) done = {0};
    eb_transcript_read_async(store, "aaaaaaaaaaaa", NULL, eb_test_result_ready, &done);
    return eb_transcript_read_finish(store, eb_test_result_wait(&done), NULL);
}

static void
test_transcript(void)
{
    g_autofree char *dir = eb_test_temp_dir("store");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    EbStore *store = open_store(path, NULL);
    EbTranscript *transcript = eb_transcript_new(store, "aaaaaaaaaaaa");
    g_autofree char *big = g_strnfill(100 * 1024, 'x');
    eb_transcript_add(transcript, 1, "prompt", "hello", NULL);
    eb_transcript_add(transcript, 1, "text", big, NULL);
    eb_transcript_flush(transcript);
    g_autoptr(GPtrArray) events = read_events(store);
    g_assert_cmpuint(events->len, ==, 2);
    JsonObject *first = json_node_get_object(events->pdata[0]);
    g_assert_cmpstr(eb_json_get_string(first, "event"), ==, "prompt");
    g_assert_cmpstr(eb_json_get_string(first, "text"), ==, "hello");
    g_assert_cmpint(eb_json_get_int(first, "turn", 0), ==, 1);
    const char *text = eb_json_get_string(json_node_get_object(events->pdata[1]), "text");
    g_assert_cmpuint(strlen(text), <, EB_TRANSCRIPT_MAX_BODY);
    g_assert_nonnull(strstr(text, "more bytes"));
    for (guint round = 0; round < 20; round++) {
        for (guint i = 0; i < EB_TRANSCRIPT_MAX_PENDING + (round == 0 ? 5 : 0); i++)
            eb_transcript_add(transcript, 2, "text", "again", NULL);
        eb_transcript_flush(transcript);
    }
    g_autoptr(GPtrArray) bounded = read_events(store);
    g_assert_cmpuint(bounded->len, ==, EB_TRANSCRIPT_MAX_EVENTS);
    g_object_unref(transcript);
    close_store(store);
}

static void
block(GTask *task)
{
    g_usleep(20000);
    g_task_return_int(task, eb_worker_is_current(g_task_get_task_data(task)));
}

static void
test_worker_bounds(void)
{
    g_autoptr(EbWorker) worker = eb_worker_new("eb-test", 2);
    EbTestResult results[6] = {0};
    guint full = 0;
    for (guint i = 0; i < 6; i++) {
        GTask *task = g_task_new(NULL, NULL, eb_test_result_ready, &results[i]);
        g_task_set_task_data(task, worker, NULL);
        eb_worker_run(worker, task, block);
    }
    for (guint i = 0; i < 6; i++) {
        g_autoptr(GError) error = NULL;
        gssize value = g_task_propagate_int(G_TASK(eb_test_result_wait(&results[i])), &error);
        if (error != NULL) {
            eb_test_assert_error(error, EB_ERROR_QUOTA, "worker.queue-full", NULL);
            full++;
        } else {
            g_assert_cmpint(value, ==, TRUE);
        }
        eb_test_result_clear(&results[i]);
    }
    g_assert_cmpuint(full, >=, 3);
    g_assert_cmpuint(full, <=, 4);
    eb_worker_close(worker);
    EbTestResult late = {0};
    eb_worker_run(worker, g_task_new(NULL, NULL, eb_test_result_ready, &late), block);
    g_autoptr(GError) error = NULL;
    g_task_propagate_int(G_TASK(eb_test_result_wait(&late)), &error);
    eb_test_assert_error(error, EB_ERROR_CANCELLED, "worker.closed", NULL);
    eb_test_result_clear(&late);
}

static gpointer
text_from_row(sqlite3_stmt *row)
{
    return eb_store_column_dup(row, 0);
}

/* The sweep deletes what has no row: a read that breaks off must not look like the end of the rows. */
static void
test_a_part_is_not_all(void)
{
    g_autoptr(GError) error = NULL;
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
    sqlite3_stmt *whole = eb_store_prepare(db, "SELECT 'a' UNION ALL SELECT 'b'", &error);
    g_autoptr(GPtrArray) rows = eb_store_collect(db, whole, text_from_row, g_free, "read", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(rows->len, ==, 2);
    /* The second row overflows: SQLite reports it after it has given the first. */
    sqlite3_stmt *broken =
        eb_store_prepare(db, "SELECT abs(n) FROM (SELECT 1 AS n UNION ALL SELECT -9223372036854775807 - 1)", &error);
    g_assert_no_error(error);
    g_assert_null(eb_store_collect(db, broken, text_from_row, g_free, "read", &error));
    g_assert_nonnull(error);
    sqlite3_finalize(whole);
    sqlite3_finalize(broken);
    sqlite3_close(db);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/store/records", test_records);
    g_test_add_func("/store/newer-version", test_newer_version);
    g_test_add_func("/store/damaged", test_damaged);
    g_test_add_func("/store/link-is-refused", test_link_is_refused);
    g_test_add_func("/store/full", test_full);
    g_test_add_func("/store/journal", test_journal);
    g_test_add_func("/store/transcript", test_transcript);
    g_test_add_func("/worker/bounds", test_worker_bounds);
    g_test_add_func("/store/a-part-is-not-all", test_a_part_is_not_all);
    return g_test_run();
}
