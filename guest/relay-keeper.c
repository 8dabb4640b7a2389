/* SPDX-License-Identifier: MIT */
#include "guest/relay-keeper.h"
#include "guest/lease.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RELAY_FD 3           /* in the relay */
#define KEEPER_LOCK_FD 3     /* in the keeper */
#define KEEPER_LISTENER_FD 4 /* likewise */
#define KEEPER_FDS 64        /* out of the way while those are being set */
#define LISTEN_QUEUE 4096
#define RESPAWN_MIN_MS 20
#define RESPAWN_MAX_MS 2000
#define RESPAWN_CALM_S 10 /* a relay that lived this long starts the next wait from the minimum */

static int
open_listener(unsigned port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
    };
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    /* Accepted sockets inherit TCP_NODELAY: one call instead of one a connection. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 || listen(fd, LISTEN_QUEUE) < 0) {
        int failure = errno;
        close(fd);
        errno = failure;
        return -1;
    }
    return fd;
}

/* The relay keeps one capability: the host's socket may belong to the agent's uid alone (mode 0600), and only
 * CAP_DAC_OVERRIDE lets another uid of the guest connect to it. */
static bool
become_relay_user(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct only[2] = {0};

    only[0].effective = only[0].permitted = only[0].inheritable = 1u << CAP_DAC_OVERRIDE;
    return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setgroups(0, NULL) == 0 &&
           setresgid(RELAY_UID, RELAY_UID, RELAY_UID) == 0 && setresuid(RELAY_UID, RELAY_UID, RELAY_UID) == 0 &&
           syscall(SYS_capset, &header, only) == 0 &&
           prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static _Noreturn void
run_relay(int listener, const char *program, const char *socket_path)
{
    char number[16];
    char *argv[] = {(char *)"relay", (char *)"--listen-fd", number, (char *)"--connect", (char *)socket_path, NULL};
    char *envp[] = {NULL};

    snprintf(number, sizeof number, "%d", RELAY_FD);
    if (dup2(listener, RELAY_FD) == RELAY_FD && become_relay_user()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a change of uid would have cleared it */
        execve(program, argv, envp);
    }
    _exit(1);
}

static time_t
now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static _Noreturn void
keep(int listener, const char *program, const char *socket_path)
{
    int wait_ms = RESPAWN_MIN_MS;

    for (;;) {
        time_t started = now_s();
        pid_t pid = fork();
        if (pid == 0)
            run_relay(listener, program, socket_path);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        if (now_s() - started >= RESPAWN_CALM_S)
            wait_ms = RESPAWN_MIN_MS;
        struct timespec pause = {.tv_sec = wait_ms / 1000, .tv_nsec = (long)(wait_ms % 1000) * 1000000};
        nanosleep(&pause, NULL);
        wait_ms = wait_ms * 2 < RESPAWN_MAX_MS ? wait_ms * 2 : RESPAWN_MAX_MS;
    }
}

/* Forks twice, so that init is the keeper's parent and the launcher never has to reap it. */
static const char *
leave_keeper(int lock, int listener, const char *program, const char *socket_path)
{
    pid_t first = fork();

    if (first < 0)
        return "cannot start the relay's keeper";
    if (first == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        pid_t second = setsid() < 0 || null < 0 ? -1 : fork();
        if (second != 0)
            _exit(second < 0 ? 1 : 0);
        /* The lock's descriptor stays open for as long as the keeper lives: that is what "it runs" means. All
         * others go, the lock of the launcher's preparation above all. */
        lock = fcntl(lock, F_DUPFD_CLOEXEC, KEEPER_FDS);
        listener = fcntl(listener, F_DUPFD_CLOEXEC, KEEPER_FDS);
        if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
            dup3(lock, KEEPER_LOCK_FD, O_CLOEXEC) < 0 || dup3(listener, KEEPER_LISTENER_FD, O_CLOEXEC) < 0 ||
            close_range(KEEPER_LISTENER_FD + 1, ~0u, 0) < 0 || chdir("/") < 0)
            _exit(1);
        prctl(PR_SET_NAME, "relay-keeper", 0, 0, 0);
        keep(KEEPER_LISTENER_FD, program, socket_path);
    }
    int status;
    while (waitpid(first, &status, 0) < 0) {
        if (errno != EINTR)
            return "lost the relay's keeper";
    }
    errno = EAGAIN;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "cannot start the relay's keeper";
}

const char *
relay_keep(unsigned port, const char *program, const char *socket_path)
{
    char path[64];
    const char *wrong = NULL;

    if (access(program, X_OK) < 0)
        return "the relay cannot be run";
    snprintf(path, sizeof path, LEASE_DIR "/relay-%u.lock", port);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return "cannot open the relay's lock";
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
        int listener = open_listener(port);
        if (listener < 0)
            wrong = "cannot listen on the relay's port";
        else
            wrong = leave_keeper(lock, listener, program, socket_path);
        if (listener >= 0)
            close(listener);
    } else if (errno != EWOULDBLOCK) {
        wrong = "cannot lock the relay's lock";
    }
    int failure = errno;
    close(lock);
    errno = failure;
    return wrong;
}
