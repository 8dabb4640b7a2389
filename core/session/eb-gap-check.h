/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_GAP_CHECK_KEEP_S: how long one answer of the backend is good. */
#define EB_GAP_CHECK_KEEP_S 600

/** EbGapCheck: what the backend can enforce here against what the operator accepted. */
#define EB_TYPE_GAP_CHECK (eb_gap_check_get_type())
G_DECLARE_FINAL_TYPE(EbGapCheck, eb_gap_check, EB, GAP_CHECK, GObject)

/** eb_gap_check_new: @accepted: (array zero-terminated=1): ids */
EbGapCheck *eb_gap_check_new(EbContainerBackend *backend, const char *const *accepted);
void eb_gap_check_set_accept_all(EbGapCheck *self, gboolean accept);
/** eb_gap_check_forget: the next run asks again: the backend was away. */
void eb_gap_check_forget(EbGapCheck *self);
/** eb_gap_check_get_report: (transfer none) (nullable): what the backend said last. */
const EbProbeReport *eb_gap_check_get_report(EbGapCheck *self);
void eb_gap_check_run_async(EbGapCheck *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data);
/**
 * eb_gap_check_run_finish:
 * @notice: (out) (optional) (transfer full) (nullable): gaps that are there and were let pass only by accept_all
 *
 * Returns: (transfer none) (nullable): EB_ERROR_DEGRADED "backend.degraded" names the ids.
 */
const EbProbeReport *eb_gap_check_run_finish(EbGapCheck *self, GAsyncResult *result, char **notice, GError **error);

G_END_DECLS
