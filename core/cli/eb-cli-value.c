/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-value.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* What ends a program at a terminal: it must not stay without echo. */
static const int ENDS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static volatile sig_atomic_t ended_by;

static void
on_end(int number)
{
    ended_by = number;
}

/* One line of a terminal without echo; -1 with errno. A signal that ends us does so when the echo is back. */
static ssize_t
read_hidden(char *line, gsize size)
{
    struct sigaction before[G_N_ELEMENTS(ENDS)], catch = {.sa_handler = on_end};
    struct termios shown, hidden;
    ssize_t got = -1;

    ended_by = 0;
    sigemptyset(&catch.sa_mask);
    for (guint i = 0; i < G_N_ELEMENTS(ENDS); i++)
        sigaction(ENDS[i], &catch, &before[i]);
    gboolean quiet = tcgetattr(STDIN_FILENO, &shown) == 0;
    if (quiet) {
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    while (ended_by == 0 && (got = read(STDIN_FILENO, line, size)) < 0 && errno == EINTR)
        continue;
    if (quiet)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    for (guint i = 0; i < G_N_ELEMENTS(ENDS); i++)
        sigaction(ENDS[i], &before[i], NULL);
    g_printerr("\n");
    if (ended_by != 0) {
        explicit_bzero(line, size);
        raise(ended_by);
    }
    return ended_by != 0 ? -1 : got;
}

static EbSecret *
read_typed(const char *name, GError **error)
{
    char line[4096];
    EbSecret *secret = NULL;

    g_printerr("value of %s (not shown): ", name);
    ssize_t got = read_hidden(line, sizeof line);
    /* A terminal hands on no more than this of one line, and drops the rest. */
    gboolean cut = got >= (ssize_t)sizeof line - 1;
    while (got > 0 && (line[got - 1] == '\n' || line[got - 1] == '\r'))
        got--;
    if (cut)
        eb_set_error(error, EB_ERROR_INVALID, "creds.long", "longer than a line of a terminal can be (--file FILE)");
    else if (got > 0)
        secret = eb_secret_new_take(name, line, (gsize)got, error);
    else
        eb_set_error(error, EB_ERROR_INVALID, "creds.empty", "an empty value");
    explicit_bzero(line, sizeof line);
    return secret;
}

/* Does not wait for the other end of a pipe, which may never come. */
static int
open_regular(const char *file, struct stat *info, GError **error)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    gboolean known = fd >= 0 && fstat(fd, info) == 0;

    if (known && S_ISREG(info->st_mode)) {
        if ((info->st_mode & 077) != 0)
            g_printerr("errand-box: others can read or change %s: remove it, or chmod 600 it\n", file);
        return fd;
    }
    eb_set_error(error, EB_ERROR_INVALID, "creds.file", "%s: %s", file,
                 known ? "not a regular file" : g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

EbSecret *
eb_cli_value_read(const char *name, const char *file, GError **error)
{
    EbSecret *secret;
    struct stat info;
    int fd;

    if (file == NULL && isatty(STDIN_FILENO) == 1)
        return read_typed(name, error);
    if (file == NULL)
        return eb_secret_new_from_fd(name, STDIN_FILENO, error);
    fd = open_regular(file, &info, error);
    if (fd < 0)
        return NULL;
    secret = eb_secret_new_from_fd(name, fd, error);
    close(fd);
    return secret;
}

char *
eb_cli_value_read_file(const char *file, gsize max_bytes, gsize *length, GError **error)
{
    struct stat info;
    int fd = open_regular(file, &info, error);
    char *text = NULL;
    gsize size = fd >= 0 ? (gsize)info.st_size : 0;
    ssize_t got = 0;

    *length = 0;
    if (fd < 0)
        return NULL;
    if (size > max_bytes) {
        eb_set_error(error, EB_ERROR_INVALID, "creds.file", "%s: longer than %" G_GSIZE_FORMAT " bytes", file,
                     max_bytes);
        close(fd);
        return NULL;
    }
    text = g_malloc0(size + 1);
    while (*length < size && ((got = read(fd, text + *length, size - *length)) > 0 || (got < 0 && errno == EINTR)))
        *length += got > 0 ? (gsize)got : 0;
    int failed = got < 0 ? errno : 0;
    close(fd);
    if (failed == 0)
        return text;
    eb_set_error(error, EB_ERROR_FAILED, "creds.file", "%s: %s", file, g_strerror(failed));
    explicit_bzero(text, size);
    g_free(text);
    return NULL;
}

const char *
eb_cli_value_doubt(const char *bytes, gsize length)
{
    if (length == 0)
        return NULL;
    char first = bytes[0], last = bytes[length - 1];
    if (g_ascii_isspace(first) || g_ascii_isspace(last))
        return "begins or ends with a blank, which is part of it";
    if (length > 1 && first == last && (first == '"' || first == '\''))
        return "has quotes around it, which are part of it";
    for (gsize i = 0; i < length; i++)
        if (g_ascii_iscntrl(bytes[i]))
            return "has several lines or control characters, which no header of a request takes";
    return NULL;
}
