/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-prompt.h"
#include "core/session/eb-session-parts.h"
#include "core/session/eb-session-state.h"
#include "core/state/eb-session-store.h"

G_BEGIN_DECLS

/** EB_SESSION_MAX_PROMPTS: prompts that may wait in one session. */
#define EB_SESSION_MAX_PROMPTS 16
/** EB_SESSION_MAX_STEERED: prompts given to an agent within one turn; further ones wait for the next. */
#define EB_SESSION_MAX_STEERED 64

/** EbSessionEnd: why a session ends. */
typedef enum {
    EB_SESSION_END_STOPPED = 0, /* somebody said so: not continued by itself */
    EB_SESSION_END_UNRESPONSIVE,
    EB_SESSION_END_IDLE,
    EB_SESSION_END_CRASHED,
    EB_SESSION_END_LIMIT,
    EB_SESSION_END_STARTUP,
    EB_SESSION_END_SHUTDOWN,
    EB_SESSION_END_ARCHIVED, /* its thread was put away or deleted: nothing is said; posting continues it */
} EbSessionEnd;
const char *eb_session_end_to_string(EbSessionEnd reason);

/**
 * EbSession: one agent with its people: starts it, gives it prompts one at a time, shows what it does, asks what it asks,
 * ends it. All in the main thread.
 *
 * Signals:
 *   "changed": state or record changed.
 *   "prompt-state" (const char *message_id, int EbJournalState): for the journal: received (again), done; that an
 *       agent is given it is written before it is sent.
 *   "prompt-outcome" (const char *message_id, int EbPromptOutcome): for people; exactly one final one for each prompt that
 *       was taken, but for those that the journal brings back after a shutdown.
 *   "host-refused" (const char *host, guint port, const char *code): by its broker, once a host or so; not to be trusted.
 *   "provider-failed" (const char *text): for operators: a provider refuses the key.
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

/* --- eb-session-prompts.c: what people say --- */

/**
 * eb_session_prompt: @prompt: (transfer full): runs when those before it are done; EB_ERROR_QUOTA "prompt.queue",
 * _INVALID "prompt.size", _UNAVAILABLE "session.ended"; then no outcome is told of it.
 */
gboolean eb_session_prompt(EbSession *self, EbPrompt *prompt, GError **error);
/** eb_session_say: @prompt: (transfer full): into the turn that runs when the agent can be steered, else like _prompt(). */
gboolean eb_session_say(EbSession *self, EbPrompt *prompt, GError **error);
/**
 * eb_session_steer: @prompt: (transfer full): into the turn that runs; EB_ERROR_INVALID "session.no-turn" without one,
 * EB_ERROR_NOT_SUPPORTED "session.steer" when the agent cannot.
 */
gboolean eb_session_steer(EbSession *self, EbPrompt *prompt, GError **error);
/** eb_session_can_steer: a turn runs and its agent takes more into it. */
gboolean eb_session_can_steer(EbSession *self);
/** eb_session_withdraw: takes back a prompt that still waits. */
gboolean eb_session_withdraw(EbSession *self, const char *message_id);
/** eb_session_replace_prompt: a person changed what waits; FALSE when it does not wait (any more) or @text is too long. */
gboolean eb_session_replace_prompt(EbSession *self, const char *message_id, const char *text);
/** eb_session_list_prompts: (transfer full) (element-type EbPrompt): copies of those that wait, the next one first. */
GPtrArray *eb_session_list_prompts(EbSession *self);
/**
 * eb_session_retry: the last prompt that an agent was given, again, for @author. EB_ERROR_BUSY "session.busy" in a turn,
 * EB_ERROR_NOT_FOUND "session.no-prompt" when none is known in this run of the service.
 * @message_id: (nullable): of the command
 */
gboolean eb_session_retry(EbSession *self, const char *message_id, const char *author, GError **error);
/**
 * eb_session_compact: a turn with the agent's own command for that. EB_ERROR_BUSY "session.busy" in a turn,
 * EB_ERROR_UNAVAILABLE "session.starting", EB_ERROR_NOT_SUPPORTED "session.compact" when it has none.
 */
gboolean eb_session_compact(EbSession *self, GError **error);

/* --- eb-session-info.c: what the agent is set to, and how things stand --- */

/** eb_session_list_models: (transfer full): [{id,name,current}]; empty when the agent offers no choice. */
JsonArray *eb_session_list_models(EbSession *self);
/**
 * eb_session_set_model_async: @model: an id, a name, or the part of an id behind its last slash when only one fits.
 * EB_ERROR_BUSY "session.busy" in a turn, _UNAVAILABLE "session.starting", _NOT_FOUND "acp.no-such-value" names some, or
 * what the agent says. The record has the new one only when the agent took it.
 */
void eb_session_set_model_async(EbSession *self, const char *model, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_set_model_finish: (transfer full) (nullable): the model as the agent names it */
char *eb_session_set_model_finish(EbSession *self, GAsyncResult *result, GError **error);
/**
 * eb_session_status: (transfer full): session, project, state, agent, owner, guests[], turns, waiting, questions,
 * started_ms, last_activity_ms, steer; when known: agent_name, agent_version, model, provider, instance, turn_ms, idle_ms,
 * context{used,size}, cost, currency. All masked.
 */
JsonObject *eb_session_status(EbSession *self);

/* --- eb-session-people.c: who may answer, and answers --- */

/** eb_session_set_guest: @id is in record->guests or not; also for the questions that are open. TRUE when that changed. */
gboolean eb_session_set_guest(EbSession *self, const char *id, gboolean invited);
/**
 * eb_session_set_policy: whose answers count: those of owner, guests and operators who may use the service.
 * @policy: (nullable) (transfer none): of the transport, lives as long; NULL = it has none: anyone may answer; this is how
 *     it begins, but see eb_session_manager_set_policy()
 */
void eb_session_set_policy(EbSession *self, const EbChatPolicy *policy);

/** EbSessionAnswer: what a text was to the questions that are open. */
typedef enum {
    EB_SESSION_ANSWER_NONE = 0, /* no question is open for that person, or it is no answer */
    EB_SESSION_ANSWER_TAKEN = 1,
    EB_SESSION_ANSWER_UNCLEAR = 2, /* a number that is none of the choices, or several are open; that was said */
} EbSessionAnswer;
/**
 * eb_session_answer: @text: a number from 1, or the name of a choice (any case).
 * @sent_ms: as for eb_permissions_answer()
 */
EbSessionAnswer eb_session_answer(EbSession *self, const char *author_id, const char *text, gint64 sent_ms);

/* --- eb-session-broker.c: its broker --- */

/** eb_session_set_once: @once: (element-type EbHostOnce): shared: what is allowed for a while */
void eb_session_set_once(EbSession *self, GPtrArray *once);
/** eb_session_apply_hosts: the hosts of its record, and those allowed once, are the broker's from now on. */
void eb_session_apply_hosts(EbSession *self);

/* --- the rest of its life --- */

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
/** eb_session_keys_changed: its broker gets the keys that are new. @name: (nullable): of the credential; NULL = any */
void eb_session_keys_changed(EbSession *self, const char *name);
/** eb_session_notice: says something in its thread. */
void eb_session_notice(EbSession *self, const char *text);

EbSessionRecord *eb_session_get_record(EbSession *self);
EbSessionState eb_session_get_state(EbSession *self);
/** eb_session_is_ending: also when it has ended. */
gboolean eb_session_is_ending(EbSession *self);
/** eb_session_get_secrets: (transfer none): what is masked in whatever is said of it. */
EbRedactSet *eb_session_get_secrets(EbSession *self);
/** eb_session_is_instance: @name is its guest. */
gboolean eb_session_is_instance(EbSession *self, const char *name);

G_END_DECLS
