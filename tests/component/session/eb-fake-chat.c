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
on_ask_cancelled(GCancellable *cancellable, gpointer user_data)
{
    EbFakeChat *self = EB_FAKE_CHAT(user_data);
    g_autoptr(GTask) task = g_steal_pointer(&self->asking);
    if (task != NULL)
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_CANCELLED, "closed");
}

static gboolean
on_ask_late(gpointer user_data)
{
    EbFakeChat *self = EB_FAKE_CHAT(user_data);
    g_autoptr(GTask) task = g_steal_pointer(&self->asking);
    if (task != NULL)
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_TIMEOUT, "nobody answered");
    return G_SOURCE_REMOVE;
}

static void
ask_async(EbChatTransport *transport, EbChatQuestion *question, guint timeout_ms, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeChat *self = EB_FAKE_CHAT(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    self->asked++;
    g_assert_cmpuint(question->choices->len, ==, 2);
    if (self->answer != NULL && *self->answer != '\0') {
        g_task_return_pointer(task, g_strdup(self->answer), g_free);
        return;
    }
    self->asking = g_steal_pointer(&task);
    g_cancellable_connect(cancellable, G_CALLBACK(on_ask_cancelled), self, NULL);
    g_timeout_add(timeout_ms, on_ask_late, self);
}

static char *
ask_finish(EbChatTransport *transport, GAsyncResult *result, char **answered_by, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
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
eb_fake_chat_iface(EbChatTransportInterface *iface)
{
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
    g_clear_object(&self->asking);
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
