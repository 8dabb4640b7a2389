/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-permission.h"

#include "core/base/eb-source.h"
#include "core/session/eb-answer.h"

#include <string.h>

#define MAX_DIFFS 8
/* The time is kept here; a transport that keeps it too is only to come after us. */
#define TRANSPORT_SLACK_MS 5000

typedef enum {
    PHASE_NEW = 0,
    PHASE_WRITING,    /* the row is not written yet */
    PHASE_OPEN,       /* people are asked */
    PHASE_SETTLING,   /* a person answered; the row does not say so yet */
    PHASE_DECIDED,    /* there is an answer for whoever delivers it */
    PHASE_DELIVERING, /* the row does not say yet that the agent has it */
    PHASE_DONE,
} Phase;

struct _EbPermission {
    GObject parent_instance;
    EbAcpPermission *question; /* (nullable): the agent that waits */
    EbStore *store;
    EbChatTransport *transport;
    EbChatQuestion *shown;
    EbQuestionText *text;
    char *session;
    char *digest;
    gint64 asked_ms, expires_ms; /* unix, milliseconds */
    gint64 seen_ms;              /* from then on people can see it; 0 = not yet */
    Phase phase;
    const EbQuestionOption *decision; /* (nullable): a person's, or the refusal of one that nobody answered */
    gboolean late;                    /* nobody answered */
    char *by;
    GCancellable *cancellable; /* of the ask */
    GSource *deadline;
};

G_DEFINE_FINAL_TYPE(EbPermission, eb_permission, G_TYPE_OBJECT)

enum { SIGNAL_DECIDED, SIGNAL_ANSWERED, N_SIGNALS };
static guint signals[N_SIGNALS];

/* --- making one --- */

static void
add_diffs(EbRenderer *renderer, const EbAcpTool *tool, JsonObject *data)
{
    JsonArray *diffs = json_array_new();
    for (guint i = 0; tool->diffs != NULL && i < tool->diffs->len && i < MAX_DIFFS; i++) {
        g_autoptr(EbChatPost) post = eb_renderer_diff_post(renderer, tool->diffs->pdata[i]);
        if (post != NULL)
            json_array_add_object_element(diffs, json_object_ref(post->data));
    }
    json_object_set_array_member(data, "diffs", diffs);
}

static void
on_shown(EbChatTransport *transport, const char *id, const char *message, gpointer user_data)
{
    EbPermission *self = EB_PERMISSION(user_data);
    if (g_strcmp0(id, self->shown->id) != 0 || message == NULL || g_strcmp0(self->shown->message_id, message) == 0)
        return;
    g_free(self->shown->message_id);
    self->shown->message_id = g_strdup(message);
    if (self->seen_ms == 0)
        self->seen_ms = g_get_real_time() / 1000;
    eb_question_store_set_message(self->store, id, message);
}

/* @text, @id: (transfer full) */
static EbPermission *
make(EbStore *store, EbChatTransport *transport, const char *session, const char *digest, EbQuestionText *text,
     char *id)
{
    EbPermission *self = g_object_new(EB_TYPE_PERMISSION, NULL);
    self->store = g_object_ref(store);
    self->transport = g_object_ref(transport);
    self->session = g_strdup(session);
    self->digest = g_strdup(digest);
    self->text = text;
    g_autofree char *words = g_strdup_printf("The agent asks: %s", text->title);
    self->shown = eb_chat_question_new(text->thread, words);
    self->shown->id = id;
    self->shown->data = text->data != NULL ? json_object_ref(text->data) : NULL;
    for (guint i = 0; i < text->options->len; i++) {
        const EbQuestionOption *option = text->options->pdata[i];
        eb_chat_question_add_choice(self->shown, option->choice, option->label, option->kind);
    }
    g_signal_connect_object(transport, "asked", G_CALLBACK(on_shown), self, 0);
    return self;
}

EbPermission *
eb_permission_new(EbAcpPermission *question, EbStore *store, EbChatTransport *transport, EbRenderer *renderer,
                  EbRedactSet *secrets, const char *session, const char *thread, const char *digest)
{
    const EbAcpTool *tool = eb_acp_permission_get_tool(question);
    g_autofree char *title = tool != NULL ? eb_renderer_tool_line(renderer, tool) : g_strdup("a permission");
    EbQuestionText *text = eb_question_text_new(thread, title);
    eb_question_text_add_options(text, eb_acp_permission_get_options(question));
    if (tool != NULL) {
        text->data = eb_renderer_tool_data(renderer, tool);
        add_diffs(renderer, tool, text->data);
        g_autofree char *input = eb_question_input(tool, secrets);
        if (input != NULL)
            json_object_set_string_member(text->data, "input", input);
    }
    EbPermission *self = make(store, transport, session, digest, text, g_uuid_string_random());
    self->question = g_object_ref(question);
    return self;
}

EbPermission *
eb_permission_new_from_row(const EbQuestionRow *row, EbStore *store, EbChatTransport *transport, GError **error)
{
    EbQuestionText *text = eb_question_text_read(row->body, error);
    if (text == NULL)
        return NULL;
    EbPermission *self = make(store, transport, row->session, row->digest, text, g_strdup(row->id));
    self->shown->message_id = g_strdup(row->message);
    self->asked_ms = row->asked_ms;
    self->seen_ms = row->message != NULL ? row->asked_ms : 0;
    self->expires_ms = row->expires_ms;
    if (row->state != EB_QUESTION_ANSWERED)
        return self;
    self->decision = eb_question_text_find_option(text, row->answer);
    self->by = g_strdup(row->answered_by);
    self->phase = PHASE_DECIDED;
    if (self->decision != NULL)
        return self;
    eb_set_error(error, EB_ERROR_INTEGRITY, "question.body", "the answer that is kept was never offered");
    g_object_unref(self);
    return NULL;
}

void
eb_permission_set_answerers(EbPermission *self, GPtrArray *answerers)
{
    g_clear_pointer(&self->shown->answerers, g_ptr_array_unref);
    self->shown->answerers = answerers != NULL ? g_ptr_array_ref(answerers) : NULL;
}

/* --- the end --- */

static void
set_outcome(EbPermission *self, const char *outcome)
{
    g_free(self->shown->outcome);
    self->shown->outcome = g_strdup(outcome);
}

static void
finish(EbPermission *self, const char *option, const char *outcome)
{
    if (self->phase == PHASE_DONE)
        return;
    self->phase = PHASE_DONE;
    g_autoptr(EbPermission) alive = g_object_ref(self);
    g_autoptr(GError) error = NULL;
    eb_clear_source(&self->deadline);
    if (self->question != NULL && eb_acp_permission_is_open(self->question) &&
        !eb_acp_permission_answer(self->question, option, &error))
        eb_warning("the agent could not be given an answer: %s", error->message);
    g_cancellable_cancel(self->cancellable);
    g_signal_emit(self, signals[SIGNAL_ANSWERED], 0, outcome, option, self->by);
}

void
eb_permission_close(EbPermission *self, const char *why)
{
    if (self->phase == PHASE_DONE)
        return;
    eb_question_store_end(self->store, self->shown->id, EB_QUESTION_CLOSED);
    if (self->shown->outcome == NULL)
        set_outcome(self, why != NULL ? why : "closed: the turn is over");
    finish(self, NULL, "cancelled");
}

void
eb_permission_let_go(EbPermission *self)
{
    g_clear_pointer(&self->shown->outcome, g_free);
    finish(self, NULL, "left");
}

static void
on_withdrawn(EbAcpPermission *question, gpointer user_data)
{
    EbPermission *self = EB_PERMISSION(user_data);
    if (self->phase == PHASE_DONE)
        return;
    eb_question_store_end(self->store, self->shown->id, EB_QUESTION_CLOSED);
    set_outcome(self, "taken back by the agent");
    finish(self, NULL, "withdrawn");
}

/* --- the answer --- */

static void
set_decided(EbPermission *self)
{
    self->phase = PHASE_DECIDED;
    g_signal_emit(self, signals[SIGNAL_DECIDED], 0);
}

/* Nobody answered, or the chat cannot ask: refusing one call is kinder than ending the turn ("cancelled"). */
static void
refuse(EbPermission *self, const char *outcome)
{
    if (self->phase != PHASE_WRITING && self->phase != PHASE_OPEN)
        return;
    eb_question_store_end(self->store, self->shown->id, EB_QUESTION_EXPIRED);
    set_outcome(self, outcome);
    self->late = TRUE;
    self->decision = eb_question_text_refusal(self->text);
    if (self->question == NULL) {
        finish(self, NULL, "timeout");
        return;
    }
    g_cancellable_cancel(self->cancellable);
    set_decided(self);
}

static void
on_answer_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbPermission) self = EB_PERMISSION(user_data);
    g_autoptr(GError) error = NULL;
    gboolean moved = FALSE;
    if (!eb_question_store_move_finish(EB_STORE(source), result, &moved, &error))
        eb_warning("an answer could not be written down: %s", error->message);
    if (self->phase == PHASE_SETTLING)
        set_decided(self);
}

/* A person chose. @outcome: (nullable): for a chat that has not heard of it */
static gboolean
decide(EbPermission *self, const char *choice, const char *by, const char *outcome)
{
    const EbQuestionOption *option = eb_question_text_find(self->text, choice);
    if (self->phase != PHASE_OPEN || option == NULL)
        return FALSE;
    self->phase = PHASE_SETTLING;
    self->decision = option;
    g_free(self->by);
    self->by = g_strdup(by);
    if (outcome != NULL) {
        set_outcome(self, outcome);
        g_cancellable_cancel(self->cancellable);
    }
    eb_question_store_move_async(self->store, self->shown->id, EB_QUESTION_OPEN, EB_QUESTION_ANSWERED, option->option,
                                 by, on_answer_written, g_object_ref(self));
    return TRUE;
}

static void
on_delivery_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbPermission) self = EB_PERMISSION(user_data);
    g_autoptr(GError) error = NULL;
    gboolean moved = FALSE;
    if (!eb_question_store_move_finish(EB_STORE(source), result, &moved, &error))
        eb_warning("that an agent has its answer could not be written down: %s", error->message);
    if (self->phase == PHASE_DELIVERING)
        finish(self, self->decision->option, eb_question_option_outcome(self->decision));
}

void
eb_permission_deliver(EbPermission *self)
{
    if (self->phase != PHASE_DECIDED)
        return;
    if (self->late) {
        finish(self, self->decision != NULL ? self->decision->option : NULL, "timeout");
        return;
    }
    self->phase = PHASE_DELIVERING;
    eb_question_store_move_async(self->store, self->shown->id, EB_QUESTION_ANSWERED, EB_QUESTION_APPLIED, NULL, NULL,
                                 on_delivery_written, g_object_ref(self));
}

/* --- asking --- */

static gboolean
may_answer(EbPermission *self, const char *author_id)
{
    GPtrArray *answerers = self->shown->answerers;
    return answerers == NULL ||
           (author_id != NULL && g_ptr_array_find_with_equal_func(answerers, author_id, g_str_equal, NULL));
}

static void
on_asked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbPermission) self = EB_PERMISSION(user_data);
    g_autoptr(GError) error = NULL;
    g_autofree char *by = NULL;
    g_autofree char *choice = eb_chat_transport_ask_finish(EB_CHAT_TRANSPORT(source), result, &by, &error);
    if (self->phase != PHASE_OPEN)
        return;
    if (choice != NULL && !may_answer(self, by)) {
        eb_warning("a question was answered by somebody who may not: %s", by != NULL ? by : "nobody knows who");
        refuse(self, "answered by somebody who may not: refused");
        return;
    }
    if (decide(self, choice, by, NULL))
        return;
    if (error != NULL && error->code != EB_ERROR_TIMEOUT && error->code != EB_ERROR_CANCELLED)
        eb_warning("the chat could not ask: %s", error->message);
    refuse(self, "expired: refused");
}

static gboolean
on_deadline(gpointer data)
{
    g_autoptr(EbPermission) self = g_object_ref(EB_PERMISSION(data));
    eb_clear_source(&self->deadline);
    if (self->phase == PHASE_DECIDED && self->question == NULL) {
        /* Answered in time, but its agent did not ask again in time. */
        eb_question_store_end(self->store, self->shown->id, EB_QUESTION_EXPIRED);
        finish(self, NULL, "timeout");
        return G_SOURCE_REMOVE;
    }
    refuse(self, "expired: refused");
    return G_SOURCE_REMOVE;
}

static guint
time_left_ms(EbPermission *self)
{
    gint64 left = self->expires_ms - g_get_real_time() / 1000;
    return (guint)CLAMP(left, 0, G_MAXINT);
}

static void
start_asking(EbPermission *self)
{
    self->phase = PHASE_OPEN;
    eb_chat_transport_ask_async(self->transport, self->shown,
                                MIN(time_left_ms(self), G_MAXINT - TRANSPORT_SLACK_MS) + TRANSPORT_SLACK_MS,
                                self->cancellable, on_asked, g_object_ref(self));
}

static void
on_row_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbPermission) self = EB_PERMISSION(user_data);
    g_autoptr(GError) error = NULL;
    if (!eb_question_store_add_finish(EB_STORE(source), result, &error))
        eb_warning("a question could not be written down and will not outlive this run: %s", error->message);
    if (self->phase == PHASE_WRITING)
        start_asking(self);
}

static void
write_row(EbPermission *self)
{
    EbQuestionRow *row = eb_question_row_new();
    row->id = g_strdup(self->shown->id);
    row->session = g_strdup(self->session);
    row->body = eb_question_text_write(self->text);
    row->digest = g_strdup(self->digest);
    row->asked_ms = self->asked_ms;
    row->expires_ms = self->expires_ms;
    eb_question_store_add_async(self->store, row, on_row_written, g_object_ref(self));
}

static void
arm_deadline(EbPermission *self)
{
    self->deadline = g_timeout_source_new(time_left_ms(self));
    g_source_set_callback(self->deadline, on_deadline, self, NULL);
    g_source_attach(self->deadline, g_main_context_get_thread_default());
}

static void
listen_to_agent(EbPermission *self)
{
    g_signal_connect_object(self->question, "withdrawn", G_CALLBACK(on_withdrawn), self, 0);
}

void
eb_permission_ask(EbPermission *self, guint64 timeout_ms)
{
    g_return_if_fail(self->phase == PHASE_NEW || self->phase == PHASE_DECIDED);
    if (self->question != NULL) {
        listen_to_agent(self);
        self->asked_ms = g_get_real_time() / 1000;
        self->expires_ms = self->asked_ms + (gint64)MIN(timeout_ms, G_MAXINT);
        self->phase = PHASE_WRITING;
        arm_deadline(self);
        write_row(self);
        return;
    }
    arm_deadline(self);
    if (self->phase == PHASE_NEW)
        start_asking(self);
}

void
eb_permission_take_over(EbPermission *self, EbAcpPermission *question)
{
    g_return_if_fail(self->question == NULL);
    self->question = g_object_ref(question);
    listen_to_agent(self);
}

/* --- by text --- */

/* Two people answer one question, the agent asks the next between the two: the second answer is to what is no more. */
static gboolean
is_too_early(EbPermission *self, gint64 sent_ms)
{
    gboolean tells = (eb_chat_transport_get_caps(self->transport, NULL) & EB_CHAT_CAP_HISTORY) != 0;
    gint64 seen_ms = tells ? self->seen_ms : self->asked_ms;
    return sent_ms > 0 && (seen_ms == 0 || sent_ms < seen_ms);
}

EbSessionAnswer
eb_permissions_answer(GPtrArray *permissions, const char *author_id, const char *text, gint64 sent_ms, char **advice)
{
    EbPermission *open = NULL;
    guint n_open = 0;
    for (guint i = 0; i < permissions->len; i++) {
        EbPermission *permission = permissions->pdata[i];
        if (permission->phase != PHASE_OPEN || !may_answer(permission, author_id))
            continue;
        open = permission;
        n_open++;
    }
    if (open == NULL)
        return EB_SESSION_ANSWER_NONE;
    g_autoptr(GPtrArray) labels = g_ptr_array_new();
    for (guint i = 0; i < open->text->options->len; i++)
        g_ptr_array_add(labels, ((EbQuestionOption *)open->text->options->pdata[i])->label);
    guint index = 0;
    EbAnswerMatch match = eb_answer_match(text, labels, &index);
    if (match == EB_ANSWER_NONE)
        return EB_SESSION_ANSWER_NONE;
    if (n_open > 1) {
        /* A guess could allow what nobody meant. */
        *advice = g_strdup_printf("%u questions are open: answer below the one that is meant", n_open);
        return EB_SESSION_ANSWER_UNCLEAR;
    }
    if (match == EB_ANSWER_UNCLEAR) {
        *advice = g_strdup_printf("answer with a number from 1 to %u, or with the name of a choice", labels->len);
        return EB_SESSION_ANSWER_UNCLEAR;
    }
    if (is_too_early(open, sent_ms)) {
        *advice = g_strdup("that was said before this question was there: read it, and answer again");
        return EB_SESSION_ANSWER_UNCLEAR;
    }
    const EbQuestionOption *option = open->text->options->pdata[index];
    g_autofree char *outcome = g_strdup_printf("answered: %s", option->label);
    decide(open, option->choice, author_id, outcome);
    return EB_SESSION_ANSWER_TAKEN;
}

/* --- the object --- */

const char *
eb_permission_get_title(EbPermission *self)
{
    return self->text->title;
}

const char *
eb_permission_get_id(EbPermission *self)
{
    return self->shown->id;
}

const char *
eb_permission_get_session(EbPermission *self)
{
    return self->session;
}

gboolean
eb_permission_is_same(EbPermission *self, const char *session, const char *digest)
{
    return *digest != '\0' && g_str_equal(self->digest, digest) && g_str_equal(self->session, session);
}

const EbQuestionOption *
eb_permission_get_decision(EbPermission *self, const char **by)
{
    gboolean decided = self->phase >= PHASE_DECIDED;
    if (by != NULL)
        *by = decided ? self->by : NULL;
    return decided ? self->decision : NULL;
}

gboolean
eb_permission_in_time(EbPermission *self)
{
    return time_left_ms(self) > 0;
}

static void
eb_permission_dispose(GObject *object)
{
    EbPermission *self = EB_PERMISSION(object);
    eb_clear_source(&self->deadline);
    g_clear_object(&self->question);
    g_clear_object(&self->transport);
    g_clear_object(&self->store);
    G_OBJECT_CLASS(eb_permission_parent_class)->dispose(object);
}

static void
eb_permission_finalize(GObject *object)
{
    EbPermission *self = EB_PERMISSION(object);
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->shown, eb_chat_question_unref);
    g_clear_pointer(&self->text, eb_question_text_free);
    g_free(self->session);
    g_free(self->digest);
    g_free(self->by);
    G_OBJECT_CLASS(eb_permission_parent_class)->finalize(object);
}

static void
eb_permission_class_init(EbPermissionClass *klass)
{
    GType type = G_TYPE_FROM_CLASS(klass);
    G_OBJECT_CLASS(klass)->dispose = eb_permission_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_permission_finalize;
    signals[SIGNAL_DECIDED] = g_signal_new("decided", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
    signals[SIGNAL_ANSWERED] = g_signal_new("answered", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 3,
                                            G_TYPE_STRING, G_TYPE_STRING, G_TYPE_STRING);
}

static void
eb_permission_init(EbPermission *self)
{
    self->cancellable = g_cancellable_new();
}
