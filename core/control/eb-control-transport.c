/* SPDX-License-Identifier: MIT */
#include "core/control/eb-control-transport.h"

#include <string.h>

#define TRANSPORT_NAME "control"
/* A prompt is one frame of the control socket, far below its bound. */
#define MAX_PROMPT (512 * 1024)

struct _EbControlTransport {
    GObject parent_instance;
    GHashTable *threads; /* (element-type utf8 EbJsonrpc): thread -> client, at most EB_CONTROL_MAX_THREADS */
    GHashTable *opening; /* (element-type utf8 EbJsonrpc): message id -> client that waits for its thread */
    guint n_messages;
};

static void eb_control_transport_iface_init(EbChatTransportInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbControlTransport, eb_control_transport, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, eb_control_transport_iface_init))

static void
eb_control_transport_finalize(GObject *object)
{
    EbControlTransport *self = EB_CONTROL_TRANSPORT(object);

    g_hash_table_unref(self->threads);
    g_hash_table_unref(self->opening);
    G_OBJECT_CLASS(eb_control_transport_parent_class)->finalize(object);
}

static void
eb_control_transport_class_init(EbControlTransportClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_control_transport_finalize;
}

static void
eb_control_transport_init(EbControlTransport *self)
{
    self->threads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    self->opening = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
}

EbControlTransport *
eb_control_transport_new(void)
{
    return g_object_new(EB_TYPE_CONTROL_TRANSPORT, NULL);
}

static void
copy_text(JsonObject *to, JsonObject *from, const char *member)
{
    const char *text = eb_json_get_string(from, member);
    if (text != NULL && *text != '\0')
        json_object_set_string_member(to, member, text);
}

gboolean
eb_control_transport_prompt(EbControlTransport *self, EbJsonrpc *peer, const char *thread, JsonObject *params,
                            GError **error)
{
    const char *text = eb_json_get_string(params, "text");

    if (text == NULL || *text == '\0' || strlen(text) > MAX_PROMPT) {
        eb_set_error(error, EB_ERROR_INVALID, "control.prompt", "a prompt has 1 to %d bytes", MAX_PROMPT);
        return FALSE;
    }
    if (g_hash_table_size(self->threads) + g_hash_table_size(self->opening) >= EB_CONTROL_MAX_THREADS) {
        eb_set_error(error, EB_ERROR_QUOTA, "control.threads", "too many threads have a client");
        return FALSE;
    }
    /* Unique over restarts too: journals remember what was handled. */
    g_autofree char *id = g_strdup_printf("c-%" G_GINT64_FORMAT "-%u", g_get_real_time(), ++self->n_messages);
    EbChatMessage *message = eb_chat_message_new(id, thread, TRANSPORT_NAME, text);
    message->author_name = g_strdup("command line");
    message->mentions_us = TRUE;
    message->sent_unix_ms = g_get_real_time() / 1000;
    message->extra = json_object_new();
    copy_text(message->extra, params, "project");
    copy_text(message->extra, params, "agent");
    copy_text(message->extra, params, "model");
    /* Whoever names a session means that one, also after a stop: never a new one in its place. */
    if (thread != NULL)
        json_object_set_boolean_member(message->extra, "resume", TRUE);
    g_hash_table_replace(thread != NULL ? self->threads : self->opening, g_strdup(thread != NULL ? thread : id),
                         g_object_ref(peer));
    g_signal_emit_by_name(self, "message", message);
    eb_chat_message_unref(message);
    return TRUE;
}

/* The client of @thread; with NULL the thread of @peer. */
static const char *
thread_of(EbControlTransport *self, EbJsonrpc *peer, const char *thread)
{
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, self->threads);
    while (g_hash_table_iter_next(&iter, &key, &value))
        if (value == peer && (thread == NULL || strcmp(thread, key) == 0))
            return key;
    return NULL;
}

gboolean
eb_control_transport_interrupt(EbControlTransport *self, EbJsonrpc *peer, const char *thread, guint count)
{
    g_autofree char *found = g_strdup(thread_of(self, peer, thread));

    if (found == NULL)
        return FALSE;
    g_signal_emit_by_name(self, "interrupt", found, count);
    return TRUE;
}

static JsonNode *
ended_params(const char *thread, const char *session, const char *stop_reason, const GError *error)
{
    JsonObject *object = json_object_new();

    eb_control_set_text(object, "thread", thread);
    eb_control_set_text(object, "session", session);
    eb_control_set_text(object, "stop_reason", stop_reason);
    if (error != NULL) {
        eb_control_set_text(object, "error", error->message);
        json_object_set_int_member(object, "code", error->domain == EB_ERROR ? error->code : EB_ERROR_FAILED);
    }
    return eb_control_object(object);
}

void
eb_control_transport_ended(EbControlTransport *self, const char *thread, const char *session, const char *stop_reason,
                           const GError *error)
{
    EbJsonrpc *peer = thread != NULL ? g_hash_table_lookup(self->threads, thread) : NULL;
    GHashTableIter iter;
    gpointer value;

    if (peer != NULL) {
        eb_jsonrpc_notify(peer, "ended", ended_params(thread, session, stop_reason, error));
        return;
    }
    if (thread != NULL)
        return;
    /* A start that failed before there was a thread: whoever waits for one. */
    g_hash_table_iter_init(&iter, self->opening);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        eb_jsonrpc_notify(value, "ended", ended_params(NULL, session, stop_reason, error));
        g_hash_table_iter_remove(&iter);
    }
}

static gboolean
is_value(gpointer key, gpointer value, gpointer user_data)
{
    return value == user_data;
}

void
eb_control_transport_forget(EbControlTransport *self, EbJsonrpc *peer)
{
    g_hash_table_foreach_remove(self->threads, is_value, peer);
    g_hash_table_foreach_remove(self->opening, is_value, peer);
}

/* --- the interface --- */

static EbChatCaps
get_caps(EbChatTransport *transport, EbChatLimits *limits)
{
    return EB_CHAT_CAP_STREAM | EB_CHAT_CAP_STRUCTURED | EB_CHAT_CAP_THREADS;
}

static void
post_async(EbChatTransport *transport, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
           gpointer user_data)
{
    EbControlTransport *self = EB_CONTROL_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    EbJsonrpc *peer = post->thread != NULL ? g_hash_table_lookup(self->threads, post->thread) : NULL;

    g_task_set_source_tag(task, post_async);
    /* Nobody there is no failure: the transcript has it. */
    if (peer != NULL)
        eb_jsonrpc_notify(peer, "post", eb_control_post_to_json(post));
    g_task_return_pointer(task, g_strdup(post->key != NULL ? post->key : "posted"), g_free);
}

static char *
text_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
asked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    g_autoptr(JsonNode) answer = eb_jsonrpc_call_finish(EB_JSONRPC(source), result, NULL, &error);
    const char *choice = eb_json_get_string(eb_json_node_object(answer), "choice");

    if (choice != NULL)
        g_task_return_pointer(task, g_strdup(choice), g_free);
    else if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_DENIED, "the client gave no answer");
}

static void
ask_async(EbChatTransport *transport, EbChatQuestion *question, guint timeout_ms, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    EbControlTransport *self = EB_CONTROL_TRANSPORT(transport);
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    EbJsonrpc *peer = question->thread != NULL ? g_hash_table_lookup(self->threads, question->thread) : NULL;

    g_task_set_source_tag(task, ask_async);
    if (peer != NULL) {
        eb_jsonrpc_call_async(peer, "ask", eb_control_question_to_json(question, timeout_ms), timeout_ms, cancellable,
                              asked, task);
        return;
    }
    g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "control.nobody", "nobody is there to answer"));
    g_object_unref(task);
}

static char *
ask_finish(EbChatTransport *transport, GAsyncResult *result, char **answered_by, GError **error)
{
    char *choice = text_finish(transport, result, error);

    if (answered_by != NULL)
        *answered_by = choice != NULL ? g_strdup(TRANSPORT_NAME) : NULL;
    return choice;
}

static void
open_thread_async(EbChatTransport *transport, const char *message_id, const char *title, GCancellable *cancellable,
                  GAsyncReadyCallback callback, gpointer user_data)
{
    EbControlTransport *self = EB_CONTROL_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    /* The router may put the id of its run before ours. */
    const char *slash = strrchr(message_id, '/');
    const char *own_id = slash != NULL ? slash + 1 : message_id;
    EbJsonrpc *peer = g_hash_table_lookup(self->opening, own_id);
    char *thread = g_strdup_printf("t-%08x%08x", g_random_int(), g_random_int());

    g_task_set_source_tag(task, open_thread_async);
    if (peer != NULL) {
        g_hash_table_replace(self->threads, g_strdup(thread), g_object_ref(peer));
        g_hash_table_remove(self->opening, own_id);
    }
    g_task_return_pointer(task, thread, g_free);
}

static void
close_thread_async(EbChatTransport *transport, const char *thread, GCancellable *cancellable,
                   GAsyncReadyCallback callback, gpointer user_data)
{
    EbControlTransport *self = EB_CONTROL_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, close_thread_async);
    g_hash_table_remove(self->threads, thread);
    g_task_return_boolean(task, TRUE);
}

static gboolean
close_thread_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
eb_control_transport_iface_init(EbChatTransportInterface *iface)
{
    iface->get_caps = get_caps;
    iface->post_async = post_async;
    iface->post_finish = text_finish;
    iface->ask_async = ask_async;
    iface->ask_finish = ask_finish;
    iface->open_thread_async = open_thread_async;
    iface->open_thread_finish = text_finish;
    iface->close_thread_async = close_thread_async;
    iface->close_thread_finish = close_thread_finish;
}
