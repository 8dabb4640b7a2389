/* SPDX-License-Identifier: MIT */
/* A text that was too long for a message and came as a file: whoever wrote it names project and model in it as ever. */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/session/eb-attachments.h"
#include "core/session/eb-router-private.h"

#define PASTED_NAME "message.txt"
#define FETCH_DEADLINE_MS 30000

typedef struct {
    EbChatMessage *message;
    GCancellable *cancellable;
    GSource *deadline;
} EbPaste;

static void
paste_free(gpointer data)
{
    EbPaste *paste = data;
    eb_clear_source(&paste->deadline);
    g_object_unref(paste->cancellable);
    eb_chat_message_unref(paste->message);
    g_free(paste);
}

gboolean
eb_router_is_pasted(EbRouter *self, const EbChatMessage *message)
{
    if ((self->caps & EB_CHAT_CAP_FETCH) == 0 || self->policy == NULL || message->attachments->len == 0 ||
        (message->text != NULL && *message->text != '\0'))
        return FALSE;
    const EbChatAttachment *first = message->attachments->pdata[0];
    return g_strcmp0(first->name, PASTED_NAME) == 0 && first->size_bytes <= EB_ATTACHMENTS_MAX_TEXT;
}

/* @message as if it had been written: with @text, and without its first file. */
static EbChatMessage *
unfold(const EbChatMessage *message, const char *text)
{
    EbChatMessage *whole = eb_chat_message_new(message->id, message->thread, message->author_id, text);
    whole->sent_unix_ms = message->sent_unix_ms;
    whole->mentions_us = message->mentions_us;
    whole->replayed = message->replayed;
    whole->extra = message->extra != NULL ? json_object_ref(message->extra) : NULL;
    for (guint i = 1; i < message->attachments->len; i++) {
        const EbChatAttachment *file = message->attachments->pdata[i];
        eb_chat_message_add_attachment(whole, file->id, file->name, file->content_type, file->size_bytes, file->url);
    }
    return whole;
}

static void
on_fetched(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbPaste *paste = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = eb_chat_transport_fetch_finish(EB_CHAT_TRANSPORT(source), result, &error);
    gsize length = 0;
    const char *data = bytes != NULL ? g_bytes_get_data(bytes, &length) : NULL;
    eb_clear_source(&paste->deadline);
    /* What cannot be read here is a file like any other: its session tells what is wrong with it. */
    if (length == 0 || memchr(data, '\0', length) != NULL || !g_utf8_validate(data, (gssize)length, NULL)) {
        eb_debug("a pasted text could not be read: %s", error != NULL ? error->message : "it is no text");
        g_task_return_pointer(task, eb_chat_message_ref(paste->message), (GDestroyNotify)eb_chat_message_unref);
        return;
    }
    g_autofree char *text = g_strndup(data, length);
    g_task_return_pointer(task, unfold(paste->message, text), (GDestroyNotify)eb_chat_message_unref);
}

static gboolean
on_deadline(gpointer data)
{
    EbPaste *paste = data;
    g_clear_pointer(&paste->deadline, g_source_unref);
    g_cancellable_cancel(paste->cancellable);
    return G_SOURCE_REMOVE;
}

void
eb_router_unfold_async(EbRouter *self, EbChatMessage *message, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    g_task_set_source_tag(task, eb_router_unfold_async);
    EbPaste *paste = g_new0(EbPaste, 1);
    paste->message = eb_chat_message_ref(message);
    paste->cancellable = g_cancellable_new();
    paste->deadline = g_timeout_source_new(FETCH_DEADLINE_MS);
    g_source_set_callback(paste->deadline, on_deadline, paste, NULL);
    g_source_attach(paste->deadline, g_main_context_get_thread_default());
    g_task_set_task_data(task, paste, paste_free);
    eb_chat_transport_fetch_async(self->transport, message->attachments->pdata[0], EB_ATTACHMENTS_MAX_TEXT,
                                  paste->cancellable, on_fetched, task);
}

EbChatMessage *
eb_router_unfold_finish(EbRouter *self, GAsyncResult *result)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), NULL);
}
