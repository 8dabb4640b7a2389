/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_plugin_trust_open:
 * @path: absolute, without symlinks, "." or ".."
 * @dev: the program runs from a build directory
 *
 * Opens @path for reading when no other account could have written it: a regular file, it and every directory up to
 * / owned by root, none writable by group or others (an access list that grants writing shows in the group bits). It
 * is opened once; judging and loading see the same file.
 *
 * With @dev two things more are fine, because they give nobody a power he does not have over the running program
 * already: the running user or the owner of the program may own files, and directories that also lead to the
 * program's own file are not judged. A sticky directory (/tmp) is then fine as a parent too: others cannot replace
 * what is in it. Without @dev it is not.
 *
 * Returns: a descriptor, or -1 with EB_ERROR_INTEGRITY ("plugin.trust-owner", "plugin.trust-mode",
 * "plugin.trust-symlink", "plugin.trust-type") or EB_ERROR_NOT_FOUND ("plugin.missing-file").
 */
int eb_plugin_trust_open(const char *path, gboolean dev, GError **error);

G_END_DECLS
