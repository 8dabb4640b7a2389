/* SPDX-License-Identifier: MIT */
/* A database that cannot be used is told of, and left as it is: never replaced by an empty one. */
#include "core/state/eb-store.h"
#include "eb-test.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *
make(char **dir, guint rows)
{
    *dir = eb_test_temp_dir("bad");
    char *path = g_build_filename(*dir, "state.db", NULL);
    g_autoptr(GError) error = NULL;
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < rows; i++) {
        g_autofree char *sql =
            g_strdup_printf("INSERT INTO session (id, project, agent, state, started, last_activity) "
                            "VALUES ('session%05u','a-project-with-a-long-name','agent','ended',1,1)",
                            i);
        g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
    }
    sqlite3_close(db);
    return path;
}

/* Refused with @reason and @text; the file has the same bytes as before. */
static void
refused(const char *path, EbErrorCode code, const char *reason, const char *text)
{
    g_autofree char *before = NULL;
    g_autofree char *after = NULL;
    gsize length = 0, length_after = 0;
    g_autoptr(GError) error = NULL;
    gboolean readable = g_file_get_contents(path, &before, &length, NULL);
    g_assert_null(eb_store_open_blocking(path, &error));
    eb_test_assert_error(error, code, reason, text);
    g_assert_nonnull(strstr(error->message, path));
    g_assert_null(strchr(error->message, '\n'));
    if (!readable)
        return;
    g_assert_true(g_file_get_contents(path, &after, &length_after, NULL));
    g_assert_cmpmem(before, length, after, length_after);
}

static void
test_cut_off(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = make(&dir, 400);
    struct stat info;
    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpint(truncate(path, info.st_size / 2 / 4096 * 4096), ==, 0);
    refused(path, EB_ERROR_INTEGRITY, "state.damaged", "errand-box maint restore FILE --replace");
    g_assert_cmpint(truncate(path, 1000), ==, 0);
    refused(path, EB_ERROR_INTEGRITY, "state.damaged", "errand-box maint restore FILE --replace");
    g_assert_cmpint(truncate(path, 0), ==, 0);
    refused(path, EB_ERROR_INTEGRITY, "state.empty", "it was cut off (it was left as it is; errand-box maint restore");
}

static void
test_garbage(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = make(&dir, 400);
    g_autofree char *content = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(path, &content, &length, NULL));
    /* one page in the middle */
    memset(content + length / 2 / 4096 * 4096, 0x5a, 4096);
    g_assert_true(g_file_set_contents(path, content, (gssize)length, NULL));
    refused(path, EB_ERROR_INTEGRITY, "state.damaged", "errand-box maint restore");
    g_assert_true(g_file_set_contents(path, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, NULL));
    refused(path, EB_ERROR_INTEGRITY, "state.damaged", "errand-box maint restore");
}

static void
test_newer(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = make(&dir, 1);
    sqlite3 *db = eb_store_open_blocking(path, NULL);
    g_assert_cmpint(sqlite3_exec(db, "PRAGMA user_version = 999", NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
    refused(path, EB_ERROR_CONFIG, "state.newer", "schema 999");
}

static void
test_not_a_file(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = make(&dir, 1);
    g_autofree char *aside = g_build_filename(dir, "aside", NULL);
    g_assert_cmpint(g_rename(path, aside), ==, 0);
    g_assert_cmpint(symlink("aside", path), ==, 0);
    refused(path, EB_ERROR_DENIED, "state.denied", "no regular file");
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    refused(path, EB_ERROR_DENIED, "state.denied", "it is a directory");
}

/* The log of a database that is gone holds what was written last: a new database would throw it away. */
static void
test_log_without_database(void)
{
    g_autofree char *dir = eb_test_temp_dir("bad");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_autofree char *log = g_strconcat(path, "-wal", NULL);
    eb_test_write_file(log, "what was written last");
    refused(path, EB_ERROR_INTEGRITY, "state.missing", "would be lost");
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(log, G_FILE_TEST_EXISTS));
}

/* A log left beside its database, as after a kill, is taken over. */
static void
test_log_with_database(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = make(&dir, 0);
    g_autofree char *log = g_strconcat(path, "-wal", NULL);
    g_autofree char *copy = g_build_filename(dir, "copy.db", NULL);
    g_autofree char *copy_log = g_strconcat(copy, "-wal", NULL);
    g_autofree char *content = NULL, *log_content = NULL;
    gsize length = 0, log_length = 0;
    sqlite3 *db = eb_store_open_blocking(path, NULL);
    g_assert_cmpint(sqlite3_exec(db,
                                 "INSERT INTO session (id, project, agent, state, started, last_activity) VALUES "
                                 "('aaaaaaaaaaaa','p','a','ended',1,1)",
                                 NULL, NULL, NULL),
                    ==, SQLITE_OK);
    g_assert_true(g_file_get_contents(path, &content, &length, NULL));
    g_assert_true(g_file_get_contents(log, &log_content, &log_length, NULL));
    sqlite3_close(db);
    g_assert_cmpuint(log_length, >, 0);
    g_assert_true(g_file_set_contents(copy, content, (gssize)length, NULL));
    g_assert_true(g_file_set_contents(copy_log, log_content, (gssize)log_length, NULL));
    g_autoptr(GError) error = NULL;
    sqlite3 *again = eb_store_open_blocking(copy, &error);
    g_assert_no_error(error);
    sqlite3_stmt *row = eb_store_prepare(again, "SELECT count(*) FROM session", NULL);
    g_assert_cmpint(sqlite3_step(row), ==, SQLITE_ROW);
    g_assert_cmpint(sqlite3_column_int(row, 0), ==, 1);
    sqlite3_finalize(row);
    sqlite3_close(again);
}

/* As another uid, who meets the file's mode: root reads everything. */
static void
test_unreadable(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = make(&dir, 1);
    if (geteuid() != 0) {
        g_assert_cmpint(chmod(path, 0), ==, 0);
        refused(path, EB_ERROR_DENIED, "state.denied", "Permission denied");
        return;
    }
    g_assert_cmpint(chmod(dir, 0755), ==, 0);
    pid_t child = fork();
    if (child == 0) {
        g_autoptr(GError) error = NULL;
        if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
            _exit(1);
        sqlite3 *db = eb_store_open_blocking(path, &error);
        _exit(db == NULL && g_strcmp0(eb_error_get_reason(error), "state.denied") == 0 ? 0 : 2);
    }
    int status = -1;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

/* On small file systems of our own: read-only, and full while a row is written. Needs to mount. */
static void
test_file_systems(void)
{
    g_autofree char *dir = eb_test_temp_dir("fs");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_autofree char *filler = g_build_filename(dir, "filler", NULL);
    g_autoptr(GError) error = NULL;
    if (geteuid() != 0 || mount("none", dir, "tmpfs", 0, "size=1m") != 0) {
        g_test_skip("cannot mount a file system here");
        return;
    }
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    g_autofree char *zeros = g_malloc0(2 << 20);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(write(fd, zeros, 2 << 20), >, 0);
    close(fd);
    g_autofree char *long_text = g_strnfill(200000, 'x');
    g_autofree char *sql = g_strdup_printf("INSERT INTO event VALUES ('s',1,1,1,'text','%s')", long_text);
    sqlite3_stmt *statement = eb_store_prepare(db, sql, &error);
    g_assert_no_error(error);
    g_assert_false(eb_store_step_done(statement, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "state.disk-full", "free space");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    g_assert_cmpint(g_unlink(filler), ==, 0);
    g_clear_error(&error);
    db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    sqlite3_close(db);
    g_assert_cmpint(mount("none", dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), ==, 0);
    refused(path, EB_ERROR_DENIED, "state.denied", "Read-only file system");
    g_assert_cmpint(umount2(dir, MNT_DETACH), ==, 0);
}

/* Takes back what later versions made. */
#define TO_VERSION_2                                                                                                   \
    "ALTER TABLE session DROP COLUMN pinned; DROP TABLE egress; DROP TABLE egress_chain; DROP TABLE usage;"            \
    "DROP TABLE usage_hold; DROP TABLE session_rules; PRAGMA user_version = 2"

/* One of before sessions could be pinned is brought up to date and keeps its rows; a second open changes nothing. */
static void
test_older(void)
{
    g_autofree char *dir = NULL;
    g_autofree char *path = make(&dir, 3);
    g_autoptr(GError) error = NULL;
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_cmpint(sqlite3_exec(db, TO_VERSION_2, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
    for (guint i = 0; i < 2; i++) {
        db = eb_store_open_blocking(path, &error);
        g_assert_no_error(error);
        sqlite3_stmt *row = eb_store_prepare(db, "SELECT count(*), sum(pinned) FROM session", &error);
        g_assert_no_error(error);
        g_assert_cmpint(sqlite3_step(row), ==, SQLITE_ROW);
        g_assert_cmpint(sqlite3_column_int(row, 0), ==, 3);
        g_assert_cmpint(sqlite3_column_int(row, 1), ==, 0);
        sqlite3_finalize(row);
        row = eb_store_prepare(db,
                               "SELECT (SELECT count(*) FROM egress) + (SELECT count(*) FROM egress_chain) +"
                               " (SELECT count(*) FROM usage) + (SELECT count(*) FROM usage_hold) +"
                               " (SELECT count(*) FROM session_rules)",
                               &error);
        g_assert_no_error(error);
        g_assert_cmpint(sqlite3_step(row), ==, SQLITE_ROW);
        g_assert_cmpint(sqlite3_column_int(row, 0), ==, 0);
        sqlite3_finalize(row);
        sqlite3_close(db);
    }
}

/* What is made anew is there whole or not at all. */
static void
test_fresh(void)
{
    g_autofree char *dir = eb_test_temp_dir("fresh");
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_autofree char *left = g_strconcat(path, ".new", NULL);
    struct stat info;
    eb_test_write_file(left, "what a killed one left");
    g_autoptr(GError) error = NULL;
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    sqlite3_close(db);
    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    g_assert_false(g_file_test(left, G_FILE_TEST_EXISTS));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/bad-database/cut-off", test_cut_off);
    g_test_add_func("/bad-database/garbage", test_garbage);
    g_test_add_func("/bad-database/newer", test_newer);
    g_test_add_func("/bad-database/older", test_older);
    g_test_add_func("/bad-database/not-a-file", test_not_a_file);
    g_test_add_func("/bad-database/log-without-database", test_log_without_database);
    g_test_add_func("/bad-database/log-with-database", test_log_with_database);
    g_test_add_func("/bad-database/unreadable", test_unreadable);
    g_test_add_func("/bad-database/file-systems", test_file_systems);
    g_test_add_func("/bad-database/fresh", test_fresh);
    return g_test_run();
}
