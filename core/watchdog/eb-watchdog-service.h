/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/watchdog/eb-watchdog-rules.h"

G_BEGIN_DECLS

/** EbWatchdogService: the service as it is seen from outside: its control socket, its lock, its process. */
#define EB_TYPE_WATCHDOG_SERVICE (eb_watchdog_service_get_type())
G_DECLARE_FINAL_TYPE(EbWatchdogService, eb_watchdog_service, EB, WATCHDOG_SERVICE, GObject)

EbWatchdogService *eb_watchdog_service_new(const char *state_dir);

/**
 * eb_watchdog_service_look_async: asks for its status over a connection of its own, and looks at the lock when no answer
 * came. One look at a time; it takes @deadline_ms and EB_WATCHDOG_LOCK_MS at most, whatever the service or the disk does.
 */
void eb_watchdog_service_look_async(EbWatchdogService *self, guint deadline_ms, GAsyncReadyCallback callback,
                                    gpointer user_data);
/** eb_watchdog_service_look_finish: never fails: what could not be seen is a result. @look: (out) */
void eb_watchdog_service_look_finish(EbWatchdogService *self, GAsyncResult *result, EbWatchdogLook *look);
/** EB_WATCHDOG_LOCK_MS: a lock is looked at in microseconds, or its file system hangs. */
#define EB_WATCHDOG_LOCK_MS 2000

/**
 * eb_watchdog_service_report_async: the control method "watchdog.report", over the connection of the last look;
 * EB_ERROR_UNAVAILABLE when that has none (it was closed at once).
 * @params: (transfer full)
 */
void eb_watchdog_service_report_async(EbWatchdogService *self, JsonNode *params, guint deadline_ms,
                                      GAsyncReadyCallback callback, gpointer user_data);
/** eb_watchdog_service_report_finish: EB_ERROR_NOT_SUPPORTED: a service that does not know the method. */
gboolean eb_watchdog_service_report_finish(EbWatchdogService *self, GAsyncResult *result, GError **error);
/** eb_watchdog_service_hang_up: closes that connection: it holds one of the service's places. */
void eb_watchdog_service_hang_up(EbWatchdogService *self);

/**
 * eb_watchdog_service_end: SIGKILL, through a pidfd, to the process that was seen holding the service's lock by the last
 * look, which was not answered. EB_ERROR_NOT_FOUND when none is known for certain: nothing is ever ended by a number.
 */
gboolean eb_watchdog_service_end(EbWatchdogService *self, GError **error);
/** eb_watchdog_service_describe: (transfer full) (nullable): what its process is seen doing, when that says something. */
char *eb_watchdog_service_describe(EbWatchdogService *self);

G_END_DECLS
