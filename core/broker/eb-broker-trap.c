/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-trap.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/broker/eb-broker-proto.h"

/* Of siginfo; the C library's headers have it under a feature that nothing else here needs. */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

static int report_fd = -1;

/* Async-signal-safe: the writer of messages copies bytes and does nothing else. */
static void
tell(int number)
{
    guint8 buffer[64];
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_CALL_REFUSED);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_NUMBER, (guint64)number);
    send(report_fd, buffer, eb_broker_writer_end(&writer), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * By now the kernel has set the signal back to its default, so that a second one, of this thread or another, ends the
 * process. Nothing returns to where the call was made: touching the signal's handler is what the filter kills for, without
 * a trap; the rest is for a signal that came without a filter.
 */
static void
on_trap(int number, siginfo_t *info, void *context)
{
    if (info->si_code == SYS_SECCOMP)
        tell(info->si_syscall);
    syscall(SYS_rt_sigaction, SIGSYS, NULL, NULL, (size_t)_NSIG / 8);
    raise(SIGSYS);
    _exit(128 + SIGSYS);
}

gboolean
eb_broker_trap_set(int fd, GError **error)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_NODEFER)};

    report_fd = fd;
    if (sigaction(SIGSYS, &action, NULL) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_DEGRADED, "sandbox.trap", "cannot catch refused system calls: %s", g_strerror(errno));
    return FALSE;
}
