/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * This machine's npm: what registry it is set to, and the few things it is asked to do. It runs no script of a package
 * and reads no project's settings: it is started in a directory of ours.
 */

/**
 * eb_npm_run: runs npm to its end; blocking, for worker threads.
 * @arguments: (array zero-terminated=1): after "npm"
 * @dir: where it runs
 * @output: (out) (optional) (transfer full): its stdout, 4 MiB at most
 *
 * Returns: FALSE with what it printed on stderr in the message when it does not end with 0.
 */
gboolean eb_npm_run(const char *const *arguments, const char *dir, guint deadline_ms, GCancellable *cancellable,
                    char **output, GError **error);

/** EbNpmRegistry: where packages come from. */
typedef struct {
    char *url;          /* ends with "/" */
    GHashTable *scopes; /* (element-type utf8 utf8): "@scope" -> URL, where it has one of its own */
    char *ca_file;      /* (nullable) */
    char *proxy;        /* (nullable): URL; may hold a password */
    char *no_proxy;     /* (nullable): hosts reached without it, "a,b" */
} EbNpmRegistry;

/**
 * eb_npm_registry_read: what npm is set to.
 * @scopes: (array zero-terminated=1): "@scope"
 */
EbNpmRegistry *eb_npm_registry_read(const char *const *scopes, GCancellable *cancellable, GError **error);
/** eb_npm_registry_parse: the same from what `npm config get` printed. Returns: (transfer full) (nullable) */
EbNpmRegistry *eb_npm_registry_parse(const char *output, GError **error);
void eb_npm_registry_free(EbNpmRegistry *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbNpmRegistry, eb_npm_registry_free)

/** eb_npm_registry_archive_url: (transfer full): of a package, by the rule that registries follow. */
char *eb_npm_registry_archive_url(const EbNpmRegistry *self, const char *name, const char *version);

G_END_DECLS
