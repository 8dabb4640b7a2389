/* SPDX-License-Identifier: MIT */
#include "tests/component/broker/eb-test-broker.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "eb-test.h"

static EbSecret *
secret_of(const char *label, const char *text)
{
    g_autofree char *copy = g_strdup(text);

    return eb_secret_new_take(label, copy, strlen(copy), NULL);
}

static void
on_audit(EbBrokerCtl *ctl, JsonObject *row, gpointer user_data)
{
    EbTestBroker *self = user_data;

    g_ptr_array_add(self->audit, json_object_ref(row));
}

static void
on_denied(EbBrokerCtl *ctl, const char *host, guint port, const char *code, gpointer user_data)
{
    EbTestBroker *self = user_data;

    self->n_denied++;
    g_free(self->denied);
    self->denied = g_strdup_printf("%s %u %s", host, port, code);
}

static void
on_provider_error(EbBrokerCtl *ctl, const char *provider, guint status, const char *text, gpointer user_data)
{
    EbTestBroker *self = user_data;

    self->n_provider_errors++;
    self->provider_status = status;
    g_free(self->provider_error);
    self->provider_error = g_strdup(text);
}

static void
on_died(EbBrokerCtl *ctl, gboolean restarted, const char *why, gpointer user_data)
{
    EbTestBroker *self = user_data;

    g_test_message("broker died: %s", why);
    self->n_died++;
    self->restarted = restarted;
}

static void
add_provider(EbTestBroker *self, const char *name, const char *scheme, const char *path)
{
    g_autoptr(EbSecret) key = secret_of("key", TEST_KEY);
    g_autoptr(EbSecret) nonce = secret_of("nonce", TEST_NONCE);
    g_autofree char *url = g_strdup_printf("%s://127.0.0.1:%u%s", scheme, eb_test_origin_get_port(self->origin), path);

    eb_broker_rules_add_provider(self->rules, name, name, url, key, nonce);
}

/*
 * The address sanitizer keeps freed memory for a while; how much of it there is says nothing about the broker. Whatever
 * else the run asks of the sanitizer stays.
 */
static void
bound_quarantine(void)
{
    static const char BOUND[] = "quarantine_size_mb=4:thread_local_quarantine_size_kb=64";
    const char *old = g_getenv("ASAN_OPTIONS");
    g_autofree char *options = NULL;

    if (old != NULL && strstr(old, BOUND) != NULL)
        return;
    options = old != NULL && *old != '\0' ? g_strconcat(old, ":", BOUND, NULL) : g_strdup(BOUND);
    g_setenv("ASAN_OPTIONS", options, TRUE);
}

EbTestBroker *
eb_test_broker_prepare(const char *certificate)
{
    EbTestBroker *self = g_new0(EbTestBroker, 1);
    g_autoptr(GError) error = NULL;
    const char *scheme = certificate != NULL ? "https" : "http";
    const char *const allow[] = {"127.0.0.1", "*.allowed.test", NULL};

    bound_quarantine();
    self->run_dir = eb_test_temp_dir("broker");
    self->socket_path = g_build_filename(self->run_dir, "model.sock", NULL);
    self->paths = eb_paths_new(&error);
    g_assert_no_error(error);
    self->audit = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    self->origin = eb_test_origin_new(certificate);
    self->rules = eb_broker_rules_new("test-session");
    self->rules->proxy = TRUE;
    self->rules->allow = g_strdupv((char **)allow);
    self->rules->allow_internal = TRUE;
    self->rules->ports = g_new0(guint16, 2);
    self->rules->ports[0] = eb_test_origin_get_port(self->origin);
    self->rules->ports[1] = 443;
    self->rules->n_ports = 2;
    add_provider(self, "anthropic", scheme, "");
    add_provider(self, "openai", scheme, "/v1");
    add_provider(self, "gemini", scheme, "");
    return self;
}

void
eb_test_broker_start(EbTestBroker *self)
{
    g_autoptr(GError) error = NULL;
    g_auto(EbTestResult) done = {0};

    eb_broker_ctl_start_async(self->paths, self->run_dir, self->rules, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready,
                              &done);
    self->ctl = eb_broker_ctl_start_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_nonnull(self->ctl);
    g_signal_connect(self->ctl, "audit", G_CALLBACK(on_audit), self);
    g_signal_connect(self->ctl, "denied", G_CALLBACK(on_denied), self);
    g_signal_connect(self->ctl, "provider-error", G_CALLBACK(on_provider_error), self);
    g_signal_connect(self->ctl, "died", G_CALLBACK(on_died), self);
}

EbTestBroker *
eb_test_broker_new(void)
{
    EbTestBroker *self = eb_test_broker_prepare(NULL);

    eb_test_broker_start(self);
    return self;
}

void
eb_test_broker_free(EbTestBroker *self)
{
    if (self->ctl != NULL) {
        g_auto(EbTestResult) done = {0};

        g_signal_handlers_disconnect_by_data(self->ctl, self);
        eb_broker_ctl_stop_async(self->ctl, NULL, eb_test_result_ready, &done);
        g_assert_true(eb_broker_ctl_stop_finish(self->ctl, eb_test_result_wait(&done), NULL));
        g_assert_false(g_file_test(self->socket_path, G_FILE_TEST_EXISTS));
        g_object_unref(self->ctl);
    }
    eb_test_origin_free(self->origin);
    eb_broker_rules_free(self->rules);
    g_ptr_array_unref(self->audit);
    g_object_unref(self->paths);
    g_free(self->denied);
    g_free(self->socket_path);
    g_free(self->run_dir);
    g_free(self->provider_error);
    g_free(self);
}

int
eb_test_broker_connect(EbTestBroker *self)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_sec = 60};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    g_strlcpy(address.sun_path, self->socket_path, sizeof address.sun_path);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    return fd;
}

void
eb_test_send(int fd, const char *bytes, gsize length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        /* The broker may have refused already; what it answered is what counts. */
        if (sent < 0)
            return;
        bytes += sent;
        length -= (gsize)sent;
    }
}

static gboolean
receive_some(int fd, GString *text)
{
    char buffer[65536];
    ssize_t got = recv(fd, buffer, sizeof buffer, 0);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        g_error("nothing came for a minute; so far: %s", text->str);
    if (got > 0)
        g_string_append_len(text, buffer, got);
    return got > 0;
}

char *
eb_test_receive_all(int fd, gsize *length)
{
    GString *text = g_string_new(NULL);

    while (receive_some(fd, text))
        continue;
    if (length != NULL)
        *length = text->len;
    return g_string_free(text, FALSE);
}

char *
eb_test_receive_until(int fd, const char *part)
{
    GString *text = g_string_new(NULL);

    while (strstr(text->str, part) == NULL) {
        if (!receive_some(fd, text))
            g_error("ended without \"%s\": %s", part, text->str);
    }
    return g_string_free(text, FALSE);
}

char *
eb_test_broker_ask(EbTestBroker *self, const char *request)
{
    int fd = eb_test_broker_connect(self);
    char *answer;

    eb_test_send(fd, request, strlen(request));
    answer = eb_test_receive_all(fd, NULL);
    close(fd);
    return answer;
}

guint
eb_test_status_of(const char *answer)
{
    if (!g_str_has_prefix(answer, "HTTP/1.1 "))
        return 0;
    return (guint)g_ascii_strtoull(answer + 9, NULL, 10);
}

void
eb_test_assert_refused(const char *answer, guint status, const char *code)
{
    const char *body = strstr(answer, "\r\n\r\n");
    g_autoptr(JsonNode) node = NULL;
    g_autoptr(GError) error = NULL;
    JsonObject *object;

    g_assert_nonnull(body);
    g_assert_cmpuint(eb_test_status_of(answer), ==, status);
    node = eb_json_parse(body + 4, strlen(body + 4), &EB_JSON_LIMITS_SMALL, &error);
    g_assert_no_error(error);
    object = eb_json_node_object(node);
    g_assert_cmpstr(eb_json_get_string(object, "code"), ==, code);
    g_assert_nonnull(eb_json_get_string(object, "reason"));
    g_assert_nonnull(eb_json_get_string(object, "how"));
    g_assert_true(json_object_has_member(object, "host"));
}

typedef struct {
    EbTestBroker *broker;
    guint n;
} AuditWait;

static gboolean
audit_is_there(gpointer user_data)
{
    AuditWait *wait = user_data;

    return wait->broker->audit->len >= wait->n;
}

JsonObject *
eb_test_broker_wait_audit(EbTestBroker *self, guint n)
{
    AuditWait wait = {self, n};

    eb_test_run_until(audit_is_there, &wait);
    return self->audit->pdata[n - 1];
}

char *
eb_test_broker_proc(EbTestBroker *self, const char *name, gsize *length)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", eb_broker_ctl_get_pid(self->ctl), name);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, length, NULL))
        return NULL;
    return text;
}
