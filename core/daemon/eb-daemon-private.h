/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/control/eb-control-server.h"
#include "core/control/eb-control-transport.h"
#include "core/daemon/eb-daemon-health.h"
#include "core/daemon/eb-daemon-transports.h"
#include "core/daemon/eb-daemon.h"
#include "core/session/eb-session-manager.h"

/* Between the files of EbDaemon. */

/** EbDaemonControl: answers the control socket's requests. */
typedef struct _EbDaemonControl EbDaemonControl;

/**
 * eb_daemon_control_new: (transfer full) (nullable): listens. @manager, @registry, @transports and @health are not
 * owned and outlive it. The transport "control" is attached to @manager.
 */
EbDaemonControl *eb_daemon_control_new(EbConfig *config, EbSessionManager *manager, EbPluginRegistry *registry,
                                       EbDaemonTransports *transports, EbDaemonHealth *health, GError **error);
void eb_daemon_control_free(EbDaemonControl *self);
