/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/**
 * EbHost: the host as doctor checks and setup see it.
 *
 * Absolute paths are looked up below a root, "/" on a real host, a fixture tree in tests, so every check can be
 * shown any host. In a fixture tree symlinks stay inside it. Besides files it may hold answers, in which PATH is the
 * absolute path without its first slash and every other slash as a dash ("/var/lib/incus" is "var-lib-incus", "/"
 * is "-"):
 *   .eb/run/NAME.out, NAME.rc       what running NAME prints (missing: not installed) and returns (missing: 0)
 *   .eb/run/NAME ARG ARG.out, .rc   the same for these arguments alone, slashes as dashes; looked up first
 *   .eb/http/PATH/REQUEST           body of a GET on the unix socket PATH; REQUEST "/1.0/profiles?recursion=1" is
 *                                   "1.0-profiles?recursion=1"; REQUEST.status holds a status other than 200
 *   .eb/connect/PATH                "ok", "refused", "denied" or "timeout"; missing: no such socket
 *   .eb/mode/PATH                   "MODE UID GID", octal mode, with type bits for what is no regular file
 *   .eb/statfs/PATH                 "TOTAL FREE TYPE": bytes, bytes, f_type in hex
 *   .eb/uname                       release of the kernel
 * Nothing here writes. Reads are bounded. Calls block for as long as their deadline says, so checks run in
 * threads of the doctor, never in the service's main loop.
 */
#define EB_TYPE_HOST (eb_host_get_type())
EB_API
G_DECLARE_FINAL_TYPE(EbHost, eb_host, EB, HOST, GObject)

/** eb_host_new_real: (transfer full): the machine itself. */
EB_API EbHost *eb_host_new_real(void);
/** eb_host_new_fixture: (transfer full): @root: directory of a fixture tree. */
EB_API EbHost *eb_host_new_fixture(const char *root);
EB_API gboolean eb_host_is_fixture(EbHost *self);

/** EB_HOST_MAX_READ: bytes a file or a program's output may have. */
#define EB_HOST_MAX_READ (1024 * 1024)

/**
 * eb_host_read_file:
 * @path: absolute
 *
 * Returns: (transfer full) (nullable): NUL-terminated content; EB_ERROR_NOT_FOUND, _DENIED, _QUOTA (too long).
 */
EB_API char *eb_host_read_file(EbHost *self, const char *path, gsize *length, GError **error);
/** eb_host_list_dir: (transfer full) (nullable) (array zero-terminated=1): sorted names, 10,000 at most. */
EB_API char **eb_host_list_dir(EbHost *self, const char *path, GError **error);
EB_API gboolean eb_host_exists(EbHost *self, const char *path);

/** EbHostStat: what eb_host_stat() tells. */
typedef struct {
    guint32 mode; /* st_mode */
    guint32 uid;
    guint32 gid;
    guint64 size; /* bytes */
    guint64 ino;
} EbHostStat;
/** eb_host_stat: follows no final symlink. */
EB_API gboolean eb_host_stat(EbHost *self, const char *path, EbHostStat *result, GError **error);

/** EbHostSpace: file system numbers of a path. */
typedef struct {
    guint64 total_bytes;
    guint64 free_bytes; /* for unprivileged users */
    guint32 type;       /* f_type of statfs(2) */
} EbHostSpace;
EB_API gboolean eb_host_space(EbHost *self, const char *path, EbHostSpace *result, GError **error);

/** eb_host_uname_release: (transfer full): e.g. "6.1.0-28-amd64". */
EB_API char *eb_host_uname_release(EbHost *self);

/**
 * eb_host_run:
 * @argv: (array zero-terminated=1): absolute program or a name searched in the system directories; no shell
 * @deadline_ms: the program is killed beyond it
 * @exit_code: (out): status, 128+N for signal N
 *
 * Returns: (transfer full) (nullable): stdout; NULL when it cannot run.
 */
EB_API char *eb_host_run(EbHost *self, const char *const *argv, guint deadline_ms, int *exit_code, GError **error);

/**
 * eb_host_connect_unix:
 *
 * Connects and closes. Returns FALSE with EB_ERROR_NOT_FOUND (no file), _UNAVAILABLE (nobody listens), _DENIED
 * or _TIMEOUT.
 */
EB_API gboolean eb_host_connect_unix(EbHost *self, const char *path, guint deadline_ms, GError **error);

/**
 * eb_host_unix_http_get:
 * @socket_path: absolute path of a unix socket that speaks HTTP
 * @request: path with query, e.g. "/1.0"
 *
 * Returns: (transfer full) (nullable): the body, at most EB_HOST_MAX_READ; an HTTP status >= 400 is an error.
 */
EB_API char *eb_host_unix_http_get(EbHost *self, const char *socket_path, const char *request, guint deadline_ms,
                                   GError **error);

G_END_DECLS
