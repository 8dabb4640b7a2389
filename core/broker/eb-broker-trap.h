/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_broker_trap_set: a system call that the filter traps is told to the service over @fd, by its number, and then ends the
 * process as a filter that kills would. Before the filter is in force, which keeps the handler from being replaced.
 * @fd: the control socket; it is never waited for
 */
gboolean eb_broker_trap_set(int fd, GError **error);

G_END_DECLS
