/* SPDX-License-Identifier: MIT */
#include "tests/component/cli/eb-test-program.h"

#include <string.h>

void
eb_test_run_clear(EbTestRun *self)
{
    g_clear_pointer(&self->out, g_free);
    g_clear_pointer(&self->err, g_free);
}

char *
eb_test_program(const char *name)
{
    const char *root = g_getenv("EB_TEST_BUILD_ROOT");

    g_assert_nonnull(root);
    return g_build_filename(root, name, NULL);
}

static GSubprocessLauncher *
launcher(const char *config, GSubprocessFlags flags)
{
    GSubprocessLauncher *self = g_subprocess_launcher_new(flags);

    if (config != NULL)
        g_subprocess_launcher_setenv(self, "ERRAND_BOX_CONFIG", config, TRUE);
    else
        g_subprocess_launcher_unsetenv(self, "ERRAND_BOX_CONFIG");
    g_subprocess_launcher_unsetenv(self, "NOTIFY_SOCKET");
    g_subprocess_launcher_unsetenv(self, "MALLOC_PERTURB_");
    return self;
}

static int
exit_code(GSubprocess *process)
{
    return g_subprocess_get_if_exited(process) ? g_subprocess_get_exit_status(process)
                                               : 128 + g_subprocess_get_term_sig(process);
}

static char *
to_text(GBytes *bytes)
{
    gsize length = 0;
    const char *data = g_bytes_get_data(bytes, &length);

    return data != NULL ? g_strndup(data, length) : g_strdup("");
}

EbTestRun
eb_test_run_program(const char *config, const char *input, const char *line)
{
    EbTestRun run = {0};
    g_autoptr(GError) error = NULL;
    g_autofree char *program = eb_test_program("errand-box");
    g_autofree char *whole = g_strconcat(program, " ", line, NULL);
    g_auto(GStrv) argv = g_strsplit(whole, " ", -1);
    g_autoptr(GSubprocessLauncher) start = launcher(
        config, G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_autoptr(GSubprocess) process = g_subprocess_launcher_spawnv(start, (const char *const *)argv, &error);
    g_autoptr(GBytes) in = g_bytes_new(input, input != NULL ? strlen(input) : 0);
    g_autoptr(GBytes) out = NULL, err = NULL;

    g_assert_no_error(error);
    g_subprocess_communicate(process, in, NULL, &out, &err, &error);
    g_assert_no_error(error);
    run.code = exit_code(process);
    run.out = to_text(out);
    run.err = to_text(err);
    g_test_message("%s -> %d %s%s", line, run.code, run.out, run.err);
    return run;
}

GSubprocess *
eb_test_spawn(const char *name, const char *config, const char *log, const char *line)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *program = eb_test_program(name);
    g_autofree char *whole = *line != '\0' ? g_strconcat(program, " ", line, NULL) : g_strdup(program);
    g_auto(GStrv) argv = g_strsplit(whole, " ", -1);
    g_autoptr(GSubprocessLauncher) start = launcher(config, G_SUBPROCESS_FLAGS_STDERR_MERGE);

    g_subprocess_launcher_set_stdout_file_path(start, log);
    if (g_getenv("EB_TEST_NOTIFY_SOCKET") != NULL)
        g_subprocess_launcher_setenv(start, "NOTIFY_SOCKET", g_getenv("EB_TEST_NOTIFY_SOCKET"), TRUE);
    GSubprocess *process = g_subprocess_launcher_spawnv(start, (const char *const *)argv, &error);
    g_assert_no_error(error);
    return process;
}

int
eb_test_wait_exit(GSubprocess *process)
{
    g_auto(EbTestResult) done = {0};

    g_subprocess_wait_async(process, NULL, eb_test_result_ready, &done);
    g_assert_true(g_subprocess_wait_finish(process, eb_test_result_wait(&done), NULL));
    return exit_code(process);
}
