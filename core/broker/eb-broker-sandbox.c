/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "core/base/eb-sandbox.h"
#include "core/broker/eb-broker-trap.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define MAX_MEMORY (512u << 20)
#define MAX_FILES 8256 /* two for each connection and a few */

/*
 * What the C library reads to resolve a name, and the modules that nsswitch.conf may name; certificates were read before.
 * Not /etc as a whole: the operator's credentials may be in it. The directories below /run are where resolv.conf points
 * to on hosts that generate it.
 */
static const char *const READABLE[] = {
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ld.so.cache",
    "/usr/lib",
    "/usr/lib64",
    "/lib",
    "/lib64",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/proc/sys/net",
#if SANITIZED
    "/proc/self",
#endif
    NULL,
};

#define ALLOW(name)                                                                                                    \
    {                                                                                                                  \
        SCMP_SYS(name), EB_SANDBOX_ANY, 0, 0, 0, 0                                                                     \
    }
#define ALLOW_EQUAL(name, index, wanted)                                                                               \
    {                                                                                                                  \
        SCMP_SYS(name), EB_SANDBOX_EQUAL, index, 0, wanted, 0                                                          \
    }
#define ALLOW_OTHER(name, index, unwanted)                                                                             \
    {                                                                                                                  \
        SCMP_SYS(name), EB_SANDBOX_OTHER, index, 0, unwanted, 0                                                        \
    }
#define ALLOW_MASKED(name, index, bits, wanted)                                                                        \
    {                                                                                                                  \
        SCMP_SYS(name), EB_SANDBOX_MASKED, index, bits, wanted, 0                                                      \
    }
#define FAIL_EQUAL(name, index, wanted, code)                                                                          \
    {                                                                                                                  \
        SCMP_SYS(name), EB_SANDBOX_EQUAL, index, 0, wanted, code                                                       \
    }
#define FAIL(name, code)                                                                                               \
    {                                                                                                                  \
        SCMP_SYS(name), EB_SANDBOX_ANY, 0, 0, 0, code                                                                  \
    }
#define KILL(name) FAIL(name, EB_SANDBOX_KILL)

static const EbSandboxCall CALLS[] = {
    /* bytes in and out of what is open */
    ALLOW(read),
    ALLOW(readv),
    ALLOW(pread64),
    ALLOW(write),
    ALLOW(writev),
    ALLOW(close),
    ALLOW(lseek),
    ALLOW(splice),
    ALLOW(pipe2),
    ALLOW(fcntl),
    ALLOW(dup),
    /* what the resolver and stdio ask; standard error may be somebody's terminal, which takes typed input by ioctl */
    ALLOW_EQUAL(ioctl, 1, FIONREAD),
    ALLOW_EQUAL(ioctl, 1, FIONBIO),
    ALLOW_EQUAL(ioctl, 1, TCGETS),
    /* sockets: connecting out, accepting from the guest; seccomp sees the family, Landlock the rest */
    ALLOW_EQUAL(socket, 0, AF_INET),
    ALLOW_EQUAL(socket, 0, AF_INET6),
    ALLOW_EQUAL(socket, 0, AF_NETLINK),
    /*
     * The account's sockets (the container daemon's, the service's, other sessions') would take a broker for the account:
     * Landlock does not judge who connects to them. Resolving a name tries some, and goes on without.
     */
    FAIL_EQUAL(socket, 0, AF_UNIX, EAFNOSUPPORT),
    ALLOW(connect),
    ALLOW(bind),
    ALLOW(accept4),
    ALLOW(shutdown),
    ALLOW(sendto),
    ALLOW(sendmsg),
    ALLOW(sendmmsg),
    ALLOW(recvfrom),
    ALLOW(recvmsg),
    ALLOW(recvmmsg),
    ALLOW(getsockopt),
    /* Whoever has the last descriptor of a lingering socket waits when it closes it: the service, when one is sent to it. */
    ALLOW_OTHER(setsockopt, 2, SO_LINGER),
    ALLOW(getsockname),
    ALLOW(getpeername),
    /* waiting */
    ALLOW(epoll_create1),
    ALLOW(epoll_ctl),
    ALLOW(epoll_wait),
    ALLOW(epoll_pwait),
    ALLOW(poll),
    ALLOW(ppoll),
    ALLOW(eventfd2),
    ALLOW(futex),
    ALLOW(clock_gettime),
    ALLOW(clock_getres),
    ALLOW(clock_nanosleep),
    ALLOW(nanosleep),
    ALLOW(gettimeofday),
    ALLOW(restart_syscall),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    ALLOW(sched_getattr),
    ALLOW(sched_setattr),
    /* memory */
    ALLOW(mmap),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(mprotect),
    ALLOW(madvise),
    ALLOW(brk),
    ALLOW(mlock),
    ALLOW(munlock),
    ALLOW(getrandom),
    /* threads of the resolver; clone3 hides its flags from the filter, so the library is sent to clone */
    FAIL(clone3, ENOSYS),
    ALLOW_MASKED(clone, 0, CLONE_THREAD, CLONE_THREAD),
    ALLOW(set_robust_list),
    ALLOW(rseq),
    ALLOW(set_tid_address),
    ALLOW(gettid),
    ALLOW(getpid),
    ALLOW(getuid),
    ALLOW(geteuid),
    ALLOW(getgid),
    ALLOW(getegid),
    ALLOW(exit),
    ALLOW(exit_group),
    /*
     * Every signal but SIGSYS (31), whose handler tells of refused calls: one of its five low bits is clear, or a higher one
     * is set. By bits, since the kernel looks at 32 of the argument's 64 bits and a comparison at all of them.
     */
    ALLOW_MASKED(rt_sigaction, 0, 1, 0),
    ALLOW_MASKED(rt_sigaction, 0, 2, 0),
    ALLOW_MASKED(rt_sigaction, 0, 4, 0),
    ALLOW_MASKED(rt_sigaction, 0, 8, 0),
    ALLOW_MASKED(rt_sigaction, 0, 16, 0),
    ALLOW_MASKED(rt_sigaction, 0, 32, 32),
    ALLOW_MASKED(rt_sigaction, 0, 64, 64),
    {SCMP_SYS(rt_sigaction), EB_SANDBOX_MASKED, 0, 127, SIGSYS, EB_SANDBOX_KILL},
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    ALLOW(sigaltstack),
    ALLOW(tgkill),
    ALLOW_EQUAL(prctl, 0, PR_SET_NAME),
    ALLOW_EQUAL(prctl, 0, PR_GET_NAME),
    ALLOW_EQUAL(prctl, 0, PR_GET_DUMPABLE),
    /* files that Landlock leaves, to be read */
    ALLOW_MASKED(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
    FAIL(open, EACCES),
    ALLOW(fstat),
    ALLOW(newfstatat),
    ALLOW(stat),
    ALLOW(lstat),
    ALLOW(statx),
    ALLOW(fstatfs),
    ALLOW(statfs),
    ALLOW(access),
    ALLOW(faccessat),
    ALLOW(faccessat2),
    ALLOW(readlink),
    ALLOW(readlinkat),
    ALLOW(getdents64),
    ALLOW(getcwd),
    ALLOW(uname),
    ALLOW(sysinfo),
    ALLOW_EQUAL(prlimit64, 2, 0),
    /* libraries ask for these and do without */
    FAIL(socketpair, EACCES),
    FAIL(inotify_init1, ENOSYS),
    FAIL(memfd_create, EACCES),
    FAIL(getresuid, EACCES),
    FAIL(getresgid, EACCES),
    /*
     * Nothing in a broker and its libraries makes these, whatever their version: who does has taken it over. They kill
     * without a handler of the process having a say; the others are told by name before they do.
     */
    KILL(execve),
    KILL(execveat),
    KILL(process_vm_writev),
    KILL(pidfd_getfd),
    KILL(mount),
    KILL(umount2),
    KILL(pivot_root),
    KILL(chroot),
    KILL(unshare),
    KILL(setns),
    KILL(bpf),
    KILL(perf_event_open),
    KILL(userfaultfd),
    KILL(io_uring_setup),
    KILL(init_module),
    KILL(finit_module),
    KILL(kexec_load),
    KILL(add_key),
    KILL(request_key),
    KILL(keyctl),
    KILL(open_by_handle_at),
#if !SANITIZED
    KILL(ptrace),
    KILL(process_vm_readv),
#endif
#if SANITIZED
    ALLOW(ioctl),
    ALLOW(prctl),
    ALLOW(prlimit64),
    ALLOW(open),
    ALLOW(clone),
    ALLOW(wait4),
    ALLOW(ptrace),
    ALLOW(process_vm_readv),
    ALLOW(getppid),
    ALLOW(kill),
    ALLOW(arch_prctl),
    ALLOW(membarrier),
#endif
};

static gboolean
limit_resources(GError **error)
{
    if (!eb_sandbox_limit(RLIMIT_NOFILE, MAX_FILES, error) || !eb_sandbox_limit(RLIMIT_FSIZE, 0, error) ||
        !eb_sandbox_limit(RLIMIT_MSGQUEUE, 0, error))
        return FALSE;
    /* The sanitizers reserve terabytes of address space for their shadow. */
    return SANITIZED || eb_sandbox_limit(RLIMIT_DATA, MAX_MEMORY, error);
}

gboolean
eb_broker_sandbox_enter(int report_fd, char **lacking, GError **error)
{
    g_autoptr(GError) local = NULL;

    *lacking = NULL;
    if (!limit_resources(error) || !eb_sandbox_drop_capabilities(error))
        return FALSE;
    if (!eb_sandbox_restrict_files(READABLE, &local)) {
        if (!g_error_matches(local, EB_ERROR, EB_ERROR_NOT_SUPPORTED)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return FALSE;
        }
        *lacking =
            g_strdup("E-86, this kernel has no Landlock: the broker could read the host's files as its account can");
    }
    return eb_broker_trap_set(report_fd, error) && eb_sandbox_filter(CALLS, G_N_ELEMENTS(CALLS), TRUE, error);
}
