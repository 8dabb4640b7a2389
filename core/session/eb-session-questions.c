/* SPDX-License-Identifier: MIT */
/* What a session's agent asks people. While a turn has nothing but questions it needs no place: people may take their
 * time without keeping other sessions' turns waiting; before an answer goes to the agent it takes its place in the queue. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

/* --- a place --- */

static void
deliver(EbSession *self)
{
    /* Delivering may end with "answered", which takes it off the list. */
    g_autoptr(GPtrArray) permissions = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < self->permissions->len; i++)
        g_ptr_array_add(permissions, g_object_ref(self->permissions->pdata[i]));
    for (guint i = 0; i < permissions->len; i++)
        eb_permission_deliver(permissions->pdata[i]);
}

static void
on_place(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbTicket) ticket = eb_admission_acquire_finish(EB_ADMISSION(source), result, &error);
    if (self->place_wait != g_task_get_cancellable(G_TASK(result)))
        return; /* its turn is over */
    g_clear_object(&self->place_wait);
    if (self->ending || self->turn_us == 0 || self->turn != NULL)
        return;
    /* A full queue does not cost a person's answer: this turn goes on without a place. */
    if (ticket == NULL)
        eb_warning("an answered question goes on without a place for its turn: %s", error->message);
    self->turn = g_steal_pointer(&ticket);
    deliver(self);
}

static void
on_place_position(guint position, gpointer user_data)
{
    eb_session_post_position(EB_SESSION(user_data), "turn", position);
}

static void
take_place(EbSession *self)
{
    if (self->place_wait != NULL)
        return;
    self->place_wait = g_cancellable_new();
    eb_admission_acquire_async(self->parts->turns, self->record->owner, on_place_position, self->place_wait, on_place,
                               g_object_ref(self));
}

static void
on_decided(EbPermission *permission, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    if (self->turn != NULL || self->turn_us == 0)
        eb_permission_deliver(permission);
    else
        take_place(self);
}

/* --- the question --- */

static void
tell_answer(EbSession *self, EbPermission *permission, const char *outcome, const char *option, const char *by)
{
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_PERMISSION, "");
    post->final = TRUE;
    post->data = json_object_new();
    json_object_set_string_member(post->data, "title", eb_permission_get_title(permission));
    json_object_set_string_member(post->data, "outcome", outcome);
    if (option != NULL) {
        g_autofree char *shown = eb_log_escape(option, -1, 80);
        json_object_set_string_member(post->data, "option", shown);
    }
    if (by != NULL)
        json_object_set_string_member(post->data, "by", by);
    eb_session_post(self, post);
}

static void
on_answered(EbPermission *permission, const char *outcome, const char *option, const char *by, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    eb_log_step("turn.answer", "EB_SESSION", self->record->id);
    if (g_str_equal(outcome, "left"))
        self->left_questions++;
    else
        tell_answer(self, permission, outcome, option, by);
    if (self->watch != NULL)
        eb_activity_watch_pause(self->watch, FALSE);
    g_ptr_array_remove(self->permissions, permission);
    gboolean over = g_str_equal(outcome, "left") || g_str_equal(outcome, "cancelled");
    if (over || self->permissions->len > 0 || self->turn_us == 0)
        return;
    eb_session_post_busy(self, TRUE);
    if (self->turn == NULL) /* the agent took it back and goes on */
        take_place(self);
}

void
eb_session_on_permission(EbAcpClient *client, EbAcpPermission *question, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    if (self->ending || self->cancelled)
        return; /* the last reference answers "cancelled" */
    eb_session_end_span(self);
    g_autofree char *digest =
        eb_question_digest(eb_acp_permission_get_tool(question), eb_acp_permission_get_raw(question),
                           eb_acp_permission_get_options(question));
    EbPermission *permission = eb_questions_claim(self->parts->questions, self->record->id, digest);
    gboolean again = permission != NULL;
    if (again)
        eb_permission_take_over(permission, question);
    else
        permission = eb_permission_new(question, self->parts->store, self->transport, self->renderer,
                                       self->guest->secrets, self->record->id, self->record->thread, digest);
    g_autoptr(GPtrArray) answerers = eb_session_list_answerers(self);
    eb_permission_set_answerers(permission, answerers);
    g_signal_connect_object(permission, "decided", G_CALLBACK(on_decided), self, 0);
    g_signal_connect_object(permission, "answered", G_CALLBACK(on_answered), self, 0);
    g_ptr_array_add(self->permissions, permission);
    eb_activity_watch_pause(self->watch, TRUE);
    eb_session_touch(self);
    if (again && eb_permission_get_decision(permission, NULL) != NULL) {
        on_decided(permission, self);
        return;
    }
    eb_log_step("turn.question", "EB_SESSION", self->record->id);
    if (!again)
        eb_permission_ask(permission, eb_config_get_session(self->parts->config)->question_ms);
    eb_session_post_busy(self, FALSE);
    g_clear_pointer(&self->turn, eb_ticket_free);
}

gboolean
eb_session_has_question(EbSession *self, const char *id)
{
    for (guint i = 0; i < self->permissions->len; i++)
        if (g_strcmp0(eb_permission_get_id(self->permissions->pdata[i]), id) == 0)
            return TRUE;
    return FALSE;
}

static const char *
why_closed(EbSession *self)
{
    if (self->ending)
        return self->end_reason == EB_SESSION_END_STOPPED ? "closed: the session was ended"
                                                          : "closed: the agent is gone";
    return self->cancelled ? "closed: the turn was interrupted" : "closed: the turn is over";
}

void
eb_session_close_permissions(EbSession *self)
{
    gboolean leave = self->ending && self->end_reason == EB_SESSION_END_SHUTDOWN &&
                     (eb_chat_transport_get_caps(self->transport, NULL) & EB_CHAT_CAP_HISTORY) != 0;
    if (self->place_wait != NULL)
        g_cancellable_cancel(self->place_wait);
    g_clear_object(&self->place_wait);
    while (self->permissions->len > 0) {
        g_autoptr(EbPermission) permission = g_object_ref(self->permissions->pdata[self->permissions->len - 1]);
        if (leave)
            eb_permission_let_go(permission);
        else
            eb_permission_close(permission, why_closed(self));
        /* Answered by now; when it was before, its signal has come already. */
        g_ptr_array_remove(self->permissions, permission);
    }
}
