/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbPinCache: a private directory that holds what was fetched, each file under the name of its digest. A file is staged
 * without a name and gets one when its digest (and its signature) are the pinned ones: whatever ends a fetch before
 * that leaves nothing. What is in it is checked again whenever it is used.
 */
typedef struct _EbPinCache EbPinCache;

/** eb_pin_cache_default_dir: (transfer full): below ERRAND_BOX_CACHE, else /var/cache/errand-box/pins for root, else in the user's cache. */
char *eb_pin_cache_default_dir(void);
/**
 * eb_pin_cache_open:
 * @create: make it when it is missing
 *
 * Returns: (transfer full) (nullable): EB_ERROR_NOT_FOUND, or _DENIED when it is somebody else's or others may write
 */
EbPinCache *eb_pin_cache_open(const char *dir, gboolean create, GError **error);
void eb_pin_cache_free(EbPinCache *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPinCache, eb_pin_cache_free)

/** EbPinExpected: what a file has to be. */
typedef struct {
    const char *what;     /* names it in messages */
    const char *digest;   /* see eb-pin-digest.h */
    guint64 max_size;     /* bytes */
    const char *minisign; /* (nullable): public key */
} EbPinExpected;

/**
 * eb_pin_cache_check: reads a cached file, and its signature where a key is pinned.
 * @present: (out): is it there?
 *
 * Returns: FALSE with EB_ERROR_INTEGRITY when it is there and is not what is expected
 */
gboolean eb_pin_cache_check(EbPinCache *self, const EbPinExpected *expected, gboolean *present, GError **error);
/** eb_pin_cache_drop: removes a file that is not what it should be. */
void eb_pin_cache_drop(EbPinCache *self, const char *digest);
/** eb_pin_cache_path: (transfer full): where a file of @digest is when it is there. */
char *eb_pin_cache_path(EbPinCache *self, const char *digest);

/** EbPinCacheCount: what eb_pin_cache_sweep() found. */
typedef struct {
    guint kept;
    guint removed;
    guint64 kept_bytes;
    guint64 removed_bytes;
} EbPinCacheCount;

/**
 * eb_pin_cache_sweep: removes what no pin names.
 * @wanted: (element-type utf8): set of eb_pin_digest_file_name()
 * @dry_run: only counts
 */
gboolean eb_pin_cache_sweep(EbPinCache *self, GHashTable *wanted, gboolean dry_run, EbPinCacheCount *count,
                            GError **error);

/** EbPinStaged: a file that is being written and has no name yet. */
typedef struct _EbPinStaged EbPinStaged;

/** eb_pin_cache_stage: (transfer full) (nullable): @expected: what it points to must outlive the result */
EbPinStaged *eb_pin_cache_stage(EbPinCache *self, const EbPinExpected *expected, GError **error);
/** eb_pin_staged_write: appends; an EbHttpWrite with the EbPinStaged as its data. */
gboolean eb_pin_staged_write(const void *data, gsize length, gpointer staged, GError **error);
/** eb_pin_staged_size: bytes written so far. */
guint64 eb_pin_staged_size(EbPinStaged *self);
/**
 * eb_pin_staged_commit: gives the file its name when it is what was expected.
 * @signature: (nullable): text of the signature file, needed where a key is pinned
 *
 * Returns: FALSE with EB_ERROR_INTEGRITY that names both digests, or both keys
 */
gboolean eb_pin_staged_commit(EbPinStaged *self, GBytes *signature, GError **error);
/**
 * eb_pin_staged_learn: the digest that the file has, when its signature is the pinned key's; it gets no name.
 *
 * Returns: (transfer full) (nullable): spelled as the expected one
 */
char *eb_pin_staged_learn(EbPinStaged *self, GBytes *signature, GError **error);
void eb_pin_staged_free(EbPinStaged *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPinStaged, eb_pin_staged_free)

G_END_DECLS
