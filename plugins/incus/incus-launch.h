/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-server.h"

G_BEGIN_DECLS

/** IncusLeftover: called when a launch had to leave before it could clean up: the backend goes on trying. */
typedef void (*IncusLeftover)(const char *name, const char *launch_id, gpointer user_data);

/**
 * incus_launch_async: volumes, create, verify, start; undone as a whole when a step fails or the caller cancels.
 *
 * Two operations of incusd and one look in between: as many as by hand, plus 2 ms. incusd cannot cancel a creation,
 * so a cancelled launch ends when its running step has ended and all is removed again. When incusd stops answering,
 * the launch ends at its deadline and @leftover takes over.
 */
void incus_launch_async(IncusClient *client, IncusServer *server, const EbContainerSpec *spec, guint deadline_ms,
                        GCancellable *cancellable, IncusLeftover leftover, gpointer leftover_data,
                        GAsyncReadyCallback callback, gpointer user_data);
gboolean incus_launch_finish(GAsyncResult *result, GError **error);

G_END_DECLS
