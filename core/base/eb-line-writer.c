/* SPDX-License-Identifier: MIT */
#include "core/base/eb-line-writer.h"

struct _EbLineWriter {
    guint ref_count; /* the owner's and the write's under way */
    GOutputStream *stream;
    GCancellable *cancellable;
    GQueue queue; /* (element-type GBytes): bounded by max_bytes */
    gsize queued;
    gsize max_bytes;
    GBytes *writing; /* (nullable) */
    EbLineWriterFailed failed;
    gpointer user_data;
    gboolean finishing;
    gboolean done; /* closed, failed or freed */
};

static void write_next(EbLineWriter *self);

EbLineWriter *
eb_line_writer_new(GOutputStream *stream, gsize max_bytes, EbLineWriterFailed failed, gpointer user_data)
{
    EbLineWriter *self = g_new0(EbLineWriter, 1);

    self->ref_count = 1;
    self->stream = g_object_ref(stream);
    self->cancellable = g_cancellable_new();
    g_queue_init(&self->queue);
    self->max_bytes = max_bytes;
    self->failed = failed;
    self->user_data = user_data;
    return self;
}

static void
release(EbLineWriter *self)
{
    if (--self->ref_count > 0)
        return;
    g_queue_clear_full(&self->queue, (GDestroyNotify)g_bytes_unref);
    g_clear_object(&self->stream);
    g_clear_object(&self->cancellable);
    g_free(self);
}

static void
drop_queue(EbLineWriter *self)
{
    self->done = TRUE;
    g_queue_clear_full(&self->queue, (GDestroyNotify)g_bytes_unref);
    self->queued = 0;
}

static void
close_stream(EbLineWriter *self)
{
    drop_queue(self);
    g_output_stream_close_async(self->stream, G_PRIORITY_DEFAULT, NULL, NULL, NULL);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLineWriter *self = user_data;
    g_autoptr(GError) error = NULL;
    const gboolean ok = g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, &error);

    if (!self->done) {
        self->queued -= g_bytes_get_size(self->writing);
        g_clear_pointer(&self->writing, g_bytes_unref);
        if (ok) {
            write_next(self);
        } else {
            drop_queue(self);
            if (self->failed != NULL)
                self->failed(error, self->user_data);
        }
    } else {
        g_clear_pointer(&self->writing, g_bytes_unref);
    }
    release(self);
}

static void
write_next(EbLineWriter *self)
{
    if (self->writing != NULL || self->done)
        return;
    self->writing = g_queue_pop_head(&self->queue);
    if (self->writing == NULL) {
        if (self->finishing)
            close_stream(self);
        return;
    }
    self->ref_count++;
    g_output_stream_write_all_async(self->stream, g_bytes_get_data(self->writing, NULL),
                                    g_bytes_get_size(self->writing), G_PRIORITY_DEFAULT, self->cancellable, on_written,
                                    self);
}

gboolean
eb_line_writer_push(EbLineWriter *self, GBytes *bytes)
{
    const gsize size = g_bytes_get_size(bytes);

    if (self->done || self->finishing || size == 0) {
        g_bytes_unref(bytes);
        return TRUE;
    }
    if (size > self->max_bytes - self->queued) {
        g_bytes_unref(bytes);
        return FALSE;
    }
    self->queued += size;
    g_queue_push_tail(&self->queue, bytes);
    write_next(self);
    return TRUE;
}

void
eb_line_writer_finish(EbLineWriter *self)
{
    if (self->finishing)
        return;
    self->finishing = TRUE;
    write_next(self);
}

gsize
eb_line_writer_get_queued(EbLineWriter *self)
{
    return self->queued;
}

void
eb_line_writer_free(EbLineWriter *self)
{
    if (self == NULL)
        return;
    self->failed = NULL;
    drop_queue(self);
    g_cancellable_cancel(self->cancellable);
    release(self);
}
