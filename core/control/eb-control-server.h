/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/control/eb-control.h"

G_BEGIN_DECLS

/**
 * EbControlServer: the listening side. It knows who may connect and how many; what is asked is somebody else's business.
 *
 * Signals:
 *   "request" (EbJsonrpc *peer, const char *method, JsonObject *params (nullable), JsonNode *id): as of EbJsonrpc: TRUE
 *       = answered now or later.
 *   "gone" (EbJsonrpc *peer): the client left.
 */
#define EB_TYPE_CONTROL_SERVER (eb_control_server_get_type())
G_DECLARE_FINAL_TYPE(EbControlServer, eb_control_server, EB, CONTROL_SERVER, GObject)

/**
 * eb_control_server_new:
 * @path: of the socket; its directory is made 0700 when missing. A socket left there by a dead service is replaced, so
 *   the caller holds the state directory's lock.
 * Returns: (transfer full) (nullable)
 */
EbControlServer *eb_control_server_new(const char *path, GError **error);
/** eb_control_server_close: stops listening, removes the socket, closes every client. */
void eb_control_server_close(EbControlServer *self);
guint eb_control_server_get_n_clients(EbControlServer *self);

G_END_DECLS
