/* SPDX-License-Identifier: MIT */
/*
 * The backend against peers that cannot be had here: a daemon that accepts and never answers, LXD, the answers of
 * Incus 7, a profile that smuggles a network device in. The real daemon is in tests/integration/incus.
 */
#include <gio/gunixsocketaddress.h>
#include <unistd.h>

#include "eb-test.h"
#include "incus-backend.h"

typedef struct Peer Peer;
/* Returns (transfer full) the answer, NULL for the usual one. */
typedef char *(*Answer)(Peer *peer, const char *request);

struct Peer {
    char *dir;
    char *path;
    GSocketService *service; /* (nullable) */
    struct Client *hanging;  /* (nullable): the client it was asked by */
    gboolean hang;           /* /wait is not answered */
    GString *log;            /* "GET /1.0;..." without queries */
    Answer answer;
    guint count; /* for the answer function */
    EbContainerBackend *backend;
};

#define SYNC(metadata) "{\"type\":\"sync\",\"status_code\":200,\"metadata\":" metadata "}"
#define OPERATION                                                                                                      \
    "{\"type\":\"async\",\"operation\":\"/1.0/operations/x\",\"metadata\":{"                                           \
    "\"id\":\"01234567-89ab-cdef-0123-456789abcdef\",\"status\":\"Running\"}}"
#define WAIT_PATH "GET /1.0/operations/01234567-89ab-cdef-0123-456789abcdef/wait"
#define ERROR(code, text) "{\"type\":\"error\",\"error_code\":" code ",\"error\":\"" text "\"}"
#define INSTANCE(devices)                                                                                              \
    SYNC("{\"name\":\"s-1\",\"status\":\"Stopped\",\"expanded_config\":{\"security.guestapi\":\"false\","              \
         "\"security.idmap.isolated\":\"true\",\"security.syscalls.deny_compat\":\"true\","                            \
         "\"security.syscalls.deny\":\"x\",\"boot.autostart\":\"false\",\"limits.memory\":\"1\","                      \
         "\"user.errand-launch\":\"LAUNCH\"},\"expanded_devices\":{" devices "}}")

static const char *
usual_answer(const char *request)
{
    static const struct {
        const char *request;
        const char *answer;
    } answers[] = {
        {"GET /1.0",
         SYNC("{\"auth\":\"trusted\",\"environment\":{\"server\":\"incus\",\"server_version\":\"7.0.2\"}}")},
        {"GET /1.0/projects/p", SYNC("{\"name\":\"p\",\"config\":{}}")},
        {"GET /1.0/profiles/default", SYNC("{\"devices\":{\"root\":{\"path\":\"/\",\"pool\":\"pool\"}}}")},
        {"GET /1.0/storage-pools/pool", SYNC("{\"driver\":\"btrfs\"}")},
        {"GET /1.0/instances", SYNC("[]")},
        {"POST /1.0/instances", OPERATION},
        {"GET /1.0/instances/s-1", INSTANCE("\"root\":{\"type\":\"disk\"}")},
        {"PUT /1.0/instances/s-1/state", OPERATION},
        {"DELETE /1.0/instances/s-1", OPERATION},
        {WAIT_PATH, SYNC("{\"status\":\"Success\",\"status_code\":200}")},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(answers); i++)
        if (g_str_equal(answers[i].request, request))
            return answers[i].answer;
    return ERROR("404", "not found");
}

static char *launch_id; /* what the last creation carried, so that answers can name it */

/* --- the smallest HTTP there is: one request a connection --- */

typedef struct Client {
    Peer *peer;
    GSocketConnection *connection; /* (owned) */
    GString *request;
} Client;

static void read_more(Client *client);

static void
client_free(Client *client)
{
    g_io_stream_close(G_IO_STREAM(client->connection), NULL, NULL);
    g_object_unref(client->connection);
    g_string_free(client->request, TRUE);
    g_free(client);
}

static void
on_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, NULL);
    client_free(user_data);
}

static void
respond(Client *client, const char *request, const char *body)
{
    Peer *peer = client->peer;
    g_string_append_printf(peer->log, "%s;", request);
    if (peer->hang && g_str_equal(request, WAIT_PATH)) {
        peer->hanging = client;
        return;
    }
    if (g_str_equal(request, "POST /1.0/instances")) {
        g_autoptr(JsonNode) node = eb_json_parse(body, strlen(body), NULL, NULL);
        JsonObject *config = eb_json_get_object(eb_json_node_object(node), "config");
        g_free(launch_id);
        launch_id = g_strdup(eb_json_get_string(config, "user.errand-launch"));
    }
    g_autofree char *special = peer->answer != NULL ? peer->answer(peer, request) : NULL;
    g_autoptr(GString) text = g_string_new(special != NULL ? special : usual_answer(request));
    if (launch_id != NULL)
        g_string_replace(text, "LAUNCH", launch_id, 0);
    g_autofree char *header = g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                              "Connection: close\r\nContent-Length: %" G_GSIZE_FORMAT "\r\n\r\n",
                                              text->len);
    g_string_prepend(text, header);
    g_string_assign(client->request, text->str);
    g_output_stream_write_all_async(g_io_stream_get_output_stream(G_IO_STREAM(client->connection)),
                                    client->request->str, client->request->len, G_PRIORITY_DEFAULT, NULL, on_answered,
                                    client);
}

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Client *client = user_data;
    g_autoptr(GBytes) bytes = g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, NULL);
    if (bytes == NULL || g_bytes_get_size(bytes) == 0) {
        client_free(client);
        return;
    }
    g_string_append_len(client->request, g_bytes_get_data(bytes, NULL), (gssize)g_bytes_get_size(bytes));
    const char *text = client->request->str;
    const char *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "\r\nContent-Length:");
    gsize body = end != NULL && length != NULL && length < end ? (gsize)atoi(length + 17) : 0;
    if (end == NULL || client->request->len < (gsize)(end + 4 - text) + body) {
        read_more(client);
        return;
    }
    g_auto(GStrv) words = g_strsplit(text, " ", 3);
    words[1][strcspn(words[1], "?")] = '\0';
    g_autofree char *request = g_strdup_printf("%s %s", words[0], words[1]);
    respond(client, request, end + 4);
}

static void
read_more(Client *client)
{
    g_input_stream_read_bytes_async(g_io_stream_get_input_stream(G_IO_STREAM(client->connection)), 65536,
                                    G_PRIORITY_DEFAULT, NULL, on_read, client);
}

static gboolean
on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, gpointer user_data)
{
    Client *client = g_new0(Client, 1);
    client->peer = user_data;
    client->connection = g_object_ref(connection);
    client->request = g_string_new(NULL);
    read_more(client);
    return TRUE;
}

static GSocket *
listen_at(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    GSocket *socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, &error);
    g_assert_no_error(error);
    unlink(path);
    g_assert_true(g_socket_bind(socket, address, FALSE, &error));
    g_assert_true(g_socket_listen(socket, &error));
    return socket;
}

static void
peer_serve(Peer *peer)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocket) socket = listen_at(peer->path);
    peer->service = g_socket_service_new();
    g_signal_connect(peer->service, "incoming", G_CALLBACK(on_incoming), peer);
    g_assert_true(g_socket_listener_add_socket(G_SOCKET_LISTENER(peer->service), socket, NULL, &error));
    g_assert_no_error(error);
    g_socket_service_start(peer->service);
}

static Peer *
peer_new(Answer answer, gboolean serve)
{
    Peer *peer = g_new0(Peer, 1);
    peer->dir = eb_test_temp_dir("peer");
    peer->path = g_build_filename(peer->dir, "s", NULL);
    peer->log = g_string_new(NULL);
    peer->answer = answer;
    if (serve)
        peer_serve(peer);
    IncusSettings *settings = g_new0(IncusSettings, 1);
    g_autoptr(IncusEndpoint) endpoint = incus_endpoint_new_socket(peer->path);
    g_autoptr(IncusClient) client = incus_client_new(endpoint);
    settings->project = g_strdup("p");
    settings->pool = g_strdup("");
    settings->image = g_strdup("i");
    peer->backend = EB_CONTAINER_BACKEND(incus_backend_new(client, settings));
    return peer;
}

static void
peer_free(Peer *peer)
{
    g_clear_object(&peer->backend);
    eb_test_run_for(50); /* its connections close, ours see it */
    if (peer->service != NULL) {
        g_socket_service_stop(peer->service);
        g_socket_listener_close(G_SOCKET_LISTENER(peer->service));
    }
    g_clear_object(&peer->service);
    g_clear_pointer(&peer->hanging, client_free);
    eb_test_drain();
    eb_test_remove_tree(peer->dir);
    g_free(peer->dir);
    g_free(peer->path);
    g_string_free(peer->log, TRUE);
    g_free(peer);
    g_clear_pointer(&launch_id, g_free);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Peer, peer_free)

static EbContainerSpec *
new_spec(void)
{
    EbContainerSpec *spec = eb_container_spec_new("s-1", "image");
    spec->memory_bytes = 1 << 30;
    spec->pids = 100;
    spec->cpus = 1;
    return spec;
}

static GError *
launch(Peer *peer, guint deadline_ms)
{
    g_auto(EbTestResult) done = {0};
    GError *error = NULL;
    g_autoptr(EbContainerSpec) spec = new_spec();
    eb_container_backend_launch_async(peer->backend, spec, deadline_ms, NULL, eb_test_result_ready, &done);
    gboolean ok = eb_container_backend_launch_finish(peer->backend, eb_test_result_wait(&done), &error);
    g_assert_cmpint(ok, ==, error == NULL);
    return error;
}

static gboolean
logged(Peer *peer, const char *request)
{
    g_autofree char *entry = g_strconcat(request, ";", NULL);
    return strstr(peer->log->str, entry) != NULL;
}

/* --- a daemon that accepts and never answers --- */

#define SHORT_MS 300

static GError *
list(Peer *peer)
{
    g_auto(EbTestResult) done = {0};
    GError *error = NULL;
    eb_container_backend_list_async(peer->backend, NULL, SHORT_MS, NULL, eb_test_result_ready, &done);
    g_autoptr(GPtrArray) infos = eb_container_backend_list_finish(peer->backend, eb_test_result_wait(&done), &error);
    return error;
}

static gboolean
tick(gpointer user_data)
{
    ++*(guint *)user_data;
    return G_SOURCE_CONTINUE;
}

static void
assert_timeout(GError *error)
{
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, "incus.timeout", NULL);
    g_assert_true(eb_error_get_retry(error, NULL));
    g_error_free(error);
}

static void
test_wedged(void)
{
    static const char *const argv[] = {"true", NULL};
    g_autoptr(Peer) peer = peer_new(NULL, FALSE);
    g_autoptr(GSocket) wedge = listen_at(peer->path);
    g_autoptr(EbExecSpec) exec = eb_exec_spec_new(argv);
    g_autoptr(EbContainerSpec) spec = new_spec();
    EbTestResult done[8] = {0};
    GError *errors[8] = {NULL};
    guint ticks = 0;
    GSource *ticker = g_timeout_source_new(10);
    g_source_set_callback(ticker, tick, &ticks, NULL);
    g_source_attach(ticker, NULL);

    EbContainerBackend *b = peer->backend;
    eb_container_backend_probe_async(b, SHORT_MS, NULL, eb_test_result_ready, &done[0]);
    eb_container_backend_launch_async(b, spec, SHORT_MS, NULL, eb_test_result_ready, &done[1]);
    eb_container_backend_update_async(b, "s-1", spec, SHORT_MS, NULL, eb_test_result_ready, &done[2]);
    eb_container_backend_exec_async(b, "s-1", exec, SHORT_MS, NULL, eb_test_result_ready, &done[3]);
    eb_container_backend_stop_async(b, "s-1", EB_STOP_DESTROY, 100, SHORT_MS, NULL, eb_test_result_ready, &done[4]);
    eb_container_backend_list_async(b, NULL, SHORT_MS, NULL, eb_test_result_ready, &done[5]);
    eb_container_backend_image_info_async(b, NULL, SHORT_MS, NULL, eb_test_result_ready, &done[6]);
    eb_container_backend_image_import_async(b, "a", "/x", "/y", SHORT_MS, NULL, eb_test_result_ready, &done[7]);
    g_assert_null(eb_container_backend_probe_finish(b, eb_test_result_wait(&done[0]), &errors[0]));
    g_assert_false(eb_container_backend_launch_finish(b, eb_test_result_wait(&done[1]), &errors[1]));
    g_assert_false(eb_container_backend_update_finish(b, eb_test_result_wait(&done[2]), &errors[2]));
    g_assert_null(eb_container_backend_exec_finish(b, eb_test_result_wait(&done[3]), &errors[3]));
    g_assert_false(eb_container_backend_stop_finish(b, eb_test_result_wait(&done[4]), &errors[4]));
    g_assert_null(eb_container_backend_list_finish(b, eb_test_result_wait(&done[5]), &errors[5]));
    g_assert_null(eb_container_backend_image_info_finish(b, eb_test_result_wait(&done[6]), &errors[6]));
    g_assert_null(eb_container_backend_image_import_finish(b, eb_test_result_wait(&done[7]), &errors[7]));
    for (guint i = 0; i < 8; i++) {
        assert_timeout(errors[i]);
        eb_test_result_clear(&done[i]);
    }
    g_assert_cmpuint(ticks, >, 3); /* the rest of the service went on */
    g_source_destroy(ticker);
    g_source_unref(ticker);

    /* nothing of it sticks */
    g_socket_close(wedge, NULL);
    peer_serve(peer);
    g_assert_null(list(peer));
}

/* The daemon takes a creation and then stops answering: the launch ends in time, the instance is removed later. */
static gboolean
deleted(gpointer user_data)
{
    return logged(user_data, "DELETE /1.0/instances/s-1");
}

static void
test_wedged_in_launch(void)
{
    g_autoptr(Peer) peer = peer_new(NULL, TRUE);
    peer->hang = TRUE;
    assert_timeout(launch(peer, 500));
    peer->hang = FALSE;
    eb_test_run_until(deleted, peer);
    incus_backend_stop(INCUS_BACKEND(peer->backend));
}

static void
test_no_socket(void)
{
    g_autoptr(Peer) peer = peer_new(NULL, FALSE);
    g_autoptr(GError) error = list(peer);
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "incus.no-daemon", "incusd");
    g_autoptr(GSocket) stale = listen_at(peer->path);
    g_socket_close(stale, NULL);
    g_autoptr(GError) refused = list(peer);
    eb_test_assert_error(refused, EB_ERROR_UNAVAILABLE, "incus.lost", NULL);
}

/* --- other servers and versions --- */

static char *
answer_lxd(Peer *peer, const char *request)
{
    return g_str_equal(request, "GET /1.0")
               ? g_strdup(SYNC("{\"auth\":\"trusted\",\"environment\":{\"server\":\"lxd\"}}"))
               : NULL;
}

static void
test_lxd(void)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(Peer) peer = peer_new(answer_lxd, TRUE);
    IncusBackend *backend = INCUS_BACKEND(peer->backend);
    incus_backend_start_async(backend, NULL, eb_test_result_ready, &done);
    g_assert_false(incus_backend_start_finish(backend, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "incus.lxd", "LXD");
}

static char *
answer_failing_start(Peer *peer, const char *request)
{
    if (g_str_equal(request, WAIT_PATH) && g_str_has_suffix(peer->log->str, "/state;" WAIT_PATH ";"))
        return g_strdup(SYNC("{\"status\":\"Failure\",\"status_code\":400,\"err\":\"forkstart: exit status 1\"}"));
    return NULL;
}

static void
test_seven_failed_start(void)
{
    g_autoptr(Peer) peer = peer_new(answer_failing_start, TRUE);
    g_autoptr(GError) error = launch(peer, 10000);
    eb_test_assert_error(error, EB_ERROR_INVALID, NULL, "forkstart");
    g_assert_true(logged(peer, "DELETE /1.0/instances/s-1"));
}

static char *
answer_busy(Peer *peer, const char *request)
{
    if (g_str_equal(request, "PUT /1.0/instances/s-1/state") && peer->count++ < 3)
        return g_strdup(ERROR("500", "Instance is busy running a \\\"stop\\\" operation"));
    return NULL;
}

static void
test_busy_is_retried(void)
{
    g_autoptr(Peer) peer = peer_new(answer_busy, TRUE);
    g_assert_no_error(launch(peer, 10000));
    g_assert_cmpuint(peer->count, ==, 4);
    g_assert_false(logged(peer, "DELETE /1.0/instances/s-1"));
}

static char *
answer_nic(Peer *peer, const char *request)
{
    if (g_str_equal(request, "GET /1.0/instances/s-1"))
        return g_strdup(INSTANCE("\"root\":{\"type\":\"disk\"},\"eth0\":{\"type\":\"nic\"}"));
    return NULL;
}

static void
test_smuggled_nic(void)
{
    g_autoptr(Peer) peer = peer_new(answer_nic, TRUE);
    g_autoptr(GError) error = launch(peer, 10000);
    eb_test_assert_error(error, EB_ERROR_DENIED, "incus.device", "eth0");
    g_assert_false(logged(peer, "PUT /1.0/instances/s-1/state"));
    g_assert_true(logged(peer, "DELETE /1.0/instances/s-1"));
}

static char *
answer_exists(Peer *peer, const char *request)
{
    return g_str_equal(request, "POST /1.0/instances") ? g_strdup(ERROR("409", "Instance \\\"s-1\\\" already exists"))
                                                       : NULL;
}

static void
test_seven_name_in_use(void)
{
    g_autoptr(Peer) peer = peer_new(answer_exists, TRUE);
    g_autoptr(GError) error = launch(peer, 10000);
    eb_test_assert_error(error, EB_ERROR_EXISTS, "incus.exists", NULL);
    g_assert_false(logged(peer, "DELETE /1.0/instances/s-1"));
}

static char *
answer_other_launch(Peer *peer, const char *request)
{
    if (g_str_equal(request, WAIT_PATH))
        return g_strdup(ERROR("500", "something else failed"));
    if (g_str_equal(request, "GET /1.0/instances/s-1"))
        return g_strdup(
            SYNC("{\"name\":\"s-1\",\"status\":\"Running\",\"config\":{\"user.errand-launch\":\"other\"}}"));
    return NULL;
}

/* Undoing must not touch an instance of the same name that another launch made. */
static void
test_undo_spares_others(void)
{
    g_autoptr(Peer) peer = peer_new(answer_other_launch, TRUE);
    g_autoptr(GError) error = launch(peer, 10000);
    eb_test_assert_error(error, EB_ERROR_FAILED, NULL, "something else");
    g_assert_true(logged(peer, "GET /1.0/instances/s-1"));
    g_assert_false(logged(peer, "DELETE /1.0/instances/s-1"));
    g_assert_false(logged(peer, "PUT /1.0/instances/s-1/state"));
}

static char *
answer_endless(Peer *peer, const char *request)
{
    return g_str_equal(request, "GET /1.0/instances") ? g_strnfill(17 << 20, ' ') : NULL;
}

static void
test_endless_answer(void)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(Peer) peer = peer_new(answer_endless, TRUE);
    eb_container_backend_list_async(peer->backend, NULL, 30000, NULL, eb_test_result_ready, &done);
    g_assert_null(eb_container_backend_list_finish(peer->backend, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, NULL, NULL);
}

static void
drop_message(const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_log_set_handler("libsoup", G_LOG_LEVEL_DEBUG, drop_message, NULL);
    g_log_set_handler("GLib-GIO", G_LOG_LEVEL_DEBUG, drop_message, NULL);
    g_test_add_func("/incus/peers/wedged", test_wedged);
    g_test_add_func("/incus/peers/wedged-in-launch", test_wedged_in_launch);
    g_test_add_func("/incus/peers/no-socket", test_no_socket);
    g_test_add_func("/incus/peers/lxd", test_lxd);
    g_test_add_func("/incus/peers/seven-failed-start", test_seven_failed_start);
    g_test_add_func("/incus/peers/busy-is-retried", test_busy_is_retried);
    g_test_add_func("/incus/peers/smuggled-nic", test_smuggled_nic);
    g_test_add_func("/incus/peers/seven-name-in-use", test_seven_name_in_use);
    g_test_add_func("/incus/peers/undo-spares-others", test_undo_spares_others);
    g_test_add_func("/incus/peers/endless-answer", test_endless_answer);
    return g_test_run();
}
