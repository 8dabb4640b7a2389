/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_PLUGIN_MANIFEST_MAX: bytes a manifest may have. */
#define EB_PLUGIN_MANIFEST_MAX (16 * 1024)

/**
 * EbPluginManifest: what NAME.plugin says, read before the module is opened. A key file with one group:
 *
 *   [Plugin]
 *   Name=hello                      as the folder, the module and the descriptor
 *   Version=1.2
 *   Abi=1.0
 *   License=MIT
 *   Implements=doctor-check         POINT or POINT:NAME, separated by semicolons
 *   ConfigSection=plugin.hello      optional; no other table is ever given
 *   Accesses=/etc/motd;run:uname    optional: paths, unix:SOCKET, run:PROGRAM, host:NAME; shown to operators
 *   Requires=other-plugin           optional: plugins that must be loaded
 */
typedef struct {
    char *name;
    char *version;
    guint abi_major;
    guint abi_minor;
    char *license;
    char **implements; /* (array zero-terminated=1) */
    char *config_section;
    char **accesses; /* (array zero-terminated=1) */
    char **requires; /* (array zero-terminated=1) */
} EbPluginManifest;

/**
 * eb_plugin_manifest_parse:
 * @text: bytes, need not be NUL-terminated
 * @path: for messages
 *
 * Returns: (transfer full) (nullable): NULL with EB_ERROR_INVALID, reason "plugin.manifest".
 */
EbPluginManifest *eb_plugin_manifest_parse(const char *text, gsize length, const char *path, GError **error);

/** eb_plugin_manifest_implements: whether @point, and of it @name (nullable: any), is declared. */
gboolean eb_plugin_manifest_implements(const EbPluginManifest *self, EbExtensionPoint point, const char *name);

/** eb_plugin_name_is_valid: [a-z][a-z0-9-]{0,62} */
gboolean eb_plugin_name_is_valid(const char *name);

void eb_plugin_manifest_free(EbPluginManifest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPluginManifest, eb_plugin_manifest_free)

G_END_DECLS
