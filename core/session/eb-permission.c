/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-permission.h"

#include "core/session/eb-answer.h"

#include <string.h>

#define MAX_LABEL_BYTES 200
#define MAX_ID_BYTES 64
#define MAX_DIFFS 8

struct _EbPermission {
    GObject parent_instance;
    EbAcpPermission *question;
    EbChatTransport *transport;
    EbChatQuestion *shown;
    GPtrArray *choices; /* (element-type utf8): ids shown, by the index of the option */
    char *title;
    GCancellable *cancellable;
    gulong withdrawn;
    gboolean done;
};

G_DEFINE_FINAL_TYPE(EbPermission, eb_permission, G_TYPE_OBJECT)

enum { SIGNAL_ANSWERED, N_SIGNALS };
static guint signals[N_SIGNALS];

const EbAcpOption *
eb_permission_reject_option(GPtrArray *options)
{
    static const char *const kinds[] = {"reject_once", "reject_always"};
    for (guint k = 0; k < G_N_ELEMENTS(kinds); k++)
        for (guint i = 0; i < options->len; i++) {
            const EbAcpOption *option = options->pdata[i];
            if (g_strcmp0(option->kind, kinds[k]) == 0)
                return option;
        }
    return NULL;
}

/* What a person chooses by: the agent's own id where a chat can carry it, else a number. */
static char *
choice_id(EbPermission *self, const EbAcpOption *option, guint index)
{
    gboolean plain = option->id != NULL && *option->id != '\0' && strlen(option->id) <= MAX_ID_BYTES;
    for (const char *at = option->id; plain && *at != '\0'; at++)
        plain = g_ascii_isalnum(*at) || strchr("._:-", *at) != NULL;
    for (guint i = 0; plain && i < self->choices->len; i++)
        plain = !g_str_equal(self->choices->pdata[i], option->id);
    return plain ? g_strdup(option->id) : g_strdup_printf("option-%u", index + 1);
}

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

EbPermission *
eb_permission_new(EbAcpPermission *question, EbChatTransport *transport, EbRenderer *renderer, const char *thread,
                  const char *const *answerers)
{
    EbPermission *self = g_object_new(EB_TYPE_PERMISSION, NULL);
    self->question = g_object_ref(question);
    self->transport = g_object_ref(transport);
    const EbAcpTool *tool = eb_acp_permission_get_tool(question);
    self->title = tool != NULL ? eb_renderer_tool_line(renderer, tool) : g_strdup("a permission");
    g_autofree char *text = g_strdup_printf("The agent asks: %s", self->title);
    self->shown = eb_chat_question_new(thread, text);
    GPtrArray *options = eb_acp_permission_get_options(question);
    for (guint i = 0; i < options->len && i < EB_PERMISSION_MAX_OPTIONS; i++) {
        const EbAcpOption *option = options->pdata[i];
        char *id = choice_id(self, option, i);
        g_ptr_array_add(self->choices, id);
        g_autofree char *label = eb_log_escape(option->name != NULL ? option->name : option->id, -1, MAX_LABEL_BYTES);
        eb_chat_question_add_choice(self->shown, id, label, option->kind);
    }
    if (answerers != NULL) {
        self->shown->answerers = g_ptr_array_new_with_free_func(g_free);
        for (guint i = 0; answerers[i] != NULL; i++)
            g_ptr_array_add(self->shown->answerers, g_strdup(answerers[i]));
    }
    if (tool != NULL) {
        self->shown->data = eb_renderer_tool_data(renderer, tool);
        add_diffs(renderer, tool, self->shown->data);
    }
    return self;
}

static void
finish(EbPermission *self, const char *option_id, const char *outcome)
{
    if (self->done)
        return;
    self->done = TRUE;
    g_autoptr(EbPermission) alive = g_object_ref(self);
    g_autoptr(GError) error = NULL;
    if (eb_acp_permission_is_open(self->question) && !eb_acp_permission_answer(self->question, option_id, &error))
        eb_warning("the agent could not be given an answer: %s", error->message);
    g_cancellable_cancel(self->cancellable);
    g_signal_emit(self, signals[SIGNAL_ANSWERED], 0, outcome, option_id);
}

static const EbAcpOption *
find_choice(EbPermission *self, const char *id)
{
    GPtrArray *options = eb_acp_permission_get_options(self->question);
    for (guint i = 0; i < self->choices->len && i < options->len; i++)
        if (g_str_equal(self->choices->pdata[i], id))
            return options->pdata[i];
    return NULL;
}

/* A person chose; FALSE when there is no such choice. @outcome: (nullable): for a chat that has not heard of it */
static gboolean
decide(EbPermission *self, const char *choice, const char *outcome)
{
    const EbAcpOption *option = choice != NULL ? find_choice(self, choice) : NULL;
    if (option == NULL)
        return FALSE;
    gboolean allowed = option->kind != NULL && g_str_has_prefix(option->kind, "allow");
    gboolean rejected = option->kind != NULL && g_str_has_prefix(option->kind, "reject");
    g_free(self->shown->outcome);
    self->shown->outcome = g_strdup(outcome);
    finish(self, option->id, allowed ? "allowed" : rejected ? "rejected" : "answered");
    return TRUE;
}

static void
on_asked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbPermission) self = EB_PERMISSION(user_data);
    g_autoptr(GError) error = NULL;
    g_autofree char *id = eb_chat_transport_ask_finish(EB_CHAT_TRANSPORT(source), result, NULL, &error);
    if (self->done)
        return;
    if (decide(self, id, NULL))
        return;
    /* Nobody answered, or the chat cannot ask: refusing one call is kinder than ending the turn ("cancelled"). */
    if (error != NULL && error->code != EB_ERROR_TIMEOUT && error->code != EB_ERROR_CANCELLED)
        eb_warning("the chat could not ask: %s", error->message);
    const EbAcpOption *reject = eb_permission_reject_option(eb_acp_permission_get_options(self->question));
    finish(self, reject != NULL ? reject->id : NULL, "timeout");
}

static void
on_withdrawn(EbAcpPermission *question, gpointer user_data)
{
    finish(EB_PERMISSION(user_data), NULL, "withdrawn");
}

void
eb_permission_ask(EbPermission *self, guint timeout_ms)
{
    self->withdrawn = g_signal_connect_object(self->question, "withdrawn", G_CALLBACK(on_withdrawn), self, 0);
    eb_chat_transport_ask_async(self->transport, self->shown, timeout_ms, self->cancellable, on_asked,
                                g_object_ref(self));
}

void
eb_permission_set_answerers(EbPermission *self, GPtrArray *answerers)
{
    g_clear_pointer(&self->shown->answerers, g_ptr_array_unref);
    self->shown->answerers = answerers != NULL ? g_ptr_array_ref(answerers) : NULL;
}

static gboolean
may_answer(EbPermission *self, const char *author_id)
{
    GPtrArray *answerers = self->shown->answerers;
    return !self->done &&
           (answerers == NULL ||
            (author_id != NULL && g_ptr_array_find_with_equal_func(answerers, author_id, g_str_equal, NULL)));
}

EbSessionAnswer
eb_permissions_answer(GPtrArray *permissions, const char *author_id, const char *text, char **advice)
{
    EbPermission *open = NULL;
    guint n_open = 0;
    for (guint i = 0; i < permissions->len; i++) {
        if (!may_answer(permissions->pdata[i], author_id))
            continue;
        open = permissions->pdata[i];
        n_open++;
    }
    if (open == NULL)
        return EB_SESSION_ANSWER_NONE;
    g_autoptr(GPtrArray) labels = g_ptr_array_new();
    for (guint i = 0; i < open->shown->choices->len; i++)
        g_ptr_array_add(labels, ((EbChatChoice *)open->shown->choices->pdata[i])->label);
    guint index = 0;
    EbAnswerMatch match = eb_answer_match(text, labels, &index);
    if (match == EB_ANSWER_NONE)
        return EB_SESSION_ANSWER_NONE;
    if (n_open > 1) {
        *advice = g_strdup_printf("%u questions are open: press a button of the one that is meant", n_open);
        return EB_SESSION_ANSWER_UNCLEAR;
    }
    if (match == EB_ANSWER_UNCLEAR) {
        *advice = g_strdup_printf("answer with a number from 1 to %u, or with the name of a choice", labels->len);
        return EB_SESSION_ANSWER_UNCLEAR;
    }
    const EbChatChoice *choice = open->shown->choices->pdata[index];
    g_autofree char *outcome = g_strdup_printf("answered: %s", choice->label);
    decide(open, choice->id, outcome);
    return EB_SESSION_ANSWER_TAKEN;
}

void
eb_permission_close(EbPermission *self)
{
    finish(self, NULL, "cancelled");
}

const char *
eb_permission_get_title(EbPermission *self)
{
    return self->title;
}

static void
eb_permission_finalize(GObject *object)
{
    EbPermission *self = EB_PERMISSION(object);
    g_clear_object(&self->question);
    g_clear_object(&self->transport);
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->shown, eb_chat_question_unref);
    g_ptr_array_unref(self->choices);
    g_free(self->title);
    G_OBJECT_CLASS(eb_permission_parent_class)->finalize(object);
}

static void
eb_permission_class_init(EbPermissionClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_permission_finalize;
    signals[SIGNAL_ANSWERED] = g_signal_new("answered", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                            NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_STRING);
}

static void
eb_permission_init(EbPermission *self)
{
    self->cancellable = g_cancellable_new();
    self->choices = g_ptr_array_new_with_free_func(g_free);
}
