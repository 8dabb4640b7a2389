/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-archive.h"

G_BEGIN_DECLS

/**
 * Restoring replaces the state in steps of which each can be the last: everything is unpacked and checked beside it in
 * restore.partial; one rename to restore.ready decides; then the old state is moved aside and the new one into place by
 * eb_restore_settle(), which whoever takes the state directory's lock next finishes.
 */

/** EB_RESTORE_RESERVE: bytes that stay free on the file system while a backup is unpacked. */
#define EB_RESTORE_RESERVE (G_GUINT64_CONSTANT(64) * 1024 * 1024)

/** eb_restore_is_empty: does @state_dir hold no session of the service or of a try, so that nothing can be lost? */
gboolean eb_restore_is_empty(const char *state_dir);
/**
 * eb_restore_read:
 * @state_dir: its lock is held by the caller, and no try runs in it
 * @fd: the backup
 * @aside: (out) (transfer full): where the old state is now
 *
 * As the service's account. What people said after the backup was made is not acted upon a second time: messages that
 * waited then are done, and chats are read from now on. Blocks.
 * Returns: (transfer full) (nullable): what was restored; the state is the old one when NULL
 */
EbArchiveManifest *eb_restore_read(const char *state_dir, int fd, char **aside, GError **error);
/** eb_restore_settle: finishes or takes back an interrupted restore; the caller holds the lock. @aside: (out) (optional) */
gboolean eb_restore_settle(const char *state_dir, char **aside, GError **error);
/** eb_restore_is_pending: was one decided and not finished? */
gboolean eb_restore_is_pending(const char *state_dir);

/** EbRestoreHook: for tests: called before each step; FALSE ends there, as a kill would. */
typedef gboolean (*EbRestoreHook)(guint step);
void eb_restore_set_hook(EbRestoreHook hook);

#define EB_RESTORE_PARTIAL "restore.partial"

/** eb_restore_decide: for eb_restore_read(): from restore.partial to done. */
gboolean eb_restore_decide(const char *state_dir, char **aside, GError **error);

G_END_DECLS
