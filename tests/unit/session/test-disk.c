/* SPDX-License-Identifier: MIT */
/* Directories, locks and removal on a real file system; compensations. */
#include "core/base/eb-tree-remove.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-dirs.h"
#include "core/session/eb-undo.h"
#include "eb-test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *
path_of(const char *dir, const char *name)
{
    return g_build_filename(dir, name, NULL);
}

static gboolean
exists(const char *dir, const char *name)
{
    g_autofree char *path = path_of(dir, name);
    struct stat info;
    return lstat(path, &info) == 0;
}

static void
test_links_are_not_followed(void)
{
    g_autofree char *dir = eb_test_temp_dir("tree");
    g_autofree char *kept = path_of(dir, "kept/file");
    g_autofree char *kept_dir = path_of(dir, "kept");
    g_autofree char *file = path_of(dir, "tree/a/file");
    g_autofree char *link = path_of(dir, "tree/a/link");
    g_autofree char *link_dir = path_of(dir, "tree/dirlink");
    g_autofree char *locked = path_of(dir, "tree/a");
    eb_test_write_file(kept, "stays");
    eb_test_write_file(file, "goes");
    g_assert_cmpint(symlink(kept, link), ==, 0);
    g_assert_cmpint(symlink(kept_dir, link_dir), ==, 0);
    g_assert_cmpint(chmod(locked, 0), ==, 0);
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    g_autoptr(GError) error = NULL;
    guint64 left = 9;
    g_assert_true(eb_tree_remove_at(fd, "tree", 10000, &left, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(left, ==, 0);
    g_assert_false(exists(dir, "tree"));
    g_assert_true(exists(dir, "kept/file"));
    g_assert_true(eb_tree_remove_at(fd, "tree", 10000, NULL, &error));
    /* A link in place of the tree itself goes alone. */
    g_autofree char *top = path_of(dir, "top");
    g_assert_cmpint(symlink(kept_dir, top), ==, 0);
    g_assert_true(eb_tree_remove_at(fd, "top", 10000, NULL, &error));
    g_assert_true(exists(dir, "kept/file"));
    close(fd);
}

static void
test_deep_tree(void)
{
    g_autofree char *dir = eb_test_temp_dir("deep");
    int top = open(dir, O_RDONLY | O_DIRECTORY);
    g_assert_cmpint(mkdirat(top, "tree", 0700), ==, 0);
    int at = openat(top, "tree", O_RDONLY | O_DIRECTORY);
    for (guint i = 0; i < 3000; i++) {
        g_assert_cmpint(mkdirat(at, "d", 0700), ==, 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
        g_assert_cmpint(next, >=, 0);
        close(at);
        at = next;
    }
    close(at);
    g_autoptr(GError) error = NULL;
    g_assert_true(eb_tree_remove_at(top, "tree", 60000, NULL, &error));
    g_assert_no_error(error);
    g_assert_false(exists(dir, "tree"));
    close(top);
}

/* As another account: what sits in a directory of a further uid stays, is counted, and the rest goes. */
static int
remove_as_nobody(const char *dir)
{
    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 77;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    g_autoptr(GError) error = NULL;
    guint64 left = 0;
    if (fd < 0 || eb_tree_remove_at(fd, "tree", 10000, &left, &error))
        return 1;
    return left == 1 && error->code == EB_ERROR_DENIED ? 0 : 2;
}

static void
test_foreign_uid(void)
{
    if (geteuid() != 0) {
        g_test_skip("needs root to make files of two accounts");
        return;
    }
    g_autofree char *dir = eb_test_temp_dir("foreign");
    g_autofree char *tree = path_of(dir, "tree");
    g_autofree char *own = path_of(dir, "tree/own");
    g_autofree char *foreign = path_of(dir, "tree/foreign");
    g_autofree char *inside = path_of(dir, "tree/foreign/inside");
    g_autofree char *loose = path_of(dir, "tree/loose");
    eb_test_write_file(own, "x");
    eb_test_write_file(inside, "x");
    eb_test_write_file(loose, "x");
    g_assert_cmpint(chmod(dir, 0711), ==, 0);
    const char *const owned[] = {dir, tree, own};
    for (guint i = 0; i < G_N_ELEMENTS(owned); i++)
        g_assert_cmpint(chown(owned[i], 65534, 65534), ==, 0);
    g_assert_cmpint(chmod(foreign, 0700), ==, 0);
    pid_t child = fork();
    g_assert_cmpint(child, >=, 0);
    if (child == 0)
        _exit(remove_as_nobody(dir));
    int status = 0;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
    g_assert_false(exists(tree, "own"));
    g_assert_false(exists(tree, "loose")); /* of root, but in a directory of ours */
    g_assert_true(exists(tree, "foreign/inside"));
}

static void
test_lock(void)
{
    g_autofree char *dir = eb_test_temp_dir("lock");
    g_autoptr(GError) error = NULL;
    EbDirLock *first = eb_dir_lock_take(dir, "a.lock", &error);
    g_assert_no_error(error);
    g_assert_true(eb_dir_lock_is_held(dir, "a.lock"));
    g_assert_false(eb_dir_lock_is_held(dir, "b.lock"));
    g_assert_null(eb_dir_lock_take(dir, "a.lock", &error));
    g_autofree char *holder = g_strdup_printf("process %d holds", (int)getpid());
    eb_test_assert_error(error, EB_ERROR_LOCKED, "lock.held", holder);
    g_clear_error(&error);
    eb_dir_lock_release(first);
    g_assert_false(exists(dir, "a.lock"));
    /* A file that a dead process left is no lock. */
    g_autofree char *stale = path_of(dir, "a.lock");
    eb_test_write_file(stale, "1\n");
    g_autoptr(EbDirLock) second = eb_dir_lock_take(dir, "a.lock", &error);
    g_assert_no_error(error);
    /* Nor is a link followed. */
    g_autofree char *link = path_of(dir, "c.lock");
    g_assert_cmpint(symlink("/etc/passwd", link), ==, 0);
    g_assert_null(eb_dir_lock_take(dir, "c.lock", &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "lock.open", "c.lock");
}

static EbSessionDirsPlan
make_plan(const char *root, const char *projects, GBytes *program)
{
    return (EbSessionDirsPlan){.state_root = root,
                               .project_root = projects,
                               .id = "abcdefghij01",
                               .project = "web",
                               .launch = program,
                               .relay = program,
                               .uid = geteuid(),
                               .gid = getegid()};
}

static void
test_dirs(void)
{
    g_autofree char *root = eb_test_temp_dir("root");
    g_autofree char *projects = eb_test_temp_dir("projects");
    g_autoptr(GBytes) program = g_bytes_new_static("#!program", 9);
    EbSessionDirsPlan plan = make_plan(root, projects, program);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSessionDirs) dirs = eb_session_dirs_make(&plan, &error);
    g_assert_no_error(error);
    g_assert_true(dirs->made_project);
    struct stat info;
    g_autofree char *launch = path_of(dirs->run, "launch");
    g_assert_cmpint(stat(launch, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0755);
    g_assert_cmpint(stat(dirs->run, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0755);
    g_assert_cmpint(stat(dirs->state, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0700);
    /* Again, for a session that goes on: the guest left a link in its state; nothing of ours touches it. */
    g_autofree char *trap = path_of(dirs->state, "home");
    g_assert_cmpint(symlink("/etc", trap), ==, 0);
    g_assert_true(eb_session_dirs_remove_run(root, plan.id, &error));
    g_assert_false(exists(dirs->session, "run"));
    plan.resume = TRUE;
    g_autoptr(EbSessionDirs) again = eb_session_dirs_make(&plan, &error);
    g_assert_no_error(error);
    g_assert_false(again->made_project);
    g_assert_true(exists(dirs->state, "home"));
    g_autoptr(GPtrArray) ids = eb_session_dirs_list(root);
    g_assert_cmpuint(ids->len, ==, 1);
    g_assert_true(eb_session_dirs_remove(root, plan.id, &error));
    g_assert_true(eb_session_dirs_remove(root, plan.id, &error));
    g_assert_false(exists(root, "sessions/abcdefghij01"));
    plan.id = "abcdefghij02";
    g_assert_null(eb_session_dirs_make(&plan, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "session.state-gone", "abcdefghij02");
    g_assert_true(exists(projects, "web"));
}

static void
test_dirs_refused(void)
{
    g_autofree char *root = eb_test_temp_dir("root");
    g_autofree char *projects = eb_test_temp_dir("projects");
    g_autoptr(GBytes) program = g_bytes_new_static("x", 1);
    EbSessionDirsPlan plan = make_plan(root, projects, program);
    g_autoptr(GError) error = NULL;
    g_autofree char *file = path_of(projects, "web");
    eb_test_write_file(file, "a file");
    g_assert_null(eb_session_dirs_make(&plan, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "session.directory", "web");
    g_clear_error(&error);
    plan.project = "other";
    plan.uid = 4242; /* nothing here belongs to it */
    if (geteuid() != 0) {
        g_assert_null(eb_session_dirs_make(&plan, &error));
        eb_test_assert_error(error, EB_ERROR_DENIED, "session.directory", "uid");
    }
    g_autofree char *nowhere = path_of(projects, "nowhere");
    EbSessionDirsPlan lost = make_plan(root, nowhere, program);
    g_clear_error(&error);
    g_assert_null(eb_session_dirs_make(&lost, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "session.directory", "projects directory");
}

/* A small file system of its own: too little is free to start, and the number is told. */
static void
test_full_disk(void)
{
    g_autofree char *root = eb_test_temp_dir("root");
    g_autofree char *projects = eb_test_temp_dir("projects");
    if (mount("tmpfs", projects, "tmpfs", MS_NOSUID | MS_NODEV, "size=200m,mode=0700") < 0) {
        g_test_skip("cannot mount a small file system here");
        return;
    }
    g_autoptr(GBytes) program = g_bytes_new_static("x", 1);
    EbSessionDirsPlan plan = make_plan(root, projects, program);
    plan.min_free = G_GUINT64_CONSTANT(1) << 30;
    g_autoptr(GError) error = NULL;
    EbSessionDirs *dirs = eb_session_dirs_make(&plan, &error);
    g_assert_cmpint(umount2(projects, 0), ==, 0);
    g_assert_null(dirs);
    eb_test_assert_error(error, EB_ERROR_QUOTA, "session.disk-full", "200 MiB are free");
    g_assert_false(exists(root, "sessions"));
}

/* Room enough, but a guest used up the inodes. */
static void
test_no_inodes(void)
{
    g_autofree char *root = eb_test_temp_dir("root");
    g_autofree char *projects = eb_test_temp_dir("projects");
    if (mount("tmpfs", projects, "tmpfs", MS_NOSUID | MS_NODEV, "size=200m,nr_inodes=400,mode=0700") < 0) {
        g_test_skip("cannot mount a small file system here");
        return;
    }
    for (guint i = 0; i < 390; i++) {
        g_autofree char *file = g_strdup_printf("%s/%u", projects, i);
        eb_test_write_file(file, "");
    }
    g_autoptr(GBytes) program = g_bytes_new_static("x", 1);
    EbSessionDirsPlan plan = make_plan(root, projects, program);
    plan.min_free = 1 << 20;
    g_autoptr(GError) error = NULL;
    EbSessionDirs *dirs = eb_session_dirs_make(&plan, &error);
    g_assert_cmpint(umount2(projects, 0), ==, 0);
    g_assert_null(dirs);
    eb_test_assert_error(error, EB_ERROR_QUOTA, "session.disk-full", "inodes");
    g_assert_false(exists(root, "sessions"));
}

typedef struct {
    GString *log;
    const char *name;
    GTask *held;
} Step;

static void
undo_ok(gpointer data, GTask *task)
{
    Step *step = data;
    g_string_append_printf(step->log, "%s ", step->name);
    g_task_return_boolean(task, TRUE);
    g_object_unref(task);
}

static void
undo_fails(gpointer data, GTask *task)
{
    Step *step = data;
    g_string_append_printf(step->log, "%s! ", step->name);
    g_task_return_error(task, eb_error_new(EB_ERROR_BUSY, NULL, "%s is stuck", step->name));
    g_object_unref(task);
}

static void
undo_never(gpointer data, GTask *task)
{
    Step *step = data;
    g_string_append_printf(step->log, "%s? ", step->name);
    step->held = task;
}

static void
test_undo(void)
{
    g_autoptr(GString) log = g_string_new(NULL);
    Step steps[] = {{log, "first", NULL}, {log, "second", NULL}, {log, "third", NULL}, {log, "fourth", NULL}};
    g_autoptr(EbUndo) undo = eb_undo_new();
    eb_undo_push(undo, "first", 1000, undo_ok, &steps[0], NULL);
    eb_undo_push(undo, "second", 1000, undo_fails, &steps[1], NULL);
    eb_undo_push(undo, "third", 50, undo_never, &steps[2], NULL);
    eb_undo_push(undo, "fourth", 1000, undo_ok, &steps[3], NULL);
    eb_undo_push(undo, "kept", 1000, undo_ok, &steps[3], NULL);
    eb_undo_drop(undo, "kept");
    g_assert_true(eb_undo_has(undo, "third"));
    g_assert_false(eb_undo_has(undo, "kept"));
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_undo_run_async(undo, eb_test_result_ready, &done);
    g_assert_false(eb_undo_run_finish(eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, "undo.late", NULL);
    g_assert_cmpstr(log->str, ==, "fourth third? second! first ");
    /* The answer that comes too late does no harm. */
    g_task_return_boolean(steps[2].held, TRUE);
    g_object_unref(steps[2].held);
    eb_test_drain();
    g_auto(EbTestResult) nothing = {0};
    eb_undo_run_async(undo, eb_test_result_ready, &nothing);
    g_clear_error(&error);
    g_assert_true(eb_undo_run_finish(eb_test_result_wait(&nothing), &error));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/tree/links-are-not-followed", test_links_are_not_followed);
    g_test_add_func("/tree/deep", test_deep_tree);
    g_test_add_func("/tree/foreign-uid", test_foreign_uid);
    g_test_add_func("/lock/take-and-release", test_lock);
    g_test_add_func("/dirs/make-and-remove", test_dirs);
    g_test_add_func("/dirs/refused", test_dirs_refused);
    g_test_add_func("/dirs/full-disk", test_full_disk);
    g_test_add_func("/dirs/no-inodes", test_no_inodes);
    g_test_add_func("/undo/order-and-deadlines", test_undo);
    return g_test_run();
}
