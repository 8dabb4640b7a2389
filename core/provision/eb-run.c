/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What apt says of five hundred packages. */
#define MAX_OUTPUT (512 * 1024)

/* An operator's PATH may lead through directories that others write. /command is where container images keep s6. */
static const char *const DIRECTORIES[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin",
                                          "/sbin",           "/bin",           "/command",  NULL};
static const char *const ENVIRONMENT[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                          "LC_ALL=C", NULL};

char *
eb_run_find(const char *name)
{
    if (name[0] == '/')
        return access(name, X_OK) == 0 ? g_strdup(name) : NULL;
    for (guint i = 0; DIRECTORIES[i] != NULL; i++) {
        g_autofree char *path = g_build_filename(DIRECTORIES[i], name, NULL);
        if (access(path, X_OK) == 0)
            return g_steal_pointer(&path);
    }
    return NULL;
}

/* Reads until end of file or @until; FALSE when the time is over. */
static gboolean
collect(int fd, gint64 until, GString *output)
{
    char chunk[4096];

    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        gint64 left = (until - g_get_monotonic_time()) / 1000;
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        gssize n;

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return FALSE;
        n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return TRUE;
        if (output->len < MAX_OUTPUT)
            g_string_append_len(output, chunk, MIN((gsize)n, MAX_OUTPUT - output->len));
    }
}

/* Waits for our own child's end; FALSE when the time is over. */
static gboolean
reap(pid_t pid, int pidfd, gint64 until, int *status)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    gint64 left = (until - g_get_monotonic_time()) / 1000;

    while (poll(&wait, 1, left > 0 ? (int)left : 0) < 0 && errno == EINTR)
        left = (until - g_get_monotonic_time()) / 1000;
    return (wait.revents & POLLIN) != 0 && waitpid(pid, status, 0) == pid;
}

static pid_t
start(const char *path, const char *const *argv, const char *const *environment, gboolean apart, int out)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    /* Between fork and exec only calls that are safe there. */
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    close_range(3, ~0U, 0);
    if (apart)
        setsid();
    /* The directory we were called from may be gone. */
    if (chdir("/") < 0)
        _exit(126);
    execve(path, (char *const *)argv, (char *const *)environment);
    _exit(127);
}

static void
set_exit_error(const char *name, int status, const char *output, GError **error)
{
    g_autofree char *copy = g_strchomp(g_strdup(output));
    const char *line = strrchr(copy, '\n');
    g_autofree char *shown = eb_log_escape(line != NULL ? line + 1 : copy, -1, 400);

    if (WIFSIGNALED(status))
        eb_set_error(error, EB_ERROR_FAILED, "provision.program", "%s was ended by signal %d", name, WTERMSIG(status));
    else
        eb_set_error(error, EB_ERROR_FAILED, "provision.program", "%s ended with %d%s%s", name, WEXITSTATUS(status),
                     *shown != '\0' ? ": " : "", shown);
}

gboolean
eb_run(const char *const *argv, guint deadline_ms, char **output, GError **error)
{
    g_autofree char *path = eb_run_find(argv[0]);
    g_autoptr(GString) text = g_string_new(NULL);
    gint64 until = g_get_monotonic_time() + (gint64)deadline_ms * 1000;
    int pipe_fds[2], pidfd, status = 0;
    gboolean in_time;
    pid_t pid;

    if (path == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "provision.program", "the program %s is not installed", argv[0]);
        return FALSE;
    }
    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.program", "no pipe: %s", g_strerror(errno));
        return FALSE;
    }
    pid = start(path, argv, ENVIRONMENT, FALSE, pipe_fds[1]);
    close(pipe_fds[1]);
    if (pid < 0) {
        close(pipe_fds[0]);
        eb_set_error(error, EB_ERROR_FAILED, "provision.program", "no process for %s: %s", argv[0], g_strerror(errno));
        return FALSE;
    }
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    in_time = collect(pipe_fds[0], until, text) && reap(pid, pidfd, until, &status);
    close(pipe_fds[0]);
    if (!in_time) {
        kill(pid, SIGKILL); /* our own child, not reaped: the pid cannot be another's */
        waitpid(pid, &status, 0);
        close(pidfd);
        eb_set_error(error, EB_ERROR_TIMEOUT, "provision.program", "%s took longer than %u s", argv[0],
                     deadline_ms / 1000);
        return FALSE;
    }
    close(pidfd);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        set_exit_error(argv[0], status, text->str, error);
        return FALSE;
    }
    if (output != NULL)
        *output = g_string_free(g_steal_pointer(&text), FALSE);
    return TRUE;
}

/* The end of a file: what matters of a failure. */
static char *
read_tail(const char *path)
{
    char text[4096];
    gssize n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0) {
        off_t size = lseek(fd, 0, SEEK_END);
        n = pread(fd, text, sizeof text, size > (off_t)sizeof text ? size - (off_t)sizeof text : 0);
        close(fd);
    }
    return n > 0 ? g_strndup(text, (gsize)n) : g_strdup("");
}

gboolean
eb_run_logged(const char *const *argv, const char *const *environment, const char *log_file, guint deadline_ms,
              GError **error)
{
    g_autofree char *path = eb_run_find(argv[0]);
    gint64 until = g_get_monotonic_time() + (gint64)deadline_ms * 1000;
    int log = open(log_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    int status = 0, pidfd;
    pid_t pid = -1;

    if (path == NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "provision.program", "the program %s is not installed", argv[0]);
    else if (log < 0)
        eb_set_error(error, EB_ERROR_FAILED, "provision.program", "%s: %s", log_file, g_strerror(errno));
    else if ((pid = start(path, argv, environment != NULL ? environment : ENVIRONMENT, TRUE, log)) < 0)
        eb_set_error(error, EB_ERROR_FAILED, "provision.program", "no process for %s: %s", argv[0], g_strerror(errno));
    if (log >= 0)
        close(log);
    if (pid < 0)
        return FALSE;
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (!reap(pid, pidfd, until, &status)) {
        syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
        if (!reap(pid, pidfd, g_get_monotonic_time() + 10 * G_USEC_PER_SEC, &status)) {
            syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
            waitpid(pid, &status, 0);
        }
        close(pidfd);
        eb_set_error(error, EB_ERROR_TIMEOUT, "provision.program", "%s took longer than %u s (see %s)", argv[0],
                     deadline_ms / 1000, log_file);
        return FALSE;
    }
    close(pidfd);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return TRUE;
    g_autofree char *tail = read_tail(log_file);
    g_autoptr(GError) failure = NULL;
    set_exit_error(argv[0], status, tail, &failure);
    eb_set_error(error, EB_ERROR_FAILED, "provision.program", "%s (see %s)", failure->message, log_file);
    return FALSE;
}
