/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The lease: a connection from one launcher, as guest root, to init. Init sends one byte when it grants it; while it is open the
 * guest lives, when it is lost init ends everything and powers off. That works even when the whole host side is
 * gone, because the launcher itself ends when nobody reads its output.
 */
#define LEASE_DIR "/run/errand"
#define LEASE_PATH LEASE_DIR "/lease.sock"

/** lease_listen: makes LEASE_DIR (0700) and the socket. Returns a non-blocking descriptor or a negative errno. */
int lease_listen(void);

/** lease_accept: takes one connection of uid 0. Returns its descriptor, -EAGAIN when it was somebody else's. */
int lease_accept(int listener);

/** lease_take: connects to init. Returns a descriptor to keep open, or a negative errno: -ENOENT: this init has
 *  no lease, -ECONNREFUSED: another launcher holds it. */
int lease_take(void);
