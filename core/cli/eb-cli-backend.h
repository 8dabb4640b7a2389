/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/** EbCliBackend: the configured container backend, started, for a command that needs nothing else of the plugins. */
typedef struct {
    EbPaths *paths;              /* (not owned) */
    EbPluginRegistry *registry;  /* (not owned) */
    EbContainerBackend *backend; /* (not owned): of @registry */
    char *alias;                 /* of the guest image, as configured */
} EbCliBackend;

/** eb_cli_backend_open: opens that plugin alone and starts it. Returns: (transfer full) (nullable) */
EbCliBackend *eb_cli_backend_open(EbCli *cli, GCancellable *cancellable, GError **error);
void eb_cli_backend_free(EbCliBackend *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbCliBackend, eb_cli_backend_free)

/**
 * EbCliInterrupt: while it exists SIGINT, SIGTERM and SIGHUP say on stderr that what was begun is taken back, and cancel
 * @cancellable.
 */
typedef struct _EbCliInterrupt EbCliInterrupt;
EbCliInterrupt *eb_cli_interrupt_new(GCancellable *cancellable);
void eb_cli_interrupt_free(EbCliInterrupt *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbCliInterrupt, eb_cli_interrupt_free)

/** eb_cli_print_progress: an EbImageProgress that writes to stderr. */
void eb_cli_print_progress(const char *stage, guint seconds, gboolean done, gpointer user_data);

G_END_DECLS
