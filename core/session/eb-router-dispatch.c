/* SPDX-License-Identifier: MIT */
/* From a message that was written down to the session it is for. */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/chat/eb-opening.h"
#include "core/session/eb-project-name.h"
#include "core/session/eb-router-private.h"
#include "core/session/eb-session-hold.h"

#define MAX_TITLE_CHARACTERS 100
/* Between two tries to open a thread, when the chat names no time; doubled each time. */
#define OPEN_RETRY_MS 2000
#define OPEN_RETRY_MAX_MS 60000

/* --- where and who --- */

EbRouterAddress
eb_router_address(EbRouter *self, const EbChatMessage *message)
{
    EbRouterAddress address = {.thread = message->thread};
    if (address.thread == NULL && (self->caps & EB_CHAT_CAP_THREADS) == 0)
        address.thread = EB_ROUTER_MAIN_THREAD;
    if (address.thread != NULL) {
        address.session = eb_session_manager_find_live(self->manager, self->name, address.thread);
        address.record = address.session != NULL
                             ? eb_session_get_record(address.session)
                             : eb_session_manager_find_record(self->manager, self->name, address.thread, FALSE);
        address.stopped = address.record == NULL &&
                          eb_session_manager_find_record(self->manager, self->name, address.thread, TRUE) != NULL;
    }
    const EbSessionRecord *record = address.record;
    address.role = eb_role_of(self->policy, record != NULL ? record->owner : NULL,
                              record != NULL ? record->guests : NULL, message->author_id);
    return address;
}

/* One project has one live session; @thread: (nullable): where it may be. */
static gboolean
check_project_free(EbRouter *self, const char *project, const char *thread, GError **error)
{
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->manager->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session)) {
        const EbSessionRecord *record = eb_session_get_record(session);
        gboolean ours = g_strcmp0(record->transport, self->name) == 0;
        if (g_strcmp0(record->project, project) != 0 || (ours && g_strcmp0(record->thread, thread) == 0))
            continue;
        /* Chats link a thread that is named so by its id. */
        g_autofree char *where =
            ours ? g_strdup_printf("in <#%s>: go on there, or end it there with !stop", record->thread)
                 : g_strdup_printf("elsewhere (%s)", record->transport);
        eb_set_error(error, EB_ERROR_BUSY, "project.busy", "%s has a live session already, %s", project, where);
        return FALSE;
    }
    return TRUE;
}

/* --- prompts --- */

static EbPrompt *
make_prompt(EbChatMessage *message, const char *text)
{
    EbPrompt *prompt = eb_prompt_new(message->id, message->author_id, text != NULL ? text : "");
    if (message->attachments->len > 0)
        prompt->message = eb_chat_message_ref(message);
    return prompt;
}

static gboolean
give_prompt(EbRouter *self, EbSession *session, EbChatMessage *message, const char *text, EbRouterGive how)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSessionRecord) record = eb_session_record_ref(eb_session_get_record(session));
    EbPrompt *prompt = make_prompt(message, text);
    eb_log_step("message.given", "EB_SESSION", record->id);
    eb_journal_mark(self->manager->parts->store, self->name, message->id, EB_JOURNAL_RECEIVED, record->id);
    eb_router_follow(self, message);
    gboolean taken = how == EB_ROUTER_STEER  ? eb_session_steer(session, prompt, &error)
                     : how == EB_ROUTER_THEN ? eb_session_prompt(session, prompt, &error)
                                             : eb_session_say(session, prompt, &error);
    if (taken)
        return TRUE;
    eb_router_unfollow(self, message->id);
    if (eb_router_is_action(message)) {
        eb_router_answer(self, message, error->message);
    } else {
        eb_router_tell(self, record->thread, EB_CHAT_POST_ERROR, error->message, message->id);
        eb_router_react(self, message->thread, message->id, EB_CHAT_SYMBOL_FAILED);
    }
    eb_router_done(self, message);
    return FALSE;
}

gboolean
eb_router_give(EbRouter *self, const EbRouterAddress *address, EbChatMessage *message, const char *text,
               EbRouterGive how)
{
    EbSession *session = address->session;
    g_autoptr(GError) error = NULL;
    if (session == NULL &&
        (!eb_session_manager_check_hold(self->manager, &error) ||
         (self->policy != NULL && !check_project_free(self, address->record->project, address->thread, &error)))) {
        eb_router_refuse(self, message, address->record->thread, error);
        return FALSE;
    }
    if (session == NULL)
        session = eb_session_manager_begin(self->manager, address->record, FALSE, self->transport);
    return give_prompt(self, session, message, text, how);
}

/* --- new sessions --- */

typedef struct {
    EbRouter *self;
    EbChatMessage *message;
    EbOpening *opening;
    guint tries;
    GSource *retry;
    gboolean withdrawn;
} EbThreadOpening;

static void
opening_free(EbThreadOpening *opening)
{
    eb_clear_source(&opening->retry);
    g_ptr_array_remove(opening->self->openings, opening);
    g_object_unref(opening->self);
    eb_chat_message_unref(opening->message);
    eb_opening_free(opening->opening);
    g_free(opening);
}

/* What transports without words for it give with the message. */
static EbOpening *
opening_from_extra(const EbChatMessage *message)
{
    EbOpening *opening = g_new0(EbOpening, 1);
    opening->project = g_strdup(eb_json_get_string(message->extra, "project"));
    opening->agent = g_strdup(eb_json_get_string(message->extra, "agent"));
    opening->model = g_strdup(eb_json_get_string(message->extra, "model"));
    opening->prompt = g_strdup(message->text != NULL ? message->text : "");
    return opening;
}

static EbOpening *
read_opening(EbRouter *self, const EbChatMessage *message, GError **error)
{
    if (self->policy == NULL)
        return opening_from_extra(message);
    return eb_opening_parse(message->text != NULL ? message->text : "", error);
}

/* Everything that can be known before there is a thread. @thread: (nullable): the one it would be in */
static gboolean
check_opening(EbRouter *self, const EbChatMessage *message, const EbOpening *opening, const char *thread,
              GError **error)
{
    if (opening->project != NULL && !eb_project_name_check(opening->project, error))
        return FALSE;
    if (*opening->prompt == '\0' && message->attachments->len == 0) {
        if (message->note != NULL)
            eb_set_error(error, EB_ERROR_INVALID, "prompt.unreadable", "I cannot read %s: say it in words",
                         message->note);
        else if (opening->project != NULL && self->policy != NULL)
            eb_set_error(error, EB_ERROR_INVALID, "prompt.size",
                         "what is to be done in %s? write it after the name: %s: fix the tests", opening->project,
                         opening->project);
        else
            eb_set_error(error, EB_ERROR_INVALID, "prompt.size", "an errand needs a text");
        return FALSE;
    }
    if (!eb_session_manager_check_hold(self->manager, error))
        return FALSE;
    if (self->policy == NULL)
        return TRUE; /* the launch says what it lacks, as it always did */
    if (opening->agent != NULL && eb_config_get_agent(self->manager->parts->config, opening->agent, error) == NULL)
        return FALSE;
    return opening->project == NULL || check_project_free(self, opening->project, thread, error);
}

static void
open_session(EbRouter *self, EbChatMessage *message, const EbOpening *opening, const char *thread)
{
    g_autofree char *id = eb_session_id_new();
    const EbSessionConfig *config = eb_config_get_session(self->manager->parts->config);
    g_autoptr(EbSessionRecord) record = eb_session_record_new(id, opening->project != NULL ? opening->project : id,
                                                              opening->agent != NULL ? opening->agent : config->agent);
    record->model = g_strdup(opening->model);
    record->provider = g_strdup(eb_json_get_string(message->extra, "provider"));
    record->transport = g_strdup(self->name);
    record->thread = g_strdup(thread);
    record->owner = g_strdup(message->author_id);
    if (self->catchup != NULL && message->thread == NULL)
        eb_catchup_thread_opened(self->catchup, thread, message->id);
    EbSession *session = eb_session_manager_begin(self->manager, record, TRUE, self->transport);
    give_prompt(self, session, message, opening->prompt, EB_ROUTER_SAY);
    eb_router_release(self, thread);
}

static void try_thread(EbThreadOpening *opening);
static void opening_over(EbRouter *self);

static gboolean
on_retry(gpointer data)
{
    EbThreadOpening *opening = data;
    g_clear_pointer(&opening->retry, g_source_unref);
    if (opening->self->manager == NULL)
        opening_free(opening);
    else
        try_thread(opening);
    return G_SOURCE_REMOVE;
}

static void
retry_later(EbThreadOpening *opening, const GError *error)
{
    EbRouter *self = opening->self;
    guint delay_ms = 0;
    eb_error_get_retry(error, &delay_ms);
    guint own_ms = OPEN_RETRY_MS << (opening->tries - 1);
    if (opening->tries == 1) {
        g_autofree char *text =
            g_strdup_printf("no thread can be opened just now (%s): I try again, nothing is lost", error->message);
        eb_router_tell(self, NULL, EB_CHAT_POST_NOTICE, text, opening->message->id);
    }
    opening->retry = g_timeout_source_new(CLAMP(delay_ms, own_ms, OPEN_RETRY_MAX_MS));
    g_source_set_callback(opening->retry, on_retry, opening, NULL);
    g_source_attach(opening->retry, g_main_context_get_thread_default());
}

static void
on_thread(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbThreadOpening *opening = user_data;
    EbRouter *self = opening->self;
    g_autoptr(GError) error = NULL;
    g_autofree char *thread = eb_chat_transport_open_thread_finish(EB_CHAT_TRANSPORT(source), result, &error);
    if (self->manager == NULL) {
        opening_free(opening); /* the journal brings the message back */
        return;
    }
    if (opening->withdrawn) {
        eb_router_unfollow(self, opening->message->id);
    } else if (thread == NULL && eb_error_get_retry(error, NULL) && opening->tries < EB_ROUTER_OPEN_TRIES) {
        retry_later(opening, error);
        return;
    } else if (thread == NULL) {
        eb_warning("no thread could be opened: %s", error->message);
        g_prefix_error(&error, "no thread could be opened: ");
        eb_router_refuse(self, opening->message, NULL, error);
    } else {
        eb_log_step("message.thread", "EB_REASON", NULL);
        open_session(self, opening->message, opening->opening, thread);
    }
    opening_over(self);
    opening_free(opening);
}

static void
try_thread(EbThreadOpening *opening)
{
    EbRouter *self = opening->self;
    const EbChatMessage *message = opening->message;
    const char *words = opening->opening->prompt;
    opening->tries++;
    if (*words == '\0' && message->attachments->len > 0)
        words = ((const EbChatAttachment *)message->attachments->pdata[0])->name;
    /* The thread outlives the message, which the person may delete when a secret is in it. */
    g_autofree char *masked = eb_redact_set_mask(eb_router_secrets(self, NULL), words, -1);
    EbOpening named = {opening->opening->project, NULL, NULL, masked};
    g_autofree char *title = eb_opening_title(&named, MAX_TITLE_CHARACTERS);
    eb_chat_transport_open_thread_async(self->transport, message->id, title, self->cancellable, on_thread, opening);
}

void
eb_router_change_opening(EbRouter *self, const char *message_id, const char *text)
{
    for (guint i = 0; i < self->openings->len; i++) {
        EbThreadOpening *opening = self->openings->pdata[i];
        if (!g_str_equal(opening->message->id, message_id))
            continue;
        opening->withdrawn = text == NULL;
        /* What it makes of the thread that is on its way: the words alone. */
        g_autoptr(EbOpening) changed = text != NULL ? eb_opening_parse(text, NULL) : NULL;
        if (changed != NULL && *changed->prompt != '\0') {
            g_free(opening->opening->prompt);
            opening->opening->prompt = g_steal_pointer(&changed->prompt);
        }
    }
}

/* Says no before anything is there. FALSE: said. */
static EbOpening *
accept_opening(EbRouter *self, EbChatMessage *message, const char *thread)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbOpening) opening = read_opening(self, message, &error);
    if (opening != NULL && check_opening(self, message, opening, thread, &error))
        return g_steal_pointer(&opening);
    eb_router_refuse(self, message, thread, error);
    return NULL;
}

/* One thread less is being opened; what waited for any of them to be known goes on. */
static void
opening_over(EbRouter *self)
{
    if (--self->opening == 0)
        eb_router_release(self, NULL);
}

static void
open_whole(EbRouter *self, EbChatMessage *message)
{
    EbOpening *accepted = accept_opening(self, message, NULL);
    if (accepted == NULL) {
        opening_over(self);
        return;
    }
    EbThreadOpening *opening = g_new0(EbThreadOpening, 1);
    opening->self = g_object_ref(self);
    opening->message = eb_chat_message_ref(message);
    opening->opening = accepted;
    g_ptr_array_add(self->openings, opening);
    eb_router_follow(self, message);
    try_thread(opening);
}

static void
on_unfolded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(source);
    g_autoptr(EbChatMessage) message = eb_router_unfold_finish(self, result);
    if (self->manager != NULL)
        open_whole(self, message);
}

static void
open_thread(EbRouter *self, EbChatMessage *message)
{
    self->opening++;
    if (eb_router_is_pasted(self, message))
        eb_router_unfold_async(self, message, on_unfolded, NULL);
    else
        open_whole(self, message);
}

/* --- in a thread --- */

static void
refuse_quietly(EbRouter *self, EbChatMessage *message, const char *thread, const char *text)
{
    if (eb_router_tell_once(self, thread, message->author_id))
        eb_router_tell(self, thread, EB_CHAT_POST_NOTICE, text, message->id);
    eb_router_react(self, message->thread, message->id, EB_CHAT_SYMBOL_FAILED);
    eb_router_done(self, message);
}

/* A session that `try` or a client names to be continued, or forbids to be. TRUE: that was all. */
static gboolean
continue_as_told(EbRouter *self, EbRouterAddress *address, EbChatMessage *message)
{
    JsonNode *told = eb_json_get_node(message->extra, "resume");
    if (self->policy != NULL || told == NULL || address->session != NULL)
        return FALSE;
    gboolean asked = eb_json_get_bool(message->extra, "resume", FALSE);
    address->record = asked ? eb_session_manager_find_record(self->manager, self->name, address->thread, TRUE) : NULL;
    if (address->record != NULL || !asked)
        return FALSE;
    g_autoptr(GError) error =
        eb_error_new(EB_ERROR_NOT_FOUND, "session.unknown", "there is no session here that could be continued");
    eb_router_refuse(self, message, address->thread, error);
    return TRUE;
}

static void
hold(EbRouter *self, EbChatMessage *message, const char *thread)
{
    if (self->held->len < EB_ROUTER_MAX_HELD) {
        g_ptr_array_add(self->held, eb_chat_message_ref(message));
        return;
    }
    g_autoptr(GError) error = eb_error_new(EB_ERROR_BUSY, "session.ending", "the session here is just ending");
    eb_router_refuse(self, message, thread, error);
}

static void
dispatch_in_thread(EbRouter *self, EbRouterAddress *address, EbChatMessage *message)
{
    if (address->record == NULL && address->stopped && self->policy != NULL) {
        refuse_quietly(self, message, address->thread,
                       "this session was ended with !stop and is not continued: begin a new one in the channel");
        return;
    }
    if (address->record != NULL && address->role < EB_ROLE_GUEST) {
        g_autofree char *text =
            g_strdup_printf("you are not invited to this session: its owner <@%s> can let you in with `!allow <@%s>`; "
                            "until then the agent does not get what you say",
                            address->record->owner, message->author_id);
        refuse_quietly(self, message, address->thread, text);
        return;
    }
    if (self->policy != NULL && message->text != NULL && *message->text != '\0' && message->attachments->len == 0 &&
        eb_session_manager_answer(self->manager, self->name, address->thread, message->author_id, message->text,
                                  message->sent_unix_ms) != EB_SESSION_ANSWER_NONE) {
        eb_router_done(self, message);
        return;
    }
    if (address->session != NULL && eb_session_is_ending(address->session)) {
        hold(self, message, address->thread);
        return;
    }
    if (continue_as_told(self, address, message))
        return;
    if ((message->text == NULL || *message->text == '\0') && message->attachments->len == 0 && message->note != NULL) {
        g_autofree char *text = g_strdup_printf("I cannot read %s: say it in words", message->note);
        eb_router_answer(self, message, text);
        eb_router_done(self, message);
        return;
    }
    if (address->session != NULL || address->record != NULL) {
        eb_router_give(self, address, message, message->text, EB_ROUTER_SAY);
        return;
    }
    if (self->policy != NULL) {
        g_autoptr(GError) error = eb_error_new(EB_ERROR_NOT_FOUND, "session.none",
                                               "there is no session here any more: begin one in the channel");
        eb_router_refuse(self, message, address->thread, error);
        return;
    }
    g_autoptr(EbOpening) opening = accept_opening(self, message, address->thread);
    if (opening != NULL)
        open_session(self, message, opening, address->thread);
}

static gboolean
is_late(EbRouter *self, const EbChatMessage *message)
{
    if (!message->replayed || self->policy == NULL || self->policy->late_ms == 0 || message->sent_unix_ms <= 0)
        return FALSE;
    gint64 age_ms = g_get_real_time() / 1000 - message->sent_unix_ms;
    return age_ms > 0 && (guint64)age_ms > self->policy->late_ms;
}

void
eb_router_dispatch(EbRouter *self, EbChatMessage *message)
{
    EbRouterAddress address = eb_router_address(self, message);
    /* Somebody nobody would have listened to is not told that it was too late. */
    if (is_late(self, message) && (address.record == NULL || address.role >= EB_ROLE_GUEST)) {
        eb_router_note_late(self, message);
        return;
    }
    /* A run that died while it opened a thread left what was said there since behind the message that opens it. */
    if (self->policy != NULL && address.thread != NULL && address.record == NULL && !address.stopped &&
        self->opening > 0) {
        hold(self, message, address.thread);
        return;
    }
    if (eb_router_command(self, message))
        return;
    if (address.thread == NULL)
        open_thread(self, message);
    else
        dispatch_in_thread(self, &address, message);
}

/* --- what an earlier run left --- */

static void
on_settled(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbThreadOpening *told = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *id = eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, &error);
    if (error != NULL)
        eb_debug("a message could not be sent: %s", error->message);
    if (told->self->manager != NULL)
        eb_router_done(told->self, told->message);
    opening_free(told);
}

/* Told first, then done: a kill between tells it twice, and never not at all. */
static void
settle(EbRouter *self, EbJournalEntry *entry, const char *thread, const char *text)
{
    EbThreadOpening *told = g_new0(EbThreadOpening, 1);
    eb_log_step("message.told", "EB_REASON", entry->message->id);
    told->self = g_object_ref(self);
    told->message = eb_chat_message_ref(entry->message);
    const char *place = thread != NULL || (self->caps & EB_CHAT_CAP_THREADS) != 0 ? thread : EB_ROUTER_MAIN_THREAD;
    g_autoptr(EbChatPost) post = eb_chat_post_new(place, EB_CHAT_POST_NOTICE, text);
    post->final = TRUE;
    post->reply_to = g_strdup(eb_router_raw_id(self, entry->message->id));
    eb_chat_transport_post_async(self->transport, post, self->cancellable, on_settled, told);
    if (!eb_router_is_action(entry->message))
        eb_router_react(self, entry->message->thread, entry->message->id, EB_CHAT_SYMBOL_FAILED);
}

static gboolean
is_fresh(EbRouter *self, const EbChatMessage *message)
{
    guint64 limit_ms = self->policy != NULL && self->policy->late_ms > 0
                           ? self->policy->late_ms
                           : eb_config_get_session(self->manager->parts->config)->max_queue_wait_ms;
    gint64 age_ms = g_get_real_time() / 1000 - message->sent_unix_ms;
    return age_ms < 0 || (guint64)age_ms <= limit_ms;
}

void
eb_router_continue_entry(EbRouter *self, EbJournalEntry *entry)
{
    EbSessionRecord *record =
        entry->session != NULL ? g_hash_table_lookup(self->manager->records, entry->session) : NULL;
    const char *thread = record != NULL ? record->thread : entry->message->thread;
    /* The operator's lists may have changed since: who may not speak by now meets silence, as everybody who may not. */
    if (eb_role_of(self->policy, NULL, NULL, entry->message->author_id) < EB_ROLE_ANYONE) {
        eb_router_done(self, entry->message);
        return;
    }
    if (entry->state == EB_JOURNAL_STARTED && is_fresh(self, entry->message) &&
        eb_router_continue_stop(self, entry->message))
        return;
    if (entry->state == EB_JOURNAL_RECEIVED && is_fresh(self, entry->message)) {
        EbRouterAddress address = eb_router_address(self, entry->message);
        gboolean opened_one = record != NULL && address.thread == NULL && record->agent_session != NULL &&
                              g_strcmp0(record->end_reason, eb_session_end_to_string(EB_SESSION_END_STOPPED)) != 0;
        if (!opened_one) {
            eb_router_dispatch(self, entry->message);
            return;
        }
        /* It opened that session, whose agent was never given it. */
        g_autoptr(EbOpening) opening = read_opening(self, entry->message, NULL);
        address.record = record;
        address.session = eb_session_manager_find_live(self->manager, self->name, record->thread);
        eb_router_give(self, &address, entry->message, opening != NULL ? opening->prompt : entry->message->text,
                       EB_ROUTER_SAY);
        return;
    }
    settle(self, entry, thread,
           entry->state == EB_JOURNAL_STARTED
               ? "the service was restarted in the middle of this: what was done until then is in the project; say it "
                 "again to go on"
               : "this was not handled before the service was restarted, and now it is too late: say it again if it "
                 "still matters");
}
