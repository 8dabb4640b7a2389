/* SPDX-License-Identifier: MIT */
#include "tests/component/service/service-fixture.h"

#include <glib-unix.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static EbTestIncusd *incusd;

void
service_configure(ServiceFixture *fixture, const char *extra)
{
    g_autofree char *text = g_strdup_printf(
        "[service]\naccount = \"" SERVICE_ACCOUNT "\"\nstate_dir = \"%s/state\"\nproject_root = \"%s/projects\"\n"
        "accept_degraded = [%s]\n[plugin.incus]\nsocket = \"%s\"\nproject = \"%s\"\npool = \"%s\"\n%s",
        fixture->dir, fixture->dir, fixture->accepted, incusd->socket, incusd->project, incusd->pool,
        extra != NULL ? extra : "");
    eb_test_write_file(fixture->config, text);
    g_assert_cmpint(chmod(fixture->config, 0644), ==, 0);
}

static void
make_owned(const char *dir, const char *name)
{
    const struct passwd *account = getpwnam(SERVICE_ACCOUNT);
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_nonnull(account);
    g_assert_cmpint(mkdir(path, 0700), ==, 0);
    g_assert_cmpint(chown(path, account->pw_uid, account->pw_gid), ==, 0);
}

static int
listen_notify(ServiceFixture *fixture)
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

void
service_set_up(ServiceFixture *fixture, gconstpointer data)
{
    fixture->dir = eb_test_temp_dir("svc");
    g_assert_cmpint(chmod(fixture->dir, 0755), ==, 0);
    fixture->config = g_build_filename(fixture->dir, "eb.toml", NULL);
    fixture->log = g_build_filename(fixture->dir, "log", NULL);
    fixture->socket = g_build_filename(fixture->dir, "state", "run", "control.sock", NULL);
    fixture->notify = listen_notify(fixture);
    make_owned(fixture->dir, "state");
    make_owned(fixture->dir, "projects");
    fixture->accepted = g_strdup("");
    service_configure(fixture, NULL);
}

void
service_tear_down(ServiceFixture *fixture, gconstpointer data)
{
    close(fixture->notify);
    g_unsetenv("EB_TEST_NOTIFY_SOCKET");
    g_free(fixture->dir);
    g_free(fixture->config);
    g_free(fixture->log);
    g_free(fixture->socket);
    g_free(fixture->accepted);
}

char *
service_read_log(ServiceFixture *fixture)
{
    char *text = NULL;
    g_file_get_contents(fixture->log, &text, NULL, NULL);
    return text != NULL ? text : g_strdup("");
}

typedef struct {
    ServiceFixture *fixture;
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

void
service_wait_notice(ServiceFixture *fixture, const char *word)
{
    Notice notice = {fixture, word, FALSE};
    g_autoptr(GSource) source = g_unix_fd_source_new(fixture->notify, G_IO_IN);

    g_source_set_callback(source, G_SOURCE_FUNC(wake), NULL, NULL);
    g_source_attach(source, NULL);
    eb_test_run_until(notified, &notice);
    g_source_destroy(source);
}

void
service_accept_gaps(ServiceFixture *fixture)
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
    g_autofree char *log = service_read_log(fixture);
    g_test_message("%s", log);
    g_assert_cmpint(eb_test_wait_exit(process), ==, 3);
    for (g_regex_match(id, log, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL)) {
        g_autofree char *word = g_match_info_fetch(match, 0);
        if (strstr(accepted->str, word) == NULL)
            g_string_append_printf(accepted, "%s\"%s\"", accepted->len > 0 ? ", " : "", word);
    }
    g_assert_cmpuint(accepted->len, >, 0);
    g_free(fixture->accepted);
    fixture->accepted = g_strdup(accepted->str);
    service_configure(fixture, NULL);
}

GSubprocess *
service_spawn(ServiceFixture *fixture)
{
    return eb_test_spawn("errand-boxd", fixture->config, fixture->log, "");
}

GSubprocess *
service_start(ServiceFixture *fixture)
{
    service_accept_gaps(fixture);
    GSubprocess *process = service_spawn(fixture);
    service_wait_notice(fixture, "READY=1");
    return process;
}

void
service_stop(GSubprocess *process)
{
    g_subprocess_send_signal(process, SIGTERM);
    g_assert_cmpint(eb_test_wait_exit(process), ==, 0);
}

int
service_main(int *argc, char ***argv, const char *name, void (*add)(void))
{
    g_autofree char *reason = NULL;

    eb_test_init(argc, argv);
    if (geteuid() != 0)
        reason = g_strdup("only root can become the account");
    else
        incusd = eb_test_incusd_acquire(name, &reason);
    if (incusd == NULL) {
        g_print("1..0 # SKIP %s\n", reason);
        return 77;
    }
    /* The account reaches this private daemon by its mode; the groups of a real host are set up by setup. */
    g_assert_cmpint(chmod(incusd->dir, 0755), ==, 0);
    g_assert_cmpint(chmod(incusd->socket, 0666), ==, 0);
    add();
    int code = g_test_run();
    eb_test_incusd_release(incusd);
    return code;
}
