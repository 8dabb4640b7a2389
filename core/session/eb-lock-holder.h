/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_LOCK_TEXT_MAX: bytes of a lock file that are read: a pid and an id. */
#define EB_LOCK_TEXT_MAX 127

/**
 * eb_lock_text_parse: "PID\n" or "PID ID\n", as EbDirLock writes it.
 * @id: (out) (transfer full) (nullable): letters, digits and hyphens alone
 */
gboolean eb_lock_text_parse(const char *text, pid_t *pid, char **id);
/** eb_lock_table_has: does @table (/proc/locks) say that @pid holds a flock(2) for writing on file @inode of @device? */
gboolean eb_lock_table_has(const char *table, pid_t pid, dev_t device, guint64 inode);

/** EbLockHolder: the process that holds a lock file. */
typedef struct {
    pid_t pid;
    int pidfd; /* of that very process */
    char *id;  /* (nullable): which instance it says it is */
} EbLockHolder;
void eb_lock_holder_clear(EbLockHolder *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbLockHolder, eb_lock_holder_clear)

/**
 * eb_lock_holder_find: who holds the EbDirLock @name in @dir. The number in the file is believed when the kernel's table
 * of locks says the same, looked at with the process's descriptor open: it cannot come to mean another one.
 * @holder: (out)
 *
 * Returns: FALSE with EB_ERROR_NOT_FOUND when nobody holds it, EB_ERROR_UNAVAILABLE when the holder cannot be told.
 */
gboolean eb_lock_holder_find(const char *dir, const char *name, EbLockHolder *holder, GError **error);

G_END_DECLS
