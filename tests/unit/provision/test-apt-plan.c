/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/provision/eb-apt-plan.h"
#include "tests/lib/eb-test.h"

static const char SIMULATION[] = "NOTE: This is only a simulation!\n"
                                 "Reading package lists...\n"
                                 "The following NEW packages will be installed:\n"
                                 "  incus-base uidmap\n"
                                 "Inst libnet1 (1.1.6+dfsg-3.2 Debian:12.5/stable [amd64])\n"
                                 "Inst uidmap:amd64 (1:4.13+dfsg1-1+deb12u1 Debian:12/stable [amd64])\n"
                                 "Inst libc6 [2.36-9] (2.36-10 Debian:12.5/stable [amd64]) []\n"
                                 "Inst zfs-dkms (2.1 Debian [all])\n"
                                 "Conf libnet1 (1.1.6+dfsg-3.2 Debian:12.5/stable [amd64])\n"
                                 "Remv lxd [5.0]\n"
                                 "Purg old-thing [1.0]\n"
                                 "Inst \n"
                                 "Remv\n";

static void
test_plan(void)
{
    g_autoptr(EbAptPlan) plan = eb_apt_plan_parse(SIMULATION);
    g_autofree char *kernel = eb_apt_plan_kernel(plan);

    g_assert_cmpuint(plan->installs->len, ==, 3);
    g_assert_cmpstr(plan->installs->pdata[0], ==, "libnet1");
    g_assert_cmpstr(plan->installs->pdata[1], ==, "uidmap");
    g_assert_cmpuint(plan->upgrades->len, ==, 1);
    g_assert_cmpstr(plan->upgrades->pdata[0], ==, "libc6");
    g_assert_cmpuint(plan->removes->len, ==, 2);
    g_assert_cmpstr(plan->removes->pdata[0], ==, "lxd");
    g_assert_cmpstr(plan->removes->pdata[1], ==, "old-thing");
    g_assert_cmpstr(kernel, ==, "zfs-dkms");
}

static void
test_plan_bound(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(EbAptPlan) plan = NULL;

    for (guint i = 0; i < EB_APT_PLAN_MAX + 10; i++)
        g_string_append_printf(text, "Inst p%u (1 Debian [all])\n", i);
    plan = eb_apt_plan_parse(text->str);
    g_assert_cmpuint(plan->installs->len, ==, EB_APT_PLAN_MAX);
}

static void
test_kernel(void)
{
    static const char *const KERNEL[] = {"linux-image-amd64",
                                         "linux-headers-6.1.0-18-amd64",
                                         "zfs-dkms",
                                         "dkms",
                                         "zfsutils-linux",
                                         "virtualbox-dkms",
                                         "zfs-initramfs",
                                         "initramfs-tools",
                                         "linux-modules-extra-6.8"};
    static const char *const PLAIN[] = {"incus-base",     "btrfs-progs", "lxcfs", "uidmap",
                                        "linux-libc-dev", "util-linux",  "kmod",  "libbtrfs0"};

    for (guint i = 0; i < G_N_ELEMENTS(KERNEL); i++)
        g_assert_true(eb_apt_is_kernel_package(KERNEL[i]));
    for (guint i = 0; i < G_N_ELEMENTS(PLAIN); i++)
        g_assert_false(eb_apt_is_kernel_package(PLAIN[i]));
}

static void
test_candidate(void)
{
    g_assert_true(eb_apt_has_candidate("incus-base:\n  Installed: (none)\n  Candidate: 6.0.4-2\n"));
    g_assert_false(eb_apt_has_candidate("incus-base:\n  Installed: (none)\n  Candidate: (none)\n"));
    g_assert_false(eb_apt_has_candidate(""));
}

static void
test_backports(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = eb_apt_backports_source("bookworm-updates main http://mirror.example/debian\n"
                                                    "bookworm contrib http://other.example/debian\n"
                                                    "bookworm main http://mirror.example/debian \n"
                                                    "bookworm main http://second.example/debian\n",
                                                    "bookworm", "/usr/share/keyrings/k.gpg", &error);

    g_assert_no_error(error);
    g_assert_nonnull(strstr(text, "\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n"
                                  "Signed-By: /usr/share/keyrings/k.gpg\n"));
    g_assert_null(eb_apt_backports_source("bookworm main http://a\nbookworm-backports main http://a\n", "bookworm",
                                          NULL, &error));
    eb_test_assert_error(error, EB_ERROR_EXISTS, "apt.backports", NULL);
    g_clear_error(&error);
    g_assert_null(eb_apt_backports_source("trixie main http://a\n", "bookworm", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "apt.mirror", "bookworm");
    g_clear_error(&error);
    /* Nothing that could become another line of the file. */
    g_assert_null(eb_apt_backports_source("bookworm main http://a b\n", "bookworm", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "apt.mirror", NULL);
}

static void
test_codename(void)
{
    static const struct {
        const char *text, *name;
    } CASES[] = {
        {"NAME=\"Debian\"\nVERSION_CODENAME=bookworm\n", "bookworm"},
        {"VERSION_CODENAME=\"noble\"\n", "noble"},
        {"VERSION_CODENAME=\n", NULL},
        {"VERSION_CODENAME=a b\n", NULL},
        {"NAME=x\n", NULL},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *name = eb_apt_release_codename(CASES[i].text);
        g_assert_cmpstr(name, ==, CASES[i].name);
    }
}

static void
test_new_lines(void)
{
    g_autofree char *names = eb_apt_new_lines("", "root:x:0\nincus:x:1\n", ':');
    g_autofree char *added = eb_apt_new_lines("root\ndaemon", "root:x:0:0\ndaemon:x:1\n_ssh:x:2\nincus:x:3\n", ':');
    g_autofree char *lines = eb_apt_new_lines("a:1:2", "a:1:2\nroot:1000000:1000000000\n", '\0');
    g_autofree char *none = eb_apt_new_lines("a:1:2", "a:1:2\n", '\0');

    g_assert_cmpstr(names, ==, "root\nincus");
    g_assert_cmpstr(added, ==, "_ssh\nincus");
    g_assert_cmpstr(lines, ==, "root:1000000:1000000000");
    g_assert_cmpstr(none, ==, "");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/apt-plan/plan", test_plan);
    g_test_add_func("/apt-plan/plan-bound", test_plan_bound);
    g_test_add_func("/apt-plan/kernel", test_kernel);
    g_test_add_func("/apt-plan/candidate", test_candidate);
    g_test_add_func("/apt-plan/backports", test_backports);
    g_test_add_func("/apt-plan/codename", test_codename);
    g_test_add_func("/apt-plan/new-lines", test_new_lines);
    return g_test_run();
}
