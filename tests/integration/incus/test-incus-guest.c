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

int
main(int argc, char **argv)
{
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    guest = incus_test_spec("guest");
    incus_test_launch(incus_test.backend, guest);
    g_test_add_func("/incus/guest/streams", test_streams);
    g_test_add_func("/incus/guest/exit-codes", test_exit_codes);
    g_test_add_func("/incus/guest/missing-program", test_missing_program);
    int code = g_test_run();
    incus_test_destroy(incus_test.backend, guest->name);
    g_assert_false(incus_test_exists(incus_test.backend, guest->name));
    eb_container_spec_free(guest);
    g_clear_object(&incus_test.backend);
    g_clear_pointer(&incus_test.incusd, eb_test_incusd_release);
    return code;
}
