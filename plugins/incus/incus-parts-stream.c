/* SPDX-License-Identifier: MIT */
#include "incus-parts-stream.h"

/* libsoup asks for 8 KiB at a time; a thread for each of them would make an upload ten times slower. */
#define READ_AHEAD (1024 * 1024)

struct _IncusPartsStream {
    GInputStream parent_instance;
    guint8 *ahead; /* (owned): READ_AHEAD bytes */
    gsize start;
    gsize end;
    GQueue parts; /* (element-type GInputStream) (owned): the first is being read */
};

G_DEFINE_FINAL_TYPE(IncusPartsStream, incus_parts_stream, G_TYPE_INPUT_STREAM)

static void
incus_parts_stream_finalize(GObject *object)
{
    IncusPartsStream *self = INCUS_PARTS_STREAM(object);
    g_queue_clear_full(&self->parts, g_object_unref);
    g_free(self->ahead);
    G_OBJECT_CLASS(incus_parts_stream_parent_class)->finalize(object);
}

static gssize
parts_stream_read(GInputStream *stream, void *buffer, gsize count, GCancellable *cancellable, GError **error)
{
    IncusPartsStream *self = INCUS_PARTS_STREAM(stream);
    while (!g_queue_is_empty(&self->parts)) {
        gssize got = g_input_stream_read(g_queue_peek_head(&self->parts), buffer, count, cancellable, error);
        if (got != 0)
            return got;
        g_object_unref(g_queue_pop_head(&self->parts));
    }
    return 0;
}

static gssize
take_ahead(IncusPartsStream *self, void *buffer, gsize count)
{
    gsize length = MIN(count, self->end - self->start);
    memcpy(buffer, self->ahead + self->start, length);
    self->start += length;
    return (gssize)length;
}

typedef struct {
    void *buffer;
    gsize count;
} Read;

static void
read_thread(GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
    IncusPartsStream *self = source;
    Read *request = task_data;
    GError *error = NULL;
    gssize got = parts_stream_read(G_INPUT_STREAM(self), self->ahead, READ_AHEAD, cancellable, &error);
    if (got < 0) {
        g_task_return_error(task, error);
        return;
    }
    self->start = 0;
    self->end = (gsize)got;
    g_task_return_int(task, take_ahead(self, request->buffer, request->count));
}

/* Files are no pollable streams: what is not read ahead yet is read in a thread. */
static void
parts_stream_read_async(GInputStream *stream, void *buffer, gsize count, int io_priority, GCancellable *cancellable,
                        GAsyncReadyCallback callback, gpointer user_data)
{
    IncusPartsStream *self = INCUS_PARTS_STREAM(stream);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_priority(task, io_priority);
    if (self->start < self->end) {
        g_task_return_int(task, take_ahead(self, buffer, count));
        return;
    }
    Read *request = g_new0(Read, 1);
    request->buffer = buffer;
    request->count = count;
    g_task_set_task_data(task, request, g_free);
    g_task_run_in_thread(task, read_thread);
}

static gssize
parts_stream_read_finish(GInputStream *stream, GAsyncResult *result, GError **error)
{
    return g_task_propagate_int(G_TASK(result), error);
}

static void
incus_parts_stream_class_init(IncusPartsStreamClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_parts_stream_finalize;
    G_INPUT_STREAM_CLASS(klass)->read_fn = parts_stream_read;
    G_INPUT_STREAM_CLASS(klass)->read_async = parts_stream_read_async;
    G_INPUT_STREAM_CLASS(klass)->read_finish = parts_stream_read_finish;
}

static void
incus_parts_stream_init(IncusPartsStream *self)
{
    g_queue_init(&self->parts);
    self->ahead = g_malloc(READ_AHEAD);
}

IncusPartsStream *
incus_parts_stream_new(void)
{
    return g_object_new(INCUS_TYPE_PARTS_STREAM, NULL);
}

void
incus_parts_stream_add(IncusPartsStream *self, GInputStream *part)
{
    g_queue_push_tail(&self->parts, part);
}

void
incus_parts_stream_add_text(IncusPartsStream *self, const char *text)
{
    incus_parts_stream_add(self, g_memory_input_stream_new_from_data(g_strdup(text), (gssize)strlen(text), g_free));
}
