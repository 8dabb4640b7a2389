/* SPDX-License-Identifier: MIT */
/* The service as a supervisor runs it, against a real incusd: start, state lock, control socket, reload, drain. */
#include "tests/component/service/service-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void
test_life(ServiceFixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = service_start(fixture);
    const char *pid = g_subprocess_get_identifier(process);
    g_autofree char *status_path = g_strdup_printf("/proc/%s/status", pid);
    g_autofree char *status = NULL;
    g_autofree char *uids =
        g_strdup_printf("Uid:\t%u\t%u\t%u\t%u\n", getpwnam(SERVICE_ACCOUNT)->pw_uid, getpwnam(SERVICE_ACCOUNT)->pw_uid,
                        getpwnam(SERVICE_ACCOUNT)->pw_uid, getpwnam(SERVICE_ACCOUNT)->pw_uid);
    struct stat info;

    g_assert_true(g_file_get_contents(status_path, &status, NULL, NULL));
    g_assert_nonnull(strstr(status, uids));
    g_assert_nonnull(strstr(status, "CapPrm:\t0000000000000000\n"));
    g_assert_nonnull(strstr(status, "NoNewPrivs:\t1\n"));
    g_assert_cmpint(stat(fixture->socket, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0600);

    g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, "status --json");
    g_assert_cmpint(run.code, ==, 0);
    g_autoptr(JsonNode) node = eb_json_parse(run.out, strlen(run.out), NULL, NULL);
    g_autofree char *shown = g_strdup_printf("%" G_GINT64_FORMAT, eb_json_get_int(eb_json_node_object(node), "pid", 0));
    g_assert_cmpstr(shown, ==, pid);
    g_auto(EbTestRun) books = eb_test_run_program(fixture->config, NULL, "doctor --check E-83");
    g_assert_cmpint(books.code, ==, 0);
    g_assert_nonnull(strstr(books.out, "0 rows of 0 sessions: both ends of every chain fit"));
    g_auto(EbTestRun) list = eb_test_run_program(fixture->config, NULL, "sessions list --json");
    g_assert_cmpint(list.code, ==, 0);
    g_auto(EbTestRun) none = eb_test_run_program(fixture->config, NULL, "sessions show abcdefghijkl");
    g_assert_cmpint(none.code, ==, 2);

    /* upkeep goes through it, and a backup beside it; a restore does not */
    g_auto(EbTestRun) gc = eb_test_run_program(fixture->config, NULL, "maint gc --json");
    g_assert_cmpint(gc.code, ==, 0);
    g_assert_nonnull(strstr(gc.out, "{\"class\":\"guests\",\"before\":0,\"removed\":0,\"after\":0,\"bytes\":0}"));
    g_assert_nonnull(strstr(gc.out, "{\"class\":\"sockets\",\"before\":0,"));
    g_autofree char *backup_line = g_strdup_printf("maint backup %s/backup.tar", fixture->dir);
    g_autofree char *restore_line = g_strdup_printf("maint restore %s/backup.tar --replace", fixture->dir);
    g_auto(EbTestRun) backup = eb_test_run_program(fixture->config, NULL, backup_line);
    g_assert_cmpint(backup.code, ==, 0);
    g_auto(EbTestRun) restore = eb_test_run_program(fixture->config, NULL, restore_line);
    g_assert_cmpint(restore.code, ==, 4);
    g_assert_nonnull(strstr(restore.err, pid));
    g_auto(EbTestRun) pin = eb_test_run_program(fixture->config, NULL, "sessions pin abcdefghijkl");
    g_assert_cmpint(pin.code, ==, 2);
    g_assert_cmpint(stat(fixture->socket, &info), ==, 0);

    /* A second one on the same directory names the first. */
    g_auto(EbTestRun) second = eb_test_run_program(fixture->config, NULL, "serve");
    g_assert_cmpint(second.code, ==, 4);
    g_assert_nonnull(strstr(second.err, pid));

    service_configure(fixture, "[budget]\nday_tokens = 1000\n");
    g_subprocess_send_signal(process, SIGHUP);
    service_wait_notice(fixture, "RELOADING=1");
    service_wait_notice(fixture, "READY=1");
    while (TRUE) {
        g_autofree char *log = service_read_log(fixture);
        if (strstr(log, "caps and prices stay as they were: [budget] had no cap") != NULL)
            break;
        g_usleep(10000);
    }
    service_configure(fixture, NULL);
    service_stop(process);
    g_assert_cmpint(access(fixture->socket, F_OK), ==, -1);
    /* And again: nothing of the first is in the way. */
    g_autoptr(GSubprocess) again = service_spawn(fixture);
    service_wait_notice(fixture, "READY=1");
    service_stop(again);
}

/* After SIGKILL the lock is free and the stale socket is replaced. */
static void
test_killed(ServiceFixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = service_start(fixture);

    g_subprocess_send_signal(process, SIGKILL);
    g_assert_cmpint(eb_test_wait_exit(process), ==, 128 + SIGKILL);
    g_assert_cmpint(access(fixture->socket, F_OK), ==, 0);
    g_auto(EbTestRun) status = eb_test_run_program(fixture->config, NULL, "status");
    g_assert_cmpint(status.code, ==, 1);
    g_autoptr(GSubprocess) again = service_spawn(fixture);
    service_wait_notice(fixture, "READY=1");
    g_auto(EbTestRun) back = eb_test_run_program(fixture->config, NULL, "status");
    g_assert_cmpint(back.code, ==, 0);
    service_stop(again);
}

/* 0: the service answered; 1: it closed at once; 2: no connection. */
static int
connect_as(const char *path, uid_t uid)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
        char answer[64];
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        g_strlcpy(address.sun_path, path, sizeof address.sun_path);
        if (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
            _exit(3);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
            _exit(2);
        if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
            _exit(1);
        _exit(recv(fd, answer, sizeof answer, 0) > 0 ? 0 : 1);
    }
    while (waitpid(child, &status, 0) < 0)
        g_assert_cmpint(errno, ==, EINTR);
    return WEXITSTATUS(status);
}

static void
test_other_accounts(ServiceFixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = service_start(fixture);
    g_autofree char *run = g_path_get_dirname(fixture->socket);
    g_autofree char *state = g_path_get_dirname(run);

    g_assert_cmpint(connect_as(fixture->socket, 12345), ==, 2);
    /* With the doors left open the service itself still asks who is there. */
    g_assert_cmpint(chmod(state, 0755), ==, 0);
    g_assert_cmpint(chmod(run, 0755), ==, 0);
    g_assert_cmpint(chmod(fixture->socket, 0666), ==, 0);
    g_assert_cmpint(connect_as(fixture->socket, 12345), ==, 1);
    g_assert_cmpint(connect_as(fixture->socket, getpwnam(SERVICE_ACCOUNT)->pw_uid), ==, 0);
    g_assert_cmpint(connect_as(fixture->socket, 0), ==, 0);
    service_stop(process);
}

/* Nonsense, half a line, and more clients than there are places: the service answers the next one as ever. */
static void
test_rude_clients(ServiceFixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = service_start(fixture);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fds[64];
    g_autoptr(GString) deep = g_string_new(NULL);

    for (guint i = 0; i < 100000; i++)
        g_string_append_c(deep, '[');
    g_strlcpy(address.sun_path, fixture->socket, sizeof address.sun_path);
    for (guint i = 0; i < G_N_ELEMENTS(fds); i++) {
        const char *const texts[] = {
            "nonsense\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":", deep->str,
            "{\"id\":{},\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no.such\"}\n"};
        const char *text = texts[i % G_N_ELEMENTS(texts)];
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(fds[i], (struct sockaddr *)&address, sizeof address) == 0)
            send(fds[i], text, strlen(text), MSG_NOSIGNAL);
    }
    for (guint i = 0; i < G_N_ELEMENTS(fds); i++)
        close(fds[i]);
    for (guint tries = 0;; tries++) {
        g_auto(EbTestRun) status = eb_test_run_program(fixture->config, NULL, "status");
        if (status.code == 0)
            break;
        g_assert_cmpuint(tries, <, 50);
        g_usleep(50000);
    }
    service_stop(process);
}

static void
test_start_refused(ServiceFixture *fixture, gconstpointer data)
{
    g_autofree char *state = g_build_filename(fixture->dir, "state", NULL);
    g_autofree char *moved = g_build_filename(fixture->dir, "moved", NULL);

    g_assert_cmpint(chmod(state, 0777), ==, 0);
    g_auto(EbTestRun) exposed = eb_test_run_program(fixture->config, NULL, "serve");
    g_assert_cmpint(exposed.code, ==, 2);
    g_assert_nonnull(strstr(exposed.err, "chmod 700"));
    g_assert_cmpint(rename(state, moved), ==, 0);
    g_auto(EbTestRun) missing = eb_test_run_program(fixture->config, NULL, "serve");
    g_assert_cmpint(missing.code, ==, 2);
    g_assert_nonnull(strstr(missing.err, "errand-box setup"));
}

static void
add_tests(void)
{
#define ADD(name, func) g_test_add("/service/" name, ServiceFixture, NULL, service_set_up, func, service_tear_down)
    ADD("life", test_life);
    ADD("killed", test_killed);
    ADD("other-accounts", test_other_accounts);
    ADD("rude-clients", test_rude_clients);
    ADD("start-refused", test_start_refused);
}

int
main(int argc, char **argv)
{
    return service_main(&argc, &argv, "service", add_tests);
}
