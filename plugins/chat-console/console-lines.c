/* SPDX-License-Identifier: MIT */
#include "console-lines.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <unistd.h>

struct _ConsoleLines {
    int fd;
    ConsoleLineFunc func;
    gpointer user_data;
    GSource *source;   /* (nullable) (owned): while wanted */
    GString *buffer;   /* what is not yet a line */
    gboolean skipping; /* the rest of a line that is too long */
    gboolean ended;
};

static gboolean readable(int fd, GIOCondition condition, gpointer data);

static void
stop(ConsoleLines *self)
{
    if (self->source == NULL)
        return;
    g_source_destroy(self->source);
    g_clear_pointer(&self->source, g_source_unref);
}

/* Hands over one line of the buffer. FALSE: there is none. */
static gboolean
take_line(ConsoleLines *self)
{
    char *newline = memchr(self->buffer->str, '\n', self->buffer->len);

    if (newline == NULL) {
        if (self->buffer->len > CONSOLE_LINES_MAX) {
            g_string_truncate(self->buffer, 0);
            self->skipping = TRUE;
        }
        return FALSE;
    }
    gsize length = (gsize)(newline - self->buffer->str);
    g_autofree char *line = g_strndup(self->buffer->str, length);
    g_string_erase(self->buffer, 0, (gssize)length + 1);
    g_strchomp(line);
    gboolean skipped = self->skipping;
    self->skipping = FALSE;
    if (!skipped)
        self->func(line, self->user_data);
    return TRUE;
}

static gboolean
readable(int fd, GIOCondition condition, gpointer data)
{
    ConsoleLines *self = data;
    char chunk[4096];
    ssize_t got = read(fd, chunk, sizeof chunk);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return G_SOURCE_CONTINUE;
    if (got <= 0) {
        self->ended = TRUE;
        stop(self);
        self->func(NULL, self->user_data);
        return G_SOURCE_REMOVE;
    }
    g_string_append_len(self->buffer, chunk, got);
    while (self->source != NULL && take_line(self))
        ;
    return self->source != NULL ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

ConsoleLines *
console_lines_new(int fd, ConsoleLineFunc func, gpointer user_data)
{
    ConsoleLines *self = g_new0(ConsoleLines, 1);

    self->fd = fd;
    self->func = func;
    self->user_data = user_data;
    self->buffer = g_string_new(NULL);
    return self;
}

void
console_lines_set_wanted(ConsoleLines *self, gboolean wanted)
{
    if (!wanted) {
        stop(self);
        return;
    }
    if (self->source != NULL)
        return;
    if (self->ended) {
        self->func(NULL, self->user_data);
        return;
    }
    self->source = g_unix_fd_source_new(self->fd, G_IO_IN | G_IO_HUP | G_IO_ERR);
    g_source_set_callback(self->source, G_SOURCE_FUNC(readable), self, NULL);
    g_source_attach(self->source, NULL);
    /* Lines that came together with an earlier answer. */
    while (self->source != NULL && take_line(self))
        ;
}

void
console_lines_free(ConsoleLines *self)
{
    stop(self);
    g_string_free(self->buffer, TRUE);
    g_free(self);
}
