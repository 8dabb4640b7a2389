/* SPDX-License-Identifier: MIT */
/* A directory that others can change, or replace, is nobody's own. */
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/eb-own-dir.h"
#include "tests/lib/eb-test.h"

static char *
make(const char *parent, const char *name, mode_t mode)
{
    char *path = g_build_filename(parent, name, NULL);

    g_assert_cmpint(mkdir(path, 0700), ==, 0);
    g_assert_cmpint(chmod(path, mode), ==, 0);
    return path;
}

static void
refused(const char *path, EbErrorCode code)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *real = eb_own_dir_resolve(path, &error);

    g_assert_null(real);
    eb_test_assert_error(error, code, "dir.owner", NULL);
}

static void
test_own_dir(void)
{
    g_autofree char *root = eb_test_temp_dir("own");
    g_autofree char *good = make(root, "good", 0755);
    g_autofree char *open_to_all = make(root, "open", 0777);
    g_autofree char *sticky = make(root, "sticky", 01777);
    g_autofree char *below_open = make(open_to_all, "mine", 0700);
    g_autofree char *below_sticky = make(sticky, "mine", 0700);
    g_autofree char *link = g_build_filename(root, "link", NULL);
    g_autofree char *none = g_build_filename(root, "none", NULL);
    g_autofree char *root_real = eb_own_dir_resolve(root, NULL);
    g_autofree char *real = eb_own_dir_resolve(good, NULL);
    g_autofree char *in_sticky = eb_own_dir_resolve(below_sticky, NULL);

    g_assert_cmpint(symlink("good", link), ==, 0);
    g_autofree char *linked = eb_own_dir_resolve(link, NULL);
    g_assert_true(g_str_has_suffix(real, "/good"));
    /* The name that is used from here on has no link in it that could come to lead elsewhere. */
    g_assert_cmpstr(linked, ==, real);
    g_assert_nonnull(in_sticky);
    refused(open_to_all, EB_ERROR_DENIED);
    refused(sticky, EB_ERROR_DENIED);
    refused(none, EB_ERROR_NOT_FOUND);
    if (geteuid() != 0)
        return;
    /* Who can write the directory above puts another one in its place. */
    refused(below_open, EB_ERROR_DENIED);
    g_assert_cmpint(chown(good, 65534, 65534), ==, 0);
    refused(good, EB_ERROR_DENIED);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/own-dir/own-dir", test_own_dir);
    return g_test_run();
}
