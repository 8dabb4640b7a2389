/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-guest.h"
#include "core/state/eb-session-store.h"

G_BEGIN_DECLS

/** EbLaunchProgress: told as each state is entered. */
typedef void (*EbLaunchProgress)(EbLaunchState state, EbGuest *guest, gpointer user_data);

/**
 * eb_launch_op_run_async: brings a session from its record to an agent that waits for a prompt.
 * @record: (transfer none): id, project, agent; agent_session when it is continued. Not changed.
 * @fresh: the session never was: a failure removes its row and directories, too
 * @progress: (nullable): with @user_data, never after the callback
 *
 * Cancelling ends it at the next step. On failure everything was given back when the callback comes.
 */
void eb_launch_op_run_async(EbSessionParts *parts, const EbSessionRecord *record, gboolean fresh,
                            EbLaunchProgress progress, GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data);
/** eb_launch_op_run_finish: (transfer full) (nullable) */
EbGuest *eb_launch_op_run_finish(GAsyncResult *result, GError **error);

G_END_DECLS
