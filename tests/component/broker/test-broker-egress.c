/* SPDX-License-Identifier: MIT */
/* The real broker process, a real origin: tunnels, plain http, and the life of the process. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "eb-test.h"
#include "tests/component/broker/eb-test-broker.h"

#define X_KEY "x-api-key: " TEST_NONCE "\r\n"

/* --- tunnels and plain http --- */

static char *
connect_line(EbTestBroker *broker)
{
    guint port = eb_test_origin_get_port(broker->origin);

    return g_strdup_printf("CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", port, port);
}

static void
test_tunnel(void)
{
    static const char REQUEST[] = "GET /bytes/67108864 HTTP/1.1\r\nHost: x\r\n\r\n";
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *line = connect_line(broker);
    g_autofree char *both = g_strconcat(line, REQUEST, NULL);
    g_autofree char *answer = NULL;
    int fd = eb_test_broker_connect(broker);
    const char *body;
    JsonObject *row;
    gsize length;

    /* What follows the request before the answer belongs to the tunnel. */
    eb_test_send(fd, both, strlen(both));
    shutdown(fd, SHUT_WR);
    answer = eb_test_receive_all(fd, &length);
    g_assert_true(g_str_has_prefix(answer, "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n"));
    body = strstr(strstr(answer, "\r\n\r\n") + 4, "\r\n\r\n") + 4;
    g_assert_cmpuint(length - (gsize)(body - answer), ==, 67108864);
    for (gsize i = 0; i < 67108864; i++) {
        if (body[i] != (char)('a' + (i % 65536) % 23))
            g_error("byte %" G_GSIZE_FORMAT " is wrong", i);
    }
    close(fd);
    row = eb_test_broker_wait_audit(broker, 1);
    g_assert_cmpstr(eb_json_get_string(row, "kind"), ==, "connect");
    g_assert_cmpstr(eb_json_get_string(row, "address"), ==, "127.0.0.1");
    g_assert_cmpstr(eb_json_get_string(row, "decision"), ==, "allowed");
    g_assert_cmpstr(eb_json_get_string(row, "rule"), ==, "127.0.0.1");
    g_assert_cmpint(eb_json_get_int(row, "bytes_up", 0), ==, (gint64)strlen(REQUEST));
    g_assert_cmpint(eb_json_get_int(row, "bytes_down", 0), >, 67108864);
}

static void
test_tunnel_upload(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *line = connect_line(broker);
    g_autofree char *piece = g_malloc0(32 << 20);
    static const char REQUEST[] = "POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 33554432\r\n\r\n";
    int fd = eb_test_broker_connect(broker);

    eb_test_send(fd, line, strlen(line));
    g_free(eb_test_receive_until(fd, "established\r\n\r\n"));
    eb_test_send(fd, REQUEST, strlen(REQUEST));
    eb_test_send(fd, piece, 32 << 20);
    g_free(eb_test_receive_until(fd, "\r\n\r\n33554432"));
    close(fd);
}

static void
test_denied(void)
{
    static const struct {
        const char *request;
        guint status;
        const char *code;
    } ROWS[] = {
        {"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n", 403, "host-not-allowed"},
        {"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1\r\n", 403, "port-not-allowed"},
        {"CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1\r\n", 403, "host-not-allowed"},
        {"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n", 403, "internal-address"},
        {"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\n", 403, "host-not-allowed"},
        {"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n", 403, "host-not-allowed"},
        {"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n", 403, "host-not-allowed"},
        {"GET https://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n", 400, "scheme-not-allowed"},
        {"TRACE / HTTP/1.1\r\nHost: x\r\n", 405, "method-not-allowed"},
        {"GET / HTTP/1.1\r\nHost: x\r\n", 404, "not-found"},
    };
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_autofree char *request = g_strconcat(ROWS[i].request, "Connection: close\r\n\r\n", NULL);
        g_autofree char *answer = eb_test_broker_ask(broker, request);

        g_test_message("%s", ROWS[i].request);
        eb_test_assert_refused(answer, ROWS[i].status, ROWS[i].code);
    }
    eb_test_broker_wait_audit(broker, G_N_ELEMENTS(ROWS));
    g_assert_cmpuint(eb_test_origin_get_count(broker->origin), ==, 0);
    /* Seven hosts, each told once; refusals of the form alone are not about a host. */
    g_assert_cmpuint(broker->n_denied, ==, 7);
    g_free(eb_test_broker_ask(broker, "CONNECT evil.test:443 HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n"));
    g_free(eb_test_broker_ask(broker, "CONNECT evil.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n"));
    eb_test_broker_wait_audit(broker, G_N_ELEMENTS(ROWS) + 2);
    g_assert_cmpuint(broker->n_denied, ==, 7);
}

/* Whatever way a name is asked by, what is not listed hears one text, and is not looked up. */
static void
test_one_wording(void)
{
    static const char *const ROWS[] = {
        "CONNECT data.x.test:443 HTTP/1.1\r\nHost: data.x.test\r\n",
        "CONNECT DATA.x.test.:80 HTTP/1.1\r\n",
        "GET http://data.x.test/ HTTP/1.1\r\nHost: data.x.test\r\n",
        "POST http://data.x.test:443/dns-query HTTP/1.1\r\nHost: data.x.test:443\r\nContent-Length: 0\r\n",
        "CONNECT 192.0.2.53:53 HTTP/1.1\r\n",
        "GET http://[2001:db8::1]:8053/ HTTP/1.1\r\nHost: [2001:db8::1]:8053\r\n",
    };
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *first = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_autofree char *request = g_strconcat(ROWS[i], "Connection: close\r\n\r\n", NULL);
        g_autofree char *answer = eb_test_broker_ask(broker, request);
        const char *body = strstr(answer, "\r\n\r\n") + 4;
        g_autoptr(JsonNode) node = eb_json_parse(body, strlen(body), &EB_JSON_LIMITS_SMALL, NULL);
        JsonObject *object = eb_json_node_object(node);
        const char *host = eb_json_get_string(object, "host");
        g_autofree char *bare = g_strndup(host, (gsize)(strrchr(host, ':') - host));
        const gsize inset = bare[0] == '[' ? 1 : 0;
        g_autoptr(GString) text = g_string_new(answer);

        /* Lengths differ with the host, and nothing else does. */
        bare[strlen(bare) - inset] = '\0';
        g_string_replace(text, host, "@", 0);
        g_string_replace(text, bare + inset, "@", 0);
        g_string_erase(text, strstr(text->str, "Content-Length: ") - text->str,
                       (gssize)strcspn(strstr(text->str, "Content-Length: "), "\r"));
        if (first == NULL)
            first = g_strdup(text->str);
        g_assert_cmpstr(text->str, ==, first);
        eb_test_assert_refused(answer, 403, "host-not-allowed");
    }
    for (guint i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        eb_test_broker_wait_audit(broker, i + 1);
        g_assert_null(eb_json_get_string(broker->audit->pdata[i], "address"));
    }
}

static void
test_forward(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    guint port = eb_test_origin_get_port(broker->origin);
    g_autofree char *request =
        g_strdup_printf("GET http://127.0.0.1:%u/x?y=z HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Basic own\r\n"
                        "Proxy-Authorization: Basic not\r\nX-Hop: 1\r\nConnection: close, X-Hop\r\n\r\n",
                        port, port);
    g_autofree char *answer = eb_test_broker_ask(broker, request);
    g_autofree char *heads = eb_test_origin_get_heads(broker->origin);
    g_autofree char *host = g_strdup_printf("\r\nHost: 127.0.0.1:%u\r\n", port);

    g_assert_true(g_str_has_suffix(answer, "\r\n\r\nhello"));
    g_assert_true(g_str_has_prefix(heads, "GET /x?y=z HTTP/1.1\r\n"));
    g_assert_nonnull(strstr(heads, host));
    g_assert_nonnull(strstr(heads, "Basic own"));
    g_assert_null(strstr(heads, "Basic not"));
    g_assert_null(strstr(heads, "X-Hop"));
    g_assert_null(strstr(heads, TEST_KEY));
}

/* --- life --- */

static gboolean
has_new_pid(gpointer user_data)
{
    return eb_broker_ctl_get_pid(EB_BROKER_CTL(user_data)) > 0;
}

static void
kill_broker(EbTestBroker *broker)
{
    int pid_fd = (int)syscall(SYS_pidfd_open, eb_broker_ctl_get_pid(broker->ctl), 0u);

    g_assert_cmpint(syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0u), ==, 0);
    close(pid_fd);
}

static void
test_replaced(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    struct stat before, after;
    int first = eb_broker_ctl_get_pid(broker->ctl), fd;
    g_autofree char *answer = NULL;
    static const char REQUEST[] =
        "POST /provider/anthropic/x HTTP/1.1\r\nHost: x\r\n" X_KEY "Content-Length: 0\r\nConnection: close\r\n\r\n";

    g_assert_cmpint(stat(broker->socket_path, &before), ==, 0);
    g_assert_cmpuint(before.st_mode & 0777, ==, 0600);
    kill_broker(broker);
    /* Sent while nobody is there: the listener is the service's, so it waits for the replacement. */
    fd = eb_test_broker_connect(broker);
    eb_test_send(fd, REQUEST, strlen(REQUEST));
    while (broker->n_died == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(broker->restarted);
    eb_test_run_until(has_new_pid, broker->ctl);
    g_assert_cmpint(eb_broker_ctl_get_pid(broker->ctl), !=, first);
    answer = eb_test_receive_all(fd, NULL);
    g_assert_cmpuint(eb_test_status_of(answer), ==, 200);
    close(fd);
    g_assert_cmpint(stat(broker->socket_path, &after), ==, 0);
    g_assert_cmpuint(before.st_ino, ==, after.st_ino);
}

/* A broker that keeps dying is given up, and guests are refused instead of waiting. */
static void
test_given_up(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_auto(EbTestResult) late = {0};
    g_autoptr(GError) error = NULL;
    guint kills = 0;

    broker->restarted = TRUE;
    while (broker->restarted) {
        guint before = broker->n_died;

        eb_test_run_until(has_new_pid, broker->ctl);
        kill_broker(broker);
        g_assert_cmpuint(++kills, <, 20);
        while (broker->n_died == before)
            g_main_context_iteration(NULL, TRUE);
    }
    g_assert_cmpuint(kills, >, 3);
    g_assert_false(g_file_test(broker->socket_path, G_FILE_TEST_EXISTS));
    eb_broker_ctl_update_async(broker->ctl, broker->rules, NULL, eb_test_result_ready, &late);
    g_assert_false(eb_broker_ctl_update_finish(broker->ctl, eb_test_result_wait(&late), &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "broker.stopped", NULL);
}

static void
test_update(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    g_autofree char *line = connect_line(broker);
    g_autofree char *refused = NULL;
    g_autofree char *status = NULL;
    g_autofree char *bad_rule = g_strdup("https://nonsense");
    g_autoptr(GError) error = NULL;
    g_auto(EbTestResult) taken = {0};
    g_auto(EbTestResult) failed = {0};
    char *kept = broker->rules->allow[0];
    int fd;

    broker->rules->allow[0] = (char *)"other.test";
    eb_test_broker_start(broker);
    refused = eb_test_broker_ask(broker, "CONNECT 127.0.0.1:443 HTTP/1.1\r\nConnection: close\r\n\r\n");
    eb_test_assert_refused(refused, 403, "host-not-allowed");
    broker->rules->allow[0] = kept;
    eb_broker_ctl_update_async(broker->ctl, broker->rules, NULL, eb_test_result_ready, &taken);
    g_assert_true(eb_broker_ctl_update_finish(broker->ctl, eb_test_result_wait(&taken), &error));
    g_assert_no_error(error);
    /* Rules that cannot be used change nothing. */
    broker->rules->allow[0] = bad_rule;
    eb_broker_ctl_update_async(broker->ctl, broker->rules, NULL, eb_test_result_ready, &failed);
    g_assert_false(eb_broker_ctl_update_finish(broker->ctl, eb_test_result_wait(&failed), &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "broker.rules-refused", "nonsense");
    broker->rules->allow[0] = kept;
    fd = eb_test_broker_connect(broker);
    eb_test_send(fd, line, strlen(line));
    status = eb_test_receive_until(fd, "\r\n\r\n");
    g_assert_cmpuint(eb_test_status_of(status), ==, 200);
    close(fd);
}

static void
test_start_fails(void)
{
    g_autoptr(EbTestBroker) broker = eb_test_broker_prepare(NULL);
    g_autoptr(GError) error = NULL;
    g_auto(EbTestResult) done = {0};
    char *kept = broker->rules->allow[0];

    broker->rules->allow[0] = (char *)"*";
    eb_broker_ctl_start_async(broker->paths, broker->run_dir, broker->rules, EB_TEST_DEADLINE_MS, NULL,
                              eb_test_result_ready, &done);
    g_assert_null(eb_broker_ctl_start_finish(eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "broker.rules-refused", "\"*\"");
    g_assert_false(g_file_test(broker->socket_path, G_FILE_TEST_EXISTS));
    broker->rules->allow[0] = kept;
}

static void
test_confined(void)
{
    static const char *const CAPABILITIES[] = {"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000",
                                               "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000"};
    g_autoptr(EbTestBroker) broker = eb_test_broker_new();
    g_autofree char *status = eb_test_broker_proc(broker, "status", NULL);
    g_autofree char *limits = eb_test_broker_proc(broker, "limits", NULL);
    g_autofree char *environ = NULL;
    g_autofree char *cmdline = NULL;
    gsize length = 0;

    g_assert_nonnull(strstr(status, "NoNewPrivs:\t1"));
    g_assert_nonnull(strstr(status, "Seccomp:\t2"));
    for (gsize i = 0; i < G_N_ELEMENTS(CAPABILITIES); i++)
        g_assert_nonnull(strstr(status, CAPABILITIES[i]));
    g_assert_nonnull(strstr(limits, "Max core file size        0                    0"));
    g_assert_nonnull(strstr(limits, "Max file size             0                    0"));
    g_assert_null(strstr(limits, "Max open files            unlimited"));
#ifndef __SANITIZE_ADDRESS__
    g_assert_nonnull(strstr(limits, "Max data size             536870912            536870912"));
#endif
    /* Nothing of the service's terminal or process group reaches it. */
    g_assert_cmpint(getsid(eb_broker_ctl_get_pid(broker->ctl)), ==, eb_broker_ctl_get_pid(broker->ctl));
    environ = eb_test_broker_proc(broker, "environ", &length);
    /* Only root may look at a process that is not dumpable. */
    g_assert_cmpint(environ != NULL, ==, geteuid() == 0);
    g_assert_true(environ == NULL || memmem(environ, length, TEST_KEY, strlen(TEST_KEY)) == NULL);
    cmdline = eb_test_broker_proc(broker, "cmdline", &length);
    g_assert_cmpmem(cmdline, length, "errand-box-broker", 18);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/egress/tunnel", test_tunnel);
    g_test_add_func("/broker/egress/tunnel-upload", test_tunnel_upload);
    g_test_add_func("/broker/egress/denied", test_denied);
    g_test_add_func("/broker/egress/one-wording", test_one_wording);
    g_test_add_func("/broker/egress/forward", test_forward);
    g_test_add_func("/broker/life/replaced", test_replaced);
    g_test_add_func("/broker/life/given-up", test_given_up);
    g_test_add_func("/broker/life/update", test_update);
    g_test_add_func("/broker/life/start-fails", test_start_fails);
    g_test_add_func("/broker/life/confined", test_confined);
    return g_test_run();
}
