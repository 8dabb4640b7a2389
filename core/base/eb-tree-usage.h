/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_TREE_USAGE_MAX: entries looked at; a larger tree is told as at least what was counted. */
#define EB_TREE_USAGE_MAX 1000000

/**
 * eb_tree_usage_at: bytes that the tree @name below @dir_fd takes on disk, without following a link or a mount and
 * without opening a file in it: also for trees that a guest writes. What cannot be read counts as nothing. Blocks.
 */
guint64 eb_tree_usage_at(int dir_fd, const char *name);

G_END_DECLS
