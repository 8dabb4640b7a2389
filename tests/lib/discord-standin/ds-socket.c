/* SPDX-License-Identifier: MIT */

#include "ds-socket.h"

#include <sys/socket.h>

#define PAUSED "ds-paused"

void
ds_socket_reset(GSocket *socket)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (g_socket_is_closed(socket))
        return;
    setsockopt(g_socket_get_fd(socket), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    g_socket_close(socket, NULL);
}

static void
on_finished(SoupServerMessage *message, gpointer user_data)
{
    g_object_set_data(G_OBJECT(message), PAUSED, NULL);
}

void
ds_pause(SoupServerMessage *message)
{
    g_object_set_data(G_OBJECT(message), PAUSED, message);
    g_signal_connect(message, "finished", G_CALLBACK(on_finished), NULL);
    g_signal_connect(message, "disconnected", G_CALLBACK(on_finished), NULL);
    soup_server_message_pause(message);
}

void
ds_unpause(SoupServerMessage *message)
{
    if (g_object_get_data(G_OBJECT(message), PAUSED) == NULL)
        return;
    g_object_set_data(G_OBJECT(message), PAUSED, NULL);
    soup_server_message_unpause(message);
}
