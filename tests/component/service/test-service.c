/* SPDX-License-Identifier: MIT */
/* The service as a supervisor runs it, against a real incusd: start, state lock, control socket, reload, drain. */
#include "tests/component/cli/eb-test-program.h"
#include "tests/lib/eb-test-incusd.h"

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

/* An account that every Debian has and nothing here uses. */
#define ACCOUNT "daemon"

static EbTestIncusd *incusd;

typedef struct {
    char *dir;
    char *config;
    char *log;
    char *socket;
    int notify; /* what the service reports to */
} Fixture;

static void
write_config(Fixture *fixture, const char *accepted)
{
    g_autofree char *text = g_strdup_printf(
        "[service]\naccount = \"" ACCOUNT "\"\nstate_dir = \"%s/state\"\nproject_root = \"%s/projects\"\n"
        "accept_degraded = [%s]\n[plugin.incus]\nsocket = \"%s\"\nproject = \"%s\"\npool = \"%s\"\n",
        fixture->dir, fixture->dir, accepted, incusd->socket, incusd->project, incusd->pool);
    eb_test_write_file(fixture->config, text);
    g_assert_cmpint(chmod(fixture->config, 0644), ==, 0);
}

static void
make_owned(const char *dir, const char *name)
{
    const struct passwd *account = getpwnam(ACCOUNT);
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_nonnull(account);
    g_assert_cmpint(mkdir(path, 0700), ==, 0);
    g_assert_cmpint(chown(path, account->pw_uid, account->pw_gid), ==, 0);
}

static int
listen_notify(Fixture *fixture)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *path = g_build_filename(fixture->dir, "notify", NULL);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(chmod(path, 0666), ==, 0);
    g_setenv("EB_TEST_NOTIFY_SOCKET", path, TRUE);
    return fd;
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->dir = eb_test_temp_dir("svc");
    g_assert_cmpint(chmod(fixture->dir, 0755), ==, 0);
    fixture->config = g_build_filename(fixture->dir, "eb.toml", NULL);
    fixture->log = g_build_filename(fixture->dir, "log", NULL);
    fixture->socket = g_build_filename(fixture->dir, "state", "run", "control.sock", NULL);
    fixture->notify = listen_notify(fixture);
    make_owned(fixture->dir, "state");
    make_owned(fixture->dir, "projects");
    write_config(fixture, "");
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    close(fixture->notify);
    g_unsetenv("EB_TEST_NOTIFY_SOCKET");
    g_free(fixture->dir);
    g_free(fixture->config);
    g_free(fixture->log);
    g_free(fixture->socket);
}

static char *
read_log(Fixture *fixture)
{
    char *text = NULL;
    g_file_get_contents(fixture->log, &text, NULL, NULL);
    return text != NULL ? text : g_strdup("");
}

typedef struct {
    Fixture *fixture;
    const char *word;
    gboolean seen;
} Notice;

static gboolean
notified(gpointer user_data)
{
    Notice *notice = user_data;
    char text[512];
    /* May be asked again once it is true. */
    if (notice->seen)
        return TRUE;
    ssize_t got = recv(notice->fixture->notify, text, sizeof text - 1, 0);

    if (got < 0)
        return FALSE;
    text[got] = '\0';
    g_test_message("notify: %s", text);
    notice->seen = strstr(text, notice->word) != NULL;
    return notice->seen;
}

static gboolean
wake(int fd, GIOCondition condition, gpointer user_data)
{
    return G_SOURCE_CONTINUE;
}

static void
wait_notice(Fixture *fixture, const char *word)
{
    Notice notice = {fixture, word, FALSE};
    g_autoptr(GSource) source = g_unix_fd_source_new(fixture->notify, G_IO_IN);

    g_source_set_callback(source, G_SOURCE_FUNC(wake), NULL, NULL);
    g_source_attach(source, NULL);
    eb_test_run_until(notified, &notice);
    g_source_destroy(source);
}

/* What this host cannot enforce refuses a strict service, which names the ids; they go into the configuration. */
static void
accept_gaps(Fixture *fixture)
{
    g_autoptr(GSubprocess) process = eb_test_spawn("errand-boxd", fixture->config, fixture->log, "");
    g_autoptr(GString) accepted = g_string_new(NULL);
    g_autoptr(GRegex) id = g_regex_new("E-[0-9]{2,3}", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    Notice ready = {fixture, "READY=1", FALSE};

    /* It ends by itself or gets ready. */
    while (g_subprocess_get_identifier(process) != NULL && !notified(&ready))
        if (!g_main_context_iteration(NULL, FALSE))
            g_usleep(2000);
    if (g_subprocess_get_identifier(process) != NULL) {
        g_subprocess_send_signal(process, SIGTERM);
        g_assert_cmpint(eb_test_wait_exit(process), ==, 0);
        return;
    }
    g_autofree char *log = read_log(fixture);
    g_test_message("%s", log);
    g_assert_cmpint(eb_test_wait_exit(process), ==, 3);
    for (g_regex_match(id, log, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL)) {
        g_autofree char *word = g_match_info_fetch(match, 0);
        if (strstr(accepted->str, word) == NULL)
            g_string_append_printf(accepted, "%s\"%s\"", accepted->len > 0 ? ", " : "", word);
    }
    g_assert_cmpuint(accepted->len, >, 0);
    write_config(fixture, accepted->str);
}

static GSubprocess *
start(Fixture *fixture)
{
    accept_gaps(fixture);
    GSubprocess *process = eb_test_spawn("errand-boxd", fixture->config, fixture->log, "");
    wait_notice(fixture, "READY=1");
    return process;
}

static void
stop(GSubprocess *process)
{
    g_subprocess_send_signal(process, SIGTERM);
    g_assert_cmpint(eb_test_wait_exit(process), ==, 0);
}

static void
test_life(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = start(fixture);
    const char *pid = g_subprocess_get_identifier(process);
    g_autofree char *status_path = g_strdup_printf("/proc/%s/status", pid);
    g_autofree char *status = NULL;
    g_autofree char *uids =
        g_strdup_printf("Uid:\t%u\t%u\t%u\t%u\n", getpwnam(ACCOUNT)->pw_uid, getpwnam(ACCOUNT)->pw_uid,
                        getpwnam(ACCOUNT)->pw_uid, getpwnam(ACCOUNT)->pw_uid);
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
    g_auto(EbTestRun) list = eb_test_run_program(fixture->config, NULL, "sessions list --json");
    g_assert_cmpint(list.code, ==, 0);
    g_auto(EbTestRun) none = eb_test_run_program(fixture->config, NULL, "sessions show abcdefghijkl");
    g_assert_cmpint(none.code, ==, 2);

    /* A second one on the same directory names the first. */
    g_auto(EbTestRun) second = eb_test_run_program(fixture->config, NULL, "serve");
    g_assert_cmpint(second.code, ==, 4);
    g_assert_nonnull(strstr(second.err, pid));

    g_subprocess_send_signal(process, SIGHUP);
    wait_notice(fixture, "RELOADING=1");
    wait_notice(fixture, "READY=1");
    stop(process);
    g_assert_cmpint(access(fixture->socket, F_OK), ==, -1);
    /* And again: nothing of the first is in the way. */
    g_autoptr(GSubprocess) again = eb_test_spawn("errand-boxd", fixture->config, fixture->log, "");
    wait_notice(fixture, "READY=1");
    stop(again);
}

/* After SIGKILL the lock is free and the stale socket is replaced. */
static void
test_killed(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = start(fixture);

    g_subprocess_send_signal(process, SIGKILL);
    g_assert_cmpint(eb_test_wait_exit(process), ==, 128 + SIGKILL);
    g_assert_cmpint(access(fixture->socket, F_OK), ==, 0);
    g_auto(EbTestRun) status = eb_test_run_program(fixture->config, NULL, "status");
    g_assert_cmpint(status.code, ==, 1);
    g_autoptr(GSubprocess) again = eb_test_spawn("errand-boxd", fixture->config, fixture->log, "");
    wait_notice(fixture, "READY=1");
    g_auto(EbTestRun) back = eb_test_run_program(fixture->config, NULL, "status");
    g_assert_cmpint(back.code, ==, 0);
    stop(again);
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
test_other_accounts(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = start(fixture);
    g_autofree char *run = g_path_get_dirname(fixture->socket);
    g_autofree char *state = g_path_get_dirname(run);

    g_assert_cmpint(connect_as(fixture->socket, 12345), ==, 2);
    /* With the doors left open the service itself still asks who is there. */
    g_assert_cmpint(chmod(state, 0755), ==, 0);
    g_assert_cmpint(chmod(run, 0755), ==, 0);
    g_assert_cmpint(chmod(fixture->socket, 0666), ==, 0);
    g_assert_cmpint(connect_as(fixture->socket, 12345), ==, 1);
    g_assert_cmpint(connect_as(fixture->socket, getpwnam(ACCOUNT)->pw_uid), ==, 0);
    g_assert_cmpint(connect_as(fixture->socket, 0), ==, 0);
    stop(process);
}

/* Nonsense, half a line, and more clients than there are places: the service answers the next one as ever. */
static void
test_rude_clients(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) process = start(fixture);
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
    stop(process);
}

static void
test_start_refused(Fixture *fixture, gconstpointer data)
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

int
main(int argc, char **argv)
{
    g_autofree char *reason = NULL;

    eb_test_init(&argc, &argv);
    if (geteuid() != 0)
        reason = g_strdup("only root can become the account");
    else
        incusd = eb_test_incusd_acquire("service", &reason);
    if (incusd == NULL) {
        g_print("1..0 # SKIP %s\n", reason);
        return 77;
    }
    /* The account reaches this private daemon by its mode; the groups of a real host are set up by setup. */
    g_assert_cmpint(chmod(incusd->dir, 0755), ==, 0);
    g_assert_cmpint(chmod(incusd->socket, 0666), ==, 0);
#define ADD(name, func) g_test_add("/service/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("life", test_life);
    ADD("killed", test_killed);
    ADD("other-accounts", test_other_accounts);
    ADD("rude-clients", test_rude_clients);
    ADD("start-refused", test_start_refused);
    int code = g_test_run();
    eb_test_incusd_release(incusd);
    return code;
}
