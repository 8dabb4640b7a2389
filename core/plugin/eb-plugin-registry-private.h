/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/plugin/eb-plugin-registry.h"

/** eb_plugin_record_fail: quarantine: @record provides nothing any more; @error: (transfer full). */
void eb_plugin_record_fail(EbPluginRecord *record, GError *error);

/** EbPluginPhaseKind: which way a phase takes plugins. */
typedef enum {
    EB_PLUGIN_PHASE_START,
    EB_PLUGIN_PHASE_STOP,
} EbPluginPhaseKind;

/**
 * eb_plugin_phase_run: starts or stops every record in the state for it, each with @deadline_ms.
 * @records: (element-type EbPluginRecord): stays valid until @task returned
 * @task: (transfer full): gets TRUE, or EB_ERROR_CANCELLED when its cancellable fires first
 */
void eb_plugin_phase_run(EbPluginPhaseKind kind, GPtrArray *records, guint deadline_ms, GTask *task);
