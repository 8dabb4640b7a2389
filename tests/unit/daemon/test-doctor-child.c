/* SPDX-License-Identifier: MIT */
/* The doctor's process: what it is given, what it may print, what becomes of it when it does not end. */
#include "core/daemon/eb-daemon-doctor.h"
#include "eb-test.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    char *program; /* a script in the place of the doctor */
    JsonNode *report;
    GError *error;
    gboolean done;
} Run;

static void
on_done(GObject *source, GAsyncResult *result, gpointer data)
{
    Run *run = data;
    run->report = eb_daemon_doctor_run_finish(result, &run->error);
    run->done = TRUE;
}

static void
run_script(Run *run, const char *dir, const char *text, const char *const *ids, guint deadline_ms)
{
    g_autofree char *script = g_strdup_printf("#!/bin/sh\ncd '%s'\n%s\n", dir, text);

    run->program = g_build_filename(dir, "doctor.sh", NULL);
    eb_test_write_file(run->program, script);
    g_assert_cmpint(chmod(run->program, 0755), ==, 0);
    eb_daemon_doctor_run_async(NULL, run->program, "/some/where.toml", ids, deadline_ms, NULL, on_done, run);
    eb_test_run_until_true(&run->done);
}

static void
run_clear(Run *run)
{
    g_clear_pointer(&run->program, g_free);
    g_clear_pointer(&run->report, json_node_unref);
    g_clear_error(&run->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

static char *
slurp(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static void
test_given(void)
{
    const char *const ids[] = {"E-11", "E-33", NULL};
    g_autofree char *dir = eb_test_temp_dir("doctor");
    g_auto(Run) run = {0};

    g_setenv("EB_TEST_SECRET", "not for others", TRUE);
    g_setenv("INCUS_DIR", "/some/incus", TRUE);
    run_script(&run, dir, "echo \"$@\" >args; env >env; cat >stdin; echo '{\"schema\":1}'; exit 1", ids,
               EB_DAEMON_DOCTOR_DEADLINE_MS);
    g_assert_no_error(run.error);
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(run.report), "schema", 0), ==, 1);
    g_autofree char *args = slurp(dir, "args"), *env = slurp(dir, "env"), *in = slurp(dir, "stdin");
    g_assert_cmpstr(args, ==, "--config /some/where.toml --json doctor --service --check E-11 --check E-33\n");
    g_assert_cmpstr(in, ==, "");
    g_assert_null(strstr(env, "EB_TEST_SECRET"));
    g_assert_nonnull(strstr(env, "INCUS_DIR=/some/incus\n"));
    g_unsetenv("INCUS_DIR");
}

static void
test_wrong(void)
{
    static const struct {
        const char *script;
        EbErrorCode code;
        const char *reason, *text;
    } cases[] = {
        {"exit 0", EB_ERROR_FAILED, "doctor.died", "exited with code 0 without a report"},
        {"echo one >&2; echo 'two is the reason' >&2; exit 2", EB_ERROR_FAILED, "doctor.died",
         "exited with code 2 without a report: two is the reason"},
        {"kill -SEGV $$", EB_ERROR_FAILED, "doctor.died", "killed by SIGSEGV"},
        {"echo '{}'; kill -KILL $$", EB_ERROR_FAILED, "doctor.died", "killed by SIGKILL"},
        {"echo rubbish", EB_ERROR_INVALID, "json.syntax", "what the doctor printed cannot be read"},
        {"echo '{\"schema\":1'", EB_ERROR_INVALID, "json.syntax", NULL},
        {"head -c 5000000 /dev/zero", EB_ERROR_PROTOCOL, "doctor.output", "more than 1048576 bytes"},
        {"head -c 5000000 /dev/zero >&2; exit 5", EB_ERROR_FAILED, "doctor.died", "exited with code 5"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *dir = eb_test_temp_dir("doctor");
        g_auto(Run) run = {0};
        run_script(&run, dir, cases[i].script, NULL, EB_DAEMON_DOCTOR_DEADLINE_MS);
        g_assert_null(run.report);
        eb_test_assert_error(run.error, cases[i].code, cases[i].reason, cases[i].text);
        g_assert_cmpuint(strlen(run.error->message), <, 800);
    }
    g_auto(Run) missing = {0};
    eb_daemon_doctor_run_async(NULL, "/nonexistent/doctor", NULL, NULL, EB_DAEMON_DOCTOR_DEADLINE_MS, NULL, on_done,
                               &missing);
    eb_test_run_until_true(&missing.done);
    g_assert_nonnull(missing.error);
}

static void
test_hangs(void)
{
    g_autofree char *dir = eb_test_temp_dir("doctor");
    g_auto(Run) run = {0};

    run_script(&run, dir, "trap '' TERM HUP; echo $$ >pid; while :; do read x </dev/zero; done", NULL, 500);
    eb_test_assert_error(run.error, EB_ERROR_TIMEOUT, "doctor.hangs", "within 500 ms");
    g_autofree char *pid = slurp(dir, "pid");
    g_assert_cmpint(kill((pid_t)g_ascii_strtoll(pid, NULL, 10), 0), ==, -1);
}

/* It ended, but something that it left behind holds its output open. */
static void
test_left_behind(void)
{
    g_autofree char *dir = eb_test_temp_dir("doctor");
    g_auto(Run) run = {0};

    run_script(&run, dir, "sleep 1000 & echo $! >pid; echo '{\"schema\":1}'", NULL, EB_DAEMON_DOCTOR_DEADLINE_MS);
    g_assert_no_error(run.error);
    g_assert_nonnull(run.report);
    g_autofree char *pid = slurp(dir, "pid");
    g_assert_cmpint(kill((pid_t)g_ascii_strtoll(pid, NULL, 10), SIGKILL), ==, 0);
}

static void
test_cancelled(void)
{
    g_autofree char *dir = eb_test_temp_dir("doctor"), *path = g_build_filename(dir, "doctor.sh", NULL);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(Run) run = {0};

    eb_test_write_file(path, "#!/bin/sh\nexec sleep 1000\n");
    g_assert_cmpint(chmod(path, 0755), ==, 0);
    eb_daemon_doctor_run_async(NULL, path, NULL, NULL, EB_DAEMON_DOCTOR_DEADLINE_MS, cancellable, on_done, &run);
    g_cancellable_cancel(cancellable);
    eb_test_run_until_true(&run.done);
    eb_test_assert_error(run.error, EB_ERROR_CANCELLED, NULL, NULL);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/doctor-child/given", test_given);
    g_test_add_func("/doctor-child/wrong", test_wrong);
    g_test_add_func("/doctor-child/hangs", test_hangs);
    g_test_add_func("/doctor-child/left-behind", test_left_behind);
    g_test_add_func("/doctor-child/cancelled", test_cancelled);
    return g_test_run();
}
