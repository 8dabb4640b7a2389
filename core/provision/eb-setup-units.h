/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-setup-private.h"

/* Between the steps "units" and "start". Only core/provision/eb-setup*.c include this. */

G_BEGIN_DECLS

/** EB_SETUP_UNIT_SERVICE, EB_SETUP_UNIT_WATCHDOG: names under a supervisor. */
#define EB_SETUP_UNIT_SERVICE "errand-boxd"
#define EB_SETUP_UNIT_WATCHDOG "errand-box-watchdog"

/**
 * eb_setup_units_supervisor: (transfer none) (nullable): what is to run the service: the host's supervisor; with a
 * container daemon of its own directory only one that the environment names. NULL: none.
 */
EbSupervisor *eb_setup_units_supervisor(EbSetup *self, GError **error);
/** eb_setup_units_names: (transfer none) (array zero-terminated=1): units whose program is installed. */
const char *const *eb_setup_units_names(EbSetup *self);
/** eb_setup_units_query: of the service; a plan by a user who may not ask takes it for missing. */
gboolean eb_setup_units_query(EbSetup *self, EbSupervisor *supervisor, EbUnitStatus *status, GError **error);
/** eb_setup_units_service_dir, _log_dir: (transfer full): of @unit with s6. */
char *eb_setup_units_service_dir(EbSetup *self, const char *unit);
char *eb_setup_units_log_dir(EbSetup *self, const char *unit);

G_END_DECLS
