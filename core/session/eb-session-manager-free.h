/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-gc-disk.h"
#include "core/session/eb-session-manager-private.h"

G_BEGIN_DECLS

/**
 * eb_session_manager_free_async: gives up what eb_pressure_pick() says, until @wanted bytes are free.
 * @worker: for what takes long
 * @ground: (transfer none): lives until it has finished
 */
void eb_session_manager_free_async(EbSessionManager *self, EbWorker *worker, const EbGcGround *ground, guint64 wanted,
                                   GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_manager_free_finish: (transfer full): the class "idle" */
EbGcClass *eb_session_manager_free_finish(GAsyncResult *result);

G_END_DECLS
