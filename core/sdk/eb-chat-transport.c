/* SPDX-License-Identifier: MIT */
#include "eb-chat-transport.h"

#include "eb-async-private.h"

G_DEFINE_INTERFACE(EbChatTransport, eb_chat_transport, G_TYPE_OBJECT)

static void
default_post_async(EbChatTransport *self, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
                   gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_post_async, "post");
}

static char *
default_post_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_ask_async(EbChatTransport *self, EbChatQuestion *question, guint timeout_ms, GCancellable *cancellable,
                  GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_ask_async, "ask");
}

static char *
default_ask_finish(EbChatTransport *self, GAsyncResult *result, char **answered_by, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_open_thread_async(EbChatTransport *self, const char *message_id, const char *title, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_open_thread_async, "open threads");
}

static char *
default_open_thread_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_close_thread_async(EbChatTransport *self, const char *thread, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_close_thread_async, "close threads");
}

static gboolean
default_close_thread_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
default_react_async(EbChatTransport *self, const char *thread, const char *message_id, const char *reaction,
                    GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_react_async, "react");
}

static gboolean
default_react_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
default_read_back_async(EbChatTransport *self, const char *thread, const char *after_id, guint max,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_read_back_async, "read back");
}

static GPtrArray *
default_read_back_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static const EbChatPolicy *
default_attach(EbChatTransport *self, const EbChatCommand *commands, gsize n_commands)
{
    return NULL;
}

static void
default_fetch_async(EbChatTransport *self, const EbChatAttachment *attachment, gsize max_bytes,
                    GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_fetch_async, "fetch attachments");
}

static GBytes *
default_fetch_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static EbChatCaps
default_get_caps(EbChatTransport *self, EbChatLimits *limits)
{
    return EB_CHAT_CAP_NONE;
}

static void
eb_chat_transport_default_init(EbChatTransportInterface *iface)
{
    iface->post_async = default_post_async;
    iface->post_finish = default_post_finish;
    iface->ask_async = default_ask_async;
    iface->ask_finish = default_ask_finish;
    iface->open_thread_async = default_open_thread_async;
    iface->open_thread_finish = default_open_thread_finish;
    iface->close_thread_async = default_close_thread_async;
    iface->close_thread_finish = default_close_thread_finish;
    iface->react_async = default_react_async;
    iface->react_finish = default_react_finish;
    iface->read_back_async = default_read_back_async;
    iface->read_back_finish = default_read_back_finish;
    iface->get_caps = default_get_caps;
    iface->attach = default_attach;
    iface->fetch_async = default_fetch_async;
    iface->fetch_finish = default_fetch_finish;

    g_signal_new("message", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                 EB_TYPE_CHAT_MESSAGE);
    g_signal_new("action", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                 EB_TYPE_CHAT_MESSAGE);
    g_signal_new("withdrawn", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                 G_TYPE_STRING, G_TYPE_STRING);
    g_signal_new("interrupt", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                 G_TYPE_STRING, G_TYPE_UINT);
    g_signal_new("connection", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                 G_TYPE_BOOLEAN, G_TYPE_STRING);
    g_signal_new("edited", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                 EB_TYPE_CHAT_MESSAGE);
    g_signal_new("seen", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING,
                 G_TYPE_STRING);
    g_signal_new("thread-state", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                 G_TYPE_STRING, G_TYPE_STRING);
    g_signal_new("asked", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_STRING,
                 G_TYPE_STRING);
    g_signal_new("failed", EB_TYPE_CHAT_TRANSPORT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                 G_TYPE_ERROR);
}

EbChatCaps
eb_chat_transport_get_caps(EbChatTransport *self, EbChatLimits *limits)
{
    EbChatLimits own = {0};

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), EB_CHAT_CAP_NONE);
    if (limits == NULL)
        limits = &own;
    *limits = (EbChatLimits){0};
    return EB_CHAT_TRANSPORT_GET_IFACE(self)->get_caps(self, limits);
}

void
eb_chat_transport_post_async(EbChatTransport *self, EbChatPost *post, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(self) && post != NULL);
    EB_CHAT_TRANSPORT_GET_IFACE(self)->post_async(self, post, cancellable, callback, user_data);
}

char *
eb_chat_transport_post_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    char *value;

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), NULL);
    value = EB_CHAT_TRANSPORT_GET_IFACE(self)->post_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_chat_transport_ask_async(EbChatTransport *self, EbChatQuestion *question, guint timeout_ms,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(self) && question != NULL);
    EB_CHAT_TRANSPORT_GET_IFACE(self)->ask_async(self, question, timeout_ms, cancellable, callback, user_data);
}

char *
eb_chat_transport_ask_finish(EbChatTransport *self, GAsyncResult *result, char **answered_by, GError **error)
{
    char *value;

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), NULL);
    value = EB_CHAT_TRANSPORT_GET_IFACE(self)->ask_finish(self, result, answered_by, error);
    return eb_border_pointer(value, error);
}

void
eb_chat_transport_open_thread_async(EbChatTransport *self, const char *message_id, const char *title,
                                    GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(self));
    EB_CHAT_TRANSPORT_GET_IFACE(self)->open_thread_async(self, message_id, title, cancellable, callback, user_data);
}

char *
eb_chat_transport_open_thread_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    char *value;

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), NULL);
    value = EB_CHAT_TRANSPORT_GET_IFACE(self)->open_thread_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_chat_transport_close_thread_async(EbChatTransport *self, const char *thread, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(self));
    EB_CHAT_TRANSPORT_GET_IFACE(self)->close_thread_async(self, thread, cancellable, callback, user_data);
}

gboolean
eb_chat_transport_close_thread_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), FALSE);
    done = EB_CHAT_TRANSPORT_GET_IFACE(self)->close_thread_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_chat_transport_react_async(EbChatTransport *self, const char *thread, const char *message_id, const char *reaction,
                              GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(self));
    EB_CHAT_TRANSPORT_GET_IFACE(self)->react_async(self, thread, message_id, reaction, cancellable, callback,
                                                   user_data);
}

gboolean
eb_chat_transport_react_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), FALSE);
    done = EB_CHAT_TRANSPORT_GET_IFACE(self)->react_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_chat_transport_read_back_async(EbChatTransport *self, const char *thread, const char *after_id, guint max,
                                  GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(self) && max > 0);
    EB_CHAT_TRANSPORT_GET_IFACE(self)->read_back_async(self, thread, after_id, max, cancellable, callback, user_data);
}

GPtrArray *
eb_chat_transport_read_back_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    GPtrArray *value;

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), NULL);
    value = EB_CHAT_TRANSPORT_GET_IFACE(self)->read_back_finish(self, result, error);
    return eb_border_pointer(value, error);
}

const EbChatPolicy *
eb_chat_transport_attach(EbChatTransport *self, const EbChatCommand *commands, gsize n_commands)
{
    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), NULL);
    return EB_CHAT_TRANSPORT_GET_IFACE(self)->attach(self, commands, n_commands);
}

void
eb_chat_transport_fetch_async(EbChatTransport *self, const EbChatAttachment *attachment, gsize max_bytes,
                              GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CHAT_TRANSPORT(self) && attachment != NULL && max_bytes > 0);
    EB_CHAT_TRANSPORT_GET_IFACE(self)->fetch_async(self, attachment, max_bytes, cancellable, callback, user_data);
}

GBytes *
eb_chat_transport_fetch_finish(EbChatTransport *self, GAsyncResult *result, GError **error)
{
    GBytes *value;

    g_return_val_if_fail(EB_IS_CHAT_TRANSPORT(self), NULL);
    value = EB_CHAT_TRANSPORT_GET_IFACE(self)->fetch_finish(self, result, error);
    return eb_border_pointer(value, error);
}
