/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/render/eb-coalescer.h"
#include "core/render/eb-renderer.h"
#include "core/session/eb-activity-watch.h"
#include "core/session/eb-guest.h"
#include "core/session/eb-permission.h"
#include "core/session/eb-session.h"
#include "core/state/eb-journal.h"
#include "core/state/eb-transcript.h"

G_BEGIN_DECLS

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
    GPtrArray *permissions; /* (element-type EbPermission): the client bounds them (64) */
    guint n_denied;
    /* turns */
    GQueue prompts;   /* (element-type EbPrompt), at most EB_SESSION_MAX_PROMPTS */
    EbPrompt *prompt; /* of the turn under way or waiting for a place */
    EbTicket *turn;
    gint64 turn_us;
    gboolean cancelled;
    GString *said; /* what the agent says in one go, for the transcript, at most 64 KiB */
    /* ending */
    gboolean ending;
    gboolean ending_guest;
    EbSessionEnd end_reason;
    GError *end_error;
    GSource *rest_timer;
    GSource *lost_timer; /* the connection ended in a turn: the exit code says why, if it comes soon */
};

void eb_session_set_state(EbSession *self, EbSessionEvent event);
void eb_session_save(EbSession *self);
void eb_session_touch(EbSession *self);
void eb_session_post(EbSession *self, EbChatPost *post);
void eb_session_post_text(EbSession *self, EbChatPostKind kind, const char *text);
void eb_session_post_error(EbSession *self, const GError *error);
void eb_session_post_position(EbSession *self, const char *what, guint position);
void eb_session_clear_source(GSource **source);
/** eb_session_post_end: @ms: of the turn; @error: (nullable) */
void eb_session_post_end(EbSession *self, const char *stop_reason, guint64 turn_ms, const GError *error);
void eb_session_turn_ended(EbSession *self, const char *stop_reason, const GError *error);

/* eb-session-turn.c */
void eb_session_attach_agent(EbSession *self);
void eb_session_detach_agent(EbSession *self);
void eb_session_next_turn(EbSession *self);
/** eb_session_drop_prompts: @error: why none of them runs */
void eb_session_drop_prompts(EbSession *self, const GError *error);
/** eb_session_end_turn_first: cancels a turn under way; @self goes on to end the guest when it settled. */
gboolean eb_session_end_turn_first(EbSession *self);
/** eb_session_end_guest: the second half of eb_session_end(). */
void eb_session_end_guest(EbSession *self);

G_END_DECLS
