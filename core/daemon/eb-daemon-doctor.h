/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"

G_BEGIN_DECLS

/** EB_DAEMON_DOCTOR_DEADLINE_MS: for one run of the doctor, whose own deadlines end it within ten seconds. */
#define EB_DAEMON_DOCTOR_DEADLINE_MS 15000
/** EB_DAEMON_DOCTOR_MAX_OUTPUT: bytes of its report, as EB_JSON_LIMITS_SMALL. */
#define EB_DAEMON_DOCTOR_MAX_OUTPUT (1024 * 1024)

/**
 * eb_daemon_doctor_run_async: runs `errand-box doctor --json --service` in a process of its own: checks are code of others, and the
 * service never opens them. Never blocks.
 * @program: (nullable): another program than our own, for tests
 * @config_file: (nullable): as the service was given it; NULL = the usual places
 * @deadline_ms: then it is killed; EB_DAEMON_DOCTOR_DEADLINE_MS
 * @ids: (array zero-terminated=1) (nullable): these checks alone
 */
void eb_daemon_doctor_run_async(EbPaths *paths, const char *program, const char *config_file, const char *const *ids,
                                guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
                                gpointer user_data);
/**
 * eb_daemon_doctor_run_finish: (transfer full) (nullable): the report. EB_ERROR_TIMEOUT "doctor.hangs", EB_ERROR_FAILED
 * "doctor.died", EB_ERROR_PROTOCOL "doctor.output", EB_ERROR_CANCELLED, or why it could not be started.
 */
JsonNode *eb_daemon_doctor_run_finish(GAsyncResult *result, GError **error);

G_END_DECLS
