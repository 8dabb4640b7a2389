/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void
put(const char *dir, const char *path, const char *content)
{
    g_autofree char *file = g_build_filename(dir, path, NULL);

    eb_test_write_file(file, content);
}

/* --- fixture --- */

static void
test_fixture_files(void)
{
    g_autofree char *dir = eb_test_temp_dir("host");
    g_autofree char *link = g_build_filename(dir, "etc/link", NULL);
    g_autofree char *escape = g_build_filename(dir, "etc/escape", NULL);
    g_autoptr(EbHost) host = eb_host_new_fixture(dir);
    g_autoptr(GError) error = NULL;
    g_autofree char *content = NULL;
    g_autofree char *linked = NULL;
    g_auto(GStrv) names = NULL;
    g_auto(GStrv) top = NULL;
    gsize length = 0;
    EbHostStat info;

    put(dir, "etc/subuid", "errand:1:2\n");
    put(dir, ".eb/uname", "6.1.0-28-amd64\n");
    g_assert_cmpint(symlink("/etc/subuid", link), ==, 0);
    g_assert_cmpint(symlink("/../../../../etc/passwd", escape), ==, 0);
    g_assert_true(eb_host_is_fixture(host));
    content = eb_host_read_file(host, "/etc/subuid", &length, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(content, ==, "errand:1:2\n");
    g_assert_cmpuint(length, ==, 11);
    linked = eb_host_read_file(host, "/etc/link", NULL, &error);
    g_assert_cmpstr(linked, ==, content); /* the tree's file, not the machine's */
    g_assert_null(eb_host_read_file(host, "/etc/escape", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, "/etc/escape");
    g_clear_error(&error);
    g_assert_null(eb_host_read_file(host, "/../../../../etc/passwd", NULL, NULL));
    g_assert_null(eb_host_read_file(host, "relative", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, NULL, NULL);
    g_clear_error(&error);
    g_assert_null(eb_host_read_file(host, "/etc", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "host.not-regular", "/etc");
    names = eb_host_list_dir(host, "/etc", NULL);
    g_assert_cmpuint(g_strv_length(names), ==, 3);
    g_assert_cmpstr(names[0], ==, "escape");
    top = eb_host_list_dir(host, "/", NULL);
    g_assert_cmpuint(g_strv_length(top), ==, 1); /* the answers are not part of the host */
    g_assert_true(eb_host_stat(host, "/etc/link", &info, NULL));
    g_assert_true(S_ISLNK(info.mode));
    g_assert_true(eb_host_exists(host, "/etc/subuid"));
    g_assert_false(eb_host_exists(host, "/etc/subgid"));
}

static void
test_fixture_bounds(void)
{
    g_autofree char *dir = eb_test_temp_dir("host");
    g_autofree char *large = g_strnfill(EB_HOST_MAX_READ + 1, 'x');
    g_autofree char *fifo = g_build_filename(dir, "fifo", NULL);
    g_autoptr(EbHost) host = eb_host_new_fixture(dir);
    g_autoptr(GError) error = NULL;
    g_autofree char *content = NULL;
    gsize length = 0;

    put(dir, "large", large);
    g_assert_null(eb_host_read_file(host, "/large", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "host.too-long", "/large");
    g_clear_error(&error);
    large[EB_HOST_MAX_READ] = '\0';
    put(dir, "fits", large);
    content = eb_host_read_file(host, "/fits", &length, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(length, ==, EB_HOST_MAX_READ);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_null(eb_host_read_file(host, "/fifo", NULL, &error)); /* must not wait for a writer */
    eb_test_assert_error(error, EB_ERROR_INVALID, "host.not-regular", NULL);
}

static void
test_fixture_answers(void)
{
    g_autofree char *dir = eb_test_temp_dir("host");
    g_autoptr(EbHost) host = eb_host_new_fixture(dir);
    const char *const plain[] = {"incus", "version", NULL};
    const char *const special[] = {"/usr/bin/incus", "storage", "show", "/pool/x", NULL};
    const char *const missing[] = {"zfs", NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    g_autofree char *release = NULL;
    EbHostStat info;
    EbHostSpace space;
    int code = -1;

    put(dir, ".eb/run/incus.out", "6.0.4\n");
    put(dir, ".eb/run/incus storage show -pool-x.out", "none\n");
    put(dir, ".eb/run/incus storage show -pool-x.rc", "3\n");
    put(dir, ".eb/mode/var-lib-incus-unix.socket", "0140660 0 115\n");
    put(dir, ".eb/mode/etc-shadow", "0640 0 42\n");
    put(dir, ".eb/statfs/var-lib-incus", "1000 250 9123683e\n");
    put(dir, ".eb/uname", "6.1.0-28-amd64\n");
    put(dir, "etc/shadow", "12345");
    first = eb_host_run(host, plain, 100, &code, &error);
    g_assert_cmpstr(first, ==, "6.0.4\n");
    g_assert_cmpint(code, ==, 0);
    second = eb_host_run(host, special, 100, &code, &error);
    g_assert_cmpstr(second, ==, "none\n");
    g_assert_cmpint(code, ==, 3);
    g_assert_null(eb_host_run(host, missing, 100, &code, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "host.no-program", "zfs");
    g_assert_true(eb_host_stat(host, "/var/lib/incus/unix.socket", &info, NULL));
    g_assert_cmpuint(info.mode, ==, S_IFSOCK | 0660);
    g_assert_cmpuint(info.gid, ==, 115);
    g_assert_true(eb_host_stat(host, "/etc/shadow", &info, NULL));
    g_assert_cmpuint(info.mode, ==, S_IFREG | 0640);
    g_assert_cmpuint(info.size, ==, 5);
    g_assert_true(eb_host_space(host, "/var/lib/incus", &space, NULL));
    g_assert_cmpuint(space.free_bytes, ==, 250);
    g_assert_cmpuint(space.type, ==, 0x9123683e);
    g_assert_false(eb_host_space(host, "/", &space, NULL));
    release = eb_host_uname_release(host);
    g_assert_cmpstr(release, ==, "6.1.0-28-amd64");
}

static void
test_fixture_sockets(void)
{
    static const struct {
        const char *answer;
        EbErrorCode code;
    } table[] = {{"refused\n", EB_ERROR_UNAVAILABLE}, {"denied\n", EB_ERROR_DENIED}, {"timeout\n", EB_ERROR_TIMEOUT}};
    g_autofree char *dir = eb_test_temp_dir("host");
    g_autoptr(EbHost) host = eb_host_new_fixture(dir);
    g_autoptr(GError) error = NULL;
    g_autofree char *body = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GError) local = NULL;

        put(dir, ".eb/connect/run-x.sock", table[i].answer);
        g_assert_false(eb_host_connect_unix(host, "/run/x.sock", 100, &local));
        eb_test_assert_error(local, table[i].code, NULL, "/run/x.sock");
        g_clear_error(&local);
        g_assert_null(eb_host_unix_http_get(host, "/run/x.sock", "/1.0", 100, &local));
        eb_test_assert_error(local, table[i].code, NULL, NULL);
    }
    g_assert_false(eb_host_connect_unix(host, "/run/y.sock", 100, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
    g_clear_error(&error);
    put(dir, ".eb/connect/run-x.sock", "ok\n");
    put(dir, ".eb/http/run-x.sock/1.0-profiles?recursion=1", "{\"a\":1}");
    put(dir, ".eb/http/run-x.sock/1.0-secret.status", "403");
    put(dir, ".eb/http/run-z.sock/1.0", "z");
    g_assert_true(eb_host_connect_unix(host, "/run/x.sock", 100, &error));
    body = eb_host_unix_http_get(host, "/run/x.sock", "/1.0/profiles?recursion=1", 100, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(body, ==, "{\"a\":1}");
    g_assert_null(eb_host_unix_http_get(host, "/run/x.sock", "/1.0/secret", 100, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "host.http-status", "403");
    g_clear_error(&error);
    g_assert_null(eb_host_unix_http_get(host, "/run/x.sock", "/none", 100, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "host.http-status", NULL);
    g_clear_error(&error);
    g_free(body);
    body = eb_host_unix_http_get(host, "/run/z.sock", "/1.0", 100, &error);
    g_assert_cmpstr(body, ==, "z");
    g_assert_null(eb_host_unix_http_get(host, "/run/x.sock", "1.0\r\nX: y", 100, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "host.request", NULL);
}

static void
test_fixture_gone(void)
{
    g_autoptr(EbHost) host = eb_host_new_fixture("/nonexistent/tree");
    g_autoptr(GError) error = NULL;

    g_assert_null(eb_host_read_file(host, "/etc/passwd", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
}

/* --- the machine itself --- */

static void
test_real_files(void)
{
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(GError) error = NULL;
    g_autofree char *passwd = eb_host_read_file(host, "/etc/passwd", NULL, &error);
    g_autofree char *status = eb_host_read_file(host, "/proc/self/status", NULL, &error);
    g_autofree char *release = eb_host_uname_release(host);
    EbHostSpace space;

    g_assert_no_error(error);
    g_assert_nonnull(strstr(passwd, "root:"));
    g_assert_nonnull(strstr(status, "Pid:"));
    g_assert_cmpstr(release, !=, "unknown");
    g_assert_true(eb_host_space(host, "/", &space, &error));
    g_assert_cmpuint(space.total_bytes, >=, space.free_bytes);
    g_assert_null(eb_host_read_file(host, "/dev/zero", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "host.not-regular", NULL);
    g_clear_error(&error);
    g_assert_null(eb_host_list_dir(host, "/nonexistent", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
}

static void
test_real_run(void)
{
    g_autoptr(EbHost) host = eb_host_new_real();
    const char *const echo[] = {"printf", "%s-%s", "a b", "$HOME;x", NULL};
    const char *const fails[] = {"false", NULL};
    const char *const none[] = {"no-such-program-here", NULL};
    const char *const relative[] = {"../bin/true", NULL};
    const char *const environment[] = {"env", NULL};
    const char *const dies[] = {"sh", "-c", "kill -9 $$", NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *printed = NULL;
    g_autofree char *nothing = NULL;
    g_autofree char *clean = NULL;
    g_autofree char *killed = NULL;
    int code = -1;

    g_setenv("ERRAND_CANARY", "in-the-environment", TRUE);
    printed = eb_host_run(host, echo, 5000, &code, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(printed, ==, "a b-$HOME;x"); /* no shell */
    nothing = eb_host_run(host, fails, 5000, &code, &error);
    g_assert_cmpint(code, ==, 1);
    g_assert_cmpstr(nothing, ==, "");
    clean = eb_host_run(host, environment, 5000, &code, &error);
    g_assert_null(strstr(clean, "CANARY"));
    killed = eb_host_run(host, dies, 5000, &code, &error);
    g_assert_cmpint(code, ==, 128 + 9);
    g_assert_null(eb_host_run(host, none, 5000, &code, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "host.no-program", NULL);
    g_assert_cmpint(code, ==, -1);
    g_clear_error(&error);
    g_assert_null(eb_host_run(host, relative, 5000, &code, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "host.no-program", NULL);
    g_unsetenv("ERRAND_CANARY");
}

static void
test_real_run_bounds(void)
{
    g_autoptr(EbHost) host = eb_host_new_real();
    const char *const sleeps[] = {"sleep", "1000", NULL};
    const char *const floods[] = {"cat", "/dev/zero", NULL};
    const char *const lingers[] = {"sh", "-c", "exec >&-; exec sleep 1000", NULL};
    g_autoptr(GError) error = NULL;
    int code = -1;

    g_assert_null(eb_host_run(host, sleeps, 50, &code, &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, NULL, "sleep");
    g_clear_error(&error);
    g_assert_null(eb_host_run(host, floods, 20000, &code, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "host.too-long", "cat");
    g_clear_error(&error);
    g_assert_null(eb_host_run(host, lingers, 200, &code, &error)); /* output ended, the program did not */
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, NULL, "sh");
}

/* A unix socket that answers every connection with the same bytes. */
typedef struct {
    char *path;
    int listener;
    const char *answer; /* NULL: never answers */
    GThread *thread;
} Service;

static gpointer
serve(gpointer data)
{
    Service *service = data;

    for (;;) {
        char request[512];
        int fd = accept(service->listener, NULL, NULL);

        if (fd < 0)
            return NULL;
        if (recv(fd, request, sizeof(request), 0) > 0 && service->answer != NULL)
            g_assert_cmpint(send(fd, service->answer, strlen(service->answer), MSG_NOSIGNAL), >, 0);
        if (service->answer == NULL)
            recv(fd, request, sizeof(request), 0); /* until the client gives up */
        close(fd);
    }
}

static void
service_start(Service *service, const char *answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *dir = eb_test_temp_dir("sock");

    service->path = g_build_filename(dir, "s", NULL);
    service->answer = answer;
    g_strlcpy(address.sun_path, service->path, sizeof(address.sun_path));
    service->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(service->listener, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(service->listener, 4), ==, 0);
    service->thread = g_thread_new("serve", serve, service);
}

static void
service_stop(Service *service)
{
    shutdown(service->listener, SHUT_RDWR);
    g_thread_join(service->thread);
    close(service->listener);
    g_free(service->path);
}

static void
test_real_http(void)
{
    static const struct {
        const char *answer;
        const char *body;
        EbErrorCode code;
    } table[] = {
        {"HTTP/1.0 200 OK\r\nX: y\r\n\r\n{\"a\":1}", "{\"a\":1}", 0},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", 0},
        {"HTTP/1.0 404 Not Found\r\n\r\nno", NULL, EB_ERROR_NOT_FOUND},
        {"HTTP/1.0 403 Forbidden\r\n\r\nno", NULL, EB_ERROR_DENIED},
        {"HTTP/1.0 500 Oops\r\n\r\nno", NULL, EB_ERROR_FAILED},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "a", 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\na\r\n", NULL, EB_ERROR_PROTOCOL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", "a", 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", NULL, EB_ERROR_PROTOCOL},
        {"SSH-2.0-x\r\n\r\n", NULL, EB_ERROR_PROTOCOL},
        {"HTTP/1.0 200 OK\r\n", NULL, EB_ERROR_PROTOCOL},
    };
    g_autoptr(EbHost) host = eb_host_new_real();

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *body = NULL;
        Service service = {0};

        service_start(&service, table[i].answer);
        g_assert_true(eb_host_connect_unix(host, service.path, 5000, &error));
        body = eb_host_unix_http_get(host, service.path, "/1.0", 5000, &error);
        g_assert_cmpstr(body, ==, table[i].body);
        if (table[i].body == NULL)
            eb_test_assert_error(error, table[i].code, NULL, service.path);
        service_stop(&service);
    }
}

static void
test_real_socket_errors(void)
{
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    g_autofree char *too_long = g_strnfill(200, 'x');
    Service service = {0};

    too_long[0] = '/';
    service_start(&service, NULL);
    g_assert_null(eb_host_unix_http_get(host, service.path, "/1.0", 50, &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, NULL, NULL);
    g_clear_error(&error);
    path = g_strdup(service.path);
    service_stop(&service);
    g_assert_false(eb_host_connect_unix(host, path, 1000, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, NULL, path);
    g_clear_error(&error);
    g_assert_false(eb_host_connect_unix(host, "/nonexistent/s", 1000, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
    g_clear_error(&error);
    g_assert_false(eb_host_connect_unix(host, too_long, 1000, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, NULL, NULL);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/host/fixture-files", test_fixture_files);
    g_test_add_func("/sdk/host/fixture-bounds", test_fixture_bounds);
    g_test_add_func("/sdk/host/fixture-answers", test_fixture_answers);
    g_test_add_func("/sdk/host/fixture-sockets", test_fixture_sockets);
    g_test_add_func("/sdk/host/fixture-gone", test_fixture_gone);
    g_test_add_func("/sdk/host/real-files", test_real_files);
    g_test_add_func("/sdk/host/real-run", test_real_run);
    g_test_add_func("/sdk/host/real-run-bounds", test_real_run_bounds);
    g_test_add_func("/sdk/host/real-http", test_real_http);
    g_test_add_func("/sdk/host/real-socket-errors", test_real_socket_errors);
    return g_test_run();
}
