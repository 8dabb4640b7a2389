/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-pins.h"

G_BEGIN_DECLS

/** Asking npm for what is newer, and for a lock file. Blocking, for worker threads. */

/**
 * eb_npm_find_newer:
 * @dir: where npm runs
 *
 * Returns: (transfer full) (nullable): the registry's latest version of @pin's package, or the last of its series, when
 *   it is newer than the pinned one; NULL without @error when none is.
 */
char *eb_npm_find_newer(const EbPin *pin, const char *dir, GCancellable *cancellable, GError **error);
/** eb_npm_parse_versions: (transfer full) (nullable) (element-type utf8): what `npm view --json` printed of one field. */
GPtrArray *eb_npm_parse_versions(const char *output, GError **error);

/** EbNpmLock: a lock file that npm made for one package. */
typedef struct {
    char *package_json; /* what it was made from */
    GBytes *lock;
    char *lock_sha256; /* hex */
    char *integrity;   /* of the package itself */
} EbNpmLock;

void eb_npm_lock_free(EbNpmLock *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbNpmLock, eb_npm_lock_free)

/**
 * eb_npm_lock_make: has npm resolve @version of @pin's package, in a directory of its own, with no script run. The result
 * names no registry, has a SHA-512 for every package, and has what the pin's commands are in.
 *
 * Returns: (transfer full) (nullable)
 */
EbNpmLock *eb_npm_lock_make(const EbPin *pin, const char *version, GCancellable *cancellable, GError **error);
/** eb_npm_lock_check: is @lock fit to be pinned for @pin at @version? @integrity: (out) (transfer full) */
gboolean eb_npm_lock_check(const EbPin *pin, const char *version, GBytes *lock, char **integrity, GError **error);

G_END_DECLS
