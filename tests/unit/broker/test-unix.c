/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/eb-unix.h"
#include "eb-test.h"

static void
test_listen(void)
{
    g_autofree char *directory = eb_test_temp_dir("unix");
    g_autofree char *path = g_build_filename(directory, "s", NULL);
    g_autoptr(GError) error = NULL;
    eb_autofd int first = eb_unix_listen(path, 0600, 16, &error);
    eb_autofd int second = -1;
    eb_autofd int client = -1;
    eb_autofd int peer = -1;
    EbUnixPeer who;
    struct stat info;

    g_assert_no_error(error);
    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    g_assert_cmpint(fcntl(first, F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_cmpint(fcntl(first, F_GETFL) & O_NONBLOCK, !=, 0);
    client = eb_unix_connect(path, &error);
    g_assert_no_error(error);
    peer = accept4(first, NULL, NULL, SOCK_CLOEXEC);
    g_assert_true(eb_unix_get_peer(peer, &who, &error));
    g_assert_cmpint(who.pid, ==, getpid());
    g_assert_cmpuint(who.uid, ==, geteuid());
    /* What a dead run left is replaced; a file of another kind is not. */
    second = eb_unix_listen(path, 0660, 16, &error);
    g_assert_no_error(error);
    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0660);
    g_assert_true(eb_unix_unlink(path, &error));
    g_assert_true(eb_unix_unlink(path, &error));
    eb_test_write_file(path, "precious");
    g_assert_cmpint(eb_unix_listen(path, 0600, 16, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_EXISTS, "unix.not-a-socket", NULL);
    g_clear_error(&error);
    g_assert_false(eb_unix_unlink(path, &error));
    g_assert_true(g_file_test(path, G_FILE_TEST_IS_REGULAR));
}

static void
test_long_path(void)
{
    g_autofree char *directory = eb_test_temp_dir("unix");
    g_autofree char *long_name = g_strnfill(200, 'd');
    g_autofree char *below = g_build_filename(directory, long_name, NULL);
    g_autofree char *path = g_build_filename(below, "model.sock", NULL);
    g_autoptr(GError) error = NULL;
    eb_autofd int listener = -1;
    eb_autofd int client = -1;

    g_assert_cmpint(mkdir(below, 0700), ==, 0);
    listener = eb_unix_listen(path, 0600, 16, &error);
    g_assert_no_error(error);
    client = eb_unix_connect(path, &error);
    g_assert_no_error(error);
    g_assert_cmpint(eb_unix_listen("relative/s", 0600, 1, NULL), ==, -1);
    g_assert_cmpint(eb_unix_connect("/nonexistent/s", &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
}

static void
test_descriptors(void)
{
    g_autoptr(GError) error = NULL;
    char buffer[64];
    int ends[2], fds[EB_UNIX_MAX_FDS], many[EB_UNIX_MAX_FDS];
    guint n_fds = 0;

    g_assert_true(eb_unix_pair(SOCK_SEQPACKET, ends, &error));
    for (guint i = 0; i < EB_UNIX_MAX_FDS; i++)
        many[i] = STDOUT_FILENO;
    g_assert_cmpint(eb_unix_send(ends[0], "hello", 5, many, EB_UNIX_MAX_FDS, &error), ==, 5);
    g_assert_cmpint(eb_unix_recv(ends[1], buffer, sizeof buffer, fds, &n_fds, &error), ==, 5);
    g_assert_cmpuint(n_fds, ==, EB_UNIX_MAX_FDS);
    for (guint i = 0; i < n_fds; i++) {
        g_assert_cmpint(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, !=, 0);
        close(fds[i]);
    }
    /* Descriptors nobody asked for make the message worthless and stay nowhere. */
    g_assert_cmpint(eb_unix_send(ends[0], "hello", 5, many, 1, &error), ==, 5);
    g_assert_cmpint(eb_unix_recv(ends[1], buffer, sizeof buffer, NULL, NULL, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "unix.truncated", NULL);
    g_clear_error(&error);
    g_assert_cmpint(eb_unix_send(ends[0], "too long for it", 15, NULL, 0, &error), ==, 15);
    g_assert_cmpint(eb_unix_recv(ends[1], buffer, 4, NULL, NULL, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "unix.truncated", NULL);
    g_clear_error(&error);
    g_assert_cmpint(eb_unix_recv(ends[1], buffer, sizeof buffer, NULL, NULL, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_BUSY, "unix.would-block", NULL);
    g_clear_error(&error);
    while (eb_unix_send(ends[0], buffer, sizeof buffer, NULL, 0, &error) > 0)
        continue;
    eb_test_assert_error(error, EB_ERROR_BUSY, "unix.would-block", NULL);
    g_clear_error(&error);
    close(ends[1]);
    g_assert_cmpint(eb_unix_send(ends[0], "x", 1, NULL, 0, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "unix.closed", NULL);
    close(ends[0]);
}

/* In a process of its own, which closes everything: a TCP socket that lingers for an hour goes along with a connection. */
static void
send_lingering(const char *path, const struct sockaddr_in *name)
{
    const struct linger hour = {1, 3600};
    static const char filler[65536];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = eb_unix_connect(path, NULL);

    if (connect(fd, (const struct sockaddr *)name, sizeof *name) != 0)
        _exit(1);
    while (send(fd, filler, sizeof filler, MSG_DONTWAIT) > 0)
        continue;
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof hour) != 0 ||
        eb_unix_send(client, "x", 1, &fd, 1, NULL) != 1)
        _exit(2);
    _exit(0);
}

static void
test_close_aside(void)
{
    g_autofree char *directory = eb_test_temp_dir("unix");
    g_autofree char *path = g_build_filename(directory, "s", NULL);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    eb_autofd int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int listener = eb_unix_listen(path, 0600, 16, NULL), status = 0;
    pid_t child;

    g_assert_cmpint(listener, >=, 0);
    g_assert_cmpint(bind(server, (struct sockaddr *)&name, length), ==, 0);
    g_assert_cmpint(listen(server, 1), ==, 0);
    g_assert_cmpint(getsockname(server, (struct sockaddr *)&name, &length), ==, 0);
    child = fork();
    if (child == 0)
        send_lingering(path, &name);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    /* It would take the hour. */
    eb_fd_close_aside(&listener);
    g_assert_cmpint(listener, ==, -1);
    eb_fd_close_aside(&listener);
    g_assert_true(eb_unix_unlink(path, NULL));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/base/unix/listen", test_listen);
    g_test_add_func("/base/unix/long-path", test_long_path);
    g_test_add_func("/base/unix/close-aside", test_close_aside);
    g_test_add_func("/base/unix/descriptors", test_descriptors);
    return g_test_run();
}
