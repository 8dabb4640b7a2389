/* SPDX-License-Identifier: MIT */
#include "scripted-server.h"

#include <string.h>

#include "eb-test-soup.h"

static void
request_free(gpointer data)
{
    ScriptedRequest *request = data;
    g_free(request->line);
    g_free(request->body);
    g_free(request->authorization);
    g_free(request->user_agent);
    g_free(request->content_type);
    g_free(request->cookie);
    g_free(request);
}

static void
queue_free(gpointer data)
{
    g_queue_free_full(data, g_free);
}

static void
cut_connection(SoupServerMessage *message)
{
    g_autoptr(GIOStream) stream = soup_server_message_steal_connection(message);
    g_io_stream_close(stream, NULL, NULL);
}

static void
send_headers(SoupMessageHeaders *headers, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], ": ", 2);
        if (parts[0] != NULL && parts[1] != NULL)
            soup_message_headers_append(headers, parts[0], parts[1]);
    }
}

static ScriptedRequest *
record(SoupServerMessage *message, const char *path)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(message);
    SoupMessageBody *body = soup_server_message_get_request_body(message);
    const char *query = g_uri_get_query(soup_server_message_get_uri(message));
    ScriptedRequest *request = g_new0(ScriptedRequest, 1);
    request->line = g_strdup_printf("%s %s%s%s", soup_server_message_get_method(message), path,
                                    query != NULL ? "?" : "", query != NULL ? query : "");
    request->body = g_memdup2(body->data, (gsize)body->length + 1);
    request->body_length = (gsize)body->length;
    request->authorization = g_strdup(soup_message_headers_get_one(headers, "Authorization"));
    request->user_agent = g_strdup(soup_message_headers_get_one(headers, "User-Agent"));
    request->content_type = g_strdup(soup_message_headers_get_one(headers, "Content-Type"));
    request->cookie = g_strdup(soup_message_headers_get_one(headers, "Cookie"));
    request->time = g_get_monotonic_time();
    return request;
}

static void
on_finished(SoupServerMessage *message, gpointer user_data)
{
    ScriptedServer *self = user_data;
    self->open--;
}

static void
on_request(SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
    ScriptedServer *self = user_data;
    ScriptedRequest *request = record(message, path);
    GQueue *special = g_hash_table_lookup(self->by_line, request->line);
    g_autofree ScriptedAnswer *answer = special != NULL ? g_queue_pop_head(special) : NULL;
    if (answer == NULL)
        answer = g_queue_pop_head(&self->answers);
    g_ptr_array_add(self->requests, request);
    self->open++;
    self->most = MAX(self->most, self->open);
    if (answer != NULL && answer->hang) {
        soup_server_message_pause(message);
        g_ptr_array_add(self->hanging, g_object_ref(message));
        g_signal_connect(message, "finished", G_CALLBACK(on_finished), self);
        return;
    }
    if (answer != NULL && answer->status == 0) {
        self->open--;
        cut_connection(message);
        return;
    }
    g_signal_connect(message, "finished", G_CALLBACK(on_finished), self);
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(message);
    g_autofree char *usual = g_strdup_printf("{\"id\":\"%u\"}", answer == NULL ? ++self->next_id : 0);
    const char *body = answer != NULL && answer->body != NULL ? answer->body : answer != NULL ? "{}" : usual;
    soup_server_message_set_status(message, answer != NULL ? answer->status : 200, NULL);
    if (answer != NULL && answer->headers != NULL)
        send_headers(headers, answer->headers);
    if (answer != NULL && answer->cut) {
        g_autoptr(GIOStream) stream = soup_server_message_steal_connection(message);
        g_autofree char *text = g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%s", body);
        g_output_stream_write_all(g_io_stream_get_output_stream(stream), text, strlen(text), NULL, NULL, NULL);
        g_io_stream_close(stream, NULL, NULL);
        return;
    }
    if (answer != NULL && answer->chunked)
        soup_message_headers_set_encoding(headers, SOUP_ENCODING_CHUNKED);
    soup_server_message_set_response(message, "application/json", SOUP_MEMORY_COPY, body, strlen(body));
    if (answer != NULL && answer->chunked)
        soup_message_body_complete(soup_server_message_get_response_body(message));
}

static gboolean
on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, gpointer user_data)
{
    ScriptedServer *self = user_data;
    g_autoptr(GSocketAddress) local = g_socket_connection_get_local_address(connection, NULL);
    g_autoptr(GSocketAddress) remote = g_socket_connection_get_remote_address(connection, NULL);
    if (local != NULL && remote != NULL)
        soup_server_accept_iostream(self->server, G_IO_STREAM(connection), local, remote, NULL);
    return TRUE;
}

void
scripted_server_refuse(ScriptedServer *self)
{
    g_socket_service_stop(self->service);
    g_socket_listener_close(G_SOCKET_LISTENER(self->service));
    g_clear_object(&self->service);
}

void
scripted_server_return(ScriptedServer *self)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, self->port);
    g_autoptr(GSocketAddress) bound = NULL;
    self->service = g_socket_service_new();
    g_signal_connect(self->service, "incoming", G_CALLBACK(on_incoming), self);
    g_socket_listener_add_address(G_SOCKET_LISTENER(self->service), address, G_SOCKET_TYPE_STREAM,
                                  G_SOCKET_PROTOCOL_TCP, NULL, &bound, &error);
    g_assert_no_error(error);
    self->port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
}

ScriptedServer *
scripted_server_new(void)
{
    ScriptedServer *self = g_new0(ScriptedServer, 1);
    g_autoptr(GError) error = NULL;
    char token[] = SCRIPTED_TOKEN;
    self->server = soup_server_new(NULL, NULL);
    soup_server_add_handler(self->server, NULL, on_request, self, NULL);
    /* Without a listener of its own libsoup 3.2 ends every connection after one answer. */
    eb_test_soup_listen(self->server, 0, &error);
    g_assert_no_error(error);
    scripted_server_return(self);
    self->url = g_strdup_printf("http://127.0.0.1:%u", self->port);
    self->token = eb_secret_new_take("chat-token", token, strlen(token), NULL);
    self->site = discord_site_new(self->url, self->token, &error);
    g_assert_no_error(error);
    self->by_line = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, queue_free);
    self->requests = g_ptr_array_new_with_free_func(request_free);
    self->hanging = g_ptr_array_new_with_free_func(g_object_unref);
    return self;
}

void
scripted_server_free(ScriptedServer *self)
{
    if (self == NULL)
        return;
    if (self->service != NULL)
        scripted_server_refuse(self);
    soup_server_disconnect(self->server);
    eb_test_drain();
    g_ptr_array_unref(self->hanging);
    g_object_unref(self->server);
    g_queue_clear_full(&self->answers, g_free);
    g_hash_table_unref(self->by_line);
    g_ptr_array_unref(self->requests);
    discord_site_free(self->site);
    eb_secret_unref(self->token);
    g_free(self->url);
    g_free(self);
}

void
scripted_server_push(ScriptedServer *self, ScriptedAnswer answer)
{
    g_queue_push_tail(&self->answers, g_memdup2(&answer, sizeof answer));
}

void
scripted_server_push_for(ScriptedServer *self, const char *line, ScriptedAnswer answer)
{
    GQueue *queue = g_hash_table_lookup(self->by_line, line);
    if (queue == NULL) {
        queue = g_queue_new();
        g_hash_table_insert(self->by_line, g_strdup(line), queue);
    }
    g_queue_push_tail(queue, g_memdup2(&answer, sizeof answer));
}

const ScriptedRequest *
scripted_server_get(ScriptedServer *self, guint index)
{
    g_assert_cmpuint(index, <, self->requests->len);
    return g_ptr_array_index(self->requests, index);
}

char *
scripted_server_lines(ScriptedServer *self)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < self->requests->len; i++)
        g_string_append_printf(text, "%s;", scripted_server_get(self, i)->line);
    return g_string_free(text, FALSE);
}

typedef struct {
    ScriptedServer *self;
    guint count;
} Awaited;

static gboolean
has_come(gpointer user_data)
{
    Awaited *awaited = user_data;
    return awaited->self->requests->len >= awaited->count;
}

void
scripted_server_wait(ScriptedServer *self, guint count)
{
    Awaited awaited = {self, count};
    eb_test_run_until(has_come, &awaited);
}
