/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker.h"

G_BEGIN_DECLS

/** EB_PIPE_POOL_MAX: pipes of all tunnels together; without one a tunnel copies. */
#define EB_PIPE_POOL_MAX 32
/** EB_PIPE_SIZE: bytes of one pipe; one that the kernel does not grant is not used. */
#define EB_PIPE_SIZE (256 * 1024)

/** EbPipePool: pipes for splice(2), lent while bytes are in flight alone: an idle tunnel holds none. */
EbPipePool *eb_pipe_pool_new(void);
void eb_pipe_pool_free(EbPipePool *self);

/**
 * eb_tunnel_start: copies between @client and @upstream until both sides have ended, half-closing each in turn.
 * @client: its descriptor is handed over
 * @upstream: (transfer full)
 * @early: bytes the client sent behind its request, @n_early of them (copied)
 * @audit: (transfer full): moved out of the caller's; the row is sent when the tunnel ends
 */
void eb_tunnel_start(EbBroker *broker, EbWatch *client, int upstream, const char *early, gsize n_early, EbAudit *audit);

G_END_DECLS
