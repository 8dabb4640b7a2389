/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-pins.h"
#include "core/provision/eb-http-get.h"
#include "core/provision/eb-pin-cache.h"

G_BEGIN_DECLS

/** EB_PIN_MAX_PACKAGE: largest archive of an npm package, bytes: a lock file does not say how large it is. */
#define EB_PIN_MAX_PACKAGE (G_GUINT64_CONSTANT(512) << 20)
/** EB_PIN_SIGNATURE_SUFFIX: what a signature's URL has besides the file's own, unless pins.toml names another. */
#define EB_PIN_SIGNATURE_SUFFIX ".minisig"

/**
 * EbPinFetch: brings what pins.toml names into a cache, checked. The one way in which anything is downloaded. Blocking,
 * for one worker thread.
 */
typedef struct _EbPinFetch EbPinFetch;

/** EbPinFetched: what one call did. */
typedef struct {
    guint files;   /* that are wanted */
    guint fetched; /* of these, now */
    guint64 bytes; /* fetched */
} EbPinFetched;

/**
 * EbPinProgress: @what is about to be fetched; called in the worker thread.
 */
typedef void (*EbPinProgress)(const char *what, gpointer user_data);

/**
 * eb_pin_fetch_new:
 * @cache: (nullable): outlives the result; without one only eb_pin_fetch_text() works
 * @tree: directory of pins.toml, with guest/ below it
 */
EbPinFetch *eb_pin_fetch_new(EbPinCache *cache, const char *tree, const EbHttpLimits *limits,
                             GCancellable *cancellable);
void eb_pin_fetch_set_progress(EbPinFetch *self, EbPinProgress progress, gpointer user_data);
void eb_pin_fetch_free(EbPinFetch *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPinFetch, eb_pin_fetch_free)

/** eb_pin_fetch_packages: packages of the npm registry. @packages: (element-type EbPinPackage) */
gboolean eb_pin_fetch_packages(EbPinFetch *self, GPtrArray *packages, EbPinFetched *fetched, GError **error);
/** eb_pin_fetch_pin: all that @pin names, for this machine. A Debian package is only compared with what apt would take. */
gboolean eb_pin_fetch_pin(EbPinFetch *self, const EbPin *pin, EbPinFetched *fetched, GError **error);

/**
 * eb_pin_fetch_learn: the digest of @version of an archive, checked against its pinned key where there is one.
 *
 * Returns: (transfer full) (nullable): spelled as the pinned one
 */
char *eb_pin_fetch_learn(EbPinFetch *self, const EbPin *pin, const char *version, GError **error);
/** eb_pin_fetch_text: (transfer full) (nullable): a page that names versions; not checked, and only read. */
GBytes *eb_pin_fetch_text(EbPinFetch *self, const char *url, gsize max_bytes, GError **error);

/** eb_pin_package_expected: what a cached archive of @package is. The result points into @package. */
EbPinExpected eb_pin_package_expected(const EbPinPackage *package);
/** eb_pin_expected: what a cached archive or file is. The result points into @pin. */
EbPinExpected eb_pin_expected(const EbPin *pin);
/** eb_pin_file_path: (transfer full): of a file pin. */
char *eb_pin_file_path(const EbPin *pin, const char *tree);

G_END_DECLS
