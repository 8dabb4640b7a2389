/* SPDX-License-Identifier: MIT */
#include "eb-host-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eb-error.h"

/* "/var/lib/incus" as "var-lib-incus", "/" as "-"; what eb-host.h documents. */
static char *
flatten(const char *path)
{
    char *flat = g_strdup(path[0] == '/' ? path + 1 : path);

    if (*flat == '\0') {
        g_free(flat);
        return g_strdup("-");
    }
    return g_strdelimit(flat, "/", '-');
}

/* Content of /.eb/@kind/@name@suffix; NULL when the tree has none. */
static char *
read_answer(EbHost *self, const char *kind, const char *name, const char *suffix)
{
    g_autofree char *path = g_strconcat("/.eb/", kind, name != NULL ? "/" : "", name, NULL);
    g_autofree char *full = g_strconcat(path, suffix, NULL);

    return eb_host_read_any(self, full, NULL, NULL);
}

char *
eb_host_fixture_run(EbHost *self, const char *const *argv, int *exit_code, GError **error)
{
    g_autofree char *base = g_path_get_basename(argv[0]);
    g_autofree char *rest = g_strjoinv(" ", (char **)argv + 1);
    g_autofree char *with_arguments = g_strconcat(base, " ", rest, NULL);
    g_autofree char *code_text = NULL;
    const char *name = with_arguments;
    char *out;

    g_strdelimit(with_arguments, "/", '-');
    out = read_answer(self, "run", name, ".out");
    if (out == NULL) {
        name = base;
        out = read_answer(self, "run", name, ".out");
    }
    if (out == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "host.no-program", "cannot run %s: not installed", argv[0]);
        return NULL;
    }
    code_text = read_answer(self, "run", name, ".rc");
    *exit_code = code_text != NULL ? (int)g_ascii_strtoll(code_text, NULL, 10) : 0;
    return out;
}

gboolean
eb_host_fixture_connect_unix(EbHost *self, const char *path, GError **error)
{
    g_autofree char *flat = flatten(path);
    g_autofree char *answer = read_answer(self, "connect", flat, NULL);

    if (answer == NULL) {
        eb_host_set_errno_error(error, ENOENT, "connect to", path);
        return FALSE;
    }
    g_strstrip(answer);
    if (strcmp(answer, "ok") == 0)
        return TRUE;
    if (strcmp(answer, "denied") == 0)
        eb_host_set_errno_error(error, EACCES, "connect to", path);
    else if (strcmp(answer, "timeout") == 0)
        eb_host_set_errno_error(error, ETIMEDOUT, "connect to", path);
    else
        eb_host_set_errno_error(error, ECONNREFUSED, "connect to", path);
    return FALSE;
}

char *
eb_host_fixture_http_get(EbHost *self, const char *socket_path, const char *request, GError **error)
{
    g_autofree char *flat_socket = flatten(socket_path);
    g_autofree char *flat_request = flatten(request);
    g_autofree char *name = g_strconcat(flat_socket, "/", flat_request, NULL);
    g_autofree char *status_text = NULL;
    g_autofree char *body = NULL;
    gint64 status;

    /* A tree may say how the socket is without a word about HTTP. */
    if (!eb_host_fixture_connect_unix(self, socket_path, error)) {
        g_autofree char *dir = g_strconcat("/.eb/http/", flat_socket, NULL);
        int fd = eb_host_open(self, dir, O_PATH | O_DIRECTORY);

        if (fd < 0)
            return NULL;
        close(fd);
        if (error != NULL && !g_error_matches(*error, EB_ERROR, EB_ERROR_NOT_FOUND))
            return NULL;
        g_clear_error(error);
    }
    body = read_answer(self, "http", name, NULL);
    status_text = read_answer(self, "http", name, ".status");
    status = status_text != NULL ? g_ascii_strtoll(status_text, NULL, 10) : body != NULL ? 200 : 404;
    if (status >= 400) {
        eb_set_error(error,
                     status == 404   ? EB_ERROR_NOT_FOUND
                     : status == 403 ? EB_ERROR_DENIED
                                     : EB_ERROR_FAILED,
                     "host.http-status", "%s answered HTTP %d for %s", socket_path, (int)status, request);
        return NULL;
    }
    return body != NULL ? g_steal_pointer(&body) : g_strdup("");
}

gboolean
eb_host_fixture_stat(EbHost *self, const char *path, EbHostStat *result)
{
    g_autofree char *flat = flatten(path);
    g_autofree char *answer = read_answer(self, "mode", flat, NULL);
    guint mode = 0;
    guint uid = 0;
    guint gid = 0;

    if (answer == NULL || sscanf(answer, "%o %u %u", &mode, &uid, &gid) != 3)
        return FALSE;
    if ((mode & S_IFMT) == 0)
        mode |= result->mode & S_IFMT;
    result->mode = mode;
    result->uid = uid;
    result->gid = gid;
    return TRUE;
}

gboolean
eb_host_fixture_space(EbHost *self, const char *path, EbHostSpace *result, GError **error)
{
    g_autofree char *flat = flatten(path);
    g_autofree char *answer = read_answer(self, "statfs", flat, NULL);
    guint64 total = 0;
    guint64 available = 0;
    guint type = 0;

    if (answer == NULL ||
        sscanf(answer, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %x", &total, &available, &type) != 3) {
        eb_host_set_errno_error(error, ENOENT, "look at the file system of", path);
        return FALSE;
    }
    *result = (EbHostSpace){.total_bytes = total, .free_bytes = available, .type = type};
    return TRUE;
}

char *
eb_host_fixture_uname(EbHost *self)
{
    char *release = read_answer(self, "uname", NULL, NULL);

    return release != NULL ? g_strstrip(release) : g_strdup("0.0.0-fixture");
}
