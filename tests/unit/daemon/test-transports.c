/* SPDX-License-Identifier: MIT */
#include "core/daemon/eb-daemon-transports.h"
#include "eb-test.h"

#include <string.h>

#define PLUGIN "chat-discord"

/* --- a chat that says what the test wants --- */

#define TEST_TYPE_CHAT (test_chat_get_type())
G_DECLARE_FINAL_TYPE(TestChat, test_chat, TEST, CHAT, GObject)

struct _TestChat {
    GObject parent_instance;
};

static void
test_chat_iface_init(EbChatTransportInterface *iface)
{
}

G_DEFINE_FINAL_TYPE_WITH_CODE(TestChat, test_chat, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, test_chat_iface_init))

static void
test_chat_class_init(TestChatClass *klass)
{
}

static void
test_chat_init(TestChat *self)
{
}

typedef struct {
    EbDaemonTransports *transports;
    TestChat *chat;
    GError *failure; /* (nullable) */
    guint failures;
} Fixture;

static void
on_failed(const GError *error, gpointer user_data)
{
    Fixture *fixture = user_data;

    fixture->failures++;
    g_clear_error(&fixture->failure);
    fixture->failure = g_error_copy(error);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->transports = eb_daemon_transports_new(on_failed, fixture);
    fixture->chat = g_object_new(TEST_TYPE_CHAT, NULL);
    eb_daemon_transports_watch(fixture->transports, "zoo", EB_CHAT_TRANSPORT(fixture->chat));
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    eb_daemon_transports_free(fixture->transports);
    /* Nobody listens any more. */
    g_signal_emit_by_name(fixture->chat, "connection", TRUE, "late");
    g_object_unref(fixture->chat);
    g_clear_error(&fixture->failure);
}

static void
check_state(Fixture *fixture, const char *state, const char *detail)
{
    g_autoptr(JsonArray) list = eb_daemon_transports_json(fixture->transports);
    JsonObject *object = eb_json_array_object(list, 0);

    g_assert_cmpuint(json_array_get_length(list), ==, 1);
    g_assert_cmpstr(eb_json_get_string(object, "name"), ==, "zoo");
    g_assert_cmpstr(eb_json_get_string(object, "state"), ==, state);
    g_assert_cmpstr(eb_json_get_string(object, "detail"), ==, detail);
    g_assert_cmpint(eb_json_get_int(object, "seconds", -1), >=, 0);
}

static void
test_connection(Fixture *fixture, gconstpointer data)
{
    check_state(fixture, "quiet", NULL);
    g_signal_emit_by_name(fixture->chat, "connection", TRUE, "connected");
    check_state(fixture, "up", "connected");
    g_signal_emit_by_name(fixture->chat, "connection", TRUE, "resumed");
    check_state(fixture, "up", "resumed");
    g_signal_emit_by_name(fixture->chat, "connection", FALSE, "bad\nline");
    check_state(fixture, "down", "bad\\x0aline");
    g_signal_emit_by_name(fixture->chat, "connection", FALSE, NULL);
    check_state(fixture, "down", NULL);
    /* However long it lasts: an outage is no failure. */
    g_assert_cmpuint(fixture->failures, ==, 0);
}

/* A log of warnings alone has the end of an outage as well as its beginning. */
static void
test_told(Fixture *fixture, gconstpointer data)
{
    if (g_test_subprocess()) {
        eb_log_setup(0, FALSE);
        g_signal_emit_by_name(fixture->chat, "connection", TRUE, "at first");
        g_signal_emit_by_name(fixture->chat, "connection", FALSE, "cut off");
        g_signal_emit_by_name(fixture->chat, "connection", TRUE, "resumed");
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr_unmatched("*at first*");
    g_test_trap_assert_stderr("*chat \"zoo\" is not reached now: cut off*chat \"zoo\" is reached again: resumed*");
}

static void
test_failed(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = eb_error_new(EB_ERROR_UNAUTHENTICATED, "zoo.token", "the token is no longer good");

    g_signal_emit_by_name(fixture->chat, "failed", error);
    check_state(fixture, "failed", "the token is no longer good");
    g_assert_cmpuint(fixture->failures, ==, 1);
    eb_test_assert_error(fixture->failure, EB_ERROR_UNAUTHENTICATED, "zoo.token",
                         "chat \"zoo\": the token is no longer");
    /* It stays so, and is told once. */
    g_signal_emit_by_name(fixture->chat, "connection", TRUE, "connected");
    g_signal_emit_by_name(fixture->chat, "failed", error);
    check_state(fixture, "failed", "the token is no longer good");
    g_assert_cmpuint(fixture->failures, ==, 1);
}

/* --- plugins that refused --- */

static EbConfigSection *
section_for(const char *name, gpointer user_data)
{
    EbConfigSection *section = eb_config_section_new("plugin." PLUGIN);
    const char *channel = user_data;

    if (channel != NULL)
        eb_config_section_set(section, "channel_id", g_variant_new_string(channel), "eb.toml", 3);
    return section;
}

static EbPluginRegistry *
load(const char *const *enabled, const char *channel)
{
    g_autofree char *dir = eb_test_temp_dir("transports");
    EbPluginRegistry *registry = eb_plugin_registry_new("nobody", dir, TRUE);

    eb_plugin_registry_load_dir(registry, g_getenv("EB_TEST_PLUGIN_DIR"), enabled, NULL, section_for,
                                (gpointer)channel);
    return registry;
}

static void
test_refused(void)
{
    static const char *const enabled[] = {PLUGIN, NULL};
    g_autoptr(EbPluginRegistry) registry = load(enabled, "general");
    g_autoptr(GError) error = NULL;

    g_assert_false(eb_daemon_check_transports(registry, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.config", "plugin \"" PLUGIN "\": eb.toml:3: ");
}

/* On by default, and nobody configured it: no reason not to serve. */
static void
test_unconfigured(void)
{
    static const char *const enabled[] = {PLUGIN, NULL};
    g_autoptr(EbPluginRegistry) registry = load(enabled, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) provided = eb_plugin_registry_list(registry, EB_EXTENSION_CHAT_TRANSPORT);

    g_assert_true(eb_daemon_check_transports(registry, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(provided->len, ==, 0);
}

/* A plugin that is not there is told of elsewhere; other plugins' failures are none of a chat's. */
static void
test_others(void)
{
    static const char *const enabled[] = {"no-such-plugin", NULL};
    g_autoptr(EbPluginRegistry) registry = load(enabled, NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(eb_daemon_check_transports(registry, &error));
    g_assert_no_error(error);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add("/daemon/transports/connection", Fixture, NULL, set_up, test_connection, tear_down);
    g_test_add("/daemon/transports/told", Fixture, NULL, set_up, test_told, tear_down);
    g_test_add("/daemon/transports/failed", Fixture, NULL, set_up, test_failed, tear_down);
    g_test_add_func("/daemon/transports/refused", test_refused);
    g_test_add_func("/daemon/transports/unconfigured", test_unconfigured);
    g_test_add_func("/daemon/transports/others", test_others);
    return g_test_run();
}
