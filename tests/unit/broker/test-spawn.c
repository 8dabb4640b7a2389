/* SPDX-License-Identifier: MIT */
/* Processes: what a child is given, and that it ends. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/eb-spawn.h"
#include "core/base/eb-unix.h"
#include "eb-test.h"

static int
wait_for(EbChild *child)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    int status = -1;

    eb_child_wait_async(child, NULL, eb_test_result_ready, &done);
    g_assert_true(eb_child_wait_finish(child, eb_test_result_wait(&done), &status, &error));
    g_assert_no_error(error);
    g_assert_false(eb_child_is_running(child));
    return status;
}

static char *
output_of(EbSpawn *spawn, int *status)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbChild) child = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    eb_autofd int ours = -1;
    char buffer[4096];
    ssize_t got;
    int ends[2];

    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    ours = ends[0];
    eb_spawn_take_fd(spawn, ends[1], STDOUT_FILENO);
    child = eb_spawn_start(spawn, &error);
    g_assert_no_error(error);
    while ((got = read(ours, buffer, sizeof buffer)) > 0)
        g_string_append_len(text, buffer, got);
    *status = wait_for(child);
    return g_strdup(text->str);
}

static void
test_exact(void)
{
    g_autoptr(EbSpawn) spawn = eb_spawn_new("/bin/sh");
    g_autofree char *text = NULL;
    int status, stray = fcntl(STDIN_FILENO, F_DUPFD, 40);
    g_autofree char *number = g_strdup_printf("%d", stray);

    /* Left open on purpose and not marked: it must not reach the child. */
    g_assert_cmpint(stray, >=, 0);
    g_setenv("EB_TEST_STRAY", "1", TRUE);
    g_setenv("EB_TEST_PASSED", "2", TRUE);
    eb_spawn_add_arg(spawn, "-c");
    eb_spawn_add_arg(spawn,
                     "echo \"$1|$A|$EB_TEST_STRAY|$EB_TEST_PASSED|$(pwd)\"; [ -e /proc/$$/fd/$2 ] && echo stray; "
                     "[ -e /proc/$$/fd/41 ] && echo given; cat; exit 7");
    eb_spawn_add_arg(spawn, "sh");
    eb_spawn_add_arg(spawn, "a b");
    eb_spawn_add_arg(spawn, number);
    eb_spawn_add_env(spawn, "A", "x y");
    eb_spawn_add_env(spawn, "PATH", "/usr/bin:/bin");
    eb_spawn_pass_env(spawn, "EB_TEST_PASSED");
    eb_spawn_pass_env(spawn, "EB_TEST_ABSENT");
    eb_spawn_set_cwd(spawn, "/");
    eb_spawn_take_fd(spawn, open("/dev/null", O_RDONLY | O_CLOEXEC), 41);
    text = output_of(spawn, &status);
    close(stray);
    g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    g_assert_cmpstr(text, ==, "a b|x y||2|/\ngiven\n");
}

/* Descriptors that stand at each other's targets. */
static void
test_crossed_fds(void)
{
    g_autoptr(EbSpawn) spawn = eb_spawn_new("/bin/sh");
    g_autofree char *text = NULL;
    int first[2], second[2], status;

    g_assert_cmpint(pipe2(first, O_CLOEXEC), ==, 0);
    g_assert_cmpint(pipe2(second, O_CLOEXEC), ==, 0);
    g_assert_cmpint(write(first[1], "one", 3), ==, 3);
    g_assert_cmpint(write(second[1], "two", 3), ==, 3);
    close(first[1]);
    close(second[1]);
    eb_spawn_add_arg(spawn, "-c");
    eb_spawn_add_arg(spawn, "cat /proc/self/fd/45; cat /proc/self/fd/46");
    eb_spawn_add_env(spawn, "PATH", "/usr/bin:/bin");
    g_assert_cmpint(dup3(second[0], 45, O_CLOEXEC), ==, 45);
    g_assert_cmpint(dup3(first[0], 46, O_CLOEXEC), ==, 46);
    close(first[0]);
    close(second[0]);
    eb_spawn_take_fd(spawn, 46, 45);
    eb_spawn_take_fd(spawn, 45, 46);
    text = output_of(spawn, &status);
    g_assert_cmpstr(text, ==, "onetwo");
}

static void
test_program_fd(void)
{
    eb_autofd int program = open("/bin/true", O_PATH | O_CLOEXEC);
    g_autoptr(EbSpawn) spawn = eb_spawn_new_fd(program, "whatever");
    g_autoptr(GError) error = NULL;
    g_autoptr(EbChild) child = eb_spawn_start(spawn, &error);

    g_assert_no_error(error);
    g_assert_cmpint(wait_for(child), ==, 0);
    /* A wait behind the end is answered too. */
    g_assert_cmpint(wait_for(child), ==, 0);
    g_assert_true(eb_child_kill(child, SIGKILL));
}

static void
test_missing(void)
{
    g_autoptr(EbSpawn) spawn = eb_spawn_new("/nonexistent/program");
    g_autoptr(EbSpawn) lost = eb_spawn_new("/bin/true");
    g_autoptr(GError) error = NULL;

    g_assert_null(eb_spawn_start(spawn, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "spawn.exec", "/nonexistent/program");
    g_clear_error(&error);
    eb_spawn_set_cwd(lost, "/nonexistent");
    g_assert_null(eb_spawn_start(lost, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "spawn.exec", NULL);
}

static EbChild *
sleeper(void)
{
    g_autoptr(EbSpawn) spawn = eb_spawn_new("/bin/sleep");
    g_autoptr(GError) error = NULL;
    EbChild *child;

    eb_spawn_add_arg(spawn, "1000");
    child = eb_spawn_start(spawn, &error);
    g_assert_no_error(error);
    return child;
}

static void
test_kill(void)
{
    g_autoptr(EbChild) child = sleeper();
    g_autofree char *text = NULL;
    int status;

    g_assert_true(eb_child_is_running(child));
    g_assert_true(eb_child_kill(child, SIGTERM));
    status = wait_for(child);
    text = eb_child_describe_status(status);
    g_assert_cmpstr(text, ==, "killed by SIGTERM");
}

static void
test_wait_cancelled(void)
{
    g_autoptr(EbChild) child = sleeper();
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_child_wait_async(child, cancellable, eb_test_result_ready, &done);
    g_cancellable_cancel(cancellable);
    g_assert_false(eb_child_wait_finish(child, eb_test_result_wait(&done), NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    g_assert_true(eb_child_is_running(child));
}

static void
test_dropped(void)
{
    EbChild *child = sleeper();
    g_autofree char *path = g_strdup_printf("/proc/%d", (int)eb_child_get_pid(child));

    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    g_object_unref(child);
    /* Ended and reaped: not even a zombie is left. */
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/base/spawn/exact", test_exact);
    g_test_add_func("/base/spawn/crossed-fds", test_crossed_fds);
    g_test_add_func("/base/spawn/program-fd", test_program_fd);
    g_test_add_func("/base/spawn/missing", test_missing);
    g_test_add_func("/base/spawn/kill", test_kill);
    g_test_add_func("/base/spawn/wait-cancelled", test_wait_cancelled);
    g_test_add_func("/base/spawn/dropped", test_dropped);
    return g_test_run();
}
