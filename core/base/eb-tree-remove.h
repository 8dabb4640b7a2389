/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_TREE_MAX_DEPTH: directories open at once; deeper ones are first moved up. */
#define EB_TREE_MAX_DEPTH 48

/**
 * eb_tree_remove_at:
 * @dir_fd: a directory nobody but this account can change
 * @name: one path component below it
 * @deadline_ms: beyond it the rest stays and EB_ERROR_TIMEOUT is set
 * @left: (out) (optional): entries that could not be removed, e.g. inside directories of another uid
 *
 * Removes a tree that a guest could write, without ever following a name in it: no link is followed, nothing is read.
 * Absence is success. Blocks: for workers.
 */
gboolean eb_tree_remove_at(int dir_fd, const char *name, guint deadline_ms, guint64 *left, GError **error);

G_END_DECLS
