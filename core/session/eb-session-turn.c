/* SPDX-License-Identifier: MIT */
/* The turns of a session: a place, the prompt, its answer. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

/* How long a process whose streams ended may take to tell its exit code. */
#define EXIT_CODE_MS 3000
/* A turn is answered, but something steered into it is not: how long the agent may say nothing until it counts as taken. */
#define STEER_SILENT_MS 3000

/* --- the end of a turn --- */

static GError *
error_of_turn(const EbAcpTurn *turn)
{
    if (turn->error != NULL)
        return eb_error_new(EB_ERROR_FAILED, "agent.error", "%s", turn->error);
    static const char *const normal[] = {"end_turn", "cancelled", "refusal", "max_tokens", "max_turn_requests", NULL};
    if (!g_strv_contains(normal, turn->stop_reason != NULL ? turn->stop_reason : ""))
        return eb_error_new(EB_ERROR_FAILED, "agent.error", "the agent ended the turn with \"%s\"",
                            turn->stop_reason != NULL ? turn->stop_reason : "");
    return NULL;
}

static gint64
wait_ms_of(EbSession *self, const EbPrompt *prompt)
{
    return prompt != NULL && self->turn_us > prompt->received_us ? (self->turn_us - prompt->received_us) / 1000 : -1;
}

static gboolean
survives_restarts(EbSession *self)
{
    return (eb_chat_transport_get_caps(self->transport, NULL) & EB_CHAT_CAP_HISTORY) != 0;
}

/* What people read before the line that ends the turn. */
static void
tell_end(EbSession *self, const EbAcpTurn *turn, const GError *failure)
{
    if (self->ending && self->end_reason == EB_SESSION_END_SHUTDOWN && survives_restarts(self))
        eb_session_notice(self,
                          self->left_questions > 0
                              ? "the service is going down; the question stays open: answer it and the agent goes on"
                              : "the service is going down in the middle of this turn: what was done until now is "
                                "in the project; say it again to go on");
    else if (self->cancelled)
        return;
    else if (failure != NULL)
        eb_session_post_error(self, failure);
    else if (turn->empty)
        eb_session_notice(self, "the agent ended the turn without saying or doing anything");
}

static void
turn_settled(EbSession *self, const EbAcpTurn *turn)
{
    eb_log_step("turn.settled", "EB_SESSION", self->record->id);
    g_autoptr(EbPrompt) prompt = g_steal_pointer(&self->prompt);
    eb_session_clear_source(&self->steer_timer);
    if (self->watch != NULL)
        eb_activity_watch_stop(self->watch);
    eb_session_close_permissions(self);
    eb_session_end_span(self);
    g_autoptr(GError) failure = error_of_turn(turn);
    /* Agents name a cancelled turn in many ways; what we did decides. */
    gboolean unresponsive = self->cancelled && turn->error != NULL && g_strcmp0(turn->stop_reason, "cancelled") == 0;
    if (self->cancelled && !unresponsive)
        g_clear_error(&failure);
    const char *stop = self->cancelled ? "cancelled" : failure != NULL ? "error" : turn->stop_reason;
    tell_end(self, turn, failure);
    EbTurnEnd end = {
        .stop_reason = stop,
        .state = !self->cancelled && failure == NULL && turn->empty ? "no output" : NULL,
        .prompt = prompt,
        .turn_ms = (guint64)(g_get_monotonic_time() - self->turn_us) / 1000,
        .wait_ms = wait_ms_of(self, prompt),
        .usage = turn->usage,
        .error = failure,
    };
    self->turn_us = 0;
    g_clear_pointer(&self->turn, eb_ticket_free);
    eb_session_set_state(self, EB_SESSION_EVENT_SETTLED);
    eb_session_post_end(self, &end);
    eb_session_post_busy(self, FALSE);
    eb_session_settle_prompts(self, prompt, eb_prompt_outcome_of_turn(stop, failure != NULL));
    eb_session_turn_ended(self, stop, failure);
    if (self->ending)
        eb_session_end_guest(self);
    else if (unresponsive)
        eb_session_end(self, EB_SESSION_END_UNRESPONSIVE, failure);
    else
        eb_session_next_turn(self);
}

static gboolean
is_steering(EbSession *self)
{
    for (guint i = 0; i < self->steered->len; i++)
        if (((EbSteer *)self->steered->pdata[i])->pending)
            return TRUE;
    return FALSE;
}

static void
settle_held_turn(EbSession *self)
{
    g_autoptr(EbAcpTurn) turn = g_steal_pointer(&self->held_turn);
    turn_settled(self, turn);
}

static gboolean
on_steer_timer(gpointer data)
{
    g_autoptr(EbSession) self = g_object_ref(EB_SESSION(data));
    if (self->guest != NULL && eb_acp_client_get_idle_ms(self->guest->client) < STEER_SILENT_MS)
        return G_SOURCE_CONTINUE;
    settle_held_turn(self);
    return G_SOURCE_REMOVE;
}

/* What was steered in as the turn just ended may go on as a turn of its own: it is over when that is answered too. */
static void
hold_turn(EbSession *self, EbAcpTurn *turn)
{
    self->held_turn = turn;
    self->steer_timer = g_timeout_source_new(STEER_SILENT_MS / 3);
    g_source_set_callback(self->steer_timer, on_steer_timer, self, NULL);
    g_source_attach(self->steer_timer, g_main_context_get_thread_default());
}

void
eb_session_steer_settled(EbSession *self)
{
    if (self->held_turn != NULL && !is_steering(self))
        settle_held_turn(self);
}

static gboolean
on_lost(gpointer data)
{
    EbSession *self = EB_SESSION(data);
    g_clear_pointer(&self->lost_timer, g_source_unref);
    g_autoptr(GError) error =
        eb_error_new(EB_ERROR_UNAVAILABLE, "agent.lost", "the connection to the agent in its guest was lost");
    eb_session_end(self, EB_SESSION_END_CRASHED, error);
    return G_SOURCE_REMOVE;
}

static void
on_turn(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbAcpTurn) turn = eb_acp_client_prompt_finish(EB_ACP_CLIENT(source), result, &error);
    if (self->guest != NULL)
        self->guest->turn_over_us = g_get_monotonic_time();
    if (turn != NULL && self->prompt != NULL) {
        if (is_steering(self) && !self->cancelled && !self->ending)
            hold_turn(self, g_steal_pointer(&turn));
        else
            turn_settled(self, turn);
        return;
    }
    /* The connection ended. on_agent_gone comes as well and knows why; the session's end settles the turn. */
    if (self->ending) {
        eb_session_end_guest(self);
        return;
    }
    eb_session_guest_gone(self);
}

void
eb_session_guest_gone(EbSession *self)
{
    if (self->ending || self->guest == NULL || self->lost_timer != NULL)
        return;
    self->lost_timer = g_timeout_source_new(EXIT_CODE_MS);
    g_source_set_callback(self->lost_timer, on_lost, self, NULL);
    g_source_attach(self->lost_timer, g_main_context_get_thread_default());
}

/* --- its beginning --- */

static void
send_prompt(EbSession *self)
{
    eb_log_step("turn.prompt", "EB_SESSION", self->record->id);
    g_autoptr(JsonArray) blocks = eb_session_encode_prompt(self, self->prompt);
    self->record->turns++;
    self->cancelled = FALSE;
    self->turn_us = g_get_monotonic_time();
    self->cost_before = self->cost;
    if (self->guest->budget != NULL)
        eb_budget_client_set_turn(self->guest->budget, self->record->turns,
                                  self->prompt->author_id != NULL ? self->prompt->author_id : self->record->owner);
    g_free(self->record->last_prompt);
    self->record->last_prompt = g_strdup(self->prompt->text);
    eb_session_keep_prompt(self, self->prompt);
    eb_session_set_state(self, EB_SESSION_EVENT_PROMPTED);
    eb_session_set_outcome(self, self->prompt, EB_PROMPT_WORKING);
    eb_session_post_busy(self, TRUE);
    eb_activity_watch_start(self->watch);
    eb_acp_client_prompt_async(self->guest->client, blocks, NULL, on_turn, g_object_ref(self));
    eb_log_step("turn.working", "EB_SESSION", self->record->id);
}

static void
refuse_turn(EbSession *self, const GError *error)
{
    g_autoptr(EbPrompt) prompt = g_steal_pointer(&self->prompt);
    EbTurnEnd end = {.stop_reason = "error", .prompt = prompt, .wait_ms = -1, .error = error};
    eb_session_post_error(self, error);
    eb_session_post_end(self, &end);
    eb_session_set_prompt_state(self, prompt, EB_JOURNAL_DONE);
    eb_session_set_outcome(self, prompt, EB_PROMPT_REFUSED);
    eb_session_turn_ended(self, "error", error);
    eb_session_next_turn(self);
}

typedef struct {
    EbSession *self;
    GCancellable *prepare; /* of self, unless that was given up */
} EbPreparing;

static void
on_prepared(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbPreparing *preparing = user_data;
    g_autoptr(EbSession) self = preparing->self;
    g_autoptr(GCancellable) prepare = preparing->prepare;
    g_free(preparing);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPrompt) prompt = eb_session_prepare_finish(self, result, &error);
    if (self->prepare != prepare)
        return;
    g_clear_object(&self->prepare);
    if (self->ending)
        return; /* the end drops it */
    if (prompt == NULL) {
        g_clear_pointer(&self->turn, eb_ticket_free);
        refuse_turn(self, error);
        return;
    }
    eb_prompt_free(self->prompt);
    self->prompt = g_steal_pointer(&prompt);
    send_prompt(self);
}

static void
on_turn_place(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbTicket) ticket = eb_admission_acquire_finish(EB_ADMISSION(source), result, &error);
    self->acquiring = FALSE;
    if (self->ending || self->prompt == NULL)
        return;
    if (ticket == NULL) {
        refuse_turn(self, error);
        return;
    }
    eb_log_step("turn.place", "EB_SESSION", self->record->id);
    self->turn = g_steal_pointer(&ticket);
    self->prepare = g_cancellable_new();
    EbPreparing *preparing = g_new0(EbPreparing, 1);
    preparing->self = g_object_ref(self);
    preparing->prepare = g_object_ref(self->prepare);
    eb_session_prepare_async(self, self->prompt, self->prepare, on_prepared, preparing);
}

static void
on_turn_position(guint position, gpointer user_data)
{
    eb_session_post_position(EB_SESSION(user_data), "turn", position);
}

void
eb_session_next_turn(EbSession *self)
{
    if (self->ending || self->guest == NULL || self->prompt != NULL || g_queue_is_empty(&self->prompts))
        return;
    self->prompt = g_queue_pop_head(&self->prompts);
    if (self->acquiring)
        return; /* for one that was withdrawn */
    self->acquiring = TRUE;
    eb_admission_acquire_async(self->parts->turns, self->record->owner, on_turn_position, self->cancellable,
                               on_turn_place, g_object_ref(self));
}

/* --- its end by us --- */

/* Its files are being taken: no agent was given it yet. */
static void
interrupt_preparation(EbSession *self)
{
    g_cancellable_cancel(self->prepare);
    g_clear_object(&self->prepare);
    g_clear_pointer(&self->turn, eb_ticket_free);
    g_autoptr(EbPrompt) prompt = g_steal_pointer(&self->prompt);
    EbTurnEnd end = {.stop_reason = "cancelled", .prompt = prompt, .wait_ms = -1};
    eb_session_post_end(self, &end);
    eb_session_settle_prompts(self, prompt, EB_PROMPT_INTERRUPTED);
    eb_session_turn_ended(self, "cancelled", NULL);
    eb_session_next_turn(self);
}

gboolean
eb_session_interrupt(EbSession *self)
{
    if (!self->ending && self->prepare != NULL) {
        interrupt_preparation(self);
        return TRUE;
    }
    if (self->ending || self->guest == NULL || self->turn_us == 0)
        return FALSE;
    if (self->cancelled)
        return TRUE;
    self->cancelled = TRUE;
    if (self->held_turn != NULL) {
        settle_held_turn(self);
        return TRUE;
    }
    /* Ours first: for the client they would be withdrawn. */
    eb_session_close_permissions(self);
    eb_acp_client_cancel(self->guest->client, (guint)eb_config_get_session(self->parts->config)->abort_ms);
    return TRUE;
}

gboolean
eb_session_end_turn_first(EbSession *self)
{
    if (self->held_turn != NULL) {
        settle_held_turn(self); /* it was answered; goes on to the guest */
        return TRUE;
    }
    if (self->guest == NULL || !eb_acp_client_in_turn(self->guest->client))
        return FALSE;
    if (self->end_reason == EB_SESSION_END_CRASHED || self->end_reason == EB_SESSION_END_LIMIT ||
        self->end_reason == EB_SESSION_END_UNRESPONSIVE) {
        /* Nobody is there to answer; closing fails the prompt, which settles the turn and comes back. */
        eb_acp_client_close(self->guest->client);
        return FALSE;
    }
    eb_log_step("stop.cancel", "EB_SESSION", self->record->id);
    self->cancelled = TRUE;
    /* Ours first: for the client they would be withdrawn. */
    eb_session_close_permissions(self);
    eb_acp_client_cancel(self->guest->client, (guint)eb_config_get_session(self->parts->config)->abort_ms);
    return TRUE;
}
