/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-pin-cache.h"

#include "core/base/eb-own-dir.h"
#include "core/config/eb-minisign.h"
#include "core/config/eb-pin-digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 65536
#define SIGNATURE_SUFFIX ".minisig"
#define SYSTEM_DIR "/var/cache/errand-box/pins"
/* Files looked at by a sweep: every package of every pin, and as many again of earlier versions. */
#define MAX_FILES 100000

struct _EbPinCache {
    int fd;
    char *dir;
};

struct _EbPinStaged {
    EbPinCache *cache; /* (not owned) */
    EbPinExpected expected;
    int fd;
    guint64 size;
    GChecksum *sum;
    EbMinisignHash *hash; /* (nullable): where a key is pinned */
};

char *
eb_pin_cache_default_dir(void)
{
    const char *named = g_getenv("ERRAND_BOX_CACHE");

    if (named != NULL && named[0] == '/')
        return g_build_filename(named, "pins", NULL);
    if (geteuid() == 0)
        return g_strdup(SYSTEM_DIR);
    return g_build_filename(g_get_user_cache_dir(), "errand-box", "pins", NULL);
}

static gboolean
set_errno(const char *what, const char *path, GError **error)
{
    int code = errno;

    eb_set_error(error,
                 code == ENOENT   ? EB_ERROR_NOT_FOUND
                 : code == ENOSPC ? EB_ERROR_QUOTA
                                  : EB_ERROR_FAILED,
                 "pins.cache", "%s: %s: %s", path, what, g_strerror(code));
    return FALSE;
}

/* Ours, and nobody else may change it: decided by the descriptor, not by the name. */
static gboolean
check_owner(int fd, const char *path, mode_t type, GError **error)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return set_errno("cannot be looked at", path, error);
    if ((info.st_mode & S_IFMT) == type && info.st_uid == geteuid() && (info.st_mode & 022) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "pins.cache",
                 "%s is not used: it must be a %s of this account that nobody else may write (is %03o of uid %u)", path,
                 type == S_IFDIR ? "directory" : "file", info.st_mode & 0777, (guint)info.st_uid);
    return FALSE;
}

EbPinCache *
eb_pin_cache_open(const char *dir, gboolean create, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(dir);

    if (create && (g_mkdir_with_parents(parent, 0755) != 0 || (mkdir(dir, 0700) != 0 && errno != EEXIST))) {
        set_errno("cannot be made", dir, error);
        return NULL;
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        set_errno("cannot be opened", dir, error);
        return NULL;
    }
    g_autoptr(EbPinCache) self = g_new0(EbPinCache, 1);
    self->fd = fd;
    if (!check_owner(fd, dir, S_IFDIR, error))
        return NULL;
    /* What was checked is opened again by name, by npm. */
    self->dir = eb_own_dir_resolve(dir, error);
    return self->dir != NULL ? g_steal_pointer(&self) : NULL;
}

void
eb_pin_cache_free(EbPinCache *self)
{
    close(self->fd);
    g_free(self->dir);
    g_free(self);
}

char *
eb_pin_cache_path(EbPinCache *self, const char *digest)
{
    g_autofree char *name = eb_pin_digest_file_name(digest);
    return g_build_filename(self->dir, name, NULL);
}

void
eb_pin_cache_drop(EbPinCache *self, const char *digest)
{
    g_autofree char *name = eb_pin_digest_file_name(digest);
    g_autofree char *signature = g_strconcat(name, SIGNATURE_SUFFIX, NULL);

    unlinkat(self->fd, name, 0);
    unlinkat(self->fd, signature, 0);
}

/* -1 without @error: not there. */
static int
open_file(EbPinCache *self, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(self->dir, name, NULL);
    int fd = openat(self->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return -1;
    if (fd < 0) {
        set_errno("cannot be opened", path, error);
        return -1;
    }
    if (check_owner(fd, path, S_IFREG, error))
        return fd;
    close(fd);
    return -1;
}

static gboolean
read_file(int fd, const EbPinExpected *expected, GChecksum *sum, EbMinisignHash *hash, GError **error)
{
    g_autofree guint8 *chunk = g_malloc(CHUNK);

    for (;;) {
        gssize n = read(fd, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return set_errno("cannot be read", expected->what, error);
        if (n == 0)
            return TRUE;
        g_checksum_update(sum, chunk, n);
        if (hash != NULL)
            eb_minisign_hash_update(hash, chunk, (gsize)n);
    }
}

static gboolean
check_signature(const EbPinExpected *expected, const char *text, gsize length, EbMinisignHash *hash, GError **error)
{
    guint8 digest[EB_MINISIGN_HASH_BYTES];
    EbMinisignKey key;
    GError *problem = NULL;
    g_autoptr(EbMinisignSignature) signature = eb_minisign_signature_parse(text, length, &problem);

    if (signature == NULL) {
        g_propagate_prefixed_error(error, problem, "signature of %s: ", expected->what);
        return FALSE;
    }
    eb_minisign_hash_end(hash, digest);
    return eb_minisign_key_parse(expected->minisign, &key, error) &&
           eb_minisign_verify(expected->what, signature, &key, digest, error);
}

static gboolean
check_cached_signature(EbPinCache *self, const EbPinExpected *expected, const char *name, EbMinisignHash *hash,
                       GError **error)
{
    g_autofree char *signature = g_strconcat(name, SIGNATURE_SUFFIX, NULL);
    char text[EB_MINISIGN_MAX_BYTES + 1];
    GError *problem = NULL;
    int fd = open_file(self, signature, &problem);

    if (fd < 0) {
        if (problem != NULL)
            g_propagate_error(error, problem);
        else
            eb_set_error(error, EB_ERROR_INTEGRITY, "pins.signature", "%s has no signature beside it", expected->what);
        return FALSE;
    }
    gssize length = read(fd, text, sizeof text);
    close(fd);
    return check_signature(expected, text, length > 0 ? (gsize)length : 0, hash, error);
}

gboolean
eb_pin_cache_check(EbPinCache *self, const EbPinExpected *expected, gboolean *present, GError **error)
{
    g_autoptr(GChecksum) sum = eb_pin_digest_new_sum(expected->what, expected->digest, error);
    g_autoptr(EbMinisignHash) hash = expected->minisign != NULL ? eb_minisign_hash_new() : NULL;
    GError *problem = NULL;

    *present = FALSE;
    if (sum == NULL)
        return FALSE;
    g_autofree char *name = eb_pin_digest_file_name(expected->digest);
    int fd = open_file(self, name, &problem);
    if (fd < 0) {
        if (problem != NULL)
            g_propagate_error(error, problem);
        return problem == NULL;
    }
    *present = TRUE;
    gboolean fine = read_file(fd, expected, sum, hash, error) &&
                    eb_pin_digest_check(expected->what, expected->digest, sum, error) &&
                    (hash == NULL || check_cached_signature(self, expected, name, hash, error));
    close(fd);
    return fine;
}

EbPinStaged *
eb_pin_cache_stage(EbPinCache *self, const EbPinExpected *expected, GError **error)
{
    g_autoptr(GChecksum) sum = eb_pin_digest_new_sum(expected->what, expected->digest, error);

    if (sum == NULL)
        return NULL;
    /* Without a name, whoever ends us leaves nothing. */
    int fd = openat(self->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "pins.cache",
                     "%s: its file system has no unnamed files (name a directory on another with --cache)", self->dir);
        return NULL;
    }
    if (fd < 0) {
        set_errno("cannot be written", self->dir, error);
        return NULL;
    }
    EbPinStaged *staged = g_new0(EbPinStaged, 1);
    staged->cache = self;
    staged->expected = *expected;
    staged->fd = fd;
    staged->sum = g_steal_pointer(&sum);
    staged->hash = expected->minisign != NULL ? eb_minisign_hash_new() : NULL;
    return staged;
}

void
eb_pin_staged_free(EbPinStaged *self)
{
    close(self->fd);
    g_checksum_free(self->sum);
    g_clear_pointer(&self->hash, eb_minisign_hash_free);
    g_free(self);
}

guint64
eb_pin_staged_size(EbPinStaged *self)
{
    return self->size;
}

static gboolean
write_all(int fd, const char *dir, const guint8 *data, gsize length, GError **error)
{
    while (length > 0) {
        gssize n = write(fd, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return set_errno("cannot be written", dir, error);
        data += n;
        length -= (gsize)n;
    }
    return TRUE;
}

gboolean
eb_pin_staged_write(const void *data, gsize length, gpointer staged, GError **error)
{
    EbPinStaged *self = staged;

    self->size += length;
    if (self->size > self->expected.max_size) {
        eb_set_error(error, EB_ERROR_QUOTA, "pins.size",
                     "%s is longer than the %" G_GUINT64_FORMAT " bytes it may have", self->expected.what,
                     self->expected.max_size);
        return FALSE;
    }
    g_checksum_update(self->sum, data, (gssize)length);
    if (self->hash != NULL)
        eb_minisign_hash_update(self->hash, data, length);
    return write_all(self->fd, self->cache->dir, data, length, error);
}

static gboolean
check_staged_signature(EbPinStaged *self, GBytes *signature, GError **error)
{
    gsize length = 0;

    if (self->hash == NULL)
        return TRUE;
    if (signature == NULL) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.signature", "%s has no signature", self->expected.what);
        return FALSE;
    }
    const char *text = g_bytes_get_data(signature, &length);
    return check_signature(&self->expected, text, length, self->hash, error);
}

/* One that is there already has the same content by its name; a wrong one was dropped before. */
static gboolean
name_file(EbPinCache *self, int fd, const char *name, GError **error)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);

    if (fsync(fd) == 0 && (linkat(AT_FDCWD, path, self->fd, name, AT_SYMLINK_FOLLOW) == 0 || errno == EEXIST))
        return TRUE;
    return set_errno("cannot be put in place", self->dir, error);
}

static gboolean
keep_signature(EbPinCache *self, GBytes *signature, const char *name, GError **error)
{
    g_autofree char *own = g_strconcat(name, SIGNATURE_SUFFIX, NULL);
    int fd = openat(self->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);
    gsize length = 0;

    if (fd < 0)
        return set_errno("cannot be written", self->dir, error);
    const guint8 *text = g_bytes_get_data(signature, &length);
    gboolean kept = write_all(fd, self->dir, text, length, error) && name_file(self, fd, own, error);
    close(fd);
    return kept;
}

gboolean
eb_pin_staged_commit(EbPinStaged *self, GBytes *signature, GError **error)
{
    g_autofree char *name = eb_pin_digest_file_name(self->expected.digest);

    if (!eb_pin_digest_check(self->expected.what, self->expected.digest, self->sum, error) ||
        !check_staged_signature(self, signature, error))
        return FALSE;
    /* The signature first: a file that is in place is complete. */
    if ((self->hash != NULL && !keep_signature(self->cache, signature, name, error)) ||
        !name_file(self->cache, self->fd, name, error))
        return FALSE;
    return fsync(self->cache->fd) == 0 || set_errno("cannot be written", self->cache->dir, error);
}

char *
eb_pin_staged_learn(EbPinStaged *self, GBytes *signature, GError **error)
{
    if (!check_staged_signature(self, signature, error))
        return NULL;
    return eb_pin_digest_spell(self->expected.digest, self->sum);
}

/* "sha256-HEX" or "sha512-HEX", with or without a signature's ending: (transfer full) (nullable): without it. */
static char *
stem_of(const char *name)
{
    g_autofree char *stem = g_strdup(name);

    if (g_str_has_suffix(stem, SIGNATURE_SUFFIX))
        stem[strlen(stem) - strlen(SIGNATURE_SUFFIX)] = '\0';
    gboolean ours = (g_str_has_prefix(stem, "sha256-") || g_str_has_prefix(stem, "sha512-")) &&
                    eb_pin_digest_is_valid(stem + strlen("sha256-"));
    return ours ? g_steal_pointer(&stem) : NULL;
}

gboolean
eb_pin_cache_sweep(EbPinCache *self, GHashTable *wanted, gboolean dry_run, EbPinCacheCount *count, GError **error)
{
    int fd = openat(self->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    *count = (EbPinCacheCount){0};
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return set_errno("cannot be read", self->dir, error);
    }
    for (guint i = 0; i < MAX_FILES; i++) {
        const struct dirent *entry = readdir(dir);
        struct stat info;
        if (entry == NULL)
            break;
        g_autofree char *stem = stem_of(entry->d_name);
        if (stem == NULL || fstatat(self->fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        gboolean keep = g_hash_table_contains(wanted, stem);
        if (!keep && !dry_run && unlinkat(self->fd, entry->d_name, 0) != 0)
            continue;
        *(keep ? &count->kept : &count->removed) += 1;
        *(keep ? &count->kept_bytes : &count->removed_bytes) += (guint64)info.st_size;
    }
    closedir(dir);
    return TRUE;
}
