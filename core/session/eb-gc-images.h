/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-gc.h"

G_BEGIN_DECLS

/** EB_GC_IMAGE_GRACE_S: an image without a name may be on its way to one for this long after it was sent. */
#define EB_GC_IMAGE_GRACE_S 60

/**
 * eb_gc_images_pick:
 * @images: (element-type EbImageInfo): of the backend
 * @instances: (element-type EbInstanceInfo): all there are, whoever they belong to
 * @now: unix seconds
 *
 * Which images are old versions of ours that nobody needs: made by us (property errand.recipe), without a name, older
 * than @grace_s, and no instance was made from them. Pure.
 * Returns: (transfer container) (element-type EbImageInfo): of @images
 */
GPtrArray *eb_gc_images_pick(const GPtrArray *images, const GPtrArray *instances, gint64 now, guint grace_s);

/** eb_gc_images_async: removes them; @plan: counts alone */
void eb_gc_images_async(EbContainerBackend *backend, guint grace_s, gboolean plan, GAsyncReadyCallback callback,
                        gpointer user_data);
/** eb_gc_images_finish: (transfer full): what could not be learnt or done is its note. */
EbGcClass *eb_gc_images_finish(GAsyncResult *result);

G_END_DECLS
