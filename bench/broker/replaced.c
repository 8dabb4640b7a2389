/* SPDX-License-Identifier: MIT */
/*
 * How long a session is without its broker when that dies: from the kill to the first answer on a connection that was
 * made to the same socket right after it. Prints a table.
 *
 *   broker-replaced RUN_DIR [BROKERS]      default: 3 brokers, killed 7 times each
 *
 * Each death within a minute is answered a little later than the one before, so that a broker that cannot live does not
 * take the machine along; hence a row for each.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/broker/eb-broker-ctl.h"

/* One fewer than the service puts up with in a minute. */
#define KILLS 7
#define MAX_BROKERS 50

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    EbBrokerCtl **ctl = user_data;

    *ctl = eb_broker_ctl_start_finish(result, &error);
    if (*ctl == NULL)
        g_error("%s", error->message);
}

static void
on_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    *(gboolean *)user_data = TRUE;
}

static int
ask(const char *path)
{
    static const char REQUEST[] = "HEAD /provider/none HTTP/1.1\r\nHost: x\r\n\r\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(fd, REQUEST, sizeof REQUEST - 1, MSG_NOSIGNAL) < 0)
        g_error("%s: %s", path, g_strerror(errno));
    return fd;
}

/* Microseconds until it is answered, while the loop does the service's part. */
static gint64
wait_answer(int fd, gint64 began)
{
    char byte;

    while (recv(fd, &byte, 1, 0) != 1) {
        if (g_get_monotonic_time() - began > 10 * G_USEC_PER_SEC)
            g_error("no answer in ten seconds");
        if (!g_main_context_iteration(NULL, FALSE))
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1);
    }
    close(fd);
    return g_get_monotonic_time() - began;
}

static void
measure(const char *run_dir, gint64 times[KILLS])
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPaths) paths = eb_paths_new(&error);
    g_autoptr(EbBrokerRules) rules = eb_broker_rules_new("bench");
    g_autofree char *socket_path = g_build_filename(run_dir, "model.sock", NULL);
    EbBrokerCtl *ctl = NULL;
    gboolean stopped = FALSE;

    if (paths == NULL)
        g_error("%s", error->message);
    eb_broker_ctl_start_async(paths, run_dir, rules, 10000, NULL, on_started, &ctl);
    while (ctl == NULL)
        g_main_context_iteration(NULL, TRUE);
    wait_answer(ask(socket_path), g_get_monotonic_time());
    for (guint i = 0; i < KILLS; i++) {
        int pid_fd = (int)syscall(SYS_pidfd_open, eb_broker_ctl_get_pid(ctl), 0u);
        gint64 began = g_get_monotonic_time();

        if (syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0u) != 0)
            g_error("kill: %s", g_strerror(errno));
        /* Not before it is gone: what it still accepted itself would be cut off with it. */
        poll(&(struct pollfd){.fd = pid_fd, .events = POLLIN}, 1, -1);
        close(pid_fd);
        times[i] = wait_answer(ask(socket_path), began);
    }
    eb_broker_ctl_stop_async(ctl, NULL, on_stopped, &stopped);
    while (!stopped)
        g_main_context_iteration(NULL, TRUE);
    g_object_unref(ctl);
}

static int
compare(const void *a, const void *b)
{
    return (*(const gint64 *)a > *(const gint64 *)b) - (*(const gint64 *)a < *(const gint64 *)b);
}

static void
print_row(const char *name, gint64 *times, guint n)
{
    qsort(times, n, sizeof *times, compare);
    printf("| %s | %u | %.1f | %.1f |\n", name, n, (double)times[n / 2] / 1000, (double)times[n - 1] / 1000);
}

int
main(int argc, char **argv)
{
    static gint64 times[MAX_BROKERS][KILLS], all[MAX_BROKERS * KILLS];
    guint n = argc > 2 ? (guint)g_ascii_strtoull(argv[2], NULL, 10) : 3;

    if (argc < 2 || argc > 3 || n == 0 || n > MAX_BROKERS) {
        fprintf(stderr, "usage: broker-replaced RUN_DIR [BROKERS]\n");
        return 2;
    }
    for (guint i = 0; i < n; i++)
        measure(argv[1], times[i]);
    printf("| death within a minute | kills | median ms | worst ms |\n|---|---|---|---|\n");
    for (guint k = 0; k < KILLS; k++) {
        g_autofree char *name = g_strdup_printf("no. %u", k + 1);
        gint64 row[MAX_BROKERS];

        for (guint i = 0; i < n; i++)
            row[i] = all[k * n + i] = times[i][k];
        print_row(name, row, n);
    }
    print_row("all", all, n * KILLS);
    return 0;
}
