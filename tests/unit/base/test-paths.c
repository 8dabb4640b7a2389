/* SPDX-License-Identifier: MIT */
/* A program of the build directory finds the parts of that build. */
#include "core/base/eb-paths.h"

#include "tests/lib/eb-test.h"

#include <string.h>
#include <sys/stat.h>

static void
test_uninstalled(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPaths) paths = eb_paths_new(&error);

    g_assert_no_error(error);
    g_assert_true(eb_paths_is_uninstalled(paths));
    g_assert_true(g_file_test(eb_paths_get_plugin_dir(paths), G_FILE_TEST_IS_DIR));
    g_autofree char *agents = g_build_filename(eb_paths_get_data_dir(paths), "agents", NULL);
    g_assert_true(g_file_test(agents, G_FILE_TEST_IS_DIR));
    g_assert_true(g_path_is_absolute(eb_paths_get_program_path(paths, "errand-box-broker")));
    g_assert_null(eb_paths_get_program_path(paths, "no-such-program"));
}

static void
test_programs(void)
{
    static const char *const names[] = {"launch", "relay", "init"};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPaths) paths = eb_paths_new(&error);
    struct stat info;

    int broker = eb_paths_get_broker_fd(paths, &error);
    g_assert_no_error(error);
    g_assert_cmpint(fstat(broker, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0111, !=, 0);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        GBytes *bytes = eb_paths_get_guest_program(paths, names[i], &error);
        g_assert_no_error(error);
        g_assert_cmpuint(g_bytes_get_size(bytes), >, 4);
        g_assert_cmpmem(g_bytes_get_data(bytes, NULL), 4, "\177ELF", 4);
        /* Read once: the second answer is the first. */
        g_assert_true(eb_paths_get_guest_program(paths, names[i], &error) == bytes);
        g_assert_cmpint(stat(eb_paths_get_program_path(paths, names[i]), &info), ==, 0);
        g_assert_cmpuint(g_bytes_get_size(bytes), ==, (gsize)info.st_size);
    }
    g_assert_null(eb_paths_get_guest_program(paths, "no-such-program", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "paths.program", "no-such-program");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/paths/uninstalled", test_uninstalled);
    g_test_add_func("/paths/programs", test_programs);
    return g_test_run();
}
