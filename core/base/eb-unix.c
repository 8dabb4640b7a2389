/* SPDX-License-Identifier: MIT */
#include "core/base/eb-unix.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void
eb_fd_clear(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

static gpointer
close_in_thread(gpointer data)
{
    close(GPOINTER_TO_INT(data));
    return NULL;
}

void
eb_fd_close_aside(int *fd)
{
    GThread *thread;

    if (*fd < 0)
        return;
    thread = g_thread_try_new("eb-close", close_in_thread, GINT_TO_POINTER(*fd), NULL);
    if (thread == NULL) {
        eb_fd_clear(fd);
        return;
    }
    g_thread_unref(thread);
    *fd = -1;
}

int
eb_fd_steal(int *fd)
{
    int value = *fd;

    *fd = -1;
    return value;
}

static void
set_errno_error(GError **error, EbErrorCode code, const char *reason, const char *what, const char *object)
{
    int saved = errno;

    if (saved == EACCES || saved == EPERM)
        code = EB_ERROR_DENIED;
    else if (saved == ENOENT || saved == ENOTDIR)
        code = EB_ERROR_NOT_FOUND;
    eb_set_error(error, code, reason, "%s %s: %s", what, object, g_strerror(saved));
}

/*
 * sun_path holds 107 bytes and state directories can be longer, so a socket is named through a descriptor of its
 * directory. The same descriptor makes sure that nothing is looked up twice.
 */
static gboolean
address_below(int dir_fd, const char *name, struct sockaddr_un *address, GError **error)
{
    int length;

    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    length = g_snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", dir_fd, name);
    if ((gsize)length >= sizeof address->sun_path) {
        eb_set_error(error, EB_ERROR_INVALID, "unix.name-too-long", "socket name \"%s\" is too long", name);
        return FALSE;
    }
    return TRUE;
}

static int
open_directory_of(const char *path, char **name, GError **error)
{
    g_autofree char *directory = g_path_get_dirname(path);
    int fd;

    if (!g_path_is_absolute(path)) {
        eb_set_error(error, EB_ERROR_INVALID, "unix.path", "socket path \"%s\" is not absolute", path);
        return -1;
    }
    fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        set_errno_error(error, EB_ERROR_FAILED, "unix.directory", "cannot open", directory);
        return -1;
    }
    *name = g_path_get_basename(path);
    return fd;
}

static gboolean
unlink_socket_at(int dir_fd, const char *name, const char *path, GError **error)
{
    struct stat info;

    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return TRUE;
        set_errno_error(error, EB_ERROR_FAILED, "unix.stat", "cannot look at", path);
        return FALSE;
    }
    if (!S_ISSOCK(info.st_mode)) {
        eb_set_error(error, EB_ERROR_EXISTS, "unix.not-a-socket", "%s exists and is not a socket", path);
        return FALSE;
    }
    if (unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT) {
        set_errno_error(error, EB_ERROR_FAILED, "unix.unlink", "cannot remove", path);
        return FALSE;
    }
    return TRUE;
}

int
eb_unix_listen(const char *path, mode_t mode, int backlog, GError **error)
{
    g_autofree char *name = NULL;
    struct sockaddr_un address;
    eb_autofd int dir_fd = open_directory_of(path, &name, error);
    eb_autofd int fd = -1;
    mode_t old_mask;
    int bound, saved;

    if (dir_fd < 0 || !address_below(dir_fd, name, &address, error) || !unlink_socket_at(dir_fd, name, path, error))
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        set_errno_error(error, EB_ERROR_FAILED, "unix.socket", "cannot make a socket for", path);
        return -1;
    }
    /* The mask is the only way to give a socket file its mode at birth; a later chmod leaves a gap. */
    old_mask = umask((mode_t)(~mode & 0777));
    bound = bind(fd, (struct sockaddr *)&address, sizeof address);
    saved = errno;
    umask(old_mask);
    errno = saved;
    if (bound != 0) {
        set_errno_error(error, EB_ERROR_FAILED, "unix.bind", "cannot make the socket", path);
        return -1;
    }
    if (listen(fd, backlog) != 0) {
        set_errno_error(error, EB_ERROR_FAILED, "unix.listen", "cannot listen on", path);
        unlinkat(dir_fd, name, 0);
        return -1;
    }
    return eb_fd_steal(&fd);
}

gboolean
eb_unix_unlink(const char *path, GError **error)
{
    g_autofree char *name = NULL;
    g_autoptr(GError) local = NULL;
    eb_autofd int dir_fd = open_directory_of(path, &name, &local);

    if (dir_fd < 0) {
        if (g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND))
            return TRUE;
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    return unlink_socket_at(dir_fd, name, path, error);
}

int
eb_unix_connect(const char *path, GError **error)
{
    g_autofree char *name = NULL;
    struct sockaddr_un address;
    eb_autofd int dir_fd = open_directory_of(path, &name, error);
    eb_autofd int fd = -1;

    if (dir_fd < 0 || !address_below(dir_fd, name, &address, error))
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        set_errno_error(error, EB_ERROR_FAILED, "unix.socket", "cannot make a socket for", path);
        return -1;
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        set_errno_error(error, errno == EAGAIN ? EB_ERROR_BUSY : EB_ERROR_UNAVAILABLE, "unix.connect",
                        "cannot connect to", path);
        return -1;
    }
    return eb_fd_steal(&fd);
}

gboolean
eb_unix_pair(int type, int ends[2], GError **error)
{
    int made[2];

    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, made) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "unix.pair", "cannot make a socket pair: %s", g_strerror(errno));
        return FALSE;
    }
    ends[0] = made[0];
    ends[1] = made[1];
    return TRUE;
}

gssize
eb_unix_send(int fd, const void *bytes, gsize length, const int *fds, guint n_fds, GError **error)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * EB_UNIX_MAX_FDS)];
    } control = {0};
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    ssize_t sent;

    g_return_val_if_fail(n_fds <= EB_UNIX_MAX_FDS, -1);
    if (n_fds > 0) {
        struct cmsghdr *header;

        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * n_fds);
    }
    do {
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == ENOBUFS)
        eb_set_error(error, EB_ERROR_BUSY, "unix.would-block", "the socket's queue is full");
    else if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "unix.closed", "the other side is gone");
    else
        eb_set_error(error, EB_ERROR_FAILED, "unix.send", "cannot send: %s", g_strerror(errno));
    return -1;
}

/* Takes the descriptors out of @message; closes those there is no room for and says so. */
static gboolean
collect_fds(struct msghdr *message, int *fds, guint *n_fds)
{
    gboolean fits = TRUE;
    guint count = 0;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL; header = CMSG_NXTHDR(message, header)) {
        guint here;

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        here = (guint)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (guint i = 0; i < here; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
            if (fds != NULL && count < EB_UNIX_MAX_FDS) {
                fds[count++] = fd;
            } else {
                close(fd);
                fits = FALSE;
            }
        }
    }
    if (n_fds != NULL)
        *n_fds = count;
    return fits;
}

gssize
eb_unix_recv(int fd, void *buffer, gsize size, int *fds, guint *n_fds, GError **error)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * EB_UNIX_MAX_FDS)];
    } control;
    struct iovec vector = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got;
    gboolean fits;

    if (n_fds != NULL)
        *n_fds = 0;
    do {
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        if (errno == EAGAIN)
            eb_set_error(error, EB_ERROR_BUSY, "unix.would-block", "nothing to read");
        else if (errno == ECONNRESET)
            return 0;
        else
            eb_set_error(error, EB_ERROR_FAILED, "unix.receive", "cannot receive: %s", g_strerror(errno));
        return -1;
    }
    fits = collect_fds(&message, fds, n_fds);
    if (!fits || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        for (guint i = 0; n_fds != NULL && i < *n_fds; i++)
            close(fds[i]);
        if (n_fds != NULL)
            *n_fds = 0;
        eb_set_error(error, EB_ERROR_PROTOCOL, "unix.truncated", "a message does not fit its bounds");
        return -1;
    }
    return got;
}

gboolean
eb_unix_get_peer(int fd, EbUnixPeer *peer, GError **error)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 || length != sizeof credentials) {
        eb_set_error(error, EB_ERROR_FAILED, "unix.peer", "cannot tell who is connected: %s", g_strerror(errno));
        return FALSE;
    }
    peer->pid = credentials.pid;
    peer->uid = credentials.uid;
    peer->gid = credentials.gid;
    return TRUE;
}
