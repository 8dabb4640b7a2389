/* SPDX-License-Identifier: MIT */
#include "render-chat.h"

#include "core/render/eb-text-split.h"

#include <string.h>

static void render_chat_iface(EbChatTransportInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(RenderChat, render_chat, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, render_chat_iface))

static EbChatCaps
get_caps(EbChatTransport *transport, EbChatLimits *limits)
{
    RenderChat *self = RENDER_CHAT(transport);
    if (limits != NULL)
        *limits = self->limits;
    return self->caps;
}

static RenderMessage *
find(RenderChat *self, const char *key)
{
    for (guint i = self->messages->len; key != NULL && i > 0; i--) {
        RenderMessage *message = self->messages->pdata[i - 1];
        if (g_strcmp0(message->key, key) == 0)
            return message;
    }
    return NULL;
}

static void
keep_files(RenderMessage *message, const EbChatPost *post, RenderChat *self)
{
    for (guint i = 0; post->files != NULL && i < post->files->len; i++) {
        const EbChatFile *file = post->files->pdata[i];
        gsize size = 0;
        const char *bytes = g_bytes_get_data(file->bytes, &size);
        g_assert_cmpint(self->caps & EB_CHAT_CAP_FILES, !=, 0);
        g_assert_true(self->limits.max_file_bytes == 0 || size <= self->limits.max_file_bytes);
        self->bytes += size;
        if (message->file == NULL)
            message->file = g_strndup(bytes, size);
        g_ptr_array_add(message->files, g_strdup(file->name));
    }
    g_assert_true(self->limits.max_files == 0 || message->files->len <= self->limits.max_files);
}

static void
show(RenderChat *self, EbChatPost *post)
{
    if (post->kind == EB_CHAT_POST_BUSY) {
        g_assert_cmpint(self->caps & EB_CHAT_CAP_BUSY, !=, 0);
        self->busy++;
        return;
    }
    RenderMessage *message = find(self, post->key);
    gint64 now_us = g_get_monotonic_time();
    g_assert_cmpstr(post->thread, ==, "t");
    g_assert_false(post->append);
    if (post->retract) {
        g_assert_nonnull(message);
        g_assert_false(message->gone);
        message->gone = TRUE;
        return;
    }
    g_assert_true(g_utf8_validate(post->text, -1, NULL));
    g_assert_true(!eb_text_is_blank(post->text, -1) || post->files != NULL);
    guint max = self->limits.max_text_units;
    if (post->notify != NULL && max > 0)
        max -= 23;
    g_assert_true(max == 0 || eb_text_units(post->text, -1) <= max);
    self->bytes += strlen(post->text);
    if (message == NULL) {
        message = g_new0(RenderMessage, 1);
        message->key = g_strdup(post->key);
        message->files = g_ptr_array_new_with_free_func(g_free);
        message->reply_to = g_strdup(post->reply_to);
        message->notify = g_strdup(post->notify);
        g_ptr_array_add(self->messages, message);
    } else {
        g_assert_cmpint(self->caps & EB_CHAT_CAP_EDIT, !=, 0);
        g_assert_false(message->gone);
        g_assert_false(message->final);
        g_assert_cmpstr(message->text, !=, post->text);
        message->edits++;
        /* True however slow the machine is. */
        g_assert_cmpint(now_us - self->begin_us, >=, message->edits * (gint64)self->limits.edit_interval_ms * 1000);
    }
    keep_files(message, post, self);
    g_free(message->text);
    message->text = g_strdup(post->text);
    message->kind = post->kind;
    message->final = post->final;
}

static gboolean
on_delay(gpointer data)
{
    GTask *task = data;
    RenderChat *self = g_task_get_source_object(task);
    self->in_flight--;
    g_task_return_pointer(task, g_strdup("id"), g_free);
    g_object_unref(task);
    return G_SOURCE_REMOVE;
}

static void
post_async(EbChatTransport *transport, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
           gpointer user_data)
{
    RenderChat *self = RENDER_CHAT(transport);
    GTask *task = g_task_new(self, NULL, callback, user_data);
    self->calls++;
    g_assert_cmpuint(self->in_flight, ==, 0);
    self->in_flight++;
    show(self, post);
    if (self->hold)
        g_ptr_array_add(self->held, task);
    else
        g_timeout_add(self->delay_ms, on_delay, task);
}

void
render_chat_release(RenderChat *self)
{
    self->hold = FALSE;
    for (guint i = 0; i < self->held->len; i++)
        on_delay(self->held->pdata[i]);
    g_ptr_array_set_size(self->held, 0);
}

static char *
post_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
render_chat_iface(EbChatTransportInterface *iface)
{
    iface->get_caps = get_caps;
    iface->post_async = post_async;
    iface->post_finish = post_finish;
}

static void
message_free(gpointer data)
{
    RenderMessage *message = data;
    g_free(message->key);
    g_free(message->text);
    g_free(message->file);
    g_free(message->reply_to);
    g_free(message->notify);
    g_ptr_array_unref(message->files);
    g_free(message);
}

static void
render_chat_finalize(GObject *object)
{
    RenderChat *self = RENDER_CHAT(object);
    g_ptr_array_unref(self->messages);
    g_ptr_array_unref(self->held);
    G_OBJECT_CLASS(render_chat_parent_class)->finalize(object);
}

static void
render_chat_class_init(RenderChatClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = render_chat_finalize;
}

static void
render_chat_init(RenderChat *self)
{
    self->messages = g_ptr_array_new_with_free_func(message_free);
    self->held = g_ptr_array_new();
    self->begin_us = g_get_monotonic_time();
}

RenderChat *
render_chat_new(EbChatCaps caps, guint max_units, guint edit_interval_ms)
{
    RenderChat *self = g_object_new(RENDER_TYPE_CHAT, NULL);
    self->caps = caps;
    self->limits.max_text_units = max_units;
    self->limits.edit_interval_ms = edit_interval_ms;
    return self;
}

char *
render_chat_screen(RenderChat *self)
{
    g_autoptr(GString) out = g_string_new(NULL);
    for (guint i = 0; i < self->messages->len; i++) {
        const RenderMessage *message = self->messages->pdata[i];
        if (message->gone)
            continue;
        g_string_append_printf(out, "%s%s", out->len > 0 ? "|" : "", message->text);
        for (guint f = 0; f < message->files->len; f++)
            g_string_append_printf(out, "{%s}", (char *)message->files->pdata[f]);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}
