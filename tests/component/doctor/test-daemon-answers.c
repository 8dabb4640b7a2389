/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/doctor/eb-doctor.h"
#include "doctor-checks.h"
#include "tests/lib/eb-test.h"

/* A container daemon that misbehaves on a real socket: it takes connections and then does as told. */

#define MAX_CLIENTS 64

typedef struct {
    int listener;
    int stop[2];
    const char *answer; /* NULL: none, for ever */
    GThread *thread;
    char *path;
} Server;

/* Answers and keeps the connection open, as a proxy was seen to do. */
static gpointer
serve(gpointer data)
{
    Server *server = data;
    struct pollfd fds[MAX_CLIENTS + 2] = {{server->listener, POLLIN, 0}, {server->stop[0], POLLIN, 0}};
    nfds_t n = 2;

    while (poll(fds, n, -1) > 0 && fds[1].revents == 0) {
        if ((fds[0].revents & POLLIN) != 0 && n < G_N_ELEMENTS(fds)) {
            fds[n].fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
            fds[n].events = POLLIN;
            fds[n++].revents = 0;
        }
        for (nfds_t i = 2; i < n; i++) {
            char request[4096];
            if ((fds[i].revents & POLLIN) == 0)
                continue;
            if (recv(fds[i].fd, request, sizeof request, 0) <= 0)
                fds[i].events = 0;
            else if (server->answer != NULL)
                (void)!send(fds[i].fd, server->answer, strlen(server->answer), MSG_NOSIGNAL);
        }
    }
    for (nfds_t i = 2; i < n; i++)
        close(fds[i].fd);
    return NULL;
}

static void
server_start(Server *server, const char *answer)
{
    g_autofree char *dir = eb_test_temp_dir("daemon");
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    server->path = g_build_filename(dir, "s", NULL);
    server->answer = answer;
    g_strlcpy(address.sun_path, server->path, sizeof address.sun_path);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(server->listener, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(server->listener, MAX_CLIENTS), ==, 0);
    g_assert_cmpint(pipe(server->stop), ==, 0);
    server->thread = g_thread_new("server", serve, server);
}

static void
server_stop(Server *server)
{
    g_assert_cmpint(write(server->stop[1], "", 1), ==, 1);
    g_thread_join(server->thread);
    close(server->listener);
    close(server->stop[0]);
    close(server->stop[1]);
    g_free(server->path);
}

static EbDoctorReport *
run_all(const char *socket)
{
    g_autoptr(GPtrArray) checks = dc_list();
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(EbConfigSection) settings = eb_config_section_new("service");
    g_autoptr(GError) error = NULL;
    EbDoctorReport *report;

    eb_config_section_set(settings, "backend.socket", g_variant_new_string(socket), "test", 1);
    eb_config_section_set(settings, "backend.project", g_variant_new_string("user-1"), "test", 1);
    for (guint i = 0; i < checks->len; i++) {
        EbExtension *extension = g_new0(EbExtension, 1);
        extension->plugin = "doctor-checks";
        extension->name = "check";
        extension->object = checks->pdata[i];
        g_ptr_array_add(list, extension);
    }
    report = eb_doctor_run(list, host, settings, NULL, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(report->rows->len, ==, checks->len);
    return report;
}

static const EbCheckResult *
find(EbDoctorReport *report, const char *id)
{
    for (guint i = 0; i < report->rows->len; i++) {
        const EbDoctorRow *row = report->rows->pdata[i];
        if (strcmp(row->info->id, id) == 0)
            return row->result;
    }
    g_error("no row %s", id);
    return NULL;
}

/* Wedged: one check names it, those that depend on it are skipped, all others report. */
static void
test_wedged(void)
{
    Server server = {0};
    g_autoptr(EbDoctorReport) report = NULL;

    server_start(&server, NULL);
    report = run_all(server.path);
    g_assert_cmpint(find(report, "E-11")->status, ==, EB_CHECK_OK);
    g_assert_cmpint(find(report, "E-13")->status, ==, EB_CHECK_FAIL);
    g_assert_cmpint(find(report, "E-05")->status, ==, EB_CHECK_SKIPPED);
    g_assert_cmpint(find(report, "E-61")->status, ==, EB_CHECK_SKIPPED);
    g_assert_cmpint(find(report, "E-01")->status, ==, EB_CHECK_OK);
    server_stop(&server);
}

/* A whole answer in chunks on a connection that stays open is an answer. */
static void
test_kept_open(void)
{
    Server server = {0};
    g_autoptr(EbDoctorReport) report = NULL;

    server_start(&server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "20;x=1\r\n{\"metadata\":{\"environment\":{\"ser\r\n"
                          "2a\r\nver\":\"lxd\",\"server_version\":\"5.0.2\"}}}    \r\n0\r\n\r\n");
    report = run_all(server.path);
    g_assert_cmpint(find(report, "E-13")->status, ==, EB_CHECK_OK);
    g_assert_cmpint(find(report, "E-14")->status, ==, EB_CHECK_FAIL);
    g_assert_nonnull(strstr(find(report, "E-14")->observed, "lxd"));
    server_stop(&server);
}

/* Rubbish, errors and half answers end in a finding each, never in a crash. */
static void
test_rubbish(void)
{
    static const char *const ANSWERS[] = {
        "no http at all\r\n\r\n",
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"metadata\":[",
    };

    for (guint i = 0; i < G_N_ELEMENTS(ANSWERS); i++) {
        Server server = {0};
        g_autoptr(EbDoctorReport) report = NULL;
        server_start(&server, ANSWERS[i]);
        report = run_all(server.path);
        g_assert_cmpint(find(report, "E-14")->status, ==, EB_CHECK_SKIPPED);
        g_assert_cmpint(find(report, "E-61")->status, ==, EB_CHECK_SKIPPED);
        server_stop(&server);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/daemon-answers/wedged", test_wedged);
    g_test_add_func("/daemon-answers/kept-open", test_kept_open);
    g_test_add_func("/daemon-answers/rubbish", test_rubbish);
    return g_test_run();
}
