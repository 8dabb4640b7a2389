/* SPDX-License-Identifier: MIT */
/*
 * incusd-keeper FIXTURE DIR: starts the private incusd of DIR, says "ready" to everybody who connects to DIR.keeper, and
 * stops it some seconds after the last connection is gone. Connections end with their processes, so a test that
 * crashes or is killed leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Long enough for the next test program to start. */
#define LINGER_MS 8000
#define MAX_CLIENTS 64

static char answer[600];

static int
listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, strlen(path) + 1);
    unlink(path);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, MAX_CLIENTS) < 0)
        return -1;
    return fd;
}

/* Runs the fixture; its stderr goes into what is answered. */
static int
run_fixture(const char *fixture, const char *action, const char *dir, char *text, size_t size)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        execl(fixture, fixture, action, dir, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    int status = 1;
    waitpid(pid, &status, 0);
    /* Daemons inherit no end of it (they have their own logs), so this ends. */
    ssize_t got = read(fds[0], text, size - 1);
    close(fds[0]);
    text[got > 0 ? got : 0] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void
tell(int fd)
{
    size_t length = strlen(answer);
    if (send(fd, answer, length, MSG_NOSIGNAL) != (ssize_t)length)
        fprintf(stderr, "incusd-keeper: a client is gone already\n");
}

static void
serve(int listener)
{
    struct pollfd fds[MAX_CLIENTS + 1] = {{.fd = listener, .events = POLLIN}};
    nfds_t n = 1;
    for (;;) {
        int ready = poll(fds, n, n == 1 ? LINGER_MS : -1);
        if (ready == 0)
            return;
        if (ready < 0 && errno != EINTR)
            return;
        for (nfds_t i = n; i-- > 1;) {
            if (fds[i].revents == 0)
                continue;
            close(fds[i].fd);
            fds[i] = fds[--n];
        }
        if ((fds[0].revents & POLLIN) == 0)
            continue;
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            continue;
        if (n == MAX_CLIENTS + 1) {
            close(client);
            continue;
        }
        tell(client);
        fds[n++] = (struct pollfd){.fd = client, .events = POLLIN | POLLRDHUP};
    }
}

/* Whoever holds the lock waits for this keeper's end and starts the next one, which clears up in its turn. */
static void
remove_locks(const char *dir, const char *life_path)
{
    char path[512];
    snprintf(path, sizeof path, "%s.lock", dir);
    int lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
        return;
    unlink(life_path);
    unlink(path);
}

int
main(int argc, char **argv)
{
    char path[512], life_path[512], text[500];
    if (argc != 3 || strlen(argv[2]) > 80)
        return 2;
    setsid();
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s.keeper", argv[2]);
    snprintf(life_path, sizeof life_path, "%s.life", argv[2]);
    int life = open(life_path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (life < 0 || flock(life, LOCK_EX) < 0)
        return 1;
    int listener = listen_at(path);
    if (listener < 0)
        return 1;
    /* A run that was killed as a whole may have left a daemon. */
    if (access(argv[2], F_OK) == 0)
        run_fixture(argv[1], "stop", argv[2], text, sizeof text);
    int code = run_fixture(argv[1], "start", argv[2], text, sizeof text);
    if (code == 0)
        snprintf(answer, sizeof answer, "ready\n");
    else
        snprintf(answer, sizeof answer, "%s %s\n", code == 77 ? "skip" : "failed", text);
    serve(listener);
    close(listener);
    unlink(path);
    run_fixture(argv[1], "stop", argv[2], text, sizeof text);
    remove_locks(argv[2], life_path);
    return 0;
}
