/* SPDX-License-Identifier: MIT */
#include "incus-client.h"

#include <gio/gunixsocketaddress.h>

#include "incus-error.h"

/* Every /wait holds a connection for as long as its operation runs, an exec's for hours: libsoup's 2 are not enough. */
#define MAX_CONNECTIONS 256
/* An idle kept connection of a daemon that is restarted costs a failed request: keep them only briefly. */
#define IDLE_TIMEOUT_S 10
/* Longest answer that is read. */
#define MAX_BODY (16 * 1024 * 1024)
#define MAX_TEXT (256 * 1024)
#define READ_CHUNK (64 * 1024)

struct _IncusClient {
    GObject parent_instance;
    IncusEndpoint *endpoint;
    SoupSession *session;
    char *project;
};

G_DEFINE_FINAL_TYPE(IncusClient, incus_client, G_TYPE_OBJECT)

static void
incus_client_finalize(GObject *object)
{
    IncusClient *self = INCUS_CLIENT(object);
    if (self->session != NULL)
        soup_session_abort(self->session);
    g_clear_object(&self->session);
    g_clear_pointer(&self->endpoint, incus_endpoint_free);
    g_free(self->project);
    G_OBJECT_CLASS(incus_client_parent_class)->finalize(object);
}

static void
incus_client_class_init(IncusClientClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_client_finalize;
}

static void
incus_client_init(IncusClient *self)
{
    self->project = g_strdup("default");
}

/* (transfer full) */
static SoupSession *
open_session(const IncusEndpoint *endpoint)
{
    g_autoptr(GSocketConnectable) connectable = NULL;
    if (endpoint->socket_path != NULL)
        connectable = G_SOCKET_CONNECTABLE(g_unix_socket_address_new(endpoint->socket_path));
    /* No proxy in between and no timeout of libsoup's: every request has an IncusDeadline. */
    SoupSession *session =
        g_object_new(SOUP_TYPE_SESSION, "remote-connectable", connectable, "max-conns", MAX_CONNECTIONS,
                     "max-conns-per-host", MAX_CONNECTIONS, "timeout", 0, "idle-timeout", IDLE_TIMEOUT_S,
                     "proxy-resolver", NULL, "user-agent", "errand-box", NULL);
    soup_session_remove_feature_by_type(session, SOUP_TYPE_CONTENT_DECODER);
    return session;
}

IncusClient *
incus_client_new(const IncusEndpoint *endpoint)
{
    IncusClient *self = g_object_new(INCUS_TYPE_CLIENT, NULL);
    self->endpoint = incus_endpoint_copy(endpoint);
    self->session = open_session(self->endpoint);
    return self;
}

void
incus_client_settle(IncusClient *self)
{
    IncusEndpoint *settled = incus_endpoint_settle(self->endpoint);
    if (settled == NULL)
        return;
    g_clear_pointer(&self->endpoint, incus_endpoint_free);
    g_clear_object(&self->session);
    self->endpoint = settled;
    self->session = open_session(settled);
}

const IncusEndpoint *
incus_client_get_endpoint(IncusClient *self)
{
    return self->endpoint;
}

void
incus_client_set_project(IncusClient *self, const char *project)
{
    g_free(self->project);
    self->project = g_strdup(project);
}

const char *
incus_client_get_project(IncusClient *self)
{
    return self->project;
}

char *
incus_client_path(IncusClient *self, const char *query, const char *first, ...)
{
    g_autoptr(GString) path = g_string_new("/1.0");
    va_list args;
    va_start(args, first);
    for (const char *segment = first; segment != NULL; segment = va_arg(args, const char *)) {
        g_string_append_c(path, '/');
        g_string_append_uri_escaped(path, segment, NULL, FALSE);
    }
    va_end(args);
    g_string_append(path, "?project=");
    g_string_append_uri_escaped(path, self->project, NULL, FALSE);
    if (query != NULL)
        g_string_append_printf(path, "&%s", query);
    return g_string_free(g_steal_pointer(&path), FALSE);
}

/* --- one request --- */

typedef struct {
    IncusDeadline *deadline; /* (owned) */
    SoupMessage *message;    /* (owned) */
    GInputStream *body;      /* (nullable) (owned) */
    GByteArray *bytes;       /* (owned): the answer so far */
    gsize max_bytes;
    gboolean cut; /* stop quietly at max_bytes (log files) instead of failing */
    char *what;   /* "GET /1.0/instances" for messages, without the query */
} Request;

static void
request_free(gpointer data)
{
    Request *request = data;
    incus_deadline_unref(request->deadline);
    g_clear_object(&request->message);
    g_clear_object(&request->body);
    g_clear_pointer(&request->bytes, g_byte_array_unref);
    g_free(request->what);
    g_free(request);
}

static void
fail(GTask *task, GError *error)
{
    Request *request = g_task_get_task_data(task);
    IncusClient *self = g_task_get_source_object(task);
    if (error->domain == EB_ERROR) {
        g_task_return_error(task, error);
        return;
    }
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        incus_deadline_convert(request->deadline, request->what, &error);
        g_task_return_error(task, error);
        return;
    }
    g_autofree char *where = incus_endpoint_describe(self->endpoint);
    g_autofree char *text = g_strdup(error->message);
    GError *converted;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        converted = eb_error_new(EB_ERROR_DENIED, "incus.no-permission",
                                 "%s may not be opened by this account (it needs the group \"incus\", never "
                                 "\"incus-admin\")",
                                 where);
    else if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
        converted = eb_error_new(EB_ERROR_UNAVAILABLE, "incus.no-daemon", "%s does not exist (start incusd)", where);
    else if (error->domain == G_TLS_ERROR)
        converted = eb_error_new(EB_ERROR_INTEGRITY, "incus.tls", "%s: TLS failed: %s", where, text);
    else
        converted = eb_error_new(EB_ERROR_UNAVAILABLE, "incus.lost", "%s: %s failed: %s", where, request->what, text);
    if (converted->code == EB_ERROR_UNAVAILABLE)
        eb_error_set_retry(converted, 1000);
    g_error_free(error);
    g_task_return_error(task, converted);
}

static void
request_complete(GTask *task)
{
    Request *request = g_task_get_task_data(task);
    GError *error = NULL;
    guint status = soup_message_get_status(request->message);
    if (request->cut && status < 300) {
        g_task_return_pointer(task, g_byte_array_ref(request->bytes), (GDestroyNotify)g_byte_array_unref);
        return;
    }
    IncusReply *reply = incus_reply_parse((const char *)request->bytes->data, request->bytes->len, status, &error);
    if (reply == NULL) {
        g_task_return_error(task, error);
        return;
    }
    if (request->cut) {
        incus_reply_free(reply);
        g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_FAILED, "unexpected status %u", status);
        return;
    }
    g_task_return_pointer(task, reply, (GDestroyNotify)incus_reply_free);
}

static void
on_chunk(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Request *request = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GBytes) chunk = g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &error);
    if (chunk == NULL) {
        fail(task, error);
        return;
    }
    gsize length;
    gconstpointer data = g_bytes_get_data(chunk, &length);
    gsize room = request->max_bytes - request->bytes->len;
    if (length > room && !request->cut) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_PROTOCOL, "incus.protocol", "%s: the answer is too long", request->what));
        return;
    }
    g_byte_array_append(request->bytes, data, (guint)MIN(length, room));
    if (length == 0 || request->bytes->len >= request->max_bytes) {
        request_complete(task);
        return;
    }
    g_input_stream_read_bytes_async(request->body, READ_CHUNK, G_PRIORITY_DEFAULT,
                                    incus_deadline_get_cancellable(request->deadline), on_chunk,
                                    g_steal_pointer(&task));
}

static void
on_sent(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Request *request = g_task_get_task_data(task);
    GError *error = NULL;
    request->body = soup_session_send_finish(SOUP_SESSION(source), result, &error);
    if (request->body == NULL) {
        fail(task, error);
        return;
    }
    g_input_stream_read_bytes_async(request->body, READ_CHUNK, G_PRIORITY_DEFAULT,
                                    incus_deadline_get_cancellable(request->deadline), on_chunk,
                                    g_steal_pointer(&task));
}

/* Pinned: the one known certificate is right and every other wrong, whoever signed it. */
static gboolean
on_accept_certificate(SoupMessage *message, GTlsCertificate *certificate, GTlsCertificateFlags errors,
                      gpointer user_data)
{
    IncusClient *self = user_data;
    return self->endpoint->server_cert != NULL && g_tls_certificate_is_same(certificate, self->endpoint->server_cert);
}

static void
start_request(IncusClient *self, const char *method, const char *path, Request *request, GTask *task)
{
    g_autofree char *url = self->endpoint->socket_path != NULL
                               ? g_strdup_printf("http://incus%s", path)
                               : g_strdup_printf("https://%s:%u%s", self->endpoint->host, self->endpoint->port, path);
    g_autoptr(GUri) uri = g_uri_parse(url, SOUP_HTTP_URI_FLAGS, NULL);
    const char *query = strchr(path, '?');
    request->what = g_strdup_printf("%s %.*s", method, query != NULL ? (int)(query - path) : (int)strlen(path), path);
    request->bytes = g_byte_array_new();
    g_task_set_task_data(task, request, request_free);
    request->message = soup_message_new_from_uri(method, uri);
    soup_message_add_flags(request->message, SOUP_MESSAGE_NO_REDIRECT);
    if (self->endpoint->client_cert != NULL) {
        soup_message_set_tls_client_certificate(request->message, self->endpoint->client_cert);
        g_signal_connect_object(request->message, "accept-certificate", G_CALLBACK(on_accept_certificate), self, 0);
    }
}

static void
send_request(IncusClient *self, GTask *task)
{
    Request *request = g_task_get_task_data(task);
    GError *error = NULL;
    if (!incus_deadline_check(request->deadline, request->what, &error)) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    soup_session_send_async(self->session, request->message, G_PRIORITY_DEFAULT,
                            incus_deadline_get_cancellable(request->deadline), on_sent, task);
}

void
incus_client_request_async(IncusClient *self, const char *method, const char *path, JsonNode *body,
                           IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    Request *request = g_new0(Request, 1);
    g_task_set_source_tag(task, incus_client_request_async);
    request->deadline = incus_deadline_ref(deadline);
    request->max_bytes = MAX_BODY;
    start_request(self, method, path, request, task);
    if (body != NULL) {
        gsize length;
        char *text = eb_json_write(body, &length);
        g_autoptr(GBytes) bytes = g_bytes_new_take(text, length);
        soup_message_set_request_body_from_bytes(request->message, "application/json", bytes);
    }
    send_request(self, task);
}

void
incus_client_upload_async(IncusClient *self, const char *method, const char *path, const char *content_type,
                          GInputStream *body, gssize length, IncusDeadline *deadline, GAsyncReadyCallback callback,
                          gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    Request *request = g_new0(Request, 1);
    g_task_set_source_tag(task, incus_client_request_async);
    request->deadline = incus_deadline_ref(deadline);
    request->max_bytes = MAX_BODY;
    start_request(self, method, path, request, task);
    soup_message_set_request_body(request->message, content_type, body, length);
    send_request(self, task);
}

IncusReply *
incus_client_request_finish(IncusClient *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_client_request_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

void
incus_client_get_text_async(IncusClient *self, const char *path, IncusDeadline *deadline, GAsyncReadyCallback callback,
                            gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    Request *request = g_new0(Request, 1);
    g_task_set_source_tag(task, incus_client_get_text_async);
    request->deadline = incus_deadline_ref(deadline);
    request->max_bytes = MAX_TEXT;
    request->cut = TRUE;
    start_request(self, "GET", path, request, task);
    send_request(self, task);
}

char *
incus_client_get_text_finish(IncusClient *self, GAsyncResult *result, gsize *length, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_client_get_text_async), NULL);
    g_autoptr(GByteArray) bytes = g_task_propagate_pointer(G_TASK(result), error);
    if (bytes == NULL)
        return NULL;
    if (length != NULL)
        *length = bytes->len;
    return g_strndup((const char *)bytes->data, bytes->len);
}
