/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * eb_own_dir_resolve: @path without symbolic links in it, when nobody but this process's user can change what it stands
 * for: the directory is that user's and others may not write it. For root every directory above it must be root's as well,
 * since whoever owns one of them puts another tree in its place; a sticky one (/tmp) is no harm.
 * Returns: (transfer full): NULL with EB_ERROR_DENIED "dir.owner", or EB_ERROR_NOT_FOUND
 */
char *eb_own_dir_resolve(const char *path, GError **error);

G_END_DECLS
