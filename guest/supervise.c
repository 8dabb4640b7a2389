/* SPDX-License-Identifier: MIT */
#include "guest/supervise.h"
#include "guest/agent.h"
#include "guest/diag.h"
#include "guest/fresh-proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From passing TERM on to killing what is left; a second signal kills at once. */
#define TERM_GRACE_MS 5000

static int
watch_signals(const int *numbers)
{
    sigset_t set;

    sigemptyset(&set);
    for (; *numbers != 0; numbers++)
        sigaddset(&set, *numbers);
    sigprocmask(SIG_SETMASK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        diag_die("cannot watch signals: %s", strerror(errno));
    return fd;
}

/* Takes pending signals; the count of those that are not SIGCHLD. */
static int
drain_signals(int fd)
{
    struct signalfd_siginfo info;
    int asked = 0;

    while (read(fd, &info, sizeof info) == sizeof info)
        asked += info.ssi_signo != SIGCHLD;
    return asked;
}

/* The streams belong to the agent alone: as long as somebody else holds its input or output, their ends cannot be
 * seen. */
static void
let_go_of_streams(bool errors_too)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        diag_die("cannot open /dev/null: %s", strerror(errno));
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (errors_too)
        dup2(null, STDERR_FILENO);
    if (null > STDERR_FILENO)
        close(null);
}

static int
exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reaps; TRUE and @code once @agent has ended. */
static bool
reap(pid_t agent, int *code)
{
    bool ended = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == agent) {
            ended = true;
            *code = exit_code(status);
        }
    }
    return ended;
}

/* First process of the namespace. @life: the supervisor's line: a byte on it passes TERM on to the agent, its end
 * is the supervisor's end. */
static _Noreturn void
lead_namespace(const struct options *options, int life, bool tty)
{
    enum { SIGNALS, LIFE, N_FDS };
    const int numbers[] = {SIGCHLD, 0};
    struct pollfd fds[N_FDS];
    int code = GUEST_EXIT_ERROR;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    const char *wrong = fresh_proc_mount();
    if (wrong != NULL)
        diag_die("%s: %s", wrong, strerror(errno));
    fds[SIGNALS] = (struct pollfd){.fd = watch_signals(numbers), .events = POLLIN};
    fds[LIFE] = (struct pollfd){.fd = life, .events = POLLIN};
    pid_t agent = fork();
    if (agent < 0)
        diag_die("cannot start the agent: %s", strerror(errno));
    if (agent == 0)
        agent_become(options, tty);
    prctl(PR_SET_NAME, "agent-init", 0, 0, 0);
    let_go_of_streams(true);
    for (;;) {
        char order;
        if (poll(fds, N_FDS, -1) < 0)
            continue;
        if (fds[SIGNALS].revents != 0) {
            drain_signals(fds[SIGNALS].fd);
            if (reap(agent, &code))
                _exit(code);
        }
        if (fds[LIFE].revents != 0) {
            if (recv(life, &order, 1, MSG_DONTWAIT) != 1)
                _exit(128 + SIGKILL);
            kill(agent, SIGTERM);
        }
    }
}

static int
remaining_ms(const struct timespec *deadline)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    long long left = (long long)(deadline->tv_sec - now.tv_sec) * 1000 + (deadline->tv_nsec - now.tv_nsec) / 1000000;
    return left > 0 ? (int)left : 0;
}

/* Until the namespace's first process is gone. @output: a copy of standard output, only to see that nobody reads
 * it any more: then the daemon is dead and no order to end will ever come. */
static int
wait_for_end(pid_t leader, int signals, int output, int life)
{
    enum { SIGNALS, OUTPUT, N_FDS };
    struct pollfd fds[N_FDS] = {{.fd = signals, .events = POLLIN}, {.fd = output}};
    struct timespec deadline = {0};
    bool asked = false;
    int status;

    for (;;) {
        int ready = poll(fds, N_FDS, asked ? remaining_ms(&deadline) : -1);
        if (ready < 0)
            continue;
        int orders = fds[SIGNALS].revents != 0 ? drain_signals(signals) : 0;
        if (waitpid(leader, &status, WNOHANG) == leader)
            return exit_code(status);
        if (orders > 0 && !asked) {
            send(life, "T", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
            clock_gettime(CLOCK_MONOTONIC, &deadline);
            deadline.tv_sec += TERM_GRACE_MS / 1000;
            asked = true;
            orders--;
        }
        if (orders > 0 || fds[OUTPUT].revents != 0 || (asked && remaining_ms(&deadline) == 0)) {
            kill(leader, SIGKILL); /* not reaped yet, so the pid is still its */
            while (waitpid(leader, &status, 0) < 0 && errno == EINTR)
                continue;
            return exit_code(status);
        }
    }
}

int
supervise(const struct options *options)
{
    const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, 0};
    bool tty = isatty(STDIN_FILENO) == 1;
    int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int signals = watch_signals(numbers);
    int life[2];

    if (output < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, life) < 0)
        diag_die("cannot make a descriptor: %s", strerror(errno));
    if (tty && ioctl(STDIN_FILENO, TIOCNOTTY) == 0)
        drain_signals(signals); /* giving the terminal up sends SIGHUP to its owner: not an order to end */
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
        diag_die("cannot make a pid namespace: %s", strerror(errno));
    pid_t leader = fork();
    if (leader < 0)
        diag_die("cannot start the agent: %s", strerror(errno));
    if (leader == 0) {
        close(life[0]);
        lead_namespace(options, life[1], tty);
    }
    close(life[1]);
    let_go_of_streams(false);
    int code = wait_for_end(leader, signals, output, life[0]);
    if (code == 126 || code == 127) {
        diag_warn("%s ended with exit code %d", options->command[0], code);
        code = GUEST_EXIT_ERROR;
    }
    return code;
}
