/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/config/eb-pins.h"

G_BEGIN_DECLS

/** EbImageRecipe: what a guest image is made from; immutable once loaded. */
typedef struct {
    char *guest_dir; /* where rootfs.sh and the lock files are */
    char *suite;
    char **packages;    /* Debian's */
    char **programs;    /* names in pins.toml: tools, then agents */
    char **agents;      /* of these the agents */
    guint64 free_space; /* bytes that must be free before a build */
    const char *cpu;    /* npm's name of this machine's processor */
    gboolean avx2;
    GBytes *init; /* the program */
    EbPins *pins;
    char *digest; /* SHA-256 in hex of all of this: an image with the same one need not be built again */
} EbImageRecipe;

/**
 * eb_image_recipe_load:
 * @agents: (nullable) (array zero-terminated=1): names in pins.toml; NULL = the recipe's own list
 *
 * Reads recipe, pins, init; a few small files. Returns: (transfer full) (nullable)
 */
EbImageRecipe *eb_image_recipe_load(EbPaths *paths, const char *const *agents, GError **error);
void eb_image_recipe_free(EbImageRecipe *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbImageRecipe, eb_image_recipe_free)

/** eb_image_recipe_describe_agents: (transfer full): "opencode=1.18.33,claude-agent-acp=0.49.0". */
char *eb_image_recipe_describe_agents(const EbImageRecipe *self);
/** eb_image_agent_names: (transfer full) (array zero-terminated=1): the names in such a description (nullable). */
char **eb_image_agent_names(const char *description);

G_END_DECLS
