/* SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/** DS_SOCKET_KEY: of a client's address: its socket. */
#define DS_SOCKET_KEY "ds-socket"

/** ds_socket_reset: closes it so that the other side gets an RST. */
void ds_socket_reset(GSocket *socket);

G_END_DECLS
