/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * IncusFlow: a stream with a gate, put between a connection and libsoup's websocket.
 *
 * libsoup reads a websocket for as long as there is something to read and queues without a bound what is sent. An
 * exec that writes 200 MB to a reader that has stopped would fill our memory. While the gate is shut the stream
 * says "would block", so the sender is held back by the kernel; and the bytes that left are counted, so that the
 * writer knows how much libsoup still has queued.
 */
#define INCUS_TYPE_FLOW (incus_flow_get_type())
G_DECLARE_FINAL_TYPE(IncusFlow, incus_flow, INCUS, FLOW, GIOStream)

/** INCUS_FLOW_BUFFER: bytes read ahead at most. */
#define INCUS_FLOW_BUFFER (64 * 1024)

/**
 * incus_flow_new: (transfer full): with its gate shut
 * @base: (transfer none): connection with pollable streams; closed with this stream
 * @early: (nullable): bytes that were read from @base already, at most INCUS_FLOW_BUFFER
 */
IncusFlow *incus_flow_new(GIOStream *base, const guint8 *early, gsize early_length);

/** incus_flow_set_open: shuts or opens the gate for reading. */
void incus_flow_set_open(IncusFlow *self, gboolean open);
gboolean incus_flow_get_open(IncusFlow *self);

/** IncusFlowWritten: called after @bytes went to the kernel. */
typedef void (*IncusFlowWritten)(gsize bytes, gpointer user_data);
/** incus_flow_set_written_func: @func: (nullable) */
void incus_flow_set_written_func(IncusFlow *self, IncusFlowWritten func, gpointer user_data);

/** incus_flow_get_last_read: monotonic µs of the last bytes that came in; a peer's pings count. */
gint64 incus_flow_get_last_read(IncusFlow *self);

G_END_DECLS
