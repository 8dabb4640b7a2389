/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-control"

#include "core/control/eb-control-server.h"
#include "core/base/eb-source.h"

#include <errno.h>
#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
    EbControlServer *server; /* not owned */
    GSocketConnection *connection;
    EbJsonrpc *peer;
    GSource *gone; /* (nullable): frees this once the stack has unwound */
} Client;

struct _EbControlServer {
    GObject parent_instance;
    char *path;
    GSocket *socket;    /* (nullable) once closed */
    GSource *accepting; /* (nullable) */
    GPtrArray *clients; /* (element-type Client), at most EB_CONTROL_MAX_CLIENTS */
};

enum { SIGNAL_REQUEST, SIGNAL_GONE, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(EbControlServer, eb_control_server, G_TYPE_OBJECT)

static void
client_free(gpointer data)
{
    Client *client = data;

    if (client->gone != NULL) {
        g_source_destroy(client->gone);
        g_source_unref(client->gone);
    }
    g_signal_handlers_disconnect_by_data(client->peer, client);
    eb_jsonrpc_close(client->peer, TRUE);
    g_object_unref(client->peer);
    g_io_stream_close(G_IO_STREAM(client->connection), NULL, NULL);
    g_object_unref(client->connection);
    g_free(client);
}

static void
eb_control_server_finalize(GObject *object)
{
    EbControlServer *self = EB_CONTROL_SERVER(object);

    eb_control_server_close(self);
    g_ptr_array_unref(self->clients);
    g_free(self->path);
    G_OBJECT_CLASS(eb_control_server_parent_class)->finalize(object);
}

static void
eb_control_server_class_init(EbControlServerClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_control_server_finalize;
    signals[SIGNAL_REQUEST] =
        g_signal_new("request", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, g_signal_accumulator_true_handled, NULL,
                     NULL, G_TYPE_BOOLEAN, 4, EB_TYPE_JSONRPC, G_TYPE_STRING, JSON_TYPE_OBJECT, JSON_TYPE_NODE);
    signals[SIGNAL_GONE] = g_signal_new("gone", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                        G_TYPE_NONE, 1, EB_TYPE_JSONRPC);
}

static void
eb_control_server_init(EbControlServer *self)
{
    self->clients = g_ptr_array_new_with_free_func(client_free);
}

static gboolean
client_request(EbJsonrpc *peer, const char *method, JsonNode *params, JsonNode *id, gpointer user_data)
{
    Client *client = user_data;
    gboolean handled = FALSE;

    g_signal_emit(client->server, signals[SIGNAL_REQUEST], 0, peer, method, eb_json_node_object(params), id, &handled);
    return handled;
}

static gboolean
drop_client(gpointer user_data)
{
    Client *client = user_data;
    EbControlServer *self = client->server;

    g_signal_emit(self, signals[SIGNAL_GONE], 0, client->peer);
    g_ptr_array_remove_fast(self->clients, client);
    return G_SOURCE_REMOVE;
}

static void
client_closed(EbJsonrpc *peer, GError *error, gpointer user_data)
{
    Client *client = user_data;

    if (client->gone != NULL)
        return;
    client->gone = g_idle_source_new();
    g_source_set_callback(client->gone, drop_client, client, NULL);
    g_source_attach(client->gone, NULL);
}

/* The mode of the socket keeps others out; this is the second lock, which holds for inherited descriptors too. */
static gboolean
may_connect(GSocket *socket)
{
    g_autoptr(GCredentials) credentials = g_socket_get_credentials(socket, NULL);
    uid_t uid = credentials != NULL ? g_credentials_get_unix_user(credentials, NULL) : (uid_t)-1;

    if (uid != (uid_t)-1 && (uid == 0 || uid == geteuid()))
        return TRUE;
    eb_debug("a connection of uid %d was refused", (int)uid);
    return FALSE;
}

static gboolean
accept_one(GSocket *listener, GIOCondition condition, gpointer user_data)
{
    EbControlServer *self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocket) socket = g_socket_accept(listener, NULL, &error);

    if (socket == NULL) {
        eb_debug("accept: %s", error->message);
        return G_SOURCE_CONTINUE;
    }
    if (!may_connect(socket) || self->clients->len >= EB_CONTROL_MAX_CLIENTS) {
        g_socket_close(socket, NULL);
        return G_SOURCE_CONTINUE;
    }
    Client *client = g_new0(Client, 1);
    g_socket_set_blocking(socket, FALSE);
    client->server = self;
    client->connection = g_socket_connection_factory_create_connection(socket);
    client->peer =
        eb_jsonrpc_new(g_io_stream_get_input_stream(G_IO_STREAM(client->connection)),
                       g_io_stream_get_output_stream(G_IO_STREAM(client->connection)), &EB_JSONRPC_LIMITS_CONTROL);
    g_signal_connect(client->peer, "request", G_CALLBACK(client_request), client);
    g_signal_connect(client->peer, "closed", G_CALLBACK(client_closed), client);
    g_ptr_array_add(self->clients, client);
    eb_jsonrpc_start(client->peer);
    return G_SOURCE_CONTINUE;
}

static gboolean
prepare_path(const char *path, GError **error)
{
    g_autofree char *dir = g_path_get_dirname(path);
    struct stat info;

    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        eb_set_error(error, EB_ERROR_CONFIG, "control.path", "%s is too long for a socket: choose a shorter state_dir",
                     path);
        return FALSE;
    }
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        eb_set_error(error, EB_ERROR_DENIED, "control.dir", "%s: %s", dir, g_strerror(errno));
        return FALSE;
    }
    if (lstat(dir, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022) != 0) {
        eb_set_error(error, EB_ERROR_DENIED, "control.dir", "%s is not a directory of this account alone", dir);
        return FALSE;
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        eb_set_error(error, EB_ERROR_DENIED, "control.path", "%s: %s", path, g_strerror(errno));
        return FALSE;
    }
    return TRUE;
}

EbControlServer *
eb_control_server_new(const char *path, GError **error)
{
    g_autoptr(EbControlServer) self = g_object_new(EB_TYPE_CONTROL_SERVER, NULL);

    if (!prepare_path(path, error))
        return NULL;
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    self->socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, error);
    if (self->socket == NULL) {
        eb_error_convert(error, "control.socket", path);
        return NULL;
    }
    mode_t before = umask(0177);
    gboolean bound = g_socket_bind(self->socket, address, FALSE, error);
    umask(before);
    if (!bound || !g_socket_listen(self->socket, error)) {
        eb_error_convert(error, "control.socket", path);
        return NULL;
    }
    self->path = g_strdup(path);
    g_socket_set_blocking(self->socket, FALSE);
    self->accepting = g_socket_create_source(self->socket, G_IO_IN, NULL);
    g_source_set_callback(self->accepting, G_SOURCE_FUNC(accept_one), self, NULL);
    g_source_attach(self->accepting, NULL);
    return g_steal_pointer(&self);
}

void
eb_control_server_close(EbControlServer *self)
{
    eb_clear_source(&self->accepting);
    if (self->path != NULL)
        unlink(self->path);
    g_clear_pointer(&self->path, g_free);
    g_clear_object(&self->socket);
    g_ptr_array_set_size(self->clients, 0);
}

guint
eb_control_server_get_n_clients(EbControlServer *self)
{
    return self->clients->len;
}
