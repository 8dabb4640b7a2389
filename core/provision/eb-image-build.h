/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-image-job.h"
#include "core/provision/eb-image-recipe.h"

G_BEGIN_DECLS

/** EbImageFiles: a built image in the cache. */
typedef struct {
    char *metadata; /* tar with metadata.yaml */
    char *rootfs;   /* tar of the root file system */
    gboolean built; /* FALSE: was in the cache */
} EbImageFiles;
void eb_image_files_free(EbImageFiles *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbImageFiles, eb_image_files_free)

/** EB_IMAGE_PARTIAL: begins the names of builds under way in a cache; each holds a lock on its directory. */
#define EB_IMAGE_PARTIAL "partial-"

/** eb_image_default_cache: (transfer full): ERRAND_BOX_CACHE, else /var/cache/errand-box/images. */
char *eb_image_default_cache(void);

/**
 * eb_image_build_async:
 * @paths, @agents: as for eb_image_recipe_load()
 * @cache_dir: (nullable): NULL = eb_image_default_cache(); made when missing (0755)
 *
 * Makes the image, or finds it in the cache under the recipe's digest. Runs as root, in a worker thread. A build that
 * fails, is cancelled or killed leaves nothing that a later one would take for an image; what a killed one left is
 * removed by the next. Two builds at once: the second waits for the first, then finds its result.
 */
void eb_image_build_async(EbPaths *paths, const char *const *agents, const char *cache_dir, EbImageProgress progress,
                          gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data);
/** eb_image_build_finish: (transfer full) (nullable) */
EbImageFiles *eb_image_build_finish(GAsyncResult *result, GError **error);

G_END_DECLS
