/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/watchdog/eb-watchdog-rules.h"

G_BEGIN_DECLS

/**
 * EbWatchdogBackend: looks at the container backend: asks for the list of instances, which needs what every start of a
 * session needs: the daemon, its database, and this account's right to its project. A daemon that is wedged in a lock may
 * well answer the question who it is.
 */
#define EB_TYPE_WATCHDOG_BACKEND (eb_watchdog_backend_get_type())
G_DECLARE_FINAL_TYPE(EbWatchdogBackend, eb_watchdog_backend, EB, WATCHDOG_BACKEND, GObject)

EbWatchdogBackend *eb_watchdog_backend_new(EbContainerBackend *backend);
/** eb_watchdog_backend_look_async: one at a time; over within @deadline_ms and a second, whatever the plugin does. */
void eb_watchdog_backend_look_async(EbWatchdogBackend *self, guint deadline_ms, GAsyncReadyCallback callback,
                                    gpointer user_data);
/**
 * eb_watchdog_backend_look_finish: never fails.
 * @look: (out)
 * @detail: (out) (transfer full) (nullable): what it said when it did not answer well
 */
void eb_watchdog_backend_look_finish(EbWatchdogBackend *self, GAsyncResult *result, EbWatchdogLook *look,
                                     char **detail);
/**
 * eb_watchdog_backend_judge: what an outcome of a call means: @error (nullable): NULL = it did what it was asked.
 * An answer that refuses is an answer: what is wrong then is for the doctor.
 */
EbWatchdogAnswer eb_watchdog_backend_judge(const GError *error);

G_END_DECLS
