/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-server.h"

G_BEGIN_DECLS

/** IncusStopRequest: what to do with an instance. */
typedef struct {
    const char *name;
    EbStopFlags flags;
    guint grace_ms;        /* of a clean stop before force */
    const char *launch_id; /* (nullable): only when it is the instance of this launch, else nothing is done */
    const char *pool;      /* of the volumes that EB_STOP_DESTROY deletes */
} IncusStopRequest;

/**
 * incus_stop_async: ends an instance and, with EB_STOP_DESTROY, removes it and its session volumes.
 *
 * incusd's word about a stop is not its end: a full disk quota makes a stop that worked an error, and a clean stop that
 * was too slow may have worked meanwhile. So the state is read again after every failure.
 */
void incus_stop_async(IncusClient *client, const IncusStopRequest *request, IncusDeadline *deadline,
                      GAsyncReadyCallback callback, gpointer user_data);
gboolean incus_stop_finish(GAsyncResult *result, GError **error);

G_END_DECLS
