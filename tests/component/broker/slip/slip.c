/* SPDX-License-Identifier: MIT */
/*
 * The broker itself, linked so that it makes a system call it has no use for when its second connection comes: what an
 * update of a library can do to it.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

int
__wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    static int accepted;
    int peer = __real_accept4(fd, address, length, flags);

    if (peer >= 0 && ++accepted == 2)
        syscall(SYS_getpriority, 0, 0);
    return peer;
}
