/* SPDX-License-Identifier: MIT */
#include "discord-gateway-socket.h"

#define WHY_MAX 160

struct _DiscordGatewaySocket {
    GObject parent_instance;
    const DiscordGatewaySocketFuncs *funcs; /* (nullable): NULL after drop() */
    gpointer user_data;
    gboolean ended;            /* closed was told, or is not to be */
    SoupMessage *message;      /* (owned) */
    GCancellable *cancellable; /* (owned): of the try to open it */
    gboolean opening;
    SoupWebsocketConnection *connection; /* (nullable) (owned) */
    gulong handlers[4];
    char *why; /* (nullable) */
};

G_DEFINE_FINAL_TYPE(DiscordGatewaySocket, discord_gateway_socket, G_TYPE_OBJECT)

static void
drop_connection(DiscordGatewaySocket *self)
{
    if (self->connection == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(self->handlers); i++)
        g_signal_handler_disconnect(self->connection, self->handlers[i]);
    g_clear_object(&self->connection);
}

static void
discord_gateway_socket_dispose(GObject *object)
{
    DiscordGatewaySocket *self = DISCORD_GATEWAY_SOCKET(object);
    drop_connection(self);
    g_clear_object(&self->message);
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->why, g_free);
    G_OBJECT_CLASS(discord_gateway_socket_parent_class)->dispose(object);
}

static void
discord_gateway_socket_class_init(DiscordGatewaySocketClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = discord_gateway_socket_dispose;
}

static void
discord_gateway_socket_init(DiscordGatewaySocket *self)
{
    self->cancellable = g_cancellable_new();
}

SoupSession *
discord_gateway_socket_session(gboolean direct)
{
    SoupSession *session = soup_session_new_with_options("timeout", 0, NULL);
    /* No compression is asked for: one guild has little traffic, and what is small may not grow. */
    soup_session_remove_feature_by_type(session, SOUP_TYPE_WEBSOCKET_EXTENSION_MANAGER);
    if (direct)
        soup_session_set_proxy_resolver(session, NULL);
    return session;
}

static void
take_why(DiscordGatewaySocket *self, const char *text)
{
    if (self->why == NULL && text != NULL && *text != '\0')
        self->why = eb_log_escape(text, -1, WHY_MAX);
}

static void
end(DiscordGatewaySocket *self, guint code)
{
    if (self->ended)
        return;
    self->ended = TRUE;
    self->funcs->closed(code, self->why, self->user_data);
}

static void
gone(DiscordGatewaySocket *self)
{
    g_autoptr(DiscordGatewaySocket) keep = g_object_ref(self);
    drop_connection(self);
    if (self->funcs != NULL)
        self->funcs->gone(self, self->user_data);
}

static void
on_message(SoupWebsocketConnection *connection, int type, GBytes *payload, gpointer user_data)
{
    DiscordGatewaySocket *self = user_data;
    if (self->ended)
        return;
    g_object_ref(self);
    self->funcs->received(payload, self->user_data);
    g_object_unref(self);
}

static void
on_error(SoupWebsocketConnection *connection, GError *error, gpointer user_data)
{
    /* libsoup says goodbye by itself; there is nothing more to come from this connection. */
    g_autoptr(DiscordGatewaySocket) self = g_object_ref(user_data);
    take_why(self, error->message);
    end(self, 0);
}

/* The server's close frame is here: what follows is its goodbye, which can take libsoup seconds. */
static void
on_closing(SoupWebsocketConnection *connection, gpointer user_data)
{
    g_autoptr(DiscordGatewaySocket) self = g_object_ref(user_data);
    guint code = soup_websocket_connection_get_close_code(connection);
    if (code == 0)
        return;
    take_why(self, soup_websocket_connection_get_close_data(connection));
    end(self, code);
}

static void
on_closed(SoupWebsocketConnection *connection, gpointer user_data)
{
    g_autoptr(DiscordGatewaySocket) self = g_object_ref(user_data);
    take_why(self, soup_websocket_connection_get_close_data(connection));
    end(self, soup_websocket_connection_get_close_code(connection));
    gone(self);
}

static void
on_connected(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordGatewaySocket) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(SoupWebsocketConnection) connection =
        soup_session_websocket_connect_finish(SOUP_SESSION(source), result, &error);

    self->opening = FALSE;
    if (self->funcs == NULL)
        return;
    if (connection == NULL || self->ended) {
        guint status = soup_message_get_status(self->message);
        g_autofree char *text = status >= 300 ? g_strdup_printf("HTTP status %u", status) : NULL;
        take_why(self, text != NULL ? text : error != NULL ? error->message : NULL);
        end(self, 0);
        gone(self);
        return;
    }
    self->connection = g_steal_pointer(&connection);
    soup_websocket_connection_set_max_incoming_payload_size(self->connection, DISCORD_GATEWAY_MAX_FRAME);
    self->handlers[0] = g_signal_connect(self->connection, "message", G_CALLBACK(on_message), self);
    self->handlers[1] = g_signal_connect(self->connection, "error", G_CALLBACK(on_error), self);
    self->handlers[2] = g_signal_connect(self->connection, "closing", G_CALLBACK(on_closing), self);
    self->handlers[3] = g_signal_connect(self->connection, "closed", G_CALLBACK(on_closed), self);
    self->funcs->opened(self->user_data);
}

DiscordGatewaySocket *
discord_gateway_socket_open(SoupSession *session, const char *url, const DiscordGatewaySocketFuncs *funcs,
                            gpointer user_data)
{
    DiscordGatewaySocket *self = g_object_new(DISCORD_TYPE_GATEWAY_SOCKET, NULL);
    g_autoptr(GUri) uri = g_uri_parse(url, SOUP_HTTP_URI_FLAGS, NULL);

    g_return_val_if_fail(uri != NULL, self);
    self->funcs = funcs;
    self->user_data = user_data;
    self->opening = TRUE;
    self->message = soup_message_new_from_uri(SOUP_METHOD_GET, uri);
    /* The URL was judged; where it would be led to was not. */
    soup_message_add_flags(self->message, SOUP_MESSAGE_NO_REDIRECT);
    soup_session_websocket_connect_async(session, self->message, NULL, NULL, G_PRIORITY_DEFAULT, self->cancellable,
                                         on_connected, g_object_ref(self));
    return self;
}

void
discord_gateway_socket_send(DiscordGatewaySocket *self, const DiscordGatewayPayload *payload)
{
    g_return_if_fail(!payload->bad);
    if (self->connection != NULL && soup_websocket_connection_get_state(self->connection) == SOUP_WEBSOCKET_STATE_OPEN)
        soup_websocket_connection_send_text(self->connection, payload->text);
}

void
discord_gateway_socket_close(DiscordGatewaySocket *self, guint code)
{
    self->ended = TRUE;
    g_cancellable_cancel(self->cancellable);
    if (self->connection != NULL && soup_websocket_connection_get_state(self->connection) == SOUP_WEBSOCKET_STATE_OPEN)
        soup_websocket_connection_close(self->connection, (gushort)code, NULL);
}

void
discord_gateway_socket_drop(DiscordGatewaySocket *self)
{
    self->ended = TRUE;
    self->funcs = NULL;
    g_cancellable_cancel(self->cancellable);
    drop_connection(self);
}
