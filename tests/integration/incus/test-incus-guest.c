/* SPDX-License-Identifier: MIT */
/* One guest: launch, processes in it, its end. */
#include <signal.h>

#include "incus-test.h"

static EbContainerSpec *guest; /* shared by the tests that do not end it */

static void
assert_shell(guint32 uid, const char *input, const char *command, int code, const char *out, const char *err)
{
    g_auto(IncusRun) run = incus_test_shell(incus_test.backend, guest->name, uid, input, command);
    g_assert_no_error(run.error);
    g_assert_cmpstr(run.out->str, ==, out);
    g_assert_cmpstr(run.err->str, ==, err);
    g_assert_cmpint(run.code, ==, code);
}

static void
test_streams(void)
{
    assert_shell(1000, "hello\n", "cat; echo err >&2; id -u; id -g; exit 7", 7, "hello\n1000\n1000\n", "err\n");
    assert_shell(0, NULL, "id -u", 0, "0\n", "");
    assert_shell(1000, NULL, "true", 0, "", "");
}

/* The first output of a short process comes while its sockets are still being opened: none of it is lost. */
static void
test_short_processes(void)
{
    for (guint i = 0; i < 60; i++)
        assert_shell(1000, NULL, "echo out; echo err >&2", 0, "out\n", "err\n");
}

static void
test_exit_codes(void)
{
    assert_shell(0, NULL, "exit 125", 125, "", "");
    assert_shell(0, NULL, "exit 126", 126, "", "");
    assert_shell(0, NULL, "exit 127", 127, "", "");
    assert_shell(0, NULL, "exit 255", 255, "", "");
    assert_shell(0, NULL, "kill -9 $$", 128 + SIGKILL, "", "");
}

static void
test_missing_program(void)
{
    static const char *const missing[] = {"/no/such/program", NULL};
    static const char *const directory[] = {"/etc", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbExec) exec = incus_test_exec(incus_test.backend, guest->name, 0, missing);
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 127);
    g_assert_no_error(error);
    g_autoptr(EbExec) other = incus_test_exec(incus_test.backend, guest->name, 0, directory);
    g_assert_cmpint(incus_test_wait(other, &error), ==, 126);
    g_assert_no_error(error);
}

static void
test_signals(void)
{
    static const char *const argv[] = {"sleep", "1000", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbExec) exec = incus_test_exec(incus_test.backend, guest->name, 1000, argv);
    g_assert_true(eb_exec_send_signal(exec, SIGTERM, &error));
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 128 + SIGTERM);
    g_assert_no_error(error);
    /* any number of waiters, also late ones */
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 128 + SIGTERM);
    g_assert_false(eb_exec_send_signal(exec, SIGTERM, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "incus.exec-ended", NULL);
    g_clear_error(&error);
    g_assert_false(eb_exec_resize(exec, 10, 10, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "incus.no-tty", NULL);
}

static void
test_cancelled_wait(void)
{
    static const char *const argv[] = {"cat", NULL};
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(EbExec) exec = incus_test_exec(incus_test.backend, guest->name, 1000, argv);
    eb_exec_wait_async(exec, cancellable, eb_test_result_ready, &done);
    eb_test_run_for(20);
    g_cancellable_cancel(cancellable);
    g_assert_cmpint(eb_exec_wait_finish(exec, eb_test_result_wait(&done), &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    g_clear_error(&error);
    /* the process lives on and ends by its end of file */
    g_output_stream_close(eb_exec_get_stdin(exec), NULL, NULL);
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 0);
    g_assert_no_error(error);
}

static gboolean
process_gone(gpointer user_data)
{
    g_auto(IncusRun) run = incus_test_shell(incus_test.backend, guest->name, 0, NULL, user_data);
    return run.code == 1;
}

static void
test_drop_kills(void)
{
    static const char *const argv[] = {"sleep", "77177", NULL};
    EbExec *exec = incus_test_exec(incus_test.backend, guest->name, 1000, argv);
    assert_shell(0, NULL, "grep -qs 7717[7] /proc/[0-9]*/cmdline", 0, "", "");
    g_object_unref(exec);
    eb_test_run_until(process_gone, (gpointer) "grep -qs 7717[7] /proc/[0-9]*/cmdline");
}

/* A process that closes its output early, and children that keep it open. */
static void
test_output_ends(void)
{
    assert_shell(1000, NULL, "exec >&- 2>&-; sleep 0.3; exit 3", 3, "", "");
    assert_shell(1000, NULL, "sleep 60 & echo out; exit 4", 4, "out\n", "");
}

static gsize
process_rss(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/statm", &text, NULL, NULL));
    g_auto(GStrv) fields = g_strsplit(text, " ", 0);
    return (gsize)g_ascii_strtoull(fields[1], NULL, 10) * 4096;
}

#define FLOOD_MIB 200

/* 200 MiB to a reader that first does nothing at all: memory stays flat, every byte comes. */
static void
test_back_pressure(void)
{
    static const char *const argv[] = {"attack", "flood", G_STRINGIFY(FLOOD_MIB), NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbExec) exec = incus_test_exec(incus_test.backend, guest->name, 1000, argv);
    gsize before = process_rss();
    eb_test_run_for(1500);
    g_assert_cmpuint(process_rss(), <, before + 16 * 1024 * 1024);

    gsize total = 0;
    g_autofree char *buffer = g_malloc(1 << 20);
    for (;;) {
        gssize got = g_pollable_input_stream_read_nonblocking(G_POLLABLE_INPUT_STREAM(eb_exec_get_stdout(exec)), buffer,
                                                              1 << 20, NULL, &error);
        if (got == 0)
            break;
        if (got < 0) {
            g_assert_error(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
            g_clear_error(&error);
            g_main_context_iteration(NULL, TRUE);
            continue;
        }
        g_assert_cmpint(buffer[0], ==, 'y');
        g_assert_cmpint(buffer[got - 1], ==, 'y');
        total += (gsize)got;
    }
    g_assert_cmpuint(total, ==, (gsize)FLOOD_MIB << 20);
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 0);
    g_assert_no_error(error);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    g_assert_cmpuint(process_rss(), <, before + 32 * 1024 * 1024);
#endif
}

/* 24 MiB in to a process that does not read at first, and out again unharmed. */
static void
test_large_input(void)
{
    g_autofree char *input = g_malloc((24 << 20) + 1);
    for (gsize i = 0; i < 24 << 20; i++)
        input[i] = (char)('a' + (i * 7 + i / 1000) % 26);
    input[24 << 20] = '\0';
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_MD5, input, -1);
    g_autofree char *expected = g_strdup_printf("%s  -\n", sum);
    assert_shell(1000, input, "sleep 1; md5sum", 0, expected, "");
    g_auto(IncusRun) run = incus_test_shell(incus_test.backend, guest->name, 1000, input, "cat");
    g_assert_cmpuint(run.out->len, ==, 24 << 20);
    g_assert_cmpint(memcmp(run.out->str, input, run.out->len), ==, 0);
}

static void
test_terminal(void)
{
    static const char *const command[] = {"sh", "-c", "tty; stty size; read x; echo got $x >&2; stty size; exit 9",
                                          NULL};
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbExecSpec) spec = eb_exec_spec_new(command);
    spec->uid = spec->gid = 1000;
    spec->tty = TRUE;
    spec->rows = 33;
    spec->columns = 99;
    eb_container_backend_exec_async(incus_test.backend, guest->name, spec, EB_TEST_DEADLINE_MS, NULL,
                                    eb_test_result_ready, &done);
    g_autoptr(EbExec) exec = eb_container_backend_exec_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_null(eb_exec_get_stderr(exec));
    g_assert_true(eb_exec_resize(exec, 44, 111, &error));
    g_assert_true(g_output_stream_write_all(eb_exec_get_stdin(exec), "word\n", 5, NULL, NULL, &error));
    g_autoptr(GString) out = incus_test_read_all(eb_exec_get_stdout(exec));
    g_assert_nonnull(strstr(out->str, "/dev/pts/"));
    g_assert_nonnull(strstr(out->str, "got word"));
    g_assert_nonnull(strstr(out->str, "44 111"));
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 9);
    g_assert_no_error(error);
}

static void
test_inspection(void)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_list_async(incus_test.backend, guest->name, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready,
                                    &done);
    g_autoptr(GPtrArray) infos =
        eb_container_backend_list_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(infos->len, ==, 1);
    const EbInstanceInfo *info = infos->pdata[0];
    g_assert_cmpstr(info->name, ==, guest->name);
    g_assert_cmpint(info->state, ==, EB_INSTANCE_RUNNING);
    g_assert_cmpuint(info->memory_limit, ==, guest->memory_bytes);
    g_assert_cmpuint(info->memory_usage, >, 0);
    g_assert_cmpuint(info->tasks, >, 0);
    g_assert_cmpint(info->created_unix, >, 1700000000);
    g_assert_cmpstr(g_hash_table_lookup(info->labels, "session"), ==, "s-1");
    g_assert_cmpuint(g_hash_table_size(info->labels), ==, 1);
}

static void
test_exec_refused(void)
{
    static const char *const argv[] = {"true", NULL};
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbExecSpec) spec = eb_exec_spec_new(argv);
    eb_container_backend_exec_async(incus_test.backend, "no-such-guest", spec, EB_TEST_DEADLINE_MS, NULL,
                                    eb_test_result_ready, &done);
    g_assert_null(eb_container_backend_exec_finish(incus_test.backend, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
}

int
main(int argc, char **argv)
{
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    guest = incus_test_spec("guest");
    eb_container_spec_set_label(guest, "session", "s-1");
    incus_test_launch(incus_test.backend, guest);
    g_test_add_func("/incus/guest/streams", test_streams);
    g_test_add_func("/incus/guest/short-processes", test_short_processes);
    g_test_add_func("/incus/guest/exit-codes", test_exit_codes);
    g_test_add_func("/incus/guest/missing-program", test_missing_program);
    g_test_add_func("/incus/guest/signals", test_signals);
    g_test_add_func("/incus/guest/cancelled-wait", test_cancelled_wait);
    g_test_add_func("/incus/guest/drop-kills", test_drop_kills);
    g_test_add_func("/incus/guest/output-ends", test_output_ends);
    g_test_add_func("/incus/guest/back-pressure", test_back_pressure);
    g_test_add_func("/incus/guest/large-input", test_large_input);
    g_test_add_func("/incus/guest/terminal", test_terminal);
    g_test_add_func("/incus/guest/inspection", test_inspection);
    g_test_add_func("/incus/guest/exec-refused", test_exec_refused);
    int code = g_test_run();
    incus_test_destroy(incus_test.backend, guest->name);
    g_assert_false(incus_test_exists(incus_test.backend, guest->name));
    eb_container_spec_free(guest);
    g_clear_object(&incus_test.backend);
    g_clear_pointer(&incus_test.incusd, eb_test_incusd_release);
    return code;
}
