/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-questions.h"

#include "core/session/eb-permission.h"

struct _EbQuestions {
    GObject parent_instance;
    GPtrArray *waiting; /* (element-type EbPermission), at most EB_QUESTION_STORE_MAX */
};

G_DEFINE_FINAL_TYPE(EbQuestions, eb_questions, G_TYPE_OBJECT)

enum { SIGNAL_DECIDED, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
forget(EbQuestions *self, EbPermission *question)
{
    g_signal_handlers_disconnect_by_data(question, self);
    g_ptr_array_remove(self->waiting, question);
}

static void
on_decided(EbPermission *question, gpointer user_data)
{
    g_autoptr(EbPermission) alive = g_object_ref(question);
    g_signal_emit(user_data, signals[SIGNAL_DECIDED], 0, alive);
}

static void
on_answered(EbPermission *question, const char *outcome, const char *option, const char *by, gpointer user_data)
{
    forget(EB_QUESTIONS(user_data), question);
}

void
eb_questions_take_up(EbQuestions *self, EbStore *store, EbChatTransport *transport, const EbQuestionRow *row,
                     GPtrArray *answerers)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPermission) question = NULL;
    if (self->waiting->len < EB_QUESTION_STORE_MAX)
        question = eb_permission_new_from_row(row, store, transport, &error);
    if (question == NULL) {
        eb_warning("a question from before the restart is refused: %s", error != NULL ? error->message : "too many");
        eb_question_store_end(store, row->id, EB_QUESTION_CLOSED);
        return;
    }
    eb_permission_set_answerers(question, answerers);
    g_signal_connect_object(question, "decided", G_CALLBACK(on_decided), self, 0);
    g_signal_connect_object(question, "answered", G_CALLBACK(on_answered), self, 0);
    g_ptr_array_add(self->waiting, g_object_ref(question));
    /* Answered just before the restart: its agent has not heard of it. */
    if (row->state == EB_QUESTION_ANSWERED)
        on_decided(question, self);
    if (g_ptr_array_find(self->waiting, question, NULL))
        eb_permission_ask(question, 0);
}

EbPermission *
eb_questions_claim(EbQuestions *self, const char *session, const char *digest)
{
    for (guint i = 0; i < self->waiting->len; i++) {
        EbPermission *question = self->waiting->pdata[i];
        if (!eb_permission_is_same(question, session, digest) || !eb_permission_in_time(question))
            continue;
        g_object_ref(question);
        forget(self, question);
        return question;
    }
    return NULL;
}

GPtrArray *
eb_questions_list(EbQuestions *self, const char *session)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < self->waiting->len; i++)
        if (g_str_equal(eb_permission_get_session(self->waiting->pdata[i]), session))
            g_ptr_array_add(found, g_object_ref(self->waiting->pdata[i]));
    return found;
}

void
eb_questions_set_answerers(EbQuestions *self, const char *session, GPtrArray *answerers)
{
    g_autoptr(GPtrArray) found = eb_questions_list(self, session);
    for (guint i = 0; i < found->len; i++)
        eb_permission_set_answerers(found->pdata[i], answerers);
}

void
eb_questions_close_session(EbQuestions *self, const char *session)
{
    g_autoptr(GPtrArray) found = eb_questions_list(self, session);
    for (guint i = 0; i < found->len; i++)
        eb_permission_close(found->pdata[i], "closed: the session was ended");
}

void
eb_questions_let_go(EbQuestions *self)
{
    while (self->waiting->len > 0) {
        g_autoptr(EbPermission) question = g_object_ref(self->waiting->pdata[self->waiting->len - 1]);
        forget(self, question);
        eb_permission_let_go(question);
    }
}

guint
eb_questions_get_count(EbQuestions *self)
{
    return self->waiting->len;
}

static void
eb_questions_dispose(GObject *object)
{
    eb_questions_let_go(EB_QUESTIONS(object));
    G_OBJECT_CLASS(eb_questions_parent_class)->dispose(object);
}

static void
eb_questions_finalize(GObject *object)
{
    g_ptr_array_unref(EB_QUESTIONS(object)->waiting);
    G_OBJECT_CLASS(eb_questions_parent_class)->finalize(object);
}

static void
eb_questions_class_init(EbQuestionsClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_questions_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_questions_finalize;
    signals[SIGNAL_DECIDED] = g_signal_new("decided", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                           G_TYPE_NONE, 1, G_TYPE_OBJECT);
}

static void
eb_questions_init(EbQuestions *self)
{
    self->waiting = g_ptr_array_new_with_free_func(g_object_unref);
}

EbQuestions *
eb_questions_new(void)
{
    return g_object_new(EB_TYPE_QUESTIONS, NULL);
}
