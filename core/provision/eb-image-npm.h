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

/**
 * eb_image_npm_check_tree: TRUE when there is nothing but directories and regular files of one name below @dir. What a link of
 * a package leads to is the host's while an image is made: the next package would be unpacked there, by root.
 * @what: the package
 */
gboolean eb_image_npm_check_tree(const char *dir, const char *what, GError **error);

G_END_DECLS
