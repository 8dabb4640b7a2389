/* SPDX-License-Identifier: MIT */
/* What people say to a session: queued, steered into the turn, changed, taken back, said again. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

#include <string.h>

void
eb_steer_free(EbSteer *self)
{
    if (self == NULL)
        return;
    eb_prompt_free(self->prompt);
    g_free(self);
}

static gboolean
check(EbSession *self, const EbPrompt *prompt, GError **error)
{
    if (self->ending) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "session.ended", "the session is ending");
        return FALSE;
    }
    return eb_prompt_check(prompt, error);
}

/* --- queued --- */

gboolean
eb_session_prompt(EbSession *self, EbPrompt *prompt, GError **error)
{
    g_autoptr(EbPrompt) owned = prompt;
    if (!check(self, owned, error))
        return FALSE;
    if (self->prompts.length >= EB_SESSION_MAX_PROMPTS) {
        eb_set_error(error, EB_ERROR_QUOTA, "prompt.queue", "%u messages wait for this agent already",
                     self->prompts.length);
        return FALSE;
    }
    eb_session_set_outcome(self, owned, EB_PROMPT_WAITING);
    g_queue_push_tail(&self->prompts, g_steal_pointer(&owned));
    eb_session_touch(self);
    eb_session_next_turn(self);
    return TRUE;
}

/* --- steered --- */

gboolean
eb_session_can_steer(EbSession *self)
{
    if (self->ending || self->cancelled || self->guest == NULL || self->turn_us == 0 || self->held_turn != NULL)
        return FALSE;
    return eb_acp_client_get_info(self->guest->client)->steer && self->steered->len < EB_SESSION_MAX_STEERED;
}

typedef struct {
    EbSession *self;
    EbSteer *steer; /* borrowed: only compared, and used when it is still in the list */
} EbSteering;

/* Not lost: it is the next prompt. */
static void
give_back(EbSession *self, guint index)
{
    g_autofree EbSteer *back = g_ptr_array_steal_index(self->steered, index);
    eb_session_set_prompt_state(self, back->prompt, EB_JOURNAL_RECEIVED);
    eb_session_set_outcome(self, back->prompt, EB_PROMPT_WAITING);
    g_queue_push_head(&self->prompts, back->prompt);
}

static void
fail_steer(EbSession *self, guint index, EbPromptOutcome outcome)
{
    const EbPrompt *prompt = ((EbSteer *)self->steered->pdata[index])->prompt;
    eb_session_set_prompt_state(self, prompt, EB_JOURNAL_DONE);
    eb_session_set_outcome(self, prompt, outcome);
    g_ptr_array_remove_index(self->steered, index);
}

static void
on_steered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbSteering *steering = user_data;
    g_autoptr(EbSession) self = steering->self;
    EbSteer *steer = steering->steer;
    guint index = 0;
    g_free(steering);
    g_autoptr(GError) error = NULL;
    gboolean taken = eb_acp_client_steer_finish(EB_ACP_CLIENT(source), result, &error);
    if (!g_ptr_array_find(self->steered, steer, &index))
        return; /* its turn was settled without it */
    steer->pending = FALSE;
    if (!taken && !self->ending && !self->cancelled) {
        eb_info("a prompt could not be steered into the turn: %s", error->message);
        if (error->code == EB_ERROR_UNAVAILABLE)
            fail_steer(self, index,
                       EB_PROMPT_FAILED); /* the agent is gone, and whether it has begun with it is not known */
        else
            give_back(self, index);
    }
    eb_session_steer_settled(self);
}

static void
send_steer(EbSession *self, EbSteering *steering)
{
    const EbPrompt *prompt = steering->steer->prompt;
    g_autoptr(JsonArray) blocks = eb_session_encode_prompt(self, prompt);
    eb_session_keep_prompt(self, prompt);
    eb_session_set_outcome(self, prompt, EB_PROMPT_WORKING);
    /* Agents answer it when they get to it, at the latest with the turn: no deadline of its own. */
    eb_acp_client_steer_async(self->guest->client, blocks, 0, NULL, on_steered, steering);
}

static void
on_steer_prepared(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbSteering *steering = user_data;
    g_autoptr(EbSession) self = g_object_ref(steering->self);
    EbSteer *steer = steering->steer;
    guint index = 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPrompt) prompt = eb_session_prepare_finish(self, result, &error);
    gboolean there = g_ptr_array_find(self->steered, steer, &index);
    if (there && prompt != NULL && !self->ending && !self->cancelled && self->held_turn == NULL) {
        eb_prompt_free(steer->prompt);
        steer->prompt = g_steal_pointer(&prompt);
        send_steer(self, steering);
        return;
    }
    g_object_unref(steering->self);
    g_free(steering);
    if (!there || self->ending || self->cancelled)
        return; /* it ends with the turn */
    if (prompt == NULL) {
        eb_session_post_error(self, error);
        fail_steer(self, index, EB_PROMPT_REFUSED);
    } else {
        /* The turn was over before. */
        eb_prompt_free(steer->prompt);
        steer->prompt = g_steal_pointer(&prompt);
        give_back(self, index);
    }
    eb_session_steer_settled(self);
}

/* @prompt: (transfer full) */
static void
steer(EbSession *self, EbPrompt *prompt)
{
    EbSteering *steering = g_new0(EbSteering, 1);
    steering->self = g_object_ref(self);
    steering->steer = g_new0(EbSteer, 1);
    steering->steer->prompt = prompt;
    steering->steer->pending = TRUE;
    g_ptr_array_add(self->steered, steering->steer);
    eb_session_touch(self);
    eb_session_prepare_async(self, prompt, self->cancellable, on_steer_prepared, steering);
}

gboolean
eb_session_say(EbSession *self, EbPrompt *prompt, GError **error)
{
    g_autoptr(EbPrompt) owned = prompt;
    if (!eb_session_can_steer(self))
        return eb_session_prompt(self, g_steal_pointer(&owned), error);
    if (!check(self, owned, error))
        return FALSE;
    steer(self, g_steal_pointer(&owned));
    return TRUE;
}

gboolean
eb_session_steer(EbSession *self, EbPrompt *prompt, GError **error)
{
    g_autoptr(EbPrompt) owned = prompt;
    if (!check(self, owned, error))
        return FALSE;
    if (self->turn_us == 0 || self->guest == NULL || self->cancelled) {
        eb_set_error(error, EB_ERROR_INVALID, "session.no-turn", "no turn is running: just say it");
        return FALSE;
    }
    if (!eb_session_can_steer(self)) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "session.steer",
                     "this agent takes nothing in the middle of a turn: say it without !steer and it is next");
        return FALSE;
    }
    steer(self, g_steal_pointer(&owned));
    return TRUE;
}

/* --- what waits --- */

static void
settle(EbSession *self, const EbPrompt *prompt, EbPromptOutcome outcome)
{
    eb_session_set_prompt_state(self, prompt, EB_JOURNAL_DONE);
    eb_session_set_outcome(self, prompt, outcome);
}

/* Of the turn that waits for a place. */
static gboolean
waits_for_place(EbSession *self)
{
    return self->prompt != NULL && self->turn_us == 0 && self->prepare == NULL;
}

gboolean
eb_session_withdraw(EbSession *self, const char *message_id)
{
    if (message_id == NULL)
        return FALSE;
    if (waits_for_place(self) && g_strcmp0(self->prompt->message_id, message_id) == 0) {
        g_autoptr(EbPrompt) prompt = g_steal_pointer(&self->prompt);
        settle(self, prompt, EB_PROMPT_INTERRUPTED);
        eb_session_next_turn(self);
        return TRUE;
    }
    for (GList *link = self->prompts.head; link != NULL; link = link->next) {
        if (g_strcmp0(((EbPrompt *)link->data)->message_id, message_id) != 0)
            continue;
        g_autoptr(EbPrompt) prompt = link->data;
        g_queue_delete_link(&self->prompts, link);
        settle(self, prompt, EB_PROMPT_INTERRUPTED);
        return TRUE;
    }
    return FALSE;
}

static EbPrompt *
find_waiting(EbSession *self, const char *message_id)
{
    if (message_id == NULL)
        return NULL;
    if (waits_for_place(self) && g_strcmp0(self->prompt->message_id, message_id) == 0)
        return self->prompt;
    for (GList *link = self->prompts.head; link != NULL; link = link->next)
        if (g_strcmp0(((EbPrompt *)link->data)->message_id, message_id) == 0)
            return link->data;
    return NULL;
}

gboolean
eb_session_replace_prompt(EbSession *self, const char *message_id, const char *text)
{
    EbPrompt *prompt = find_waiting(self, message_id);
    if (prompt == NULL || text == NULL)
        return FALSE;
    g_autoptr(EbPrompt) changed = eb_prompt_copy(prompt);
    g_free(changed->text);
    changed->text = g_strdup(text);
    if (!eb_prompt_check(changed, NULL))
        return FALSE;
    g_free(prompt->text);
    prompt->text = g_steal_pointer(&changed->text);
    return TRUE;
}

GPtrArray *
eb_session_list_prompts(EbSession *self)
{
    GPtrArray *prompts = g_ptr_array_new_with_free_func((GDestroyNotify)eb_prompt_free);
    if (waits_for_place(self))
        g_ptr_array_add(prompts, eb_prompt_copy(self->prompt));
    for (GList *link = self->prompts.head; link != NULL; link = link->next)
        g_ptr_array_add(prompts, eb_prompt_copy(link->data));
    return prompts;
}

/* --- commands that are turns --- */

static gboolean
check_at_rest(EbSession *self, GError **error)
{
    if (self->prompt == NULL)
        return TRUE;
    eb_set_error(error, EB_ERROR_BUSY, "session.busy", "a turn is running: wait for its end or !interrupt it");
    return FALSE;
}

gboolean
eb_session_retry(EbSession *self, const char *message_id, const char *author, GError **error)
{
    if (!check_at_rest(self, error))
        return FALSE;
    if (self->record->last_prompt == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "session.no-prompt",
                     "nothing was said to this agent since the service was started: say it again");
        return FALSE;
    }
    return eb_session_prompt(self, eb_prompt_new(message_id, author, self->record->last_prompt), error);
}

gboolean
eb_session_compact(EbSession *self, GError **error)
{
    if (!check_at_rest(self, error))
        return FALSE;
    if (self->guest == NULL) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "session.starting", "the agent is not there yet");
        return FALSE;
    }
    if (self->compact == NULL) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "session.compact", "this agent offers no command that compacts");
        return FALSE;
    }
    g_autofree char *text = g_strconcat("/", self->compact, NULL);
    return eb_session_prompt(self, eb_prompt_new(NULL, NULL, text), error);
}

/* --- to the agent, and the end --- */

void
eb_session_keep_prompt(EbSession *self, const EbPrompt *prompt)
{
    g_autofree char *masked = eb_redact_set_mask(self->guest->secrets, prompt->text, -1);
    g_autoptr(JsonObject) data = prompt->message_id != NULL ? json_object_new() : NULL;
    if (data != NULL)
        json_object_set_string_member(data, "message", prompt->message_id);
    eb_transcript_add(self->transcript, self->record->turns, "prompt", masked, data);
}

JsonArray *
eb_session_encode_prompt(EbSession *self, const EbPrompt *prompt)
{
    JsonArray *blocks = json_array_new();
    JsonObject *block = json_object_new();
    json_object_set_string_member(block, "type", "text");
    json_object_set_string_member(block, "text", prompt->text);
    json_array_add_object_element(blocks, block);
    if (prompt->blocks == NULL || self->guest == NULL || !eb_acp_client_get_info(self->guest->client)->image)
        return blocks;
    for (guint i = 0; i < json_array_get_length(prompt->blocks); i++)
        json_array_add_element(blocks, json_node_copy(json_array_get_element(prompt->blocks, i)));
    return blocks;
}

void
eb_session_settle_prompts(EbSession *self, const EbPrompt *prompt, EbPromptOutcome outcome)
{
    settle(self, prompt, outcome);
    g_autoptr(GPtrArray) steered = g_steal_pointer(&self->steered);
    self->steered = g_ptr_array_new_with_free_func((GDestroyNotify)eb_steer_free);
    for (guint i = 0; i < steered->len; i++) {
        const EbSteer *steer = steered->pdata[i];
        gboolean cut_off = steer->pending && self->ending;
        settle(self, steer->prompt,
               !cut_off                  ? outcome
               : self->end_error != NULL ? EB_PROMPT_FAILED
                                         : EB_PROMPT_INTERRUPTED);
    }
}

/* The turn that was cut off. */
static void
drop_turn(EbSession *self, const GError *error)
{
    g_autoptr(EbPrompt) prompt = g_steal_pointer(&self->prompt);
    const char *stop = error != NULL ? "error" : "cancelled";
    gint64 now_us = g_get_monotonic_time();
    EbTurnEnd end = {.stop_reason = stop,
                     .prompt = prompt,
                     .turn_ms = (guint64)(now_us - self->turn_us) / 1000,
                     .wait_ms = MAX(self->turn_us - prompt->received_us, 0) / 1000,
                     .error = error};
    self->turn_us = 0;
    eb_session_post_end(self, &end);
    eb_session_settle_prompts(self, prompt, error != NULL ? EB_PROMPT_FAILED : EB_PROMPT_INTERRUPTED);
    eb_session_turn_ended(self, stop, error);
}

void
eb_session_drop_prompts(EbSession *self, const GError *error)
{
    gboolean told = self->turn_us > 0 && self->prompt != NULL;
    if (told)
        drop_turn(self, error);
    else if (self->prompt != NULL)
        g_queue_push_head(&self->prompts, g_steal_pointer(&self->prompt));
    /* What no agent was given yet comes back from the journal when the service is there again. */
    gboolean keep = self->end_reason == EB_SESSION_END_SHUTDOWN && (eb_chat_transport_get_caps(self->transport, NULL) &
                                                                    (EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY)) != 0;
    while (!g_queue_is_empty(&self->prompts)) {
        g_autoptr(EbPrompt) prompt = g_queue_pop_head(&self->prompts);
        /* One end is told for all of them: whoever waits hears it. */
        if (!told) {
            const char *stop = error != NULL ? "error" : "cancelled";
            EbTurnEnd end = {.stop_reason = stop, .prompt = prompt, .wait_ms = -1, .error = error};
            eb_session_post_end(self, &end);
            eb_session_turn_ended(self, stop, error);
            told = TRUE;
        }
        if (keep) /* it may say already that an agent was given it */
            eb_session_set_prompt_state(self, prompt, EB_JOURNAL_RECEIVED);
        else
            settle(self, prompt, error != NULL ? EB_PROMPT_REFUSED : EB_PROMPT_INTERRUPTED);
    }
}
