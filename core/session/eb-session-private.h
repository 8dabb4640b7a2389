/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/render/eb-coalescer.h"
#include "core/render/eb-renderer.h"
#include "core/session/eb-activity-watch.h"
#include "core/session/eb-guest.h"
#include "core/session/eb-permission.h"
#include "core/session/eb-questions.h"
#include "core/session/eb-session.h"
#include "core/state/eb-journal.h"
#include "core/state/eb-transcript.h"

G_BEGIN_DECLS

/** EB_SESSION_MAX_ALARMS: providers of which a session may tell an error. */
#define EB_SESSION_MAX_ALARMS 32
/** EbSessionAlarms: when people were last told of something that goes on, monotonic; 0 = never. */
typedef struct {
    gint64 died_us, refused_us;
    guint n_providers;
    struct {
        char *name;
        gint64 told_us;
    } providers[EB_SESSION_MAX_ALARMS];
} EbSessionAlarms;

struct _EbSession {
    GObject parent_instance;
    EbSessionParts *parts;
    EbSessionRecord *record;
    gboolean fresh;
    EbSessionState state;
    EbChatTransport *transport;
    EbCoalescer *coalescer;
    EbTranscript *transcript;
    /* starting */
    GCancellable *cancellable; /* of the waits for places and of the launch */
    EbTicket *place;
    gboolean launching;
    gboolean waiting_place;
    /* the agent */
    EbGuest *guest;
    EbRenderer *renderer;
    EbActivityWatch *watch;
    GPtrArray *permissions;   /* (element-type EbPermission): the client bounds them (64) */
    GCancellable *place_wait; /* (nullable): an answered question waits for a place for its turn */
    guint left_questions;     /* that people may answer though the service ends */
    EbSessionAlarms alarms;
    GPtrArray *once; /* (nullable) (element-type EbHostOnce): shared with the manager's desk */
    /* turns */
    GQueue prompts;        /* (element-type EbPrompt), at most EB_SESSION_MAX_PROMPTS and what was steered in vain */
    EbPrompt *prompt;      /* of the turn under way or waiting for a place */
    GPtrArray *steered;    /* (element-type EbSteer): given into the turn under way, at most EB_SESSION_MAX_STEERED */
    gboolean acquiring;    /* a place for the next turn is waited for */
    GCancellable *prepare; /* (nullable): its prompt is being prepared for the agent */
    EbTicket *turn;
    gint64 turn_us; /* 0 = no prompt is at the agent */
    gboolean cancelled;
    EbAcpTurn *held_turn; /* (nullable): answered, but what was steered into it is not yet */
    GSource *steer_timer;
    gboolean busy;
    GString *said; /* what the agent says in one go, for the transcript, at most 64 KiB */
    /* what the agent told of itself */
    char *compact;                     /* (nullable): its command that compacts, without the slash */
    gint64 context_used, context_size; /* tokens, -1 = unknown */
    double cost, cost_before;          /* of the session, and when the turn began; negative = unknown */
    char *currency;
    /* people */
    const EbChatPolicy *policy; /* (nullable): of the transport; NULL = it has none and anyone may answer */
    char *canary_seen;          /* (nullable): where the planted key showed up */
    /* ending */
    gboolean ending;
    gboolean ending_guest;
    EbSessionEnd end_reason;
    GError *end_error;
    GSource *rest_timer;
    GSource *lost_timer; /* the connection ended in a turn: the exit code says why, if it comes soon */
};

/** EbSteer: a prompt given into a turn. */
typedef struct {
    EbPrompt *prompt;
    gboolean pending; /* the agent has not answered it */
} EbSteer;
void eb_steer_free(EbSteer *self);

/* eb-session.c */
void eb_session_set_state(EbSession *self, EbSessionEvent event);
void eb_session_save(EbSession *self);
void eb_session_touch(EbSession *self);
void eb_session_clear_source(GSource **source);
void eb_session_turn_ended(EbSession *self, const char *stop_reason, const GError *error);
/** eb_session_end_guest: the second half of eb_session_end(). */
void eb_session_end_guest(EbSession *self);
/** eb_session_set_prompt_state, _outcome: tell the journal and people; nobody when @prompt has no message. */
void eb_session_set_prompt_state(EbSession *self, const EbPrompt *prompt, EbJournalState state);
void eb_session_set_outcome(EbSession *self, const EbPrompt *prompt, EbPromptOutcome outcome);

/* eb-session-budget.c */
void eb_session_listen_budget(EbSession *self);
void eb_session_add_budget(EbSession *self, JsonObject *status);

/* eb-session-post.c */
void eb_session_post(EbSession *self, EbChatPost *post);
void eb_session_post_text(EbSession *self, EbChatPostKind kind, const char *text);
void eb_session_post_error(EbSession *self, const GError *error);
void eb_session_post_position(EbSession *self, const char *what, guint position);
void eb_session_post_guest(EbSession *self, EbGuest *guest, const char *state);
void eb_session_post_ready(EbSession *self, gboolean fresh);
void eb_session_post_busy(EbSession *self, gboolean busy);
/** EbTurnEnd: what is told of a turn's end. */
typedef struct {
    const char *stop_reason;
    const char *state;      /* (nullable): a word instead of the one for stop_reason */
    const EbPrompt *prompt; /* (nullable) */
    guint64 turn_ms;
    gint64 wait_ms;      /* from the prompt's coming to its start; negative = unknown */
    JsonObject *usage;   /* (nullable): as the agent told */
    const GError *error; /* (nullable) */
} EbTurnEnd;
void eb_session_post_end(EbSession *self, const EbTurnEnd *end);

/* eb-session-agent.c */
void eb_session_attach_agent(EbSession *self);
void eb_session_detach_agent(EbSession *self);
/** eb_session_listen_early: some agents tell their commands before the launch is done. */
void eb_session_listen_early(EbSession *self, EbAcpClient *client);
void eb_session_end_span(EbSession *self);

/* eb-session-broker.c */
/** eb_session_attach_broker: from when there is one: what is refused while the agent starts is told as well. */
void eb_session_attach_broker(EbSession *self, EbGuest *guest);
/** eb_session_tell_operators: an error in its thread that mentions the operators whom the policy names. */
void eb_session_tell_operators(EbSession *self, const char *text);
/** eb_session_tell_degraded: what this host lacks of the broker's own sandbox. */
void eb_session_tell_degraded(EbSession *self);
void eb_session_clear_alarms(EbSession *self);

/* eb-session-questions.c */
void eb_session_on_permission(EbAcpClient *client, EbAcpPermission *question, gpointer user_data);
/** eb_session_has_question: its agent waits for the answer to @id. */
gboolean eb_session_has_question(EbSession *self, const char *id);
/** eb_session_close_permissions: the turn is over; with the service they stay open for people. */
void eb_session_close_permissions(EbSession *self);

/* eb-session-turn.c */
void eb_session_next_turn(EbSession *self);
/** eb_session_end_turn_first: cancels a turn under way; @self goes on to end the guest when it settled. */
gboolean eb_session_end_turn_first(EbSession *self);
/** eb_session_steer_settled: the agent answered something that was steered into the turn. */
void eb_session_steer_settled(EbSession *self);

/* eb-session-people.c */
/** eb_session_list_answerers: (transfer full) (nullable): NULL = anyone */
GPtrArray *eb_session_list_answerers(EbSession *self);
/** eb_session_record_list_answerers: (transfer full) (nullable): owner, guests and operators who may use the service;
 *  NULL = anyone. @policy: (nullable) */
GPtrArray *eb_session_record_list_answerers(const EbSessionRecord *record, const EbChatPolicy *policy);
/** eb_session_share_answerers: the open questions take whoever may answer now. */
void eb_session_share_answerers(EbSession *self);

/* eb-session-prepare.c */
/**
 * eb_session_prepare_async: takes the files of a copy of @prompt and writes down that an agent is given it.
 * @cancellable: (nullable): only the taking is cancelled
 */
void eb_session_prepare_async(EbSession *self, const EbPrompt *prompt, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_prepare_finish: (transfer full) (nullable): what to give to the agent */
EbPrompt *eb_session_prepare_finish(EbSession *self, GAsyncResult *result, GError **error);

/* eb-session-prompts.c */
/** eb_session_drop_prompts: @error: (nullable): why none of them runs */
void eb_session_drop_prompts(EbSession *self, const GError *error);
/** eb_session_settle_prompts: the turn of @prompt and of all that was steered into it is over. */
void eb_session_settle_prompts(EbSession *self, const EbPrompt *prompt, EbPromptOutcome outcome);
/** eb_session_keep_prompt: into the transcript, with the message it is, so that it can be taken back. */
void eb_session_keep_prompt(EbSession *self, const EbPrompt *prompt);
/** eb_session_encode_prompt: (transfer full): ContentBlock[]. */
JsonArray *eb_session_encode_prompt(EbSession *self, const EbPrompt *prompt);

G_END_DECLS
