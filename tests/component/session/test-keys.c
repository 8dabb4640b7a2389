/* SPDX-License-Identifier: MIT */
/* A key that is replaced reaches the brokers of sessions that run, and is masked before it does. */
#include "core/session/eb-session-canary.h"
#include "eb-session-fixture.h"

#include <string.h>

#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)

static void
assert_told(EbSessionFixture *self, const char *value)
{
    g_assert_nonnull(self->told);
    EbBrokerProvider *provider = self->told->providers->pdata[0];
    g_auto(EbSecretView) view = eb_secret_view(provider->key);
    g_assert_cmpmem(view.bytes, view.length, value, strlen(value));
}

static void
test_replaced(void)
{
    g_autoptr(EbSessionFixture) self = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(self);
    eb_session_manager_keys_changed(self->manager, NULL); /* nothing runs */
    eb_session_fixture_turn(self, NULL, "say hello", NULL);
    EbSession *session = eb_session_fixture_live(self, NULL);

    /* Told of, and the same as before: the broker is left alone. */
    eb_session_manager_keys_changed(self->manager, NULL);
    eb_test_drain();
    g_assert_cmpuint(self->broker_updates, ==, 0);

    self->key = "9f1b6c1e-5b1c-4bb7-8a46-2f6f0c9d4e11";
    eb_session_manager_keys_changed(self->manager, "chat-token"); /* another credential */
    eb_test_drain();
    g_assert_cmpuint(self->broker_updates, ==, 0);
    eb_session_manager_keys_changed(self->manager, "model-key");
    eb_test_drain();
    g_assert_cmpuint(self->broker_updates, ==, 1);
    assert_told(self, self->key);
    g_autofree char *masked = eb_redact_set_mask(eb_session_get_secrets(session), self->key, -1);
    g_assert_cmpstr(masked, ==, "[model-key]");
    /* The one before stays masked: the agent's earlier answers may hold it. */
    g_autofree char *old = eb_redact_set_mask(eb_session_get_secrets(session), "sk-test-0123456789abcdef", -1);
    g_assert_cmpstr(old, ==, "[model-key]");
}

/* A file of two lines stored as a key: the second one would be a header. Neither a new session nor one that runs takes it. */
static void
test_unsendable(void)
{
    static const char *const keys[] = {"sk-one\nX-Other: two", "sk-one two", "sk-\x7f", "sk-\xc3\xa9"};
    g_autoptr(EbSessionFixture) self = eb_session_fixture_new(NULL, NULL, STRUCTURED);

    eb_session_fixture_open(self);
    self->key = keys[0];
    eb_session_fixture_turn(self, NULL, "say hello", NULL);
    eb_test_assert_error(self->end_error, EB_ERROR_CONFIG, "credential.unsendable", "errand-box creds set model-key");
    g_assert_null(strstr(self->end_error->message, "sk-one"));
    self->key = NULL;
    eb_session_fixture_turn(self, NULL, "say hello", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        self->key = keys[i];
        eb_session_manager_keys_changed(self->manager, NULL);
        eb_test_drain();
        g_assert_cmpuint(self->broker_updates, ==, 0);
    }
}

static void
test_unreadable(void)
{
    g_autoptr(EbSessionFixture) self = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(self);
    eb_session_fixture_turn(self, NULL, "say hello", NULL);
    self->no_key = TRUE;
    eb_session_manager_keys_changed(self->manager, NULL);
    eb_test_drain();
    g_assert_cmpuint(self->broker_updates, ==, 0); /* it goes on with the key that it has */
    self->no_key = FALSE;
    eb_session_fixture_turn(self, NULL, "say hello", NULL);
    g_assert_cmpstr(self->stop_reason, ==, "end_turn");
}

/* Told once, in the thread and in the status, when the agent says it; and ended when that is configured. */
static void
check_canary(gboolean ends)
{
    g_autoptr(EbSessionFixture) self =
        eb_session_fixture_new(NULL, ends ? "canary = true\ncanary_action = \"end\"" : "canary = true", STRUCTURED);
    eb_session_fixture_open(self);
    eb_session_fixture_turn(self, NULL, "say hello", NULL);
    eb_session_fixture_turn(self, NULL, "leak PRODUCTION_API_KEY", NULL);
    eb_test_drain();
    g_autofree char *text = eb_fake_chat_said(self->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(text, "[canary]"));
    g_assert_null(strstr(text, "sk-proj-"));
    if (ends) {
        eb_session_fixture_wait_ended(self, 1);
        eb_test_assert_error(self->end_error, EB_ERROR_DENIED, "session.canary", "planted key");
        g_assert_cmpstr(self->end_reason, ==, "stopped");
        return;
    }
    g_autofree char *notices = eb_fake_chat_said(self->chat, EB_CHAT_POST_ERROR);
    const char *first = strstr(notices, "the planted key showed up in what it said");
    g_assert_nonnull(first);
    eb_session_fixture_turn(self, NULL, "leak PRODUCTION_API_KEY", NULL);
    eb_test_drain();
    g_autofree char *later = eb_fake_chat_said(self->chat, EB_CHAT_POST_ERROR);
    g_assert_cmpstr(later, ==, notices); /* once */
    g_autoptr(JsonObject) status = eb_session_status(eb_session_fixture_live(self, NULL));
    g_assert_cmpstr(eb_json_get_string(status, "canary"), ==, "what it said");
}

static void
test_canary_tell(void)
{
    check_canary(FALSE);
}

static void
test_canary_end(void)
{
    check_canary(TRUE);
}

static void
test_canary_shapes(void)
{
    static const char *const kinds[][2] = {
        {"anthropic", "sk-ant-api03-"}, {"openai", "sk-proj-"}, {"gemini", "AIzaSy"}, {NULL, "sk-proj-"}};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(EbSecret) first = eb_canary_new(kinds[i][0]);
        g_autoptr(EbSecret) second = eb_canary_new(kinds[i][0]);
        g_auto(EbSecretView) view = eb_secret_view(first);
        g_assert_true(g_str_has_prefix(view.bytes, kinds[i][1]));
        g_assert_false(eb_secret_equal(first, second));
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/keys/replaced", test_replaced);
    g_test_add_func("/keys/unreadable", test_unreadable);
    g_test_add_func("/keys/unsendable", test_unsendable);
    g_test_add_func("/canary/tell", test_canary_tell);
    g_test_add_func("/canary/end", test_canary_end);
    g_test_add_func("/canary/shapes", test_canary_shapes);
    return g_test_run();
}
