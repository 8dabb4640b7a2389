/* SPDX-License-Identifier: MIT */
#include "gateway-peer.h"

#include <string.h>

#include "eb-test-soup.h"

static void
on_bot(SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
    GatewayPeer *self = user_data;
    g_autofree char *body = g_strdup_printf("{\"url\":\"%s\",\"shards\":1,\"session_start_limit\":{\"total\":1000,"
                                            "\"remaining\":1000,\"reset_after\":0,\"max_concurrency\":1}}",
                                            self->gateway_url);
    self->n_asked++;
    soup_server_message_set_status(message, 200, NULL);
    soup_server_message_set_response(message, "application/json", SOUP_MEMORY_COPY, body, strlen(body));
}

static void
on_message(SoupWebsocketConnection *socket, int type, GBytes *payload, gpointer user_data)
{
    GatewayPeer *self = user_data;
    gsize length;
    const char *text = g_bytes_get_data(payload, &length);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(text, length, NULL, &error);

    g_assert_no_error(error);
    g_assert_cmpint(type, ==, SOUP_WEBSOCKET_DATA_TEXT);
    if (eb_json_get_int(eb_json_node_object(node), "op", -1) != 1) {
        g_ptr_array_add(self->received, g_strndup(text, length));
        return;
    }
    self->n_beats++;
    if (!self->deaf && soup_websocket_connection_get_state(socket) == SOUP_WEBSOCKET_STATE_OPEN)
        soup_websocket_connection_send_text(socket, "{\"op\":11,\"d\":null,\"s\":null,\"t\":null}");
}

static void
on_closed(SoupWebsocketConnection *socket, gpointer user_data)
{
    GatewayPeer *self = user_data;
    self->last_close = soup_websocket_connection_get_close_code(socket);
    self->n_closed++;
}

static void
on_socket(SoupServer *server, SoupServerMessage *message, const char *path, SoupWebsocketConnection *socket,
          gpointer user_data)
{
    GatewayPeer *self = user_data;
    GUri *uri = soup_server_message_get_uri(message);

    g_assert_cmpstr(g_uri_get_query(uri), ==, "v=10&encoding=json");
    g_assert_null(soup_message_headers_get_one(soup_server_message_get_request_headers(message), "Authorization"));
    g_assert_null(
        soup_message_headers_get_one(soup_server_message_get_request_headers(message), "Sec-WebSocket-Extensions"));
    g_set_object(&self->socket, socket);
    self->n_sockets++;
    g_ptr_array_add(self->paths, g_strdup(path));
    g_signal_connect(socket, "message", G_CALLBACK(on_message), self);
    g_signal_connect(socket, "closed", G_CALLBACK(on_closed), self);
    if (!self->mute) {
        g_autofree char *hello = g_strdup_printf(
            "{\"t\":null,\"s\":null,\"op\":10,\"d\":{\"heartbeat_interval\":%u,\"_trace\":[]}}", self->interval);
        soup_websocket_connection_send_text(socket, hello);
    }
}

static void
on_refuse(SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
    GatewayPeer *self = user_data;
    if (self->refuse == 0)
        return;
    soup_server_message_set_status(message, self->refuse, NULL);
    if (self->refuse_location != NULL)
        soup_message_headers_replace(soup_server_message_get_response_headers(message), "Location",
                                     self->refuse_location);
}

static gboolean
on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, gpointer user_data)
{
    GatewayPeer *self = user_data;
    g_autoptr(GSocketAddress) local = g_socket_connection_get_local_address(connection, NULL);
    g_autoptr(GSocketAddress) remote = g_socket_connection_get_remote_address(connection, NULL);
    if (local != NULL && remote != NULL)
        soup_server_accept_iostream(self->server, G_IO_STREAM(connection), local, remote, NULL);
    return TRUE;
}

static void
accept_connections(GatewayPeer *self)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, 0);
    g_autoptr(GSocketAddress) bound = NULL;
    self->service = g_socket_service_new();
    g_signal_connect(self->service, "incoming", G_CALLBACK(on_incoming), self);
    g_socket_listener_add_address(G_SOCKET_LISTENER(self->service), address, G_SOCKET_TYPE_STREAM,
                                  G_SOCKET_PROTOCOL_TCP, NULL, &bound, &error);
    g_assert_no_error(error);
    self->port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
}

GatewayPeer *
gateway_peer_new(void)
{
    GatewayPeer *self = g_new0(GatewayPeer, 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *token = g_strdup(PEER_TOKEN);

    self->server = soup_server_new(NULL, NULL);
    soup_server_add_handler(self->server, "/gateway/bot", on_bot, self, NULL);
    soup_server_add_early_handler(self->server, "/ws", on_refuse, self, NULL);
    soup_server_add_websocket_handler(self->server, "/ws", NULL, NULL, on_socket, self, NULL);
    /* Without a listener of its own libsoup ends every connection after one answer. */
    eb_test_soup_listen(self->server, 0, &error);
    g_assert_no_error(error);
    accept_connections(self);
    self->token = eb_secret_new_take("chat-token", token, strlen(token), &error);
    g_assert_no_error(error);
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%u", self->port);
    self->site = discord_site_new(url, self->token, &error);
    g_assert_no_error(error);
    self->rest = discord_rest_new(self->site, self->token);
    self->gateway_url = g_strdup_printf("ws://127.0.0.1:%u/ws", self->port);
    self->interval = 41250;
    self->received = g_ptr_array_new_with_free_func(g_free);
    self->paths = g_ptr_array_new_with_free_func(g_free);
    self->contents = g_ptr_array_new_with_free_func(g_free);
    self->told = g_string_new(NULL);
    return self;
}

void
gateway_peer_free(GatewayPeer *self)
{
    if (self->gateway != NULL)
        gateway_peer_stop(self);
    discord_rest_close(self->rest);
    g_object_unref(self->rest);
    if (self->socket != NULL)
        g_signal_handlers_disconnect_by_data(self->socket, self);
    g_socket_service_stop(self->service);
    g_socket_listener_close(G_SOCKET_LISTENER(self->service));
    g_object_unref(self->service);
    soup_server_disconnect(self->server);
    g_clear_object(&self->socket);
    g_object_unref(self->server);
    eb_test_drain();
    discord_site_free(self->site);
    eb_secret_unref(self->token);
    g_ptr_array_unref(self->received);
    g_ptr_array_unref(self->paths);
    g_ptr_array_unref(self->contents);
    g_string_free(self->told, TRUE);
    g_clear_error(&self->failed);
    g_free(self->gateway_url);
    g_free(self);
}

/* --- what the gateway tells --- */

static void
on_ready(DiscordGateway *gateway, gboolean resumed, JsonObject *data, gpointer user_data)
{
    GatewayPeer *self = user_data;
    g_assert_true(discord_gateway_is_up(gateway));
    g_assert_true(resumed == (data == NULL));
    g_string_append_printf(self->told, "ready-%d ", resumed);
}

static void
on_dispatch(DiscordGateway *gateway, const char *type, JsonObject *data, gpointer user_data)
{
    GatewayPeer *self = user_data;
    const char *content = eb_json_get_string(data, "content");
    if (content != NULL)
        g_ptr_array_add(self->contents, g_strdup(content));
    self->n_told++;
    if (self->slow_ms > 0)
        g_usleep(self->slow_ms * 1000);
    else if (self->n_told < 100)
        g_string_append_printf(self->told, "%s ", type);
}

static void
on_down(DiscordGateway *gateway, const char *why, gpointer user_data)
{
    GatewayPeer *self = user_data;
    g_assert_cmpstr(why, !=, "");
    g_assert_false(discord_gateway_is_up(gateway));
    g_string_append(self->told, "down ");
}

static void
on_failed(DiscordGateway *gateway, GError *error, gpointer user_data)
{
    GatewayPeer *self = user_data;
    g_assert_null(self->failed);
    self->failed = g_error_copy(error);
    g_string_append(self->told, "failed ");
}

void
gateway_peer_make(GatewayPeer *self, const char *state_path)
{
    g_assert_null(self->gateway);
    self->gateway = discord_gateway_new(self->site, self->rest, self->token, PEER_INTENTS, state_path);
    g_signal_connect(self->gateway, "ready", G_CALLBACK(on_ready), self);
    g_signal_connect(self->gateway, "dispatch", G_CALLBACK(on_dispatch), self);
    g_signal_connect(self->gateway, "down", G_CALLBACK(on_down), self);
    g_signal_connect(self->gateway, "failed", G_CALLBACK(on_failed), self);
}

static gboolean
is_gone(gpointer user_data)
{
    return *(gpointer *)user_data == NULL;
}

void
gateway_peer_let_go(GatewayPeer *self)
{
    gpointer weak = self->gateway;
    g_object_add_weak_pointer(G_OBJECT(self->gateway), &weak);
    g_clear_object(&self->gateway);
    eb_test_run_until(is_gone, &weak);
}

void
gateway_peer_stop(GatewayPeer *self)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    discord_gateway_stop_async(self->gateway, NULL, eb_test_result_ready, &done);
    g_assert_true(discord_gateway_stop_finish(self->gateway, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
    g_assert_false(discord_gateway_is_up(self->gateway));
    eb_test_result_clear(&done);
    gateway_peer_let_go(self);
}

/* --- what the peer does --- */

void
gateway_peer_send(GatewayPeer *self, const char *text)
{
    soup_websocket_connection_send_text(self->socket, text);
}

void
gateway_peer_event(GatewayPeer *self, gint64 seq, const char *type, const char *content)
{
    g_autofree char *text = g_strdup_printf(
        "{\"t\":\"%s\",\"s\":%" G_GINT64_FORMAT ",\"op\":0,\"d\":{\"content\":\"%s\"}}", type, seq, content);
    gateway_peer_send(self, text);
}

void
gateway_peer_ready(GatewayPeer *self)
{
    g_autofree char *text = g_strdup_printf("{\"t\":\"READY\",\"s\":1,\"op\":0,\"d\":{\"v\":10,\"session_id\":"
                                            "\"session1\",\"resume_gateway_url\":\"ws://127.0.0.1:%u/ws/resume\"}}",
                                            self->port);
    gateway_peer_send(self, text);
}

void
gateway_peer_raw(GatewayPeer *self, const void *bytes, gsize length)
{
    GOutputStream *stream = g_io_stream_get_output_stream(soup_websocket_connection_get_io_stream(self->socket));
    gsize done = 0;
    while (done < length) {
        g_autoptr(GError) error = NULL;
        gssize part = g_pollable_output_stream_write_nonblocking(
            G_POLLABLE_OUTPUT_STREAM(stream), (const char *)bytes + done, length - done, NULL, &error);
        if (part > 0)
            done += (gsize)part;
        else if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
            return; /* the client has had enough */
        g_main_context_iteration(NULL, FALSE);
    }
}

void
gateway_peer_cut(GatewayPeer *self)
{
    g_io_stream_close(soup_websocket_connection_get_io_stream(self->socket), NULL, NULL);
}

static gboolean
has_received(gpointer user_data)
{
    GatewayPeer **pair = user_data;
    return pair[0]->received->len >= GPOINTER_TO_UINT(pair[1]);
}

const char *
gateway_peer_wait_received(GatewayPeer *self, guint count)
{
    gpointer pair[2] = {self, GUINT_TO_POINTER(count)};
    eb_test_run_until(has_received, pair);
    g_assert_cmpuint(self->received->len, ==, count);
    return self->received->pdata[count - 1];
}

static gboolean
has_told(gpointer user_data)
{
    gpointer *pair = user_data;
    GatewayPeer *self = pair[0];
    return self->told->len >= strlen(pair[1]);
}

void
gateway_peer_wait_told(GatewayPeer *self, const char *told)
{
    g_autofree char *expected = g_strdup_printf("%s ", told);
    gpointer pair[2] = {self, expected};
    eb_test_run_until(has_told, pair);
    g_assert_cmpstr(self->told->str, ==, expected);
    g_string_truncate(self->told, 0);
}

void
gateway_peer_bring_up(GatewayPeer *self, const char *state_path)
{
    guint before = self->received->len;
    gateway_peer_make(self, state_path);
    discord_gateway_start(self->gateway);
    g_assert_true(g_str_has_prefix(gateway_peer_wait_received(self, before + 1), "{\"op\":2,"));
    gateway_peer_ready(self);
    gateway_peer_wait_told(self, "ready-0");
}
