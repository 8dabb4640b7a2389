/* SPDX-License-Identifier: MIT */
#include "incus-websocket.h"

#include <gio/gunixsocketaddress.h>

#include "incus-error.h"

#define READ_CHUNK 4096
#define KEY_BYTES 16
/* RFC 6455, 1.3 */
#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    char *path;
    char *accept;
    char *request;
    GSocketClient *connector; /* (owned) */
    GIOStream *stream;        /* (nullable) (owned) */
    GByteArray *answer;
} Open;

static void read_step(GTask *task);

static void
open_free(gpointer data)
{
    Open *open = data;
    g_clear_object(&open->client);
    incus_deadline_unref(open->deadline);
    g_free(open->path);
    g_free(open->accept);
    g_free(open->request);
    g_clear_object(&open->connector);
    g_clear_object(&open->stream);
    g_byte_array_unref(open->answer);
    g_free(open);
}

char *
incus_handshake_accept(const char *key)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA1);
    guint8 digest[20];
    gsize length = sizeof digest;
    g_checksum_update(sum, (const guchar *)key, -1);
    g_checksum_update(sum, (const guchar *)ACCEPT_GUID, -1);
    g_checksum_get_digest(sum, digest, &length);
    return g_base64_encode(digest, length);
}

static gboolean
has_header(char **lines, const char *name, const char *value)
{
    gsize length = strlen(name);
    for (char **line = lines; *line != NULL; line++) {
        if (g_ascii_strncasecmp(*line, name, length) != 0 || (*line)[length] != ':')
            continue;
        g_autofree char *given = g_strstrip(g_strdup(*line + length + 1));
        return g_str_equal(given, value);
    }
    return FALSE;
}

gssize
incus_handshake_parse(const guint8 *bytes, gsize length, const char *accept, GError **error)
{
    const guint8 *end = length > 0 ? memmem(bytes, length, "\r\n\r\n", 4) : NULL;
    if (end == NULL) {
        if (length < INCUS_HANDSHAKE_MAX)
            return 0;
        eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "the websocket answer's header is too long");
        return -1;
    }
    g_autofree char *header = g_strndup((const char *)bytes, (gsize)(end - bytes));
    g_auto(GStrv) lines = g_strsplit(header, "\r\n", 0);
    const char *status = lines[0] != NULL ? strchr(lines[0], ' ') : NULL;
    gint64 code = status != NULL ? g_ascii_strtoll(status + 1, NULL, 10) : 0;
    if (!g_str_has_prefix(header, "HTTP/1.1 ") || code < 100 || code > 599) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "the websocket answer is no HTTP");
        return -1;
    }
    if (code != 101) {
        g_autofree char *text = g_strdup_printf("the websocket was refused with status %d", (int)code);
        g_propagate_error(error, incus_error_new((int)code, text));
        return -1;
    }
    if (!has_header(lines + 1, "Sec-WebSocket-Accept", accept)) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "the websocket answer does not belong to the request");
        return -1;
    }
    return (gssize)(end - bytes) + 4;
}

static void
open_fail(GTask *task, GError *error)
{
    Open *open = g_task_get_task_data(task);
    if (error->domain != EB_ERROR && !g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_autofree char *where = incus_endpoint_describe(incus_client_get_endpoint(open->client));
        GError *converted =
            eb_error_new(EB_ERROR_UNAVAILABLE, "incus.lost", "%s: websocket failed: %s", where, error->message);
        eb_error_set_retry(converted, 1000);
        g_error_free(error);
        error = converted;
    }
    incus_deadline_convert(open->deadline, "websocket", &error);
    g_task_return_error(task, error);
    g_object_unref(task);
}

static void
open_complete(GTask *task, gsize header)
{
    Open *open = g_task_get_task_data(task);
    g_autoptr(IncusFlow) flow = incus_flow_new(open->stream, open->answer->data + header, open->answer->len - header);
    g_autofree char *url = g_strdup_printf("ws://incus%s", open->path);
    g_autoptr(GUri) uri = g_uri_parse(url, SOUP_HTTP_URI_FLAGS, NULL);
    SoupWebsocketConnection *connection =
        soup_websocket_connection_new(G_IO_STREAM(flow), uri, SOUP_WEBSOCKET_CONNECTION_CLIENT, NULL, NULL, NULL);
    soup_websocket_connection_set_max_incoming_payload_size(connection, INCUS_WEBSOCKET_MAX_PAYLOAD);
    g_task_return_pointer(task, connection, g_object_unref);
    g_object_unref(task);
}

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Open *open = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GBytes) chunk = g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &error);
    if (chunk != NULL && g_bytes_get_size(chunk) == 0)
        error = eb_error_new(EB_ERROR_UNAVAILABLE, "incus.lost", "incusd closed the connection of a websocket");
    if (error != NULL) {
        open_fail(task, error);
        return;
    }
    gsize length;
    gconstpointer data = g_bytes_get_data(chunk, &length);
    g_byte_array_append(open->answer, data, (guint)length);
    gssize header = incus_handshake_parse(open->answer->data, open->answer->len, open->accept, &error);
    if (header < 0)
        open_fail(task, error);
    else if (header == 0)
        read_step(task);
    else
        open_complete(task, (gsize)header);
}

static void
read_step(GTask *task)
{
    Open *open = g_task_get_task_data(task);
    g_input_stream_read_bytes_async(g_io_stream_get_input_stream(open->stream), READ_CHUNK, G_PRIORITY_DEFAULT,
                                    incus_deadline_get_cancellable(open->deadline), on_read, task);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    GError *error = NULL;
    if (g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, &error))
        read_step(task);
    else
        open_fail(task, error);
}

static void
on_connected(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Open *open = g_task_get_task_data(task);
    GError *error = NULL;
    GSocketConnection *connection = g_socket_client_connect_finish(G_SOCKET_CLIENT(source), result, &error);
    if (connection == NULL) {
        open_fail(task, error);
        return;
    }
    open->stream = G_IO_STREAM(connection);
    /* A TLS connection comes wrapped, and the wrapper's streams are pollable as well. */
    g_output_stream_write_all_async(g_io_stream_get_output_stream(open->stream), open->request, strlen(open->request),
                                    G_PRIORITY_DEFAULT, incus_deadline_get_cancellable(open->deadline), on_written,
                                    task);
}

static gboolean
on_accept_certificate(GTlsConnection *connection, GTlsCertificate *certificate, GTlsCertificateFlags errors,
                      gpointer user_data)
{
    GTlsCertificate *pinned = user_data;
    return pinned != NULL && g_tls_certificate_is_same(certificate, pinned);
}

static void
on_event(GSocketClient *connector, GSocketClientEvent event, GSocketConnectable *connectable, GIOStream *stream,
         gpointer user_data)
{
    Open *open = user_data;
    const IncusEndpoint *endpoint = incus_client_get_endpoint(open->client);
    if (event != G_SOCKET_CLIENT_TLS_HANDSHAKING)
        return;
    g_tls_connection_set_certificate(G_TLS_CONNECTION(stream), endpoint->client_cert);
    g_signal_connect_object(stream, "accept-certificate", G_CALLBACK(on_accept_certificate), endpoint->server_cert, 0);
}

void
incus_websocket_open_async(IncusClient *client, const char *path, IncusDeadline *deadline, GAsyncReadyCallback callback,
                           gpointer user_data)
{
    const IncusEndpoint *endpoint = incus_client_get_endpoint(client);
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Open *open = g_new0(Open, 1);
    guint8 nonce[KEY_BYTES];
    g_autoptr(GSocketConnectable) target = NULL;

    g_task_set_source_tag(task, incus_websocket_open_async);
    g_task_set_task_data(task, open, open_free);
    open->client = g_object_ref(client);
    open->deadline = incus_deadline_ref(deadline);
    open->path = g_strdup(path);
    open->answer = g_byte_array_new();
    for (gsize i = 0; i < sizeof nonce; i++)
        nonce[i] = (guint8)g_random_int_range(0, 256);
    g_autofree char *key = g_base64_encode(nonce, sizeof nonce);
    open->accept = incus_handshake_accept(key);
    open->request = g_strdup_printf("GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                    "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n",
                                    path, endpoint->host != NULL ? endpoint->host : "incus", key);
    open->connector = g_socket_client_new();
    g_socket_client_set_enable_proxy(open->connector, FALSE);
    if (endpoint->socket_path != NULL) {
        target = G_SOCKET_CONNECTABLE(g_unix_socket_address_new(endpoint->socket_path));
    } else {
        target = g_network_address_new(endpoint->host, endpoint->port);
        g_socket_client_set_tls(open->connector, TRUE);
        g_signal_connect(open->connector, "event", G_CALLBACK(on_event), open);
    }
    g_socket_client_connect_async(open->connector, target, incus_deadline_get_cancellable(deadline), on_connected,
                                  task);
}

SoupWebsocketConnection *
incus_websocket_open_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_websocket_open_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

void
incus_websocket_begin(SoupWebsocketConnection *connection)
{
    incus_flow_set_open(INCUS_FLOW(soup_websocket_connection_get_io_stream(connection)), TRUE);
}
