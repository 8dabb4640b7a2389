/* SPDX-License-Identifier: MIT */
#include "guest/lease.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const struct sockaddr_un ADDRESS = {.sun_family = AF_UNIX, .sun_path = LEASE_PATH};

int
lease_listen(void)
{
    if (mkdir(LEASE_DIR, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    unlink(LEASE_PATH);
    if (bind(fd, (const struct sockaddr *)&ADDRESS, sizeof ADDRESS) < 0 || listen(fd, 4) < 0) {
        int failure = -errno;
        close(fd);
        return failure;
    }
    return fd;
}

int
lease_accept(int listener)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return -EAGAIN;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != 0) {
        close(fd);
        return -EAGAIN;
    }
    if (send(fd, "", 1, MSG_NOSIGNAL) != 1) {
        close(fd);
        return -EAGAIN;
    }
    return fd;
}

int
lease_take(void)
{
    struct timeval patience = {.tv_sec = 5};
    char granted;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    int failure = 0;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *)&ADDRESS, sizeof ADDRESS) < 0)
        failure = -errno;
    else if (recv(fd, &granted, 1, 0) != 1)
        failure = -ECONNREFUSED;
    if (failure == 0)
        return fd;
    close(fd);
    return failure;
}
