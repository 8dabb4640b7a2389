/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static GPtrArray *temp_dirs; /* (element-type utf8) (owned) */
static pid_t main_pid;

static void
remove_temp_dirs(void)
{
    /* A forked child that exits normally must not take its parent's directories along. */
    if (temp_dirs == NULL || getpid() != main_pid)
        return;
    for (guint i = 0; g_getenv("EB_TEST_KEEP") == NULL && i < temp_dirs->len; i++)
        eb_test_remove_tree(g_ptr_array_index(temp_dirs, i));
    g_clear_pointer(&temp_dirs, g_ptr_array_unref);
}

void
eb_test_init(int *argc, char ***argv)
{
    static const char *const unset[] = {
        "http_proxy",    "https_proxy",     "HTTP_PROXY",    "HTTPS_PROXY",       "all_proxy",
        "ALL_PROXY",     "no_proxy",        "NO_PROXY",      "ERRAND_BOX_CONFIG", "INCUS_SOCKET",
        "XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(unset); i++)
        g_unsetenv(unset[i]);
    g_setenv("LC_ALL", "C.UTF-8", TRUE);
    g_setenv("GSETTINGS_BACKEND", "memory", TRUE);
    g_setenv("GIO_USE_VFS", "local", TRUE);
    setlocale(LC_ALL, "");
    main_pid = getpid();
    g_test_init(argc, argv, NULL); /* prints the seed */
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
}

char *
eb_test_temp_dir(const char *name)
{
    g_autofree char *path = g_strdup_printf("/tmp/ebt-%s-XXXXXX", name != NULL ? name : "x");

    g_assert_cmpint(main_pid, !=, 0); /* without eb_test_init() nobody would remove it */
    g_assert_nonnull(g_mkdtemp_full(path, 0700));
    if (temp_dirs == NULL) {
        temp_dirs = g_ptr_array_new_with_free_func(g_free);
        atexit(remove_temp_dirs);
    }
    g_ptr_array_add(temp_dirs, g_strdup(path));
    return g_steal_pointer(&path);
}

void
eb_test_remove_tree(const char *path)
{
    GDir *dir;
    const char *name;
    struct stat info;

    if (lstat(path, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode)) {
        g_unlink(path);
        return;
    }
    g_chmod(path, 0700);
    dir = g_dir_open(path, 0, NULL);
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *child = g_build_filename(path, name, NULL);

        eb_test_remove_tree(child);
    }
    g_clear_pointer(&dir, g_dir_close);
    g_rmdir(path);
}

void
eb_test_write_file(const char *path, const char *content)
{
    g_autofree char *parent = g_path_get_dirname(path);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(g_mkdir_with_parents(parent, 0755), ==, 0);
    g_file_set_contents(path, content, -1, &error);
    g_assert_no_error(error);
}

static gboolean
set_flag(gpointer data)
{
    *(gboolean *)data = TRUE;
    return G_SOURCE_REMOVE;
}

static GSource *
attach_timer(guint ms, gboolean *flag)
{
    GSource *source = g_timeout_source_new(ms);

    g_source_set_callback(source, set_flag, flag, NULL);
    g_source_attach(source, NULL);
    return source;
}

static void
detach_timer(GSource *source)
{
    g_source_destroy(source);
    g_source_unref(source);
}

void
eb_test_run_until(EbTestCondition condition, gpointer user_data)
{
    gboolean late = FALSE;
    GSource *timer = attach_timer(EB_TEST_DEADLINE_MS, &late);

    while (!condition(user_data) && !late)
        g_main_context_iteration(NULL, TRUE);
    detach_timer(timer);
    if (late)
        g_error("what the test waits for did not happen within %d s", EB_TEST_DEADLINE_MS / 1000);
}

static gboolean
flag_is_set(gpointer data)
{
    return *(const gboolean *)data != 0;
}

void
eb_test_run_until_true(const gboolean *flag)
{
    eb_test_run_until(flag_is_set, (gpointer)flag);
}

void
eb_test_run_for(guint ms)
{
    gboolean over = FALSE;
    GSource *timer = attach_timer(ms, &over);

    while (!over)
        g_main_context_iteration(NULL, TRUE);
    detach_timer(timer);
}

void
eb_test_drain(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        continue;
}

void
eb_test_result_ready(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbTestResult *self = user_data;

    self->calls++;
    g_assert_cmpuint(self->calls, ==, 1);
    self->result = g_object_ref(result);
}

static gboolean
has_result(gpointer data)
{
    return ((EbTestResult *)data)->result != NULL;
}

GAsyncResult *
eb_test_result_wait(EbTestResult *self)
{
    eb_test_run_until(has_result, self);
    return self->result;
}

void
eb_test_result_clear(EbTestResult *self)
{
    g_clear_object(&self->result);
    self->calls = 0;
}

void
eb_test_assert_error(const GError *error, EbErrorCode code, const char *reason, const char *text)
{
    g_assert_error(error, EB_ERROR, (int)code);
    if (reason != NULL)
        g_assert_cmpstr(eb_error_get_reason(error), ==, reason);
    if (text != NULL && strstr(error->message, text) == NULL)
        g_error("\"%s\" is not in the message \"%s\"", text, error->message);
}
