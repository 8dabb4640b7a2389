/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-manager.h"

G_BEGIN_DECLS

/**
 * eb_daemon_reload_budget: reads the configuration again and takes its caps and prices over, and nothing else of it. One that
 * cannot be used changes nothing. What came of it is logged.
 * @config_file: (nullable): as for eb_config_load()
 */
void eb_daemon_reload_budget(EbSessionManager *manager, const char *config_file, const char *data_dir);

G_END_DECLS
