/* SPDX-License-Identifier: MIT */

#include "ds-socket.h"

#include <sys/socket.h>

void
ds_socket_reset(GSocket *socket)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (g_socket_is_closed(socket))
        return;
    setsockopt(g_socket_get_fd(socket), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    g_socket_close(socket, NULL);
}
