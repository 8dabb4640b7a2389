/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-image-job.h"
#include "core/provision/eb-image-recipe.h"

G_BEGIN_DECLS

/**
 * eb_image_npm_install: installs one program of pins.toml into a root file system: every package of its lock file is
 * fetched into the cache of pins, checked against its SHA-512 and unpacked; no script of a package runs. Its commands
 * are linked into /usr/local/bin.
 * @root: the root file system
 */
gboolean eb_image_npm_install(EbImageJob *job, const EbImageRecipe *recipe, const EbPin *pin, const char *root,
                              GError **error);

G_END_DECLS
