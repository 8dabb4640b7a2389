/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** CredsOwner: whom a file of secrets may belong to besides root and the running user; and whom a new one belongs to. */
typedef struct {
    guint32 uid, gid; /* 0: nobody more */
} CredsOwner;

/** creds_owner_of_account: root reads what the account owns; without an account of that name nobody more. */
CredsOwner creds_owner_of_account(const char *account);
/** creds_owner_of_directory: a new file belongs to whom the directory of @path belongs to. */
CredsOwner creds_owner_of_directory(const char *path);

/** CredsFileId: tells one content of a file from the next without reading it. */
typedef struct {
    guint64 device, inode, size;
    gint64 modified_s, modified_ns, changed_s, changed_ns;
} CredsFileId;
/** creds_file_id: of @path, all zero when there is none. */
CredsFileId creds_file_id(const char *path);
gboolean creds_file_id_equal(const CredsFileId *a, const CredsFileId *b);

/** CredsFile: an opened file of secrets that passed the checks. */
typedef struct {
    int fd; /* (owned) */
    gsize size;
    CredsOwner owner;
    gint64 modified; /* unix seconds */
} CredsFile;
#define CREDS_FILE_INIT                                                                                                \
    {                                                                                                                  \
        .fd = -1                                                                                                       \
    }
void creds_file_clear(CredsFile *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CredsFile, creds_file_clear)

/**
 * creds_file_open: no link is followed; what is checked is the opened file: regular, at most @max_bytes, for its owner
 * alone (of the bits in @forbidden none is set: 077, or 027 for a file that a supervisor hands over), and that owner is
 * root, the running user or @extra.
 *
 * EB_ERROR_NOT_FOUND "credentials.absent"; EB_ERROR_DENIED "credentials.unreadable": not ours to read, or
 * "credentials.exposed": others could read or change it; EB_ERROR_CONFIG "credentials.long".
 */
gboolean creds_file_open(CredsFile *self, const char *path, CredsOwner extra, guint forbidden, gsize max_bytes,
                         GError **error);
/** creds_file_read: at most @size bytes from the begin; the number that is there, -1 with @error. */
gssize creds_file_read(CredsFile *self, const char *path, void *buffer, gsize size, GError **error);

/** CREDS_FILE_UNFINISHED: how the name of a file begins that is not yet under its own. */
#define CREDS_FILE_UNFINISHED ".errand-creds."
/**
 * creds_file_replace: @path is the old file or the new one at every moment, also over a power cut; mode 0600. Blocks.
 * Under creds_file_lock() alone.
 * @owner: of the new file when run by root
 */
gboolean creds_file_replace(const char *path, const void *bytes, gsize length, CredsOwner owner, GError **error);
/** CREDS_LOCK_MS: how long another program may take for its own change. */
#define CREDS_LOCK_MS 5000
/**
 * creds_file_lock: keeps other programs from changing files of secrets in the directory of @path, between a read and the
 * write that is made of it; and removes what a change that was killed left there. Blocks, for CREDS_LOCK_MS at most. A descriptor, -1 with EB_ERROR_BUSY "credentials.locked".
 */
int creds_file_lock(const char *path, GCancellable *cancellable, GError **error);
void creds_file_unlock(int lock);

/** creds_file_create: as creds_file_replace() where nothing may be there before: EB_ERROR_EXISTS otherwise. */
gboolean creds_file_create(const char *path, const void *bytes, gsize length, CredsOwner owner, GError **error);

G_END_DECLS
