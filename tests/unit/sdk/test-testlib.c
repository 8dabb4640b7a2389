/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <unistd.h>

static void
test_temp_dir(void)
{
    g_autofree char *dir = eb_test_temp_dir("lib");
    g_autofree char *file = g_build_filename(dir, "a/b/c", NULL);
    g_autofree char *link = g_build_filename(dir, "a/out", NULL);
    g_autofree char *victim = eb_test_temp_dir("victim");
    g_autofree char *kept = g_build_filename(victim, "kept", NULL);

    eb_test_write_file(file, "x");
    eb_test_write_file(kept, "x");
    g_assert_cmpint(symlink(victim, link), ==, 0);
    eb_test_remove_tree(dir);
    g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(kept, G_FILE_TEST_EXISTS)); /* a link is not followed */
}

static gboolean
raise_flag(gpointer data)
{
    *(gboolean *)data = TRUE;
    return G_SOURCE_REMOVE;
}

static void
test_wait(void)
{
    g_auto(EbTestResult) done = {0};
    GTask *task = g_task_new(NULL, NULL, eb_test_result_ready, &done);
    gboolean flag = FALSE;

    g_idle_add(raise_flag, &flag);
    eb_test_run_until_true(&flag);
    g_task_return_int(task, 5);
    g_object_unref(task);
    g_assert_cmpint(g_task_propagate_int(G_TASK(eb_test_result_wait(&done)), NULL), ==, 5);
    eb_test_run_for(1);
    eb_test_drain();
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/testlib/temp-dir", test_temp_dir);
    g_test_add_func("/testlib/wait", test_wait);
    return g_test_run();
}
