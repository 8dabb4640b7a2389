/* SPDX-License-Identifier: MIT */
/*
 * As the service runs: an unprivileged account, through incus-user, in a restricted project; and over TLS with a
 * restricted certificate. The process gives up root for good before the first test.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "incus-test.h"

static EbContainerBackend *user; /* through incus-user */
static EbContainerBackend *tls;
static char *certificates; /* directory, of the account */
static char *port;
static gboolean with_tls; /* argument --tls: the tests over TLS, else those through incus-user */

static EbConfigSection *
section(const char *key, ...)
{
    EbConfigSection *self = eb_config_section_new("plugin.incus");
    va_list args;
    va_start(args, key);
    for (const char *k = key; k != NULL; k = va_arg(args, const char *)) {
        g_autoptr(GVariant) value = g_variant_ref_sink(g_variant_new_string(va_arg(args, const char *)));
        eb_config_section_set(self, k, value, "test.toml", 1);
    }
    va_end(args);
    return self;
}

static EbContainerBackend *
backend_from(EbConfigSection *config, const char *project)
{
    g_autoptr(GError) error = NULL;
    IncusSettings *settings = g_new0(IncusSettings, 1);
    g_autoptr(IncusEndpoint) endpoint = incus_endpoint_from_section(config, &error);
    g_assert_no_error(error);
    g_autoptr(IncusClient) client = incus_client_new(endpoint);
    settings->project = g_strdup(project);
    settings->pool = g_strdup("");
    settings->image = g_strdup("test/guest");
    return EB_CONTAINER_BACKEND(incus_backend_new(client, settings));
}

static char *
in_certificates(const char *name)
{
    return g_build_filename(certificates, name, NULL);
}

static EbContainerBackend *
tls_backend(const char *server_cert)
{
    g_autofree char *cert = in_certificates("client.crt");
    g_autofree char *key = in_certificates("client.key");
    g_autofree char *url = g_strdup_printf("https://127.0.0.1:%s", port);
    g_autoptr(EbConfigSection) config =
        section("url", url, "client_cert", cert, "client_key", key, "server_cert", server_cert, NULL);
    return backend_from(config, incus_test.incusd->project);
}

/* The leak checker's tracer dies of a signal of its own in a process that has loaded gnutls and given up root. The same
 * code is checked for leaks by the run without TLS. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int
__lsan_is_turned_off(void)
{
    return with_tls;
}

/* --- made as root --- */

static gboolean
run(const char *command)
{
    const char *argv[] = {"sh", "-c", command, NULL};
    int status;
    return g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status, NULL) &&
           g_spawn_check_wait_status(status, NULL);
}

static void
prepare_tls(void)
{
    certificates = g_strdup_printf("%s/%d-tls", incus_test.incusd->sessions, (int)getpid());
    g_assert_cmpint(g_mkdir_with_parents(certificates, 0700), ==, 0);
    g_autofree char *cert = in_certificates("client.crt");
    g_autofree char *make = g_strdup_printf(
        "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=errand "
        "-keyout client.key -out client.crt && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
        "-nodes -days 2 -subj /CN=other -keyout other.key -out other.crt && cp %s/d/server.crt . && chown -R %u .",
        certificates, incus_test.incusd->dir, (guint)incus_test.incusd->uid);
    if (!run(make))
        return;
    port = g_strdup_printf("%d", g_test_rand_int_range(20000, 30000));
    g_autofree char *address = g_strdup_printf("127.0.0.1:%s", port);
    g_autofree char *set = eb_test_incusd_cli(incus_test.incusd, "config", "set", "core.https_address", address, NULL);
    g_autofree char *trusted =
        eb_test_incusd_cli(incus_test.incusd, "config", "trust", "add-certificate", cert, "--name", port,
                           "--restricted", "--projects", incus_test.incusd->project, NULL);
}

/* --- tests --- */

static void
whole_life(EbContainerBackend *backend)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("account");
    g_autofree char *work = g_strdup_printf("%s/%d-%s", incus_test.incusd->sessions, (int)getpid(), spec->name);
    g_assert_cmpint(mkdir(work, 0700), ==, 0);
    spec->agent_uid = spec->agent_gid = incus_test.incusd->uid;
    eb_container_spec_add_directory(spec, "work", work, "/workspace", FALSE);
    incus_test_launch(backend, spec);
    g_auto(IncusRun) done = incus_test_shell(backend, spec->name, 1000, "from stdin\n",
                                             "cat > /workspace/x; echo out; echo err >&2; exit 3");
    g_assert_no_error(done.error);
    g_assert_cmpint(done.code, ==, 3);
    g_assert_cmpstr(done.out->str, ==, "out\n");
    g_assert_cmpstr(done.err->str, ==, "err\n");
    g_autofree char *path = g_build_filename(work, "x", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "from stdin\n");
    g_auto(IncusRun) flood = incus_test_shell(backend, spec->name, 1000, NULL, "attack flood 20");
    g_assert_cmpuint(flood.out->len, ==, 20 << 20);
    g_assert_cmpint(flood.code, ==, 0);
    g_assert_true(incus_test_exists(backend, spec->name));
    incus_test_destroy(backend, spec->name);
    g_assert_false(incus_test_exists(backend, spec->name));
    eb_test_remove_tree(work);
}

static void
test_user_socket(void)
{
    whole_life(user);
}

static gboolean
marker_gone(gpointer user_data)
{
    g_auto(IncusRun) done = incus_test_shell(user, user_data, 0, NULL, "grep -qs 5544[3] /proc/[0-9]*/cmdline");
    return done.code == 1;
}

/* incus-user forwards less than a direct connection: dropping an exec must end its process all the same. */
static void
test_user_drop_kills(void)
{
    static const char *const argv[] = {"sleep", "55443", NULL};
    g_autoptr(EbContainerSpec) spec = incus_test_spec("drop");
    incus_test_launch(user, spec);
    EbExec *exec = incus_test_exec(user, spec->name, 1000, argv);
    g_auto(IncusRun) there = incus_test_shell(user, spec->name, 0, NULL, "grep -qs 5544[3] /proc/[0-9]*/cmdline");
    g_assert_cmpint(there.code, ==, 0);
    g_object_unref(exec);
    eb_test_run_until(marker_gone, spec->name);
    incus_test_destroy(user, spec->name);
}

static void
test_user_large_output(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("held");
    incus_test_launch(user, spec);
    g_auto(IncusRun) left = incus_test_shell(user, spec->name, 1000, NULL, "sleep 30 & echo out; exit 4");
    g_assert_cmpint(left.code, ==, 4);
    g_assert_cmpstr(left.out->str, ==, "out\n");
    incus_test_destroy(user, spec->name);
}

static void
test_admin_socket_denied(void)
{
    g_autoptr(EbContainerBackend) backend = incus_test_backend(incus_test.incusd->socket, incus_test.incusd->project);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_list_async(backend, NULL, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_assert_null(eb_container_backend_list_finish(backend, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "incus.no-permission", "incus-admin");
}

static void
test_other_project_denied(void)
{
    g_autoptr(EbContainerBackend) backend = incus_test_backend(incus_test.incusd->user_socket, "default");
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_list_async(backend, NULL, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_assert_null(eb_container_backend_list_finish(backend, eb_test_result_wait(&done), &error));
    g_test_message("%s", error->message);
    g_assert_cmpint(error->domain, ==, EB_ERROR);
}

static void
test_probe_access(void)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_probe_async(user, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_autoptr(EbProbeReport) report = eb_container_backend_probe_finish(user, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(report->access, ==, "incus-user socket");
}

static gboolean
have_tls(void)
{
    if (port != NULL)
        return TRUE;
    g_test_skip("no openssl to make a certificate with");
    return FALSE;
}

static void
test_tls(void)
{
    if (have_tls())
        whole_life(tls);
}

/* The pin is the certificate itself: another one is refused before anything is asked. */
static void
test_tls_wrong_pin(void)
{
    if (!have_tls())
        return;
    g_autofree char *other = in_certificates("other.crt");
    g_autoptr(EbContainerBackend) backend = tls_backend(other);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_list_async(backend, NULL, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_assert_null(eb_container_backend_list_finish(backend, eb_test_result_wait(&done), &error));
    g_test_message("%s", error->message);
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "incus.tls", NULL);
}

static void
test_tls_untrusted_client(void)
{
    if (!have_tls())
        return;
    g_autofree char *cert = in_certificates("other.crt");
    g_autofree char *key = in_certificates("other.key");
    g_autofree char *server = in_certificates("server.crt");
    g_autofree char *url = g_strdup_printf("https://127.0.0.1:%s", port);
    g_autoptr(EbConfigSection) config =
        section("url", url, "client_cert", cert, "client_key", key, "server_cert", server, NULL);
    g_autoptr(EbContainerBackend) backend = backend_from(config, incus_test.incusd->project);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_list_async(backend, NULL, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_assert_null(eb_container_backend_list_finish(backend, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_UNAUTHENTICATED, "incus.untrusted", NULL);
}

int
main(int argc, char **argv)
{
    with_tls = argc > 1 && g_str_equal(argv[1], "--tls");
    if (with_tls)
        argc = 1;
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    if (incus_test.incusd->user_socket == NULL) {
        g_print("1..0 # SKIP incus-user is not installed\n");
        return 77;
    }
    if (with_tls)
        prepare_tls();
    g_clear_object(&incus_test.backend);
    eb_test_drain();
    eb_test_incusd_become_account(incus_test.incusd);
    g_assert_cmpuint(geteuid(), ==, incus_test.incusd->uid);
    user = incus_test_backend(incus_test.incusd->user_socket, "");
    if (port != NULL) {
        g_autofree char *server = in_certificates("server.crt");
        tls = tls_backend(server);
    }
    if (with_tls) {
        g_test_add_func("/incus/tls/life", test_tls);
        g_test_add_func("/incus/tls/wrong-pin", test_tls_wrong_pin);
        g_test_add_func("/incus/tls/untrusted-client", test_tls_untrusted_client);
    } else {
        g_test_add_func("/incus/account/user-socket", test_user_socket);
        g_test_add_func("/incus/account/user-drop-kills", test_user_drop_kills);
        g_test_add_func("/incus/account/user-held-output", test_user_large_output);
        g_test_add_func("/incus/account/admin-socket-denied", test_admin_socket_denied);
        g_test_add_func("/incus/account/other-project-denied", test_other_project_denied);
        g_test_add_func("/incus/account/probe-access", test_probe_access);
    }
    int code = g_test_run();
    g_clear_object(&user);
    g_clear_object(&tls);
    eb_test_drain();
    if (certificates != NULL)
        eb_test_remove_tree(certificates);
    g_free(certificates);
    g_free(port);
    g_clear_pointer(&incus_test.incusd, eb_test_incusd_release);
    return code;
}
