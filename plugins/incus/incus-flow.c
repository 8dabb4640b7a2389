/* SPDX-License-Identifier: MIT */
#include "incus-flow.h"

/* --- the two halves --- */

#define INCUS_TYPE_FLOW_INPUT (incus_flow_input_get_type())
G_DECLARE_FINAL_TYPE(IncusFlowInput, incus_flow_input, INCUS, FLOW_INPUT, GInputStream)
#define INCUS_TYPE_FLOW_OUTPUT (incus_flow_output_get_type())
G_DECLARE_FINAL_TYPE(IncusFlowOutput, incus_flow_output, INCUS, FLOW_OUTPUT, GOutputStream)

struct _IncusFlowInput {
    GInputStream parent_instance;
    GPollableInputStream *base; /* (owned) */
    guint8 *buffer;             /* (owned): INCUS_FLOW_BUFFER bytes */
    gsize start;
    gsize end;
    gboolean open;
    GSource *gate; /* (nullable) (owned): waits for the gate to open */
    gint64 last_read_us;
};

struct _IncusFlowOutput {
    GOutputStream parent_instance;
    GPollableOutputStream *base; /* (owned) */
    IncusFlowWritten func;
    gpointer user_data;
};

struct _IncusFlow {
    GIOStream parent_instance;
    GIOStream *base; /* (owned) */
    IncusFlowInput *input;
    IncusFlowOutput *output;
};

static void flow_input_pollable_init(GPollableInputStreamInterface *iface);
static void flow_output_pollable_init(GPollableOutputStreamInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(IncusFlowInput, incus_flow_input, G_TYPE_INPUT_STREAM,
                              G_IMPLEMENT_INTERFACE(G_TYPE_POLLABLE_INPUT_STREAM, flow_input_pollable_init))
G_DEFINE_FINAL_TYPE_WITH_CODE(IncusFlowOutput, incus_flow_output, G_TYPE_OUTPUT_STREAM,
                              G_IMPLEMENT_INTERFACE(G_TYPE_POLLABLE_OUTPUT_STREAM, flow_output_pollable_init))
G_DEFINE_FINAL_TYPE(IncusFlow, incus_flow, G_TYPE_IO_STREAM)

/* --- input --- */

/* A source without work of its own: it makes its parent source ready when its ready time is set. */
static gboolean
gate_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    g_source_set_ready_time(source, -1);
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs gate_funcs = {.dispatch = gate_dispatch};

static gssize
flow_input_take(IncusFlowInput *self, void *target, gsize count)
{
    gsize length = MIN(count, self->end - self->start);
    memcpy(target, self->buffer + self->start, length);
    self->start += length;
    return (gssize)length;
}

static gssize
flow_input_read_nonblocking(GPollableInputStream *stream, void *target, gsize count, GError **error)
{
    IncusFlowInput *self = INCUS_FLOW_INPUT(stream);
    if (!self->open) {
        g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK, "the gate is shut");
        return -1;
    }
    if (self->start == self->end) {
        gssize got = g_pollable_input_stream_read_nonblocking(self->base, self->buffer, INCUS_FLOW_BUFFER, NULL, error);
        if (got <= 0)
            return got;
        self->start = 0;
        self->end = (gsize)got;
        self->last_read_us = g_get_monotonic_time();
    }
    return flow_input_take(self, target, count);
}

static gssize
flow_input_read(GInputStream *stream, void *target, gsize count, GCancellable *cancellable, GError **error)
{
    IncusFlowInput *self = INCUS_FLOW_INPUT(stream);
    if (self->start < self->end)
        return flow_input_take(self, target, count);
    return g_input_stream_read(G_INPUT_STREAM(self->base), target, count, cancellable, error);
}

static gboolean
flow_input_is_readable(GPollableInputStream *stream)
{
    IncusFlowInput *self = INCUS_FLOW_INPUT(stream);
    return self->open && (self->start < self->end || g_pollable_input_stream_is_readable(self->base));
}

static GSource *
flow_input_create_source(GPollableInputStream *stream, GCancellable *cancellable)
{
    IncusFlowInput *self = INCUS_FLOW_INPUT(stream);
    GSource *source = g_pollable_source_new_full(self, NULL, cancellable);
    if (self->open && self->start == self->end) {
        g_autoptr(GSource) child = g_pollable_input_stream_create_source(self->base, cancellable);
        g_source_set_dummy_callback(child);
        g_source_add_child_source(source, child);
        return source;
    }
    g_autoptr(GSource) gate = g_source_new(&gate_funcs, sizeof(GSource));
    if (self->open)
        g_source_set_ready_time(gate, 0);
    g_clear_pointer(&self->gate, g_source_unref);
    self->gate = g_source_ref(gate);
    g_source_add_child_source(source, gate);
    return source;
}

static void
flow_input_pollable_init(GPollableInputStreamInterface *iface)
{
    iface->is_readable = flow_input_is_readable;
    iface->create_source = flow_input_create_source;
    iface->read_nonblocking = flow_input_read_nonblocking;
}

static void
incus_flow_input_finalize(GObject *object)
{
    IncusFlowInput *self = INCUS_FLOW_INPUT(object);
    g_clear_object(&self->base);
    g_clear_pointer(&self->gate, g_source_unref);
    g_free(self->buffer);
    G_OBJECT_CLASS(incus_flow_input_parent_class)->finalize(object);
}

static gboolean
flow_input_close(GInputStream *stream, GCancellable *cancellable, GError **error)
{
    return TRUE; /* the connection is closed as a whole, by the IncusFlow */
}

static void
incus_flow_input_class_init(IncusFlowInputClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_flow_input_finalize;
    G_INPUT_STREAM_CLASS(klass)->read_fn = flow_input_read;
    G_INPUT_STREAM_CLASS(klass)->close_fn = flow_input_close;
}

static void
incus_flow_input_init(IncusFlowInput *self)
{
    self->buffer = g_malloc(INCUS_FLOW_BUFFER);
    self->last_read_us = g_get_monotonic_time();
}

/* --- output --- */

/* A peer that has closed may have sent much that is still to be read: incusd ends an exec by closing its sockets, while
 * libsoup still answers a ping that came before the output, and would throw the connection away when that answer cannot
 * be sent. So bytes for a closed peer are dropped here; that it is gone shows when all of its bytes are read. */
static gssize
flow_output_written(IncusFlowOutput *self, gssize written, gsize count, GError **error)
{
    if (written < 0 && !g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK) &&
        !g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_clear_error(error);
        written = (gssize)count;
    }
    if (written > 0 && self->func != NULL)
        self->func((gsize)written, self->user_data);
    return written;
}

static gssize
flow_output_write_nonblocking(GPollableOutputStream *stream, const void *data, gsize count, GError **error)
{
    IncusFlowOutput *self = INCUS_FLOW_OUTPUT(stream);
    GError *local = NULL;
    gssize written = g_pollable_output_stream_write_nonblocking(self->base, data, count, NULL, &local);
    written = flow_output_written(self, written, count, &local);
    if (local != NULL)
        g_propagate_error(error, local);
    return written;
}

static gssize
flow_output_write(GOutputStream *stream, const void *data, gsize count, GCancellable *cancellable, GError **error)
{
    IncusFlowOutput *self = INCUS_FLOW_OUTPUT(stream);
    GError *local = NULL;
    gssize written = g_output_stream_write(G_OUTPUT_STREAM(self->base), data, count, cancellable, &local);
    written = flow_output_written(self, written, count, &local);
    if (local != NULL)
        g_propagate_error(error, local);
    return written;
}

static gboolean
flow_output_is_writable(GPollableOutputStream *stream)
{
    return g_pollable_output_stream_is_writable(INCUS_FLOW_OUTPUT(stream)->base);
}

static GSource *
flow_output_create_source(GPollableOutputStream *stream, GCancellable *cancellable)
{
    IncusFlowOutput *self = INCUS_FLOW_OUTPUT(stream);
    g_autoptr(GSource) child = g_pollable_output_stream_create_source(self->base, cancellable);
    return g_pollable_source_new_full(self, child, cancellable);
}

static void
flow_output_pollable_init(GPollableOutputStreamInterface *iface)
{
    iface->is_writable = flow_output_is_writable;
    iface->create_source = flow_output_create_source;
    iface->write_nonblocking = flow_output_write_nonblocking;
}

static gboolean
flow_output_close(GOutputStream *stream, GCancellable *cancellable, GError **error)
{
    return TRUE;
}

static void
incus_flow_output_finalize(GObject *object)
{
    IncusFlowOutput *self = INCUS_FLOW_OUTPUT(object);
    g_clear_object(&self->base);
    G_OBJECT_CLASS(incus_flow_output_parent_class)->finalize(object);
}

static void
incus_flow_output_class_init(IncusFlowOutputClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_flow_output_finalize;
    G_OUTPUT_STREAM_CLASS(klass)->write_fn = flow_output_write;
    G_OUTPUT_STREAM_CLASS(klass)->close_fn = flow_output_close;
}

static void
incus_flow_output_init(IncusFlowOutput *self)
{
}

/* --- both --- */

static GInputStream *
flow_get_input_stream(GIOStream *stream)
{
    return G_INPUT_STREAM(INCUS_FLOW(stream)->input);
}

static GOutputStream *
flow_get_output_stream(GIOStream *stream)
{
    return G_OUTPUT_STREAM(INCUS_FLOW(stream)->output);
}

static gboolean
flow_close(GIOStream *stream, GCancellable *cancellable, GError **error)
{
    return g_io_stream_close(INCUS_FLOW(stream)->base, cancellable, error);
}

static void
on_base_closed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    if (g_io_stream_close_finish(G_IO_STREAM(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

/* GIOStream's own way would close in a thread; a TLS goodbye is written without one by the base. */
static void
flow_close_async(GIOStream *stream, int io_priority, GCancellable *cancellable, GAsyncReadyCallback callback,
                 gpointer user_data)
{
    IncusFlow *self = INCUS_FLOW(stream);
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_io_stream_close_async(self->base, io_priority, cancellable, on_base_closed, task);
}

static gboolean
flow_close_finish(GIOStream *stream, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
incus_flow_finalize(GObject *object)
{
    IncusFlow *self = INCUS_FLOW(object);
    g_clear_object(&self->input);
    g_clear_object(&self->output);
    g_clear_object(&self->base);
    G_OBJECT_CLASS(incus_flow_parent_class)->finalize(object);
}

static void
incus_flow_class_init(IncusFlowClass *klass)
{
    GIOStreamClass *stream_class = G_IO_STREAM_CLASS(klass);
    G_OBJECT_CLASS(klass)->finalize = incus_flow_finalize;
    stream_class->get_input_stream = flow_get_input_stream;
    stream_class->get_output_stream = flow_get_output_stream;
    stream_class->close_fn = flow_close;
    stream_class->close_async = flow_close_async;
    stream_class->close_finish = flow_close_finish;
}

static void
incus_flow_init(IncusFlow *self)
{
    self->input = g_object_new(INCUS_TYPE_FLOW_INPUT, NULL);
    self->output = g_object_new(INCUS_TYPE_FLOW_OUTPUT, NULL);
}

IncusFlow *
incus_flow_new(GIOStream *base, const guint8 *early, gsize early_length)
{
    IncusFlow *self = g_object_new(INCUS_TYPE_FLOW, NULL);
    self->base = g_object_ref(base);
    self->input->base = G_POLLABLE_INPUT_STREAM(g_object_ref(g_io_stream_get_input_stream(base)));
    self->output->base = G_POLLABLE_OUTPUT_STREAM(g_object_ref(g_io_stream_get_output_stream(base)));
    self->input->end = MIN(early_length, INCUS_FLOW_BUFFER);
    if (self->input->end > 0)
        memcpy(self->input->buffer, early, self->input->end);
    return self;
}

void
incus_flow_set_open(IncusFlow *self, gboolean open)
{
    self->input->open = open;
    if (open && self->input->gate != NULL)
        g_source_set_ready_time(self->input->gate, 0);
}

gboolean
incus_flow_get_open(IncusFlow *self)
{
    return self->input->open;
}

void
incus_flow_set_written_func(IncusFlow *self, IncusFlowWritten func, gpointer user_data)
{
    self->output->func = func;
    self->output->user_data = user_data;
}

gint64
incus_flow_get_last_read(IncusFlow *self)
{
    return self->input->last_read_us;
}
