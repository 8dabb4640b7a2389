/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "zoo.h"

/* --- the good one --- */

static void
start(Zoo *zoo, guint deadline_ms)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_plugin_registry_start_async(zoo->registry, deadline_ms, NULL, eb_test_result_ready, &done);
    g_assert_true(eb_plugin_registry_start_finish(zoo->registry, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

static void
stop(Zoo *zoo, guint deadline_ms)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_plugin_registry_stop_async(zoo->registry, deadline_ms, NULL, eb_test_result_ready, &done);
    g_assert_true(eb_plugin_registry_stop_finish(zoo->registry, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

static void
test_good(void)
{
    g_auto(Zoo) zoo = {0};
    const EbPluginRecord *record;
    const EbPluginRecord *found = NULL;
    g_autoptr(GPtrArray) list = NULL;
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(EbCheckResult) result = NULL;

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_load(&zoo);
    record = zoo_find(&zoo, "zoo-good");
    g_assert_no_error(record->error);
    g_assert_cmpint(record->state, ==, EB_PLUGIN_STATE_LOADED);
    g_assert_cmpstr(record->version, ==, "1.0");
    g_assert_cmpstr(record->abi, ==, ZOO_ABI);
    g_assert_cmpstr(record->license, ==, "MIT");
    g_assert_cmpstr(record->config_section, ==, "plugin.zoo-good");
    g_assert_true(zoo_has_run("CREATED", "zoo-good"));
    list = eb_plugin_registry_list(zoo.registry, EB_EXTENSION_DOCTOR_CHECK);
    g_assert_cmpuint(list->len, ==, 1);
    g_assert_nonnull(eb_plugin_registry_find(zoo.registry, EB_EXTENSION_DOCTOR_CHECK, "x-zoo-good", &found));
    g_assert_true(found == record);
    g_assert_null(eb_plugin_registry_find(zoo.registry, EB_EXTENSION_CHAT_TRANSPORT, "x-zoo-good", NULL));
    result =
        eb_doctor_check_run(EB_DOCTOR_CHECK(((EbExtension *)g_ptr_array_index(list, 0))->object), host, NULL, NULL);
    g_assert_cmpstr(result->observed, ==, "zoo-good");
    start(&zoo, 5000);
    g_assert_cmpint(record->state, ==, EB_PLUGIN_STATE_RUNNING);
    stop(&zoo, 5000);
    g_assert_cmpint(record->state, ==, EB_PLUGIN_STATE_STOPPED);
    g_assert_cmpstr(eb_plugin_state_to_string(record->state), ==, "stopped");
}

/* --- refused for what the module is --- */

static void
test_modules(void)
{
    static const struct {
        const char *name;
        EbErrorCode code;
        const char *reason;
        const char *text;
        gboolean opened;
        gboolean created;
    } table[] = {
        {"zoo-no-symbol", EB_ERROR_INTEGRITY, "plugin.no-symbol", "has no symbol eb_plugin_desc_v1", TRUE, FALSE},
        {"zoo-wrong-major", EB_ERROR_NOT_SUPPORTED, "plugin.abi-major",
         "its module is for plugin ABI 2." ZOO_TEXT_OF(EB_ABI_MINOR) ", this errand-box has " ZOO_ABI
                                                                     " (build it again)",
         TRUE, FALSE},
        {"zoo-newer-minor", EB_ERROR_NOT_SUPPORTED, "plugin.abi-minor",
         ", this errand-box has " ZOO_ABI " (update errand-box)", TRUE, FALSE},
        {"zoo-oversized", EB_ERROR_INTEGRITY, "plugin.desc-size", "its descriptor has 48 bytes", TRUE, FALSE},
        {"zoo-undersized", EB_ERROR_INTEGRITY, "plugin.desc-size", "its descriptor has 16 bytes", TRUE, FALSE},
        {"zoo-other-name", EB_ERROR_INTEGRITY, "plugin.name", "its module says it is zoo-elsewhere", TRUE, FALSE},
        {"zoo-other-version", EB_ERROR_INTEGRITY, "plugin.version", "its manifest says version 1.0, its module 9.9",
         TRUE, FALSE},
        {"zoo-no-create", EB_ERROR_INTEGRITY, "plugin.desc", "empty fields", TRUE, FALSE},
        {"zoo-create-null", EB_ERROR_INTEGRITY, "plugin.create", "create() gave no plugin", TRUE, TRUE},
        {"zoo-configure-fails", EB_ERROR_CONFIG, "zoo.refuses", "the animal refuses", TRUE, TRUE},
        {"zoo-configure-foreign", EB_ERROR_DENIED, NULL, "the animal is locked in", TRUE, TRUE},
        {"zoo-configure-silent", EB_ERROR_FAILED, "plugin.no-reason", "without saying why", TRUE, TRUE},
        {"zoo-other-id", EB_ERROR_INTEGRITY, "plugin.check-id", "x-zoo-someone-else", TRUE, TRUE},
    };
    g_auto(Zoo) zoo = {0};

    zoo_init(&zoo);
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
        zoo_install_plugin(zoo.dir, table[i].name);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_load(&zoo);
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        zoo_assert_failed(&zoo, table[i].name, table[i].code, table[i].reason, table[i].text);
        g_assert_cmpint(zoo_has_run("OPENED", table[i].name), ==, table[i].opened);
        g_assert_cmpint(zoo_has_run("CREATED", table[i].name), ==, table[i].created);
    }
    /* The bad ones do the good one no harm. */
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_LOADED);
}

static void
test_not_elf(void)
{
    g_auto(Zoo) zoo = {0};
    g_autofree char *text = zoo_manifest_text("zoo-text", ZOO_ABI, "doctor-check", NULL);
    g_autofree char *path = NULL;

    zoo_init(&zoo);
    path = zoo_module_path(zoo.dir, "zoo-text", ".so");
    zoo_install_manifest(zoo.dir, "zoo-text", text);
    eb_test_write_file(path, "this is no module, although it is long enough to look like one from afar\n");
    zoo_load(&zoo);
    zoo_assert_failed(&zoo, "zoo-text", EB_ERROR_INTEGRITY, "plugin.not-module", path);
    eb_test_assert_error(zoo_find(&zoo, "zoo-text")->error, EB_ERROR_INTEGRITY, NULL, "invalid ELF header");
}

static void
test_module_missing(void)
{
    g_auto(Zoo) zoo = {0};
    g_autofree char *text = zoo_manifest_text("zoo-gone", ZOO_ABI, "doctor-check", NULL);

    zoo_init(&zoo);
    zoo_install_manifest(zoo.dir, "zoo-gone", text);
    zoo_load(&zoo);
    zoo_assert_failed(&zoo, "zoo-gone", EB_ERROR_NOT_FOUND, "plugin.missing-file", "zoo-gone.so");
}

/* --- refused for what the manifest says, before any code runs --- */

static void
test_manifests(void)
{
    static const struct {
        const char *name; /* of a module that has run nowhere else */
        const char *content;
        EbErrorCode code;
        const char *reason;
        const char *text;
    } table[] = {
        {"zoo-m1", "", EB_ERROR_INVALID, "plugin.manifest", "not a key file"},
        {"zoo-m2", "[Other]\nName=x\n", EB_ERROR_INVALID, "plugin.manifest", "unknown group [Other]"},
        {"zoo-m3", "[Plugin]\nName=zoo-m3\n", EB_ERROR_INVALID, "plugin.manifest", "key Version"},
        {"zoo-m4", "[Plugin]\nName=zoo-else\nVersion=1.0\nAbi=1.0\nLicense=MIT\nImplements=doctor-check\n",
         EB_ERROR_INTEGRITY, "plugin.name", "its manifest says it is zoo-else"},
        {"zoo-m5", "[Plugin]\nName=zoo-m5\nVersion=1.0\nAbi=2.0\nLicense=MIT\nImplements=doctor-check\n",
         EB_ERROR_NOT_SUPPORTED, "plugin.abi-major",
         "its manifest is for plugin ABI 2.0, this errand-box has " ZOO_ABI},
        {"zoo-m6", "[Plugin]\nName=zoo-m6\nVersion=1.0\nAbi=1.7\nLicense=MIT\nImplements=doctor-check\n",
         EB_ERROR_NOT_SUPPORTED, "plugin.abi-minor", "its manifest needs plugin ABI 1.7, this errand-box has " ZOO_ABI},
        {"zoo-m7", "[Plugin]\nName=zoo-m7\nVersion=1.0\nAbi=1.0\nLicense=MIT\nImplements=teapot\n", EB_ERROR_INVALID,
         "plugin.manifest", "unknown extension point teapot"},
        {"zoo-m8", "[Plugin]\nName=zoo-m8\nVersion=1.0\nAbi=1.0\nLicense=MIT\nImplements=doctor-check\nImplments=x\n",
         EB_ERROR_INVALID, "plugin.manifest", "unknown key Implments (did you mean Implements?)"},
        {"zoo-m9",
         "[Plugin]\nName=zoo-m9\nVersion=1.0\nAbi=1.0\nLicense=MIT\nImplements=doctor-check\n"
         "ConfigSection=plugin.github\n",
         EB_ERROR_INVALID, "plugin.manifest", "must be plugin.zoo-m9"},
    };
    g_auto(Zoo) zoo = {0};
    g_autofree char *huge = g_strnfill(20000, '#');

    zoo_init(&zoo);
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        zoo_install_module(zoo.dir, table[i].name, "zoo-good");
        zoo_install_manifest(zoo.dir, table[i].name, table[i].content);
    }
    zoo_install_module(zoo.dir, "zoo-huge", "zoo-good");
    zoo_install_manifest(zoo.dir, "zoo-huge", huge);
    zoo_install_module(zoo.dir, "zoo-bare", "zoo-good");
    g_unsetenv("ZOO_OPENED_zoo-good");
    zoo_load(&zoo);
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
        zoo_assert_failed(&zoo, table[i].name, table[i].code, table[i].reason, table[i].text);
    zoo_assert_failed(&zoo, "zoo-huge", EB_ERROR_INVALID, "plugin.manifest", "longer than 16384 bytes");
    zoo_assert_failed(&zoo, "zoo-bare", EB_ERROR_NOT_FOUND, "plugin.no-manifest", "zoo-bare.plugin is missing");
    g_assert_false(zoo_has_run("OPENED", "zoo-good"));
}

static void
test_undeclared(void)
{
    g_auto(Zoo) zoo = {0};
    g_autofree char *text = zoo_manifest_text("zoo-good", ZOO_ABI, "credential-store:vault", NULL);

    zoo_init(&zoo);
    zoo_install_module(zoo.dir, "zoo-good", "zoo-good");
    zoo_install_manifest(zoo.dir, "zoo-good", text);
    zoo_load(&zoo);
    zoo_assert_failed(&zoo, "zoo-good", EB_ERROR_INTEGRITY, "plugin.undeclared",
                      "provides doctor-check x-zoo-good, which its manifest does not declare");
}

static void
test_requires(void)
{
    g_auto(Zoo) zoo = {0};
    g_autofree char *needs_good = zoo_manifest_text("zoo-twin-a", ZOO_ABI, "doctor-check", "Requires=zoo-good\n");
    g_autofree char *needs_none = zoo_manifest_text("zoo-gtype-a", ZOO_ABI, "doctor-check", "Requires=zoo-nowhere\n");
    g_autofree char *needs_bad =
        zoo_manifest_text("zoo-stop-fails", ZOO_ABI, "doctor-check", "Requires=zoo-no-create\n");
    g_autofree char *circle_a = zoo_manifest_text("zoo-start-fails", ZOO_ABI, "doctor-check", "Requires=zoo-twin-b\n");
    g_autofree char *circle_b = zoo_manifest_text("zoo-twin-b", ZOO_ABI, "doctor-check", "Requires=zoo-start-fails\n");

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(zoo.dir, "zoo-no-create");
    zoo_install_plugin(zoo.dir, "zoo-twin-a");
    zoo_install_manifest(zoo.dir, "zoo-twin-a", needs_good);
    zoo_install_plugin(zoo.dir, "zoo-gtype-a");
    zoo_install_manifest(zoo.dir, "zoo-gtype-a", needs_none);
    zoo_install_plugin(zoo.dir, "zoo-stop-fails");
    zoo_install_manifest(zoo.dir, "zoo-stop-fails", needs_bad);
    zoo_install_plugin(zoo.dir, "zoo-start-fails");
    zoo_install_manifest(zoo.dir, "zoo-start-fails", circle_a);
    zoo_install_plugin(zoo.dir, "zoo-twin-b");
    zoo_install_manifest(zoo.dir, "zoo-twin-b", circle_b);
    zoo_load(&zoo);
    g_assert_cmpint(zoo_find(&zoo, "zoo-twin-a")->state, ==, EB_PLUGIN_STATE_LOADED);
    zoo_assert_failed(&zoo, "zoo-gtype-a", EB_ERROR_UNAVAILABLE, "plugin.requires", "zoo-nowhere, which is not there");
    zoo_assert_failed(&zoo, "zoo-stop-fails", EB_ERROR_UNAVAILABLE, "plugin.requires",
                      "zoo-no-create, which is failed");
    zoo_assert_failed(&zoo, "zoo-start-fails", EB_ERROR_UNAVAILABLE, "plugin.requires", "zoo-twin-b");
    zoo_assert_failed(&zoo, "zoo-twin-b", EB_ERROR_UNAVAILABLE, "plugin.requires", "zoo-start-fails");
}

/* --- refused for what others have already --- */

static void
test_duplicate_name(void)
{
    g_auto(Zoo) zoo = {0};
    g_autofree char *second = eb_test_temp_dir("zoo2");
    GPtrArray *records;

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(second, "zoo-good");
    zoo_load(&zoo);
    eb_plugin_registry_load_dir(zoo.registry, second, NULL, NULL, NULL, NULL);
    records = eb_plugin_registry_get_records(zoo.registry);
    g_assert_cmpuint(records->len, ==, 2);
    for (guint i = 0; i < 2; i++) {
        const EbPluginRecord *record = g_ptr_array_index(records, i);

        if (g_str_has_prefix(record->path, second)) {
            g_assert_cmpint(record->state, ==, EB_PLUGIN_STATE_FAILED);
            eb_test_assert_error(record->error, EB_ERROR_EXISTS, "plugin.duplicate-name", zoo.dir);
        } else {
            g_assert_cmpint(record->state, ==, EB_PLUGIN_STATE_LOADED);
        }
    }
}

static void
test_duplicate_extension(void)
{
    g_auto(Zoo) zoo = {0};

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-twin-a");
    zoo_install_plugin(zoo.dir, "zoo-twin-b");
    zoo_load(&zoo);
    g_assert_cmpint(zoo_find(&zoo, "zoo-twin-a")->state, ==, EB_PLUGIN_STATE_LOADED);
    zoo_assert_failed(&zoo, "zoo-twin-b", EB_ERROR_EXISTS, "plugin.extension-taken",
                      "provides doctor-check x-zoo-twin, which plugin zoo-twin-a provides already");
}

static void
test_duplicate_gtype(void)
{
    g_auto(Zoo) zoo = {0};

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-gtype-a");
    zoo_install_plugin(zoo.dir, "zoo-gtype-b");
    zoo_load(&zoo);
    g_assert_cmpint(zoo_find(&zoo, "zoo-gtype-a")->state, ==, EB_PLUGIN_STATE_LOADED);
    zoo_assert_failed(&zoo, "zoo-gtype-b", EB_ERROR_EXISTS, "plugin.gtype",
                      "defines the type ZooSharedType, which plugin zoo-gtype-a has registered");
    g_assert_false(zoo_has_run("OPENED", "zoo-gtype-b")); /* its code would have hung the process */
}

/* Two registries of one process: the same file is the same module, another one of that name is refused. */
static void
test_second_registry(void)
{
    g_auto(Zoo) zoo = {0};
    g_auto(Zoo) again = {0};
    g_auto(Zoo) copy = {0};

    zoo_init(&zoo);
    zoo_init(&again);
    zoo_init(&copy);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(copy.dir, "zoo-good");
    zoo_load(&zoo);
    g_free(again.dir);
    again.dir = g_strdup(zoo.dir);
    zoo_load(&again);
    zoo_load(&copy);
    g_assert_cmpint(zoo_find(&again, "zoo-good")->state, ==, EB_PLUGIN_STATE_LOADED);
    g_assert_true(zoo_find(&again, "zoo-good")->plugin != zoo_find(&zoo, "zoo-good")->plugin);
    zoo_assert_failed(&copy, "zoo-good", EB_ERROR_EXISTS, "plugin.replaced", copy.dir);
}

/* --- start and stop --- */

static void
test_start(void)
{
    g_auto(Zoo) zoo = {0};

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(zoo.dir, "zoo-start-fails");
    zoo_install_plugin(zoo.dir, "zoo-start-never");
    zoo_install_plugin(zoo.dir, "zoo-start-late");
    zoo_load(&zoo);
    g_assert_nonnull(eb_plugin_registry_find(zoo.registry, EB_EXTENSION_DOCTOR_CHECK, "x-zoo-start-never", NULL));
    start(&zoo, 100);
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_RUNNING);
    zoo_assert_failed(&zoo, "zoo-start-fails", EB_ERROR_UNAVAILABLE, "zoo.asleep", "the animal sleeps");
    zoo_assert_failed(&zoo, "zoo-start-never", EB_ERROR_TIMEOUT, "plugin.start-timeout", "did not start within 100 ms");
    zoo_assert_failed(&zoo, "zoo-start-late", EB_ERROR_TIMEOUT, "plugin.start-timeout", NULL);
    g_assert_null(eb_plugin_registry_find(zoo.registry, EB_EXTENSION_DOCTOR_CHECK, "x-zoo-start-never", NULL));
    eb_test_run_for(100); /* what the late one says now changes nothing */
    zoo_assert_failed(&zoo, "zoo-start-late", EB_ERROR_TIMEOUT, "plugin.start-timeout", NULL);
    stop(&zoo, 5000);
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_STOPPED);
}

static void
test_stop(void)
{
    g_auto(Zoo) zoo = {0};

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(zoo.dir, "zoo-stop-never");
    zoo_install_plugin(zoo.dir, "zoo-stop-fails");
    zoo_load(&zoo);
    start(&zoo, 5000);
    stop(&zoo, 100);
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_STOPPED);
    zoo_assert_failed(&zoo, "zoo-stop-never", EB_ERROR_TIMEOUT, "plugin.stop-timeout",
                      "plugin zoo-stop-never did not stop within 100 ms and is dropped");
    zoo_assert_failed(&zoo, "zoo-stop-fails", EB_ERROR_FAILED, "zoo.bites", NULL);
}

static gboolean
cancel(gpointer data)
{
    g_cancellable_cancel(data);
    return G_SOURCE_REMOVE;
}

static void
test_start_cancelled(void)
{
    g_auto(Zoo) zoo = {0};
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(zoo.dir, "zoo-start-never");
    zoo_load(&zoo);
    g_timeout_add(50, cancel, cancellable);
    eb_plugin_registry_start_async(zoo.registry, EB_TEST_DEADLINE_MS, cancellable, eb_test_result_ready, &done);
    g_assert_false(eb_plugin_registry_start_finish(zoo.registry, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, "plugin.cancelled", NULL);
    zoo_assert_failed(&zoo, "zoo-start-never", EB_ERROR_CANCELLED, "plugin.cancelled", NULL);
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_RUNNING);
}

/* --- which are opened --- */

static void
test_enabled(void)
{
    const char *const enabled[] = {"zoo-good", "zoo-not-there", NULL};
    g_auto(Zoo) zoo = {0};

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(zoo.dir, "zoo-twin-a");
    g_unsetenv("ZOO_OPENED_zoo-twin-a");
    eb_plugin_registry_load_dir(zoo.registry, zoo.dir, enabled, NULL, NULL, NULL);
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_LOADED);
    g_assert_cmpint(zoo_find(&zoo, "zoo-twin-a")->state, ==, EB_PLUGIN_STATE_DISABLED);
    g_assert_cmpstr(zoo_find(&zoo, "zoo-twin-a")->version, ==, "1.0");
    g_assert_no_error(zoo_find(&zoo, "zoo-twin-a")->error);
    g_assert_false(zoo_has_run("OPENED", "zoo-twin-a"));
    zoo_assert_failed(&zoo, "zoo-not-there", EB_ERROR_NOT_FOUND, "plugin.missing", zoo.dir);
    /* A second directory that has it: no longer missing. */
    {
        g_autofree char *second = eb_test_temp_dir("zoo2");
        g_autofree char *text = zoo_manifest_text("zoo-not-there", ZOO_ABI, "doctor-check", NULL);

        zoo_install_module(second, "zoo-not-there", "zoo-no-symbol");
        zoo_install_manifest(second, "zoo-not-there", text);
        eb_plugin_registry_load_dir(zoo.registry, second, enabled, NULL, NULL, NULL);
        zoo_assert_failed(&zoo, "zoo-not-there", EB_ERROR_INTEGRITY, "plugin.no-symbol", second);
    }
}

static void
test_only(void)
{
    const char *const transports[] = {"chat-transport", NULL};
    const char *const checks[] = {"credential-store", "doctor-check", NULL};
    const char *const named[] = {"credential-store:other", NULL};
    g_auto(Zoo) zoo = {0};
    g_auto(Zoo) zoo2 = {0};
    g_auto(Zoo) zoo3 = {0};
    g_autofree char *text = zoo_manifest_text("zoo-good", ZOO_ABI, "credential-store:vault;doctor-check", NULL);

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    eb_plugin_registry_load_dir(zoo.registry, zoo.dir, NULL, transports, NULL, NULL);
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_DISABLED);
    g_assert_no_error(zoo_find(&zoo, "zoo-good")->error);
    zoo_init(&zoo2);
    zoo_install_plugin(zoo2.dir, "zoo-good");
    eb_plugin_registry_load_dir(zoo2.registry, zoo2.dir, NULL, checks, NULL, NULL);
    g_assert_cmpint(zoo_find(&zoo2, "zoo-good")->state, ==, EB_PLUGIN_STATE_LOADED);
    zoo_init(&zoo3);
    zoo_install_plugin(zoo3.dir, "zoo-good");
    zoo_install_manifest(zoo3.dir, "zoo-good", text);
    eb_plugin_registry_load_dir(zoo3.registry, zoo3.dir, NULL, named, NULL, NULL);
    g_assert_cmpint(zoo_find(&zoo3, "zoo-good")->state, ==, EB_PLUGIN_STATE_DISABLED);
}

/* --- `plugin check FILE` --- */

static void
test_check_file(void)
{
    g_auto(Zoo) zoo = {0};
    g_autofree char *good = NULL;
    g_autofree char *bad = NULL;
    g_autoptr(GError) error = NULL;
    EbPluginRecord *record = NULL;

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    zoo_install_plugin(zoo.dir, "zoo-other-name");
    good = zoo_module_path(zoo.dir, "zoo-good", ".so");
    bad = zoo_module_path(zoo.dir, "zoo-other-name", ".so");
    g_unsetenv("ZOO_CREATED_zoo-good");
    g_assert_true(eb_plugin_registry_check_file(good, TRUE, &record, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(record->name, ==, "zoo-good");
    g_assert_false(zoo_has_run("CREATED", "zoo-good"));
    eb_plugin_record_free(record);
    g_assert_false(eb_plugin_registry_check_file(bad, TRUE, &record, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "plugin.name", NULL);
    g_clear_error(&error);
    g_assert_false(eb_plugin_registry_check_file("/nonexistent/x.so", TRUE, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "plugin.no-manifest", NULL);
    g_clear_error(&error);
    g_assert_false(eb_plugin_registry_check_file("/nonexistent/x", TRUE, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "plugin.file-name", NULL);
}

static const ZooTest tests[] = {
    {"/zoo/good", test_good},
    {"/zoo/modules", test_modules},
    {"/zoo/not-elf", test_not_elf},
    {"/zoo/module-missing", test_module_missing},
    {"/zoo/manifests", test_manifests},
    {"/zoo/undeclared", test_undeclared},
    {"/zoo/requires", test_requires},
    {"/zoo/duplicate-name", test_duplicate_name},
    {"/zoo/duplicate-extension", test_duplicate_extension},
    {"/zoo/duplicate-gtype", test_duplicate_gtype},
    {"/zoo/start", test_start},
    {"/zoo/stop", test_stop},
    {"/zoo/start-cancelled", test_start_cancelled},
    {"/zoo/enabled", test_enabled},
    {"/zoo/only", test_only},
    {"/zoo/check-file", test_check_file},
    {"/zoo/second-registry", test_second_registry},
};

int
main(int argc, char **argv)
{
    return zoo_run(argc, argv, tests, G_N_ELEMENTS(tests));
}
