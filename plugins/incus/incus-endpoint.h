/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** IncusEndpoint: where incusd is and as whom it is asked. Immutable after it is built. */
typedef struct {
    char *socket_path;            /* (nullable): unix socket */
    char *host;                   /* (nullable): https: host to connect to */
    guint16 port;                 /* https */
    GTlsCertificate *client_cert; /* (nullable): https: certificate with key */
    GTlsCertificate *server_cert; /* (nullable): https: the one certificate that is accepted */
    char *access;                 /* "incus-user socket", "socket" or "https" */
    gboolean per_user;            /* reached through incus-user: its project is named after the account */
    gboolean automatic;           /* nothing is configured: chosen by who asks, see incus_endpoint_settle() */
} IncusEndpoint;

/**
 * incus_endpoint_from_section: (transfer full) (nullable)
 *
 * Reads socket, url, client_cert, client_key and server_cert. With none of them: the socket of incus-user when this
 * account may open it (root never goes through it), else incusd's own. There is no client configuration directory
 * of any kind, so nothing a guest could write ever decides which server or certificate is used.
 */
IncusEndpoint *incus_endpoint_from_section(EbConfigSection *section, GError **error);
/**
 * incus_endpoint_settle: (transfer full) (nullable): the endpoint for the account this process is now, NULL when it does
 * not depend on that. Modules are configured before root is given up and used after it.
 */
IncusEndpoint *incus_endpoint_settle(const IncusEndpoint *self);
/** incus_endpoint_new_socket: (transfer full) */
IncusEndpoint *incus_endpoint_new_socket(const char *path);
IncusEndpoint *incus_endpoint_copy(const IncusEndpoint *self);
void incus_endpoint_free(IncusEndpoint *self);
/** incus_endpoint_describe: (transfer full): for messages, e.g. "/var/lib/incus/unix.socket". */
char *incus_endpoint_describe(const IncusEndpoint *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(IncusEndpoint, incus_endpoint_free)

G_END_DECLS
