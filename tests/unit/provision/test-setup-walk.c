/* SPDX-License-Identifier: MIT */
/* Where root goes below what belongs to the service's account: by no link that others could have put there. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-setup-private.h"
#include "tests/lib/eb-test.h"

static void
make(const char *root, const char *name, mode_t mode)
{
    g_autofree char *path = g_build_filename(root, name, NULL);

    g_assert_cmpint(mkdir(path, 0700), ==, 0);
    g_assert_cmpint(chmod(path, mode), ==, 0);
}

static void
link_to(const char *root, const char *target, const char *name)
{
    g_autofree char *path = g_build_filename(root, name, NULL);

    g_assert_cmpint(symlink(target, path), ==, 0);
}

/* Which directory was come to: its mode says it. -1 with the reason: none. */
static int
walk(const char *root, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(root, name, NULL);
    int fd = eb_setup_open_directory(path, error);
    struct stat info;

    if (fd < 0)
        return -1;
    g_assert_cmpint(fstat(fd, &info), ==, 0);
    close(fd);
    return (int)(info.st_mode & 07777);
}

static void
test_links(void)
{
    static const struct {
        const char *name;
        int mode; /* -1: refused */
        EbErrorCode code;
    } CASES[] = {
        {"roots", 0755, 0},
        {"roots/target", 0711, 0},
        {"roots//./target", 0711, 0},
        {"own-link/target", 0711, 0},
        {"others", 0777, 0},
        {"others/real", 0701, 0},
        {"others/link", -1, EB_ERROR_DENIED},
        {"others/link/target", -1, EB_ERROR_DENIED},
        {"others/real/deep/target", -1, EB_ERROR_DENIED},
        {"others/file", -1, EB_ERROR_DENIED},
        {"others/none", -1, EB_ERROR_NOT_FOUND},
    };
    g_autofree char *root = eb_test_temp_dir("walk");
    g_autofree char *file = g_build_filename(root, "others", "file", NULL);

    make(root, "roots", 0755);
    make(root, "roots/target", 0711);
    make(root, "others", 0777); /* as good as another's: anybody can put a link there */
    make(root, "others/real", 0701);
    eb_test_write_file(file, "");
    link_to(root, "roots", "own-link");
    link_to(root, "../roots", "others/link");
    link_to(root, "../../roots", "others/real/deep");
    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_cmpint(walk(root, CASES[i].name, &error), ==, CASES[i].mode);
        if (CASES[i].mode < 0)
            eb_test_assert_error(error, CASES[i].code, "provision.directory", NULL);
    }
}

/* The account's own directory, which is not open to everybody: only root can try that. */
static void
test_other_owner(void)
{
    g_autofree char *root = eb_test_temp_dir("walk");
    g_autofree char *home = g_build_filename(root, "home", NULL);
    g_autoptr(GError) error = NULL;

    make(root, "target", 0711);
    make(root, "home", 0700);
    link_to(root, "../target", "home/link");
    if (geteuid() != 0 || chown(home, 65534, 65534) != 0) {
        g_test_skip("only root can give a directory away");
        return;
    }
    g_assert_cmpint(walk(root, "home/link", &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_DENIED, "provision.directory", "symbolic link");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/setup-walk/links", test_links);
    g_test_add_func("/setup-walk/other-owner", test_other_owner);
    return g_test_run();
}
