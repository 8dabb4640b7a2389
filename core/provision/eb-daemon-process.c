/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-daemon-process.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_FILES 1048576

/* Field 22 of /proc/PID/stat, in clock ticks since boot; 0 when there is no such process or it has ended. */
static guint64
start_time(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_autofree char *text = NULL;
    g_auto(GStrv) fields = NULL;
    const char *end;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    /* The name in parentheses may hold anything, so count from its end. */
    end = strrchr(text, ')');
    if (end == NULL)
        return 0;
    fields = g_strsplit(end + 1, " ", 30);
    if (g_strv_length(fields) < 21 || fields[1][0] == 'Z')
        return 0;
    return g_ascii_strtoull(fields[20], NULL, 10);
}

/* A descriptor of the process that @pid_file means, or -1 when it is gone. */
static int
open_process(const char *pid_file)
{
    g_autofree char *text = NULL;
    long long pid;
    unsigned long long started;
    struct stat info;
    int fd;

    if (lstat(pid_file, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != 0 || (info.st_mode & 022) != 0)
        return -1;
    if (!g_file_get_contents(pid_file, &text, NULL, NULL) || sscanf(text, "%lld %llu", &pid, &started) != 2)
        return -1;
    if (pid <= 1 || pid > G_MAXINT)
        return -1;
    fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0)
        return -1;
    /* Compared after the descriptor was opened: from then on it cannot come to mean another process. */
    if (start_time((pid_t)pid) != started) {
        close(fd);
        return -1;
    }
    return fd;
}

gboolean
eb_daemon_process_alive(const char *pid_file)
{
    int fd = open_process(pid_file);

    if (fd < 0)
        return FALSE;
    close(fd);
    return TRUE;
}

static gboolean
write_pid_file(const EbDaemonSpec *spec, pid_t pid, GError **error)
{
    g_autofree char *text = g_strdup_printf("%d %" G_GUINT64_FORMAT "\n", (int)pid, start_time(pid));

    if (g_file_set_contents_full(spec->pid_file, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error))
        return TRUE;
    eb_error_convert(error, "provision.pid-file", spec->pid_file);
    return FALSE;
}

/* In the child: only calls that are safe between fork and exec. @gate: closed unread means that our parent died before
 * the pid file was there, then nothing must run. */
static void
become(const EbDaemonSpec *spec, int gate, int log)
{
    struct rlimit limit = {OPEN_FILES, OPEN_FILES};
    sigset_t none;
    char go;

    if (read(gate, &go, 1) != 1)
        _exit(126);
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    umask(022);
    if (chdir("/") < 0 || dup2(open("/dev/null", O_RDONLY), 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(126);
    close_range(3, ~0U, 0);
    execve(spec->argv[0], (char *const *)spec->argv, (char *const *)spec->environment);
    _exit(127);
}

gboolean
eb_daemon_process_start(const EbDaemonSpec *spec, GError **error)
{
    int log = open(spec->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
    int gate[2];
    pid_t pid;
    gboolean ok;

    if (log < 0 || pipe2(gate, O_CLOEXEC) < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.daemon", "%s: %s", spec->log_file, g_strerror(errno));
        if (log >= 0)
            close(log);
        return FALSE;
    }
    pid = fork();
    if (pid == 0) {
        close(gate[1]);
        become(spec, gate[0], log);
    }
    close(gate[0]);
    close(log);
    if (pid < 0) {
        close(gate[1]);
        eb_set_error(error, EB_ERROR_FAILED, "provision.daemon", "no process for %s: %s", spec->name,
                     g_strerror(errno));
        return FALSE;
    }
    ok = write_pid_file(spec, pid, error);
    if (ok && write(gate[1], "", 1) != 1) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.daemon", "%s ended at once", spec->name);
        ok = FALSE;
    }
    close(gate[1]);
    return ok;
}

static gboolean
wait_gone(int fd, guint ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    gint64 until = g_get_monotonic_time() + (gint64)ms * 1000;

    for (;;) {
        gint64 left = (until - g_get_monotonic_time()) / 1000;
        int ready = poll(&wait, 1, left > 0 ? (int)left : 0);
        if (ready > 0)
            return TRUE;
        if (ready == 0 || errno != EINTR)
            return FALSE;
    }
}

gboolean
eb_daemon_process_stop(const char *pid_file, int signum, guint grace_ms, GError **error)
{
    int fd = open_process(pid_file);
    gboolean gone = TRUE;

    if (fd >= 0) {
        gone = syscall(SYS_pidfd_send_signal, fd, signum, NULL, 0) < 0 ? errno == ESRCH : wait_gone(fd, grace_ms);
        if (!gone) {
            syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
            gone = wait_gone(fd, 5000);
        }
        close(fd);
    }
    if (!gone) {
        eb_set_error(error, EB_ERROR_TIMEOUT, "provision.daemon", "the process of %s does not end", pid_file);
        return FALSE;
    }
    g_unlink(pid_file);
    return TRUE;
}
