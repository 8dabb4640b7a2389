/* SPDX-License-Identifier: MIT */
#include "core/base/eb-notify.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_MESSAGE 512
#define MAX_FD 1023

/* The line that s6 takes for "ready", on a descriptor that its notification-fd file names. */
static void
tell_s6(void)
{
    const char *text = g_getenv(EB_NOTIFY_FD_VARIABLE);
    struct stat info;
    guint64 fd;

    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 3, MAX_FD, &fd, NULL))
        return;
    /* Once: the number may mean another file afterwards. */
    g_unsetenv(EB_NOTIFY_FD_VARIABLE);
    if (fstat((int)fd, &info) < 0 || !S_ISFIFO(info.st_mode))
        return;
    if (write((int)fd, "\n", 1) != 1)
        g_debug("s6 cannot be told");
    close((int)fd);
}

static gboolean
make_address(const char *path, struct sockaddr_un *address, socklen_t *length)
{
    gsize path_length = strlen(path);

    if ((path[0] != '/' && path[0] != '@') || path_length < 2 || path_length >= sizeof address->sun_path)
        return FALSE;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, path_length);
    /* "@" stands for the NUL of an abstract name, which has no NUL at its end. */
    if (path[0] == '@')
        address->sun_path[0] = '\0';
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_length + (path[0] == '@' ? 0 : 1));
    return TRUE;
}

static void
send_state(const char *state)
{
    const char *path = g_getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    socklen_t length;
    int fd;

    if (path == NULL || !make_address(path, &address, &length))
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    /* A supervisor that does not read misses a message; it is not worth waiting for. */
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, length) < 0)
        g_debug("the supervisor cannot be told");
    close(fd);
}

void
eb_notify_ready(void)
{
    send_state("READY=1");
    tell_s6();
}

void
eb_notify_reloading(void)
{
    g_autofree char *state = g_strdup_printf("RELOADING=1\nMONOTONIC_USEC=%" G_GINT64_FORMAT, g_get_monotonic_time());
    send_state(state);
}

void
eb_notify_stopping(void)
{
    send_state("STOPPING=1");
}

void
eb_notify_extend(guint ms)
{
    g_autofree char *state = g_strdup_printf("EXTEND_TIMEOUT_USEC=%" G_GUINT64_FORMAT, (guint64)ms * 1000);
    send_state(state);
}

void
eb_notify_status(const char *format, ...)
{
    char text[MAX_MESSAGE];
    va_list args;

    va_start(args, format);
    g_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g_autofree char *clean = eb_log_escape(text, -1, MAX_MESSAGE - 16);
    g_autofree char *state = g_strconcat("STATUS=", clean, NULL);
    send_state(state);
}

static gboolean
report_alive(gpointer user_data)
{
    send_state("WATCHDOG=1");
    return G_SOURCE_CONTINUE;
}

GSource *
eb_notify_watchdog_source(void)
{
    const char *usec_text = g_getenv("WATCHDOG_USEC");
    const char *pid_text = g_getenv("WATCHDOG_PID");
    guint64 usec, pid;

    if (usec_text == NULL || !g_ascii_string_to_unsigned(usec_text, 10, 1000, G_MAXUINT64, &usec, NULL))
        return NULL;
    if (pid_text != NULL &&
        (!g_ascii_string_to_unsigned(pid_text, 10, 1, G_MAXINT32, &pid, NULL) || pid != (guint64)getpid()))
        return NULL;
    GSource *source = g_timeout_source_new((guint)CLAMP(usec / 2000, 1, 3600 * 1000));
    g_source_set_callback(source, report_alive, NULL, NULL);
    g_source_attach(source, NULL);
    return source;
}
