/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

static EbCheckResult *
run_ok(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return eb_check_result_new(EB_CHECK_OK, "fine");
}

static const EbCheckInfo info = {.id = "x-a", .title = "t", .expected = "e", .remedy = "r"};

static void
test_points(void)
{
    EbExtensionPoint point = EB_EXTENSION_DOCTOR_CHECK;

    for (guint i = 0; i < 4; i++) {
        g_assert_true(eb_extension_point_from_string(eb_extension_point_to_string((EbExtensionPoint)i), &point));
        g_assert_cmpint(point, ==, (int)i);
    }
    g_assert_false(eb_extension_point_from_string("doctor", &point));
    g_assert_false(eb_extension_point_from_string("", NULL));
    g_assert_false(eb_extension_point_from_string(NULL, NULL));
    g_assert_cmpstr(eb_extension_point_to_string((EbExtensionPoint)9), ==, "unknown");
}

static void
test_provide(void)
{
    g_autoptr(EbPluginContext) context = eb_plugin_context_new("p", "errand", "/var/lib/x");
    g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&info, run_ok);
    g_autoptr(GError) error = NULL;
    EbExtensionPoint point = 0;
    const char *name = NULL;

    g_assert_cmpstr(eb_plugin_context_get_plugin_name(context), ==, "p");
    g_assert_cmpstr(eb_plugin_context_get_account(context), ==, "errand");
    g_assert_cmpstr(eb_plugin_context_get_state_dir(context), ==, "/var/lib/x");
    g_assert_true(eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, "x-a", G_OBJECT(check), &error));
    g_assert_no_error(error);
    g_assert_false(eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, "x-a", G_OBJECT(check), &error));
    eb_test_assert_error(error, EB_ERROR_EXISTS, "plugin.extension-duplicate", "x-a");
    g_clear_error(&error);
    g_assert_false(eb_plugin_context_provide(context, EB_EXTENSION_CHAT_TRANSPORT, "x-b", G_OBJECT(check), &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "plugin.extension-type", "EbSimpleCheck is no chat-transport");
    g_clear_error(&error);
    g_assert_false(eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, "x b", G_OBJECT(check), &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "plugin.extension-name", NULL);
    g_assert_cmpuint(eb_plugin_context_get_n_provided(context), ==, 1);
    g_assert_true(eb_plugin_context_get_provided(context, 0, &point, &name) == G_OBJECT(check));
    g_assert_cmpint(point, ==, EB_EXTENSION_DOCTOR_CHECK);
    g_assert_cmpstr(name, ==, "x-a");
    g_assert_null(eb_plugin_context_get_provided(context, 1, NULL, NULL));
}

static void
test_provide_bound(void)
{
    g_autoptr(EbPluginContext) context = eb_plugin_context_new("p", "errand", "/x");
    g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&info, run_ok);
    g_autoptr(GError) error = NULL;
    guint n = 0;

    while (error == NULL && n < 10000) {
        g_autofree char *name = g_strdup_printf("x-%u", n++);

        eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, name, G_OBJECT(check), &error);
    }
    eb_test_assert_error(error, EB_ERROR_QUOTA, "plugin.extension-count", NULL);
    g_assert_cmpuint(eb_plugin_context_get_n_provided(context), ==, 256);
}

static void
lookup(const char *name, GTask *task, gpointer user_data)
{
    if (g_str_equal(name, "there"))
        g_task_return_pointer(task, eb_secret_ref(user_data), (GDestroyNotify)eb_secret_unref);
    else
        g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "nowhere");
    g_object_unref(task);
}

static void
test_lookup(void)
{
    g_autoptr(EbPluginContext) context = eb_plugin_context_new("p", "errand", "/x");
    g_autoptr(EbSecret) secret = eb_secret_new_random("s", 8);
    g_autoptr(EbSecret) found = NULL;
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_plugin_context_lookup_secret_async(context, "there", NULL, eb_test_result_ready, &done);
    g_assert_null(eb_plugin_context_lookup_secret_finish(context, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "credential.no-store", "there");
    g_clear_error(&error);
    eb_test_result_clear(&done);
    eb_plugin_context_set_lookup(context, lookup, secret);
    eb_plugin_context_lookup_secret_async(context, "there", NULL, eb_test_result_ready, &done);
    found = eb_plugin_context_lookup_secret_finish(context, eb_test_result_wait(&done), &error);
    g_assert_true(found == secret);
    eb_test_result_clear(&done);
    eb_plugin_context_lookup_secret_async(context, "gone", NULL, eb_test_result_ready, &done);
    g_assert_null(eb_plugin_context_lookup_secret_finish(context, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, "nowhere");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/plugin-context/points", test_points);
    g_test_add_func("/sdk/plugin-context/provide", test_provide);
    g_test_add_func("/sdk/plugin-context/provide-bound", test_provide_bound);
    g_test_add_func("/sdk/plugin-context/lookup", test_lookup);
    return g_test_run();
}
