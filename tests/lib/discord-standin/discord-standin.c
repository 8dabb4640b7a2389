/* SPDX-License-Identifier: MIT */

#include "discord-standin.h"

#include "ds-control.h"
#include "ds-gateway.h"
#include "ds-record.h"
#include "ds-request.h"
#include "ds-socket.h"

#include <string.h>

struct _DiscordStandin {
    SoupServer *server;
    GSocketService *service; /* (nullable): while connections are refused */
    GSocketService *control_service;
    DsWorld *world;
    DsControl *control;
    guint16 port;
    char *api;
    char *control_url;
    GPtrArray *parked; /* (element-type GSocketConnection): taken, never read */
    guint comeback;
};

static gboolean
on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, gpointer user_data)
{
    DiscordStandin *self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketAddress) local = g_socket_connection_get_local_address(connection, &error);
    g_autoptr(GSocketAddress) remote =
        local != NULL ? g_socket_connection_get_remote_address(connection, &error) : NULL;

    if (self->world->silent && service != self->control_service) {
        g_ptr_array_add(self->parked, g_object_ref(connection));
        self->world->held++;
        return TRUE;
    }
    if (remote != NULL)
        g_object_set_data(G_OBJECT(remote), DS_SOCKET_KEY, g_socket_connection_get_socket(connection));
    if (remote == NULL || !soup_server_accept_iostream(self->server, G_IO_STREAM(connection), local, remote, &error))
        g_message("a connection was dropped: %s", error->message);
    return TRUE;
}

static void
close_service(GSocketService **service)
{
    if (*service == NULL)
        return;
    g_socket_service_stop(*service);
    g_socket_listener_close(G_SOCKET_LISTENER(*service));
    g_clear_object(service);
}

static GSocketService *
listen_on(DiscordStandin *self, guint16 *port, GError **error)
{
    g_autoptr(GSocketService) service = g_socket_service_new();
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, *port);
    g_autoptr(GSocketAddress) bound = NULL;

    g_socket_listener_set_backlog(G_SOCKET_LISTENER(service), 128);
    g_signal_connect(service, "incoming", G_CALLBACK(on_incoming), self);
    if (!g_socket_listener_add_address(G_SOCKET_LISTENER(service), address, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP,
                                       NULL, &bound, error))
        return NULL;
    *port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
    return g_steal_pointer(&service);
}

static gboolean
on_comeback(gpointer user_data)
{
    DiscordStandin *self = user_data;
    g_autoptr(GError) error = NULL;

    self->service = listen_on(self, &self->port, &error);
    if (self->service == NULL) {
        g_message("still refusing: %s", error->message);
        return G_SOURCE_CONTINUE;
    }
    self->comeback = 0;
    return G_SOURCE_REMOVE;
}

static void
on_refuse(gpointer user_data, double seconds)
{
    DiscordStandin *self = user_data;

    close_service(&self->service);
    if (self->comeback != 0)
        g_source_remove(self->comeback);
    self->comeback = g_timeout_add((guint)(seconds * 1000), on_comeback, self);
}

static void
on_speak(gpointer user_data)
{
    DiscordStandin *self = user_data;

    for (guint i = 0; i < self->parked->len; i++)
        ds_socket_reset(g_socket_connection_get_socket(g_ptr_array_index(self->parked, i)));
    g_ptr_array_set_size(self->parked, 0);
}

static void
on_changed(gpointer user_data)
{
    ds_control_changed(((DiscordStandin *)user_data)->control);
}

static void
on_request(SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
    DiscordStandin *self = user_data;

    if (g_str_has_prefix(path, "/__control/")) {
        ds_control_handle(self->control, message, path);
        return;
    }
    ds_record_request(self->world, message);
    if (g_str_has_prefix(path, "/attachments/"))
        ds_cdn_handle(self->world, message, path, query);
    else
        ds_rest_handle(self->world, message, path, query);
}

static void
on_websocket(SoupServer *server, SoupServerMessage *message, const char *path, SoupWebsocketConnection *websocket,
             gpointer user_data)
{
    ds_gateway_accept(((DiscordStandin *)user_data)->world->gateway, message, path, websocket);
}

static gboolean
listen_unused(SoupServer *server, GError **error)
{
    g_autoptr(GSocket) socket = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, error);
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, 0);

    return socket != NULL && g_socket_bind(socket, address, FALSE, error) && g_socket_listen(socket, error) &&
           soup_server_listen_socket(server, socket, 0, error);
}

DiscordStandin *
discord_standin_new(const char *token, guint16 port, GError **error)
{
    g_autoptr(DiscordStandin) self = g_new0(DiscordStandin, 1);
    guint16 control_port = 0;

    self->world = ds_world_new(token);
    self->control = ds_control_new(self->world);
    self->parked = g_ptr_array_new_with_free_func(g_object_unref);
    self->world->changed = on_changed;
    self->world->refuse = on_refuse;
    self->world->speak = on_speak;
    self->world->hooks_data = self;
    self->server = soup_server_new("server-header", "discord-standin", "raw-paths", TRUE, NULL);
    soup_server_add_handler(self->server, NULL, on_request, self, NULL);
    soup_server_add_websocket_handler(self->server, "/gateway", NULL, NULL, on_websocket, self, NULL);
    soup_server_add_websocket_handler(self->server, "/resume", NULL, NULL, on_websocket, self, NULL);
    /* A server of libsoup 3.2 without a listener of its own ends every connection after one answer; with one, nobody
       comes by it: its own never lets go of what it accepted. */
    if (!listen_unused(self->server, error))
        return NULL;
    self->port = port;
    self->service = listen_on(self, &self->port, error);
    self->control_service = self->service != NULL ? listen_on(self, &control_port, error) : NULL;
    if (self->control_service == NULL)
        return NULL;
    g_free(self->world->origin);
    self->world->origin = g_strdup_printf("http://127.0.0.1:%u", self->port);
    self->api = g_strdup_printf("%s/api/v10", self->world->origin);
    self->control_url = g_strdup_printf("http://127.0.0.1:%u/__control/", control_port);
    return g_steal_pointer(&self);
}

gboolean
discord_standin_record(DiscordStandin *self, const char *path, GError **error)
{
    return ds_record_open(self->world, path, error);
}

void
discord_standin_free(DiscordStandin *self)
{
    self->world->changed = NULL;
    if (self->comeback != 0)
        g_source_remove(self->comeback);
    close_service(&self->service);
    close_service(&self->control_service);
    g_ptr_array_unref(self->parked);
    ds_control_free(self->control);
    if (self->server != NULL)
        soup_server_disconnect(self->server);
    ds_world_free(self->world);
    g_clear_object(&self->server);
    g_free(self->api);
    g_free(self->control_url);
    g_free(self);
}

const char *
discord_standin_get_origin(DiscordStandin *self)
{
    return self->world->origin;
}

const char *
discord_standin_get_api(DiscordStandin *self)
{
    return self->api;
}

const char *
discord_standin_get_control(DiscordStandin *self)
{
    return self->control_url;
}

JsonObject *
discord_standin_call(DiscordStandin *self, const char *verb, const char *json)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = json != NULL ? eb_json_parse(json, strlen(json), NULL, &error) : NULL;
    JsonObject *result = error == NULL ? ds_control_run(self->world, verb, eb_json_node_object(node), &error) : NULL;

    if (result == NULL)
        g_error("%s %s: %s", verb, json != NULL ? json : "", error->message);
    return result;
}

guint
discord_standin_count(DiscordStandin *self, const char *list, const char *json)
{
    g_autoptr(JsonObject) result = discord_standin_call(self, list, json);
    JsonArray *items = eb_json_get_array(result, "items");

    return items != NULL ? json_array_get_length(items) : 0;
}

gint64
discord_standin_stat(DiscordStandin *self, const char *name)
{
    g_autoptr(JsonObject) stats = discord_standin_call(self, "stats", NULL);

    return eb_json_get_int(stats, name, -1);
}
