/* SPDX-License-Identifier: MIT */
#include "eb-host-private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eb-error.h"

/* Head of an HTTP answer: status line and fields. */
#define HTTP_HEAD_MAX (16 * 1024)

static gint64
deadline_from_now(guint deadline_ms)
{
    return g_get_monotonic_time() + (gint64)deadline_ms * 1000;
}

/* Milliseconds left for poll(2), rounded up; 0 when the deadline passed. */
static int
poll_time(gint64 deadline)
{
    gint64 left = deadline - g_get_monotonic_time();

    return left > 0 ? (int)MIN((left + 999) / 1000, G_MAXINT) : 0;
}

/* Waits for @events; FALSE with EB_ERROR_TIMEOUT or another error. */
static gboolean
wait_for(int fd, short events, gint64 deadline, const char *what, GError **error)
{
    struct pollfd item = {.fd = fd, .events = events};

    for (;;) {
        int left = poll_time(deadline);
        int n = left > 0 ? poll(&item, 1, left) : 0;

        if (n > 0)
            return TRUE;
        if (n < 0 && errno == EINTR)
            continue;
        eb_host_set_errno_error(error, n == 0 ? ETIMEDOUT : errno, "wait for", what);
        return FALSE;
    }
}

/* --- programs --- */

/* The service's PATH is not asked: what a check runs must not depend on who runs the check. */
static char *
find_program(const char *name)
{
    static const char *const dirs[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};

    if (name[0] == '/')
        return access(name, X_OK) == 0 ? g_strdup(name) : NULL;
    if (strchr(name, '/') != NULL)
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *path = g_build_filename(dirs[i], name, NULL);

        if (access(path, X_OK) == 0)
            return g_steal_pointer(&path);
    }
    return NULL;
}

/* Collects the output until end of file. FALSE on the deadline and when there is too much. */
static gboolean
collect_output(int fd, gint64 deadline, const char *program, GByteArray *output, GError **error)
{
    guint8 block[16 * 1024];

    for (;;) {
        ssize_t n;

        if (!wait_for(fd, POLLIN, deadline, program, error))
            return FALSE;
        n = read(fd, block, sizeof(block));
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0) {
            eb_host_set_errno_error(error, errno, "read from", program);
            return FALSE;
        }
        if (n == 0)
            return TRUE;
        if (output->len + (gsize)n > EB_HOST_MAX_READ) {
            eb_set_error(error, EB_ERROR_QUOTA, "host.too-long", "%s prints more than 1 MiB", program);
            return FALSE;
        }
        g_byte_array_append(output, block, (guint)n);
    }
}

/* Waits for the end of @pid up to @deadline, kills it beyond; always reaps it. Returns the status of waitpid(2). */
static int
reap(GPid pid, int pid_fd, gint64 deadline, gboolean kill_now, gboolean *killed)
{
    int status = 0;

    *killed = kill_now || !wait_for(pid_fd, POLLIN, deadline, "exit", NULL);
    if (*killed)
        syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* Runs the spawned child to its end. */
static char *
finish_run(GPid pid, int out_fd, const char *program, gint64 deadline, int *exit_code, GError **error)
{
    g_autoptr(GByteArray) output = g_byte_array_new();
    g_autoptr(GError) local = NULL;
    gboolean killed = FALSE;
    int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int status;

    if (pid_fd < 0) {
        /* It is our own child and not reaped yet, so the number is still its own. */
        eb_host_set_errno_error(error, errno, "watch", program);
        kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        return NULL;
    }
    fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
    collect_output(out_fd, deadline, program, output, &local);
    status = reap(pid, pid_fd, deadline, local != NULL, &killed);
    close(pid_fd);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    if (killed) {
        eb_host_set_errno_error(error, ETIMEDOUT, "wait for", program);
        return NULL;
    }
    *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    g_byte_array_append(output, (const guint8 *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&output), FALSE);
}

char *
eb_host_real_run(const char *const *argv, guint deadline_ms, int *exit_code, GError **error)
{
    static const char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/", NULL};
    g_autofree char *program = find_program(argv[0]);
    g_auto(GStrv) arguments = NULL;
    g_autoptr(GError) local = NULL;
    gint64 deadline = deadline_from_now(deadline_ms);
    char *output;
    GPid pid = 0;
    int out_fd = -1;

    if (program == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "host.no-program", "cannot run %s: not installed", argv[0]);
        return NULL;
    }
    arguments = g_strdupv((char **)argv);
    g_free(arguments[0]);
    arguments[0] = g_strdup(program);
    if (!g_spawn_async_with_pipes("/", arguments, (char **)environment,
                                  G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDERR_TO_DEV_NULL | G_SPAWN_CLOEXEC_PIPES, NULL,
                                  NULL, &pid, NULL, &out_fd, NULL, &local)) {
        eb_set_error(error, EB_ERROR_FAILED, "host.run", "cannot run %s: %s", argv[0], local->message);
        return NULL;
    }
    output = finish_run(pid, out_fd, argv[0], deadline, exit_code, error);
    close(out_fd);
    return output;
}

/* --- unix sockets --- */

/* A connected, non-blocking socket, or -1 with @error. */
static int
connect_unix(const char *path, gint64 deadline, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof(address.sun_path)) {
        eb_host_set_errno_error(error, ENAMETOOLONG, "connect to", path);
        return -1;
    }
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        eb_host_set_errno_error(error, errno, "connect to", path);
        return -1;
    }
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int saved_errno = errno;

        if (saved_errno == EINTR)
            continue;
        if (saved_errno == EAGAIN && poll_time(deadline) > 0) {
            /* The backlog is full and no event tells when it no longer is. */
            g_usleep(5000);
            continue;
        }
        eb_host_set_errno_error(error, saved_errno == EAGAIN ? ETIMEDOUT : saved_errno, "connect to", path);
        close(fd);
        return -1;
    }
    return fd;
}

gboolean
eb_host_real_connect_unix(const char *path, guint deadline_ms, GError **error)
{
    int fd = connect_unix(path, deadline_from_now(deadline_ms), error);

    if (fd < 0)
        return FALSE;
    close(fd);
    return TRUE;
}

static gboolean
send_all(int fd, const char *bytes, gsize length, gint64 deadline, const char *what, GError **error)
{
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);

        if (n > 0) {
            bytes += n;
            length -= (gsize)n;
        } else if (n < 0 && errno == EAGAIN) {
            if (!wait_for(fd, POLLOUT, deadline, what, error))
                return FALSE;
        } else if (n < 0 && errno != EINTR) {
            eb_host_set_errno_error(error, errno, "send to", what);
            return FALSE;
        }
    }
    return TRUE;
}

/* One more piece of the answer; FALSE with *@ended at the end of the connection, or with @error. */
static gboolean
receive(int fd, gint64 deadline, const char *what, GByteArray *answer, gboolean *ended, GError **error)
{
    guint8 block[16 * 1024];

    for (;;) {
        ssize_t n = recv(fd, block, sizeof(block), 0);

        if (n > 0) {
            g_byte_array_append(answer, block, (guint)n);
            return TRUE;
        }
        if (n == 0) {
            *ended = TRUE;
            return FALSE;
        }
        if (errno == EAGAIN && !wait_for(fd, POLLIN, deadline, what, error))
            return FALSE;
        if (errno != EAGAIN && errno != EINTR) {
            eb_host_set_errno_error(error, errno, "read from", what);
            return FALSE;
        }
    }
}

/* Until the answer is whole by its own framing: some servers keep the connection open afterwards. */
static char *
receive_answer(int fd, gint64 deadline, const char *what, const char *request, GError **error)
{
    g_autoptr(GByteArray) answer = g_byte_array_new();
    GString *body = g_string_new(NULL);
    EbHostHttp state = EB_HOST_HTTP_MORE;
    gboolean ended = FALSE, ok = TRUE;
    int status = 0;

    while (ok && state == EB_HOST_HTTP_MORE) {
        ok = receive(fd, deadline, what, answer, &ended, error) || ended;
        if (ok && answer->len > EB_HOST_MAX_READ + HTTP_HEAD_MAX) {
            eb_set_error(error, EB_ERROR_QUOTA, "host.too-long", "%s answers with more than 1 MiB", what);
            ok = FALSE;
        }
        if (ok)
            state = eb_host_http_parse((const char *)answer->data, answer->len, ended, &status, body);
    }
    if (ok && state == EB_HOST_HTTP_BROKEN) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "host.http", "%s does not answer in HTTP", what);
        ok = FALSE;
    } else if (ok && status >= 400) {
        eb_set_error(error,
                     status == 404   ? EB_ERROR_NOT_FOUND
                     : status == 403 ? EB_ERROR_DENIED
                                     : EB_ERROR_FAILED,
                     "host.http-status", "%s answered HTTP %d for %s", what, status, request);
        ok = FALSE;
    }
    return g_string_free(body, !ok);
}

char *
eb_host_real_http_get(const char *socket_path, const char *request, guint deadline_ms, GError **error)
{
    g_autofree char *head =
        g_strdup_printf("GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nConnection: close\r\n\r\n", request);
    gint64 deadline = deadline_from_now(deadline_ms);
    int fd = connect_unix(socket_path, deadline, error);
    char *body = NULL;

    if (fd < 0)
        return NULL;
    if (send_all(fd, head, strlen(head), deadline, socket_path, error))
        body = receive_answer(fd, deadline, socket_path, request, error);
    close(fd);
    return body;
}
