/* SPDX-License-Identifier: MIT */
#include "core/control/eb-control-client.h"

#include <errno.h>
#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct _EbControlClient {
    GObject parent_instance;
    GSocketConnection *connection;
    EbJsonrpc *peer;
};

G_DEFINE_FINAL_TYPE(EbControlClient, eb_control_client, G_TYPE_OBJECT)

static void
eb_control_client_finalize(GObject *object)
{
    EbControlClient *self = EB_CONTROL_CLIENT(object);

    if (self->peer != NULL)
        eb_jsonrpc_close(self->peer, TRUE);
    g_clear_object(&self->peer);
    if (self->connection != NULL)
        g_io_stream_close(G_IO_STREAM(self->connection), NULL, NULL);
    g_clear_object(&self->connection);
    G_OBJECT_CLASS(eb_control_client_parent_class)->finalize(object);
}

static void
eb_control_client_class_init(EbControlClientClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_control_client_finalize;
}

static void
eb_control_client_init(EbControlClient *self)
{
}

/* @wait_ms: 0 = do not wait */
static GSocket *
connect_to(const char *path, guint wait_ms, GError **error)
{
    const struct timeval wait = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
    g_autoptr(GError) local = NULL;

    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        eb_set_error(error, EB_ERROR_CONFIG, "control.path", "%s is too long for a socket", path);
        return NULL;
    }
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    g_autoptr(GSocket) socket =
        g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, &local);
    if (socket != NULL) {
        g_socket_set_blocking(socket, wait_ms != 0);
        setsockopt(g_socket_get_fd(socket), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    }
    if (socket != NULL && g_socket_connect(socket, address, NULL, &local)) {
        g_socket_set_blocking(socket, FALSE);
        return g_steal_pointer(&socket);
    }
    if (g_error_matches(local, G_IO_ERROR, G_IO_ERROR_NOT_FOUND) ||
        g_error_matches(local, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED))
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "control.down",
                     "the service is not running: nobody listens on %s (errand-box up)", path);
    else if (g_error_matches(local, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
        eb_set_error(error, EB_ERROR_BUSY, "control.queue",
                     "the service runs and takes no connections (%s is full): it is busy, or hangs", path);
    else if (g_error_matches(local, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        eb_set_error(error, EB_ERROR_DENIED, "control.denied",
                     "%s: permission denied (root and the service's account may ask it)", path);
    else
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "control.down", "%s: %s", path, local->message);
    return NULL;
}

static EbControlClient *
client_new(const char *state_dir, guint wait_ms, GError **error)
{
    g_autofree char *path = eb_control_path(state_dir);
    g_autoptr(GSocket) socket = connect_to(path, wait_ms, error);

    if (socket == NULL)
        return NULL;
    EbControlClient *self = g_object_new(EB_TYPE_CONTROL_CLIENT, NULL);
    self->connection = g_socket_connection_factory_create_connection(socket);
    self->peer =
        eb_jsonrpc_new(g_io_stream_get_input_stream(G_IO_STREAM(self->connection)),
                       g_io_stream_get_output_stream(G_IO_STREAM(self->connection)), &EB_JSONRPC_LIMITS_CONTROL);
    eb_jsonrpc_start(self->peer);
    return self;
}

EbControlClient *
eb_control_client_new(const char *state_dir, GError **error)
{
    return client_new(state_dir, EB_CONTROL_CONNECT_MS, error);
}

EbControlClient *
eb_control_client_new_now(const char *state_dir, GError **error)
{
    return client_new(state_dir, 0, error);
}

pid_t
eb_control_client_get_service_pid(EbControlClient *self)
{
    g_autoptr(GCredentials) service = g_socket_get_credentials(g_socket_connection_get_socket(self->connection), NULL);
    return service != NULL ? MAX(g_credentials_get_unix_pid(service, NULL), 0) : 0;
}

EbJsonrpc *
eb_control_client_get_peer(EbControlClient *self)
{
    return self->peer;
}

static void
answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    g_autoptr(JsonObject) error_object = NULL;
    GError *error = NULL;
    JsonNode *node = eb_jsonrpc_call_finish(EB_JSONRPC(source), result, &error_object, &error);

    if (node != NULL) {
        g_task_return_pointer(task, node, (GDestroyNotify)json_node_unref);
        return;
    }
    if (error_object != NULL) {
        const char *message = eb_json_get_string(error_object, "message");
        gint64 code = eb_json_get_int(error_object, "code", EB_ERROR_FAILED);
        if (code < EB_ERROR_FAILED || code > EB_ERROR_LOCKED)
            code = EB_ERROR_PROTOCOL;
        g_error_free(error);
        error = eb_error_new((EbErrorCode)code, "control.error", "%s", message != NULL ? message : "no reason given");
    }
    g_task_return_error(task, error);
}

void
eb_control_client_call_async(EbControlClient *self, const char *method, JsonNode *params, guint deadline_ms,
                             GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTROL_CLIENT(self) && method != NULL);
    GTask *task = g_task_new(self, NULL, callback, user_data);

    g_task_set_source_tag(task, eb_control_client_call_async);
    eb_jsonrpc_call_async(self->peer, method, params, deadline_ms, NULL, answered, task);
}

JsonNode *
eb_control_client_call_finish(EbControlClient *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
