/* SPDX-License-Identifier: MIT */
#include "eb-fake-chat.h"

#include <string.h>

static void eb_fake_chat_iface(EbChatTransportInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(EbFakeChat, eb_fake_chat, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, eb_fake_chat_iface))

static EbChatCaps
get_caps(EbChatTransport *transport, EbChatLimits *limits)
{
    EbFakeChat *self = EB_FAKE_CHAT(transport);
    if (limits != NULL)
        *limits = self->limits;
    return self->caps;
}

static void
post_async(EbChatTransport *transport, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
           gpointer user_data)
{
    EbFakeChat *self = EB_FAKE_CHAT(transport);
    g_assert_true(post->text == NULL || g_utf8_validate(post->text, -1, NULL));
    g_ptr_array_add(self->posts, eb_chat_post_ref(post));
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    if (self->hold)
        g_ptr_array_add(self->held, g_steal_pointer(&task));
    else
        g_task_return_pointer(task, g_strdup_printf("post-%u", self->posts->len), g_free);
}

void
eb_fake_chat_release(EbFakeChat *self)
{
    self->hold = FALSE;
    for (guint i = 0; i < self->held->len; i++)
        g_task_return_pointer(self->held->pdata[i], g_strdup("late"), g_free);
    g_ptr_array_set_size(self->held, 0);
}

static char *
pointer_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
ask_free(gpointer data)
{
    EbFakeAsk *ask = data;
    g_free(ask->message);
    g_free(ask->question);
    g_free(ask->outcome);
    g_clear_pointer(&ask->shown, eb_chat_question_unref);
    g_clear_object(&ask->task);
    if (ask->timer != NULL)
        g_source_destroy(ask->timer);
    g_clear_pointer(&ask->timer, g_source_unref);
    g_free(ask);
}

/* (transfer full) (nullable): the task of @ask, which waits no more. */
static GTask *
end_ask(EbFakeAsk *ask)
{
    if (ask->timer != NULL)
        g_source_destroy(ask->timer);
    g_clear_pointer(&ask->timer, g_source_unref);
    g_clear_pointer(&ask->shown, eb_chat_question_unref);
    return g_steal_pointer(&ask->task);
}

/* With an outcome the buttons go; without one the message stays as it is for whoever takes it up. */
static gboolean
on_ask_cancelled(gpointer data)
{
    EbFakeAsk *ask = data;
    if (ask->task == NULL)
        return G_SOURCE_REMOVE;
    if (ask->shown->outcome != NULL) {
        ask->outcome = g_strdup(ask->shown->outcome);
        ask->live = FALSE;
    }
    g_autoptr(GTask) task = end_ask(ask);
    g_task_return_new_error(task, EB_ERROR, EB_ERROR_CANCELLED, "closed");
    return G_SOURCE_REMOVE;
}

static gboolean
on_ask_late(gpointer data)
{
    EbFakeAsk *ask = data;
    ask->live = FALSE;
    ask->outcome = g_strdup("too late");
    g_autoptr(GTask) task = end_ask(ask);
    if (task != NULL)
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_TIMEOUT, "nobody answered");
    return G_SOURCE_REMOVE;
}

static void
on_cancelled(GCancellable *cancellable, gpointer data)
{
    EbFakeAsk *ask = data;
    if (ask->task != NULL)
        on_ask_cancelled(ask);
}

static EbFakeAsk *
find_message(EbFakeChat *self, const char *message)
{
    for (guint i = 0; i < self->asks->len; i++)
        if (g_str_equal(((EbFakeAsk *)self->asks->pdata[i])->message, message))
            return self->asks->pdata[i];
    return NULL;
}

static void
ask_async(EbChatTransport *transport, EbChatQuestion *question, guint timeout_ms, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeChat *self = EB_FAKE_CHAT(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    g_assert_nonnull(question->id);
    g_assert_true(question->standing || question->choices->len == 2);
    if (self->deaf) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_UNAVAILABLE, "nobody is there");
        return;
    }
    EbFakeAsk *ask = question->message_id != NULL ? find_message(self, question->message_id) : NULL;
    g_assert_true((ask != NULL) == (question->message_id != NULL));
    if (ask == NULL) {
        ask = g_new0(EbFakeAsk, 1);
        ask->message = g_strdup_printf("ask-%u", self->asks->len + 1);
        self->asked++;
        ask->question = g_strdup(question->id);
        ask->live = TRUE;
        g_ptr_array_add(self->asks, ask);
        g_signal_emit_by_name(self, "asked", question->id, ask->message);
    } else {
        if (ask->question == NULL)
            ask->question = g_strdup(question->id);
        g_assert_cmpstr(ask->question, ==, question->id);
        g_assert_true(ask->live);
        self->taken_up++;
    }
    g_assert_null(ask->task);
    ask->shown = eb_chat_question_ref(question);
    ask->task = g_steal_pointer(&task);
    if (self->answer != NULL && *self->answer != '\0') {
        g_autoptr(GTask) answered = end_ask(ask);
        ask->live = FALSE;
        g_task_return_pointer(answered, g_strdup(self->answer), g_free);
        return;
    }
    g_cancellable_connect(cancellable, G_CALLBACK(on_cancelled), ask, NULL);
    ask->timer = g_timeout_source_new(timeout_ms);
    g_source_set_callback(ask->timer, on_ask_late, ask, NULL);
    g_source_attach(ask->timer, NULL);
}

static char *
ask_finish(EbChatTransport *transport, GAsyncResult *result, char **answered_by, GError **error)
{
    char *choice = g_task_propagate_pointer(G_TASK(result), error);
    if (answered_by != NULL && choice != NULL)
        *answered_by = g_strdup(g_task_get_task_data(G_TASK(result)));
    return choice;
}

void
eb_fake_chat_show_before(EbFakeChat *self, const char *message)
{
    EbFakeAsk *ask = g_new0(EbFakeAsk, 1);
    ask->message = g_strdup(message);
    ask->live = TRUE;
    g_ptr_array_add(self->asks, ask);
}

guint
eb_fake_chat_open_asks(EbFakeChat *self)
{
    guint open = 0;
    for (guint i = 0; i < self->asks->len; i++)
        open += ((EbFakeAsk *)self->asks->pdata[i])->task != NULL;
    return open;
}

EbFakeAsk *
eb_fake_chat_ask(EbFakeChat *self, guint index)
{
    g_assert_cmpuint(index, <, self->asks->len);
    return self->asks->pdata[index];
}

/* As a transport has to: whoever may not answer presses in vain. */
gboolean
eb_fake_chat_press(EbFakeChat *self, guint index, const char *choice, const char *by)
{
    EbFakeAsk *ask = eb_fake_chat_ask(self, index);
    if (ask->task == NULL)
        return FALSE;
    GPtrArray *may = ask->shown->answerers;
    if (may != NULL && !g_ptr_array_find_with_equal_func(may, by, g_str_equal, NULL))
        return FALSE;
    for (guint i = 0; i < ask->shown->choices->len; i++) {
        const EbChatChoice *one = ask->shown->choices->pdata[i];
        if (g_str_equal(one->id, choice) && one->answerers != NULL &&
            !g_ptr_array_find_with_equal_func(one->answerers, by, g_str_equal, NULL))
            return FALSE;
    }
    g_autoptr(GTask) task = end_ask(ask);
    ask->live = FALSE;
    ask->outcome = g_strdup_printf("pressed %s", choice);
    g_task_set_task_data(task, g_strdup(by), g_free);
    g_task_return_pointer(task, g_strdup(choice), g_free);
    return TRUE;
}

static void
open_thread_async(EbChatTransport *transport, const char *message_id, const char *title, GCancellable *cancellable,
                  GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeChat *self = EB_FAKE_CHAT(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    g_task_return_pointer(task, g_strdup_printf("thread-%u", ++self->threads), g_free);
}

static void
on_fetch_cancelled(GCancellable *cancellable, gpointer data)
{
    g_autoptr(GTask) task = g_object_ref(G_TASK(data));
    ((EbFakeChat *)g_task_get_source_object(task))->fetching--;
    g_task_return_new_error(task, EB_ERROR, EB_ERROR_CANCELLED, "cancelled");
}

static void
fetch_async(EbChatTransport *transport, const EbChatAttachment *attachment, gsize max_bytes, GCancellable *cancellable,
            GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeChat *self = EB_FAKE_CHAT(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    if (self->hold_fetch) {
        self->fetching++;
        g_cancellable_connect(cancellable, G_CALLBACK(on_fetch_cancelled), g_steal_pointer(&task), g_object_unref);
        return;
    }
    g_assert_nonnull(self->file);
    g_task_return_pointer(task, g_bytes_ref(self->file), (GDestroyNotify)g_bytes_unref);
}

static GBytes *
fetch_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
eb_fake_chat_iface(EbChatTransportInterface *iface)
{
    iface->fetch_async = fetch_async;
    iface->fetch_finish = fetch_finish;
    iface->get_caps = get_caps;
    iface->post_async = post_async;
    iface->post_finish = pointer_finish;
    iface->ask_async = ask_async;
    iface->ask_finish = ask_finish;
    iface->open_thread_async = open_thread_async;
    iface->open_thread_finish = pointer_finish;
}

void
eb_fake_chat_say(EbFakeChat *self, const char *thread, const char *text, const char *extra)
{
    g_autofree char *id = g_strdup_printf("message-%u", ++self->messages);
    g_autoptr(EbChatMessage) message = eb_chat_message_new(id, thread, "author-1", text);
    message->sent_unix_ms = g_get_real_time() / 1000;
    if (extra != NULL) {
        g_autoptr(JsonNode) node = eb_json_parse(extra, strlen(extra), NULL, NULL);
        message->extra = json_object_ref(eb_json_node_object(node));
    }
    g_signal_emit_by_name(self, "message", message);
}

char *
eb_fake_chat_said(EbFakeChat *self, EbChatPostKind kind)
{
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < self->posts->len; i++) {
        EbChatPost *post = self->posts->pdata[i];
        if (post->kind == kind && post->text != NULL)
            g_string_append_printf(all, "%s%s", !post->append && all->len > 0 ? "|" : "", post->text);
    }
    return g_string_free(g_steal_pointer(&all), FALSE);
}

guint
eb_fake_chat_count(EbFakeChat *self, EbChatPostKind kind)
{
    guint count = 0;
    for (guint i = 0; i < self->posts->len; i++)
        count += ((EbChatPost *)self->posts->pdata[i])->kind == kind;
    return count;
}

EbChatPost *
eb_fake_chat_last(EbFakeChat *self, EbChatPostKind kind)
{
    for (guint i = self->posts->len; i > 0; i--)
        if (((EbChatPost *)self->posts->pdata[i - 1])->kind == kind)
            return self->posts->pdata[i - 1];
    return NULL;
}

void
eb_fake_chat_forget(EbFakeChat *self)
{
    g_ptr_array_set_size(self->posts, 0);
}

static void
eb_fake_chat_finalize(GObject *object)
{
    EbFakeChat *self = EB_FAKE_CHAT(object);
    g_ptr_array_unref(self->posts);
    g_ptr_array_unref(self->held);
    g_free(self->answer);
    g_clear_pointer(&self->file, g_bytes_unref);
    g_ptr_array_unref(self->asks);
    G_OBJECT_CLASS(eb_fake_chat_parent_class)->finalize(object);
}

static void
eb_fake_chat_class_init(EbFakeChatClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_fake_chat_finalize;
}

static void
eb_fake_chat_init(EbFakeChat *self)
{
    self->asks = g_ptr_array_new_with_free_func(ask_free);
    self->held = g_ptr_array_new_with_free_func(g_object_unref);
    self->posts = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_post_unref);
}

EbFakeChat *
eb_fake_chat_new(EbChatCaps caps)
{
    EbFakeChat *self = g_object_new(EB_TYPE_FAKE_CHAT, NULL);
    self->caps = caps;
    return self;
}
