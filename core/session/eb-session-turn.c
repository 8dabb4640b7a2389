/* SPDX-License-Identifier: MIT */
/* The half of EbSession that deals with the agent: prompts, updates, questions, and what goes wrong meanwhile. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

#include <string.h>

/* Hosts a session is told about when the broker refuses them. */
#define MAX_DENIED_NOTICES 20
/* How long a process whose streams ended may take to tell its exit code. */
#define EXIT_CODE_MS 3000

/* --- what the agent does --- */

static void
show(EbSession *self, GPtrArray *posts)
{
    for (guint i = 0; i < posts->len; i++)
        eb_session_post(self, posts->pdata[i]);
}

static void
on_update(EbAcpClient *client, EbAcpUpdate *update, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    g_autoptr(GPtrArray) posts = g_ptr_array_new();
    eb_renderer_update(self->renderer, update, posts);
    show(self, posts);
    eb_session_touch(self);
}

static void
end_span(EbSession *self)
{
    g_autoptr(GPtrArray) posts = g_ptr_array_new();
    eb_renderer_end_span(self->renderer, posts);
    show(self, posts);
}

static void
on_answered(EbPermission *permission, const char *outcome, const char *option, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_PERMISSION, "");
    post->final = TRUE;
    post->data = json_object_new();
    json_object_set_string_member(post->data, "title", eb_permission_get_title(permission));
    json_object_set_string_member(post->data, "outcome", outcome);
    if (option != NULL) {
        g_autofree char *shown = eb_log_escape(option, -1, 80);
        json_object_set_string_member(post->data, "option", shown);
    }
    eb_session_post(self, post);
    if (self->watch != NULL)
        eb_activity_watch_pause(self->watch, FALSE);
    g_ptr_array_remove(self->permissions, permission);
}

static void
on_permission(EbAcpClient *client, EbAcpPermission *question, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    if (self->ending || self->cancelled)
        return; /* the last reference answers "cancelled" */
    end_span(self);
    EbPermission *permission = eb_permission_new(question, self->transport, self->renderer, self->record->thread, NULL);
    g_signal_connect_object(permission, "answered", G_CALLBACK(on_answered), self, 0);
    g_ptr_array_add(self->permissions, permission);
    eb_activity_watch_pause(self->watch, TRUE);
    eb_session_touch(self);
    eb_permission_ask(permission, (guint)eb_config_get_session(self->parts->config)->question_ms);
}

static void
close_permissions(EbSession *self)
{
    while (self->permissions->len > 0) {
        g_autoptr(EbPermission) permission = g_object_ref(self->permissions->pdata[self->permissions->len - 1]);
        eb_permission_close(permission);
        /* Answered by now; when it was before, its signal has come already. */
        g_ptr_array_remove(self->permissions, permission);
    }
}

static void
on_silent(EbActivityWatch *watch, guint seconds, gpointer user_data)
{
    g_autofree char *text = g_strdup_printf("no activity for %u s", seconds);
    eb_session_notice(EB_SESSION(user_data), text);
}

static void
on_stalled(EbActivityWatch *watch, guint64 limit, gpointer user_data)
{
    g_autoptr(GError) error = eb_error_new(EB_ERROR_QUOTA, "session.memory",
                                           "the guest reached its memory limit of %" G_GUINT64_FORMAT
                                           " MiB and the agent stopped answering ([session] memory)",
                                           limit >> 20);
    eb_session_end(EB_SESSION(user_data), EB_SESSION_END_LIMIT, error);
}

static void
on_denied(GObject *broker, const char *host, guint port, const char *code, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    if (++self->n_denied > MAX_DENIED_NOTICES)
        return;
    g_autofree char *shown = eb_log_escape(host, -1, 255);
    g_autofree char *text = g_strdup_printf("the guest asked for %s:%u and was refused (%s)", shown, port, code);
    eb_session_notice(self, text);
}

static void
on_provider_error(GObject *broker, const char *provider, guint status, const char *what, gpointer user_data)
{
    g_autofree char *shown = eb_log_escape(what != NULL ? what : "", -1, 300);
    g_autofree char *text =
        g_strdup_printf("the provider %s answered %u%s%s", provider, status, *shown != '\0' ? ": " : "", shown);
    eb_session_notice(EB_SESSION(user_data), text);
}

static void
on_broker_died(GObject *broker, gboolean restarted, const char *why, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    eb_log_event(G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, "a broker ended", "EB_SESSION", self->record->id, "EB_REASON", why,
                 NULL);
    if (!restarted)
        eb_session_notice(self, "the broker of this session is gone: the agent cannot reach its model provider");
}

/* The process ended, or the connection to it. */
static void
on_agent_gone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    int code = eb_exec_wait_finish(EB_EXEC(source), result, NULL);
    if (self->ending || self->guest == NULL)
        return;
    g_autofree char *tail = eb_acp_client_get_stderr_tail(self->guest->client);
    g_autoptr(GError) error = eb_guest_explain_exit(self->guest, code, tail);
    EbSessionEnd reason = error->code == EB_ERROR_QUOTA ? EB_SESSION_END_LIMIT : EB_SESSION_END_CRASHED;
    eb_session_end(self, reason, error);
}

void
eb_session_attach_agent(EbSession *self)
{
    EbGuest *guest = self->guest;
    self->renderer = eb_renderer_new(self->record->thread, guest->secrets);
    self->watch = eb_activity_watch_new(guest->client, self->parts->backend, guest->instance, EB_ACTIVITY_SILENT_MS);
    g_signal_connect_object(self->watch, "silent", G_CALLBACK(on_silent), self, 0);
    g_signal_connect_object(self->watch, "stalled", G_CALLBACK(on_stalled), self, 0);
    g_signal_connect_object(guest->client, "update", G_CALLBACK(on_update), self, 0);
    g_signal_connect_object(guest->client, "permission", G_CALLBACK(on_permission), self, 0);
    if (EB_IS_BROKER_CTL(guest->broker)) {
        g_signal_connect_object(guest->broker, "denied", G_CALLBACK(on_denied), self, 0);
        g_signal_connect_object(guest->broker, "provider-error", G_CALLBACK(on_provider_error), self, 0);
        g_signal_connect_object(guest->broker, "died", G_CALLBACK(on_broker_died), self, 0);
    }
    eb_exec_wait_async(guest->exec, self->cancellable, on_agent_gone, g_object_ref(self));
}

void
eb_session_detach_agent(EbSession *self)
{
    if (self->watch != NULL)
        eb_activity_watch_stop(self->watch);
    close_permissions(self);
    if (self->renderer != NULL)
        end_span(self);
    if (self->guest != NULL && self->guest->client != NULL)
        g_signal_handlers_disconnect_by_data(self->guest->client, self);
    if (self->guest != NULL && self->guest->broker != NULL)
        g_signal_handlers_disconnect_by_data(self->guest->broker, self);
    g_clear_object(&self->watch);
}

/* --- turns --- */

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

static void
turn_settled(EbSession *self, const EbAcpTurn *turn)
{
    g_autoptr(EbPrompt) prompt = g_steal_pointer(&self->prompt);
    if (self->watch != NULL)
        eb_activity_watch_stop(self->watch);
    close_permissions(self);
    end_span(self);
    guint64 ms = (guint64)(g_get_monotonic_time() - self->turn_us) / 1000;
    self->turn_us = 0;
    g_autoptr(GError) failure = error_of_turn(turn);
    /* Agents name a cancelled turn in many ways; what we did decides. */
    gboolean unresponsive = self->cancelled && turn->error != NULL && g_strcmp0(turn->stop_reason, "cancelled") == 0;
    const char *stop = failure != NULL ? "error" : turn->stop_reason;
    if (self->cancelled) {
        stop = "cancelled";
        if (!unresponsive)
            g_clear_error(&failure);
    } else if (failure != NULL) {
        eb_session_post_error(self, failure);
    } else if (turn->empty) {
        eb_session_notice(self, "the agent ended the turn without saying or doing anything");
    }
    g_clear_pointer(&self->turn, eb_ticket_free);
    eb_session_set_state(self, EB_SESSION_EVENT_SETTLED);
    eb_session_post_end(self, stop, ms, failure);
    if (prompt != NULL)
        g_signal_emit_by_name(self, "prompt-state", prompt->message_id, EB_JOURNAL_DONE);
    eb_session_turn_ended(self, stop, failure);
    if (self->ending) {
        eb_session_end_guest(self);
        return;
    }
    if (unresponsive) {
        eb_session_end(self, EB_SESSION_END_UNRESPONSIVE, failure);
        return;
    }
    eb_session_next_turn(self);
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
    if (turn != NULL && self->prompt != NULL) {
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

static void
send_prompt(EbSession *self)
{
    g_autoptr(JsonArray) blocks = json_array_new();
    JsonObject *block = json_object_new();
    json_object_set_string_member(block, "type", "text");
    json_object_set_string_member(block, "text", self->prompt->text);
    json_array_add_object_element(blocks, block);
    self->record->turns++;
    self->cancelled = FALSE;
    self->turn_us = g_get_monotonic_time();
    g_autofree char *masked = eb_redact_set_mask(self->guest->secrets, self->prompt->text, -1);
    eb_transcript_add(self->transcript, self->record->turns, "prompt", masked, NULL);
    eb_session_set_state(self, EB_SESSION_EVENT_PROMPTED);
    g_signal_emit_by_name(self, "prompt-state", self->prompt->message_id, EB_JOURNAL_STARTED);
    eb_activity_watch_start(self->watch);
    eb_acp_client_prompt_async(self->guest->client, blocks, NULL, on_turn, g_object_ref(self));
}

static void
on_turn_place(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    self->turn = eb_admission_acquire_finish(EB_ADMISSION(source), result, &error);
    if (self->ending || self->prompt == NULL) {
        g_clear_pointer(&self->turn, eb_ticket_free);
        return;
    }
    if (self->turn == NULL) {
        g_autoptr(EbPrompt) prompt = g_steal_pointer(&self->prompt);
        eb_session_post_error(self, error);
        eb_session_post_end(self, "error", 0, error);
        g_signal_emit_by_name(self, "prompt-state", prompt->message_id, EB_JOURNAL_DONE);
        eb_session_turn_ended(self, "error", error);
        eb_session_next_turn(self);
        return;
    }
    send_prompt(self);
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
    eb_admission_acquire_async(self->parts->turns, self->record->owner, on_turn_position, self->cancellable,
                               on_turn_place, g_object_ref(self));
}

gboolean
eb_session_prompt(EbSession *self, EbPrompt *prompt, GError **error)
{
    g_autoptr(EbPrompt) owned = prompt;
    if (self->ending) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "session.ended", "the session is ending");
        return FALSE;
    }
    gsize length = strlen(owned->text);
    if (length == 0 || length > EB_SESSION_MAX_PROMPT_BYTES) {
        eb_set_error(error, EB_ERROR_INVALID, "prompt.size", "a prompt has 1 to %d bytes, this one %" G_GSIZE_FORMAT,
                     EB_SESSION_MAX_PROMPT_BYTES, length);
        return FALSE;
    }
    if (self->prompts.length >= EB_SESSION_MAX_PROMPTS) {
        eb_set_error(error, EB_ERROR_QUOTA, "prompt.queue", "%u messages wait for this agent already",
                     self->prompts.length);
        return FALSE;
    }
    g_queue_push_tail(&self->prompts, g_steal_pointer(&owned));
    eb_session_touch(self);
    eb_session_next_turn(self);
    return TRUE;
}

gboolean
eb_session_withdraw(EbSession *self, const char *message_id)
{
    for (GList *link = self->prompts.head; link != NULL; link = link->next) {
        EbPrompt *prompt = link->data;
        if (g_strcmp0(prompt->message_id, message_id) != 0)
            continue;
        g_queue_delete_link(&self->prompts, link);
        g_signal_emit_by_name(self, "prompt-state", prompt->message_id, EB_JOURNAL_DONE);
        eb_prompt_free(prompt);
        return TRUE;
    }
    return FALSE;
}

gboolean
eb_session_interrupt(EbSession *self)
{
    if (self->ending || self->guest == NULL || !eb_acp_client_in_turn(self->guest->client))
        return FALSE;
    if (self->cancelled)
        return TRUE;
    self->cancelled = TRUE;
    /* Ours first: for the client they would be withdrawn. */
    close_permissions(self);
    eb_acp_client_cancel(self->guest->client, (guint)eb_config_get_session(self->parts->config)->abort_ms);
    return TRUE;
}

void
eb_session_drop_prompts(EbSession *self, const GError *error)
{
    EbPrompt *prompt = g_steal_pointer(&self->prompt);
    if (prompt == NULL)
        prompt = g_queue_pop_head(&self->prompts);
    guint64 ms = self->turn_us > 0 ? (guint64)(g_get_monotonic_time() - self->turn_us) / 1000 : 0;
    gboolean started = self->turn_us > 0;
    gboolean keep = self->end_reason == EB_SESSION_END_SHUTDOWN && (eb_chat_transport_get_caps(self->transport, NULL) &
                                                                    (EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY)) != 0;
    gboolean first = TRUE;
    for (; prompt != NULL; prompt = g_queue_pop_head(&self->prompts)) {
        /* One end is told for all of them: whoever waits hears it. */
        if (first) {
            const char *stop = error != NULL ? "error" : "cancelled";
            eb_session_post_end(self, stop, ms, error);
            eb_session_turn_ended(self, stop, error);
        }
        /* What no agent was given yet comes back from the journal when the service is there again. */
        if (!(keep && (!first || !started)))
            g_signal_emit_by_name(self, "prompt-state", prompt->message_id, EB_JOURNAL_DONE);
        first = FALSE;
        eb_prompt_free(prompt);
    }
}

gboolean
eb_session_end_turn_first(EbSession *self)
{
    if (self->guest == NULL || !eb_acp_client_in_turn(self->guest->client))
        return FALSE;
    if (self->end_reason == EB_SESSION_END_CRASHED || self->end_reason == EB_SESSION_END_LIMIT ||
        self->end_reason == EB_SESSION_END_UNRESPONSIVE) {
        /* Nobody is there to answer; closing fails the prompt, which settles the turn and comes back. */
        eb_acp_client_close(self->guest->client);
        return FALSE;
    }
    self->cancelled = TRUE;
    /* Ours first: for the client they would be withdrawn. */
    close_permissions(self);
    eb_acp_client_cancel(self->guest->client, (guint)eb_config_get_session(self->parts->config)->abort_ms);
    return TRUE;
}
