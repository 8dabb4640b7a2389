/* SPDX-License-Identifier: MIT */
#pragma once

/** loopback_up: brings lo up (needs CAP_NET_ADMIN unless it is up already). Returns 0 or a negative errno. */
int loopback_up(void);

/**
 * loopback_find_other: looks for a network device besides lo that is up: a session has none.
 * @name: (out): at least IF_NAMESIZE bytes
 * Returns: 1 and @name when there is one, 0 when not, a negative errno on failure.
 */
int loopback_find_other(char *name);
