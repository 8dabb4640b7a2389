/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-worker.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_PROJECT_MAX_ENTRIES: of a listing that is shown. */
#define EB_PROJECT_MAX_ENTRIES 200
/** EB_PROJECT_MAX_SCAN: entries of a directory that are looked at at all. */
#define EB_PROJECT_MAX_SCAN 20000
/** EB_PROJECT_MAX_PATH: bytes of a path people may give. */
#define EB_PROJECT_MAX_PATH 1024
/** EB_PROJECT_BINARY_PROBE: a NUL in that many first bytes makes a file binary. */
#define EB_PROJECT_BINARY_PROBE 8000

/**
 * What people see of a project's files, and what is put there for its agent. The agent writes that tree while we look:
 * every path is resolved by openat2 beneath the project without following any link, nothing but regular files and
 * directories is opened, nothing of what is read is acted on.
 *
 * Paths are relative to the project; a leading "/workspace/" or "/" means the same. Errors are sentences for the person
 * who asked: EB_ERROR_NOT_FOUND "file.missing", EB_ERROR_DENIED "file.outside", "file.link", "file.kind" or
 * "file.permission", EB_ERROR_INVALID "file.path" or "file.is-directory", EB_ERROR_QUOTA "file.disk-full".
 */
typedef struct {
    char *name; /* as it is: untrusted, maybe no UTF-8 */
    gboolean directory;
    gboolean link;
    guint64 size; /* bytes, of a regular file */
} EbProjectEntry;

typedef struct {
    GPtrArray *entries; /* (element-type EbProjectEntry): directories first, then by name */
    guint left_out;     /* entries beyond EB_PROJECT_MAX_ENTRIES */
    gboolean more;      /* there are more than EB_PROJECT_MAX_SCAN */
} EbProjectListing;
void eb_project_listing_free(EbProjectListing *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbProjectListing, eb_project_listing_free)

typedef struct {
    char *name;    /* the last segment of its path */
    GBytes *bytes; /* the first max_bytes */
    guint64 size;  /* of the whole file */
    gboolean binary;
} EbProjectFile;
void eb_project_file_free(EbProjectFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbProjectFile, eb_project_file_free)

/** eb_project_list_async: @path: (nullable): NULL or "" = the project itself */
void eb_project_list_async(EbWorker *disk, const char *project_root, const char *project, const char *path,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_project_list_finish: (transfer full) (nullable) */
EbProjectListing *eb_project_list_finish(GAsyncResult *result, GError **error);

void eb_project_read_async(EbWorker *disk, const char *project_root, const char *project, const char *path,
                           gsize max_bytes, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data);
/** eb_project_read_finish: (transfer full) (nullable) */
EbProjectFile *eb_project_read_finish(GAsyncResult *result, GError **error);

/**
 * eb_project_save_async: a new file, 0600, in the directory @folder of the project, which is made when missing. A name
 * that exists gets "-2", "-3" ... before its extension; nothing is ever overwritten.
 * @folder, @name: one segment each (eb_project_safe_name())
 * @uid, @gid: who owns the file when this process is root
 */
void eb_project_save_async(EbWorker *disk, const char *project_root, const char *project, const char *folder,
                           const char *name, GBytes *bytes, guint32 uid, guint32 gid, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data);
/** eb_project_save_finish: (transfer full) (nullable): the path within the project */
char *eb_project_save_finish(GAsyncResult *result, GError **error);

/** EB_PROJECT_MAX_NAME: bytes of a name that eb_project_safe_name() gives. */
#define EB_PROJECT_MAX_NAME 80
/**
 * eb_project_safe_name: (transfer full): @name as one path segment: letters, digits and "._-" of any script stay, all
 * else becomes "_", dots at the start go, at most EB_PROJECT_MAX_NAME bytes with its extension kept; "attachment" when
 * nothing is left.
 */
char *eb_project_safe_name(const char *name);

G_END_DECLS
