/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbDirLock: a lock file held by flock(2): it ends with the process, whatever happens to that, and a number in the file
 * is for people alone. These calls block for moments (a local file); they belong into workers.
 */
typedef struct _EbDirLock EbDirLock;

/**
 * eb_dir_lock_take:
 * @dir: exists, private to the account
 * @name: of the file in it
 *
 * Returns: (transfer full) (nullable): EB_ERROR_LOCKED "lock.held" names the holder's pid when it can be read.
 */
EbDirLock *eb_dir_lock_take(const char *dir, const char *name, GError **error);
/** eb_dir_lock_set_id: @id: which instance of the program holds it, for people: letters, digits and hyphens. */
void eb_dir_lock_set_id(EbDirLock *self, const char *id);
/** eb_dir_lock_release: (nullable) (transfer full): removes the file and lets go. */
void eb_dir_lock_release(EbDirLock *self);
/** EbDirLockState: what a look at a lock file finds. */
typedef enum {
    EB_DIR_LOCK_UNKNOWN = 0, /* it cannot be looked at */
    EB_DIR_LOCK_ABSENT,      /* released in order, or never taken */
    EB_DIR_LOCK_FREE,        /* its holder died */
    EB_DIR_LOCK_HELD,
} EbDirLockState;
EbDirLockState eb_dir_lock_look(const char *dir, const char *name);
/** eb_dir_lock_is_held: by anybody; a missing file is not held. */
gboolean eb_dir_lock_is_held(const char *dir, const char *name);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbDirLock, eb_dir_lock_release)

G_END_DECLS
