/* SPDX-License-Identifier: MIT */
/* The broker's sandbox, entered for real by children of the test: what is left to them, and what kills them. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/eb-sandbox.h"
#include "core/base/eb-unix.h"
#include "core/broker/eb-broker-proto.h"
#include "core/broker/eb-broker-sandbox.h"
#include "eb-test.h"

#define CANNOT_ENTER 99

/* Asked for before entering: inside, the question itself kills. */
static guint landlock_abi;

/* The number of the call that the child told of before it died, -1 = of none. */
static int
take_told(int fd)
{
    guint8 bytes[EB_BROKER_MSG_MAX];
    gssize got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    g_autoptr(GError) error = NULL;
    EbBrokerMsg msg;

    if (got <= 0)
        return -1;
    g_assert_true(eb_broker_msg_decode(bytes, (gsize)got, &msg, &error));
    g_assert_no_error(error);
    g_assert_cmpint(msg.type, ==, EB_BROKER_MSG_CALL_REFUSED);
    return (int)eb_broker_msg_number(&msg, EB_BROKER_TAG_NUMBER, G_MAXUINT64);
}

/* Runs @body in a child that has entered the sandbox; its wait status. @told: (out) (optional) */
static int
run_confined(int (*body)(void), int *told)
{
    int status = 0, ends[2], number;
    pid_t pid;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
    pid = fork();
    if (pid == 0) {
        g_autofree char *lacking = NULL;
        g_autoptr(GError) error = NULL;

        if (!eb_sandbox_harden(&error) || !eb_broker_sandbox_enter(ends[1], &lacking, &error))
            _exit(CANNOT_ENTER);
        _exit(body());
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_false(WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_ENTER);
    number = take_told(ends[0]);
    if (told != NULL)
        *told = number;
    close(ends[0]);
    close(ends[1]);
    return status;
}

/* The number of the first thing that should work and does not, or the other way round; 0 = all well. */
static int
files_body(void)
{
    static const char *const HIDDEN[] = {
        "/etc/passwd",
        "/etc/shadow",
        "/root",
        "/home",
        "/tmp",
        "/usr/bin",
        "/usr/share",
        "/etc/ssl",
        "/dev/null",
#ifndef __SANITIZE_ADDRESS__
        /* The sanitizers' reports need it. */
        "/proc/self/environ",
#endif
    };
    int fd;

    fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return 1;
    fd = open("/etc/nsswitch.conf", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return 2;
    for (gsize i = 0; landlock_abi > 0 && i < G_N_ELEMENTS(HIDDEN); i++) {
        fd = open(HIDDEN[i], O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            return 10 + (int)i;
    }
    return 0;
}

static int
network_body(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct addrinfo *found = NULL;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 1;
    /* Refused by Landlock where it knows of networks; going out is what a broker is for. */
    if (landlock_abi >= 4 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0)
        return 2;
    /* Names are still resolved; which there are is the machine's affair. */
    return getaddrinfo("localhost", NULL, NULL, &found) == EAI_SYSTEM ? 3 : 0;
}

/* What listens there acts on who connects: the container daemon, the service, other sessions' brokers. Landlock does not
 * judge it. */
static char *service_path;

static int
unix_body(void)
{
    struct sockaddr_un service = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* An error that is no death: the C library asks for such a socket to resolve names, and does without. */
    if (fd < 0)
        return errno == EAFNOSUPPORT ? 0 : 1;
    g_strlcpy(service.sun_path, service_path, sizeof service.sun_path);
    return connect(fd, (struct sockaddr *)&service, sizeof service) == 0 ? 2 : 3;
}

static int
state_body(void)
{
    struct rlimit core = {1, 1};

    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0)
        return 1;
    return prctl(PR_GET_DUMPABLE) == 0 ? 0 : 2;
}

static int
exec_body(void)
{
    char *const argv[] = {(char *)"true", NULL};

    execv("/bin/true", argv);
    return 1;
}

#ifndef __SANITIZE_ADDRESS__
static int
terminal_body(void)
{
    const char typed = '#';

    return ioctl(STDERR_FILENO, TIOCSTI, &typed) == 0 ? 1 : 2;
}

static int
fork_body(void)
{
    return fork() >= 0 ? 1 : 2;
}

static int
ptrace_body(void)
{
    return ptrace(PTRACE_ATTACH, 1, 0, 0) == 0 ? 1 : 2;
}
#endif

static int
packet_body(void)
{
    return socket(AF_PACKET, SOCK_RAW, 0) >= 0 ? 1 : 2;
}

static int
linger_body(void)
{
    const struct linger wait = {1, 3600};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        return 1;
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait) == 0 ? 2 : 3;
}

static int
unshare_body(void)
{
    return syscall(SYS_unshare, 0x10000000) == 0 ? 1 : 2;
}

static int
write_body(void)
{
    return open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0 ? 1 : 2;
}

static int
bpf_body(void)
{
    return syscall(SYS_bpf, 0, NULL, 0) == 0 ? 1 : 2;
}

static int
unforeseen_body(void)
{
    return syscall(SYS_getpriority, 0, 0) == 0 ? 1 : 2;
}

/* The handler of refused calls stays: no other, none, and not by an argument whose upper half the kernel cuts off. */
static int
replace_body(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    return sigaction(SIGSYS, &ignore, NULL) == 0 ? 1 : 2;
}

static int
replace_high_body(void)
{
    return syscall(SYS_rt_sigaction, (1ul << 32) | SIGSYS, NULL, NULL, (size_t)8) == 0 ? 1 : 2;
}

/* A signal of a refused call that is blocked kills all the same. */
static int
blocked_body(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    return unforeseen_body();
}

static int
signals_body(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    for (int i = 1; i < SIGRTMAX; i++)
        if (i != SIGSYS && sigaction(i, NULL, &action) != 0 && errno != EINVAL)
            return i;
    return 0;
}

static void
test_left(void)
{
    static int (*const BODIES[])(void) = {files_body, network_body, state_body, unix_body, signals_body};
    g_autofree char *directory = g_dir_make_tmp("eb-sandbox-XXXXXX", NULL);
    eb_autofd int service = -1;

    g_assert_nonnull(directory);
    service_path = g_build_filename(directory, "service", NULL);
    service = eb_unix_listen(service_path, 0600, 1, NULL);
    g_assert_cmpint(service, >=, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(BODIES); i++) {
        int status = run_confined(BODIES[i], NULL);

        g_test_message("%" G_GSIZE_FORMAT ": %d", i, status);
        g_assert_true(WIFEXITED(status));
        g_assert_cmpint(WEXITSTATUS(status), ==, 0);
    }
    g_assert_cmpint(unlink(service_path), ==, 0);
    g_assert_cmpint(rmdir(directory), ==, 0);
    g_clear_pointer(&service_path, g_free);
}

static void
test_killed(void)
{
    static const struct {
        const char *name;
        int (*body)(void);
        int told; /* -1: it has no say */
    } CALLS[] = {
        {"exec", exec_body, -1},
        {"packet socket", packet_body, SYS_socket},
        {"linger", linger_body, SYS_setsockopt},
        {"unshare", unshare_body, -1},
        {"open for writing", write_body, SYS_openat},
        {"bpf", bpf_body, -1},
        {"unforeseen", unforeseen_body, SYS_getpriority},
        {"replaced handler", replace_body, -1},
        {"replaced handler, high bits", replace_high_body, -1},
        {"blocked signal", blocked_body, -1},
#ifndef __SANITIZE_ADDRESS__
        /* The sanitizers' own reports need these. */
        {"terminal", terminal_body, SYS_ioctl},
        {"fork", fork_body, SYS_clone},
        {"ptrace", ptrace_body, -1},
#endif
    };

    for (gsize i = 0; i < G_N_ELEMENTS(CALLS); i++) {
        int told = 0, status = run_confined(CALLS[i].body, &told);

        g_test_message("%s: %d, %d", CALLS[i].name, status, told);
        g_assert_true(WIFSIGNALED(status));
        g_assert_cmpint(WTERMSIG(status), ==, SIGSYS);
        g_assert_cmpint(told, ==, CALLS[i].told);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    landlock_abi = eb_sandbox_landlock_abi();
    g_test_add_func("/broker/sandbox/left", test_left);
    g_test_add_func("/broker/sandbox/killed", test_killed);
    return g_test_run();
}
