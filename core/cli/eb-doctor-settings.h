/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/config/eb-config.h"

G_BEGIN_DECLS

/** EB_DOCTOR_WORKER_COMMAND: hidden: the process that runs one plugin's checks. */
#define EB_DOCTOR_WORKER_COMMAND "doctor-worker"

/**
 * eb_doctor_settings: (transfer full): what checks may know of the configuration: names and places, no secret.
 * @problem: (nullable): why the configuration cannot be used
 */
EbConfigSection *eb_doctor_settings(EbConfig *config, EbPaths *paths, const GError *problem);
/** eb_doctor_enabled_plugins: (transfer full): the configured ones and the program's own checks, which run whatever the
 *  configuration enables: it may be the thing that is broken. */
char **eb_doctor_enabled_plugins(EbConfig *config);

G_END_DECLS
