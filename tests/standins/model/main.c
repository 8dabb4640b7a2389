/* SPDX-License-Identifier: MIT */

/*
 * eb-model-standin: a model provider on loopback, for the demo without a key and for tests.
 *
 *   eb-model-standin --key-fd N [--log FILE] [--port P] [--root DIR]
 *
 * The key is read from descriptor N (one line), never from an argument. The first line of stdout is {"port":P}. It ends
 * with SIGTERM, SIGINT, or the end of its standard input when --until-eof is given.
 */

#include "standin.h"

#include <glib-unix.h>
#include <libsoup/soup.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_BODY ((gsize)32 * 1024 * 1024)
#define CUT_AFTER_MS 100
#define SOCKET_KEY "eb-socket" /* of a client's address: its socket (unowned), there until the exchange is finished */
#define LOGGED_USER 200        /* characters of a user's message in the log */

static int opt_key_fd = -1;
static char *opt_log;
static int opt_port;
static char *opt_root;
static gboolean opt_until_eof;

static const GOptionEntry entries[] = {
    {"key-fd", 0, 0, G_OPTION_ARG_INT, &opt_key_fd, "Read the expected key from this descriptor", "N"},
    {"log", 0, 0, G_OPTION_ARG_FILENAME, &opt_log, "Append one JSON line a request", "FILE"},
    {"port", 0, 0, G_OPTION_ARG_INT, &opt_port, "Listen on this port of 127.0.0.1 (default: any)", "P"},
    {"root", 0, 0, G_OPTION_ARG_STRING, &opt_root, "Relative paths of scripts are below (default /workspace)", "DIR"},
    {"until-eof", 0, 0, G_OPTION_ARG_NONE, &opt_until_eof, "End with the end of standard input", NULL},
    {NULL, 0, 0, 0, NULL, NULL, NULL}};

typedef struct {
    EbSecret *key; /* (nullable): any key is taken */
    FILE *log;     /* (nullable) */
    guint serial;
} Standin;

/* What is known of one request while it is answered. */
typedef struct {
    Standin *standin;
    SoupServerMessage *message;
    const StandinDialect *dialect; /* (nullable): an unknown path */
    const char *auth_header;       /* (nullable) */
    gboolean key_ok;
    StandinRequest *request; /* (nullable) */
    GPtrArray *pieces;       /* (nullable): what is left to stream */
    guint next;
    guint slow_ms;
    gboolean cut;
    gboolean gone; /* the client has ended the exchange */
} Exchange;

/* --- the log --- */

static void
log_exchange(Exchange *exchange)
{
    g_autoptr(JsonObject) row = json_object_new();
    JsonArray *users = json_array_new();
    g_autofree char *text = NULL;

    if (exchange->standin->log == NULL) {
        json_array_unref(users);
        return;
    }
    json_object_set_string_member(row, "kind", exchange->dialect != NULL ? exchange->dialect->name : "other");
    json_object_set_string_member(row, "method", soup_server_message_get_method(exchange->message));
    json_object_set_string_member(row, "path", g_uri_get_path(soup_server_message_get_uri(exchange->message)));
    if (exchange->auth_header != NULL)
        json_object_set_string_member(row, "auth_header", exchange->auth_header);
    else
        json_object_set_null_member(row, "auth_header");
    json_object_set_boolean_member(row, "key_ok", exchange->key_ok);
    json_object_set_int_member(row, "status", soup_server_message_get_status(exchange->message));
    if (exchange->request != NULL) {
        for (guint i = 0; i < exchange->request->users->len; i++) {
            const char *user = g_ptr_array_index(exchange->request->users, i);
            g_autofree char *start = g_utf8_substring(user, 0, MIN(g_utf8_strlen(user, -1), LOGGED_USER));

            json_array_add_string_element(users, start);
        }
        json_object_set_string_member(row, "model", exchange->request->model != NULL ? exchange->request->model : "");
        json_object_set_boolean_member(row, "stream", exchange->request->stream);
    }
    json_object_set_array_member(row, "users", users);
    text = standin_json_text(row);
    fprintf(exchange->standin->log, "%s\n", text);
    fflush(exchange->standin->log);
}

static void
exchange_free(Exchange *exchange)
{
    g_signal_handlers_disconnect_by_data(exchange->message, exchange);
    g_clear_pointer(&exchange->request, standin_request_free);
    g_clear_pointer(&exchange->pieces, g_ptr_array_unref);
    g_clear_object(&exchange->message);
    g_free(exchange);
}

/* --- answers --- */

static void
answer_json(Exchange *exchange, guint status, JsonObject *object)
{
    char *text = standin_json_text(object);

    soup_server_message_set_status(exchange->message, status, NULL);
    soup_server_message_set_response(exchange->message, "application/json", SOUP_MEMORY_TAKE, text, strlen(text));
    json_object_unref(object);
    log_exchange(exchange);
    exchange_free(exchange);
}

static void refuse(Exchange *exchange, guint status, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void
refuse(Exchange *exchange, guint status, const char *format, ...)
{
    const StandinDialect *dialect = exchange->dialect != NULL ? exchange->dialect : &standin_openai_chat;
    g_autofree char *text = NULL;
    va_list list;

    va_start(list, format);
    text = g_strdup_vprintf(format, list);
    va_end(list);
    if (status == 429)
        soup_message_headers_append(soup_server_message_get_response_headers(exchange->message), "retry-after", "1");
    answer_json(exchange, status, dialect->error_body(status, text));
}

static void
on_finished(SoupServerMessage *message, gpointer user_data)
{
    ((Exchange *)user_data)->gone = TRUE;
}

static gboolean
break_connection(gpointer user_data)
{
    Exchange *exchange = user_data;
    GSocketAddress *remote = exchange->gone ? NULL : soup_server_message_get_remote_address(exchange->message);
    GSocket *socket = remote != NULL ? g_object_get_data(G_OBJECT(remote), SOCKET_KEY) : NULL;

    if (socket != NULL)
        g_socket_shutdown(socket, TRUE, TRUE, NULL);
    exchange_free(exchange);
    return G_SOURCE_REMOVE;
}

/* Sends up to the next pause; a client that has gone away ends it. */
static gboolean
send_more(gpointer user_data)
{
    Exchange *exchange = user_data;
    SoupMessageBody *body = soup_server_message_get_response_body(exchange->message);

    while (!exchange->gone && exchange->next < exchange->pieces->len) {
        const char *piece = g_ptr_array_index(exchange->pieces, exchange->next++);

        if (exchange->cut && exchange->next > exchange->pieces->len / 2) {
            soup_server_message_unpause(exchange->message);
            g_timeout_add(CUT_AFTER_MS, break_connection, exchange);
            return G_SOURCE_REMOVE;
        }
        if (piece != NULL) {
            soup_message_body_append(body, SOUP_MEMORY_COPY, piece, strlen(piece));
        } else if (exchange->slow_ms > 0) {
            soup_server_message_unpause(exchange->message);
            g_timeout_add(exchange->slow_ms, send_more, exchange);
            return G_SOURCE_REMOVE;
        }
    }
    if (!exchange->gone) {
        soup_message_body_complete(body);
        soup_server_message_unpause(exchange->message);
    }
    exchange_free(exchange);
    return G_SOURCE_REMOVE;
}

static void
start_stream(Exchange *exchange, const StandinReply *reply)
{
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(exchange->message);

    soup_server_message_set_status(exchange->message, 200, NULL);
    soup_message_headers_set_encoding(headers, SOUP_ENCODING_CHUNKED);
    soup_message_headers_set_content_type(headers, "text/event-stream", NULL);
    soup_message_headers_append(headers, "cache-control", "no-cache");
    exchange->pieces = g_ptr_array_new_with_free_func(g_free);
    exchange->slow_ms = reply->slow_ms;
    exchange->cut = reply->cut;
    exchange->dialect->stream(exchange->request, reply, exchange->pieces);
    log_exchange(exchange);
    soup_server_message_pause(exchange->message);
    send_more(exchange);
}

static void
answer(Exchange *exchange)
{
    g_autoptr(StandinReply) reply = standin_script_run(exchange->request, opt_root);

    reply->serial = ++exchange->standin->serial;
    if (reply->status != 0)
        refuse(exchange, reply->status, "%s",
               reply->status == 401   ? "invalid x-api-key"
               : reply->status == 429 ? "Rate limit reached: try again later"
                                      : "The model is not available");
    else if (exchange->request->stream)
        start_stream(exchange, reply);
    else
        answer_json(exchange, 200, exchange->dialect->whole(exchange->request, reply));
}

/* --- what is asked --- */

static gboolean
key_matches(Exchange *exchange, const char *value)
{
    return value != NULL &&
           (exchange->standin->key == NULL || eb_secret_equal_bytes(exchange->standin->key, value, strlen(value)));
}

/* Each dialect's own header alone counts. */
static void
check_key(Exchange *exchange)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(exchange->message);
    const char *bearer = soup_message_headers_get_one(headers, "authorization");
    const char *value = NULL;

    if (exchange->dialect == &standin_gemini) {
        value = soup_message_headers_get_one(headers, "x-goog-api-key");
        exchange->auth_header = value != NULL ? "x-goog-api-key" : NULL;
    } else if (exchange->dialect == &standin_anthropic) {
        value = soup_message_headers_get_one(headers, "x-api-key");
        exchange->auth_header = value != NULL ? "x-api-key" : NULL;
    }
    if (value == NULL && exchange->dialect != &standin_gemini && bearer != NULL &&
        g_ascii_strncasecmp(bearer, "bearer ", 7) == 0) {
        value = bearer + 7;
        exchange->auth_header = "authorization";
    }
    exchange->key_ok = key_matches(exchange, value);
}

static void
refuse_key(Exchange *exchange)
{
    const gboolean missing = exchange->auth_header == NULL;

    if (exchange->dialect == &standin_gemini)
        refuse(exchange, missing ? 403 : 400, "%s",
               missing ? "Method doesn't allow unregistered callers (callers without established identity)."
                       : "API key not valid. Please pass a valid API key.");
    else if (exchange->dialect == &standin_anthropic)
        refuse(exchange, 401, "%s", missing ? "x-api-key header is required" : "invalid x-api-key");
    else
        refuse(exchange, 401, "%s",
               missing ? "You didn't provide an API key. You need to provide it in an Authorization header."
                       : "Incorrect API key provided.");
}

/* "models/NAME:VERB" of Gemini's paths; TRUE when @path is one. */
static gboolean
split_gemini(const char *path, char **model, char **verb)
{
    static const char *const prefixes[] = {"/v1beta/models/", "/v1/models/"};

    for (gsize i = 0; i < G_N_ELEMENTS(prefixes); i++) {
        const char *rest = g_str_has_prefix(path, prefixes[i]) ? path + strlen(prefixes[i]) : NULL;
        const char *colon = rest != NULL ? strchr(rest, ':') : NULL;

        if (colon == NULL)
            continue;
        *model = g_strndup(rest, (gsize)(colon - rest));
        *verb = g_strdup(colon + 1);
        return TRUE;
    }
    return FALSE;
}

static const StandinDialect *
dialect_of(const char *path)
{
    if (g_str_has_prefix(path, "/v1/messages"))
        return &standin_anthropic;
    if (strcmp(path, "/v1/responses") == 0)
        return &standin_openai_responses;
    if (g_str_has_prefix(path, "/v1beta/") || strchr(path, ':') != NULL)
        return &standin_gemini;
    return &standin_openai_chat;
}

static gboolean
read_body(Exchange *exchange, JsonObject **body)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(exchange->message);
    g_autoptr(GBytes) bytes = soup_message_body_flatten(soup_server_message_get_request_body(exchange->message));
    const EbJsonLimits limits = {.max_bytes = MAX_BODY, .max_depth = 128};
    const char *type = soup_message_headers_get_content_type(headers, NULL);
    g_autoptr(JsonNode) node = NULL;
    gsize length = 0;
    const char *text = g_bytes_get_data(bytes, &length);

    if (g_strcmp0(type, "application/json") != 0) {
        refuse(exchange, 415, "Unsupported content type: %s", type != NULL ? "not application/json" : "missing");
        return FALSE;
    }
    node = eb_json_parse(text != NULL ? text : "", length, &limits, NULL);
    if (eb_json_node_object(node) == NULL) {
        refuse(exchange, 400, "We could not parse the JSON body of your request.");
        return FALSE;
    }
    exchange->request->bytes = length;
    *body = json_object_ref(eb_json_node_object(node));
    return TRUE;
}

static void
answer_count(Exchange *exchange, const char *member)
{
    JsonObject *count = json_object_new();

    json_object_set_int_member(count, member, (gint64)exchange->request->bytes / 4);
    answer_json(exchange, 200, count);
}

static void
answer_models(Exchange *exchange)
{
    JsonObject *list = json_object_new();
    JsonArray *data = json_array_new();
    JsonObject *model = json_object_new();

    json_object_set_string_member(model, "id", "standin");
    json_object_set_string_member(model, "object", "model");
    json_array_add_object_element(data, model);
    json_object_set_string_member(list, "object", "list");
    json_object_set_array_member(list, "data", data);
    answer_json(exchange, 200, list);
}

/* A POST to one of the known places, with the right key. */
static void
handle_post(Exchange *exchange, const char *path)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(exchange->message);
    g_autoptr(JsonObject) body = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *model = NULL;
    g_autofree char *verb = NULL;

    exchange->request = standin_request_new();
    if (exchange->dialect == &standin_gemini && !split_gemini(path, &model, &verb)) {
        refuse(exchange, 404, "Not found: %s", path);
        return;
    }
    if (exchange->dialect == &standin_anthropic && soup_message_headers_get_one(headers, "anthropic-version") == NULL) {
        refuse(exchange, 400, "anthropic-version: header is required");
        return;
    }
    if (!read_body(exchange, &body))
        return;
    if (!exchange->dialect->decode(body, exchange->request, &error)) {
        refuse(exchange, 400, "%s", error->message);
        return;
    }
    if (model != NULL) {
        g_free(exchange->request->model);
        exchange->request->model = g_steal_pointer(&model);
        exchange->request->stream = strcmp(verb, "streamGenerateContent") == 0;
    }
    if (g_str_has_suffix(path, "/count_tokens"))
        answer_count(exchange, "input_tokens");
    else if (g_strcmp0(verb, "countTokens") == 0)
        answer_count(exchange, "totalTokens");
    else if (verb != NULL && !exchange->request->stream && strcmp(verb, "generateContent") != 0)
        refuse(exchange, 404, "Not found: %s", path);
    else
        answer(exchange);
}

static gboolean
is_known(const char *path)
{
    static const char *const known[] = {"/v1/chat/completions", "/v1/responses", "/v1/messages",
                                        "/v1/messages/count_tokens", NULL};

    return g_strv_contains(known, path) || strchr(path, ':') != NULL;
}

static void
on_request(SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
    Exchange *exchange = g_new0(Exchange, 1);
    const char *method = soup_server_message_get_method(message);

    exchange->standin = user_data;
    exchange->message = g_object_ref(message);
    g_signal_connect(message, "finished", G_CALLBACK(on_finished), exchange);
    if (strcmp(path, "/") == 0 && (strcmp(method, "HEAD") == 0 || strcmp(method, "GET") == 0)) {
        soup_server_message_set_status(message, 200, NULL);
        log_exchange(exchange);
        exchange_free(exchange);
        return;
    }
    exchange->dialect = dialect_of(path);
    check_key(exchange);
    if (!exchange->key_ok)
        refuse_key(exchange);
    else if (strcmp(method, "GET") == 0 && strcmp(path, "/v1/models") == 0)
        answer_models(exchange);
    else if (!is_known(path))
        refuse(exchange, 404, "Invalid URL (%s %s)", method, path);
    else if (strcmp(method, "POST") != 0)
        refuse(exchange, 405, "Not allowed to %s on %s", method, path);
    else
        handle_post(exchange, path);
}

/* --- the program --- */

static gboolean
on_quit(gpointer user_data)
{
    g_main_loop_quit(user_data);
    return G_SOURCE_REMOVE;
}

static gboolean
on_stdin(int fd, GIOCondition condition, gpointer user_data)
{
    char buffer[256];

    if (read(fd, buffer, sizeof buffer) > 0)
        return G_SOURCE_CONTINUE;
    g_main_loop_quit(user_data);
    return G_SOURCE_REMOVE;
}

/* The server's own listener of libsoup 3.2 never lets go of a socket it accepted. */
static gboolean
on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, gpointer server)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketAddress) local = g_socket_connection_get_local_address(connection, &error);
    g_autoptr(GSocketAddress) remote =
        local != NULL ? g_socket_connection_get_remote_address(connection, &error) : NULL;

    if (remote != NULL)
        g_object_set_data(G_OBJECT(remote), SOCKET_KEY, g_socket_connection_get_socket(connection));
    if (remote == NULL || !soup_server_accept_iostream(server, G_IO_STREAM(connection), local, remote, &error))
        g_message("a connection was dropped: %s", error->message);
    return TRUE;
}

static gboolean
set_up(Standin *standin, SoupServer *server, GSocketService *service, GError **error)
{
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, (guint16)opt_port);
    g_autoptr(GSocketAddress) bound = NULL;

    if (opt_key_fd >= 0) {
        standin->key = eb_secret_new_from_fd("stand-in key", opt_key_fd, error);
        if (standin->key == NULL)
            return FALSE;
    }
    if (opt_log != NULL) {
        standin->log = fopen(opt_log, "ae");
        if (standin->log == NULL) {
            eb_set_error(error, EB_ERROR_FAILED, NULL, "cannot open %s: %s", opt_log, g_strerror(errno));
            return FALSE;
        }
    }
    soup_server_add_handler(server, NULL, on_request, standin, NULL);
    g_signal_connect(service, "incoming", G_CALLBACK(on_incoming), server);
    if (!g_socket_listener_add_address(G_SOCKET_LISTENER(service), address, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP,
                                       NULL, &bound, error))
        return FALSE;
    printf("{\"port\":%u}\n", g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound)));
    fflush(stdout);
    return TRUE;
}

int
main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(SoupServer) server = soup_server_new("server-header", "eb-model-standin", NULL);
    g_autoptr(GSocketService) service = g_socket_service_new();
    g_autoptr(GError) error = NULL;
    Standin standin = {0};

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc > 1) {
        fprintf(stderr, "eb-model-standin: %s\n", error != NULL ? error->message : "unknown argument");
        return 2;
    }
    if (opt_root == NULL)
        opt_root = g_strdup("/workspace");
    if (!set_up(&standin, server, service, &error)) {
        fprintf(stderr, "eb-model-standin: %s\n", error->message);
        return 1;
    }
    g_unix_signal_add(SIGTERM, on_quit, loop);
    g_unix_signal_add(SIGINT, on_quit, loop);
    if (opt_until_eof)
        g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP, on_stdin, loop);
    g_main_loop_run(loop);
    g_socket_service_stop(service);
    g_socket_listener_close(G_SOCKET_LISTENER(service));
    soup_server_disconnect(server);
    g_clear_pointer(&standin.key, eb_secret_unref);
    if (standin.log != NULL)
        fclose(standin.log);
    g_free(opt_log);
    g_free(opt_root);
    return 0;
}
