/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-manager-private.h"
#include "eb-fake-backend.h"
#include "eb-fake-chat.h"
#include "eb-test.h"

G_BEGIN_DECLS

/** EbSessionFixture: a state directory with a manager on it; everything real but guests, broker and chat. */
typedef struct {
    char *dir;
    EbConfig *config;
    EbFakeBackend *backend;
    EbFakeChat *chat;
    EbSessionManager *manager;
    /* what the manager's signals said last */
    guint turns_ended, sessions_ended;
    char *stop_reason, *end_reason;
    GError *turn_error, *end_error;
    const char *key;      /* (nullable): what a lookup of a credential gives; NULL: one of the fixture's own */
    guint broker_updates; /* new rules of a running broker, */
    EbBrokerRules *told;  /* (nullable): and the last of them */
    GPtrArray *outcomes;  /* (element-type utf8) "message-1 working": of every prompt, in the order told */
    /* failures to provoke */
    int fail_state; /* EbLaunchState, -1 = none */
    int kill_state; /* likewise: SIGKILL for this very process */
    gboolean fail_broker;
    gboolean no_key;
    const char *no_key_of; /* (nullable): this credential alone is missing */
    GType broker_type;     /* of what stands for the broker; 0 = a plain object */
} EbSessionFixture;

/** eb_session_fixture_new: @dir: (nullable): an existing one; @settings: (nullable): further TOML */
EbSessionFixture *eb_session_fixture_new(const char *dir, const char *settings, EbChatCaps caps);
void eb_session_fixture_open(EbSessionFixture *self);
/** eb_session_fixture_try_open: (nullable) with @error */
gboolean eb_session_fixture_try_open(EbSessionFixture *self, GError **error);
void eb_session_fixture_close(EbSessionFixture *self);
void eb_session_fixture_free(EbSessionFixture *self);
/** eb_session_fixture_turn: says @text and waits for the end of a turn (or of the session). */
void eb_session_fixture_turn(EbSessionFixture *self, const char *thread, const char *text, const char *extra);
void eb_session_fixture_wait_turns(EbSessionFixture *self, guint turns);
void eb_session_fixture_wait_ended(EbSessionFixture *self, guint sessions);
/** eb_session_fixture_wait_said: waits until the posts of @kind, which come to the chat one after the other, have @text. */
void eb_session_fixture_wait_said(EbSessionFixture *self, EbChatPostKind kind, const char *text);
/** eb_session_fixture_outcomes: (transfer full): "waiting working done": of @message ("message-1") */
char *eb_session_fixture_outcomes(EbSessionFixture *self, const char *message);
/** eb_session_fixture_live: (transfer none): the live session of @thread. */
EbSession *eb_session_fixture_live(EbSessionFixture *self, const char *thread);
/** eb_session_fixture_assert_nothing: no guest, session directory, socket, row, or lock of a project is left. */
void eb_session_fixture_assert_nothing(EbSessionFixture *self);
guint eb_session_fixture_count_dirs(EbSessionFixture *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSessionFixture, eb_session_fixture_free)

G_END_DECLS
