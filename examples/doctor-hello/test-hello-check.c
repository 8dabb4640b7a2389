/* SPDX-License-Identifier: MIT */
#include "hello-check.h"

/* One tree that makes the check fire, one that clears it: what every check ships. */

static EbCheckResult *
run_on(const char *tree)
{
    g_autofree char *root = g_build_filename(g_getenv("HELLO_FIXTURES"), tree, NULL);
    g_autoptr(EbHost) host = eb_host_new_fixture(root);
    g_autoptr(EbConfigSection) settings = eb_config_section_new("service");

    return hello_check_run(host, settings, NULL);
}

static void
test_fires(void)
{
    g_autoptr(EbCheckResult) result = run_on("fires");

    g_assert_cmpint(result->status, ==, EB_CHECK_DEGRADED);
    g_assert_cmpstr(result->observed, ==, "/etc/hostname says \"localhost\"");
}

static void
test_clears(void)
{
    g_autoptr(EbCheckResult) result = run_on("clears");

    g_assert_cmpint(result->status, ==, EB_CHECK_OK);
    g_assert_cmpstr(result->observed, ==, "hello, builder-1");
}

static void
test_cannot_look(void)
{
    g_autoptr(EbCheckResult) result = run_on("no-such-tree");

    g_assert_cmpint(result->status, ==, EB_CHECK_SKIPPED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hello/fires", test_fires);
    g_test_add_func("/hello/clears", test_clears);
    g_test_add_func("/hello/cannot-look", test_cannot_look);
    return g_test_run();
}
