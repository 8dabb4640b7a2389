/* SPDX-License-Identifier: MIT */

#include "ds-request.h"

#include "ds-socket.h"

#include <string.h>

#define HTML_429                                                                                                       \
    "<!doctype html><html><head><title>Access denied | discord.com used Cloudflare to restrict access</title></head>"  \
    "<body>error code: 1015</body></html>"

GSocket *
ds_socket_of(SoupServerMessage *message)
{
    GSocketAddress *remote = soup_server_message_get_remote_address(message);

    return remote != NULL ? g_object_get_data(G_OBJECT(remote), DS_SOCKET_KEY) : NULL;
}

void
ds_break(SoupServerMessage *message, const char *raw)
{
    GSocket *socket = ds_socket_of(message);

    if (socket == NULL || g_socket_is_closed(socket))
        return;
    if (raw != NULL) {
        g_socket_send(socket, raw, strlen(raw), NULL, NULL);
        g_socket_shutdown(socket, FALSE, TRUE, NULL);
    } else {
        ds_socket_reset(socket);
    }
}

/* --- answers instead --- */

static void
limited(DsRequest *self, double seconds, const char *scope)
{
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(self->message);
    const gboolean global = strcmp(scope, "global") == 0;
    g_autofree char *after = g_strdup_printf("%.0f", MAX(1, seconds + 0.999));

    soup_message_headers_replace(headers, "Retry-After", after);
    soup_message_headers_replace(headers, "X-RateLimit-Scope", scope);
    if (global)
        soup_message_headers_replace(headers, "X-RateLimit-Global", "true");
    ds_answer_object(
        self, 429,
        ds_object("s:message", "You are being rate limited.", "d:retry_after", seconds, "b:global", global, NULL));
}

static void
html(DsRequest *self, guint status, const char *text)
{
    self->status = status;
    soup_server_message_set_status(self->message, status, NULL);
    soup_server_message_set_response(self->message, "text/html", SOUP_MEMORY_COPY, text, strlen(text));
}

static void
empty(DsRequest *self, guint status)
{
    self->status = status;
    soup_server_message_set_status(self->message, status, NULL);
    soup_server_message_set_response(self->message, NULL, SOUP_MEMORY_STATIC, NULL, 0);
}

typedef struct {
    DsRequest *request;
    void (*go_on)(DsRequest *);
    char *kind;
} Later;

static void
later_free(gpointer data)
{
    Later *later = data;

    g_clear_pointer(&later->request, ds_request_free);
    g_free(later->kind);
    g_free(later);
}

static gboolean
on_later(gpointer user_data)
{
    Later *later = user_data;
    DsRequest *request = g_steal_pointer(&later->request);
    g_autoptr(SoupServerMessage) message = g_object_ref(request->message);

    later->go_on(request);
    if (strcmp(later->kind, "lost") == 0)
        ds_break(message, NULL);
    ds_unpause(message);
    return G_SOURCE_REMOVE;
}

/* The request is done after a while; or at once, but what it answers is lost. */
static void
do_later(DsRequest *self, const char *kind, double seconds, void (*go_on)(DsRequest *))
{
    Later *later = g_new0(Later, 1);

    later->request = self;
    later->go_on = go_on;
    later->kind = g_strdup(kind);
    ds_pause(self->message);
    ds_world_later(self->world, (guint)(seconds * 1000), on_later, later, later_free);
}

static gboolean
on_broken(gpointer user_data)
{
    ds_unpause(user_data);
    return G_SOURCE_REMOVE;
}

/* Nothing is answered on this connection any more. */
static void
broken(DsRequest *self, const char *raw)
{
    ds_pause(self->message);
    ds_break(self->message, raw);
    empty(self, 503);
    ds_world_later(self->world, 50, on_broken, g_object_ref(self->message), g_object_unref);
}

/* TRUE: answered; the request goes to its log as usual. */
static gboolean
apply(DsRequest *self, const char *kind, double seconds)
{
    if (strcmp(kind, "429-user") == 0)
        limited(self, seconds, "user");
    else if (strcmp(kind, "429-global") == 0)
        limited(self, seconds, "global");
    else if (strcmp(kind, "429-shared") == 0)
        limited(self, seconds, "shared");
    else if (strcmp(kind, "429-html") == 0)
        html(self, 429, HTML_429);
    else if (strcmp(kind, "429-empty") == 0)
        empty(self, 429);
    else if (strcmp(kind, "500") == 0)
        ds_refuse(self, 500, 0, "500: Internal Server Error");
    else if (strcmp(kind, "502") == 0)
        html(self, 502, "<html><body><h1>502 Bad Gateway</h1></body></html>");
    else if (strcmp(kind, "401") == 0)
        ds_refuse_code(self, 0);
    else if (strcmp(kind, "50013") == 0)
        ds_refuse_code(self, 50013);
    else if (strcmp(kind, "redirect") == 0)
        soup_server_message_set_redirect(self->message, 302, "http://127.0.0.1:9/elsewhere");
    else if (strcmp(kind, "bad-json") == 0)
        html(self, 200, "{\"id\": \"1");
    else if (strcmp(kind, "reset") == 0)
        broken(self, NULL);
    else if (strcmp(kind, "half") == 0)
        broken(self, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n{\"id\":\"1");
    else
        return FALSE;
    return TRUE;
}

gboolean
ds_faults_take(DsRequest *self, void (*go_on)(DsRequest *))
{
    for (guint i = 0; i < self->world->faults->len; i++) {
        DsFault *fault = g_ptr_array_index(self->world->faults, i);
        g_autofree char *kind = NULL;
        const double seconds = fault->seconds;

        if ((fault->method != NULL && strcmp(fault->method, self->method) != 0) ||
            (fault->path != NULL && !g_regex_match(fault->path, self->path, 0, NULL)))
            continue;
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        kind = g_strdup(fault->kind);
        if (--fault->count == 0)
            g_ptr_array_remove_index(self->world->faults, i);
        ds_world_count(self->world, "faults");
        if (strcmp(kind, "hang") == 0) {
            ds_pause(self->message);
            g_ptr_array_add(self->world->unanswered, self); /* the client's own limit ends it */
            return TRUE;
        }
        if (strcmp(kind, "delay") == 0 || strcmp(kind, "lost") == 0) {
            do_later(self, kind, strcmp(kind, "delay") == 0 ? seconds : 0.01, go_on);
            return TRUE;
        }
        if (!apply(self, kind, seconds))
            g_error("no such fault: %s", kind);
        return TRUE;
    }
    return FALSE;
}
