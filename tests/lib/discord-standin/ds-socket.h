/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>

G_BEGIN_DECLS

/** DS_SOCKET_KEY: of a client's address: its socket. */
#define DS_SOCKET_KEY "ds-socket"

/** ds_socket_reset: closes it so that the other side gets an RST. */
void ds_socket_reset(GSocket *socket);

/** ds_pause, ds_unpause: as libsoup's, which may not be called when the client has gone meanwhile. */
void ds_pause(SoupServerMessage *message);
void ds_unpause(SoupServerMessage *message);

G_END_DECLS
