/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/plugin/eb-plugin-registry.h"

G_BEGIN_DECLS

/**
 * EbDaemonTransports: the chats the service is in: whether each is reached, and the end of the service when one can
 * never be. What passes by itself (an outage, a limit) is never such an end.
 */
typedef struct _EbDaemonTransports EbDaemonTransports;

/** EbTransportFailed: @error: (transfer none): names the transport */
typedef void (*EbTransportFailed)(const GError *error, gpointer user_data);

/** eb_daemon_transports_new: @failed: a transport gave up; called once at most for each */
EbDaemonTransports *eb_daemon_transports_new(EbTransportFailed failed, gpointer user_data);
void eb_daemon_transports_free(EbDaemonTransports *self);
/** eb_daemon_transports_watch: before the transport is attached, so that nothing it says is missed. */
void eb_daemon_transports_watch(EbDaemonTransports *self, const char *name, EbChatTransport *transport);
/**
 * eb_daemon_transports_json: (transfer full): [{"name","state","detail","seconds"}]; state: "up", "down", "failed", or
 * "quiet" for one that never told; seconds: since it changed.
 */
JsonArray *eb_daemon_transports_json(EbDaemonTransports *self);

/**
 * eb_daemon_check_transports: has a plugin that is a chat transport refused its configuration, or started into something
 * only an operator can change? The service would run and nobody could reach it. A module that could not be loaded is
 * told of and left out, as any plugin.
 *
 * Returns: FALSE with EB_ERROR_CONFIG, _UNAUTHENTICATED or _DENIED, the plugin's own reason and sentence
 */
gboolean eb_daemon_check_transports(EbPluginRegistry *registry, GError **error);

G_END_DECLS
