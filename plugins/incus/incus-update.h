/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-server.h"

G_BEGIN_DECLS

/** incus_update_async: plugs the mounts of @spec that instance @name lacks and sets its limits. */
void incus_update_async(IncusClient *client, IncusServer *server, const char *name, const EbContainerSpec *spec,
                        IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data);
gboolean incus_update_finish(GAsyncResult *result, GError **error);

G_END_DECLS
