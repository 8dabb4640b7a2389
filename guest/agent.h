/* SPDX-License-Identifier: MIT */
#pragma once

#include "guest/options.h"

#include <stdnoreturn.h>

/* The agent's uid and gid in every guest. */
#define AGENT_UID 1000
#define AGENT_GID 1000

/**
 * agent_become: turns this process into the agent: gives up guest root for good, then reads the session's block
 * from standard input (no other process ever holds its secrets), makes HOME, places files, enters the working
 * directory and executes the command. Never returns; failures exit with GUEST_EXIT_ERROR.
 * @tty: standard input is a terminal, to become the controlling one
 */
noreturn void agent_become(const struct options *options, bool tty);
