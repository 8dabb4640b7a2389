/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/config/eb-config.h"
#include "core/session/eb-session-manager.h"

G_BEGIN_DECLS

/** EB_HEALTH_SPACE_S: seconds between two looks at the space left: a guest fills a gigabyte in a few of them. */
#define EB_HEALTH_SPACE_S 5
/** EB_HEALTH_WHOLE_EVERY: of the runs of the doctor, so many a whole one. */
#define EB_HEALTH_WHOLE_EVERY 10
/** EB_HEALTH_SUSPECT_S: seconds until what has just turned bad is asked for once more, before it holds anything. */
#define EB_HEALTH_SUSPECT_S 2
/** EB_HEALTH_REPORT_S: a watchdog that says nothing for so long holds nobody any more. */
#define EB_HEALTH_REPORT_S 120
/** EB_HEALTH_MAX_WAITS: requests that wait for a run of the doctor. */
#define EB_HEALTH_MAX_WAITS 32

/**
 * EbDaemonHealth: what the service does with the host's weaknesses: runs the doctor, watches the space left, takes the
 * watchdog's reports; holds new sessions and tells the threads.
 */
#define EB_TYPE_DAEMON_HEALTH (eb_daemon_health_get_type())
G_DECLARE_FINAL_TYPE(EbDaemonHealth, eb_daemon_health, EB, DAEMON_HEALTH, GObject)

/**
 * eb_daemon_health_new:
 * @paths: (nullable): when @doctor is given
 * @config_file: (nullable): as the service was given it
 * @doctor: (nullable): another program than our own, for tests
 */
EbDaemonHealth *eb_daemon_health_new(EbConfig *config, EbPaths *paths, const char *config_file, const char *doctor);
/** eb_daemon_health_start: the first whole run of the doctor and the first look at the space begin. Once. */
void eb_daemon_health_start(EbDaemonHealth *self, GCancellable *cancellable);
/** eb_daemon_health_known_async: ends when the first run of the doctor has ended, however. */
void eb_daemon_health_known_async(EbDaemonHealth *self, GAsyncReadyCallback callback, gpointer user_data);
void eb_daemon_health_known_finish(EbDaemonHealth *self, GAsyncResult *result);
/** eb_daemon_health_gate: FALSE with EB_ERROR_DEGRADED: the service must not start here; see eb_health_rules_gate(). */
gboolean eb_daemon_health_gate(EbDaemonHealth *self, const EbProbeReport *probe, GError **error);
/** eb_daemon_health_attach: from now on @manager is held and told, and the host is looked at again and again. */
void eb_daemon_health_attach(EbDaemonHealth *self, EbSessionManager *manager);
/** eb_daemon_health_detach: the service ends. */
void eb_daemon_health_detach(EbDaemonHealth *self);

/** eb_daemon_health_report: what a watchdog says: {state: ok|wedged|down, detail, seconds}. */
gboolean eb_daemon_health_report(EbDaemonHealth *self, JsonObject *report, GError **error);
/** eb_daemon_health_check_async: a whole run of the doctor now; then as _to_json(). EB_ERROR_BUSY: too many wait. */
void eb_daemon_health_check_async(EbDaemonHealth *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);
/** eb_daemon_health_check_finish: (transfer full) (nullable) */
JsonObject *eb_daemon_health_check_finish(EbDaemonHealth *self, GAsyncResult *result, GError **error);
/**
 * eb_daemon_health_to_json: (transfer full): {"hold": why or null, "checks": [see eb_health_rules_to_json()],
 * "checked_at": time or null, "doctor_error": why it did not work or null, "space": [{path, free, total, needs, level}]}
 */
JsonObject *eb_daemon_health_to_json(EbDaemonHealth *self);

G_END_DECLS
