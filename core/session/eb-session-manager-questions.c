/* SPDX-License-Identifier: MIT */
/* Questions beyond the life of the sessions that asked them: taken up at start, and told to the session when answered. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-manager-private.h"

#include "core/session/eb-permission.h"
#include "core/session/eb-router.h"
#include "core/session/eb-session-private.h"

typedef struct {
    char *session;
    EbPrompt *prompt;
} EbDecision;

void
eb_decision_free(gpointer data)
{
    EbDecision *decision = data;
    g_free(decision->session);
    eb_prompt_free(decision->prompt);
    g_free(decision);
}

/* --- taking up --- */

typedef struct {
    EbSessionManager *self;
    char *name;
    EbChatTransport *transport;
} EbTakeUp;

const EbChatPolicy *
eb_session_manager_get_policy(EbSessionManager *self, const EbSessionRecord *record)
{
    return record->transport != NULL ? g_hash_table_lookup(self->policies, record->transport) : NULL;
}

/* (transfer full) (nullable): NULL = anyone */
static GPtrArray *
answerers_of(EbSessionManager *self, const EbSessionRecord *record)
{
    return eb_session_record_list_answerers(record, eb_session_manager_get_policy(self, record));
}

static void
take_up(EbSessionManager *self, const char *name, EbChatTransport *transport, const EbQuestionRow *row)
{
    EbSessionRecord *record = g_hash_table_lookup(self->records, row->session);
    if (record != NULL && g_strcmp0(record->transport, name) != 0)
        return; /* another transport's */
    gboolean lasting = (eb_chat_transport_get_caps(transport, NULL) & EB_CHAT_CAP_HISTORY) != 0;
    if (record == NULL || !lasting || record->agent_session == NULL) {
        eb_question_store_end(self->parts->store, row->id, EB_QUESTION_CLOSED);
        return;
    }
    g_autoptr(GPtrArray) answerers = answerers_of(self, record);
    eb_questions_take_up(self->parts->questions, self->parts->store, transport, row, answerers);
}

static void
on_rows(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbTakeUp *job = user_data;
    g_autoptr(EbSessionManager) self = job->self;
    g_autoptr(EbChatTransport) transport = job->transport;
    g_autofree char *name = job->name;
    g_free(job);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) rows = eb_question_store_load_finish(EB_STORE(source), result, &error);
    if (rows == NULL) {
        eb_warning("open questions could not be read: %s", error->message);
        return;
    }
    for (guint i = 0; i < rows->len && !self->closing; i++) {
        const EbQuestionRow *row = rows->pdata[i];
        EbSession *session = g_hash_table_lookup(self->sessions, row->session);
        /* A session that was quick to start may have asked meanwhile. */
        if (session == NULL || !eb_session_has_question(session, row->id))
            take_up(self, name, transport, row);
    }
}

void
eb_session_manager_take_up_questions(EbSessionManager *self, const char *name, EbChatTransport *transport)
{
    EbTakeUp *job = g_new0(EbTakeUp, 1);
    job->self = g_object_ref(self);
    job->name = g_strdup(name);
    job->transport = g_object_ref(transport);
    eb_question_store_load_async(self->parts->store, on_rows, job);
}

/* --- telling --- */

static EbChatTransport *
transport_of(EbSessionManager *self, const EbSessionRecord *record)
{
    return eb_session_manager_find_transport(self, record->transport);
}

/* FALSE: the session is just ending and is told when it has. */
static gboolean
tell(EbSessionManager *self, const char *id, const EbPrompt *prompt)
{
    EbSessionRecord *record = g_hash_table_lookup(self->records, id);
    EbChatTransport *transport = record != NULL ? transport_of(self, record) : NULL;
    if (transport == NULL || self->closing)
        return TRUE;
    EbSession *session = g_hash_table_lookup(self->sessions, id);
    if (session != NULL && eb_session_is_ending(session))
        return FALSE;
    /* Another session has taken the thread: the old one is not brought back for an answer. */
    if (session == NULL && eb_session_manager_find_live(self, record->transport, record->thread) != NULL)
        return TRUE;
    if (session == NULL)
        session = eb_session_manager_begin(self, record, FALSE, transport);
    g_autoptr(GError) error = NULL;
    if (!eb_session_say(session, eb_prompt_copy(prompt), &error))
        eb_session_notice(session, error->message);
    return TRUE;
}

static void
on_decided(EbQuestions *questions, EbPermission *question, gpointer user_data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(user_data);
    const char *by = NULL;
    const EbQuestionOption *answer = eb_permission_get_decision(question, &by);
    if (answer == NULL)
        return;
    g_autofree char *text =
        eb_question_resume_text(eb_permission_get_title(question), answer, eb_permission_in_time(question));
    g_autoptr(EbPrompt) prompt = eb_prompt_new(NULL, by, text);
    const char *session = eb_permission_get_session(question);
    if (tell(self, session, prompt))
        return;
    EbDecision *decision = g_new0(EbDecision, 1);
    decision->session = g_strdup(session);
    decision->prompt = g_steal_pointer(&prompt);
    g_ptr_array_add(self->decisions, decision);
}

void
eb_session_manager_connect_questions(EbSessionManager *self)
{
    g_signal_connect_object(self->parts->questions, "decided", G_CALLBACK(on_decided), self, 0);
}

void
eb_session_manager_tell_decisions(EbSessionManager *self, const char *id)
{
    for (guint i = 0; i < self->decisions->len;) {
        EbDecision *decision = self->decisions->pdata[i];
        if (g_str_equal(decision->session, id) && tell(self, id, decision->prompt))
            g_ptr_array_remove_index(self->decisions, i);
        else
            i++;
    }
}

/* --- by text, and people --- */

static void
on_told(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *id = eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, &error);
    if (error != NULL)
        eb_debug("a message could not be sent: %s", error->message);
}

EbSessionAnswer
eb_session_manager_answer(EbSessionManager *self, const char *transport, const char *thread, const char *author_id,
                          const char *text, gint64 sent_ms)
{
    EbSession *session = eb_session_manager_find_live(self, transport, thread);
    if (session != NULL)
        return eb_session_answer(session, author_id, text, sent_ms);
    EbSessionRecord *record = eb_session_manager_find_record(self, transport, thread, FALSE);
    if (record == NULL)
        return EB_SESSION_ANSWER_NONE;
    g_autofree char *advice = NULL;
    g_autoptr(GPtrArray) open = eb_questions_list(self->parts->questions, record->id);
    EbSessionAnswer answer = eb_permissions_answer(open, author_id, text, sent_ms, &advice);
    EbChatTransport *chat = transport_of(self, record);
    if (advice != NULL && chat != NULL) {
        g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_NOTICE, advice);
        post->final = TRUE;
        eb_chat_transport_post_async(chat, post, NULL, on_told, NULL);
    }
    return answer;
}

static void
on_record_saved(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (!eb_session_store_finish(EB_STORE(source), result, &error))
        eb_warning("a session's record could not be saved: %s", error->message);
}

gboolean
eb_session_manager_set_guest(EbSessionManager *self, EbSessionRecord *record, const char *id, gboolean invited)
{
    EbSession *session = g_hash_table_lookup(self->sessions, record->id);
    gboolean changed =
        session != NULL ? eb_session_set_guest(session, id, invited) : eb_session_record_set_guest(record, id, invited);
    if (changed)
        eb_host_desk_share(self->desk, record);
    if (session != NULL || !changed)
        return changed;
    g_autoptr(GPtrArray) answerers = answerers_of(self, record);
    eb_questions_set_answerers(self->parts->questions, record->id, answerers);
    eb_session_store_save_async(self->parts->store, record, NULL, on_record_saved, NULL);
    return TRUE;
}

void
eb_session_manager_set_policy(EbSessionManager *self, const char *transport, const EbChatPolicy *policy)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self) && transport != NULL);
    if (policy != NULL)
        g_hash_table_replace(self->policies, g_strdup(transport), (gpointer)policy);
    else
        g_hash_table_remove(self->policies, transport);
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, self->records);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        EbSessionRecord *record = value;
        if (g_strcmp0(record->transport, transport) != 0)
            continue;
        EbSession *session = g_hash_table_lookup(self->sessions, record->id);
        g_autoptr(GPtrArray) answerers = answerers_of(self, record);
        eb_host_desk_share(self->desk, record);
        if (session != NULL)
            eb_session_set_policy(session, policy);
        else
            eb_questions_set_answerers(self->parts->questions, record->id, answerers);
    }
}
