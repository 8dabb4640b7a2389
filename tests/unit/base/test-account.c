/* SPDX-License-Identifier: MIT */
/* Giving up root is for good, and for real: in a process of its own. */
#include "core/base/eb-account.h"

#include "tests/lib/eb-test.h"

#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every Linux system has it. */
#define OTHER "nobody"

static void
test_find(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbAccount) account = eb_account_find(OTHER, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(account->name, ==, OTHER);
    g_assert_cmpuint(account->uid, !=, 0);
    g_assert_nonnull(account->home);
    g_assert_null(eb_account_find("no-such-account", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "account.missing", "errand-box setup");
    g_clear_error(&error);
    g_assert_null(eb_account_find("root", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "account.root", "root");
}

static void
test_become(void)
{
    if (geteuid() != 0) {
        g_test_skip("needs root");
        return;
    }
    if (!g_test_subprocess()) {
        g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
        g_test_trap_assert_passed();
        return;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(EbAccount) account = eb_account_find(OTHER, &error);
    g_setenv("XDG_CONFIG_HOME", "/nowhere", TRUE);
    umask(0);
    g_assert_true(eb_account_check_caller(account, &error));
    g_assert_true(eb_account_become(account, &error));
    g_assert_no_error(error);

    uid_t uid[3];
    gid_t gid[3], groups[64];
    g_assert_cmpint(getresuid(&uid[0], &uid[1], &uid[2]), ==, 0);
    g_assert_cmpint(getresgid(&gid[0], &gid[1], &gid[2]), ==, 0);
    for (guint i = 0; i < 3; i++) {
        g_assert_cmpuint(uid[i], ==, account->uid);
        g_assert_cmpuint(gid[i], ==, account->gid);
    }
    int n_groups = getgroups(G_N_ELEMENTS(groups), groups);
    for (int i = 0; i < n_groups; i++)
        g_assert_cmpuint(groups[i], !=, 0);
    g_assert_cmpint(setuid(0), ==, -1);
    g_assert_cmpint(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), ==, 1);
    g_assert_cmpuint(umask(0), ==, 077);
    g_autofree char *here = g_get_current_dir();
    g_assert_cmpstr(here, ==, "/");
    g_assert_cmpstr(g_getenv("HOME"), ==, account->home);
    g_assert_null(g_getenv("XDG_CONFIG_HOME"));

    /* Once more as the account itself is fine; as somebody else it is refused. */
    g_assert_true(eb_account_become(account, &error));
    account->uid++;
    g_assert_false(eb_account_check_caller(account, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "account.caller", OTHER);
    g_clear_error(&error);
    g_assert_false(eb_account_become(account, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "account.caller", NULL);
}

static void
test_protect(void)
{
    struct rlimit limit;
    g_autoptr(GError) error = NULL;

    if (!g_test_subprocess()) {
        g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
        g_test_trap_assert_passed();
        return;
    }
    g_assert_true(eb_account_protect_process(&error));
    g_assert_no_error(error);
    g_assert_cmpint(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), ==, 0);
    g_assert_cmpint(getrlimit(RLIMIT_CORE, &limit), ==, 0);
    g_assert_cmpuint(limit.rlim_cur, ==, 0);
    g_assert_cmpuint(limit.rlim_max, ==, 0);
    /* LeakSanitizer looks into its own process, which is shut now. */
    _exit(0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/account/find", test_find);
    g_test_add_func("/account/become", test_become);
    g_test_add_func("/account/protect", test_protect);
    return g_test_run();
}
