/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-host-ask.h"

#include "core/session/eb-session-private.h"

struct _EbHostAsk {
    GObject parent_instance;
    EbChatTransport *transport;
    EbChatQuestion *question;
    EbRole least; /* who may allow; EB_ROLE_OPERATOR + 1 = nobody */
    char *host;
    gboolean second;
    gboolean left; /* for the next run */
    GCancellable *cancellable;
};

G_DEFINE_FINAL_TYPE(EbHostAsk, eb_host_ask, G_TYPE_OBJECT)

enum { SIGNAL_SHOWN, SIGNAL_ANSWERED, N_SIGNALS };
static guint signals[N_SIGNALS];

/* --- who may --- */

static EbRole
least_role(const EbSessionConfig *config)
{
    if (g_strcmp0(config->who_allows, "nobody") == 0)
        return EB_ROLE_OPERATOR + 1;
    return g_strcmp0(config->who_allows, "owners") == 0 ? EB_ROLE_OWNER : EB_ROLE_OPERATOR;
}

static gboolean
has_role(const EbSessionRecord *record, const EbChatPolicy *policy, const char *author_id, EbRole least)
{
    return least <= EB_ROLE_OPERATOR && eb_role_of(policy, record->owner, record->guests, author_id) >= least;
}

gboolean
eb_host_ask_may_allow(const EbSessionConfig *config, const EbSessionRecord *record, const EbChatPolicy *policy,
                      const char *author_id)
{
    return has_role(record, policy, author_id, least_role(config));
}

/* (transfer full) (nullable): NULL = anyone */
static GPtrArray *
list_allowers(const EbSessionRecord *record, const EbChatPolicy *policy, EbRole least)
{
    g_autoptr(GPtrArray) people = eb_session_record_list_answerers(record, policy);
    GPtrArray *allowers;
    if (people == NULL && least <= EB_ROLE_OPERATOR)
        return NULL;
    allowers = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; people != NULL && i < people->len; i++) {
        const char *id = people->pdata[i];
        if (has_role(record, policy, id, least) && !g_ptr_array_find_with_equal_func(allowers, id, g_str_equal, NULL))
            g_ptr_array_add(allowers, g_strdup(id));
    }
    return allowers;
}

gboolean
eb_host_ask_anybody(const EbSessionConfig *config, const EbSessionRecord *record, const EbChatPolicy *policy)
{
    g_autoptr(GPtrArray) allowers = list_allowers(record, policy, least_role(config));
    return allowers == NULL || allowers->len > 0;
}

/* --- the question --- */

static void
set_list(GPtrArray **list, GPtrArray *people)
{
    g_clear_pointer(list, g_ptr_array_unref);
    *list = people != NULL ? g_ptr_array_ref(people) : NULL;
}

void
eb_host_ask_share(EbHostAsk *self, const EbSessionRecord *record, const EbChatPolicy *policy)
{
    g_autoptr(GPtrArray) people = eb_session_record_list_answerers(record, policy);
    g_autoptr(GPtrArray) allowers = list_allowers(record, policy, self->least);
    set_list(&self->question->answerers, self->second ? allowers : people);
    for (guint i = 0; i < self->question->choices->len; i++) {
        EbChatChoice *choice = self->question->choices->pdata[i];
        if (g_str_equal(choice->id, EB_HOST_CHOICE_ONCE) || g_str_equal(choice->id, EB_HOST_CHOICE_SESSION))
            set_list(&choice->answerers, allowers);
    }
    if (!self->second || allowers == NULL)
        return;
    g_clear_pointer(&self->question->notify, g_ptr_array_unref);
    self->question->notify = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < allowers->len && i < EB_HOST_ASK_MAX_NOTIFY; i++)
        g_ptr_array_add(self->question->notify, g_strdup(allowers->pdata[i]));
}

/* The same in every run, so that a button of the last one is still known. */
static char *
question_id(const EbSessionRecord *record, const char *host, gboolean second)
{
    g_autofree char *what = g_strdup_printf("%s\n%s", record->id, host);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, what, -1);
    return g_strdup_printf("host-%d-%.24s", second ? 2 : 1, sum);
}

EbHostAsk *
eb_host_ask_new(EbChatTransport *transport, const EbSessionConfig *config, const EbSessionRecord *record,
                const EbChatPolicy *policy, const char *host, gboolean second, const char *message)
{
    EbHostAsk *self = g_object_new(EB_TYPE_HOST_ASK, NULL);
    g_autofree char *text =
        g_strdup_printf(second ? "May this session reach %s? Its agent asked for it and was refused."
                               : "The agent asked for %s and was refused: it is not on this session's list.",
                        host);
    self->transport = g_object_ref(transport);
    self->least = least_role(config);
    self->host = g_strdup(host);
    self->second = second;
    self->question = eb_chat_question_new(record->thread, text);
    self->question->id = question_id(record, host, second);
    self->question->message_id = g_strdup(message);
    self->question->standing = TRUE;
    self->question->data = json_object_new();
    json_object_set_string_member(self->question->data, "kind", "host");
    json_object_set_string_member(self->question->data, "host", host);
    eb_chat_question_add_choice(self->question, EB_HOST_CHOICE_ONCE, "Allow once", "allow_once");
    eb_chat_question_add_choice(self->question, EB_HOST_CHOICE_SESSION, "Allow for this session", "allow_always");
    if (!second && policy != NULL)
        eb_chat_question_add_choice(self->question, EB_HOST_CHOICE_ASK, "Ask an operator", NULL);
    eb_chat_question_add_choice(self->question, EB_HOST_CHOICE_LEAVE, "Leave it refused", "reject_once");
    eb_host_ask_share(self, record, policy);
    return self;
}

/* --- its life --- */

static void
on_shown(EbChatTransport *transport, const char *id, const char *message, gpointer user_data)
{
    EbHostAsk *self = EB_HOST_ASK(user_data);
    if (g_strcmp0(id, self->question->id) == 0 && message != NULL)
        g_signal_emit(self, signals[SIGNAL_SHOWN], 0, message);
}

static void
on_asked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbHostAsk) self = EB_HOST_ASK(user_data);
    g_autoptr(GError) error = NULL;
    g_autofree char *by = NULL;
    g_autofree char *choice = eb_chat_transport_ask_finish(EB_CHAT_TRANSPORT(source), result, &by, &error);
    if (self->left)
        return;
    if (error != NULL && error->code != EB_ERROR_TIMEOUT && error->code != EB_ERROR_CANCELLED)
        eb_debug("nobody could be asked about a host: %s", error->message);
    g_signal_emit(self, signals[SIGNAL_ANSWERED], 0, choice, by);
}

void
eb_host_ask_open(EbHostAsk *self, guint timeout_ms)
{
    g_signal_connect_object(self->transport, "asked", G_CALLBACK(on_shown), self, 0);
    eb_chat_transport_ask_async(self->transport, self->question, timeout_ms, self->cancellable, on_asked,
                                g_object_ref(self));
}

void
eb_host_ask_cancel(EbHostAsk *self, const char *why)
{
    if (g_cancellable_is_cancelled(self->cancellable))
        return;
    self->left = why == NULL;
    g_free(self->question->outcome);
    self->question->outcome = g_strdup(why);
    g_cancellable_cancel(self->cancellable);
}

void
eb_host_ask_replace(EbHostAsk *self)
{
    eb_host_ask_cancel(self, "an operator was asked");
    self->left = TRUE;
}

const char *
eb_host_ask_get_host(EbHostAsk *self)
{
    return self->host;
}

gboolean
eb_host_ask_is_second(EbHostAsk *self)
{
    return self->second;
}

static void
eb_host_ask_finalize(GObject *object)
{
    EbHostAsk *self = EB_HOST_ASK(object);
    g_object_unref(self->transport);
    g_object_unref(self->cancellable);
    eb_chat_question_unref(self->question);
    g_free(self->host);
    G_OBJECT_CLASS(eb_host_ask_parent_class)->finalize(object);
}

static void
eb_host_ask_class_init(EbHostAskClass *klass)
{
    GType type = G_TYPE_FROM_CLASS(klass);
    G_OBJECT_CLASS(klass)->finalize = eb_host_ask_finalize;
    signals[SIGNAL_SHOWN] =
        g_signal_new("shown", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
    signals[SIGNAL_ANSWERED] = g_signal_new("answered", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                                            G_TYPE_STRING, G_TYPE_STRING);
}

static void
eb_host_ask_init(EbHostAsk *self)
{
    self->cancellable = g_cancellable_new();
}
