/* SPDX-License-Identifier: MIT */
/* What systemd and s6 print about services, and the parts of EbSupervisor that need neither. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-supervisor.h"
#include "tests/lib/eb-test.h"

typedef struct {
    const char *name;
    const char *text;
    EbUnitState state;
    int exit_code;
    int exit_signal;
    pid_t pid;
} Case;

#define SHOW(load, active, sub, pid, code, status)                                                                     \
    "MainPID=" pid "\nNRestarts=2\nExecMainCode=" code "\nExecMainStatus=" status "\nStatusText=\nLoadState=" load     \
    "\nActiveState=" active "\nSubState=" sub "\nUnitFileState=enabled\nStateChangeTimestamp=@1796000000\n"            \
    "Environment=\n"

static const Case SYSTEMD[] = {
    {"missing", SHOW("not-found", "inactive", "dead", "0", "0", "0"), EB_UNIT_MISSING, -1, 0, 0},
    {"never started", SHOW("loaded", "inactive", "dead", "0", "0", "0"), EB_UNIT_DOWN, -1, 0, 0},
    {"starting", SHOW("loaded", "activating", "start", "77", "0", "0"), EB_UNIT_STARTING, -1, 0, 77},
    {"ready", SHOW("loaded", "active", "running", "77", "0", "0"), EB_UNIT_READY, -1, 0, 77},
    {"reloading", SHOW("loaded", "reloading", "reload", "77", "0", "0"), EB_UNIT_READY, -1, 0, 77},
    {"restart", SHOW("loaded", "activating", "auto-restart", "0", "1", "1"), EB_UNIT_WAITING, 1, 0, 0},
    {"stopping", SHOW("loaded", "deactivating", "stop-sigterm", "77", "0", "0"), EB_UNIT_STOPPING, -1, 0, 77},
    {"refused", SHOW("loaded", "failed", "failed", "0", "1", "2"), EB_UNIT_FAILED, 2, 0, 0},
    {"killed", SHOW("loaded", "failed", "failed", "0", "2", "9"), EB_UNIT_FAILED, -1, 9, 0},
    {"dumped", SHOW("loaded", "failed", "failed", "0", "3", "11"), EB_UNIT_FAILED, -1, 11, 0},
    {"stopped", SHOW("loaded", "inactive", "dead", "0", "1", "0"), EB_UNIT_DOWN, 0, 0, 0},
};

static const Case S6[] = {
    {"starting", "true true true false 11683 -1 -1 0\n", EB_UNIT_STARTING, -1, 0, 11683},
    {"ready", "true true true true 11683 -1 -1 1\n", EB_UNIT_READY, -1, 0, 11683},
    {"stopping", "true false true true 11683 -1 -1 1\n", EB_UNIT_STOPPING, -1, 0, 11683},
    {"stopped", "false false true false -1 0 -1 30\n", EB_UNIT_DOWN, 0, 0, 0},
    {"stopped early", "false false true false -1 -1 15 0\n", EB_UNIT_DOWN, -1, 15, 0},
    {"never started", "false false false false -1 0 -1 0\n", EB_UNIT_DOWN, 0, 0, 0},
    {"restart", "false true true false -1 1 -1 0\n", EB_UNIT_WAITING, 1, 0, 0},
    {"refused", "false false true false -1 2 -1 12\n", EB_UNIT_FAILED, 2, 0, 0},
    {"killed", "false false true false -1 -1 9 12\n", EB_UNIT_FAILED, -1, 9, 0},
};

static void
check(const Case *expected, const EbUnitStatus *found)
{
    g_test_message("%s", expected->name);
    g_assert_cmpstr(eb_unit_state_to_string(found->state), ==, eb_unit_state_to_string(expected->state));
    g_assert_cmpint(found->exit_code, ==, expected->exit_code);
    g_assert_cmpint(found->exit_signal, ==, expected->exit_signal);
    g_assert_cmpint(found->pid, ==, expected->pid);
}

static void
test_systemd(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(SYSTEMD); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(EbUnitStatus) status = {0};
        g_assert_true(eb_unit_parse_systemd(SYSTEMD[i].text, &status, &error));
        g_assert_no_error(error);
        check(&SYSTEMD[i], &status);
        if (status.state == EB_UNIT_MISSING)
            continue;
        g_assert_cmpint(status.since_s, ==, 1796000000);
        g_assert_cmpuint(status.restarts, ==, 2);
        g_assert_true(status.enabled);
        g_assert_null(status.text);
        g_assert_null(status.config);
    }
}

static void
test_systemd_text(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(EbUnitStatus) status = {0};
    g_auto(EbUnitStatus) empty = {0};

    g_assert_true(eb_unit_parse_systemd("LoadState=loaded\nActiveState=active\nStatusText=2 sessions = 1 live\n"
                                        "UnitFileState=disabled\nMainPID=x\n"
                                        "Environment=A=b \"ERRAND_BOX_CONFIG=/etc/my box/eb.toml\" C=d\n",
                                        &status, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(status.text, ==, "2 sessions = 1 live");
    g_assert_cmpstr(status.config, ==, "/etc/my box/eb.toml");
    g_assert_false(status.enabled);
    g_assert_cmpint(status.pid, ==, 0);
    g_assert_cmpint(status.since_s, ==, 0);
    g_assert_false(eb_unit_parse_systemd("", &empty, &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "supervisor.answer", "LoadState");
}

static void
test_s6(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(S6); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(EbUnitStatus) status = {0};
        g_assert_true(eb_unit_parse_s6(S6[i].text, TRUE, 1000, &status, &error));
        g_assert_no_error(error);
        check(&S6[i], &status);
        g_assert_cmpint(status.since_s, <=, 1000);
    }
    /* Who has no way to say that it is ready is so when it runs. */
    g_auto(EbUnitStatus) plain = {0};
    g_assert_true(eb_unit_parse_s6("true true false false 5 -1 -1 7\n", FALSE, 1000, &plain, NULL));
    g_assert_cmpint(plain.state, ==, EB_UNIT_READY);
    g_assert_cmpint(plain.since_s, ==, 993);
    g_assert_false(plain.enabled);
}

static void
test_s6_nonsense(void)
{
    static const char *const LINES[] = {"",
                                        "true",
                                        "true true true true 1 -1 -1",
                                        "yes true true true 1 -1 -1 0",
                                        "true true true true 1 -1 -1 0 0",
                                        "true true true true 99999999999 -1 -1 0",
                                        "true true true true one -1 -1 0"};

    for (guint i = 0; i < G_N_ELEMENTS(LINES); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(EbUnitStatus) status = {0};
        g_assert_false(eb_unit_parse_s6(LINES[i], TRUE, 0, &status, &error));
        eb_test_assert_error(error, EB_ERROR_PROTOCOL, "supervisor.answer", NULL);
    }
}

static void
test_names(void)
{
    static const char *const BAD[] = {"", "-h", "../x", "a/b", "a b", "a;b", ".x", NULL};
    g_autoptr(EbSupervisor) systemd = eb_supervisor_new_systemd("/bin/false");

    for (guint i = 0; BAD[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;
        g_auto(EbUnitStatus) status = {0};
        g_assert_false(eb_supervisor_query(systemd, BAD[i], &status, &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "supervisor.unit", NULL);
    }
}

/* A scan directory that others can write, or without its s6-svscan, is none. */
static void
test_scan_dir(void)
{
    g_autofree char *dir = eb_test_temp_dir("scan");
    g_autofree char *control = g_build_filename(dir, ".s6-svscan", NULL);
    g_autofree char *fifo = g_build_filename(control, "control", NULL);
    g_autoptr(GError) open_error = NULL;
    g_autoptr(GError) dead_error = NULL;

    if (geteuid() != 0) {
        g_test_skip("needs directories of root");
        return;
    }
    g_assert_cmpint(chmod(dir, 0777), ==, 0);
    g_assert_null(eb_supervisor_find(dir, &open_error));
    eb_test_assert_error(open_error, EB_ERROR_CONFIG, "supervisor.scan-dir", "root alone");
    g_assert_cmpint(chmod(dir, 0755), ==, 0);
    g_assert_cmpint(mkdir(control, 0700), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_null(eb_supervisor_find(dir, &dead_error));
    eb_test_assert_error(dead_error, EB_ERROR_CONFIG, "supervisor.scan-dir", "no s6-svscan runs there");
    /* A reader of the pipe is what tells a living one. */
    int reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    g_autoptr(EbSupervisor) found = eb_supervisor_find(dir, NULL);
    g_assert_nonnull(found);
    g_assert_cmpint(eb_supervisor_get_kind(found), ==, EB_SUPERVISOR_S6);
    g_assert_cmpstr(eb_supervisor_get_scan_dir(found), ==, dir);
    g_auto(EbUnitStatus) status = {0};
    g_assert_true(eb_supervisor_query(found, "errand-boxd", &status, NULL));
    g_assert_cmpint(status.state, ==, EB_UNIT_MISSING);
    close(reader);
}

/* The words that systemctl gets, and its answer back; in a thread as well. */
static void
test_systemctl(void)
{
    g_autofree char *dir = eb_test_temp_dir("ctl");
    g_autofree char *program = g_build_filename(dir, "systemctl", NULL);
    g_autofree char *log = g_build_filename(dir, "log", NULL);
    g_autofree char *script =
        g_strdup_printf("#!/bin/sh\necho \"$*\" >>%s\ncase $1 in show) printf 'LoadState=loaded\\n"
                        "ActiveState=failed\\nExecMainCode=1\\nExecMainStatus=3\\n' ;; esac\n",
                        log);
    g_autoptr(GError) error = NULL;
    g_autofree char *said = NULL;
    g_auto(EbUnitStatus) status = {0};
    g_auto(EbTestResult) done = {0};

    eb_test_write_file(program, script);
    g_assert_cmpint(chmod(program, 0755), ==, 0);
    g_autoptr(EbSupervisor) systemd = eb_supervisor_new_systemd(program);
    eb_supervisor_query_async(systemd, "errand-boxd", NULL, eb_test_result_ready, &done);
    g_assert_true(eb_supervisor_query_finish(systemd, eb_test_result_wait(&done), &status, &error));
    g_assert_no_error(error);
    g_assert_cmpint(status.state, ==, EB_UNIT_FAILED);
    g_assert_cmpint(status.exit_code, ==, 3);
    g_assert_true(eb_supervisor_start(systemd, "errand-boxd", 10000, &error));
    g_assert_true(eb_supervisor_stop(systemd, "incus.socket", 10000, &error));
    g_assert_true(eb_supervisor_set_enabled(systemd, "errand-boxd", TRUE, &error));
    g_assert_true(eb_supervisor_reload(systemd, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(log, &said, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    const char *const expected[] = {
        "show --no-pager --timestamp=unix --property=" EB_UNIT_SYSTEMD_PROPERTIES " errand-boxd.service",
        "show --no-pager --timestamp=unix --property=" EB_UNIT_SYSTEMD_PROPERTIES " errand-boxd.service",
        "--no-ask-password --quiet reset-failed errand-boxd.service",
        "--no-ask-password --quiet start errand-boxd.service",
        "--no-ask-password --quiet stop incus.socket",
        "--no-ask-password --quiet enable errand-boxd.service",
        "--no-ask-password --quiet daemon-reload",
        "",
        NULL};
    for (guint i = 0; expected[i] != NULL; i++)
        g_assert_cmpstr(lines[i], ==, expected[i]);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/supervisor/systemd", test_systemd);
    g_test_add_func("/supervisor/systemd-text", test_systemd_text);
    g_test_add_func("/supervisor/s6", test_s6);
    g_test_add_func("/supervisor/s6-nonsense", test_s6_nonsense);
    g_test_add_func("/supervisor/names", test_names);
    g_test_add_func("/supervisor/scan-dir", test_scan_dir);
    g_test_add_func("/supervisor/systemctl", test_systemctl);
    return g_test_run();
}
