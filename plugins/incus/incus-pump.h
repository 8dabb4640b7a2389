/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-websocket.h"

G_BEGIN_DECLS

/** IncusPumpEnded: the stream is over: its last byte and its end of file were handed on. */
typedef void (*IncusPumpEnded)(gpointer user_data);

/**
 * IncusPumpOut: from a websocket of an exec to a local stream (stdout, stderr).
 *
 * What the reader has not taken waits in the kernel's socket buffer, then in a queue of at most
 * INCUS_PUMP_QUEUE_MAX, then the websocket is not read any more.
 */
typedef struct _IncusPumpOut IncusPumpOut;

/** INCUS_PUMP_QUEUE_MAX: bytes between the websocket and the local stream; one message fits beyond the gate. */
#define INCUS_PUMP_QUEUE_MAX (2 * INCUS_WEBSOCKET_MAX_PAYLOAD)
/** INCUS_PUMP_WINDOW: bytes given to a websocket and not yet with the kernel. */
#define INCUS_PUMP_WINDOW (256 * 1024)

/**
 * incus_pump_out_new: (transfer full) (nullable)
 * @connection: (transfer none)
 * @reader: (out) (transfer full): the caller's end
 */
IncusPumpOut *incus_pump_out_new(SoupWebsocketConnection *connection, GInputStream **reader, IncusPumpEnded ended,
                                 gpointer user_data, GError **error);
/** incus_pump_out_finish: no more will come (the process has ended): what is queued is handed on, then the end. */
void incus_pump_out_finish(IncusPumpOut *self);
/** incus_pump_out_is_idle: TRUE when nothing came for @us microseconds although it was asked for. */
gboolean incus_pump_out_is_idle(IncusPumpOut *self, gint64 us);
gboolean incus_pump_out_has_ended(IncusPumpOut *self);
void incus_pump_out_free(IncusPumpOut *self);

/** IncusPumpIn: from a local stream to a websocket of an exec (stdin). */
typedef struct _IncusPumpIn IncusPumpIn;

/**
 * incus_pump_in_new: (transfer full) (nullable)
 * @tty: end of file is sent as the terminal's own character
 * @writer: (out) (transfer full): the caller's end
 */
IncusPumpIn *incus_pump_in_new(SoupWebsocketConnection *connection, gboolean tty, GOutputStream **writer,
                               GError **error);
/** incus_pump_in_finish: the process has ended: the caller's writes fail from now on. */
void incus_pump_in_finish(IncusPumpIn *self);
void incus_pump_in_free(IncusPumpIn *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(IncusPumpOut, incus_pump_out_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(IncusPumpIn, incus_pump_in_free)

G_END_DECLS
