/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_COALESCER_MAX_POSTS: waiting for a slow chat; beyond it what the agent said longest ago is left out and told. */
#define EB_COALESCER_MAX_POSTS 500
/** EB_COALESCER_MAX_BYTES: of their texts. */
#define EB_COALESCER_MAX_BYTES (4 * 1024 * 1024)
/** EB_COALESCER_MAX_FILE_BYTES: of their files. */
#define EB_COALESCER_MAX_FILE_BYTES (32 * 1024 * 1024)
/** EB_COALESCER_NOTIFY_UNITS: kept free of a post for each person it notifies: the transport writes whom. */
#define EB_COALESCER_NOTIFY_UNITS 32

/**
 * EbCoalescer: hands the posts of one thread to a transport, one at a time and in order, shaped for it. A transport that
 * takes pieces of texts (STREAM) or wants everything (STRUCTURED) gets posts as they are, pieces joined while it is busy.
 *
 * For others posts become messages for people: data is put into words; a text of the agent is one message that grows
 * (EDIT), at the transport's pace, split where it is long, with the rest in a file where it is very long (FILES);
 * consecutive tool calls are one message; a diff is cut to one; what is only of use to programs is left out. Changes of a
 * message wait for its pace and may be overtaken by new messages, never the other way round; the same text is never sent
 * twice, the last one always.
 */
#define EB_TYPE_COALESCER (eb_coalescer_get_type())
G_DECLARE_FINAL_TYPE(EbCoalescer, eb_coalescer, EB, COALESCER, GObject)

EbCoalescer *eb_coalescer_new(EbChatTransport *transport);
/** eb_coalescer_push: @post: (transfer full) */
void eb_coalescer_push(EbCoalescer *self, EbChatPost *post);
/**
 * eb_coalescer_flush_async: at the end of a turn or a session: done when everything pushed so far was given to the
 * transport, or at the deadline. What only told of waiting or of a start under way is taken away.
 */
void eb_coalescer_flush_async(EbCoalescer *self, guint deadline_ms, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_coalescer_flush_finish(EbCoalescer *self, GAsyncResult *result, GError **error);
/** eb_coalescer_get_queued: posts that wait. */
guint eb_coalescer_get_queued(EbCoalescer *self);

G_END_DECLS
