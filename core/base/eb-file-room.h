/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * eb_file_room_bound: with fewer free inodes than this no session starts. One that installs the packages of a project makes
 * ten thousand files within a minute; a small file system never has many, so there it is a twentieth.
 * @total: inodes of the file system; 0: it has no limit of its own (btrfs). Returns: 0 without a limit
 */
guint64 eb_file_room_bound(guint64 total);

G_END_DECLS
