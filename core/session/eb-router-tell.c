/* SPDX-License-Identifier: MIT */
/* What the router says and shows by itself: answers, refusals, reactions. */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/session/eb-chat-say.h"
#include "core/session/eb-router-private.h"

/* What is read back comes within moments; one answer is for all of it. */
#define LATE_MS 1000

typedef struct {
    char *thread; /* (nullable): where the message is; NULL = the channel */
    const char *symbol;
} EbRouterPrompt;

typedef struct {
    guint count;
    char *last_id;
} EbRouterLate;

void
eb_router_prompt_free(gpointer data)
{
    EbRouterPrompt *prompt = data;
    g_free(prompt->thread);
    g_free(prompt);
}

void
eb_router_late_free(gpointer data)
{
    EbRouterLate *late = data;
    g_free(late->last_id);
    g_free(late);
}

const char *
eb_router_raw_id(EbRouter *self, const char *message_id)
{
    if (message_id == NULL || (self->caps & EB_CHAT_CAP_HISTORY) != 0)
        return message_id;
    const char *slash = strchr(message_id, '/');
    return slash != NULL ? slash + 1 : message_id;
}

/* --- words --- */

static void
on_said(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (!eb_chat_say_finish(result, &error))
        eb_debug("a message could not be sent: %s", error->message);
}

EbRedactSet *
eb_router_secrets(EbRouter *self, const char *thread)
{
    EbSession *session = thread != NULL ? eb_session_manager_find_live(self->manager, self->name, thread) : NULL;
    return session != NULL ? eb_session_get_secrets(session) : self->manager->parts->secrets;
}

static void
say(EbRouter *self, const char *thread, EbChatPostKind kind, const char *text, const char *reply_to, EbChatFile *file)
{
    const char *place = thread != NULL || (self->caps & EB_CHAT_CAP_THREADS) != 0 ? thread : EB_ROUTER_MAIN_THREAD;
    g_autofree char *masked = eb_redact_set_mask(eb_router_secrets(self, thread), text, -1);
    eb_chat_say_async(self->transport, place, kind, masked, eb_router_raw_id(self, reply_to), file, self->cancellable,
                      on_said, NULL);
}

void
eb_router_tell(EbRouter *self, const char *thread, EbChatPostKind kind, const char *text, const char *reply_to)
{
    say(self, thread, kind, text, reply_to, NULL);
}

void
eb_router_answer(EbRouter *self, const EbChatMessage *message, const char *text)
{
    say(self, message->thread, EB_CHAT_POST_ANSWER, text, message->id, NULL);
}

void
eb_router_answer_file(EbRouter *self, const EbChatMessage *message, const char *text, EbChatFile *file)
{
    say(self, message->thread, EB_CHAT_POST_ANSWER, text, message->id, file);
}

gboolean
eb_router_tell_once(EbRouter *self, const char *thread, const char *author)
{
    if (g_hash_table_size(self->told) >= EB_ROUTER_MAX_TOLD)
        g_hash_table_remove_all(self->told);
    return g_hash_table_add(self->told, g_strdup_printf("%s %s", thread, author));
}

void
eb_router_done(EbRouter *self, const EbChatMessage *message)
{
    eb_journal_mark(self->manager->parts->store, self->name, message->id, EB_JOURNAL_DONE, NULL);
}

static void
post_end(EbRouter *self, const char *thread, const GError *error)
{
    if (self->policy != NULL)
        return; /* people read the error */
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_END, "");
    post->final = TRUE;
    post->data = json_object_new();
    json_object_set_string_member(post->data, "stop_reason", "error");
    json_object_set_string_member(post->data, "error", error->message);
    json_object_set_int_member(post->data, "code", error->code);
    if (eb_error_get_reason(error) != NULL)
        json_object_set_string_member(post->data, "reason", eb_error_get_reason(error));
    eb_chat_transport_post_async(self->transport, post, self->cancellable, NULL, NULL);
}

void
eb_router_refuse(EbRouter *self, EbChatMessage *message, const char *thread, const GError *error)
{
    const char *place = thread != NULL ? thread : message->thread;
    eb_router_tell(self, place, EB_CHAT_POST_ERROR, error->message, message->id);
    /* Whoever waits for a turn hears that there is none. */
    post_end(self, place != NULL ? place : EB_ROUTER_MAIN_THREAD, error);
    eb_router_unfollow(self, message->id);
    if (!eb_router_is_action(message))
        eb_router_react(self, message->thread, message->id, EB_CHAT_SYMBOL_FAILED);
    eb_router_done(self, message);
    if (self->policy != NULL && g_strcmp0(eb_error_get_reason(error), "session.hold") == 0)
        eb_session_manager_note_refused(self->manager, self->name, place);
    eb_session_manager_note_error(self->manager, error->message);
    g_signal_emit_by_name(self->manager, "session-ended", NULL, place, "startup failed", error);
}

/* --- reactions --- */

static void
on_reacted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (!eb_chat_transport_react_finish(EB_CHAT_TRANSPORT(source), result, &error))
        eb_debug("a reaction could not be shown: %s", error->message);
}

void
eb_router_react(EbRouter *self, const char *thread, const char *message_id, const char *symbol)
{
    if ((self->caps & EB_CHAT_CAP_REACTIONS) == 0)
        return;
    eb_chat_transport_react_async(self->transport, thread, eb_router_raw_id(self, message_id), symbol,
                                  self->cancellable, on_reacted, NULL);
}

void
eb_router_follow(EbRouter *self, const EbChatMessage *message)
{
    /* What came by a command of the chat is no message that could carry a reaction. */
    if (eb_router_is_action(message) || g_hash_table_contains(self->prompts, message->id) ||
        g_hash_table_size(self->prompts) >= EB_ROUTER_MAX_PROMPTS)
        return;
    EbRouterPrompt *prompt = g_new0(EbRouterPrompt, 1);
    prompt->thread = g_strdup(message->thread);
    prompt->symbol = EB_CHAT_SYMBOL_ACCEPTED;
    g_hash_table_replace(self->prompts, g_strdup(message->id), prompt);
    eb_router_react(self, message->thread, message->id, prompt->symbol);
}

void
eb_router_unfollow(EbRouter *self, const char *message_id)
{
    g_hash_table_remove(self->prompts, message_id);
}

static const char *
symbol_of(EbPromptOutcome outcome)
{
    switch (outcome) {
    case EB_PROMPT_WAITING:
    case EB_PROMPT_WORKING:
        return EB_CHAT_SYMBOL_ACCEPTED;
    case EB_PROMPT_DONE:
        return EB_CHAT_SYMBOL_DONE;
    case EB_PROMPT_INTERRUPTED:
        return EB_CHAT_SYMBOL_INTERRUPTED;
    default:
        return EB_CHAT_SYMBOL_FAILED;
    }
}

void
eb_router_prompt_outcome(EbRouter *self, const char *thread, const char *message_id, int outcome)
{
    EbRouterPrompt *prompt = g_hash_table_lookup(self->prompts, message_id);
    if (prompt == NULL)
        return;
    const char *symbol = symbol_of((EbPromptOutcome)outcome);
    if (prompt->symbol != symbol)
        eb_router_react(self, prompt->thread, message_id, symbol);
    prompt->symbol = symbol;
    if (eb_prompt_outcome_is_final((EbPromptOutcome)outcome))
        eb_router_unfollow(self, message_id);
}

/* --- what came too late --- */

static gboolean
on_late(gpointer data)
{
    EbRouter *self = EB_ROUTER(data);
    g_clear_pointer(&self->late_timer, g_source_unref);
    GHashTableIter iter;
    gpointer key, value;
    g_hash_table_iter_init(&iter, self->late);
    while (self->manager != NULL && g_hash_table_iter_next(&iter, &key, &value)) {
        const EbRouterLate *late = value;
        const char *thread = *(const char *)key != '\0' ? key : NULL;
        g_autofree char *text =
            late->count == 1
                ? g_strdup(
                      "I saw this only now, too late: nothing was done about it. Say it again if it still matters.")
                : g_strdup_printf("I saw %u messages only now, too late, this is the last of them: nothing was done "
                                  "about them. Say again what still matters.",
                                  late->count);
        eb_router_tell(self, thread, EB_CHAT_POST_NOTICE, text, late->last_id);
    }
    g_hash_table_remove_all(self->late);
    return G_SOURCE_REMOVE;
}

void
eb_router_note_late(EbRouter *self, EbChatMessage *message)
{
    const char *place = message->thread != NULL ? message->thread : "";
    EbRouterLate *late = g_hash_table_lookup(self->late, place);
    if (late == NULL) {
        late = g_new0(EbRouterLate, 1);
        g_hash_table_replace(self->late, g_strdup(place), late);
    }
    late->count++;
    g_free(late->last_id);
    late->last_id = g_strdup(message->id);
    eb_router_done(self, message);
    if (self->late_timer != NULL)
        return;
    self->late_timer = g_timeout_source_new(LATE_MS);
    g_source_set_callback(self->late_timer, on_late, self, NULL);
    g_source_attach(self->late_timer, g_main_context_get_thread_default());
}
