/* SPDX-License-Identifier: MIT */
/* What killed tries leave on disk is settled by the next run, and nothing of a live one is touched. */
#include "core/session/eb-dead-roots.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-manager.h"
#include "core/state/eb-store.h"
#include "tests/lib/eb-test.h"

#include <glib/gstdio.h>

#define ROW "INSERT INTO session (id, project, agent, agent_session, state, instance, started, last_activity) VALUES "

static void
fill_database(const char *root)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    g_assert_cmpint(sqlite3_exec(db,
                                 ROW "('aaaaaaaaaaaa','p','a','acp-1','working','eb-a',1,1),"
                                     "('bbbbbbbbbbbb','p','a',NULL,'starting','eb-b',1,1);"
                                     "INSERT INTO event VALUES ('bbbbbbbbbbbb',1,1,1,'text','x')",
                                 NULL, NULL, NULL),
                    ==, SQLITE_OK);
    sqlite3_close(db);
}

static char *
query(const char *root, const char *sql)
{
    g_autofree char *path = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    sqlite3 *db = eb_store_open_blocking(path, NULL);
    sqlite3_stmt *row = eb_store_prepare(db, sql, NULL);
    g_assert_cmpint(sqlite3_step(row), ==, SQLITE_ROW);
    char *text = eb_store_column_dup(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return text;
}

static char *
make_root(const char *state_dir, const char *name, gboolean killed, gboolean rows)
{
    char *root = g_build_filename(state_dir, EB_TRY_DIR, name, NULL);
    static const char *const dirs[] = {"sessions/aaaaaaaaaaaa/state", "sessions/aaaaaaaaaaaa/run",
                                       "sessions/bbbbbbbbbbbb/run"};
    for (gsize i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *dir = g_build_filename(root, dirs[i], NULL);
        g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
        g_autofree char *file = g_build_filename(dir, "model.sock", NULL);
        g_assert_true(g_file_set_contents(file, "", 0, NULL));
    }
    if (rows)
        fill_database(root);
    g_autofree char *lock = g_build_filename(root, EB_STATE_LOCK_FILE, NULL);
    if (killed)
        g_assert_true(g_file_set_contents(lock, "1\n", -1, NULL));
    return root;
}

static gboolean
has(const char *root, const char *path)
{
    g_autofree char *whole = g_build_filename(root, path, NULL);
    return g_file_test(whole, G_FILE_TEST_EXISTS);
}

static void
test_killed(void)
{
    g_autofree char *dir = eb_test_temp_dir("roots");
    g_autofree char *root = make_root(dir, "killed", TRUE, TRUE);
    g_assert_cmpuint(eb_dead_roots_sweep(dir, NULL), ==, 1);
    g_assert_true(has(root, "sessions/aaaaaaaaaaaa/state/model.sock"));
    g_assert_false(has(root, "sessions/aaaaaaaaaaaa/run"));
    g_assert_false(has(root, "sessions/bbbbbbbbbbbb"));
    g_assert_false(has(root, EB_STATE_LOCK_FILE));
    g_autofree char *left = query(root, "SELECT group_concat(id || ' ' || state || ' ' || end_reason || ' ' || "
                                        "ifnull(instance, 'none')) FROM session");
    g_assert_cmpstr(left, ==, "aaaaaaaaaaaa ended killed none");
    g_autofree char *events = query(root, "SELECT CAST(count(*) AS TEXT) FROM event");
    g_assert_cmpstr(events, ==, "0");
    g_assert_cmpuint(eb_dead_roots_sweep(dir, NULL), ==, 0);
}

static void
test_killed_before_anything(void)
{
    g_autofree char *dir = eb_test_temp_dir("roots");
    g_autofree char *root = make_root(dir, "early", TRUE, FALSE);
    g_assert_cmpuint(eb_dead_roots_sweep(dir, NULL), ==, 1);
    g_assert_false(g_file_test(root, G_FILE_TEST_EXISTS));
}

static void
test_others_are_left_alone(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = eb_test_temp_dir("roots");
    g_autofree char *live = make_root(dir, "live", TRUE, TRUE);
    g_autofree char *own = make_root(dir, "own", TRUE, TRUE);
    g_autofree char *ended = make_root(dir, "ended", FALSE, TRUE);
    g_autoptr(EbDirLock) lock = eb_dir_lock_take(live, EB_STATE_LOCK_FILE, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(eb_dead_roots_sweep(dir, own), ==, 0);
    g_assert_true(has(live, "sessions/bbbbbbbbbbbb/run/model.sock"));
    g_assert_true(has(own, "sessions/bbbbbbbbbbbb/run/model.sock"));
    g_assert_true(has(ended, "sessions/bbbbbbbbbbbb/run/model.sock"));
    g_clear_pointer(&lock, eb_dir_lock_release);
}

static void
test_damaged_database_keeps_its_root(void)
{
    g_autofree char *dir = eb_test_temp_dir("roots");
    g_autofree char *root = make_root(dir, "damaged", TRUE, FALSE);
    g_autofree char *file = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    g_assert_true(g_file_set_contents(file, "this is no database at all, whatever its name says", -1, NULL));
    g_assert_cmpuint(eb_dead_roots_sweep(dir, NULL), ==, 0);
    g_assert_true(has(root, "sessions/aaaaaaaaaaaa/state/model.sock"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/dead-roots/killed", test_killed);
    g_test_add_func("/dead-roots/killed-before-anything", test_killed_before_anything);
    g_test_add_func("/dead-roots/others-are-left-alone", test_others_are_left_alone);
    g_test_add_func("/dead-roots/damaged-database", test_damaged_database_keeps_its_root);
    return g_test_run();
}
