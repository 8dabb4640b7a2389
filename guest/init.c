/* SPDX-License-Identifier: MIT */
/*
 * The guest's init: a few mounts, lo, reaping, powering off, and the lease (guest/lease.h). It forks nothing and
 * allocates nothing, so a guest at its memory or process limit cannot keep it from ending that guest.
 */
#include "guest/diag.h"
#include "guest/lease.h"
#include "guest/loopback.h"
#include "guest/tmpfs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_BYTES (16ull << 20)
#define SHM_BYTES (64ull << 20) /* the launcher sets the session's own size */
#define POWER_OFF_GRACE_MS 2000 /* between TERM and KILL for everything */

static void
mount_basics(void)
{
    int result = tmpfs_ensure("/run", RUN_BYTES, 0755);
    if (result < 0)
        diag_warn("cannot mount /run: %s", strerror(-result));
    result = tmpfs_ensure("/dev/shm", SHM_BYTES, 01777);
    if (result < 0)
        diag_warn("cannot mount /dev/shm: %s", strerror(-result));
    if ((mkdir("/dev/mqueue", 01777) < 0 && errno != EEXIST) ||
        (mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 && errno != EBUSY))
        diag_warn("cannot mount /dev/mqueue: %s", strerror(errno));
    /* Read-only: programs that want to know their limits or whether there are cgroups at all (container runtimes) look
     * here. A kernel or daemon that does not allow it takes nothing away. */
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    result = loopback_up();
    if (result < 0)
        diag_warn("cannot bring lo up: %s", strerror(-result));
}

static void
reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static long long
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Ends everything and powers off; as pid 1 of a pid namespace, reboot(2) ends the guest. */
static _Noreturn void
power_off(int signals, int grace_ms, int how)
{
    struct pollfd wake = {.fd = signals, .events = POLLIN};
    struct signalfd_siginfo drained;
    long long deadline = now_ms() + grace_ms;

    if (grace_ms > 0)
        kill(-1, SIGTERM);
    for (;;) {
        reap();
        long long left = deadline - now_ms();
        /* Processes that an exec of the host started are no children of init: asking the kernel is the only way. */
        if (left <= 0 || (kill(-1, 0) < 0 && errno == ESRCH))
            break;
        poll(&wake, 1, left < 20 ? (int)left : 20);
        while (read(signals, &drained, sizeof drained) > 0)
            continue;
    }
    kill(-1, SIGKILL);
    /* No sync(2): it would flush every file system of the host, seconds on a busy pool; the host's kernel outlives us. */
    reboot(how);
    _exit(0); /* the end of pid 1 is the end of the guest just as well */
}

static void
on_signal(int signals)
{
    struct signalfd_siginfo info;

    while (read(signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        if (info.ssi_signo == SIGINT)
            power_off(signals, POWER_OFF_GRACE_MS, RB_AUTOBOOT);
        power_off(signals, POWER_OFF_GRACE_MS, RB_POWER_OFF);
    }
    reap();
}

static int
open_signals(void)
{
    sigset_t all;
    sigset_t wanted;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGPWR);
    sigaddset(&wanted, SIGINT);       /* LXC's reboot */
    sigaddset(&wanted, SIGRTMIN + 3); /* LXC's halt for an init that blocks this one */
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

int
main(void)
{
    enum { SIGNALS, LEASE, N_FDS };
    struct pollfd fds[N_FDS];
    bool leased = false;

    diag_set_program("init");
    if (getpid() != 1)
        diag_die("only runs as the first process of a guest");
    umask(022);
    fds[SIGNALS] = (struct pollfd){.fd = open_signals(), .events = POLLIN};
    if (fds[SIGNALS].fd < 0)
        diag_die("cannot watch signals: %s", strerror(errno));
    mount_basics();
    fds[LEASE] = (struct pollfd){.fd = lease_listen(), .events = POLLIN};
    if (fds[LEASE].fd < 0)
        diag_warn("no lease can be taken: %s", strerror(-fds[LEASE].fd));

    for (;;) {
        if (poll(fds, N_FDS, -1) < 0)
            continue;
        if (fds[SIGNALS].revents != 0)
            on_signal(fds[SIGNALS].fd);
        if (fds[LEASE].revents == 0)
            continue;
        if (leased)
            power_off(fds[SIGNALS].fd, 0, RB_POWER_OFF);
        int holder = lease_accept(fds[LEASE].fd);
        if (holder >= 0) {
            /* One holder for the life of the guest; whoever comes later finds the door closed. */
            close(fds[LEASE].fd);
            fds[LEASE] = (struct pollfd){.fd = holder, .events = POLLRDHUP};
            leased = true;
        }
    }
}
