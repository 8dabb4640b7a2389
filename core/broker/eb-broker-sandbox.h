/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_broker_sandbox_enter: what a broker gives up before it meets a guest: the file system but for what resolving
 * names needs, capabilities, every system call it has no use for, resources beyond its bounds.
 * @report_fd: where EB_BROKER_MSG_CALL_REFUSED goes before a call that was not foreseen ends the process
 * @lacking: (out) (transfer full) (nullable): what this host cannot enforce, for the service to report
 *
 * Returns: FALSE when something that every supported host has could not be put in force.
 */
gboolean eb_broker_sandbox_enter(int report_fd, char **lacking, GError **error);

G_END_DECLS
