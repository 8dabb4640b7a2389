/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-config.h"
#include "core/watchdog/eb-watchdog-view.h"

G_BEGIN_DECLS

/** EB_WATCHDOG_FILE, EB_WATCHDOG_LOCK_FILE: below <state_dir>/run: what it shows; held for as long as it runs. */
#define EB_WATCHDOG_FILE "watchdog.json"
#define EB_WATCHDOG_LOCK_FILE "watchdog.lock"

/**
 * EbWatchdog: looks at the service and at the container backend, ends the guests of a service that died and a service that
 * hangs, and tells the service of a backend that does not answer. EbWatchdogRules decides, this does.
 *
 * It ends nothing but guests of this installation whose run is over, and the process that holds the service's lock.
 */
#define EB_TYPE_WATCHDOG (eb_watchdog_get_type())
G_DECLARE_FINAL_TYPE(EbWatchdog, eb_watchdog, EB, WATCHDOG, GObject)

/**
 * eb_watchdog_new: (transfer full)
 * @backend: usable, whether its plugin could be started or not
 * @remedy: (nullable): what an operator types when the backend is ill
 */
EbWatchdog *eb_watchdog_new(EbConfig *config, EbContainerBackend *backend, const EbWatchdogLimits *limits,
                            const char *remedy);
/**
 * eb_watchdog_take_lock: EB_ERROR_LOCKED when another one looks after this state directory. A full disk is no reason not to
 * run. Blocks for moments.
 */
gboolean eb_watchdog_take_lock(EbWatchdog *self, GError **error);
/** eb_watchdog_run_async: until eb_watchdog_stop(), SIGTERM or SIGINT; nothing that is under way is waited for. */
void eb_watchdog_run_async(EbWatchdog *self, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_watchdog_run_finish(EbWatchdog *self, GAsyncResult *result, GError **error);
void eb_watchdog_stop(EbWatchdog *self);
/**
 * eb_watchdog_look_async: one look at both, which changes nothing: for `--once`. Made with limits that believe the first
 * look. eb_watchdog_look_finish: TRUE when both are well; @view: (out): valid until the next call
 */
void eb_watchdog_look_async(EbWatchdog *self, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_watchdog_look_finish(EbWatchdog *self, GAsyncResult *result, EbWatchdogView *view);
/** eb_watchdog_get_view: @view: (out): valid until the main loop runs. */
void eb_watchdog_get_view(EbWatchdog *self, EbWatchdogView *view);

G_END_DECLS
