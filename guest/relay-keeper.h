/* SPDX-License-Identifier: MIT */
#pragma once

/* The relay's own uid and gid in the guest: the agent can neither signal nor trace it. */
#define RELAY_UID 990

/**
 * relay_keep: listens on 127.0.0.1:@port and leaves a keeper process behind that runs the relay and starts it
 * again whenever it ends. The keeper holds the listening socket, so no connection is refused in between and nobody
 * else can take the port. Does nothing when a keeper for this port runs.
 * @program: path of the relay
 * @socket_path: the host's socket
 *
 * The caller has made LEASE_DIR and is uid 0. Returns NULL, or what failed, with errno set.
 */
const char *relay_keep(unsigned port, const char *program, const char *socket_path);
