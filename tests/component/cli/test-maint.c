/* SPDX-License-Identifier: MIT */
/* Upkeep as an operator types it, without a service: backup, restore, gc, bad databases. */
#include "core/state/eb-store.h"
#include "tests/component/cli/eb-test-program.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW "INSERT INTO session (id, project, agent, agent_session, state, started, last_activity) VALUES "

/* A host with a state directory of the account that its service runs as: nobody for root, else the caller. */
typedef struct {
    char *dir;
    char *state;
    char *config;
} Host;

static Host
make_host(void)
{
    Host host = {.dir = eb_test_temp_dir("maint")};
    host.state = g_build_filename(host.dir, "state", NULL);
    host.config = g_build_filename(host.dir, "eb.toml", NULL);
    g_autofree char *text =
        g_strdup_printf("[service]\naccount = \"%s\"\nstate_dir = \"%s\"\nproject_root = \"%s/projects\"\n"
                        "[plugins]\nenabled = [\"incus\"]\n[plugin.incus]\nsocket = \"%s/none.sock\"\n",
                        geteuid() == 0 ? "nobody" : g_get_user_name(), host.state, host.dir, host.dir);
    g_assert_cmpint(chmod(host.dir, 0755), ==, 0);
    g_assert_cmpint(g_mkdir(host.state, 0700), ==, 0);
    eb_test_write_file(host.config, text);
    g_assert_cmpint(chmod(host.config, 0600), ==, 0);
    return host;
}

static void
clear(Host *host)
{
    g_free(host->dir);
    g_free(host->state);
    g_free(host->config);
}

static void
give(const char *path)
{
    if (geteuid() == 0)
        g_assert_cmpint(chown(path, 65534, 65534), ==, 0);
}

static char *
database(const Host *host)
{
    return g_build_filename(host->state, "state.db", NULL);
}

static void
fill(Host *host, const char *rows)
{
    g_autofree char *path = database(host);
    g_autoptr(GError) error = NULL;
    sqlite3 *db = eb_store_open_blocking(path, &error);
    g_assert_no_error(error);
    g_assert_cmpint(sqlite3_exec(db, rows, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
    give(path);
    give(host->state);
}

static EbTestRun run(const Host *host, const char *format, ...) G_GNUC_PRINTF(2, 3);
static EbTestRun
run(const Host *host, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *line = g_strdup_vprintf(format, args);
    va_end(args);
    return eb_test_run_program(host->config, NULL, line);
}

/* Into an empty host: the same list, to the letter. */
static void
test_round_trip(void)
{
    Host from = make_host(), to = make_host();
    give(to.state);
    fill(&from, ROW "('aaaaaaaaaaaa','web','kage','acp-1','ended',1000,2000),"
                    "('bbbbbbbbbbbb','api','kage','acp-2','ended',3000,4000)");
    g_auto(EbTestRun) backup = run(&from, "maint backup %s/backup.tar", from.dir);
    g_assert_cmpstr(backup.err, ==, "");
    g_assert_cmpint(backup.code, ==, 0);
    g_assert_nonnull(strstr(backup.out, "2 sessions"));
    g_assert_nonnull(strstr(backup.out, "not in it: credentials, projects"));
    g_autofree char *file = g_build_filename(from.dir, "backup.tar", NULL);
    struct stat info;
    g_assert_cmpint(stat(file, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    g_assert_cmpuint(info.st_uid, ==, geteuid());

    g_auto(EbTestRun) restore = run(&to, "maint restore %s", file);
    g_assert_cmpstr(restore.err, ==, "");
    g_assert_cmpint(restore.code, ==, 0);
    g_auto(EbTestRun) before = run(&from, "sessions list --json");
    g_auto(EbTestRun) after = run(&to, "sessions list --json");
    g_assert_nonnull(strstr(before.out, "aaaaaaaaaaaa"));
    g_assert_cmpstr(before.out, ==, after.out);
    g_autofree char *kept = g_build_filename(to.state, "restored-etc", "errand-box.toml", NULL);
    g_assert_true(g_file_test(kept, G_FILE_TEST_IS_REGULAR));

    /* once more: not over what is there, unless asked for; then the old one is kept */
    g_auto(EbTestRun) refused = run(&to, "maint restore %s", file);
    g_assert_cmpint(refused.code, ==, 2);
    g_assert_nonnull(strstr(refused.err, "--replace"));
    g_auto(EbTestRun) replaced = run(&to, "maint restore %s --replace --json", file);
    g_assert_cmpint(replaced.code, ==, 0);
    g_assert_nonnull(strstr(replaced.out, "\"replaced\":\"replaced-"));
    g_auto(EbTestRun) again = run(&to, "sessions list --json");
    g_assert_cmpstr(before.out, ==, again.out);
    clear(&from);
    clear(&to);
}

/* A failed backup leaves no file, and the one that was there before. */
static void
test_backup_fails(void)
{
    Host host = make_host();
    give(host.state);
    g_autofree char *file = g_build_filename(host.dir, "backup.tar", NULL);
    static const char LAST[] = "errand-box-backup\0 the last one";
    g_assert_true(g_file_set_contents(file, LAST, sizeof LAST, NULL));
    g_auto(EbTestRun) nothing = run(&host, "maint backup %s", file);
    g_assert_cmpint(nothing.code, ==, 2);
    g_assert_nonnull(strstr(nothing.err, "nothing to back up yet"));
    g_autofree char *content = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(file, &content, &length, NULL));
    g_assert_cmpmem(content, length, LAST, sizeof LAST);
    g_autoptr(GDir) dir = g_dir_open(host.dir, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL)
        g_assert_false(g_str_has_prefix(name, "backup.tar."));
    /* What is no backup was not meant: a slip would cost a configuration, or /dev/null. */
    g_autofree char *other = g_build_filename(host.dir, "other.toml", NULL);
    g_autofree char *pipe = g_build_filename(host.dir, "pipe", NULL);
    eb_test_write_file(other, "# mine, and longer than a marker\n");
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    g_auto(EbTestRun) foreign = run(&host, "maint backup %s", other);
    g_assert_cmpint(foreign.code, ==, 2);
    g_assert_nonnull(strstr(foreign.err, "is there and no backup: name another file"));
    g_auto(EbTestRun) special = run(&host, "maint backup %s", pipe);
    g_assert_cmpint(special.code, ==, 2);
    g_assert_nonnull(strstr(special.err, "is there and no backup"));
    g_auto(EbTestRun) elsewhere = run(&host, "maint backup %s/no/such/dir/backup.tar", host.dir);
    g_assert_cmpint(elsewhere.code, ==, 2);
    g_auto(EbTestRun) directory = run(&host, "maint restore %s", host.dir);
    g_assert_cmpint(directory.code, ==, 2);
    g_assert_nonnull(strstr(directory.err, "no regular file"));
    clear(&host);
}

/* What an operator reads when the database cannot be used, and that nothing changed; a restore then works. */
static void
test_bad_databases(void)
{
    static const struct {
        const char *content;
        gssize length;
        const char *said;
    } bad[] = {
        {"", 0, "is empty: it was cut off"},
        {"this is no database, and long enough to be read as a header of one, surely so, is it not?", -1,
         "errand-box maint restore FILE --replace"},
        {"SQLite format 3\0", 16, "errand-box maint restore FILE --replace"},
    };
    Host host = make_host();
    fill(&host, ROW "('aaaaaaaaaaaa','web','kage','acp-1','ended',1000,2000)");
    g_autofree char *path = database(&host);
    g_autofree char *file = g_build_filename(host.dir, "backup.tar", NULL);
    g_auto(EbTestRun) backup = run(&host, "maint backup %s", file);
    g_assert_cmpint(backup.code, ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_true(g_file_set_contents(path, bad[i].content, bad[i].length, NULL));
        give(path);
        g_auto(EbTestRun) gc = run(&host, "maint gc");
        g_assert_cmpint(gc.code, ==, 2);
        g_assert_nonnull(strstr(gc.err, bad[i].said));
        g_assert_nonnull(strstr(gc.err, path));
        g_auto(EbTestRun) unread = run(&host, "sessions list --json");
        g_assert_cmpint(unread.code, ==, 2);
        g_assert_cmpstr(unread.out, ==, "{\"sessions\":[]}\n");
        g_assert_nonnull(strstr(unread.err, bad[i].said));
        g_auto(EbTestRun) plain = run(&host, "maint restore %s", file);
        g_assert_cmpint(plain.code, ==, 2);
        g_auto(EbTestRun) restore = run(&host, "maint restore %s --replace", file);
        g_assert_cmpstr(restore.err, ==, "");
        g_assert_cmpint(restore.code, ==, 0);
        g_auto(EbTestRun) list = run(&host, "sessions list");
        const char *row = strstr(list.out, "aaaaaaaaaaaa");
        g_assert_nonnull(row);
        g_assert_null(strstr(row + 1, "aaaaaaaaaaaa"));
    }
    /* gone, with a session's directory still there */
    g_autofree char *session = g_build_filename(host.state, "sessions", "aaaaaaaaaaaa", NULL);
    g_assert_cmpint(g_mkdir_with_parents(session, 0755), ==, 0);
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_auto(EbTestRun) gone = run(&host, "maint gc");
    g_assert_cmpint(gone.code, ==, 2);
    g_assert_nonnull(strstr(gone.err, "is gone, but 1 sessions have directories"));
    g_assert_true(g_file_test(session, G_FILE_TEST_IS_DIR));
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    clear(&host);
}

static void
test_gc(void)
{
    Host host = make_host();
    fill(&host, ROW "('aaaaaaaaaaaa','web','kage','acp-1','ended',1000,2000)");
    g_autofree char *locks = g_build_filename(host.state, "locks", NULL);
    g_autofree char *lock = g_build_filename(locks, "project-web.lock", NULL);
    g_assert_cmpint(g_mkdir(locks, 0700), ==, 0);
    eb_test_write_file(lock, "1\n");
    give(locks);
    give(lock);
    g_auto(EbTestRun) plan = run(&host, "maint gc --plan --json");
    g_assert_cmpint(plan.code, ==, 0);
    g_assert_nonnull(strstr(plan.out, "{\"class\":\"locks\",\"before\":1,\"removed\":0,\"after\":1,\"bytes\":0}"));
    g_assert_true(g_file_test(lock, G_FILE_TEST_EXISTS));
    g_auto(EbTestRun) gc = run(&host, "maint gc --json");
    g_assert_cmpint(gc.code, ==, 0);
    g_assert_nonnull(strstr(gc.out, "{\"class\":\"locks\",\"before\":1,\"removed\":1,\"after\":0,\"bytes\":0}"));
    g_assert_nonnull(strstr(gc.out, "unknown: "));
    g_assert_false(g_file_test(lock, G_FILE_TEST_EXISTS));
    g_auto(EbTestRun) bad = run(&host, "maint gc --free lots");
    g_assert_cmpint(bad.code, ==, 2);
    g_auto(EbTestRun) days = run(&host, "maint images --days 0");
    g_assert_cmpint(days.code, ==, 2);
    clear(&host);
}

/* Somebody works on the state: exit 4, which names him, and the state is as it was. */
static void
test_in_use(void)
{
    Host host = make_host();
    fill(&host, ROW "('aaaaaaaaaaaa','web','kage','acp-1','ended',1000,2000)");
    g_autofree char *file = g_build_filename(host.dir, "backup.tar", NULL);
    g_autofree char *lock = g_build_filename(host.state, "lock", NULL);
    g_autofree char *pid = g_strdup_printf("%d\n", (int)getpid());
    g_auto(EbTestRun) backup = run(&host, "maint backup %s", file);
    g_assert_cmpint(backup.code, ==, 0);
    eb_test_write_file(lock, pid);
    give(lock);
    int held = open(lock, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(flock(held, LOCK_EX | LOCK_NB), ==, 0);
    g_autofree char *named = g_strdup_printf("process %d", (int)getpid());
    g_auto(EbTestRun) restore = run(&host, "maint restore %s --replace", file);
    g_assert_cmpint(restore.code, ==, 4);
    g_assert_nonnull(strstr(restore.err, named));
    g_assert_nonnull(strstr(restore.err, "errand-box down"));
    g_auto(EbTestRun) gc = run(&host, "maint gc");
    g_assert_cmpint(gc.code, ==, 4);
    g_assert_nonnull(strstr(gc.err, named));
    /* a backup needs no lock */
    g_auto(EbTestRun) beside = run(&host, "maint backup %s", file);
    g_assert_cmpint(beside.code, ==, 0);
    close(held);
    clear(&host);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/maint/round-trip", test_round_trip);
    g_test_add_func("/maint/backup-fails", test_backup_fails);
    g_test_add_func("/maint/bad-databases", test_bad_databases);
    g_test_add_func("/maint/gc", test_gc);
    g_test_add_func("/maint/in-use", test_in_use);
    return g_test_run();
}
