/* SPDX-License-Identifier: MIT */
/* Archives on descriptors. Blocks: for workers, or for a process that does nothing else. */
#include "core/state/eb-archive.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
/* Zeros behind the end that other tars write to fill their records. */
#define MAX_PADDING (20 * EB_ARCHIVE_BLOCK)

static gboolean
write_all(int fd, const void *data, gsize length, GError **error)
{
    for (gsize at = 0; at < length;) {
        ssize_t n = write(fd, (const char *)data + at, length - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            gboolean full = errno == ENOSPC || errno == EDQUOT;
            eb_set_error(error, full ? EB_ERROR_QUOTA : EB_ERROR_FAILED, "backup.write", "cannot write: %s%s",
                         g_strerror(errno), full ? " (free some space there)" : "");
            return FALSE;
        }
        at += (gsize)n;
    }
    return TRUE;
}

/* As many bytes as there are, at most @length. */
static gboolean
read_full(int fd, void *data, gsize length, gsize *got, GError **error)
{
    *got = 0;
    while (*got < length) {
        ssize_t n = read(fd, (char *)data + *got, length - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            eb_set_error(error, EB_ERROR_FAILED, "backup.read", "cannot read: %s", g_strerror(errno));
            return FALSE;
        }
        if (n == 0)
            break;
        *got += (gsize)n;
    }
    return TRUE;
}

static gsize
padding(guint64 size)
{
    return (gsize)((EB_ARCHIVE_BLOCK - size % EB_ARCHIVE_BLOCK) % EB_ARCHIVE_BLOCK);
}

static gboolean
write_header(int fd, const char *name, guint64 size, GError **error)
{
    guint8 block[EB_ARCHIVE_BLOCK];
    EbArchiveEntry entry = {.size = size};

    if (!eb_archive_check_name(name) || size > EB_ARCHIVE_MAX_SIZE) {
        eb_set_error(error, EB_ERROR_INVALID, "backup.size", "%s is too large for a backup, or no name of one", name);
        return FALSE;
    }
    g_strlcpy(entry.name, name, sizeof entry.name);
    eb_archive_format_header(block, &entry, g_get_real_time() / G_USEC_PER_SEC);
    return write_all(fd, block, sizeof block, error);
}

gboolean
eb_archive_write_bytes(int fd, const char *name, const void *data, gsize length, EbArchiveManifest *manifest,
                       GError **error)
{
    static const guint8 zeros[EB_ARCHIVE_BLOCK];
    g_autofree char *sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, length);

    if (!write_header(fd, name, length, error) || !write_all(fd, data, length, error) ||
        !write_all(fd, zeros, padding(length), error))
        return FALSE;
    if (manifest != NULL)
        eb_archive_manifest_add(manifest, name, length, sha256);
    return TRUE;
}

gboolean
eb_archive_write_file(int fd, const char *name, int file, EbArchiveManifest *manifest, GError **error)
{
    static const guint8 zeros[EB_ARCHIVE_BLOCK];
    g_autofree guint8 *buffer = g_malloc(CHUNK);
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    struct stat info;

    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        eb_set_error(error, EB_ERROR_FAILED, "backup.read", "%s is no regular file", name);
        return FALSE;
    }
    guint64 size = (guint64)info.st_size;
    if (!write_header(fd, name, size, error))
        return FALSE;
    for (guint64 left = size; left > 0;) {
        gsize got = 0;
        if (!read_full(file, buffer, (gsize)MIN(left, CHUNK), &got, error))
            return FALSE;
        if (got == 0) {
            eb_set_error(error, EB_ERROR_FAILED, "backup.read", "%s became shorter while it was read", name);
            return FALSE;
        }
        g_checksum_update(sum, buffer, (gssize)got);
        if (!write_all(fd, buffer, got, error))
            return FALSE;
        left -= got;
    }
    if (manifest != NULL)
        eb_archive_manifest_add(manifest, name, size, g_checksum_get_string(sum));
    return write_all(fd, zeros, padding(size), error);
}

gboolean
eb_archive_write_end(int fd, const EbArchiveManifest *manifest, GError **error)
{
    static const guint8 zeros[2 * EB_ARCHIVE_BLOCK];
    g_autofree char *text = eb_archive_manifest_write(manifest);
    g_autofree char *sha256 = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);

    return eb_archive_write_bytes(fd, EB_ARCHIVE_MANIFEST, text, strlen(text), NULL, error) &&
           eb_archive_write_bytes(fd, EB_ARCHIVE_DIGEST, sha256, strlen(sha256), NULL, error) &&
           write_all(fd, zeros, sizeof zeros, error);
}

/* --- reading --- */

typedef struct {
    int fd;
    guint64 left; /* bytes of files that may still come */
    EbArchiveOpen open_file;
    gpointer user_data;
    EbArchiveManifest *read; /* what was there */
    GString *manifest;       /* (nullable): text */
    GString *digest;         /* (nullable) */
    guint8 *buffer;
} Reader;

static gboolean
truncated(GError **error)
{
    eb_set_error(error, EB_ERROR_INTEGRITY, "backup.truncated",
                 "the backup ends before its end: it was not copied whole (take another copy)");
    return FALSE;
}

static gboolean
read_block(Reader *self, guint8 *block, GError **error)
{
    gsize got = 0;

    if (!read_full(self->fd, block, EB_ARCHIVE_BLOCK, &got, error))
        return FALSE;
    return got == EB_ARCHIVE_BLOCK || truncated(error);
}

/* The content into @target (-1: nowhere) and @text (nullable), its digest into @sha256. */
static gboolean
read_content(Reader *self, const EbArchiveEntry *entry, int target, GString *text, char **sha256, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize got = 0;

    for (guint64 left = entry->size; left > 0; left -= got) {
        if (!read_full(self->fd, self->buffer, (gsize)MIN(left, CHUNK), &got, error))
            return FALSE;
        if (got == 0)
            return truncated(error);
        g_checksum_update(sum, self->buffer, (gssize)got);
        if (target >= 0 && !write_all(target, self->buffer, got, error))
            return FALSE;
        if (text != NULL)
            g_string_append_len(text, (const char *)self->buffer, (gssize)got);
    }
    *sha256 = g_strdup(g_checksum_get_string(sum));
    if (!read_full(self->fd, self->buffer, padding(entry->size), &got, error))
        return FALSE;
    return got == padding(entry->size) || truncated(error);
}

static gboolean
read_text(Reader *self, const EbArchiveEntry *entry, gsize max, GString **text, GError **error)
{
    g_autofree char *sha256 = NULL;

    if (*text != NULL || entry->size > max) {
        eb_set_error(error, EB_ERROR_INVALID, "backup.foreign", "%s is there twice, or too large", entry->name);
        return FALSE;
    }
    *text = g_string_new(NULL);
    return read_content(self, entry, -1, *text, &sha256, error);
}

static gboolean
was_read(const EbArchiveManifest *read, const char *name)
{
    for (guint i = 0; i < read->files->len; i++)
        if (strcmp(((const EbArchiveFile *)read->files->pdata[i])->name, name) == 0)
            return TRUE;
    return FALSE;
}

static gboolean
read_file(Reader *self, const EbArchiveEntry *entry, GError **error)
{
    g_autofree char *sha256 = NULL;
    gboolean config = g_str_has_prefix(entry->name, "etc/");
    gboolean marker = strcmp(entry->name, EB_ARCHIVE_MARKER) == 0;

    if (marker != (self->read->files->len == 0)) {
        eb_set_error(error, EB_ERROR_INVALID, "backup.foreign",
                     "this is no backup of errand-box: it does not begin "
                     "with " EB_ARCHIVE_MARKER);
        return FALSE;
    }
    if (self->manifest != NULL || was_read(self->read, entry->name)) {
        eb_set_error(error, EB_ERROR_INVALID, "backup.foreign", "%s is there twice, or behind the manifest",
                     entry->name);
        return FALSE;
    }
    if (self->read->files->len >= EB_ARCHIVE_MAX_ENTRIES || entry->size > self->left ||
        (config && entry->size > EB_ARCHIVE_MAX_CONFIG) || (marker && entry->size > EB_ARCHIVE_BLOCK)) {
        eb_set_error(error, EB_ERROR_QUOTA, "backup.size",
                     "the backup needs more room than there is: %s has %" G_GUINT64_FORMAT " bytes, %" G_GUINT64_FORMAT
                     " may still come",
                     entry->name, entry->size, self->left);
        return FALSE;
    }
    self->left -= entry->size;
    int target = marker ? -1 : self->open_file(entry, self->user_data, error);
    if (target < 0 && !marker)
        return FALSE;
    gboolean good = read_content(self, entry, target, NULL, &sha256, error);
    if (good && target >= 0 && fsync(target) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "backup.write", "%s: %s", entry->name, g_strerror(errno));
        good = FALSE;
    }
    if (target >= 0)
        close(target);
    if (good)
        eb_archive_manifest_add(self->read, entry->name, entry->size, sha256);
    return good;
}

static gboolean
read_end(Reader *self, GError **error)
{
    gsize got = 0;

    if (!read_full(self->fd, self->buffer, MAX_PADDING + 1, &got, error))
        return FALSE;
    if (got < EB_ARCHIVE_BLOCK)
        return truncated(error);
    for (gsize i = 0; i < got; i++) {
        if (self->buffer[i] == 0 && got <= MAX_PADDING)
            continue;
        eb_set_error(error, EB_ERROR_INTEGRITY, "backup.altered", "something stands behind the end of the backup");
        return FALSE;
    }
    return TRUE;
}

static gboolean
read_entries(Reader *self, GError **error)
{
    for (;;) {
        guint8 block[EB_ARCHIVE_BLOCK];
        EbArchiveEntry entry;
        gboolean end = FALSE, good;
        if (!read_block(self, block, error) || !eb_archive_parse_header(block, &entry, &end, error))
            return FALSE;
        if (end)
            return read_end(self, error);
        if (strcmp(entry.name, EB_ARCHIVE_MANIFEST) == 0)
            good = read_text(self, &entry, EB_ARCHIVE_MAX_MANIFEST, &self->manifest, error);
        else if (strcmp(entry.name, EB_ARCHIVE_DIGEST) == 0)
            good = read_text(self, &entry, EB_ARCHIVE_BLOCK, &self->digest, error);
        else
            good = read_file(self, &entry, error);
        if (!good)
            return FALSE;
    }
}

static EbArchiveManifest *
judge(Reader *self, GError **error)
{
    if (self->manifest == NULL || self->digest == NULL) {
        truncated(error);
        return NULL;
    }
    g_autofree char *sha256 =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)self->manifest->str, self->manifest->len);
    if (strcmp(sha256, self->digest->str) != 0) {
        g_autofree char *said = eb_log_escape(self->digest->str, -1, 80);
        eb_set_error(error, EB_ERROR_INTEGRITY, "backup.altered",
                     "the manifest of the backup was altered: sha256 %s, expected %s (take another copy)", sha256,
                     said);
        return NULL;
    }
    g_autoptr(EbArchiveManifest) manifest = eb_archive_manifest_parse(self->manifest->str, self->manifest->len, error);
    if (manifest == NULL || !eb_archive_manifest_check(manifest, self->read, error))
        return NULL;
    return g_steal_pointer(&manifest);
}

EbArchiveManifest *
eb_archive_read(int fd, guint64 max_total, EbArchiveOpen open_file, gpointer user_data, GError **error)
{
    Reader self = {.fd = fd, .left = max_total, .open_file = open_file, .user_data = user_data};
    EbArchiveManifest *manifest = NULL;

    self.read = eb_archive_manifest_new();
    self.buffer = g_malloc(CHUNK);
    if (read_entries(&self, error))
        manifest = judge(&self, error);
    if (self.manifest != NULL)
        g_string_free(self.manifest, TRUE);
    if (self.digest != NULL)
        g_string_free(self.digest, TRUE);
    eb_archive_manifest_free(self.read);
    g_free(self.buffer);
    return manifest;
}
