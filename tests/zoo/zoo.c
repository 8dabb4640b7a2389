/* SPDX-License-Identifier: MIT */
#include "zoo.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- building a directory of plugins --- */

char *
zoo_module_path(const char *dir, const char *name, const char *suffix)
{
    g_autofree char *file = g_strconcat(name, suffix, NULL);

    return g_build_filename(dir, name, file, NULL);
}

/* Puts module @variant into @dir as plugin @name. */
void
zoo_install_module(const char *dir, const char *name, const char *variant)
{
    g_autofree char *from_name = g_strconcat(variant, ".so", NULL);
    g_autofree char *from = g_build_filename(g_getenv("EB_ZOO_DIR"), from_name, NULL);
    g_autofree char *to = zoo_module_path(dir, name, ".so");
    g_autofree char *bytes = NULL;
    g_autoptr(GError) error = NULL;
    gsize length = 0;

    g_file_get_contents(from, &bytes, &length, &error);
    g_assert_no_error(error);
    eb_test_write_file(to, "");
    g_file_set_contents(to, bytes, (gssize)length, &error);
    g_assert_no_error(error);
    g_assert_cmpint(g_chmod(to, 0644), ==, 0);
}

void
zoo_install_manifest(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = zoo_module_path(dir, name, ".plugin");

    eb_test_write_file(path, text);
    g_assert_cmpint(g_chmod(path, 0644), ==, 0);
}

char *
zoo_manifest_text(const char *name, const char *abi, const char *implements, const char *more)
{
    return g_strdup_printf("[Plugin]\nName=%s\nVersion=1.0\nAbi=%s\nLicense=MIT\nImplements=%s\n%s", name, abi,
                           implements, more != NULL ? more : "");
}

void
zoo_install_plugin(const char *dir, const char *name)
{
    g_autofree char *text = zoo_manifest_text(name, ZOO_ABI, "doctor-check", NULL);

    zoo_install_module(dir, name, name);
    zoo_install_manifest(dir, name, text);
}

/* --- asking --- */

void
zoo_init(Zoo *zoo)
{
    zoo->dir = eb_test_temp_dir("zoo");
    zoo->registry = eb_plugin_registry_new("errand", "/var/lib/errand-box", TRUE);
}

void
zoo_clear(Zoo *zoo)
{
    g_clear_object(&zoo->registry);
    g_clear_pointer(&zoo->dir, g_free);
}

void
zoo_load(Zoo *zoo)
{
    eb_plugin_registry_load_dir(zoo->registry, zoo->dir, NULL, NULL, NULL, NULL);
}

const EbPluginRecord *
zoo_find(Zoo *zoo, const char *name)
{
    GPtrArray *records = eb_plugin_registry_get_records(zoo->registry);

    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = g_ptr_array_index(records, i);

        if (strcmp(record->name, name) == 0)
            return record;
    }
    g_error("no record of %s", name);
}

gboolean
zoo_has_run(const char *what, const char *name)
{
    g_autofree char *variable = g_strconcat("ZOO_", what, "_", name, NULL);

    return g_getenv(variable) != NULL;
}

void
zoo_assert_failed(Zoo *zoo, const char *name, EbErrorCode code, const char *reason, const char *text)
{
    const EbPluginRecord *record = zoo_find(zoo, name);

    g_assert_cmpint(record->state, ==, EB_PLUGIN_STATE_FAILED);
    eb_test_assert_error(record->error, code, reason, text);
    /* A failed plugin provides nothing. */
    g_assert_null(record->plugin);
    g_assert_null(record->context);
}

static void
run_in_child(gconstpointer data)
{
    const ZooTest *test = data;

    if (g_test_subprocess()) {
        test->func();
        return;
    }
    g_test_trap_subprocess(NULL, (guint64)EB_TEST_DEADLINE_MS * 1000, 0);
    g_test_trap_assert_passed();
}

int
zoo_run(int argc, char **argv, const ZooTest *tests, gsize n_tests)
{
    umask(022);
    eb_test_init(&argc, &argv);
    for (gsize i = 0; i < n_tests; i++)
        g_test_add_data_func(tests[i].path, &tests[i], run_in_child);
    return g_test_run();
}
