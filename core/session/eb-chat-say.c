/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-chat-say.h"

#include "core/render/eb-text-split.h"

/* Of a text as its last part shows what is missing. */
#define LEFT_OUT "(the rest is left out: it is too long for this place)"

typedef struct {
    guint pending;
    GError *error; /* the first one */
} EbSaying;

static void
saying_free(gpointer data)
{
    EbSaying *saying = data;
    g_clear_error(&saying->error);
    g_free(saying);
}

static void
on_part(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbSaying *saying = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autofree char *id = eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, &error);
    if (error != NULL && saying->error == NULL)
        saying->error = g_steal_pointer(&error);
    if (--saying->pending > 0)
        return;
    if (saying->error != NULL)
        g_task_return_error(task, g_steal_pointer(&saying->error));
    else
        g_task_return_boolean(task, TRUE);
}

static GPtrArray *
shape(const char *text, const EbChatLimits *limits)
{
    g_autofree char *safe = limits->prepare != NULL ? limits->prepare(text) : g_strdup(text);
    GPtrArray *parts = eb_text_split(safe, limits->max_text_units);
    if (parts->len > EB_CHAT_SAY_MAX_PARTS) {
        g_ptr_array_set_size(parts, EB_CHAT_SAY_MAX_PARTS - 1);
        g_ptr_array_add(parts, g_strdup(LEFT_OUT));
    }
    /* A file, or an answer of nothing but white space, is still a post. */
    if (parts->len == 0)
        g_ptr_array_add(parts, g_strdup(""));
    return parts;
}

void
eb_chat_say_async(EbChatTransport *transport, const char *thread, EbChatPostKind kind, const char *text,
                  const char *reply_to, EbChatFile *file, GCancellable *cancellable, GAsyncReadyCallback callback,
                  gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(transport) && text != NULL);
    EbChatLimits limits = {0};
    eb_chat_transport_get_caps(transport, &limits);
    g_autoptr(GPtrArray) parts = shape(text, &limits);
    EbSaying *saying = g_new0(EbSaying, 1);
    saying->pending = parts->len;
    g_autoptr(GTask) task = g_task_new(transport, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_chat_say_async);
    g_task_set_check_cancellable(task, FALSE);
    g_task_set_task_data(task, saying, saying_free);
    /* Posts of one thread are shown in the order of the calls. */
    for (guint i = 0; i < parts->len; i++) {
        g_autoptr(EbChatPost) post = eb_chat_post_new(thread, kind, parts->pdata[i]);
        post->final = TRUE;
        /* An answer belongs to its question with all its parts: only that one may see them. */
        if (i == 0 || kind == EB_CHAT_POST_ANSWER)
            post->reply_to = g_strdup(reply_to);
        if (file != NULL && i + 1 == parts->len) {
            post->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
            g_ptr_array_add(post->files, eb_chat_file_new(file->name, file->content_type, file->bytes));
        }
        eb_chat_transport_post_async(transport, post, cancellable, on_part, g_object_ref(task));
    }
}

gboolean
eb_chat_say_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_chat_say_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
