/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor-collect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/eb-unix.h"

/* Each round ends what is there, and may bring what that had started; nothing sensible is nested so deep. */
#define ROUNDS 32

void
eb_doctor_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* All of them together. A child that waits for a dead disk, or that has another identity since (a set-uid program), does not
 * end when told to: nothing of the report depends on it. */
#define WAIT_MS 1000

/* A child that was not waited for keeps its number, so this reaches nobody else. */
static void
end_child(pid_t pid, gint64 until)
{
    eb_autofd int fd = (int)syscall(SYS_pidfd_open, pid, 0u);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    gint64 left = (until - g_get_monotonic_time()) / 1000;
    siginfo_t info;

    if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0u) != 0)
        return;
    while (poll(&wait, 1, (int)MAX(left, 0)) < 0 && errno == EINTR)
        left = (until - g_get_monotonic_time()) / 1000;
    waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG);
}

void
eb_doctor_end_orphans(void)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());
    gint64 until = g_get_monotonic_time() + WAIT_MS * 1000;

    for (guint round = 0; round < ROUNDS; round++) {
        g_autofree char *text = NULL;
        g_auto(GStrv) pids = NULL;

        if (!g_file_get_contents(path, &text, NULL, NULL) || *g_strstrip(text) == '\0')
            return;
        pids = g_strsplit(text, " ", -1);
        for (guint i = 0; pids[i] != NULL; i++)
            if (*pids[i] != '\0')
                end_child((pid_t)g_ascii_strtoll(pids[i], NULL, 10), until);
    }
}
