/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-parts.h"
#include "core/state/eb-session-store.h"

G_BEGIN_DECLS

/**
 * eb_session_sweep_open_async: takes back what dead runs left in this state root: guests (of every dead run of this
 * installation), rows of sessions that never became one, directories without a row, run directories, lock files. Rows of
 * sessions that were live become "ended" and can be continued.
 * @records: (element-type EbSessionRecord): all rows; changed: those that go are removed from it
 *
 * A backend that does not answer is no failure: finish says FALSE in @swept and the caller tries again later.
 */
void eb_session_sweep_open_async(EbSessionParts *parts, GPtrArray *records, GAsyncReadyCallback callback,
                                 gpointer user_data);
gboolean eb_session_sweep_open_finish(GAsyncResult *result, gboolean *swept, GError **error);

/**
 * eb_session_sweep_parts_new: (transfer full) (nullable): what eb_session_sweep_guests_async() needs, and nothing more:
 * for a program that ends what a dead service left, without a session manager.
 * EB_ERROR_NOT_FOUND "sweep.home": no service has ever run on this state directory.
 */
EbSessionParts *eb_session_sweep_parts_new(EbConfig *config, EbContainerBackend *backend, GError **error);

/** EB_SWEEP_AT_ONCE: guests that are ended at the same time. */
#define EB_SWEEP_AT_ONCE 4
/** EbSweepIsLive: TRUE when a session of this run has the guest @instance. */
typedef gboolean (*EbSweepIsLive)(const char *instance, gpointer user_data);
/**
 * eb_session_sweep_guests_async: guests alone: of dead runs, and of this run when @is_live says nobody has them.
 * @is_live: (nullable): NULL spares all of this run
 */
void eb_session_sweep_guests_async(EbSessionParts *parts, EbSweepIsLive is_live, gpointer live_data,
                                   GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_sweep_guests_finish: @ended: (out) (optional): how many */
gboolean eb_session_sweep_guests_finish(GAsyncResult *result, guint *ended, GError **error);

/** eb_session_find_guests_async: which guests eb_session_sweep_guests_async() would end; changes nothing. */
void eb_session_find_guests_async(EbSessionParts *parts, EbSweepIsLive is_live, gpointer live_data,
                                  GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_find_guests_finish: (transfer full) (nullable) (element-type utf8): names */
GPtrArray *eb_session_find_guests_finish(GAsyncResult *result, GError **error);

G_END_DECLS
