/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include "core/plugin/eb-plugin-registry.h"

static const char *const enabled[] = {"doctor-hello", NULL};
static const char *const only[] = {"doctor-check", NULL};

static EbPluginRegistry *
load(EbSectionLookup sections)
{
    EbPluginRegistry *registry = eb_plugin_registry_new("errand", "/var/lib/errand-box", TRUE);

    eb_plugin_registry_load_dir(registry, g_getenv("EB_OOT_PLUGIN_DIR"), enabled, only, sections, NULL);
    return registry;
}

static const EbPluginRecord *
find(EbPluginRegistry *registry)
{
    GPtrArray *records = eb_plugin_registry_get_records(registry);

    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = g_ptr_array_index(records, i);

        if (g_str_equal(record->name, "doctor-hello"))
            return record;
    }
    g_error("doctor-hello is not in %s", g_getenv("EB_OOT_PLUGIN_DIR"));
}

static void
assert_check(EbDoctorCheck *check, const char *tree, EbCheckStatus status, const char *observed)
{
    g_autofree char *root = g_build_filename(g_getenv("EB_OOT_FIXTURES"), tree, NULL);
    g_autoptr(EbHost) host = eb_host_new_fixture(root);
    g_autoptr(EbConfigSection) settings = eb_config_section_new("service");
    g_autoptr(EbCheckResult) result = eb_doctor_check_run(check, host, settings, NULL);

    g_assert_cmpint(result->status, ==, status);
    g_assert_cmpstr(result->observed, ==, observed);
}

static void
test_runs(void)
{
    g_autoptr(EbPluginRegistry) registry = load(NULL);
    const EbPluginRecord *record = find(registry);
    GObject *check;

    g_assert_no_error(record->error);
    g_assert_cmpint(record->state, ==, EB_PLUGIN_STATE_LOADED);
    g_assert_cmpstr(record->accesses[0], ==, "/etc/hostname");
    check = eb_plugin_registry_find(registry, EB_EXTENSION_DOCTOR_CHECK, "x-hello-hostname", NULL);
    g_assert_nonnull(check);
    assert_check(EB_DOCTOR_CHECK(check), "fires", EB_CHECK_DEGRADED, "/etc/hostname says \"localhost\"");
    assert_check(EB_DOCTOR_CHECK(check), "clears", EB_CHECK_OK, "hello, builder-1");
}

static EbConfigSection *
mistyped(const char *name, gpointer user_data)
{
    EbConfigSection *section = eb_config_section_new("plugin.doctor-hello");

    eb_config_section_set(section, "grteing", g_variant_new_string("hi"), "/etc/errand-box/errand-box.toml", 7);
    return section;
}

static void
test_configured(void)
{
    g_autoptr(EbPluginRegistry) registry = load(mistyped);

    g_assert_cmpint(find(registry)->state, ==, EB_PLUGIN_STATE_FAILED);
    eb_test_assert_error(find(registry)->error, EB_ERROR_CONFIG, "config.unknown-key",
                         "errand-box.toml:7: unknown key plugin.doctor-hello.grteing");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
    g_test_add_func("/out-of-tree/runs", test_runs);
    g_test_add_func("/out-of-tree/configured", test_configured);
    return g_test_run();
}
