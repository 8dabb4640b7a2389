/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/** EbCliBackend: the configured container backend, for a command that needs nothing else of the plugins. */
typedef struct {
    EbPaths *paths;              /* (not owned) */
    EbPluginRegistry *registry;  /* (not owned) */
    EbContainerBackend *backend; /* (not owned): of @registry */
    char *alias;                 /* of the guest image, as configured */
} EbCliBackend;

/** eb_cli_backend_open: opens that plugin alone and starts it. Returns: (transfer full) (nullable) */
EbCliBackend *eb_cli_backend_open(EbCli *cli, GCancellable *cancellable, GError **error);
/**
 * eb_cli_backend_open_as_account: the same for work on the state directory: root gives itself up for the service's
 * account between opening the plugin and starting it. A backend that does not start is no failure: what is asked of it
 * then says why.
 */
EbCliBackend *eb_cli_backend_open_as_account(EbCli *cli, GError **error);
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
