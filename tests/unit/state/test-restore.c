/* SPDX-License-Identifier: MIT */
/* Backup and restore of a real state: the same afterwards, old or new at every moment, and only our own backups. */
#include "core/state/eb-backup.h"
#include "core/state/eb-restore.h"
#include "core/state/eb-store.h"
#include "eb-test.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define ROW "INSERT INTO session (id, project, agent, agent_session, state, started, last_activity) VALUES "

static guint stop_at;

static sqlite3 *
open_db(const char *dir, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    g_mkdir_with_parents(parent, 0700);
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    return db;
}

static void
run(sqlite3 *db, const char *sql)
{
    g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
}

/* (transfer full): "-" when there is no database that can be used */
static char *
sessions_of(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return g_strdup("-");
    sqlite3 *db = eb_store_open_blocking(path, NULL);
    if (db == NULL)
        return g_strdup("-");
    sqlite3_stmt *row = eb_store_prepare(
        db, "SELECT ifnull(group_concat(id || ':' || state || ':' || project, ' '), '') FROM session", NULL);
    g_assert_cmpint(sqlite3_step(row), ==, SQLITE_ROW);
    char *text = eb_store_column_dup(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return text;
}

static char *
make_state(const char *rows)
{
    char *dir = eb_test_temp_dir("restore");
    g_autofree char *session = g_build_filename(dir, "sessions", "aaaaaaaaaaaa", "state", NULL);
    sqlite3 *db = open_db(dir, "state.db");
    g_mkdir_with_parents(session, 0700);
    run(db, rows);
    sqlite3_close(db);
    return dir;
}

static char *
back_up(const char *dir)
{
    g_autoptr(GPtrArray) config = g_ptr_array_new_with_free_func((GDestroyNotify)eb_backup_config_free);
    g_autoptr(GError) error = NULL;
    g_autofree char *out = eb_test_temp_dir("backup");
    char *path = g_build_filename(out, "backup.tar", NULL);
    EbBackupConfig *file = g_new0(EbBackupConfig, 1);
    file->name = g_strdup("errand-box.toml");
    file->content = g_bytes_new_static("# kept\n", 7);
    g_ptr_array_add(config, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    g_autoptr(EbArchiveManifest) manifest = eb_backup_write(dir, fd, config, &error);
    g_assert_no_error(error);
    g_assert_nonnull(manifest);
    close(fd);
    return path;
}

static EbArchiveManifest *
restore(const char *dir, const char *path, char **aside, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    EbArchiveManifest *manifest = eb_restore_read(dir, fd, aside, error);
    close(fd);
    return manifest;
}

static gboolean
has(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* With a writer that has the database open, as the service has: what it committed is in the backup. */
static void
test_same_again(void)
{
    g_autofree char *from = make_state(ROW "('aaaaaaaaaaaa','web','a','acp-1','ended',1,2)");
    g_autofree char *to = eb_test_temp_dir("empty");
    sqlite3 *live = open_db(from, "state.db");
    sqlite3 *one_try = open_db(from, "try/0123abcd/state.db");
    run(live, ROW "('bbbbbbbbbbbb','api','a','acp-2','working',3,4)");
    run(live, "INSERT INTO message (transport, id, body, state, received, changed) VALUES ('t','m','x','started',1,1);"
              "INSERT INTO watermark VALUES ('t','','m');"
              "INSERT INTO event VALUES ('aaaaaaaaaaaa',1,1,1,'text','said')");
    run(one_try, ROW "('cccccccccccc','try','a','acp-3','ended',1,2)");
    g_autofree char *path = back_up(from);
    run(live, "DELETE FROM session");
    sqlite3_close(live);
    sqlite3_close(one_try);

    g_autofree char *aside = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(eb_restore_is_empty(to));
    g_autoptr(EbArchiveManifest) manifest = restore(to, path, &aside, &error);
    g_assert_no_error(error);
    g_assert_cmpint(manifest->sessions, ==, 3);
    g_assert_cmpint(manifest->schema, ==, EB_STORE_VERSION);
    g_autofree char *sessions = sessions_of(to, "state.db");
    g_autofree char *tries = sessions_of(to, "try/0123abcd/state.db");
    g_assert_cmpstr(sessions, ==, "aaaaaaaaaaaa:ended:web bbbbbbbbbbbb:working:api");
    g_assert_cmpstr(tries, ==, "cccccccccccc:ended:try");
    g_assert_true(has(to, "restored-etc/errand-box.toml"));
    g_assert_false(eb_restore_is_empty(to));
    /* what was said then is not acted upon again, and what was said since is not taken for missed */
    sqlite3 *db = open_db(to, "state.db");
    sqlite3_stmt *row = eb_store_prepare(
        db, "SELECT (SELECT state FROM message) || (SELECT count(*) FROM watermark) || (SELECT body FROM event)", NULL);
    g_assert_cmpint(sqlite3_step(row), ==, SQLITE_ROW);
    g_assert_cmpstr((const char *)sqlite3_column_text(row, 0), ==, "done0said");
    sqlite3_finalize(row);
    sqlite3_close(db);
    g_assert_false(has(to, "restore.partial"));
    g_assert_false(has(to, "restore.moving"));
}

static gboolean
stop_here(guint step)
{
    return step < stop_at;
}

/* Killed before each step in turn: the next to take the lock finds the old state or the new one, whole. */
static void
test_interrupted(void)
{
    g_autofree char *from = make_state(ROW "('aaaaaaaaaaaa','new','a','acp-1','ended',1,2)");
    g_autofree char *path = back_up(from);
    gboolean ended = FALSE;
    guint old_seen = 0, new_seen = 0;
    for (stop_at = 0; !ended; stop_at++) {
        g_autofree char *to = make_state(ROW "('dddddddddddd','old','a','acp-1','ended',1,2)");
        g_autoptr(GError) error = NULL;
        g_autofree char *aside = NULL;
        eb_restore_set_hook(stop_here);
        g_autoptr(EbArchiveManifest) manifest = restore(to, path, &aside, &error);
        ended = manifest != NULL;
        g_assert_true(ended || error != NULL);
        eb_restore_set_hook(NULL);
        gboolean pending = eb_restore_is_pending(to);
        g_autofree char *database = g_build_filename(to, "state.db", NULL);
        if (pending) {
            g_autoptr(GError) refused = NULL;
            g_assert_null(eb_store_open_blocking(database, &refused));
            eb_test_assert_error(refused, EB_ERROR_BUSY, "state.restoring", "errand-box up");
        }
        g_clear_pointer(&aside, g_free);
        g_clear_error(&error);
        g_assert_true(eb_restore_settle(to, &aside, &error));
        g_assert_no_error(error);
        g_autofree char *sessions = sessions_of(to, "state.db");
        if (strcmp(sessions, "dddddddddddd:ended:old") == 0) {
            old_seen++;
            g_assert_false(pending);
            g_assert_true(has(to, "sessions/aaaaaaaaaaaa/state"));
        } else {
            new_seen++;
            g_assert_cmpstr(sessions, ==, "aaaaaaaaaaaa:ended:new");
            g_assert_false(has(to, "sessions/aaaaaaaaaaaa"));
        }
        g_autofree char *kept = aside != NULL ? g_build_filename(aside, "state.db", NULL) : NULL;
        g_autofree char *kept_sessions = kept != NULL ? sessions_of(to, kept) : NULL;
        if (kept != NULL)
            g_assert_cmpstr(kept_sessions, ==, "dddddddddddd:ended:old");
        g_assert_false(has(to, "restore.partial"));
        g_assert_false(eb_restore_is_pending(to));
    }
    g_assert_cmpuint(old_seen, ==, 1);
    g_assert_cmpuint(new_seen, >, 6);
}

/* The state stays as it is when the backup is none, another program's, or of a newer version. */
static void
test_refused(void)
{
    static const struct {
        const char *sql;
        const char *reason;
    } bad[] = {
        {"PRAGMA user_version = 99", "state.newer"},
        {"CREATE TRIGGER t AFTER UPDATE ON message BEGIN DELETE FROM session; END", "backup.foreign"},
        {"CREATE TABLE other (x)", "backup.foreign"},
        {"CREATE VIEW session2 AS SELECT 1", "backup.foreign"},
        /* said before anything is written, as the way to this version would */
        {"PRAGMA user_version = 2; CREATE TABLE other (x)", "backup.foreign"},
        {ROW "('../x','web','a','acp-1','ended',1,2)", "backup.foreign"},
        {ROW "('..','web','a','acp-1','ended',1,2)", "backup.foreign"},
        {ROW "('','web','a','acp-1','ended',1,2)", "backup.foreign"},
    };
    g_autofree char *to = make_state(ROW "('dddddddddddd','old','a','acp-1','ended',1,2)");
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *from = make_state(bad[i].sql);
        g_autofree char *path = back_up(from);
        g_autofree char *aside = NULL;
        g_autoptr(GError) error = NULL;
        g_assert_null(restore(to, path, &aside, &error));
        g_assert_cmpstr(eb_error_get_reason(error), ==, bad[i].reason);
    }
    g_autofree char *text = g_build_filename(to, "text", NULL);
    eb_test_write_file(text, "this is no tar at all");
    g_autofree char *aside = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_null(restore(to, text, &aside, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "backup.truncated", NULL);
    g_autofree char *sessions = sessions_of(to, "state.db");
    g_assert_cmpstr(sessions, ==, "dddddddddddd:ended:old");
    g_assert_false(has(to, "restore.partial"));
}

static void
test_nothing_and_damaged(void)
{
    g_autofree char *dir = eb_test_temp_dir("nothing");
    g_autoptr(GPtrArray) config = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    g_assert_null(eb_backup_write(dir, fd, config, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "backup.nothing", "nothing to back up");
    g_clear_error(&error);
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    eb_test_write_file(path, "not a database, but long enough to look at the header of one; really, it is none");
    g_assert_null(eb_backup_write(dir, fd, config, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "state.damaged", NULL);
    /* a damaged one is not "empty": it is replaced with consent alone */
    g_assert_false(eb_restore_is_empty(dir));
    g_autoptr(GDir) left = g_dir_open(dir, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(left)) != NULL)
        g_assert_false(g_str_has_prefix(name, EB_BACKUP_TEMP_PREFIX));
    close(fd);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/restore/same-again", test_same_again);
    g_test_add_func("/restore/interrupted", test_interrupted);
    g_test_add_func("/restore/refused", test_refused);
    g_test_add_func("/restore/nothing-and-damaged", test_nothing_and_damaged);
    return g_test_run();
}
