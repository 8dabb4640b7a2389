/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-body-stream.h"

struct _EbBodyStream {
    GInputStream parent_instance;
    EbFrontConn *conn; /* (unowned) (nullable) */
    GTask *reading;    /* (owned) (nullable) */
    char *buffer;      /* (unowned): of the pending read */
    gsize size;
    guint64 count;
    gboolean at_end;
};

G_DEFINE_FINAL_TYPE(EbBodyStream, eb_body_stream, G_TYPE_INPUT_STREAM)

void
eb_body_stream_wake(EbBodyStream *self)
{
    g_autoptr(GTask) task = NULL;
    EbBodyResult result = EB_BODY_BROKEN;
    gsize got = 0;

    if (self->reading == NULL)
        return;
    if (self->at_end)
        result = EB_BODY_END;
    else if (self->conn != NULL)
        result = eb_front_conn_read_body(self->conn, self->buffer, self->size, &got);
    if (result == EB_BODY_WAIT || self->reading == NULL)
        return;
    task = g_steal_pointer(&self->reading);
    if (g_task_return_error_if_cancelled(task))
        return;
    switch (result) {
    case EB_BODY_SOME:
        self->count += got;
        g_task_return_int(task, (gssize)got);
        break;
    case EB_BODY_END:
        self->at_end = TRUE;
        g_task_return_int(task, 0);
        break;
    case EB_BODY_WAIT:
    case EB_BODY_BROKEN:
    default:
        g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_CLOSED, "the request's body broke off");
        break;
    }
}

static void
body_stream_read_async(GInputStream *stream, void *buffer, gsize count, int priority, GCancellable *cancellable,
                       GAsyncReadyCallback callback, gpointer user_data)
{
    EbBodyStream *self = EB_BODY_STREAM(stream);

    /* GInputStream lets one read be pending at a time. */
    self->reading = g_task_new(self, cancellable, callback, user_data);
    g_task_set_priority(self->reading, priority);
    self->buffer = buffer;
    self->size = count;
    eb_body_stream_wake(self);
}

static gssize
body_stream_read_finish(GInputStream *stream, GAsyncResult *result, GError **error)
{
    return g_task_propagate_int(G_TASK(result), error);
}

static gssize
body_stream_read(GInputStream *stream, void *buffer, gsize count, GCancellable *cancellable, GError **error)
{
    g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "this stream is read asynchronously alone");
    return -1;
}

static gboolean
body_stream_close(GInputStream *stream, GCancellable *cancellable, GError **error)
{
    return TRUE;
}

static void
body_stream_close_async(GInputStream *stream, int priority, GCancellable *cancellable, GAsyncReadyCallback callback,
                        gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(stream, NULL, callback, user_data);

    g_task_return_boolean(task, TRUE);
}

static gboolean
body_stream_close_finish(GInputStream *stream, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
eb_body_stream_class_init(EbBodyStreamClass *klass)
{
    GInputStreamClass *stream_class = G_INPUT_STREAM_CLASS(klass);

    stream_class->read_fn = body_stream_read;
    stream_class->read_async = body_stream_read_async;
    stream_class->read_finish = body_stream_read_finish;
    stream_class->close_fn = body_stream_close;
    stream_class->close_async = body_stream_close_async;
    stream_class->close_finish = body_stream_close_finish;
}

static void
eb_body_stream_init(EbBodyStream *self)
{
}

EbBodyStream *
eb_body_stream_new(EbFrontConn *conn)
{
    EbBodyStream *self = g_object_new(EB_TYPE_BODY_STREAM, NULL);

    self->conn = conn;
    return self;
}

void
eb_body_stream_detach(EbBodyStream *self)
{
    self->conn = NULL;
    eb_body_stream_wake(self);
}

guint64
eb_body_stream_get_count(EbBodyStream *self)
{
    return self->count;
}

gboolean
eb_body_stream_is_at_end(EbBodyStream *self)
{
    return self->at_end;
}
