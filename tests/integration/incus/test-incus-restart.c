/* SPDX-License-Identifier: MIT */
/*
 * incusd killed and started again under a running service: every call ends, says what happened, and works again. First
 * directly, then through incus-user, whose connections outlive the daemon.
 */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "incus-test.h"

static IncusBackend *backend;
static GString *events;
static int butler; /* socket to the process that stayed root */
static pid_t butler_pid;

/* Stays root and does what only root can. */
static void
butler_main(int fd)
{
    char order;
    while (read(fd, &order, 1) == 1) {
        if (order == 'k')
            eb_test_incusd_kill(incus_test.incusd);
        else
            eb_test_incusd_restart(incus_test.incusd);
        g_assert_cmpint(write(fd, &order, 1), ==, 1);
    }
    _exit(0);
}

static gboolean
butler_answered(gpointer user_data)
{
    char answer;
    return recv(butler, &answer, 1, MSG_DONTWAIT) == 1;
}

static void
order(char what)
{
    g_assert_cmpint(write(butler, &what, 1), ==, 1);
    eb_test_run_until(butler_answered, NULL);
}

static void
on_event(EbContainerBackend *source, int event, const char *name, gpointer user_data)
{
    static const char letters[] = "SXDLB"; /* started, stopped, deleted, lost, back */
    g_string_append_c(events, letters[event]);
}

static void
start_backend(const char *socket, const char *project)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    backend = INCUS_BACKEND(incus_test_backend(socket, project));
    events = g_string_new(NULL);
    g_signal_connect(backend, "instance-event", G_CALLBACK(on_event), NULL);
    incus_backend_start_async(backend, NULL, eb_test_result_ready, &done);
    g_assert_true(incus_backend_start_finish(backend, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

static void
end_backend(void)
{
    incus_backend_stop(backend);
    g_clear_object(&backend);
    g_string_free(events, TRUE);
    eb_test_drain();
}

static gboolean
has_event(gpointer user_data)
{
    return strchr(events->str, GPOINTER_TO_INT(user_data)) != NULL;
}

static void
await_event(char letter)
{
    eb_test_run_until(has_event, GINT_TO_POINTER((int)letter));
}

static GError *
list_error(guint deadline_ms)
{
    g_auto(EbTestResult) done = {0};
    GError *error = NULL;
    eb_container_backend_list_async(EB_CONTAINER_BACKEND(backend), NULL, deadline_ms, NULL, eb_test_result_ready,
                                    &done);
    g_autoptr(GPtrArray) infos =
        eb_container_backend_list_finish(EB_CONTAINER_BACKEND(backend), eb_test_result_wait(&done), &error);
    g_assert_true((infos == NULL) == (error != NULL));
    return error;
}

static void
kill_in_the_middle(gboolean gone_at_once)
{
    static const char *const argv[] = {"sleep", "1000", NULL};
    EbContainerBackend *self = EB_CONTAINER_BACKEND(backend);
    g_auto(EbTestResult) waiting = {0};
    g_auto(EbTestResult) launching = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbContainerSpec) spec = incus_test_spec("survivor");
    g_autoptr(EbContainerSpec) second = incus_test_spec("second");
    incus_test_launch(self, spec);
    await_event('S');
    g_autoptr(EbExec) exec = incus_test_exec(self, spec->name, 1000, argv);
    eb_exec_wait_async(exec, NULL, eb_test_result_ready, &waiting);
    eb_container_backend_launch_async(self, second, 20000, NULL, eb_test_result_ready, &launching);
    order('k');
    /* the launch and the exec end with what happened, not never */
    if (!eb_container_backend_launch_finish(self, eb_test_result_wait(&launching), &error))
        g_test_message("launch: %s", error->message);
    if (error != NULL)
        g_assert_true(error->code == EB_ERROR_UNAVAILABLE || error->code == EB_ERROR_TIMEOUT);
    g_clear_error(&error);
    g_assert_cmpint(eb_exec_wait_finish(exec, eb_test_result_wait(&waiting), &error), ==, -1);
    g_test_message("exec: %s", error->message);
    g_assert_cmpint(error->code, ==, EB_ERROR_UNAVAILABLE);
    g_clear_error(&error);
    await_event('L');
    error = list_error(3000);
    g_assert_nonnull(error);
    g_test_message("list: %s", error->message);
    g_assert_true(error->code == EB_ERROR_UNAVAILABLE || (!gone_at_once && error->code == EB_ERROR_TIMEOUT));
    g_assert_true(eb_error_get_retry(error, NULL));

    order('r');
    await_event('B');
    g_auto(IncusRun) alive = incus_test_shell(self, spec->name, 1000, NULL, "echo still here");
    g_assert_cmpstr(alive.out->str, ==, "still here\n");
    incus_test_destroy(self, spec->name);
    incus_test_destroy(self, second->name);
    await_event('D');
    /* what the interrupted launch left is looked after */
    g_assert_false(incus_test_exists(self, second->name));
}

static void
test_direct(void)
{
    start_backend(incus_test.incusd->socket, incus_test.incusd->project);
    kill_in_the_middle(TRUE);
    end_backend();
}

static void
test_through_user(void)
{
    if (incus_test.incusd->user_socket == NULL) {
        g_test_skip("incus-user is not installed");
        return;
    }
    eb_test_incusd_become_account(incus_test.incusd);
    start_backend(incus_test.incusd->user_socket, "");
    kill_in_the_middle(FALSE);
    end_backend();
}

int
main(int argc, char **argv)
{
    int fds[2];
    if (!incus_test_init(&argc, &argv, "restart"))
        return 77;
    g_clear_object(&incus_test.backend);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
    butler_pid = fork();
    if (butler_pid == 0) {
        close(fds[0]);
        butler_main(fds[1]);
    }
    close(fds[1]);
    butler = fds[0];
    g_test_add_func("/incus/restart/direct", test_direct);
    g_test_add_func("/incus/restart/through-user", test_through_user);
    int code = incus_test_run();
    close(butler);
    waitpid(butler_pid, NULL, 0);
    return code;
}
