/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_COALESCER_MAX_POSTS: waiting for a slow chat; beyond it what the agent said longest ago is left out and told. */
#define EB_COALESCER_MAX_POSTS 500
/** EB_COALESCER_MAX_BYTES: of their texts. */
#define EB_COALESCER_MAX_BYTES (4 * 1024 * 1024)

/**
 * EbCoalescer: hands the posts of one thread to a transport, one at a time and in order, shaped for it: pieces of a text
 * are joined while the transport is busy, or gathered until the text is whole when it takes no pieces; long texts are
 * split; a change of a post that was not sent yet replaces it; changes keep the transport's pace.
 */
#define EB_TYPE_COALESCER (eb_coalescer_get_type())
G_DECLARE_FINAL_TYPE(EbCoalescer, eb_coalescer, EB, COALESCER, GObject)

EbCoalescer *eb_coalescer_new(EbChatTransport *transport);
/** eb_coalescer_push: @post: (transfer full) */
void eb_coalescer_push(EbCoalescer *self, EbChatPost *post);
/** eb_coalescer_flush_async: done when everything pushed so far was given to the transport, or at the deadline. */
void eb_coalescer_flush_async(EbCoalescer *self, guint deadline_ms, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_coalescer_flush_finish(EbCoalescer *self, GAsyncResult *result, GError **error);
/** eb_coalescer_get_queued: posts that wait. */
guint eb_coalescer_get_queued(EbCoalescer *self);

G_END_DECLS
