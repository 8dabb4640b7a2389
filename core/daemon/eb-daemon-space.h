/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-worker.h"

G_BEGIN_DECLS

/**
 * EbSpaceLevel: how much room is left. FULL: less than the bound, LOW: less than twice as much. A level is left again
 * when a quarter more than its bound is free, so that it does not come and go with every file.
 */
typedef enum { EB_SPACE_FINE = 0, EB_SPACE_LOW, EB_SPACE_FULL } EbSpaceLevel;
/** eb_space_judge: @min_free: bytes, at least 1 */
EbSpaceLevel eb_space_judge(EbSpaceLevel before, guint64 free, guint64 min_free);

/** EbSpace: one file system. */
typedef struct {
    char *path;                /* that it was looked at by */
    guint64 device;            /* so that one is told of once */
    guint64 free, total;       /* bytes; free for the account */
    guint64 files_free, files; /* inodes; 0 of 0: it has no limit */
    EbSpaceLevel level;
    gboolean files_short; /* the level is for want of inodes, not of bytes */
} EbSpace;
void eb_space_free(gpointer data);
/** eb_space_judge_all: sets the level by what is shorter: bytes, or inodes, which a guest uses up as easily. */
void eb_space_judge_all(EbSpace *space, EbSpaceLevel before, guint64 min_free);

/** eb_space_relief: bytes that must be freed until the level is FINE again; 0 when it is. Of inodes nobody knows: 1, which
 *  frees what was unused for longest. */
guint64 eb_space_relief(const EbSpace *space, guint64 min_free);

/** eb_space_describe: (transfer full): "200 MiB of 20.0 GiB are free below /var/lib/errand-box, new sessions need 1.0 GiB" */
char *eb_space_describe(const EbSpace *space, guint64 min_free);

/**
 * eb_space_read_async: looks at the file systems of @paths in @worker's thread: one that does not answer keeps nobody
 * but the worker.
 * @paths: (array zero-terminated=1)
 */
void eb_space_read_async(EbWorker *worker, const char *const *paths, GAsyncReadyCallback callback, gpointer user_data);
/** eb_space_read_finish: (transfer full) (element-type EbSpace) (nullable): each file system once, level not yet judged. */
GPtrArray *eb_space_read_finish(GAsyncResult *result, GError **error);

G_END_DECLS
