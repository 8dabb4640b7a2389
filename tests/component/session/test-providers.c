/* SPDX-License-Identifier: MIT */
/* Providers that cannot be used, and what a session says of its broker. */
#include "eb-session-fixture.h"

#include <string.h>

#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)
#define SPARE(kind)                                                                                                    \
    "[provider.spare]\nkind = \"" kind "\"\nbase_url = \"http://127.0.0.1:2\"\nkey = \"cred:spare-key\"\n"

/* The agent's own environment names the one that has a key, and nothing of the other. */
static void
test_passed_over(void)
{
    g_autoptr(EbSessionFixture) self = eb_session_fixture_new(NULL, SPARE("openai"), STRUCTURED);
    self->no_key_of = "model-key";
    eb_session_fixture_open(self);
    eb_session_fixture_turn(self, NULL, "leak OPENAI_BASE_URL", NULL);
    g_assert_cmpstr(self->stop_reason, ==, "end_turn");
    g_autofree char *said = eb_fake_chat_said(self->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "/provider/spare/v1"));
    g_assert_null(strstr(said, "main"));
    g_autofree char *notices = eb_fake_chat_said(self->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notices,
                            "this session uses the model provider spare and has no settings for what cannot be "
                            "used: main (credential model-key is nowhere (looked in env-file /nowhere))"));
    g_autoptr(JsonObject) status = eb_session_status(eb_session_fixture_live(self, NULL));
    g_assert_cmpstr(eb_json_get_string(status, "provider"), ==, "spare");
    g_assert_nonnull(strstr(eb_json_get_string(status, "unroutable"), "main (credential model-key is nowhere"));
    /* Its key is the one that is given a new value. */
    self->key = "9f1b6c1e-5b1c-4bb7-8a46-2f6f0c9d4e11";
    eb_session_manager_keys_changed(self->manager, "spare-key");
    eb_test_drain();
    g_assert_cmpuint(self->broker_updates, ==, 1);
}

/* Nothing to say where the first one works, whatever becomes of the others. */
static void
test_not_needed(void)
{
    g_autoptr(EbSessionFixture) self = eb_session_fixture_new(NULL, SPARE("openai"), STRUCTURED);
    self->no_key_of = "spare-key";
    eb_session_fixture_open(self);
    eb_session_fixture_turn(self, NULL, "leak OPENAI_BASE_URL", NULL);
    g_autofree char *said = eb_fake_chat_said(self->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "/provider/main/v1"));
    g_autoptr(JsonObject) status = eb_session_status(eb_session_fixture_live(self, NULL));
    g_assert_null(eb_json_get_string(status, "unroutable"));
}

static void
assert_refused(const char *settings, const char *extra, gboolean all, const char *reason, const char *text)
{
    g_autoptr(EbSessionFixture) self = eb_session_fixture_new(NULL, settings, STRUCTURED);
    self->no_key = all;
    self->no_key_of = "model-key";
    eb_session_fixture_open(self);
    eb_session_fixture_turn(self, NULL, "say hello", extra);
    eb_test_assert_error(self->end_error, EB_ERROR_UNAUTHENTICATED, reason, text);
    eb_session_fixture_assert_nothing(self);
}

/* Somebody chose the provider, or a model that only such a provider has, or there is no other: refused, and said why. */
static void
test_refused(void)
{
    static const char WHY[] = "the key of provider main: credential model-key is nowhere";

    assert_refused(NULL, NULL, FALSE, "credential.missing", WHY);
    assert_refused("provider = \"main\"\n" SPARE("openai"), NULL, FALSE, "credential.missing", WHY);
    assert_refused(SPARE("openai"), "{\"provider\":\"main\"}", FALSE, "credential.missing", WHY);
    assert_refused("model = \"gpt-5\"\n" SPARE("anthropic"), NULL, FALSE, "credential.missing", WHY);
    assert_refused(SPARE("anthropic"), NULL, FALSE, "credential.missing", WHY); /* the agent speaks openai alone */
    assert_refused(SPARE("openai"), NULL, TRUE, "provider.unroutable",
                   "no model provider of the agent test can be used: main (credential model-key is nowhere (looked in "
                   "env-file /nowhere)); spare (credential spare-key is nowhere (looked in env-file /nowhere))");
}

/* --- the broker --- */

#define TYPE_TELLING_BROKER (telling_broker_get_type())
G_DECLARE_FINAL_TYPE(TellingBroker, telling_broker, TELLING, BROKER, GObject)
struct _TellingBroker {
    GObject parent_instance;
};
G_DEFINE_FINAL_TYPE(TellingBroker, telling_broker, G_TYPE_OBJECT)

static TellingBroker *last_broker;

static void
telling_broker_class_init(TellingBrokerClass *klass)
{
    GType type = G_TYPE_FROM_CLASS(klass);

    g_signal_new("call-refused", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
    g_signal_new("died", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_BOOLEAN, G_TYPE_STRING);
}

static void
telling_broker_init(TellingBroker *self)
{
    last_broker = self;
}

/* Which system call it was is said once, to those who can look into it. */
static void
test_call_refused(void)
{
    static const char WHY[] = "was killed by SIGSYS: system call getpriority is not allowed";
    g_autoptr(EbSessionFixture) self = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    self->broker_type = TYPE_TELLING_BROKER;
    eb_session_fixture_open(self);
    eb_session_fixture_turn(self, NULL, "say hello", NULL);
    for (guint i = 0; i < 2; i++) {
        g_signal_emit_by_name(last_broker, "call-refused", WHY);
        g_signal_emit_by_name(last_broker, "died", TRUE, WHY);
    }
    eb_test_drain();
    g_autofree char *errors = eb_fake_chat_said(self->chat, EB_CHAT_POST_ERROR);
    g_autoptr(JsonObject) status = eb_session_status(eb_session_fixture_live(self, NULL));
    g_autofree char *wanted =
        g_strdup_printf("the broker of session %s %s", eb_json_get_string(status, "session"), WHY);
    const char *first = strstr(errors, wanted);
    g_assert_nonnull(first);
    g_assert_null(strstr(first + 1, "the broker of session"));
    g_autofree char *notices = eb_fake_chat_said(self->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notices, "ended and was replaced at once"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/providers/passed-over", test_passed_over);
    g_test_add_func("/providers/not-needed", test_not_needed);
    g_test_add_func("/providers/refused", test_refused);
    g_test_add_func("/broker/call-refused", test_call_refused);
    return g_test_run();
}
