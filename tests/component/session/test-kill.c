/* SPDX-License-Identifier: MIT */
/* What the database says between the steps of an end and of a removal: what a kill there would leave. */
#include "eb-session-fixture.h"

#include <sqlite3.h>
#include <string.h>

#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)

static sqlite3 *
open_database(const char *root)
{
    g_autofree char *path = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    sqlite3 *db = NULL;

    g_assert_cmpint(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), ==, SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

static void
run_sql(sqlite3 *db, const char *sql)
{
    char *error = NULL;

    sqlite3_exec(db, sql, NULL, NULL, &error);
    g_assert_cmpstr(error, ==, NULL);
}

static int
count(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_step(statement), ==, SQLITE_ROW);
    int n = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return n;
}

/* Every row of a session that is written from now on, in order. */
static void
record_rows(sqlite3 *db)
{
    run_sql(db, "CREATE TABLE seen (at INTEGER PRIMARY KEY, what TEXT, state TEXT, end_reason TEXT, instance TEXT);"
                "CREATE TRIGGER on_insert AFTER INSERT ON session BEGIN INSERT INTO seen (what, state, end_reason,"
                " instance) VALUES ('row', NEW.state, NEW.end_reason, NEW.instance); END;"
                "CREATE TRIGGER on_update AFTER UPDATE ON session BEGIN INSERT INTO seen (what, state, end_reason,"
                " instance) VALUES ('row', NEW.state, NEW.end_reason, NEW.instance); END;"
                "CREATE TRIGGER on_delete AFTER DELETE ON session BEGIN INSERT INTO seen (what) VALUES ('gone'); END;");
}

static char *
only_session(EbSessionFixture *f)
{
    g_autoptr(JsonNode) list = eb_session_manager_list_json(f->manager);
    JsonArray *sessions = eb_json_get_array(json_node_get_object(list), "sessions");

    g_assert_cmpuint(json_array_get_length(sessions), ==, 1);
    return g_strdup(eb_json_get_string(eb_json_array_object(sessions, 0), "id"));
}

static void
stop(EbSessionFixture *f, const char *id, gboolean remove)
{
    g_auto(EbTestResult) stopped = {0};
    g_autoptr(GError) error = NULL;

    eb_session_manager_stop_session_async(f->manager, id, remove, NULL, eb_test_result_ready, &stopped);
    g_assert_true(eb_session_manager_stop_session_finish(f->manager, eb_test_result_wait(&stopped), &error));
    g_assert_no_error(error);
}

static void
test_an_end_is_written_whole(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);

    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", NULL);
    g_autofree char *id = only_session(f);
    sqlite3 *db = open_database(f->manager->parts->state_root);
    record_rows(db);
    stop(f, id, FALSE);
    eb_session_fixture_close(f); /* and all of it is written */
    g_assert_cmpint(count(db, "SELECT count(*) FROM seen WHERE what = 'row' AND state = 'ended'"), >, 0);
    g_assert_cmpint(count(db, "SELECT count(*) FROM seen WHERE state = 'ended' AND"
                              " (end_reason IS NOT 'stopped' OR instance IS NOT NULL)"),
                    ==, 0);
    sqlite3_close(db);
}

static void
test_a_removal_is_written_down_first(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);

    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", NULL);
    g_autofree char *id = only_session(f);
    sqlite3 *db = open_database(f->manager->parts->state_root);
    record_rows(db);
    stop(f, id, TRUE);
    g_assert_cmpint(count(db, "SELECT count(*) FROM seen AS mark, seen AS gone WHERE mark.end_reason ="
                              " '" EB_SESSION_REMOVED "' AND gone.what = 'gone' AND mark.at < gone.at"),
                    >, 0);
    g_assert_cmpint(count(db, "SELECT count(*) FROM session"), ==, 0);
    sqlite3_close(db);
}

/* @kept: (nullable): what the kill left of the session's directory */
static void
check_broken_off(const char *kept)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);

    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", NULL);
    g_autofree char *id = only_session(f);
    stop(f, id, FALSE);
    g_autofree char *root = g_strdup(f->manager->parts->state_root);
    g_autofree char *own = g_build_filename(root, "sessions", id, NULL);
    eb_session_fixture_close(f); /* and all of it is written */
    sqlite3 *db = open_database(root);
    run_sql(db, "UPDATE session SET end_reason = '" EB_SESSION_REMOVED "'");
    sqlite3_close(db);
    eb_test_remove_tree(own);
    if (kept != NULL) {
        g_autofree char *left = g_build_filename(own, kept, NULL);
        g_assert_cmpint(g_mkdir_with_parents(left, 0700), ==, 0);
    }
    eb_session_fixture_open(f);
    g_autoptr(JsonNode) list = eb_session_manager_list_json(f->manager);
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(json_node_get_object(list), "sessions")), ==, 0);
    g_assert_cmpuint(eb_session_fixture_count_dirs(f), ==, 0);
}

static void
test_a_removal_that_was_broken_off_is_finished(void)
{
    check_broken_off("state");
    check_broken_off("run");
    check_broken_off(NULL);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/session/kill/end", test_an_end_is_written_whole);
    g_test_add_func("/session/kill/removal-first", test_a_removal_is_written_down_first);
    g_test_add_func("/session/kill/removal-finished", test_a_removal_that_was_broken_off_is_finished);
    return g_test_run();
}
