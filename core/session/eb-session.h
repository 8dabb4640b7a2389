/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-parts.h"
#include "core/session/eb-session-state.h"
#include "core/state/eb-session-store.h"

G_BEGIN_DECLS

/** EB_SESSION_MAX_PROMPTS: prompts that may wait in one session. */
#define EB_SESSION_MAX_PROMPTS 16
/** EB_SESSION_MAX_PROMPT_BYTES: of one prompt. */
#define EB_SESSION_MAX_PROMPT_BYTES (1024 * 1024)

/** EbPrompt: one thing a person said to an agent. */
typedef struct {
    char *message_id;
    char *author_id;
    char *text;
} EbPrompt;
EbPrompt *eb_prompt_new(const char *message_id, const char *author_id, const char *text);
void eb_prompt_free(EbPrompt *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPrompt, eb_prompt_free)

/** EbSessionEnd: why a session ends. */
typedef enum {
    EB_SESSION_END_STOPPED = 0, /* somebody said so: not continued by itself */
    EB_SESSION_END_UNRESPONSIVE,
    EB_SESSION_END_IDLE,
    EB_SESSION_END_CRASHED,
    EB_SESSION_END_LIMIT,
    EB_SESSION_END_STARTUP,
    EB_SESSION_END_SHUTDOWN,
} EbSessionEnd;
const char *eb_session_end_to_string(EbSessionEnd reason);

/**
 * EbSession: one agent with its people: starts it, gives it prompts one at a time, shows what it does, asks what it asks,
 * ends it. All in the main thread.
 *
 * Signals:
 *   "changed": state or record changed.
 *   "prompt-state" (const char *message_id, int EbJournalState): started, done.
 *   "turn-ended" (const char *stop_reason, GError *error (nullable)): everything it said was given to the transport.
 *   "ended" (const char *reason, GError *error (nullable)): last of all; the guest is gone.
 */
#define EB_TYPE_SESSION (eb_session_get_type())
G_DECLARE_FINAL_TYPE(EbSession, eb_session, EB, SESSION, GObject)

/**
 * eb_session_new:
 * @record: (transfer none): shared with the caller; this object alone changes it
 * @fresh: it never was started before
 */
EbSession *eb_session_new(EbSessionParts *parts, EbSessionRecord *record, gboolean fresh, EbChatTransport *transport);
/** eb_session_start: waits for a place, then launches. Once. */
void eb_session_start(EbSession *self);
/** eb_session_prompt: @prompt: (transfer full): runs when those before it are done; EB_ERROR_QUOTA, _INVALID. */
gboolean eb_session_prompt(EbSession *self, EbPrompt *prompt, GError **error);
/** eb_session_withdraw: takes back a prompt that still waits. */
gboolean eb_session_withdraw(EbSession *self, const char *message_id);
/** eb_session_interrupt: ends the turn under way; FALSE when there is none. */
gboolean eb_session_interrupt(EbSession *self);
/** eb_session_end: @error: (nullable) (transfer none): told to people. Twice is once. */
void eb_session_end(EbSession *self, EbSessionEnd reason, const GError *error);
/** eb_session_prepare_removal: its directories are removed after its end: their files are given to one uid before. */
void eb_session_prepare_removal(EbSession *self);
/** eb_session_guest_gone: its guest stopped or was deleted by somebody else. */
void eb_session_guest_gone(EbSession *self);
/** eb_session_flush_log: what it has not yet written of its transcript goes to the store. */
void eb_session_flush_log(EbSession *self);
/** eb_session_notice: says something in its thread. */
void eb_session_notice(EbSession *self, const char *text);

EbSessionRecord *eb_session_get_record(EbSession *self);
EbSessionState eb_session_get_state(EbSession *self);
/** eb_session_is_ending: also when it has ended. */
gboolean eb_session_is_ending(EbSession *self);
/** eb_session_is_instance: @name is its guest. */
gboolean eb_session_is_instance(EbSession *self, const char *name);

G_END_DECLS
