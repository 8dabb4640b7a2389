/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/chat/eb-opening.h"
#include "core/session/eb-router-private.h"
#include "core/state/eb-transcript.h"

G_DEFINE_FINAL_TYPE(EbRouter, eb_router, G_TYPE_OBJECT)

const char *
eb_router_get_name(EbRouter *self)
{
    return self->name;
}

EbChatTransport *
eb_router_get_transport(EbRouter *self)
{
    return self->transport;
}

/* --- whether it is for us --- */

static gboolean
knows_thread(EbRouter *self, const char *thread)
{
    return eb_session_manager_find_live(self->manager, self->name, thread) != NULL ||
           eb_session_manager_find_record(self->manager, self->name, thread, TRUE) != NULL;
}

/* What is not for us, or from somebody who may not, is dropped without a word: an answer would tell them who may. */
static gboolean
is_for_us(EbRouter *self, const EbChatMessage *message)
{
    if (self->policy == NULL)
        return TRUE;
    if (message->author_bot && message->thread == NULL)
        return FALSE;
    if (eb_role_of(self->policy, NULL, NULL, message->author_id) < EB_ROLE_ANYONE)
        return FALSE;
    const char *text = message->text != NULL ? message->text : "";
    if (*text == '\0' && message->attachments->len == 0 && message->note == NULL)
        return FALSE;
    if (message->thread != NULL && !knows_thread(self, message->thread))
        return FALSE;
    g_autoptr(EbCommand) command = NULL;
    EbCommandParse parse = eb_command_parse_text(text, &command, NULL);
    if (parse == EB_COMMAND_PARSE_UNKNOWN)
        return FALSE;
    if (message->thread != NULL || (self->caps & EB_CHAT_CAP_THREADS) == 0)
        return TRUE;
    if (command != NULL && command->spec->id == EB_COMMAND_ASIDE)
        return FALSE;
    return parse != EB_COMMAND_PARSE_NONE || !self->policy->start_on_mention || message->mentions_us;
}

/* --- messages --- */

typedef struct {
    EbRouter *self;
    EbChatMessage *message;
} EbArrival;

static EbArrival *
arrival_new(EbRouter *self, EbChatMessage *message)
{
    EbArrival *arrival = g_new0(EbArrival, 1);
    arrival->self = g_object_ref(self);
    arrival->message = eb_chat_message_ref(message);
    return arrival;
}

static void
arrival_free(EbArrival *arrival)
{
    g_object_unref(arrival->self);
    eb_chat_message_unref(arrival->message);
    g_free(arrival);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbArrival, arrival_free)

static void
on_journaled(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbArrival) arrival = user_data;
    EbRouter *self = arrival->self;
    g_autoptr(GError) error = NULL;
    gboolean repeat = FALSE;
    gboolean ok = eb_journal_receive_finish(EB_STORE(source), result, &repeat, &error);
    if (self->manager == NULL || (ok && repeat))
        return;
    eb_log_step("message.journal", "EB_REASON", NULL);
    if (ok)
        eb_router_dispatch(self, arrival->message);
    else /* nothing is acted on that a restart could do twice or lose */
        eb_router_refuse(self, arrival->message, NULL, error);
}

void
eb_router_take(EbRouter *self, EbChatMessage *message)
{
    if (!eb_router_is_action(message) && !is_for_us(self, message))
        return;
    eb_log_step("message.received", "EB_REASON", NULL);
    eb_journal_receive_async(self->manager->parts->store, self->name, message, eb_router_first_state(self, message),
                             NULL, on_journaled, arrival_new(self, message));
}

/* A transport that never repeats itself may count from 1 in every run. */
static EbChatMessage *
name_for_this_run(EbRouter *self, EbChatMessage *message)
{
    if ((self->caps & EB_CHAT_CAP_HISTORY) != 0)
        return eb_chat_message_ref(message);
    g_autofree char *id = g_strdup_printf("%s/%s", self->manager->parts->run_id, message->id);
    EbChatMessage *own = eb_chat_message_new(id, message->thread, message->author_id, message->text);
    own->sent_unix_ms = message->sent_unix_ms;
    own->author_bot = message->author_bot;
    own->mentions_us = message->mentions_us;
    own->note = g_strdup(message->note);
    own->extra = message->extra != NULL ? json_object_ref(message->extra) : NULL;
    for (guint i = 0; i < message->attachments->len; i++) {
        const EbChatAttachment *file = message->attachments->pdata[i];
        eb_chat_message_add_attachment(own, file->id, file->name, file->content_type, file->size_bytes, file->url);
    }
    return own;
}

static gboolean
is_whole(EbRouter *self, const EbChatMessage *message)
{
    return self->manager != NULL && message->id != NULL && message->author_id != NULL &&
           strlen(message->id) <= EB_ROUTER_MAX_ID_BYTES;
}

static void
on_message(EbChatTransport *transport, EbChatMessage *message, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (!is_whole(self, message))
        return;
    g_autoptr(EbChatMessage) own = name_for_this_run(self, message);
    if (self->catchup == NULL || !eb_catchup_hold(self->catchup, own))
        eb_router_take(self, own);
}

static void
on_action(EbChatTransport *transport, EbChatMessage *message, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (!is_whole(self, message) || !eb_router_is_action(message))
        return;
    g_autoptr(EbChatMessage) own = name_for_this_run(self, message);
    /* Whoever may not speak here is answered all the same, always alike: a command that stays silent looks broken. */
    if (eb_role_of(self->policy, NULL, NULL, message->author_id) < EB_ROLE_ANYONE)
        eb_router_answer(self, own, "you may not use this here");
    else
        eb_router_take(self, own);
}

static void
on_interrupt(EbChatTransport *transport, const char *thread, guint count, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager == NULL)
        return;
    EbSession *session =
        eb_session_manager_find_live(self->manager, self->name, thread != NULL ? thread : EB_ROUTER_MAIN_THREAD);
    if (session != NULL && (count > 1 || !eb_session_interrupt(session)))
        eb_session_end(session, EB_SESSION_END_STOPPED, NULL);
}

/* --- changes --- */

/* The prompt in a text that opens a session, or in a command that gives one. NULL: there is none any more. */
static char *
prompt_in(EbRouter *self, const EbChatMessage *message)
{
    if (self->policy == NULL)
        return g_strdup(message->text);
    g_autoptr(EbCommand) command = NULL;
    if (eb_command_parse_text(message->text, &command, NULL) != EB_COMMAND_PARSE_NONE)
        return command != NULL && command->spec->id == EB_COMMAND_THEN ? g_strdup(command->values[0]) : NULL;
    if (message->thread != NULL)
        return g_strdup(message->text);
    g_autoptr(EbOpening) opening = eb_opening_parse(message->text, NULL);
    return opening != NULL && *opening->prompt != '\0' ? g_steal_pointer(&opening->prompt) : NULL;
}

/* Whose session a changed message belongs to. A change may be written down between the message and who got it. */
static EbSession *
session_of_entry(EbRouter *self, const EbJournalEntry *entry, const EbChatMessage *message)
{
    if (entry->session != NULL)
        return g_hash_table_lookup(self->manager->sessions, entry->session);
    return message->thread != NULL ? eb_session_manager_find_live(self->manager, self->name, message->thread) : NULL;
}

static void
on_edited_entry(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbArrival) arrival = user_data;
    EbRouter *self = arrival->self;
    EbChatMessage *message = arrival->message;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbJournalEntry) entry = eb_journal_change_finish(EB_STORE(source), result, &error);
    if (error != NULL)
        eb_warning("a changed message could not be written down: %s", error->message);
    if (self->manager == NULL || entry == NULL || entry->state == EB_JOURNAL_DONE ||
        g_strcmp0(entry->message->text, message->text) == 0)
        return;
    EbSession *session = session_of_entry(self, entry, message);
    if (session == NULL)
        return;
    /* Who is no longer invited changes nothing of what the agent gets. */
    const EbSessionRecord *record = eb_session_get_record(session);
    if (eb_role_of(self->policy, record->owner, record->guests, entry->message->author_id) < EB_ROLE_GUEST)
        return;
    g_autofree char *prompt = prompt_in(self, message);
    if (prompt != NULL && eb_session_replace_prompt(session, message->id, prompt))
        return;
    eb_router_tell(self, record->thread, EB_CHAT_POST_NOTICE,
                   "the agent has that message already, as it was before: say what you changed in a new one",
                   message->id);
}

static void
on_edited(EbChatTransport *transport, EbChatMessage *message, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (!is_whole(self, message) || message->text == NULL || *message->text == '\0')
        return;
    if (self->catchup != NULL && eb_catchup_change_waiting(self->catchup, message->thread, message->id, message->text))
        return;
    eb_router_change_opening(self, message->id, message->text);
    for (guint i = 0; i < self->held->len; i++) {
        EbChatMessage *held = self->held->pdata[i];
        if (g_strcmp0(held->id, message->id) == 0) {
            g_free(held->text);
            held->text = g_strdup(message->text);
        }
    }
    eb_journal_edit_async(self->manager->parts->store, self->name, message->id, message->text, NULL, on_edited_entry,
                          arrival_new(self, message));
}

static void
on_withdrawn_entry(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbArrival) arrival = user_data;
    EbRouter *self = arrival->self;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbJournalEntry) entry = eb_journal_change_finish(EB_STORE(source), result, &error);
    if (error != NULL)
        eb_warning("a withdrawn message could not be written down: %s", error->message);
    if (self->manager == NULL || entry == NULL)
        return;
    EbSession *session = session_of_entry(self, entry, arrival->message);
    const char *id = session != NULL ? eb_session_get_record(session)->id : entry->session;
    if (session != NULL)
        eb_session_flush_log(session);
    if (id != NULL)
        eb_transcript_withdraw(self->manager->parts->store, id, entry->message->id);
    if (session == NULL || eb_session_withdraw(session, entry->message->id) || entry->state != EB_JOURNAL_STARTED ||
        entry->session == NULL)
        return;
    /* The words are gone from here; what the agent does with them it must decide anew. */
    g_autoptr(EbPrompt) told =
        eb_prompt_new(NULL, NULL,
                      "The person has taken back the message you are working on. Stop working on "
                      "it, undo nothing, and say what you have changed so far.");
    const char *thread = eb_session_get_record(session)->thread;
    if (eb_session_can_steer(session) && eb_session_steer(session, g_steal_pointer(&told), NULL))
        eb_router_tell(self, thread, EB_CHAT_POST_NOTICE, "the agent was told that its message was taken back", NULL);
    else
        eb_router_tell(
            self, thread, EB_CHAT_POST_NOTICE,
            "the message the agent works on was taken back, but this agent cannot be told: !interrupt breaks "
            "it off",
            NULL);
}

static void
on_withdrawn(EbChatTransport *transport, const char *thread, const char *message_id, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager == NULL || message_id == NULL || strlen(message_id) > EB_ROUTER_MAX_ID_BYTES)
        return;
    g_autoptr(EbChatMessage) gone = eb_chat_message_new(message_id, thread, "", NULL);
    g_autoptr(EbChatMessage) own = name_for_this_run(self, gone);
    if (self->catchup != NULL && eb_catchup_change_waiting(self->catchup, thread, message_id, NULL))
        return;
    eb_router_change_opening(self, own->id, NULL);
    for (guint i = 0; i < self->held->len; i++) {
        const EbChatMessage *held = self->held->pdata[i];
        if (g_strcmp0(held->id, own->id) == 0) {
            g_ptr_array_remove_index(self->held, i);
            break;
        }
    }
    eb_journal_withdraw_async(self->manager->parts->store, self->name, own->id, NULL, on_withdrawn_entry,
                              arrival_new(self, own));
}

/* --- threads --- */

void
eb_router_lose_thread(EbRouter *self, const char *thread, const char *state)
{
    EbSession *session = eb_session_manager_find_live(self->manager, self->name, thread);
    if (!g_str_equal(state, "archived") && self->catchup != NULL)
        eb_catchup_forget(self->catchup, thread);
    if (session != NULL)
        eb_session_end(session, EB_SESSION_END_ARCHIVED, NULL);
}

static void
on_thread_state(EbChatTransport *transport, const char *thread, const char *state, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager != NULL && thread != NULL && state != NULL && !g_str_equal(state, "open"))
        eb_router_lose_thread(self, thread, state);
}

typedef struct {
    EbRouter *self;
    char *thread;
} EbPuttingAway;

/* What is not done by then is in the journal for the next run. */
static void
end_stops(EbRouter *self, const char *thread)
{
    for (guint i = 0; i < self->stops->len && self->manager != NULL;) {
        EbChatMessage *order = self->stops->pdata[i];
        const char *own = order->thread != NULL ? order->thread : EB_ROUTER_MAIN_THREAD;
        if (!g_str_equal(own, thread != NULL ? thread : EB_ROUTER_MAIN_THREAD)) {
            i++;
            continue;
        }
        eb_router_done(self, order);
        g_ptr_array_remove_index(self->stops, i);
    }
}

static void
on_closed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbPuttingAway *away = user_data;
    g_autoptr(GError) error = NULL;
    if (!eb_chat_transport_close_thread_finish(EB_CHAT_TRANSPORT(source), result, &error))
        eb_debug("a thread could not be put away: %s", error->message);
    end_stops(away->self, away->thread);
    g_object_unref(away->self);
    g_free(away->thread);
    g_free(away);
}

void
eb_router_put_away(EbRouter *self, const char *thread)
{
    EbPuttingAway *away = g_new0(EbPuttingAway, 1);
    away->self = g_object_ref(self);
    away->thread = g_strdup(thread);
    eb_chat_transport_close_thread_async(self->transport, thread, self->cancellable, on_closed, away);
}

void
eb_router_release(EbRouter *self, const char *thread)
{
    g_autoptr(GPtrArray) ready = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    for (guint i = 0; i < self->held->len;) {
        EbChatMessage *message = self->held->pdata[i];
        const char *own = message->thread != NULL ? message->thread : EB_ROUTER_MAIN_THREAD;
        if (thread == NULL || g_str_equal(own, thread))
            g_ptr_array_add(ready, g_ptr_array_steal_index(self->held, i));
        else
            i++;
    }
    for (guint i = 0; i < ready->len && self->manager != NULL; i++)
        eb_router_dispatch(self, ready->pdata[i]);
}

void
eb_router_session_ended(EbRouter *self, const char *thread, const char *reason)
{
    eb_router_release(self, thread != NULL ? thread : EB_ROUTER_MAIN_THREAD);
    /* Last: whatever is said in a thread that was put away brings it back. */
    if (self->policy != NULL && thread != NULL && (self->caps & EB_CHAT_CAP_THREADS) != 0 &&
        g_strcmp0(reason, eb_session_end_to_string(EB_SESSION_END_STOPPED)) == 0)
        eb_router_put_away(self, thread);
    else
        end_stops(self, thread);
}

static void
on_prompt_outcome(EbSessionManager *manager, const char *transport, const char *thread, const char *message_id,
                  int outcome, gpointer user_data)
{
    /* Also of prompts that end with the service, when no further message is taken. */
    EbRouter *self = EB_ROUTER(user_data);
    if (message_id != NULL && g_strcmp0(transport, self->name) == 0)
        eb_router_prompt_outcome(self, thread, message_id, outcome);
}

/* --- catching up --- */

static void
on_seen(EbChatTransport *transport, const char *thread, const char *message_id, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager == NULL || self->catchup == NULL || message_id == NULL ||
        strlen(message_id) > EB_ROUTER_MAX_ID_BYTES || (thread != NULL && !knows_thread(self, thread)))
        return;
    eb_catchup_seen(self->catchup, thread, message_id);
}

static void
on_connection(EbChatTransport *transport, gboolean up, const char *detail, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager != NULL && self->catchup != NULL && up)
        eb_catchup_connected(self->catchup);
}

static void
on_open_entries(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbRouter) self = EB_ROUTER(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = eb_journal_open_finish(EB_STORE(source), result, &error);
    if (entries == NULL)
        eb_warning("the journal could not be read: %s", error->message);
    for (guint i = 0; entries != NULL && i < entries->len && self->manager != NULL; i++)
        eb_router_continue_entry(self, entries->pdata[i]);
    if (self->manager != NULL && self->catchup != NULL)
        eb_catchup_begin(self->catchup);
}

/* --- the object --- */

void
eb_router_close(EbRouter *self)
{
    self->manager = NULL;
    g_signal_handlers_disconnect_by_data(self->transport, self);
    g_clear_pointer(&self->catchup, eb_catchup_free);
    eb_clear_source(&self->late_timer);
}

static void
eb_router_dispose(GObject *object)
{
    EbRouter *self = EB_ROUTER(object);
    if (self->transport != NULL)
        eb_router_close(self);
    g_clear_object(&self->transport);
    G_OBJECT_CLASS(eb_router_parent_class)->dispose(object);
}

static void
eb_router_finalize(GObject *object)
{
    EbRouter *self = EB_ROUTER(object);
    g_object_unref(self->cancellable);
    g_ptr_array_unref(self->held);
    g_ptr_array_unref(self->openings);
    g_ptr_array_unref(self->stops);
    g_hash_table_unref(self->prompts);
    g_hash_table_unref(self->told);
    g_hash_table_unref(self->late);
    g_free(self->name);
    G_OBJECT_CLASS(eb_router_parent_class)->finalize(object);
}

static void
eb_router_class_init(EbRouterClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_router_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_router_finalize;
}

static void
eb_router_init(EbRouter *self)
{
    self->cancellable = g_cancellable_new();
    self->held = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    self->openings = g_ptr_array_new();
    self->stops = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    self->prompts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, eb_router_prompt_free);
    self->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->late = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, eb_router_late_free);
}

EbRouter *
eb_router_new(EbSessionManager *manager, const char *name, EbChatTransport *transport)
{
    static const struct {
        const char *signal;
        GCallback handler;
    } handlers[] = {
        {"message", G_CALLBACK(on_message)},
        {"action", G_CALLBACK(on_action)},
        {"edited", G_CALLBACK(on_edited)},
        {"withdrawn", G_CALLBACK(on_withdrawn)},
        {"interrupt", G_CALLBACK(on_interrupt)},
        {"seen", G_CALLBACK(on_seen)},
        {"thread-state", G_CALLBACK(on_thread_state)},
        {"connection", G_CALLBACK(on_connection)},
    };
    EbRouter *self = g_object_new(EB_TYPE_ROUTER, NULL);
    self->manager = manager;
    self->name = g_strdup(name);
    self->transport = g_object_ref(transport);
    self->caps = eb_chat_transport_get_caps(transport, NULL);
    if ((self->caps & EB_CHAT_CAP_HISTORY) != 0)
        self->catchup = eb_catchup_new(self);
    for (gsize i = 0; i < G_N_ELEMENTS(handlers); i++)
        g_signal_connect_object(transport, handlers[i].signal, handlers[i].handler, self, 0);
    g_signal_connect_object(manager, "prompt-outcome", G_CALLBACK(on_prompt_outcome), self, 0);
    gsize n_commands;
    const EbChatCommand *commands = eb_command_list_for_chat(&n_commands);
    self->policy = eb_chat_transport_attach(transport, commands, n_commands);
    eb_session_manager_set_policy(manager, name, self->policy);
    eb_journal_open_async(manager->parts->store, name, NULL, on_open_entries, g_object_ref(self));
    return self;
}
