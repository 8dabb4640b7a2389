/* SPDX-License-Identifier: MIT */
/* The program as a supervisor runs it, beside a real service and a real incusd. */
#include "tests/component/service/service-fixture.h"

#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static GSubprocess *
start(ServiceFixture *fixture)
{
    GSubprocess *process = eb_test_spawn("errand-box-watchdog", fixture->config, fixture->log, "--supervised");

    service_wait_notice(fixture, "READY=1");
    return process;
}

static void
assert_shown(const EbTestRun *run, const char *service, const char *backend)
{
    g_autoptr(JsonNode) node = eb_json_parse(run->out, strlen(run->out), NULL, NULL);
    JsonObject *object = eb_json_node_object(node);

    g_assert_cmpstr(eb_json_get_string(eb_json_get_object(object, "service"), "state"), ==, service);
    g_assert_cmpstr(eb_json_get_string(eb_json_get_object(object, "backend"), "state"), ==, backend);
}

static void
test_life(ServiceFixture *fixture, gconstpointer data)
{
    g_autoptr(GSubprocess) service = service_start(fixture);
    g_autoptr(GSubprocess) watchdog = start(fixture);
    const char *pid = g_subprocess_get_identifier(watchdog);
    guint uid = getpwnam(SERVICE_ACCOUNT)->pw_uid;
    g_autofree char *status_path = g_strdup_printf("/proc/%s/status", pid);
    g_autofree char *uids = g_strdup_printf("Uid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
    g_autofree char *status = NULL;
    g_autofree char *run_dir = g_path_get_dirname(fixture->socket);
    g_autofree char *shown = g_build_filename(run_dir, "watchdog.json", NULL);
    g_autofree char *lock = g_build_filename(run_dir, "watchdog.lock", NULL);
    struct stat info;

    service_wait_notice(fixture, "STATUS=service up, backend ok");
    g_assert_true(g_file_get_contents(status_path, &status, NULL, NULL));
    g_assert_nonnull(strstr(status, uids));
    g_assert_nonnull(strstr(status, "CapPrm:\t0000000000000000\n"));
    g_assert_nonnull(strstr(status, "NoNewPrivs:\t1\n"));
    g_assert_cmpint(lstat(shown, &info), ==, 0);
    g_assert_cmpuint(info.st_uid, ==, uid);

    /* A second one names the first. */
    g_auto(EbTestRun) second = eb_test_run_program(fixture->config, NULL, "watchdog");
    g_assert_cmpint(second.code, ==, 4);
    g_assert_nonnull(strstr(second.err, pid));
    g_auto(EbTestRun) well = eb_test_run_program(fixture->config, NULL, "watchdog --once --json");
    g_assert_cmpint(well.code, ==, 0);
    assert_shown(&well, "up", "ok");
    g_auto(EbTestRun) lines = eb_test_run_program(fixture->config, NULL, "watchdog --once");
    g_assert_nonnull(strstr(lines.out, "answers\nthe container backend answers\n"));

    /* The service drains beside it: nobody is told off for that. */
    service_stop(service);
    service_wait_notice(fixture, "STATUS=service stopped, backend ok");
    g_auto(EbTestRun) stopped = eb_test_run_program(fixture->config, NULL, "watchdog --once --json");
    g_assert_cmpint(stopped.code, ==, 1);
    assert_shown(&stopped, "stopped", "ok");

    g_subprocess_send_signal(watchdog, SIGTERM);
    g_assert_cmpint(eb_test_wait_exit(watchdog), ==, 0);
    g_assert_cmpint(access(shown, F_OK), ==, -1);
    g_assert_cmpint(access(lock, F_OK), ==, -1);
}

/* Not even its lock file can be made: it runs, sees and says so, and shows nothing. */
static void
test_full_disk(ServiceFixture *fixture, gconstpointer data)
{
    g_autofree char *run_dir = g_path_get_dirname(fixture->socket);
    g_autofree char *options =
        g_strdup_printf("size=4k,nr_inodes=1,mode=0700,uid=%u", getpwnam(SERVICE_ACCOUNT)->pw_uid);

    g_assert_cmpint(mkdir(run_dir, 0700), ==, 0);
    if (mount("tmpfs", run_dir, "tmpfs", 0, options) != 0) {
        g_test_skip("this host lets root mount nothing");
        return;
    }
    g_autoptr(GSubprocess) watchdog = start(fixture);
    service_wait_notice(fixture, "STATUS=service stopped, backend ok");
    g_subprocess_send_signal(watchdog, SIGTERM);
    int code = eb_test_wait_exit(watchdog);
    g_assert_cmpint(umount(run_dir), ==, 0);
    g_assert_cmpint(code, ==, 0);
    g_autofree char *log = service_read_log(fixture);
    g_assert_nonnull(strstr(log, "goes on without its lock"));
}

static void
test_refused(ServiceFixture *fixture, gconstpointer data)
{
    service_configure(fixture, "[session]\nbackend = \"nowhere\"\n");
    g_auto(EbTestRun) backend = eb_test_run_program(fixture->config, NULL, "watchdog");
    g_assert_cmpint(backend.code, ==, 2);
    g_assert_nonnull(strstr(backend.err, "nowhere"));
    service_configure(fixture, "[nonsense]\n");
    g_auto(EbTestRun) broken = eb_test_run_program(fixture->config, NULL, "watchdog --once");
    g_assert_cmpint(broken.code, ==, 2);
    g_auto(EbTestRun) words = eb_test_run_program(fixture->config, NULL, "watchdog --twice");
    g_assert_cmpint(words.code, ==, 2);
}

static void
add(void)
{
    g_test_add("/watchdog-program/life", ServiceFixture, NULL, service_set_up, test_life, service_tear_down);
    g_test_add("/watchdog-program/full-disk", ServiceFixture, NULL, service_set_up, test_full_disk, service_tear_down);
    g_test_add("/watchdog-program/refused", ServiceFixture, NULL, service_set_up, test_refused, service_tear_down);
}

int
main(int argc, char **argv)
{
    return service_main(&argc, &argv, "shared", add);
}
