/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-server.h"

G_BEGIN_DECLS

/** IncusBackend: the EbContainerBackend "incus". */
#define INCUS_TYPE_BACKEND (incus_backend_get_type())
G_DECLARE_FINAL_TYPE(IncusBackend, incus_backend, INCUS, BACKEND, GObject)

/** incus_backend_new: (transfer full): @settings: (transfer full). No I/O. */
IncusBackend *incus_backend_new(IncusClient *client, IncusSettings *settings);

/** incus_backend_start_async: finds the server (an LXD or an untrusted client fails here) and follows its events. */
void incus_backend_start_async(IncusBackend *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);
gboolean incus_backend_start_finish(IncusBackend *self, GAsyncResult *result, GError **error);
/** incus_backend_stop: ends the event stream and what runs in the background. */
void incus_backend_stop(IncusBackend *self);

G_END_DECLS
