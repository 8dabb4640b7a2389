/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-client.h"
#include "incus-flow.h"

G_BEGIN_DECLS

/** INCUS_WEBSOCKET_MAX_PAYLOAD: longest message accepted; exec data comes in 32 KiB, events are small JSON. */
#define INCUS_WEBSOCKET_MAX_PAYLOAD (1024 * 1024)

/**
 * incus_websocket_open_async: a websocket to @path.
 *
 * The connection is made here and not by the SoupSession, because only so an IncusFlow fits in between:
 * soup_websocket_connection_get_io_stream() of the result is one.
 */
void incus_websocket_open_async(IncusClient *client, const char *path, IncusDeadline *deadline,
                                GAsyncReadyCallback callback, gpointer user_data);
/**
 * incus_websocket_open_finish: (transfer full) (nullable): nothing is read from it before incus_websocket_begin(), so
 * that no message comes before its handler is connected: an exec's output starts when its third socket is open, which
 * may be while the fourth is still on its way.
 */
SoupWebsocketConnection *incus_websocket_open_finish(GAsyncResult *result, GError **error);
/** incus_websocket_begin: the handlers are connected: messages may come. */
void incus_websocket_begin(SoupWebsocketConnection *connection);

/** INCUS_HANDSHAKE_MAX: longest header of an upgrade answer. */
#define INCUS_HANDSHAKE_MAX (16 * 1024)

/**
 * incus_handshake_parse: reads the answer to an upgrade request.
 * @accept: the value Sec-WebSocket-Accept must have
 *
 * Returns: bytes of the header when the upgrade was granted, 0 when more bytes are needed, -1 with @error.
 */
gssize incus_handshake_parse(const guint8 *bytes, gsize length, const char *accept, GError **error);
/** incus_handshake_accept: (transfer full): the value that belongs to @key. */
char *incus_handshake_accept(const char *key);

G_END_DECLS
