/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** eb_fd_clear: closes *@fd unless it is -1, and sets it to -1; errno is kept. */
void eb_fd_clear(int *fd);
/**
 * eb_fd_close_aside: the same in a thread of its own, for a socket that strangers can connect to: what they sent along is
 * closed with it, and a descriptor of a TCP socket that lingers holds whoever closes it for as long as they said.
 */
void eb_fd_close_aside(int *fd);
/** eb_fd_steal: the value of *@fd, which becomes -1. */
int eb_fd_steal(int *fd);
/** eb_autofd: marks a local descriptor that is closed at the end of its scope. */
#define eb_autofd __attribute__((cleanup(eb_fd_clear)))

/** EB_UNIX_MAX_FDS: most descriptors one message may carry. */
#define EB_UNIX_MAX_FDS 8

/** EbUnixPeer: who is at the other end of a connected socket, as the kernel says. */
typedef struct {
    pid_t pid;
    uid_t uid;
    gid_t gid;
} EbUnixPeer;

/**
 * eb_unix_listen:
 * @path: absolute; may be longer than sun_path, its directory must exist
 * @mode: permission bits of the socket file, in force from its first moment
 * @backlog: length of the accept queue
 *
 * A socket file left by a dead run is replaced; anything else at @path is refused.
 *
 * Returns: a non-blocking, close-on-exec SOCK_STREAM listener, or -1.
 */
int eb_unix_listen(const char *path, mode_t mode, int backlog, GError **error);

/** eb_unix_unlink: removes the socket file @path; TRUE when it is gone, or was. Files of other kinds stay. */
gboolean eb_unix_unlink(const char *path, GError **error);

/** eb_unix_connect: a non-blocking, close-on-exec connection to @path (any length), or -1. Never waits. */
int eb_unix_connect(const char *path, GError **error);

/** eb_unix_pair: @type: SOCK_STREAM or SOCK_SEQPACKET; both ends non-blocking and close-on-exec. */
gboolean eb_unix_pair(int type, int ends[2], GError **error);

/**
 * eb_unix_send: sends @length bytes with @n_fds descriptors (which stay the caller's), without waiting.
 *
 * Returns: bytes sent; -1 with EB_ERROR_BUSY when it would wait, EB_ERROR_UNAVAILABLE when the peer is gone.
 */
gssize eb_unix_send(int fd, const void *bytes, gsize length, const int *fds, guint n_fds, GError **error);

/**
 * eb_unix_recv:
 * @fds: (out caller-allocates) (optional): room for EB_UNIX_MAX_FDS; what was received, close-on-exec
 * @n_fds: (out) (optional): descriptors received; must be given with @fds
 *
 * A message longer than @size, or with more descriptors than there is room for, is EB_ERROR_PROTOCOL and leaves no
 * descriptor open.
 *
 * Returns: bytes; 0 at end of file; -1 with EB_ERROR_BUSY when it would wait.
 */
gssize eb_unix_recv(int fd, void *buffer, gsize size, int *fds, guint *n_fds, GError **error);

/** eb_unix_get_peer: @peer: (out) */
gboolean eb_unix_get_peer(int fd, EbUnixPeer *peer, GError **error);

G_END_DECLS
