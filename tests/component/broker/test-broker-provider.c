/* SPDX-License-Identifier: MIT */
/* The real broker process, a real origin: what agents do with a provider. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/eb-spawn.h"
#include "core/base/eb-unix.h"
#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define BEARER "Authorization: Bearer " TEST_NONCE "\r\n"
#define X_KEY "x-api-key: " TEST_NONCE "\r\n"

static char *
ask_provider(EbTestBroker *broker, const char *name, const char *path, const char *credential)
{
    g_autofree char *request = g_strdup_printf("POST /provider/%s%s HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n%s"
                                               "Content-Length: 2\r\nConnection: close\r\n\r\n{}",
                                               name, path, credential);

    return eb_test_broker_ask(broker, request);
}

static void
test_kinds(void)
{
    static const struct {
        const char *provider;
        const char *credential;
        const char *path;
        const char *sent_path;
        const char *key_line;
    } ROWS[] = {
        {"anthropic", X_KEY, "/v1/messages?beta=true", "POST /v1/messages?beta=true HTTP/1.1\r\n",
         "x-api-key: " TEST_KEY "\r\n"},
        {"anthropic", BEARER, "/v1/messages", "POST /v1/messages HTTP/1.1\r\n", "x-api-key: " TEST_KEY "\r\n"},
        {"openai", BEARER, "/v1/chat/completions", "POST /v1/chat/completions HTTP/1.1\r\n",
         "Authorization: Bearer " TEST_KEY "\r\n"},
        {"openai", BEARER, "/responses", "POST /v1/responses HTTP/1.1\r\n", "Authorization: Bearer " TEST_KEY "\r\n"},
        {"gemini", "x-goog-api-key: " TEST_NONCE "\r\n", "/v1beta/models/m:streamGenerateContent?alt=sse",
         "POST /v1beta/models/m:streamGenerateContent?alt=sse HTTP/1.1\r\n", "x-goog-api-key: " TEST_KEY "\r\n"},
        {"gemini", "", "/v1beta/x?key=" TEST_NONCE "&a=b", "POST /v1beta/x?a=b HTTP/1.1\r\n",
         "x-goog-api-key: " TEST_KEY "\r\n"},
    };
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_autofree char *answer = ask_provider(broker, ROWS[i].provider, ROWS[i].path, ROWS[i].credential);
        g_autofree char *heads = eb_test_origin_get_heads(broker->origin);
        const char *last = g_strrstr(heads, "POST ");

        g_test_message("%s", last);
        g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
        g_assert_true(g_str_has_prefix(last, ROWS[i].sent_path));
        g_assert_nonnull(strcasestr(last, ROWS[i].key_line));
        /* One credential, and the guest's is not it. */
        g_assert_null(strstr(last, TEST_NONCE));
        g_assert_null(strstr(strstr(last, TEST_KEY) + 1, TEST_KEY));
        g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, i + 1);
    }
}

static void
test_key_is_never_shown(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *answer = ask_provider(broker, "anthropic", "/echo", X_KEY);
    g_autofree char *heads = eb_test_origin_get_heads(broker->origin);

    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    g_assert_nonnull(strstr(heads, TEST_KEY));
    g_assert_null(strstr(answer, TEST_KEY));
    g_assert_null(strstr(answer, "X-Echo"));
    g_assert_nonnull(strstr(answer, "X-Kept: yes"));
    g_assert_nonnull(strstr(answer, "x-api-key: ************************\r\n"));
}

static void
test_wrong_nonce(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *other = ask_provider(broker, "anthropic", "/v1/messages", "x-api-key: nonce-of-another-one\r\n");
    g_autofree char *none = ask_provider(broker, "anthropic", "/v1/messages", "");
    g_autofree char *boundary = ask_provider(broker, "anthropicx", "/v1/messages", X_KEY);

    eb_test_assert_refused(other, 401, "nonce-refused");
    eb_test_assert_refused(none, 401, "nonce-refused");
    eb_test_assert_refused(boundary, 404, "provider-unknown");
    g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 0);
    eb_test_broker_wait_audit(broker, 3);
    g_assert_cmpuint(broker->n_denied, ==, 2);
}

static void
test_probe(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *answer = eb_test_broker_ask(
        broker, "HEAD /provider/anthropic HTTP/1.1\r\nHost: 127.0.0.1:47129\r\nConnection: close\r\n\r\n");

    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 0);
}

/* The relay of the guest between curl and the broker, as in a guest. */
static EbChild *
start_relay(EbTestBroker *broker, guint16 *port)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocket) listener = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, 0, &error);
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, 0);
    g_autoptr(GSocketAddress) bound = NULL;
    g_autofree char *program = g_build_filename(g_getenv("EB_TEST_BUILD"), "guest", "relay", NULL);
    g_autoptr(EbSpawn) spawn = NULL;
    EbChild *child;

    if (!g_file_test(program, G_FILE_TEST_IS_EXECUTABLE))
        return NULL;
    g_assert_true(g_socket_bind(listener, address, FALSE, &error));
    g_assert_true(g_socket_listen(listener, &error));
    bound = g_socket_get_local_address(listener, &error);
    *port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
    spawn = eb_spawn_new(program);
    eb_spawn_add_arg(spawn, "--listen-fd");
    eb_spawn_add_arg(spawn, "5");
    eb_spawn_add_arg(spawn, "--connect");
    eb_spawn_add_arg(spawn, broker->socket_path);
    eb_spawn_take_fd(spawn, dup(g_socket_get_fd(listener)), 5);
    child = eb_spawn_start(spawn, &error);
    g_assert_no_error(error);
    return child;
}

static char *
run_curl(const char *proxy, gboolean tunnel, const char *url)
{
    const char *argv[16] = {"curl", "-sS", "-m", "60", "-H", "x-api-key: " TEST_NONCE, "-d", "{}"};
    g_autoptr(GError) error = NULL;
    g_autofree char *errors = NULL;
    char *output = NULL;
    guint n = 8;

    argv[n++] = proxy != NULL ? "-x" : "--noproxy";
    argv[n++] = proxy != NULL ? proxy : "*";
    if (tunnel)
        argv[n++] = "-p";
    argv[n++] = url;
    g_assert_true(
        g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &output, &errors, NULL, &error));
    g_test_message("%s", errors);
    return output;
}

static void
test_three_ways(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    g_autoptr(EbChild) relay = NULL;
    g_autofree char *curl = g_find_program_in_path("curl");
    g_autofree char *url = NULL;
    g_autofree char *proxy = NULL;
    guint16 port = 0;

    relay = curl != NULL ? start_relay(broker, &port) : NULL;
    if (relay == NULL) {
        g_test_skip("needs curl and the guest's relay");
        return;
    }
    broker->rules->relay_port = port;
    eb_test_broker_start(broker);
    url = g_strdup_printf("http://127.0.0.1:%u/provider/anthropic/v1/messages", port);
    proxy = g_strdup_printf("http://127.0.0.1:%u", port);
    for (guint way = 0; way < 3; way++) {
        g_autofree char *output = run_curl(way == 0 ? NULL : proxy, way == 2, url);

        g_assert_cmpstr(output, ==, "hello");
    }
    g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 3);
    g_assert_cmpstr(eb_json_get_string(eb_test_broker_wait_audit(broker, 3), "provider"), ==, "anthropic");
}

/* Neither the key nor what it cost could be looked for in it. */
static void
test_compressed(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *answer =
        eb_test_broker_ask(broker, "GET /provider/anthropic/coded HTTP/1.1\r\nHost: x\r\nx-api-key: " TEST_NONCE
                                   "\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
    g_autofree char *heads = eb_test_origin_get_heads(broker->origin);

    eb_test_assert_refused(answer, 502, "upstream-failed");
    g_assert_null(strstr(heads, "gzip"));
}

static void
test_no_redirect(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *answer = ask_provider(broker, "anthropic", "/redirect", X_KEY);

    g_assert_cmpuint(eb_test_status_of(answer), ==, 302);
    g_assert_nonnull(strstr(answer, "Location: http://elsewhere.test/x"));
    g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 1);
}

static void
test_provider_errors(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *refused = ask_provider(broker, "anthropic", "/status/401", X_KEY);
    g_autofree char *limited = ask_provider(broker, "openai", "/status/429", BEARER);
    g_autofree char *cut = ask_provider(broker, "openai", "/cut", BEARER);

    /* The key is the operator's business: the guest is not told to log in. */
    eb_test_assert_refused(refused, 403, "provider-key-refused");
    g_assert_cmpuint(eb_test_status_of(limited), ==, 429);
    /* A body that broke off must not look complete. */
    g_assert_null(strstr(cut, "0\r\n\r\n"));
    eb_test_broker_wait_audit(broker, 3);
    g_assert_cmpuint(broker->n_provider_errors, ==, 1);
    g_assert_cmpuint(broker->provider_status, ==, 401);
}

static void
test_unreachable(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    EbBrokerProvider *provider = broker->rules->providers->pdata[0];
    g_autofree char *answer = NULL;

    g_free(provider->base_url);
    /* Port 1 of loopback: nobody listens there. */
    provider->base_url = g_strdup("http://127.0.0.1:1");
    eb_test_broker_start(broker);
    answer = ask_provider(broker, "anthropic", "/v1/messages", X_KEY);
    eb_test_assert_refused(answer, 502, "connect-failed");
    eb_test_broker_wait_audit(broker, 1);
    g_assert_cmpuint(broker->n_provider_errors, ==, 1);
    /* For people, who know no codes. */
    g_assert_cmpstr(broker->provider_error, ==, "the host refused the connection");
}

static void
test_events(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    static const char REQUEST[] =
        "POST /provider/anthropic/sse HTTP/1.1\r\nHost: x\r\n" X_KEY "Content-Length: 0\r\nConnection: close\r\n\r\n";
    int fd = eb_test_broker_connect(broker);
    g_autofree char *head = NULL;
    g_autofree char *rest = NULL;

    eb_test_send(fd, REQUEST, strlen(REQUEST));
    /* The head comes before the first event exists, and every event before the next one does. */
    head = eb_test_receive_until(fd, "\r\n\r\n");
    g_assert_nonnull(strstr(head, "text/event-stream"));
    for (guint i = 0; i < 50; i++) {
        g_autofree char *expected = g_strdup_printf("data: %u\n\n", i);
        g_autofree char *event = NULL;

        eb_test_origin_step(broker->origin);
        event = eb_test_receive_until(fd, "\n\n");
        g_assert_nonnull(strstr(event, expected));
    }
    eb_test_origin_step_end(broker->origin);
    rest = eb_test_receive_all(fd, NULL);
    g_assert_true(g_str_has_suffix(rest, "0\r\n\r\n"));
    close(fd);
}

static void
abort_by(gboolean half)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    static const char REQUEST[] =
        "POST /provider/anthropic/hang HTTP/1.1\r\nHost: x\r\n" X_KEY "Content-Length: 0\r\n\r\n";
    int fd = eb_test_broker_connect(broker);

    eb_test_send(fd, REQUEST, strlen(REQUEST));
    eb_test_origin_wait_count(broker->origin, 1);
    if (half)
        shutdown(fd, SHUT_WR);
    else
        close(fd);
    eb_test_origin_wait_gone(broker->origin, 1);
    if (half)
        close(fd);
}

static void
test_abort(void)
{
    abort_by(FALSE);
    /* Through a relay that is all that shows of a client that is gone. */
    abort_by(TRUE);
}

static void
test_abort_in_stream(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    static const char REQUEST[] =
        "POST /provider/anthropic/sse HTTP/1.1\r\nHost: x\r\n" X_KEY "Content-Length: 0\r\n\r\n";
    int fd = eb_test_broker_connect(broker);

    eb_test_send(fd, REQUEST, strlen(REQUEST));
    eb_test_origin_step(broker->origin);
    g_free(eb_test_receive_until(fd, "data: 0"));
    close(fd);
    for (guint i = 0; i < 200; i++) {
        eb_test_origin_step(broker->origin);
        g_usleep(1000);
    }
    eb_test_origin_wait_gone(broker->origin, 1);
}

static guint64
peak_kib(EbTestBroker *broker)
{
    g_autofree char *status = eb_test_broker_proc(broker, "status", NULL);
    const char *line = strstr(status, "VmHWM:");

    return g_ascii_strtoull(line + 6, NULL, 10);
}

static void
test_large_upload(void)
{
    const guint64 total = G_GUINT64_CONSTANT(300) << 20;
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *piece = g_malloc0(1 << 20);
    g_autofree char *head = g_strdup_printf("POST /provider/anthropic/count HTTP/1.1\r\nHost: x\r\n" X_KEY
                                            "Content-Length: %" G_GUINT64_FORMAT "\r\nConnection: close\r\n\r\n",
                                            total);
    g_autofree char *answer = NULL;
    guint64 before = peak_kib(broker);
    int fd = eb_test_broker_connect(broker);

    eb_test_send(fd, head, strlen(head));
    for (guint64 sent = 0; sent < total; sent += 1 << 20)
        eb_test_send(fd, piece, 1 << 20);
    answer = eb_test_receive_all(fd, NULL);
    g_assert_true(g_str_has_suffix(answer, "\r\n\r\n314572800"));
    g_test_message("peak grew by %" G_GUINT64_FORMAT " KiB", peak_kib(broker) - before);
    g_assert_cmpuint(peak_kib(broker) - before, <, 48 * 1024);
    close(fd);
}

static void
test_slow_reader(void)
{
    static const char REQUEST[] =
        "GET /provider/anthropic/bytes/209715200 HTTP/1.1\r\nHost: x\r\n" X_KEY "Connection: close\r\n\r\n";
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *answer = NULL;
    guint64 before = peak_kib(broker);
    int fd = eb_test_broker_connect(broker);
    gsize length;

    eb_test_send(fd, REQUEST, strlen(REQUEST));
    eb_test_origin_wait_count(broker->origin, 1);
    eb_test_run_for(500);
    /* Not read yet: it waits at the origin, not in the broker. */
    g_assert_cmpuint(peak_kib(broker) - before, <, 16 * 1024);
    answer = eb_test_receive_all(fd, &length);
    g_assert_cmpuint(length, >, 209715200);
    close(fd);
}

static void
test_chunked_upload(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *answer =
        eb_test_broker_ask(broker, "POST /provider/openai/count HTTP/1.1\r\nHost: x\r\n" BEARER
                                   "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
                                   "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");

    g_assert_nonnull(strstr(answer, "\r\n\r\n11"));
}

static void
test_keep_alive(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autoptr(GString) request = g_string_new(NULL);
    int fd = eb_test_broker_connect(broker);
    g_autofree char *answer = NULL;
    g_autofree char *heads = NULL;
    guint n = 0;

    /* Many at once on one connection: each is answered, in order, and each is one request upstream. */
    for (guint i = 0; i < 40; i++)
        g_string_append_printf(
            request, "POST /provider/anthropic/v1/%u HTTP/1.1\r\nHost: x\r\n" X_KEY "Content-Length: 2\r\n%s\r\n{}", i,
            i == 39 ? "Connection: close\r\n" : "");
    eb_test_send(fd, request->str, request->len);
    answer = eb_test_receive_all(fd, NULL);
    for (const char *at = answer; (at = strstr(at, "HTTP/1.1 200")) != NULL; at++)
        n++;
    g_assert_cmpuint(n, ==, 40);
    heads = eb_test_origin_get_heads(broker->origin);
    for (guint i = 0, at = 0; i < 40; i++) {
        g_autofree char *line = g_strdup_printf("POST /v1/%u HTTP", i);
        const char *found = strstr(heads + at, line);

        g_assert_nonnull(found);
        at = (guint)(found - heads);
    }
    close(fd);
}

static void
test_tls(void)
{
    g_autofree char *directory = eb_test_temp_dir("tls");
    g_autofree char *pem = g_build_filename(directory, "origin.pem", NULL);
    g_autofree char *openssl = g_find_program_in_path("openssl");
    g_autofree char *text = NULL;
    const char *argv[] = {
        "openssl", "req",   "-x509", "-newkey", "ec",         "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes",  "-days", "7",     "-subj",   "/CN=origin", "-addext",  "subjectAltName=IP:127.0.0.1",
        "-keyout", pem,     "-out",  pem,       NULL};
    gsize length;

    if (openssl == NULL) {
        g_test_skip("needs openssl");
        return;
    }
    /* Key and certificate go into one file, one after the other. */
    g_assert_true(g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                               &text, NULL, NULL, NULL));
    g_clear_pointer(&text, g_free);
    g_assert_true(g_file_get_contents(pem, &text, &length, NULL));
    for (guint trusted = 0; trusted < 2; trusted++) {
        g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(pem);
        g_autofree char *answer = NULL;

        if (trusted != 0)
            broker->rules->ca_pem =
                g_bytes_new(strstr(text, "-----BEGIN CERTIFICATE"), strlen(strstr(text, "-----BEGIN CERTIFICATE")));
        eb_test_broker_start(broker);
        answer = ask_provider(broker, "anthropic", "/v1/messages", X_KEY);
        if (trusted != 0) {
            g_assert_true(g_str_has_suffix(answer, "\r\n\r\nhello"));
        } else {
            eb_test_assert_refused(answer, 502, "certificate-refused");
            g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 0);
            eb_test_broker_wait_audit(broker, 1);
            g_assert_cmpuint(broker->n_provider_errors, ==, 1);
            g_assert_cmpstr(broker->provider_error, ==,
                            "the provider's certificate is not trusted: self-signed certificate");
        }
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/provider/kinds", test_kinds);
    g_test_add_func("/broker/provider/key-is-never-shown", test_key_is_never_shown);
    g_test_add_func("/broker/provider/wrong-nonce", test_wrong_nonce);
    g_test_add_func("/broker/provider/probe", test_probe);
    g_test_add_func("/broker/provider/three-ways", test_three_ways);
    g_test_add_func("/broker/provider/compressed", test_compressed);
    g_test_add_func("/broker/provider/no-redirect", test_no_redirect);
    g_test_add_func("/broker/provider/errors", test_provider_errors);
    g_test_add_func("/broker/provider/unreachable", test_unreachable);
    g_test_add_func("/broker/provider/events", test_events);
    g_test_add_func("/broker/provider/abort", test_abort);
    g_test_add_func("/broker/provider/abort-in-stream", test_abort_in_stream);
    g_test_add_func("/broker/provider/large-upload", test_large_upload);
    g_test_add_func("/broker/provider/slow-reader", test_slow_reader);
    g_test_add_func("/broker/provider/chunked-upload", test_chunked_upload);
    g_test_add_func("/broker/provider/keep-alive", test_keep_alive);
    g_test_add_func("/broker/provider/tls", test_tls);
    return g_test_run();
}
