/* SPDX-License-Identifier: MIT */
/*
 * Sends a recorded stream to whoever connects, as Discord's gateway would: sender DIRECTORY RATE. Prints its port. REST
 * requests are answered from rest.json; whatever else is asked for is not there. Runs until its input ends.
 */
#include <glib-unix.h>
#include <libsoup/soup.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errand-box-plugin.h"

/* Events of one burst: what TCP would gather in a busy moment. */
#define BURST_MS 5
#define SETTLE_MS 2000

static char **lines;
static guint n_lines;
static JsonObject *answers;
static guint rate;
static guint port;

typedef struct {
    SoupWebsocketConnection *socket; /* (owned) */
    guint next;
    gboolean identified;
    gint64 start_us;
    guint start_next;
    GSource *timer; /* (nullable) */
} Client;

static void
send_line(Client *client)
{
    g_autofree char *url = g_strdup_printf("ws://127.0.0.1:%u/ws", port);
    g_autoptr(GString) text = g_string_new(lines[client->next++]);
    if (client->next == 1)
        g_string_replace(text, "@URL@", url, 0);
    soup_websocket_connection_send_text(client->socket, text->str);
}

static gboolean
on_burst(gpointer user_data)
{
    Client *client = user_data;
    guint due = client->start_next + (guint)((g_get_monotonic_time() - client->start_us) * rate / G_USEC_PER_SEC);
    while (client->next < MIN(due, n_lines))
        send_line(client);
    return client->next < n_lines ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static gboolean
on_settled(gpointer user_data)
{
    Client *client = user_data;
    client->start_us = g_get_monotonic_time();
    client->start_next = client->next;
    g_source_unref(client->timer);
    client->timer = g_timeout_source_new(BURST_MS);
    g_source_set_callback(client->timer, on_burst, client, NULL);
    g_source_attach(client->timer, NULL);
    return G_SOURCE_REMOVE;
}

static void
on_message(SoupWebsocketConnection *socket, int type, GBytes *payload, gpointer user_data)
{
    Client *client = user_data;
    gsize length;
    const char *text = g_bytes_get_data(payload, &length);
    g_autoptr(JsonNode) node = eb_json_parse(text, length, NULL, NULL);
    gint64 op = eb_json_get_int(eb_json_node_object(node), "op", -1);
    if (op == 1)
        soup_websocket_connection_send_text(socket, "{\"t\":null,\"s\":null,\"op\":11,\"d\":null}");
    if (op != 2 || client->identified)
        return;
    client->identified = TRUE;
    send_line(client);
    send_line(client);
    /* The client looks around first: REST, its caches. */
    client->timer = g_timeout_source_new(SETTLE_MS);
    g_source_set_callback(client->timer, on_settled, client, NULL);
    g_source_attach(client->timer, NULL);
}

static void
on_closed(SoupWebsocketConnection *socket, gpointer user_data)
{
    Client *client = user_data;
    if (client->timer != NULL) {
        g_source_destroy(client->timer);
        g_source_unref(client->timer);
    }
    g_object_unref(client->socket);
    g_free(client);
}

static void
on_socket(SoupServer *server, SoupServerMessage *message, const char *path, SoupWebsocketConnection *socket,
          gpointer user_data)
{
    Client *client = g_new0(Client, 1);
    client->socket = g_object_ref(socket);
    g_signal_connect(socket, "message", G_CALLBACK(on_message), client);
    g_signal_connect(socket, "closed", G_CALLBACK(on_closed), client);
    soup_websocket_connection_send_text(socket,
                                        "{\"t\":null,\"s\":null,\"op\":10,\"d\":{\"heartbeat_interval\":41250}}");
}

static void
on_request(SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
    g_autofree char *key = g_strdup_printf("%s %s", soup_server_message_get_method(message),
                                           g_str_has_prefix(path, "/api/v10") ? path + strlen("/api/v10") : path);
    JsonNode *node = eb_json_get_node(answers, key);
    g_autofree char *body = NULL;

    if (g_str_equal(key, "GET /gateway/bot"))
        body = g_strdup_printf("{\"url\":\"ws://127.0.0.1:%u/ws\",\"shards\":1,\"session_start_limit\":{\"total\":1000,"
                               "\"remaining\":1000,\"reset_after\":0,\"max_concurrency\":1}}",
                               port);
    else if (node != NULL)
        body = eb_json_write(node, NULL);
    soup_server_message_set_status(message, body != NULL ? 200 : 404, NULL);
    if (body == NULL)
        body = g_strdup("{\"message\":\"404: Not Found\",\"code\":0}");
    soup_server_message_set_response(message, "application/json", SOUP_MEMORY_COPY, body, strlen(body));
}

static gboolean
on_input(int fd, GIOCondition condition, gpointer user_data)
{
    char byte;
    if (fread(&byte, 1, 1, stdin) == 0)
        g_main_loop_quit(user_data);
    return G_SOURCE_CONTINUE;
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: sender DIRECTORY EVENTS-PER-SECOND\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autofree char *stream = NULL;
    g_autofree char *stream_path = g_build_filename(argv[1], "stream.ndjson", NULL);
    g_autofree char *rest_path = g_build_filename(argv[1], "rest.json", NULL);
    g_autofree char *rest = NULL;
    g_autoptr(JsonNode) root = NULL;
    gsize rest_length = 0;
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(SoupServer) server = soup_server_new(NULL, NULL);

    if (!g_file_get_contents(stream_path, &stream, NULL, &error) ||
        !g_file_get_contents(rest_path, &rest, &rest_length, &error) ||
        (root = eb_json_parse(rest, rest_length, NULL, &error)) == NULL) {
        fprintf(stderr, "sender: %s\n", error->message);
        return 1;
    }
    rate = (guint)strtoul(argv[2], NULL, 10);
    lines = g_strsplit(g_strchomp(stream), "\n", -1);
    n_lines = g_strv_length(lines);
    answers = eb_json_node_object(root);
    soup_server_add_handler(server, NULL, on_request, NULL, NULL);
    soup_server_add_websocket_handler(server, "/ws", NULL, NULL, on_socket, NULL, NULL);
    if (!soup_server_listen_local(server, 0, SOUP_SERVER_LISTEN_IPV4_ONLY, &error)) {
        fprintf(stderr, "sender: %s\n", error->message);
        return 1;
    }
    GSList *uris = soup_server_get_uris(server);
    port = (guint)g_uri_get_port(uris->data);
    g_slist_free_full(uris, (GDestroyNotify)g_uri_unref);
    printf("%u\n", port);
    fflush(stdout);
    g_unix_fd_add(0, G_IO_IN | G_IO_HUP, on_input, loop);
    g_main_loop_run(loop);
    g_strfreev(lines);
    return 0;
}
