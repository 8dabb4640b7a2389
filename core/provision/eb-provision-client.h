/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbProvisionClient: the container daemon's REST API over its administrative unix socket, for setup alone. Blocks, with
 * a deadline on every call. (Sessions never use this: they go through a container backend with less rights.)
 */
typedef struct _EbProvisionClient EbProvisionClient;

EbProvisionClient *eb_provision_client_new(const char *socket_path);
void eb_provision_client_free(EbProvisionClient *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbProvisionClient, eb_provision_client_free)

/**
 * eb_provision_client_call:
 * @method: "GET", "POST", "PUT", "PATCH"
 * @path: from "/1.0" on; names in it must be escaped (eb_provision_path())
 * @body: (nullable) (transfer full)
 * @deadline_ms: for the whole call, background operations included
 *
 * An operation that runs in the background is waited for.
 * Returns: (transfer full) (nullable): the answer's metadata. Errors: EB_ERROR_NOT_FOUND, _DENIED, _UNAVAILABLE (nobody
 * answers), _TIMEOUT, _PROTOCOL, _FAILED (the daemon refused; its own text is the message).
 */
JsonNode *eb_provision_client_call(EbProvisionClient *self, const char *method, const char *path, JsonNode *body,
                                   guint deadline_ms, GError **error);

/** eb_provision_daemon_dir: (transfer full): the container daemon's directory: its own variable, else the default. */
char *eb_provision_daemon_dir(void);
/**
 * eb_provision_daemon_socket: (transfer full): the socket of @daemon_dir that the running user is to ask: root the
 * daemon's own, since the users' socket would make a project for root; others the users' one.
 */
char *eb_provision_daemon_socket(const char *daemon_dir);

/** eb_provision_path: (transfer full): printf with every argument a string that is escaped for a URL path. */
char *eb_provision_path(const char *format, ...) G_GNUC_PRINTF(1, 2);

G_END_DECLS
