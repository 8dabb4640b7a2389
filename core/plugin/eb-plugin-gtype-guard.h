/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/*
 * Keeps two plugins from registering one GType name.
 *
 * The second registration fails inside GObject, and asking for that type once more then waits for ever: the whole
 * process hangs. So each plugin's types are noted when it is configured, and a module that contains the name of
 * another plugin's type as a string of its own is refused before any of its code runs. Types belong to the process
 * for good, as modules do, so this is one table for all registries. Main thread only.
 */

/** eb_plugin_gtype_guard_begin: notes the types that exist before a plugin's code runs. */
void eb_plugin_gtype_guard_begin(void);
/** eb_plugin_gtype_guard_end: types that came since belong to @plugin. */
void eb_plugin_gtype_guard_end(const char *plugin);
/** eb_plugin_gtype_guard_check: EB_ERROR_EXISTS "plugin.gtype" when the file @fd names a type of another plugin. */
gboolean eb_plugin_gtype_guard_check(int fd, const char *plugin, GError **error);

G_END_DECLS
