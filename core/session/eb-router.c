/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-router.h"

#include "core/session/eb-project-name.h"
#include "core/state/eb-journal.h"

#define MAX_TITLE_CHARACTERS 90
#define MAX_ID_BYTES 200

struct _EbRouter {
    GObject parent_instance;
    EbSessionManager *manager; /* not owned; NULL when closed */
    char *name;
    EbChatTransport *transport;
    EbChatCaps caps;
    GCancellable *cancellable;
    GPtrArray *held; /* (element-type EbChatMessage), at most EB_ROUTER_MAX_HELD */
};

G_DEFINE_FINAL_TYPE(EbRouter, eb_router, G_TYPE_OBJECT)

static void dispatch(EbRouter *self, EbChatMessage *message);

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

/* --- telling, without a session --- */

static void
on_told(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *id = eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, &error);
    if (error != NULL)
        eb_debug("a message could not be sent: %s", error->message);
}

static void
tell(EbRouter *self, const char *thread, EbChatPostKind kind, const char *text)
{
    g_autofree char *masked = eb_redact_set_mask(self->manager->parts->secrets, text, -1);
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, kind, masked);
    post->final = TRUE;
    eb_chat_transport_post_async(self->transport, post, self->cancellable, on_told, NULL);
}

/* Whoever waits for a turn hears that there is none. */
static void
refuse(EbRouter *self, EbChatMessage *message, const char *thread, const GError *error)
{
    tell(self, thread, EB_CHAT_POST_ERROR, error->message);
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_END, "");
    post->final = TRUE;
    post->data = json_object_new();
    json_object_set_string_member(post->data, "stop_reason", "error");
    json_object_set_string_member(post->data, "error", error->message);
    json_object_set_int_member(post->data, "code", error->code);
    if (eb_error_get_reason(error) != NULL)
        json_object_set_string_member(post->data, "reason", eb_error_get_reason(error));
    eb_chat_transport_post_async(self->transport, post, self->cancellable, on_told, NULL);
    eb_journal_mark(self->manager->parts->store, self->name, message->id, EB_JOURNAL_DONE, NULL);
    eb_session_manager_note_error(self->manager, error->message);
    g_signal_emit_by_name(self->manager, "session-ended", NULL, thread, "startup failed", error);
}

/* --- sessions --- */

static void
give_prompt(EbRouter *self, EbSession *session, EbChatMessage *message)
{
    g_autoptr(GError) error = NULL;
    EbSessionRecord *record = eb_session_get_record(session);
    EbPrompt *prompt = eb_prompt_new(message->id, message->author_id, message->text != NULL ? message->text : "");
    eb_journal_mark(self->manager->parts->store, self->name, message->id, EB_JOURNAL_RECEIVED, record->id);
    if (eb_session_prompt(session, prompt, &error))
        return;
    tell(self, record->thread, EB_CHAT_POST_ERROR, error->message);
    eb_journal_mark(self->manager->parts->store, self->name, message->id, EB_JOURNAL_DONE, record->id);
}

static void
open_session(EbRouter *self, EbChatMessage *message, const char *thread)
{
    const char *project = eb_json_get_string(message->extra, "project");
    const char *agent = eb_json_get_string(message->extra, "agent");
    g_autofree char *id = eb_session_id_new();
    g_autoptr(GError) error = NULL;
    if (project != NULL && !eb_project_name_check(project, &error)) {
        refuse(self, message, thread, error);
        return;
    }
    if (message->text == NULL || *message->text == '\0') {
        error = eb_error_new(EB_ERROR_INVALID, "prompt.size", "an errand needs a text");
        refuse(self, message, thread, error);
        return;
    }
    const EbSessionConfig *config = eb_config_get_session(self->manager->parts->config);
    g_autoptr(EbSessionRecord) record =
        eb_session_record_new(id, project != NULL ? project : id, agent != NULL ? agent : config->agent);
    record->model = g_strdup(eb_json_get_string(message->extra, "model"));
    record->provider = g_strdup(eb_json_get_string(message->extra, "provider"));
    record->transport = g_strdup(self->name);
    record->thread = g_strdup(thread);
    record->owner = g_strdup(message->author_id);
    EbSession *session = eb_session_manager_begin(self->manager, record, TRUE, self->transport);
    give_prompt(self, session, message);
}

static gboolean
continue_session(EbRouter *self, EbChatMessage *message, const char *thread)
{
    gboolean asked = eb_json_get_bool(message->extra, "resume", FALSE);
    gboolean forbidden = !asked && eb_json_get_node(message->extra, "resume") != NULL;
    EbSessionRecord *record =
        forbidden ? NULL : eb_session_manager_find_record(self->manager, self->name, thread, asked);
    if (record == NULL && asked) {
        g_autoptr(GError) error =
            eb_error_new(EB_ERROR_NOT_FOUND, "session.unknown", "there is no session here that could be continued");
        refuse(self, message, thread, error);
        return TRUE;
    }
    if (record == NULL)
        return FALSE;
    EbSession *session = eb_session_manager_begin(self->manager, record, FALSE, self->transport);
    give_prompt(self, session, message);
    return TRUE;
}

typedef struct {
    EbRouter *self;
    EbChatMessage *message;
} EbThreadOpening;

static void
on_thread(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbThreadOpening *opening = user_data;
    g_autoptr(EbRouter) self = opening->self;
    g_autoptr(EbChatMessage) message = opening->message;
    g_free(opening);
    g_autoptr(GError) error = NULL;
    g_autofree char *thread = eb_chat_transport_open_thread_finish(EB_CHAT_TRANSPORT(source), result, &error);
    if (self->manager == NULL)
        return; /* the journal brings the message back */
    if (thread == NULL) {
        eb_warning("no thread could be opened: %s", error->message);
        eb_session_manager_note_error(self->manager, error->message);
        eb_journal_mark(self->manager->parts->store, self->name, message->id, EB_JOURNAL_DONE, NULL);
        return;
    }
    open_session(self, message, thread);
}

static void
open_thread(EbRouter *self, EbChatMessage *message)
{
    const char *project = eb_json_get_string(message->extra, "project");
    g_autofree char *valid = g_utf8_make_valid(message->text != NULL ? message->text : "", -1);
    g_auto(GStrv) lines = g_strsplit(g_strstrip(valid), "\n", 2);
    g_autofree char *line = eb_log_escape(lines[0] != NULL ? lines[0] : "", -1, 400);
    g_autofree char *whole = project != NULL ? g_strdup_printf("%s: %s", project, line) : g_strdup(line);
    g_autofree char *title = g_utf8_substring(whole, 0, MIN(g_utf8_strlen(whole, -1), MAX_TITLE_CHARACTERS));
    EbThreadOpening *opening = g_new0(EbThreadOpening, 1);
    opening->self = g_object_ref(self);
    opening->message = eb_chat_message_ref(message);
    eb_chat_transport_open_thread_async(self->transport, message->id, *title != '\0' ? title : "errand",
                                        self->cancellable, on_thread, opening);
}

static void
dispatch(EbRouter *self, EbChatMessage *message)
{
    const char *thread = message->thread;
    if (thread == NULL && (self->caps & EB_CHAT_CAP_THREADS) != 0) {
        open_thread(self, message);
        return;
    }
    if (thread == NULL)
        thread = EB_ROUTER_MAIN_THREAD;
    EbSession *session = eb_session_manager_find_live(self->manager, self->name, thread);
    if (session != NULL && !eb_session_is_ending(session)) {
        give_prompt(self, session, message);
        return;
    }
    if (session != NULL) {
        if (self->held->len < EB_ROUTER_MAX_HELD) {
            g_ptr_array_add(self->held, eb_chat_message_ref(message));
            return;
        }
        g_autoptr(GError) error = eb_error_new(EB_ERROR_BUSY, "session.ending", "the session here is just ending");
        refuse(self, message, thread, error);
        return;
    }
    if (!continue_session(self, message, thread))
        open_session(self, message, thread);
}

void
eb_router_session_ended(EbRouter *self, const char *thread)
{
    g_autoptr(GPtrArray) ready = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    for (guint i = 0; i < self->held->len;) {
        EbChatMessage *message = self->held->pdata[i];
        const char *own = message->thread != NULL ? message->thread : EB_ROUTER_MAIN_THREAD;
        if (g_strcmp0(own, thread) == 0)
            g_ptr_array_add(ready, g_ptr_array_steal_index(self->held, i));
        else
            i++;
    }
    for (guint i = 0; i < ready->len && self->manager != NULL; i++)
        dispatch(self, ready->pdata[i]);
}

/* --- messages --- */

typedef struct {
    EbRouter *self;
    EbChatMessage *message;
} EbArrival;

static void
on_journaled(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbArrival *arrival = user_data;
    g_autoptr(EbRouter) self = arrival->self;
    g_autoptr(EbChatMessage) message = arrival->message;
    g_free(arrival);
    g_autoptr(GError) error = NULL;
    gboolean repeat = FALSE;
    gboolean ok = eb_journal_receive_finish(EB_STORE(source), result, &repeat, &error);
    if (self->manager == NULL || (ok && repeat))
        return;
    if (!ok) {
        /* Nothing is acted on that a restart could do twice or lose. */
        refuse(self, message, message->thread != NULL ? message->thread : EB_ROUTER_MAIN_THREAD, error);
        return;
    }
    dispatch(self, message);
}

static void
on_message(EbChatTransport *transport, EbChatMessage *message, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager == NULL || message->id == NULL || message->author_id == NULL)
        return;
    if (strlen(message->id) > MAX_ID_BYTES)
        return;
    EbArrival *arrival = g_new0(EbArrival, 1);
    arrival->self = g_object_ref(self);
    if ((self->caps & EB_CHAT_CAP_HISTORY) != 0) {
        arrival->message = eb_chat_message_ref(message);
    } else {
        /* A transport that never repeats itself may count from 1 in every run. */
        g_autofree char *id = g_strdup_printf("%s/%s", self->manager->parts->run_id, message->id);
        arrival->message = eb_chat_message_new(id, message->thread, message->author_id, message->text);
        arrival->message->sent_unix_ms = message->sent_unix_ms;
        arrival->message->extra = message->extra != NULL ? json_object_ref(message->extra) : NULL;
    }
    eb_journal_receive_async(self->manager->parts->store, self->name, arrival->message, NULL, on_journaled, arrival);
}

static void
on_open_entries(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbRouter) self = EB_ROUTER(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = eb_journal_open_finish(EB_STORE(source), result, &error);
    if (entries == NULL) {
        eb_warning("the journal could not be read: %s", error->message);
        return;
    }
    for (guint i = 0; i < entries->len && self->manager != NULL; i++) {
        const EbJournalEntry *entry = entries->pdata[i];
        EbSessionParts *parts = self->manager->parts;
        const char *thread = entry->message->thread != NULL ? entry->message->thread : EB_ROUTER_MAIN_THREAD;
        gint64 age_ms = g_get_real_time() / 1000 - entry->message->sent_unix_ms;
        gboolean fresh = age_ms >= 0 && (guint64)age_ms < eb_config_get_session(parts->config)->max_queue_wait_ms;
        if (entry->state == EB_JOURNAL_RECEIVED && fresh) {
            dispatch(self, entry->message);
            continue;
        }
        eb_journal_mark(parts->store, self->name, entry->message->id, EB_JOURNAL_DONE, NULL);
        tell(
            self, thread, EB_CHAT_POST_NOTICE,
            entry->state == EB_JOURNAL_STARTED
                ? "the service was restarted in the middle of a turn: what it did until then is in the project; say it "
                  "again to go on"
                : "a message from before the service was restarted was not handled: say it again if it still matters");
    }
}

static void
stop_session(EbRouter *self, const char *thread)
{
    EbSession *session =
        eb_session_manager_find_live(self->manager, self->name, thread != NULL ? thread : EB_ROUTER_MAIN_THREAD);
    if (session != NULL)
        eb_session_end(session, EB_SESSION_END_STOPPED, NULL);
}

static void
on_interrupt(EbChatTransport *transport, const char *thread, guint count, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager == NULL)
        return;
    EbSession *session =
        eb_session_manager_find_live(self->manager, self->name, thread != NULL ? thread : EB_ROUTER_MAIN_THREAD);
    if (session == NULL)
        return;
    if (count > 1 || !eb_session_interrupt(session))
        stop_session(self, thread);
}

static void
on_action(EbChatTransport *transport, EbChatMessage *message, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    const char *command = eb_json_get_string(message->extra, "command");
    if (self->manager == NULL || command == NULL)
        return;
    if (g_str_equal(command, "stop"))
        stop_session(self, message->thread);
    else if (g_str_equal(command, "interrupt"))
        on_interrupt(transport, message->thread, 1, self);
}

static void
on_withdrawn(EbChatTransport *transport, const char *thread, const char *message_id, gpointer user_data)
{
    EbRouter *self = EB_ROUTER(user_data);
    if (self->manager == NULL)
        return;
    EbSession *session =
        eb_session_manager_find_live(self->manager, self->name, thread != NULL ? thread : EB_ROUTER_MAIN_THREAD);
    if (session != NULL)
        eb_session_withdraw(session, message_id);
}

void
eb_router_close(EbRouter *self)
{
    self->manager = NULL;
    g_signal_handlers_disconnect_by_data(self->transport, self);
}

static void
eb_router_dispose(GObject *object)
{
    EbRouter *self = EB_ROUTER(object);
    if (self->transport != NULL)
        g_signal_handlers_disconnect_by_data(self->transport, self);
    g_clear_object(&self->transport);
    G_OBJECT_CLASS(eb_router_parent_class)->dispose(object);
}

static void
eb_router_finalize(GObject *object)
{
    EbRouter *self = EB_ROUTER(object);
    g_object_unref(self->cancellable);
    g_ptr_array_unref(self->held);
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
}

EbRouter *
eb_router_new(EbSessionManager *manager, const char *name, EbChatTransport *transport)
{
    EbRouter *self = g_object_new(EB_TYPE_ROUTER, NULL);
    self->manager = manager;
    self->name = g_strdup(name);
    self->transport = g_object_ref(transport);
    self->caps = eb_chat_transport_get_caps(transport, NULL);
    g_signal_connect_object(transport, "message", G_CALLBACK(on_message), self, 0);
    g_signal_connect_object(transport, "action", G_CALLBACK(on_action), self, 0);
    g_signal_connect_object(transport, "withdrawn", G_CALLBACK(on_withdrawn), self, 0);
    g_signal_connect_object(transport, "interrupt", G_CALLBACK(on_interrupt), self, 0);
    eb_journal_open_async(manager->parts->store, name, NULL, on_open_entries, g_object_ref(self));
    return self;
}
