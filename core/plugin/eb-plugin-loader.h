/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/plugin/eb-plugin-manifest.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_plugin_loader_read_manifest:
 * @path: absolute path of NAME.plugin
 *
 * Trust check, bounded read, parse. Returns: (transfer full) (nullable)
 */
EbPluginManifest *eb_plugin_loader_read_manifest(const char *path, gboolean dev, GError **error);

/**
 * eb_plugin_loader_open:
 * @path: absolute path of NAME.so
 *
 * Trust check, then opens the module through the very descriptor that was judged, and judges its descriptor:
 * ABI, size, agreement with @manifest. A module once opened stays for ever, refused or not; the same file opened
 * again gives the same module, another file under a loaded plugin's name is refused ("plugin.replaced").
 *
 * Returns: (transfer none) (nullable): the descriptor of the module
 */
const EbPluginDesc *eb_plugin_loader_open(const char *path, const EbPluginManifest *manifest, gboolean dev,
                                          GError **error);

/** eb_plugin_loader_check_desc: the rules for a descriptor alone; @desc: as found in the module. */
gboolean eb_plugin_loader_check_desc(const EbPluginDesc *desc, const EbPluginManifest *manifest, GError **error);

/** eb_plugin_loader_check_abi: major equal, minor not newer; @what: "manifest" or "module". */
gboolean eb_plugin_loader_check_abi(const char *name, const char *what, guint major, guint minor, GError **error);

G_END_DECLS
