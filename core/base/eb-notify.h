/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * The supervisor's side of a service: the datagram protocol of NOTIFY_SOCKET (READY=1, STATUS=, STOPPING=1,
 * WATCHDOG=1), without a library for it, and the line of s6 that says "ready". Without a NOTIFY_SOCKET and
 * EB_NOTIFY_FD_VARIABLE every call does nothing. Never blocks.
 */

/** EB_NOTIFY_FD_VARIABLE: number of the pipe that gets one newline when the service is ready (s6: notification-fd). */
#define EB_NOTIFY_FD_VARIABLE "ERRAND_BOX_NOTIFY_FD"

/** eb_notify_ready, eb_notify_stopping, eb_notify_reloading: state changes. */
void eb_notify_ready(void);
void eb_notify_reloading(void);
void eb_notify_stopping(void);
/** eb_notify_extend: the start or stop that goes on takes up to @ms more from now, whatever the unit says. */
void eb_notify_extend(guint ms);
/** eb_notify_status: one line for `systemctl status`; no secret, no text of guests. */
void eb_notify_status(const char *format, ...) G_GNUC_PRINTF(1, 2);
/**
 * eb_notify_watchdog_source: (transfer full) (nullable): an attached source of the default main context that reports
 * WATCHDOG=1 at half of WATCHDOG_USEC; NULL when the supervisor does not want it. A loop that hangs stops it.
 */
GSource *eb_notify_watchdog_source(void);

G_END_DECLS
