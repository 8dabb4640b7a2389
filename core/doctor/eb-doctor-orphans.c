/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor-collect.h"

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

/* A child that was not waited for keeps its number, so this reaches nobody else. */
static void
end_child(pid_t pid)
{
    eb_autofd int fd = (int)syscall(SYS_pidfd_open, pid, 0u);
    siginfo_t info;

    if (fd < 0)
        return;
    syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0u);
    waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED);
}

void
eb_doctor_end_orphans(void)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());

    for (guint round = 0; round < ROUNDS; round++) {
        g_autofree char *text = NULL;
        g_auto(GStrv) pids = NULL;

        if (!g_file_get_contents(path, &text, NULL, NULL) || *g_strstrip(text) == '\0')
            return;
        pids = g_strsplit(text, " ", -1);
        for (guint i = 0; pids[i] != NULL; i++)
            if (*pids[i] != '\0')
                end_child((pid_t)g_ascii_strtoll(pids[i], NULL, 10));
    }
}
