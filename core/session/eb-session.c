/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

#include "core/session/eb-launch-op.h"

#define FLUSH_DEADLINE_MS 10000

G_DEFINE_FINAL_TYPE(EbSession, eb_session, G_TYPE_OBJECT)

enum { SIGNAL_CHANGED, SIGNAL_PROMPT_STATE, SIGNAL_PROMPT_OUTCOME, SIGNAL_TURN_ENDED, SIGNAL_ENDED, N_SIGNALS };
static guint signals[N_SIGNALS];

const char *
eb_session_end_to_string(EbSessionEnd reason)
{
    static const char *const names[] = {"stopped",        "unresponsive",   "idle",     "crashed",
                                        "resource limit", "startup failed", "shutdown", "archived"};
    return (guint)reason < G_N_ELEMENTS(names) ? names[reason] : "crashed";
}

void
eb_session_clear_source(GSource **source)
{
    if (*source != NULL) {
        g_source_destroy(*source);
        g_clear_pointer(source, g_source_unref);
    }
}

void
eb_session_set_prompt_state(EbSession *self, const EbPrompt *prompt, EbJournalState state)
{
    if (prompt != NULL && prompt->message_id != NULL)
        g_signal_emit(self, signals[SIGNAL_PROMPT_STATE], 0, prompt->message_id, state);
}

void
eb_session_set_outcome(EbSession *self, const EbPrompt *prompt, EbPromptOutcome outcome)
{
    if (prompt != NULL && prompt->message_id != NULL)
        g_signal_emit(self, signals[SIGNAL_PROMPT_OUTCOME], 0, prompt->message_id, outcome);
}

/* --- state and record --- */

static void
on_saved(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (!eb_session_store_finish(EB_STORE(source), result, &error))
        eb_warning("a session's record could not be saved: %s", error->message);
}

void
eb_session_save(EbSession *self)
{
    /* A session that never was leaves no row: the launch wrote it and takes it back. */
    if (self->fresh)
        return;
    eb_session_store_save_async(self->parts->store, self->record, NULL, on_saved, NULL);
}

static void
replace(char **field, const char *value)
{
    if (g_strcmp0(*field, value) != 0) {
        g_free(*field);
        *field = g_strdup(value);
    }
}

void
eb_session_touch(EbSession *self)
{
    self->record->last_activity_ms = g_get_real_time() / 1000;
}

static gboolean
on_rest(gpointer data)
{
    EbSession *self = EB_SESSION(data);
    g_clear_pointer(&self->rest_timer, g_source_unref);
    if (self->state == EB_SESSION_READY) {
        eb_session_set_state(self, EB_SESSION_EVENT_RESTED);
        return G_SOURCE_REMOVE;
    }
    if (self->state == EB_SESSION_IDLE)
        eb_session_end(self, EB_SESSION_END_IDLE, NULL);
    return G_SOURCE_REMOVE;
}

/* A tenth of the idle limit in "ready", the rest in "idle". */
static void
arm_rest(EbSession *self)
{
    eb_session_clear_source(&self->rest_timer);
    guint64 idle_ms = eb_config_get_session(self->parts->config)->idle_ms;
    guint64 part_ms = self->state == EB_SESSION_READY ? idle_ms / 10 : idle_ms - idle_ms / 10;
    if (self->state != EB_SESSION_READY && self->state != EB_SESSION_IDLE)
        return;
    self->rest_timer = g_timeout_source_new((guint)CLAMP(part_ms, 1, G_MAXINT));
    g_source_set_callback(self->rest_timer, on_rest, self, NULL);
    g_source_attach(self->rest_timer, g_main_context_get_thread_default());
}

void
eb_session_set_state(EbSession *self, EbSessionEvent event)
{
    EbSessionState next;
    if (!eb_session_state_next(self->state, event, &next))
        return;
    self->state = next;
    replace(&self->record->state, eb_session_state_to_string(next));
    if (event != EB_SESSION_EVENT_RESTED)
        eb_session_touch(self);
    arm_rest(self);
    eb_session_save(self);
    g_signal_emit(self, signals[SIGNAL_CHANGED], 0);
}

/* --- start --- */

static void
on_progress(EbLaunchState state, EbGuest *guest, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    replace(&self->record->instance, guest->instance);
    replace(&self->record->run, self->parts->run_id);
    if (state == EB_LAUNCH_GUEST)
        eb_session_post_guest(self, guest, "starting");
    if (state == EB_LAUNCH_GUEST)
        eb_session_attach_broker(self, guest);
    else if (state == EB_LAUNCH_EXEC)
        eb_session_post_guest(self, guest, "started");
    else if (state == EB_LAUNCH_OPEN)
        eb_session_listen_early(self, guest->client);
}

static void
on_launched(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    self->launching = FALSE;
    self->guest = eb_launch_op_run_finish(result, &error);
    if (self->guest == NULL) {
        if (self->ending) {
            eb_session_end_guest(self);
            return;
        }
        eb_session_end(self, EB_SESSION_END_STARTUP, error);
        return;
    }
    replace(&self->record->agent_session, self->guest->agent_session);
    replace(&self->record->provider, self->guest->provider);
    replace(&self->record->model, self->guest->model);
    gboolean fresh = self->fresh;
    self->fresh = FALSE;
    if (self->ending) {
        eb_session_end_guest(self);
        return;
    }
    eb_log_step("launch.opened", "EB_SESSION", self->record->id);
    eb_session_attach_agent(self);
    eb_session_set_state(self, EB_SESSION_EVENT_OPENED);
    if (self->guest->notice != NULL)
        eb_session_notice(self, self->guest->notice);
    eb_session_tell_degraded(self);
    eb_session_post_ready(self, fresh);
    eb_session_next_turn(self);
}

static void
on_place(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    self->place = eb_admission_acquire_finish(EB_ADMISSION(source), result, &error);
    self->waiting_place = FALSE;
    if (self->ending) {
        eb_session_end_guest(self);
        return;
    }
    if (self->place == NULL) {
        eb_session_end(self, EB_SESSION_END_STARTUP, error);
        return;
    }
    self->launching = TRUE;
    eb_launch_op_run_async(self->parts, self->record, self->fresh, on_progress, self->cancellable, on_launched,
                           g_object_ref(self));
}

static void
on_place_position(guint position, gpointer user_data)
{
    eb_session_post_position(EB_SESSION(user_data), "session", position);
}

void
eb_session_start(EbSession *self)
{
    g_return_if_fail(EB_IS_SESSION(self) && self->place == NULL && !self->launching && !self->waiting_place);
    self->waiting_place = TRUE;
    eb_admission_acquire_async(self->parts->live, self->record->owner, on_place_position, self->cancellable, on_place,
                               g_object_ref(self));
}

/* --- end --- */

static gboolean
is_quiet(EbSessionEnd reason)
{
    return reason == EB_SESSION_END_IDLE || reason == EB_SESSION_END_SHUTDOWN || reason == EB_SESSION_END_ARCHIVED;
}

static void
on_last_words(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    if (!eb_coalescer_flush_finish(EB_COALESCER(source), result, &error))
        eb_debug("the last messages of a session: %s", error->message);
    eb_transcript_flush(self->transcript);
    eb_log_step("stop.ended", "EB_SESSION", self->record->id);
    g_signal_emit(self, signals[SIGNAL_ENDED], 0, eb_session_end_to_string(self->end_reason), self->end_error);
}

static void
conclude(EbSession *self)
{
    eb_log_step("stop.record", "EB_SESSION", self->record->id);
    if (self->parts->egress != NULL)
        eb_egress_log_end_session(self->parts->egress, self->record->id);
    /* Before it is saved as ended: a kill after a first of two rows would leave one that ended and does not say why. */
    replace(&self->record->end_reason, eb_session_end_to_string(self->end_reason));
    replace(&self->record->instance, NULL);
    replace(&self->record->run, NULL);
    eb_session_set_state(self, EB_SESSION_EVENT_ENDED);
    g_clear_pointer(&self->place, eb_ticket_free);
    g_clear_pointer(&self->turn, eb_ticket_free);
    eb_session_post_busy(self, FALSE);
    if (self->end_error != NULL && !is_quiet(self->end_reason))
        eb_session_post_error(self, self->end_error);
    else if (self->end_reason == EB_SESSION_END_STOPPED)
        eb_session_notice(self, "the session was ended");
    eb_session_drop_prompts(self, self->end_error);
    eb_coalescer_flush_async(self->coalescer, FLUSH_DEADLINE_MS, on_last_words, g_object_ref(self));
}

static void
on_guest_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    if (!eb_guest_end_finish(result, &error)) {
        g_autofree char *text = g_strdup_printf("not everything of the session could be ended: %s", error->message);
        eb_log_event(G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, text, "EB_SESSION", self->record->id, NULL);
    }
    conclude(self);
}

void
eb_session_end_guest(EbSession *self)
{
    if (self->ending_guest)
        return;
    self->ending_guest = TRUE;
    eb_session_clear_source(&self->lost_timer);
    eb_session_clear_source(&self->steer_timer);
    eb_session_detach_agent(self);
    if (self->guest == NULL) {
        conclude(self);
        return;
    }
    self->guest->abrupt = self->end_reason == EB_SESSION_END_CRASHED || self->end_reason == EB_SESSION_END_LIMIT ||
                          self->end_reason == EB_SESSION_END_UNRESPONSIVE;
    eb_guest_end_async(self->guest, on_guest_ended, g_object_ref(self));
}

void
eb_session_prepare_removal(EbSession *self)
{
    if (self->guest != NULL && !self->ending)
        eb_guest_push_cleanup(self->guest);
}

void
eb_session_end(EbSession *self, EbSessionEnd reason, const GError *error)
{
    g_return_if_fail(EB_IS_SESSION(self));
    if (self->ending)
        return;
    g_autoptr(EbSession) alive = g_object_ref(self);
    eb_log_step("stop.asked", "EB_SESSION", self->record->id);
    self->ending = TRUE;
    self->end_reason = reason;
    self->end_error = error != NULL ? g_error_copy(error) : NULL;
    eb_session_clear_source(&self->rest_timer);
    if (reason == EB_SESSION_END_STOPPED)
        eb_questions_close_session(self->parts->questions, self->record->id);
    g_cancellable_cancel(self->cancellable);
    if (self->prepare != NULL)
        g_cancellable_cancel(self->prepare);
    g_signal_emit(self, signals[SIGNAL_CHANGED], 0);
    if (self->launching || self->waiting_place)
        return; /* their callbacks go on */
    if (!eb_session_end_turn_first(self))
        eb_session_end_guest(self);
}

static void
on_turn_words(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *carrier = G_TASK(user_data);
    EbSession *self = g_task_get_source_object(carrier);
    g_autoptr(GError) late = NULL;
    if (!eb_coalescer_flush_finish(EB_COALESCER(source), result, &late))
        eb_debug("the messages of a turn: %s", late->message);
    g_autoptr(GError) error = NULL;
    g_autofree char *stop_reason = g_strdup(g_task_get_task_data(carrier));
    g_task_propagate_boolean(carrier, &error);
    g_signal_emit(self, signals[SIGNAL_TURN_ENDED], 0, stop_reason, error);
    g_object_unref(carrier);
}

void
eb_session_turn_ended(EbSession *self, const char *stop_reason, const GError *error)
{
    /* The task only carries stop reason and error to where the transport has everything. */
    GTask *carrier = g_task_new(self, NULL, NULL, NULL);
    g_task_set_task_data(carrier, g_strdup(stop_reason), g_free);
    if (error != NULL)
        g_task_return_error(carrier, g_error_copy(error));
    else
        g_task_return_boolean(carrier, TRUE);
    eb_coalescer_flush_async(self->coalescer, FLUSH_DEADLINE_MS, on_turn_words, carrier);
}

void
eb_session_flush_log(EbSession *self)
{
    eb_transcript_flush(self->transcript);
}

/* --- the object --- */

EbSessionRecord *
eb_session_get_record(EbSession *self)
{
    return self->record;
}

EbSessionState
eb_session_get_state(EbSession *self)
{
    return self->state;
}

gboolean
eb_session_is_ending(EbSession *self)
{
    return self->ending;
}

EbRedactSet *
eb_session_get_secrets(EbSession *self)
{
    return self->guest != NULL ? self->guest->secrets : self->parts->secrets;
}

gboolean
eb_session_is_instance(EbSession *self, const char *name)
{
    return self->guest != NULL && g_strcmp0(self->guest->instance, name) == 0;
}

static void
eb_session_dispose(GObject *object)
{
    EbSession *self = EB_SESSION(object);
    eb_session_clear_source(&self->rest_timer);
    eb_session_clear_source(&self->lost_timer);
    eb_session_clear_source(&self->steer_timer);
    if (self->guest != NULL)
        eb_session_detach_agent(self);
    g_clear_object(&self->coalescer);
    g_clear_object(&self->transcript);
    g_clear_object(&self->transport);
    g_clear_pointer(&self->place, eb_ticket_free);
    g_clear_pointer(&self->turn, eb_ticket_free);
    g_clear_pointer(&self->guest, eb_guest_unref);
    G_OBJECT_CLASS(eb_session_parent_class)->dispose(object);
}

static void
eb_session_finalize(GObject *object)
{
    EbSession *self = EB_SESSION(object);
    g_queue_clear_full(&self->prompts, (GDestroyNotify)eb_prompt_free);
    g_clear_pointer(&self->prompt, eb_prompt_free);
    g_clear_pointer(&self->held_turn, eb_acp_turn_free);
    g_ptr_array_unref(self->steered);
    g_clear_object(&self->place_wait);
    g_clear_object(&self->prepare);
    g_free(self->canary_seen);
    g_free(self->compact);
    g_free(self->currency);
    g_clear_pointer(&self->renderer, eb_renderer_free);
    g_ptr_array_unref(self->permissions);
    g_clear_pointer(&self->once, g_ptr_array_unref);
    eb_session_clear_alarms(self);
    g_string_free(self->said, TRUE);
    g_clear_error(&self->end_error);
    g_object_unref(self->cancellable);
    eb_session_record_unref(self->record);
    eb_session_parts_unref(self->parts);
    G_OBJECT_CLASS(eb_session_parent_class)->finalize(object);
}

static void
eb_session_class_init(EbSessionClass *klass)
{
    GType type = G_TYPE_FROM_CLASS(klass);
    G_OBJECT_CLASS(klass)->dispose = eb_session_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_session_finalize;
    signals[SIGNAL_CHANGED] = g_signal_new("changed", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
    signals[SIGNAL_PROMPT_STATE] = g_signal_new("prompt-state", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                                G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
    signals[SIGNAL_PROMPT_OUTCOME] = g_signal_new("prompt-outcome", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                                  G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_INT);
    g_signal_new("host-refused", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 3, G_TYPE_STRING,
                 G_TYPE_UINT, G_TYPE_STRING);
    g_signal_new("provider-failed", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
    signals[SIGNAL_TURN_ENDED] = g_signal_new("turn-ended", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                              2, G_TYPE_STRING, G_TYPE_ERROR);
    signals[SIGNAL_ENDED] = g_signal_new("ended", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                                         G_TYPE_STRING, G_TYPE_ERROR);
}

static void
eb_session_init(EbSession *self)
{
    g_queue_init(&self->prompts);
    self->state = EB_SESSION_STARTING;
    self->cancellable = g_cancellable_new();
    self->permissions = g_ptr_array_new_with_free_func(g_object_unref);
    self->steered = g_ptr_array_new_with_free_func((GDestroyNotify)eb_steer_free);
    self->context_used = self->context_size = -1;
    self->cost = self->cost_before = -1;
    self->said = g_string_new(NULL);
}

EbSession *
eb_session_new(EbSessionParts *parts, EbSessionRecord *record, gboolean fresh, EbChatTransport *transport)
{
    EbSession *self = g_object_new(EB_TYPE_SESSION, NULL);
    self->parts = eb_session_parts_ref(parts);
    self->record = eb_session_record_ref(record);
    self->fresh = fresh;
    self->transport = g_object_ref(transport);
    self->coalescer = eb_coalescer_new(transport);
    self->transcript = eb_transcript_new(parts->store, record->id);
    eb_session_listen_budget(self);
    replace(&record->state, eb_session_state_to_string(EB_SESSION_STARTING));
    return self;
}
