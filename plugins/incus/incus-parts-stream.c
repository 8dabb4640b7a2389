/* SPDX-License-Identifier: MIT */
#include "incus-parts-stream.h"

struct _IncusPartsStream {
    GInputStream parent_instance;
    GQueue parts; /* (element-type GInputStream) (owned): the first is being read */
};

G_DEFINE_FINAL_TYPE(IncusPartsStream, incus_parts_stream, G_TYPE_INPUT_STREAM)

static void
incus_parts_stream_finalize(GObject *object)
{
    IncusPartsStream *self = INCUS_PARTS_STREAM(object);
    g_queue_clear_full(&self->parts, g_object_unref);
    G_OBJECT_CLASS(incus_parts_stream_parent_class)->finalize(object);
}

/* Called in a worker thread by GInputStream's own read_async, since files are no pollable streams. */
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

static void
incus_parts_stream_class_init(IncusPartsStreamClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_parts_stream_finalize;
    G_INPUT_STREAM_CLASS(klass)->read_fn = parts_stream_read;
}

static void
incus_parts_stream_init(IncusPartsStream *self)
{
    g_queue_init(&self->parts);
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
