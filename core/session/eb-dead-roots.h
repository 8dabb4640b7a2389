/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_TRY_DIR: below state_dir: one state root for each `try`, with a lock and a database of its own. */
#define EB_TRY_DIR "try"

/**
 * eb_dead_roots_sweep:
 * @state_dir: of the service
 * @own_root: (nullable): the root of the caller, left alone
 *
 * Settles the roots of tries that were killed: a lock file that nobody holds tells them from live ones and from those
 * that ended in order. Their sessions become "ended" (the ones that never began go), their run directories and sockets
 * go, and a root that holds no session any more goes as a whole. Blocks: for workers.
 *
 * Returns: how many roots were settled; what went wrong with one is logged and does not keep the others.
 */
guint eb_dead_roots_sweep(const char *state_dir, const char *own_root);
/** eb_dead_roots_count: how many eb_dead_roots_sweep() would look after. */
guint eb_dead_roots_count(const char *state_dir, const char *own_root);

G_END_DECLS
