/* SPDX-License-Identifier: MIT */
/* A key that is replaced reaches the brokers of sessions that run, and is masked before it does. */
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

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/keys/replaced", test_replaced);
    g_test_add_func("/keys/unreadable", test_unreadable);
    return g_test_run();
}
