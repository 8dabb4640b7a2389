/* SPDX-License-Identifier: MIT */
#include "incus-pump.h"

#include <gio/gunixinputstream.h>
#include <gio/gunixoutputstream.h>
#include <sys/socket.h>

#define CHUNK (32 * 1024)
/* ws frame of a client: 2 bytes, extended length, 4 bytes mask */
#define FRAME_SMALL 6
#define FRAME_MEDIUM 8
#define FRAME_LARGE 14
/* what a terminal turns into end of file */
#define TTY_EOF "\x04"

/* Makes a connected pair: ours as a GSocket, the caller's as a descriptor. */
static GSocket *
make_pair(int *theirs, GError **error)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
        eb_set_error(error, EB_ERROR_QUOTA, "incus.no-fds", "no socket pair for an exec: %s", g_strerror(errno));
        return NULL;
    }
    GSocket *ours = g_socket_new_from_fd(fds[0], error);
    if (ours == NULL) {
        close(fds[0]);
        close(fds[1]);
        eb_error_convert(error, "incus.no-fds", "socket pair");
        return NULL;
    }
    g_socket_set_blocking(ours, FALSE);
    *theirs = fds[1];
    return ours;
}

static void
drop_source(GSource **source)
{
    if (*source != NULL)
        g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

/* --- out --- */

struct _IncusPumpOut {
    SoupWebsocketConnection *connection; /* (owned) */
    GSocket *socket;                     /* (nullable) (owned): NULL after the end */
    GQueue queue;                        /* (element-type GBytes), bounded by INCUS_PUMP_QUEUE_MAX */
    gsize queued;
    gsize offset; /* into the first of the queue */
    GSource *writable;
    gboolean finishing; /* no more will come */
    gboolean discard;   /* the reader is gone: the process must not block on it */
    gulong handlers[2];
    IncusPumpEnded ended;
    gpointer user_data;
};

static IncusFlow *
flow_of(SoupWebsocketConnection *connection)
{
    return INCUS_FLOW(soup_websocket_connection_get_io_stream(connection));
}

static void
out_clear_queue(IncusPumpOut *self)
{
    g_queue_clear_full(&self->queue, (GDestroyNotify)g_bytes_unref);
    self->queued = 0;
    self->offset = 0;
}

static void
out_end(IncusPumpOut *self)
{
    if (self->socket == NULL)
        return;
    drop_source(&self->writable);
    out_clear_queue(self);
    g_socket_close(self->socket, NULL);
    g_clear_object(&self->socket);
    self->ended(self->user_data);
}

static void out_flush(IncusPumpOut *self);

static gboolean
on_writable(GSocket *socket, GIOCondition condition, gpointer user_data)
{
    IncusPumpOut *self = user_data;
    drop_source(&self->writable);
    out_flush(self);
    return G_SOURCE_REMOVE;
}

/* Hands on as much as the reader takes now; the rest shuts the gate. */
static void
out_flush(IncusPumpOut *self)
{
    while (!g_queue_is_empty(&self->queue)) {
        g_autoptr(GError) error = NULL;
        gsize length;
        const char *data = g_bytes_get_data(g_queue_peek_head(&self->queue), &length);
        gssize sent = self->discard
                          ? (gssize)(length - self->offset)
                          : g_socket_send(self->socket, data + self->offset, length - self->offset, NULL, &error);
        if (sent < 0 && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK)) {
            incus_flow_set_open(flow_of(self->connection), FALSE);
            self->writable = g_socket_create_source(self->socket, G_IO_OUT, NULL);
            g_source_set_callback(self->writable, G_SOURCE_FUNC(on_writable), self, NULL);
            g_source_attach(self->writable, g_main_context_get_thread_default());
            return;
        }
        if (sent < 0) {
            self->discard = TRUE;
            continue;
        }
        self->offset += (gsize)sent;
        self->queued -= (gsize)sent;
        if (self->offset == length) {
            g_bytes_unref(g_queue_pop_head(&self->queue));
            self->offset = 0;
        }
    }
    incus_flow_set_open(flow_of(self->connection), TRUE);
    if (self->finishing)
        out_end(self);
}

static void
on_message(SoupWebsocketConnection *connection, int type, GBytes *message, gpointer user_data)
{
    IncusPumpOut *self = user_data;
    if (self->socket == NULL || self->finishing)
        return;
    if (type == SOUP_WEBSOCKET_DATA_TEXT) {
        incus_pump_out_finish(self);
        return;
    }
    if (g_bytes_get_size(message) == 0)
        return;
    if (self->queued + g_bytes_get_size(message) > INCUS_PUMP_QUEUE_MAX) {
        /* Cannot happen behind the gate; a peer that manages it anyway loses the stream, not our memory. */
        out_end(self);
        return;
    }
    gboolean idle = g_queue_is_empty(&self->queue);
    g_queue_push_tail(&self->queue, g_bytes_ref(message));
    self->queued += g_bytes_get_size(message);
    if (idle)
        out_flush(self);
}

static void
on_out_closed(SoupWebsocketConnection *connection, gpointer user_data)
{
    incus_pump_out_finish(user_data);
}

IncusPumpOut *
incus_pump_out_new(SoupWebsocketConnection *connection, GInputStream **reader, IncusPumpEnded ended, gpointer user_data,
                   GError **error)
{
    int theirs;
    g_autoptr(GSocket) ours = make_pair(&theirs, error);
    if (ours == NULL)
        return NULL;
    IncusPumpOut *self = g_new0(IncusPumpOut, 1);
    self->connection = g_object_ref(connection);
    self->socket = g_steal_pointer(&ours);
    g_queue_init(&self->queue);
    self->ended = ended;
    self->user_data = user_data;
    self->handlers[0] = g_signal_connect(connection, "message", G_CALLBACK(on_message), self);
    self->handlers[1] = g_signal_connect(connection, "closed", G_CALLBACK(on_out_closed), self);
    *reader = g_unix_input_stream_new(theirs, TRUE);
    return self;
}

void
incus_pump_out_finish(IncusPumpOut *self)
{
    if (self->socket == NULL)
        return;
    self->finishing = TRUE;
    if (g_queue_is_empty(&self->queue))
        out_end(self);
}

gboolean
incus_pump_out_is_idle(IncusPumpOut *self, gint64 us)
{
    IncusFlow *flow = flow_of(self->connection);
    return incus_flow_get_open(flow) && g_get_monotonic_time() - incus_flow_get_last_read(flow) >= us;
}

gboolean
incus_pump_out_has_ended(IncusPumpOut *self)
{
    return self->socket == NULL;
}

void
incus_pump_out_free(IncusPumpOut *self)
{
    if (self == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(self->handlers); i++)
        g_signal_handler_disconnect(self->connection, self->handlers[i]);
    drop_source(&self->writable);
    out_clear_queue(self);
    if (self->socket != NULL)
        g_socket_close(self->socket, NULL);
    g_clear_object(&self->socket);
    g_clear_object(&self->connection);
    g_free(self);
}

/* --- in --- */

struct _IncusPumpIn {
    SoupWebsocketConnection *connection; /* (owned) */
    GSocket *socket;                     /* (nullable) (owned) */
    gboolean tty;
    gsize outstanding; /* bytes given to libsoup that are not with the kernel yet */
    GSource *readable;
};

static void in_listen(IncusPumpIn *self);

static void
in_close(IncusPumpIn *self)
{
    drop_source(&self->readable);
    if (self->socket != NULL)
        g_socket_close(self->socket, NULL);
    g_clear_object(&self->socket);
}

static void
in_send(IncusPumpIn *self, SoupWebsocketDataType type, const void *data, gsize length)
{
    gsize frame = length < 126 ? FRAME_SMALL : length < 65536 ? FRAME_MEDIUM : FRAME_LARGE;
    g_autoptr(GBytes) bytes = g_bytes_new(data, length);
    self->outstanding += length + frame;
    soup_websocket_connection_send_message(self->connection, type, bytes);
}

static gboolean
on_readable(GSocket *socket, GIOCondition condition, gpointer user_data)
{
    IncusPumpIn *self = user_data;
    g_autoptr(GError) error = NULL;
    char buffer[CHUNK];
    if (soup_websocket_connection_get_state(self->connection) != SOUP_WEBSOCKET_STATE_OPEN) {
        in_close(self);
        return G_SOURCE_REMOVE;
    }
    gssize got = g_socket_receive(socket, buffer, sizeof buffer, NULL, &error);
    if (got < 0 && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
        return G_SOURCE_CONTINUE;
    if (got <= 0) {
        if (self->tty)
            in_send(self, SOUP_WEBSOCKET_DATA_BINARY, TTY_EOF, 1);
        else
            in_send(self, SOUP_WEBSOCKET_DATA_TEXT, "", 0);
        in_close(self);
        return G_SOURCE_REMOVE;
    }
    in_send(self, SOUP_WEBSOCKET_DATA_BINARY, buffer, (gsize)got);
    if (self->outstanding < INCUS_PUMP_WINDOW)
        return G_SOURCE_CONTINUE;
    drop_source(&self->readable);
    return G_SOURCE_REMOVE;
}

static void
in_listen(IncusPumpIn *self)
{
    self->readable = g_socket_create_source(self->socket, G_IO_IN, NULL);
    g_source_set_callback(self->readable, G_SOURCE_FUNC(on_readable), self, NULL);
    g_source_attach(self->readable, g_main_context_get_thread_default());
}

/* Pongs of libsoup's own count as well, so the estimate errs low while it is full and is exact when it is empty. */
static void
on_in_written(gsize bytes, gpointer user_data)
{
    IncusPumpIn *self = user_data;
    self->outstanding -= MIN(bytes, self->outstanding);
    if (self->socket != NULL && self->readable == NULL && self->outstanding < INCUS_PUMP_WINDOW / 2)
        in_listen(self);
}

IncusPumpIn *
incus_pump_in_new(SoupWebsocketConnection *connection, gboolean tty, GOutputStream **writer, GError **error)
{
    int theirs;
    g_autoptr(GSocket) ours = make_pair(&theirs, error);
    if (ours == NULL)
        return NULL;
    IncusPumpIn *self = g_new0(IncusPumpIn, 1);
    self->connection = g_object_ref(connection);
    self->socket = g_steal_pointer(&ours);
    self->tty = tty;
    incus_flow_set_written_func(flow_of(connection), on_in_written, self);
    in_listen(self);
    *writer = g_unix_output_stream_new(theirs, TRUE);
    return self;
}

void
incus_pump_in_finish(IncusPumpIn *self)
{
    in_close(self);
}

void
incus_pump_in_free(IncusPumpIn *self)
{
    if (self == NULL)
        return;
    incus_flow_set_written_func(flow_of(self->connection), NULL, NULL);
    in_close(self);
    g_clear_object(&self->connection);
    g_free(self);
}
