/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <string.h>

/* A class that implements every interface and not one of their vfuncs: what an old plugin is to a newer host. */
#define BARE_TYPE (bare_get_type())
G_DECLARE_FINAL_TYPE(Bare, bare, BARE, OBJECT, GObject)
struct _Bare {
    GObject parent_instance;
};

static void
bare_iface_init(gpointer iface)
{
}

#define BARE_IMPLEMENT(type) G_IMPLEMENT_INTERFACE(type, (GInterfaceInitFunc)(void (*)(void))bare_iface_init)
G_DEFINE_FINAL_TYPE_WITH_CODE(Bare, bare, G_TYPE_OBJECT,
                              BARE_IMPLEMENT(EB_TYPE_CONTAINER_BACKEND) BARE_IMPLEMENT(EB_TYPE_EXEC)
                                  BARE_IMPLEMENT(EB_TYPE_CHAT_TRANSPORT) BARE_IMPLEMENT(EB_TYPE_CREDENTIAL_STORE)
                                      BARE_IMPLEMENT(EB_TYPE_DOCTOR_CHECK) BARE_IMPLEMENT(EB_TYPE_PLUGIN))

static void
bare_class_init(BareClass *klass)
{
}

static void
bare_init(Bare *self)
{
}

static void
assert_not_supported(GError **error)
{
    eb_test_assert_error(*error, EB_ERROR_NOT_SUPPORTED, "sdk.not-supported", "Bare cannot");
    g_clear_error(error);
}

#define READY eb_test_result_ready, &done
#define WAIT eb_test_result_wait(&done)

static void
test_backend(void)
{
    g_autoptr(Bare) bare = g_object_new(BARE_TYPE, NULL);
    EbContainerBackend *backend = EB_CONTAINER_BACKEND(bare);
    g_autoptr(EbContainerSpec) spec = eb_container_spec_new("n", "i");
    const char *const argv[] = {"x", NULL};
    g_autoptr(EbExecSpec) exec = eb_exec_spec_new(argv);
    g_auto(EbTestResult) done = {0};
    GError *error = NULL;

    eb_container_backend_probe_async(backend, 9, NULL, READY);
    g_assert_cmpuint(done.calls, ==, 0); /* never before returning */
    g_assert_null(eb_container_backend_probe_finish(backend, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_container_backend_launch_async(backend, spec, 9, NULL, READY);
    g_assert_false(eb_container_backend_launch_finish(backend, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_container_backend_update_async(backend, "n", spec, 9, NULL, READY);
    g_assert_false(eb_container_backend_update_finish(backend, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_container_backend_exec_async(backend, "n", exec, 9, NULL, READY);
    g_assert_null(eb_container_backend_exec_finish(backend, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_container_backend_stop_async(backend, "n", EB_STOP_FORCE, 0, 9, NULL, READY);
    g_assert_false(eb_container_backend_stop_finish(backend, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_container_backend_list_async(backend, NULL, 9, NULL, READY);
    g_assert_null(eb_container_backend_list_finish(backend, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_container_backend_image_info_async(backend, NULL, 9, NULL, READY);
    g_assert_null(eb_container_backend_image_info_finish(backend, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_container_backend_image_import_async(backend, "a", "/m", "/r", 9, NULL, READY);
    g_assert_null(eb_container_backend_image_import_finish(backend, WAIT, &error));
    assert_not_supported(&error);
}

static void
test_exec(void)
{
    g_autoptr(Bare) bare = g_object_new(BARE_TYPE, NULL);
    EbExec *exec = EB_EXEC(bare);
    g_auto(EbTestResult) done = {0};
    GError *error = NULL;

    g_assert_null(eb_exec_get_stdin(exec));
    g_assert_null(eb_exec_get_stdout(exec));
    g_assert_null(eb_exec_get_stderr(exec));
    g_assert_false(eb_exec_send_signal(exec, 15, &error));
    assert_not_supported(&error);
    g_assert_false(eb_exec_resize(exec, 24, 80, &error));
    assert_not_supported(&error);
    eb_exec_wait_async(exec, NULL, READY);
    g_assert_cmpint(eb_exec_wait_finish(exec, WAIT, &error), ==, -1);
    assert_not_supported(&error);
}

static void
test_transport(void)
{
    g_autoptr(Bare) bare = g_object_new(BARE_TYPE, NULL);
    EbChatTransport *transport = EB_CHAT_TRANSPORT(bare);
    g_autoptr(EbChatPost) post = eb_chat_post_new("t", EB_CHAT_POST_TEXT, "x");
    g_autoptr(EbChatQuestion) question = eb_chat_question_new("t", "x");
    EbChatLimits limits = {.max_text_units = 5, .edit_interval_ms = 5};
    g_auto(EbTestResult) done = {0};
    char *answered_by = NULL;
    GError *error = NULL;

    g_assert_cmpint(eb_chat_transport_get_caps(transport, NULL), ==, EB_CHAT_CAP_NONE);
    g_assert_cmpint(eb_chat_transport_get_caps(transport, &limits), ==, EB_CHAT_CAP_NONE);
    g_assert_cmpuint(limits.max_text_units, ==, 0);
    eb_chat_transport_post_async(transport, post, NULL, READY);
    g_assert_null(eb_chat_transport_post_finish(transport, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_chat_transport_ask_async(transport, question, 9, NULL, READY);
    g_assert_null(eb_chat_transport_ask_finish(transport, WAIT, &answered_by, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_chat_transport_open_thread_async(transport, "1", "t", NULL, READY);
    g_assert_null(eb_chat_transport_open_thread_finish(transport, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_chat_transport_close_thread_async(transport, "t", NULL, READY);
    g_assert_false(eb_chat_transport_close_thread_finish(transport, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_chat_transport_react_async(transport, "t", "1", NULL, NULL, READY);
    g_assert_false(eb_chat_transport_react_finish(transport, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_chat_transport_read_back_async(transport, NULL, "1", 5, NULL, READY);
    g_assert_null(eb_chat_transport_read_back_finish(transport, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    g_assert_null(eb_chat_transport_attach(transport, NULL, 0));
    g_autoptr(EbChatMessage) message = eb_chat_message_new("1", NULL, "2", "x");
    eb_chat_message_add_attachment(message, "3", NULL, NULL, 9, NULL);
    eb_chat_transport_fetch_async(transport, message->attachments->pdata[0], 10, NULL, READY);
    g_assert_null(eb_chat_transport_fetch_finish(transport, WAIT, &error));
    assert_not_supported(&error);
}

static void
test_store(void)
{
    g_autoptr(Bare) bare = g_object_new(BARE_TYPE, NULL);
    EbCredentialStore *store = EB_CREDENTIAL_STORE(bare);
    g_autoptr(EbSecret) secret = eb_secret_new_random("s", 8);
    g_autofree char *description = eb_credential_store_describe(store);
    g_autoptr(EbCredential) credential = eb_credential_new(secret, 5, "here");
    g_auto(EbTestResult) done = {0};
    GError *error = NULL;

    g_assert_cmpstr(description, ==, "Bare");
    g_assert_cmpstr(credential->source, ==, "here");
    eb_credential_store_lookup_async(store, "n", NULL, READY);
    g_assert_null(eb_credential_store_lookup_finish(store, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_credential_store_list_async(store, NULL, READY);
    g_assert_null(eb_credential_store_list_finish(store, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_credential_store_put_async(store, "n", secret, NULL, READY);
    g_assert_false(eb_credential_store_put_finish(store, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_credential_store_remove_async(store, "n", NULL, READY);
    g_assert_false(eb_credential_store_remove_finish(store, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    /* With an expiry it is refused; without one it goes to put, which this one has not got either. */
    eb_credential_store_put_credential_async(store, "n", credential, NULL, READY);
    g_assert_false(eb_credential_store_put_credential_finish(store, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    credential->expires_unix = 0;
    eb_credential_store_put_credential_async(store, "n", credential, NULL, READY);
    g_assert_false(eb_credential_store_put_credential_finish(store, WAIT, &error));
    assert_not_supported(&error);
    eb_test_result_clear(&done);
    eb_credential_store_rekey_async(store, NULL, NULL, READY);
    g_assert_false(eb_credential_store_rekey_finish(store, WAIT, &error));
    assert_not_supported(&error);
}

static void
test_plugin_and_check(void)
{
    g_autoptr(Bare) bare = g_object_new(BARE_TYPE, NULL);
    g_autoptr(EbPluginContext) context = eb_plugin_context_new("bare", "errand", "/x");
    g_autoptr(EbConfigSection) section = eb_config_section_new("plugin.bare");
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(EbCheckResult) result = eb_doctor_check_run(EB_DOCTOR_CHECK(bare), host, section, NULL);
    g_auto(EbTestResult) done = {0};
    GError *error = NULL;

    g_assert_cmpint(result->status, ==, EB_CHECK_SKIPPED);
    g_assert_cmpstr(eb_doctor_check_get_info(EB_DOCTOR_CHECK(bare))->id, ==, "x-unnamed");
    g_assert_false(eb_plugin_configure(EB_PLUGIN(bare), context, section, &error));
    assert_not_supported(&error);
    /* Nothing to start and stop is no failure. */
    eb_plugin_start_async(EB_PLUGIN(bare), NULL, READY);
    g_assert_cmpuint(done.calls, ==, 0);
    g_assert_true(eb_plugin_start_finish(EB_PLUGIN(bare), WAIT, &error));
    eb_test_result_clear(&done);
    eb_plugin_stop_async(EB_PLUGIN(bare), NULL, READY);
    g_assert_true(eb_plugin_stop_finish(EB_PLUGIN(bare), WAIT, &error));
    g_assert_no_error(error);
}

/* --- a store that lets errors of other domains through --- */

#define LEAKY_TYPE (leaky_get_type())
G_DECLARE_FINAL_TYPE(Leaky, leaky, LEAKY, OBJECT, GObject)
struct _Leaky {
    GObject parent_instance;
};

static void
leaky_lookup_async(EbCredentialStore *self, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
                   gpointer user_data)
{
    g_task_report_new_error(self, callback, user_data, leaky_lookup_async, G_FILE_ERROR, G_FILE_ERROR_ACCES, "closed");
}

static void
leaky_iface_init(EbCredentialStoreInterface *iface)
{
    iface->lookup_async = leaky_lookup_async;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(Leaky, leaky, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CREDENTIAL_STORE, leaky_iface_init))

static void
leaky_class_init(LeakyClass *klass)
{
}

static void
leaky_init(Leaky *self)
{
}

static void
test_border(void)
{
    g_autoptr(Leaky) leaky = g_object_new(LEAKY_TYPE, NULL);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_credential_store_lookup_async(EB_CREDENTIAL_STORE(leaky), "n", NULL, READY);
    g_assert_null(eb_credential_store_lookup_finish(EB_CREDENTIAL_STORE(leaky), WAIT, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, NULL, "closed");
}

static void
count_two(gpointer source, gpointer a, gpointer b, gpointer user_data)
{
    (*(guint *)user_data)++;
}

static void
test_signals(void)
{
    static const char *const names[] = {"withdrawn", "interrupt", "connection", "message", "action", "changed"};
    g_autoptr(Bare) bare = g_object_new(BARE_TYPE, NULL);
    g_autoptr(EbChatMessage) message = eb_chat_message_new("1", NULL, "u", "hi");
    guint count = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_cmpuint(g_signal_lookup(names[i], BARE_TYPE), !=, 0);
    g_signal_connect(bare, "withdrawn", G_CALLBACK(count_two), &count);
    g_signal_connect(bare, "instance-event", G_CALLBACK(count_two), &count);
    g_signal_emit_by_name(bare, "withdrawn", "t", "1");
    g_signal_emit_by_name(bare, "instance-event", EB_INSTANCE_EVENT_BACKEND_LOST, NULL);
    g_signal_emit_by_name(bare, "message", message);
    g_assert_cmpuint(count, ==, 2);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/interfaces/backend", test_backend);
    g_test_add_func("/sdk/interfaces/exec", test_exec);
    g_test_add_func("/sdk/interfaces/transport", test_transport);
    g_test_add_func("/sdk/interfaces/store", test_store);
    g_test_add_func("/sdk/interfaces/plugin-and-check", test_plugin_and_check);
    g_test_add_func("/sdk/interfaces/border", test_border);
    g_test_add_func("/sdk/interfaces/signals", test_signals);
    return g_test_run();
}
