/* SPDX-License-Identifier: MIT */
#pragma once

#include "guest/options.h"

/**
 * supervise: runs the agent in a pid and mount namespace of its own and outlives it. Whatever happens (the agent
 * ends, a signal asks for the end, nobody reads the output any more, this process is killed), the kernel ends every
 * process of that namespace with its first one: nothing the agent started can survive, whatever it did to hide.
 *
 * Returns: the exit code: the agent's, 128 + N for signal N, GUEST_EXIT_ERROR in place of 126 and 127.
 */
int supervise(const struct options *options);
