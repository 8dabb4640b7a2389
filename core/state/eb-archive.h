/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbArchive: the file of a backup: a plain tar that any tar can list, of which we read only what we write: regular files
 * with short names of a fixed set. No links, devices, directories, extensions or absolute names exist in it, so there is
 * nothing to follow; whatever else a file contains is refused. Order: the marker, the files, the manifest, its digest.
 */
#define EB_ARCHIVE_FORMAT 1
#define EB_ARCHIVE_MARKER "errand-box-backup"
#define EB_ARCHIVE_MANIFEST "manifest.json"
#define EB_ARCHIVE_DIGEST "manifest.sha256"

/** EB_ARCHIVE_BLOCK: bytes of a tar header. */
#define EB_ARCHIVE_BLOCK 512
/** EB_ARCHIVE_MAX_NAME: bytes of a name; tar's own field. */
#define EB_ARCHIVE_MAX_NAME 100
/** EB_ARCHIVE_MAX_ENTRIES: files in one archive: one database for each try, of which there are at most 10000. */
#define EB_ARCHIVE_MAX_ENTRIES 10200
/** EB_ARCHIVE_MAX_SIZE: bytes of one file: what eleven octal digits of a tar header can say. */
#define EB_ARCHIVE_MAX_SIZE (G_GUINT64_CONSTANT(8) * 1024 * 1024 * 1024 - 1)
/** EB_ARCHIVE_MAX_MANIFEST: bytes of the manifest; 10200 entries of less than 250. */
#define EB_ARCHIVE_MAX_MANIFEST (4 * 1024 * 1024)
/** EB_ARCHIVE_MAX_CONFIG: bytes of one configuration file. */
#define EB_ARCHIVE_MAX_CONFIG (1024 * 1024)

/** EbArchiveEntry: one header. */
typedef struct {
    char name[EB_ARCHIVE_MAX_NAME + 1];
    guint64 size;
} EbArchiveEntry;

/** eb_archive_check_name: is it one of the names that an archive may hold? Pure. */
gboolean eb_archive_check_name(const char *name);
/**
 * eb_archive_parse_header:
 * @block: EB_ARCHIVE_BLOCK bytes
 * @end: (out): TRUE: a block of zeros, the end of a tar
 *
 * Pure. FALSE with EB_ERROR_INVALID "backup.foreign" for anything that eb_archive_format_header() does not write.
 */
gboolean eb_archive_parse_header(const guint8 *block, EbArchiveEntry *entry, gboolean *end, GError **error);
/** eb_archive_format_header: @block: EB_ARCHIVE_BLOCK bytes; @mtime: unix seconds */
void eb_archive_format_header(guint8 *block, const EbArchiveEntry *entry, gint64 mtime);

/** EbArchiveFile: what the manifest says of one file. */
typedef struct {
    char *name;
    guint64 size;
    char *sha256;
} EbArchiveFile;
void eb_archive_file_free(EbArchiveFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbArchiveFile, eb_archive_file_free)

/** EbArchiveManifest: what the backup says of itself. */
typedef struct {
    char *version; /* of the program that made it */
    gint64 schema; /* of its database */
    char *created; /* RFC 3339 */
    gint64 sessions;
    GPtrArray *files; /* (element-type EbArchiveFile), in the order of the archive, without manifest and digest */
} EbArchiveManifest;
EbArchiveManifest *eb_archive_manifest_new(void);
void eb_archive_manifest_free(EbArchiveManifest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbArchiveManifest, eb_archive_manifest_free)
/** eb_archive_manifest_add: notes one file. @sha256: (transfer none): 64 digits */
void eb_archive_manifest_add(EbArchiveManifest *self, const char *name, guint64 size, const char *sha256);
/** eb_archive_manifest_write: (transfer full) */
char *eb_archive_manifest_write(const EbArchiveManifest *self);
/** eb_archive_manifest_parse: (transfer full) (nullable): EB_ERROR_CONFIG "backup.newer" for a format we do not know. */
EbArchiveManifest *eb_archive_manifest_parse(const char *text, gsize length, GError **error);
/** eb_archive_manifest_check: EB_ERROR_INTEGRITY "backup.altered" names the first file that differs. */
gboolean eb_archive_manifest_check(const EbArchiveManifest *self, const EbArchiveManifest *read, GError **error);

/* --- on descriptors; blocking --- */

/** eb_archive_write_bytes, eb_archive_write_file: one file, noted in @manifest (nullable). */
gboolean eb_archive_write_bytes(int fd, const char *name, const void *data, gsize length, EbArchiveManifest *manifest,
                                GError **error);
gboolean eb_archive_write_file(int fd, const char *name, int file, EbArchiveManifest *manifest, GError **error);
/** eb_archive_write_end: manifest, its digest and the end of the tar. */
gboolean eb_archive_write_end(int fd, const EbArchiveManifest *manifest, GError **error);

/** EbArchiveOpen: (nullable) @error: a descriptor for the content of @entry, closed by the reader; -1 and @error. */
typedef int (*EbArchiveOpen)(const EbArchiveEntry *entry, gpointer user_data, GError **error);
/**
 * eb_archive_read: reads @fd to its end.
 * @max_total: bytes of all files, beyond which it ends with EB_ERROR_QUOTA
 *
 * Returns: (transfer full) (nullable): the manifest, which is what was read in every point.
 */
EbArchiveManifest *eb_archive_read(int fd, guint64 max_total, EbArchiveOpen open_file, gpointer user_data,
                                   GError **error);

G_END_DECLS
