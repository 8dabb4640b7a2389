/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-provision-client.h"

#include <gio/gunixsocketaddress.h>
#include <libsoup/soup.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

struct _EbProvisionClient {
    char *socket_path;
};

/* The longest answer read: lists of a large server stay far below. */
#define MAX_ANSWER (1024 * 1024)

EbProvisionClient *
eb_provision_client_new(const char *socket_path)
{
    EbProvisionClient *self = g_new0(EbProvisionClient, 1);
    self->socket_path = g_strdup(socket_path);
    return self;
}

void
eb_provision_client_free(EbProvisionClient *self)
{
    if (self == NULL)
        return;
    g_free(self->socket_path);
    g_free(self);
}

char *
eb_provision_daemon_dir(void)
{
    const char *other = g_getenv("INCUS_DIR");

    return g_strdup(other != NULL && *other != '\0' ? other : "/var/lib/incus");
}

char *
eb_provision_daemon_socket(const char *daemon_dir)
{
    return g_build_filename(daemon_dir, geteuid() == 0 ? "unix.socket" : "unix.socket.user", NULL);
}

char *
eb_provision_path(const char *format, ...)
{
    GString *path = g_string_new(NULL);
    va_list args;

    va_start(args, format);
    for (const char *c = format; *c != '\0'; c++) {
        if (c[0] == '%' && c[1] == 's') {
            g_autofree char *escaped = g_uri_escape_string(va_arg(args, const char *), NULL, FALSE);
            g_string_append(path, escaped);
            c++;
        } else {
            g_string_append_c(path, *c);
        }
    }
    va_end(args);
    return g_string_free(path, FALSE);
}

/* A call that takes longer than its deadline is cancelled from a thread of its own: libsoup's timeout restarts with
 * every byte. */
typedef struct {
    GMutex lock;
    GCond done_changed;
    gboolean done;
    gint64 until;
    GCancellable *cancellable;
} Watch;

static gpointer
watch_thread(gpointer data)
{
    Watch *watch = data;

    g_mutex_lock(&watch->lock);
    while (!watch->done && g_cond_wait_until(&watch->done_changed, &watch->lock, watch->until))
        ;
    if (!watch->done)
        g_cancellable_cancel(watch->cancellable);
    g_mutex_unlock(&watch->lock);
    return NULL;
}

static GBytes *
read_answer(SoupSession *session, SoupMessage *message, GCancellable *cancellable, GError **error)
{
    g_autoptr(GInputStream) stream = soup_session_send(session, message, cancellable, error);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    guint8 chunk[16384];

    if (stream == NULL)
        return NULL;
    for (;;) {
        gssize n = g_input_stream_read(stream, chunk, sizeof chunk, cancellable, error);
        if (n < 0)
            return NULL;
        if (n == 0)
            break;
        if (bytes->len + (gsize)n > MAX_ANSWER) {
            eb_set_error(error, EB_ERROR_PROTOCOL, "provision.answer", "the answer is longer than %d bytes",
                         MAX_ANSWER);
            return NULL;
        }
        g_byte_array_append(bytes, chunk, (guint)n);
    }
    return g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
}

/* One request with its deadline. */
static GBytes *
exchange(EbProvisionClient *self, SoupMessage *message, guint deadline_ms, GError **error)
{
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(self->socket_path);
    g_autoptr(SoupSession) session = g_object_new(SOUP_TYPE_SESSION, "remote-connectable", address, "timeout", 0, NULL);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) failure = NULL;
    Watch watch = {.until = g_get_monotonic_time() + (gint64)deadline_ms * 1000, .cancellable = cancellable};
    GThread *thread;
    GBytes *answer;

    g_mutex_init(&watch.lock);
    g_cond_init(&watch.done_changed);
    thread = g_thread_new("deadline", watch_thread, &watch);
    answer = read_answer(session, message, cancellable, &failure);
    g_mutex_lock(&watch.lock);
    watch.done = TRUE;
    g_cond_signal(&watch.done_changed);
    g_mutex_unlock(&watch.lock);
    g_thread_join(thread);
    g_cond_clear(&watch.done_changed);
    g_mutex_clear(&watch.lock);
    if (answer != NULL)
        return answer;

    if (g_cancellable_is_cancelled(cancellable))
        eb_set_error(error, EB_ERROR_TIMEOUT, "provision.timeout", "%s did not answer within %u s (errand-box doctor)",
                     self->socket_path, deadline_ms / 1000);
    else if (g_error_matches(failure, G_IO_ERROR, G_IO_ERROR_NOT_FOUND) ||
             g_error_matches(failure, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED))
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "provision.no-daemon", "nobody answers on %s", self->socket_path);
    else {
        eb_error_convert(&failure, "provision.transport", self->socket_path);
        g_propagate_error(error, g_steal_pointer(&failure));
    }
    return NULL;
}

static gboolean
check_refusal(JsonObject *envelope, const char *path, GError **error)
{
    gint64 code = eb_json_get_int(envelope, "error_code", 0);
    const char *text = eb_json_get_string(envelope, "error");

    if (g_strcmp0(eb_json_get_string(envelope, "type"), "error") != 0)
        return TRUE;
    eb_set_error(error,
                 code == 404   ? EB_ERROR_NOT_FOUND
                 : code == 403 ? EB_ERROR_DENIED
                               : EB_ERROR_FAILED,
                 "provision.refused", "%s: %s", path,
                 text != NULL && *text != '\0' ? text : "refused without a reason");
    return FALSE;
}

/* An operation that failed comes as an error envelope from 6.0 and as a success that holds a failure from 7. */
static gboolean
check_operation(JsonObject *envelope, const char *path, GError **error)
{
    JsonObject *operation = eb_json_get_object(envelope, "metadata");

    if (g_strcmp0(eb_json_get_string(operation, "status"), "Failure") != 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_FAILED, "provision.refused", "%s: %s", path,
                 eb_json_get_string(operation, "err") != NULL ? eb_json_get_string(operation, "err") : "failed");
    return FALSE;
}

static JsonNode *
request(EbProvisionClient *self, const char *method, const char *path, JsonNode *body, guint deadline_ms,
        GError **error)
{
    g_autofree char *url = g_strconcat("http://localhost", path, NULL);
    g_autoptr(SoupMessage) message = soup_message_new(method, url);
    g_autoptr(GBytes) answer = NULL;
    g_autoptr(JsonNode) node = NULL;
    const char *text;
    gsize length;

    if (message == NULL) {
        eb_set_error(error, EB_ERROR_INVALID, "provision.path", "\"%s\" is no path of the API", path);
        return NULL;
    }
    if (body != NULL) {
        char *json = eb_json_write(body, &length);
        g_autoptr(GBytes) bytes = g_bytes_new_take(json, length);
        soup_message_set_request_body_from_bytes(message, "application/json", bytes);
    }
    answer = exchange(self, message, deadline_ms, error);
    if (answer == NULL)
        return NULL;
    text = g_bytes_get_data(answer, &length);
    node = eb_json_parse(text, length, &EB_JSON_LIMITS_SMALL, error);
    if (node == NULL)
        return NULL;
    if (eb_json_node_object(node) == NULL) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "provision.answer", "%s: the answer is no JSON object", path);
        return NULL;
    }
    if (!check_refusal(eb_json_node_object(node), path, error))
        return NULL;
    return g_steal_pointer(&node);
}

JsonNode *
eb_provision_client_call(EbProvisionClient *self, const char *method, const char *path, JsonNode *body,
                         guint deadline_ms, GError **error)
{
    gint64 until = g_get_monotonic_time() + (gint64)deadline_ms * 1000;
    g_autoptr(JsonNode) sent = body;
    g_autoptr(JsonNode) answer = request(self, method, path, sent, deadline_ms, error);
    JsonObject *envelope;
    JsonNode *metadata;

    if (answer == NULL)
        return NULL;
    envelope = eb_json_node_object(answer);
    if (g_strcmp0(eb_json_get_string(envelope, "type"), "async") == 0) {
        const char *id = eb_json_get_string(eb_json_get_object(envelope, "metadata"), "id");
        gint64 left_ms = MAX((until - g_get_monotonic_time()) / 1000, 1000);
        g_autofree char *seconds = g_strdup_printf("%" G_GINT64_FORMAT, left_ms / 1000);
        g_autofree char *wait = NULL;
        JsonNode *done;

        if (id == NULL) {
            eb_set_error(error, EB_ERROR_PROTOCOL, "provision.answer", "%s: an operation without id", path);
            return NULL;
        }
        wait = eb_provision_path("/1.0/operations/%s/wait?timeout=%s", id, seconds);
        done = request(self, "GET", wait, NULL, (guint)left_ms + 1000, error);
        if (done == NULL)
            return NULL;
        json_node_unref(answer);
        answer = done;
        envelope = eb_json_node_object(answer);
        if (!check_operation(envelope, path, error))
            return NULL;
    }
    metadata = eb_json_get_node(envelope, "metadata");
    return metadata != NULL ? json_node_copy(metadata) : json_node_new(JSON_NODE_NULL);
}
