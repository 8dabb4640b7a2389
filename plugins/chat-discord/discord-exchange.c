/* SPDX-License-Identifier: MIT */
#include "discord-exchange.h"

#define READ_CHUNK (64 * 1024)
/* libsoup's two connections to a host let one hung request and one upload block everything else. */
#define MAX_CONNECTIONS 16
#define IDLE_TIMEOUT_S 30

SoupSession *
discord_session_new(GSocketConnectable *connectable)
{
    SoupSession *session =
        g_object_new(SOUP_TYPE_SESSION, "remote-connectable", connectable, "max-conns", MAX_CONNECTIONS,
                     "max-conns-per-host", MAX_CONNECTIONS, "timeout", 0, "idle-timeout", IDLE_TIMEOUT_S,
                     "proxy-resolver", NULL, "user-agent", DISCORD_USER_AGENT, NULL);
    soup_session_remove_feature_by_type(session, SOUP_TYPE_CONTENT_DECODER);
    soup_session_remove_feature_by_type(session, SOUP_TYPE_AUTH_MANAGER);
    return session;
}

typedef struct {
    SoupMessage *message;      /* (owned) */
    GCancellable *cancellable; /* (owned): of the exchange: the caller's or the timer's doing */
    GSource *caller;           /* (nullable) (owned): fires when the caller cancels */
    GSource *timer;            /* (nullable) (owned) */
    gboolean timed_out;
    guint timeout_ms;
    GInputStream *stream; /* (nullable) (owned) */
    GByteArray *bytes;    /* (owned) */
    gsize max_bytes;
} Exchange;

static void
clear_source(GSource **source)
{
    if (*source != NULL)
        g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
exchange_release(Exchange *exchange)
{
    clear_source(&exchange->timer);
    clear_source(&exchange->caller);
}

static void
exchange_free(gpointer data)
{
    Exchange *exchange = data;
    exchange_release(exchange);
    g_clear_object(&exchange->message);
    g_clear_object(&exchange->cancellable);
    g_clear_object(&exchange->stream);
    g_clear_pointer(&exchange->bytes, g_byte_array_unref);
    g_free(exchange);
}

static void
fail(GTask *task, GError *error)
{
    Exchange *exchange = g_task_get_task_data(task);
    exchange_release(exchange);
    if (exchange->timed_out && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_error_free(error);
        error = eb_error_new(EB_ERROR_TIMEOUT, "discord.timeout", "no whole answer within %u ms", exchange->timeout_ms);
    }
    g_task_return_error(task, error);
}

static gboolean
on_timeout(gpointer user_data)
{
    Exchange *exchange = user_data;
    exchange->timed_out = TRUE;
    g_cancellable_cancel(exchange->cancellable);
    return G_SOURCE_REMOVE;
}

static gboolean
on_caller_cancelled(GCancellable *caller, gpointer user_data)
{
    Exchange *exchange = user_data;
    g_cancellable_cancel(exchange->cancellable);
    return G_SOURCE_REMOVE;
}

static GError *
too_long(Exchange *exchange)
{
    return eb_error_new(EB_ERROR_QUOTA, "discord.answer-size", "the answer is longer than %" G_GSIZE_FORMAT " bytes",
                        exchange->max_bytes);
}

static void
on_chunk(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Exchange *exchange = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GBytes) chunk = g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &error);
    if (chunk == NULL) {
        fail(task, error);
        return;
    }
    gsize length;
    const guint8 *data = g_bytes_get_data(chunk, &length);
    if (length > exchange->max_bytes - exchange->bytes->len) {
        fail(task, too_long(exchange));
        return;
    }
    if (length == 0) {
        exchange_release(exchange);
        g_task_return_pointer(task, g_byte_array_free_to_bytes(g_steal_pointer(&exchange->bytes)),
                              (GDestroyNotify)g_bytes_unref);
        return;
    }
    g_byte_array_append(exchange->bytes, data, (guint)length);
    g_input_stream_read_bytes_async(exchange->stream, READ_CHUNK, G_PRIORITY_DEFAULT, exchange->cancellable, on_chunk,
                                    g_steal_pointer(&task));
}

static void
on_sent(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Exchange *exchange = g_task_get_task_data(task);
    GError *error = NULL;
    exchange->stream = soup_session_send_finish(SOUP_SESSION(source), result, &error);
    if (exchange->stream == NULL) {
        fail(task, error);
        return;
    }
    SoupMessageHeaders *headers = soup_message_get_response_headers(exchange->message);
    if (soup_message_headers_get_encoding(headers) == SOUP_ENCODING_CONTENT_LENGTH &&
        soup_message_headers_get_content_length(headers) > (goffset)exchange->max_bytes) {
        fail(task, too_long(exchange));
        return;
    }
    g_input_stream_read_bytes_async(exchange->stream, READ_CHUNK, G_PRIORITY_DEFAULT, exchange->cancellable, on_chunk,
                                    g_steal_pointer(&task));
}

void
discord_exchange_async(SoupSession *session, SoupMessage *message, gsize max_bytes, guint timeout_ms,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(session, NULL, callback, user_data);
    Exchange *exchange = g_new0(Exchange, 1);
    g_task_set_source_tag(task, discord_exchange_async);
    g_task_set_task_data(task, exchange, exchange_free);
    exchange->message = g_object_ref(message);
    exchange->cancellable = g_cancellable_new();
    exchange->bytes = g_byte_array_new();
    exchange->max_bytes = max_bytes;
    exchange->timeout_ms = timeout_ms;
    exchange->timer = g_timeout_source_new(timeout_ms);
    g_source_set_callback(exchange->timer, on_timeout, exchange, NULL);
    g_source_attach(exchange->timer, g_main_context_get_thread_default());
    if (cancellable != NULL) {
        exchange->caller = g_cancellable_source_new(cancellable);
        g_source_set_callback(exchange->caller, G_SOURCE_FUNC(on_caller_cancelled), exchange, NULL);
        g_source_attach(exchange->caller, g_main_context_get_thread_default());
        if (g_cancellable_is_cancelled(cancellable))
            g_cancellable_cancel(exchange->cancellable);
    }
    soup_message_add_flags(message, SOUP_MESSAGE_NO_REDIRECT);
    soup_session_send_async(session, message, G_PRIORITY_DEFAULT, exchange->cancellable, on_sent, task);
}

GBytes *
discord_exchange_finish(SoupSession *session, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, discord_exchange_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

gboolean
discord_exchange_was_not_sent(const GError *error)
{
    return error->domain == G_RESOLVER_ERROR || g_error_matches(error, G_TLS_ERROR, G_TLS_ERROR_UNAVAILABLE) ||
           g_error_matches(error, G_TLS_ERROR, G_TLS_ERROR_BAD_CERTIFICATE) ||
           g_error_matches(error, G_TLS_ERROR, G_TLS_ERROR_NOT_TLS) ||
           g_error_matches(error, G_TLS_ERROR, G_TLS_ERROR_HANDSHAKE) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NETWORK_UNREACHABLE) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_HOST_NOT_FOUND);
}
