/* SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * EbLineWriter: a bounded queue of bytes in front of a GOutputStream, written in order without blocking.
 *
 * The process must ignore SIGPIPE when the stream is a pipe.
 */
typedef struct _EbLineWriter EbLineWriter;

/** EbLineWriterFailed: the stream refused; called once, from the main context, never after eb_line_writer_free(). */
typedef void (*EbLineWriterFailed)(const GError *error, gpointer user_data);

/** eb_line_writer_new: (transfer full): @max_bytes: most that may wait, the write under way included. */
EbLineWriter *eb_line_writer_new(GOutputStream *stream, gsize max_bytes, EbLineWriterFailed failed, gpointer user_data);
/** eb_line_writer_free: drops the queue, stops the write under way and lets the stream go. */
void eb_line_writer_free(EbLineWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbLineWriter, eb_line_writer_free)

/** eb_line_writer_push: @bytes: (transfer full). Returns: FALSE when it does not fit; dropped without a word after an
 *  error or eb_line_writer_finish(). */
gboolean eb_line_writer_push(EbLineWriter *self, GBytes *bytes);
/** eb_line_writer_finish: closes the stream when the queue is empty. */
void eb_line_writer_finish(EbLineWriter *self);
gsize eb_line_writer_get_queued(EbLineWriter *self);

G_END_DECLS
