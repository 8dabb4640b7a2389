/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/provision/eb-daemon-process.h"
#include "core/provision/eb-pool-quota.h"
#include "core/provision/eb-provision-client.h"
#include "core/provision/eb-run.h"
#include "tests/integration/provision/setup-world.h"
#include "tests/lib/eb-test.h"

/* Setup, interrupted wherever it changes something, and taken back: against a real daemon of its own, with an account
 * that it makes itself. */

#define ACCOUNT "ebundo"
#define WORLD_NAME "eb-undo"

/*
 * Where a run can be cut off: between an entry of the ledger and its change, and after each change. The linker puts
 * these around the calls; only in a child that was told to die do they do anything.
 */
static guint die_at, marks;

static void
mark(const char *what, const char *which)
{
    if (die_at == 0 || ++marks != die_at)
        return;
    g_printerr("%s %s\n", what, which);
    raise(SIGKILL);
}

int __real_renameat(int old_dir, const char *old_path, int new_dir, const char *new_path);
int __wrap_renameat(int old_dir, const char *old_path, int new_dir, const char *new_path);
int
__wrap_renameat(int old_dir, const char *old_path, int new_dir, const char *new_path)
{
    int result = __real_renameat(old_dir, old_path, new_dir, new_path);
    g_autofree char *once = g_strdup_printf("%s %d", new_path, (int)getpid());

    /* Nothing is written twice, so this is another place each time. */
    mark("renamed", once);
    return result;
}

gboolean __real_eb_run(const char *const *argv, guint deadline_ms, char **output, GError **error);
gboolean __wrap_eb_run(const char *const *argv, guint deadline_ms, char **output, GError **error);
gboolean
__wrap_eb_run(const char *const *argv, guint deadline_ms, char **output, GError **error)
{
    gboolean ok = __real_eb_run(argv, deadline_ms, output, error);

    mark("program", argv[0]);
    return ok;
}

JsonNode *__real_eb_provision_client_call(EbProvisionClient *self, const char *method, const char *path, JsonNode *body,
                                          guint deadline_ms, GError **error);
JsonNode *__wrap_eb_provision_client_call(EbProvisionClient *self, const char *method, const char *path, JsonNode *body,
                                          guint deadline_ms, GError **error);
JsonNode *
__wrap_eb_provision_client_call(EbProvisionClient *self, const char *method, const char *path, JsonNode *body,
                                guint deadline_ms, GError **error)
{
    JsonNode *answer = __real_eb_provision_client_call(self, method, path, body, deadline_ms, error);

    if (strcmp(method, "GET") != 0)
        mark(method, path);
    return answer;
}

gboolean __real_eb_daemon_process_start(const EbDaemonSpec *spec, GError **error);
gboolean __wrap_eb_daemon_process_start(const EbDaemonSpec *spec, GError **error);
gboolean
__wrap_eb_daemon_process_start(const EbDaemonSpec *spec, GError **error)
{
    gboolean ok = __real_eb_daemon_process_start(spec, error);

    mark("started", spec->name);
    return ok;
}

gboolean __real_eb_daemon_process_stop(const char *pid_file, int signum, guint grace_ms, GError **error);
gboolean __wrap_eb_daemon_process_stop(const char *pid_file, int signum, guint grace_ms, GError **error);
gboolean
__wrap_eb_daemon_process_stop(const char *pid_file, int signum, guint grace_ms, GError **error)
{
    gboolean ok = __real_eb_daemon_process_stop(pid_file, signum, grace_ms, error);

    mark("stopped", pid_file);
    return ok;
}

/* --- running --- */

static gboolean
run(SetupWorld *world, gboolean undo, gboolean plan, gboolean data, EbSetup **setup, GError **error)
{
    g_autoptr(EbConfig) config = NULL;
    EbSetupOptions options = setup_world_options(world, &config);

    options.plan = plan;
    options.remove_data = data;
    *setup = eb_setup_new(&options);
    return undo ? eb_setup_undo(*setup, error) : eb_setup_run(*setup, error);
}

static void
run_well(SetupWorld *world, gboolean undo)
{
    g_autoptr(EbSetup) setup = NULL;
    g_autoptr(GError) error = NULL;

    run(world, undo, FALSE, FALSE, &setup, &error);
    g_assert_no_error(error);
}

/* A kernel that has no btrfs and whose modprobe says why, in mounts of this process's own. */
static void
hide_btrfs(SetupWorld *world)
{
    g_autofree char *systems = g_build_filename(world->dir, "filesystems", NULL);
    g_autofree char *programs = g_build_filename(world->dir, "sbin", NULL);
    g_autofree char *modprobe = g_build_filename(programs, "modprobe", NULL);

    eb_test_write_file(systems, "nodev\tsysfs\n\text4\n");
    eb_test_write_file(modprobe,
                       "#!/bin/sh\necho 'modprobe: FATAL: Module btrfs not found in directory /lib/modules/test' "
                       ">&2\nexit 1\n");
    g_assert_cmpint(g_chmod(modprobe, 0755), ==, 0);
    g_assert_cmpint(unshare(CLONE_NEWNS), ==, 0);
    g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
    g_assert_cmpint(mount(systems, "/proc/filesystems", NULL, MS_BIND, NULL), ==, 0);
    /* Where programs are looked for first. */
    g_assert_cmpint(mount(programs, "/usr/local/sbin", NULL, MS_BIND, NULL), ==, 0);
}

/* In the child: `test-setup-undo --child WORLD setup|undo MARK`. */
static int
child_main(char **argv)
{
    g_autoptr(SetupWorld) world = setup_world_new(ACCOUNT, NULL, argv[2]);
    g_autoptr(EbSetup) setup = NULL;
    g_autoptr(GError) error = NULL;

    if (strcmp(argv[3], "without-btrfs") == 0)
        hide_btrfs(world);
    die_at = (guint)atoi(argv[4]);
    if (run(world, strcmp(argv[3], "undo") == 0, FALSE, FALSE, &setup, &error)) {
        g_print("%s\n", strcmp(argv[3], "undo") == 0 ? "" : setup_world_find_row(setup, "pool")->detail);
        return 0;
    }
    g_printerr("%s\n", error->message);
    return 1;
}

/* (transfer full) (nullable): where it was killed; NULL: it came to its end */
static char *
run_child(SetupWorld *world, const char *what, guint at)
{
    g_autofree char *number = g_strdup_printf("%u", at);
    char *argv[] = {(char *)"/proc/self/exe", (char *)"--child", world->dir, (char *)what, number, NULL};
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    int status = 0;

    g_assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, &text, &status, &error));
    g_assert_no_error(error);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    if (!WIFSIGNALED(status))
        g_error("%s, to be killed at %u, ended with %d: %s", what, at, status, text);
    return g_steal_pointer(&text);
}

/* Killed at the first thing that it does, again and again: each time one thing more is done. Returns the kills. */
static guint
run_with_kills(SetupWorld *world, const char *what)
{
    g_autofree char *last = NULL;
    guint at = 1, kills = 0;

    for (;;) {
        g_autofree char *where = run_child(world, what, at);
        if (where == NULL)
            break;
        kills++;
        if (g_getenv("EB_TEST_SHOW_KILLS") != NULL)
            g_printerr("# %s %u: %s", what, at, where);
        g_assert_cmpuint(kills, <, 200);
        /* The same place again: something that every run does, so past it. */
        at = g_strcmp0(where, last) == 0 ? at + 1 : 1;
        g_free(last);
        last = g_steal_pointer(&where);
    }
    return kills;
}

/* The lines that differ, which are few, and not the two texts. */
static void
assert_same(const char *before, const char *after)
{
    g_auto(GStrv) old = g_strsplit(before, "\n", -1);
    g_auto(GStrv) new = g_strsplit(after, "\n", -1);
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; old[i] != NULL; i++)
        if (!g_strv_contains((const char *const *)new, old[i]))
            g_string_append_printf(text, "\n- %s", old[i]);
    for (guint i = 0; new[i] != NULL; i++)
        if (!g_strv_contains((const char *const *)old, new[i]))
            g_string_append_printf(text, "\n+ %s", new[i]);
    if (strcmp(before, after) != 0)
        g_error("not the same:%s", text->str);
}

/* --- tests --- */

/* Wherever the kernel can, guests' disks are counted the cheap way. */
static void
assert_counts_by_owner(SetupWorld *world)
{
    g_autofree char *pool = g_build_filename(world->incus_dir, "storage-pools", "errand", NULL);

    g_assert_false(eb_pool_quota_is_due(pool));
}

static char *whole; /* what a setup without interruption makes */

/* Made and taken back, the host is what it was; again there is nothing to take back. */
static void
test_whole(void)
{
    g_autoptr(SetupWorld) world = setup_world_new(ACCOUNT, WORLD_NAME, NULL);
    g_autofree char *before = setup_world_list_host(world);
    g_autofree char *during = NULL;
    g_autofree char *planned = NULL;
    g_autofree char *after = NULL;
    g_autoptr(EbSetup) plan = NULL;
    g_autoptr(EbSetup) undo = NULL;
    g_autoptr(EbSetup) again = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_null(getpwnam(ACCOUNT));
    run_well(world, FALSE);
    whole = setup_world_describe(world);
    assert_counts_by_owner(world);
    during = setup_world_list_host(world);
    g_assert_cmpstr(before, !=, during);

    g_assert_true(run(world, TRUE, TRUE, FALSE, &plan, &error));
    g_assert_no_error(error);
    planned = setup_world_list_host(world);
    assert_same(during, planned);
    g_assert_cmpint(setup_world_find_row(plan, "account")->result, ==, EB_SETUP_PLANNED);
    g_assert_nonnull(strstr(setup_world_find_row(plan, "account")->detail, "remove the account " ACCOUNT));
    g_assert_nonnull(strstr(setup_world_find_row(plan, "pool")->detail, "remove the pool errand"));
    g_assert_nonnull(strstr(setup_world_find_row(plan, "directories")->detail, world->state_dir));

    g_assert_true(run(world, TRUE, FALSE, FALSE, &undo, &error));
    g_assert_no_error(error);
    after = setup_world_list_host(world);
    assert_same(before, after);
    g_assert_cmpint(setup_world_find_row(undo, "incusd")->result, ==, EB_SETUP_CHANGED);
    g_assert_false(g_file_test(world->ledger_dir, G_FILE_TEST_EXISTS));

    g_assert_true(run(world, TRUE, FALSE, FALSE, &again, &error));
    g_assert_cmpuint(eb_setup_get_rows(again)->len, ==, 0);
}

/* Killed everywhere, setup makes in the end what it makes at once; and undo leaves the host as it was. */
static void
test_kills(void)
{
    g_autoptr(SetupWorld) world = setup_world_new(ACCOUNT, WORLD_NAME, NULL);
    g_autofree char *before = setup_world_list_host(world);
    g_autofree char *made = NULL;
    g_autofree char *after = NULL;
    guint kills, undo_kills;

    kills = run_with_kills(world, "setup");
    made = setup_world_describe(world);
    assert_same(made, whole);
    assert_counts_by_owner(world);
    undo_kills = run_with_kills(world, "undo");
    after = setup_world_list_host(world);
    assert_same(before, after);
    g_test_message("setup was killed %u times, undo %u times", kills, undo_kills);
    g_assert_cmpuint(kills, >=, 30);
    g_assert_cmpuint(undo_kills, >=, 20);
}

static void
call(SetupWorld *world, const char *method, const char *path, const char *body)
{
    g_autofree char *socket = g_build_filename(world->incus_dir, "unix.socket", NULL);
    g_autoptr(EbProvisionClient) client = eb_provision_client_new(socket);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) answer = NULL;

    answer = eb_provision_client_call(
        client, method, path, body != NULL ? eb_json_parse(body, strlen(body), NULL, NULL) : NULL, 30000, &error);
    g_assert_no_error(error);
}

static void
assert_left(EbSetup *setup, const char *id, const char *text)
{
    const EbSetupRow *row = setup_world_find_row(setup, id);

    g_assert_nonnull(row);
    if (strstr(row->detail, text) == NULL)
        g_error("%s says \"%s\", not \"%s\"", id, row->detail, text);
}

/* What incus-user kept of the account went with its project: a later setup would be refused with it. */
static void
assert_no_way_in(SetupWorld *world)
{
    g_autofree char *socket = g_build_filename(world->incus_dir, "unix.socket", NULL);
    g_autofree char *users = g_build_filename(world->incus_dir, "users", NULL);
    EbProvisionClient *client = eb_provision_client_new(socket);
    g_autoptr(JsonNode) node =
        eb_provision_client_call(client, "GET", "/1.0/certificates?recursion=1", NULL, 10000, NULL);
    g_autoptr(GDir) dir = g_dir_open(users, 0, NULL);

    g_assert_true(node != NULL && JSON_NODE_HOLDS_ARRAY(node));
    g_assert_cmpuint(json_array_get_length(json_node_get_array(node)), ==, 0);
    g_assert_nonnull(dir);
    g_assert_null(g_dir_read_name(dir));
    eb_provision_client_free(client);
}

/* What people and others use stays, each with its reason, and goes when they no longer do. */
static void
test_others(void)
{
    g_autoptr(SetupWorld) world = setup_world_new(ACCOUNT, WORLD_NAME, NULL);
    g_autofree char *before = setup_world_list_host(world);
    g_autofree char *work = g_build_filename(world->state_dir, "home", "projects", "mine", NULL);
    g_autofree char *stored = g_build_filename(world->state_dir, "creds.env", NULL);
    g_autofree char *after = NULL;
    g_autoptr(EbSetup) first = NULL;
    g_autoptr(EbSetup) second = NULL;
    g_autoptr(EbSetup) third = NULL;
    g_autoptr(GError) error = NULL;

    run_well(world, FALSE);
    /* A project of somebody else on our pool, work of the operator's, a credential typed in, a file edited. */
    call(world, "POST", "/1.0/projects", "{\"name\":\"theirs\",\"config\":{\"features.profiles\":\"true\"}}");
    call(world, "POST", "/1.0/storage-pools/errand/volumes/custom?project=theirs", "{\"name\":\"disk\"}");
    eb_test_write_file(work, "work");
    eb_test_write_file(stored, "ERRAND_PROVIDER_CREDENTIAL=sk-secret-value\nERRAND_CRED_TYPED=sk-secret-value\n");
    eb_test_write_file(world->settings_file, "# mine now\n");

    g_assert_true(run(world, TRUE, FALSE, FALSE, &first, &error));
    g_assert_no_error(error);
    assert_left(first, "pool", "left the pool errand: used by");
    assert_left(first, "pool", "theirs");
    assert_left(first, "incusd", "left incusd running");
    assert_left(first, "directories", "1 projects, 0 sessions and 0 tries are in it");
    assert_left(first, "account", "belongs to it");
    assert_left(first, "credentials", "ERRAND_CRED_TYPED was put into");
    assert_left(first, "settings", "it was changed since setup wrote it");
    assert_no_way_in(world);
    g_assert_nonnull(getpwnam(ACCOUNT));
    g_assert_true(g_file_test(work, G_FILE_TEST_EXISTS));

    /* The same again: nothing changes. */
    g_assert_true(run(world, TRUE, FALSE, FALSE, &second, &error));
    g_assert_no_error(error);
    for (guint i = 0; i < eb_setup_get_rows(second)->len; i++)
        g_assert_cmpint(((EbSetupRow *)eb_setup_get_rows(second)->pdata[i])->result, ==, EB_SETUP_OK);

    call(world, "DELETE", "/1.0/storage-pools/errand/volumes/custom/disk?project=theirs", NULL);
    call(world, "DELETE", "/1.0/projects/theirs", NULL);
    g_assert_cmpint(g_unlink(world->settings_file), ==, 0);
    g_assert_true(run(world, TRUE, FALSE, TRUE, &third, &error));
    g_assert_no_error(error);
    after = setup_world_list_host(world);
    assert_same(before, after);
}

/* A service at work, or the ids of a guest in use. */
static void
test_in_use(void)
{
    g_autoptr(SetupWorld) world = setup_world_new(ACCOUNT, WORLD_NAME, NULL);
    g_autofree char *before = setup_world_list_host(world);
    g_autofree char *lock = g_build_filename(world->state_dir, "lock", NULL);
    g_autofree char *during = NULL;
    g_autofree char *still = NULL;
    g_autofree char *after = NULL;
    g_autoptr(EbSetup) refused = NULL;
    g_autoptr(EbSetup) undone = NULL;
    g_autoptr(GError) error = NULL;
    int fd;

    run_well(world, FALSE);
    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(flock(fd, LOCK_EX), ==, 0);
    during = setup_world_list_host(world);
    g_assert_false(run(world, TRUE, FALSE, FALSE, &refused, &error));
    eb_test_assert_error(error, EB_ERROR_BUSY, "provision.sessions-run", "end it first");
    g_clear_error(&error);
    still = setup_world_list_host(world);
    assert_same(during, still);
    close(fd);
    /* `down` ends no try: another word for it. */
    g_autofree char *trial = g_build_filename(world->state_dir, "try", "abc", NULL);
    g_autofree char *trial_lock = g_build_filename(trial, "lock", NULL);
    g_autoptr(EbSetup) tried = NULL;
    g_assert_cmpint(g_mkdir(trial, 0700), ==, 0);
    fd = open(trial_lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(flock(fd, LOCK_EX), ==, 0);
    g_assert_false(run(world, TRUE, FALSE, FALSE, &tried, &error));
    eb_test_assert_error(error, EB_ERROR_BUSY, "provision.sessions-run", "the try abc runs: end it first (Ctrl-C");
    g_clear_error(&error);
    close(fd);
    g_assert_cmpint(g_unlink(trial_lock), ==, 0);
    g_assert_cmpint(g_rmdir(trial), ==, 0);
    g_assert_true(run(world, TRUE, FALSE, FALSE, &undone, &error));
    g_assert_no_error(error);
    after = setup_world_list_host(world);
    assert_same(before, after);
}

/* A run that failed left its daemons and the account: by its own ledger. */
static void
clean_up(void)
{
    g_autoptr(GDir) dir = g_dir_open(g_get_tmp_dir(), 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(g_get_tmp_dir(), name, NULL);
        g_autofree char *ledger = g_build_filename(path, "i-setup", NULL);
        if (strstr(name, WORLD_NAME) == NULL || !g_file_test(ledger, G_FILE_TEST_IS_DIR))
            continue;
        g_autoptr(SetupWorld) world = setup_world_new(ACCOUNT, NULL, path);
        g_autoptr(EbSetup) setup = NULL;
        if (run(world, TRUE, FALSE, TRUE, &setup, NULL))
            eb_test_remove_tree(path);
    }
}

/* A module that cannot be had: its own words are told, the pool is a directory, and no half of another is left. */
static void
test_without_btrfs(void)
{
    g_autoptr(SetupWorld) world = setup_world_new(ACCOUNT, WORLD_NAME, NULL);
    g_autofree char *disk = g_build_filename(world->incus_dir, "disks", "errand.img", NULL);
    char *argv[] = {(char *)"/proc/self/exe", (char *)"--child", world->dir,
                    (char *)"without-btrfs",  (char *)"0",       NULL};
    g_autofree char *output = NULL;
    g_autofree char *errors = NULL;
    g_autofree char *made = NULL;
    g_autoptr(GError) error = NULL;
    int status = 0;

    g_assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &output, &errors, &status, &error));
    g_assert_no_error(error);
    if (status != 0)
        g_error("setup ended with %d: %s", status, errors);
    g_assert_nonnull(strstr(output, "as a plain directory (E-05: the kernel has no btrfs: modprobe ended with 1: "
                                    "modprobe: FATAL: Module btrfs not found"));
    made = setup_world_describe(world);
    g_assert_nonnull(strstr(made, "driver \"dir\""));
    g_assert_null(strstr(made, "driver \"btrfs\""));
    g_assert_false(g_file_test(disk, G_FILE_TEST_EXISTS));
    run_well(world, TRUE);
}

int
main(int argc, char **argv)
{
    const char *reason = setup_world_skip_reason();

    if (argc == 5 && strcmp(argv[1], "--child") == 0)
        return child_main(argv);
    eb_test_init(&argc, &argv);
    if (reason != NULL) {
        g_print("1..0 # SKIP %s\n", reason);
        return 77;
    }
    clean_up();
    g_test_add_func("/setup-undo/whole", test_whole);
    g_test_add_func("/setup-undo/kills", test_kills);
    g_test_add_func("/setup-undo/others", test_others);
    g_test_add_func("/setup-undo/in-use", test_in_use);
    g_test_add_func("/setup-undo/without-btrfs", test_without_btrfs);
    return g_test_run();
}
