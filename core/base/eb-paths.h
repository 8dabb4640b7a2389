/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_RELAY_PORT: where the relay listens in a guest: http://127.0.0.1:EB_RELAY_PORT/provider/NAME. */
#define EB_RELAY_PORT 47129

/**
 * EbPaths: where the parts of errand-box are: installed, or below the build directory when the program runs
 * uninstalled (found by /proc/self/exe). Program files are opened when this is made, so that they can be used
 * after privileges were dropped, even when the account could not reach them by path.
 */
#define EB_TYPE_PATHS (eb_paths_get_type())
G_DECLARE_FINAL_TYPE(EbPaths, eb_paths, EB, PATHS, GObject)

/** eb_paths_new: (transfer full) (nullable): finds and opens everything. A missing part is reported when used. */
EbPaths *eb_paths_new(GError **error);
gboolean eb_paths_is_uninstalled(EbPaths *self);
/** eb_paths_get_plugin_dir: (transfer none): holds one directory a plugin: NAME/NAME.so, NAME/NAME.plugin. */
const char *eb_paths_get_plugin_dir(EbPaths *self);
/** eb_paths_get_data_dir: (transfer none): agents/, checks.d/, schema/, selftest/, guest/ (image recipe), pins.toml. */
const char *eb_paths_get_data_dir(EbPaths *self);
/** eb_paths_get_broker_fd: descriptor of errand-box-broker for execveat(), owned by @self; -1 and @error. */
int eb_paths_get_broker_fd(EbPaths *self, GError **error);
/** eb_paths_get_guest_program: (transfer none) (nullable): bytes of "launch", "relay" or "init". */
GBytes *eb_paths_get_guest_program(EbPaths *self, const char *name, GError **error);
/** eb_paths_get_program_path: (transfer none) (nullable): where "errand-box-broker", "launch", "relay", "init",
 *  "errand-box", "errand-boxd" or "errand-box-watchdog" should be, for messages, units and the doctor; it may be
 *  missing. */
const char *eb_paths_get_program_path(EbPaths *self, const char *name);

G_END_DECLS
