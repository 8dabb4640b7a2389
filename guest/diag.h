/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdnoreturn.h>

/* Exit code of everything that is the launcher's own failure; 126 and 127 are never used, since incusd turns them
 * into failed operations. */
#define GUEST_EXIT_ERROR 125

/** diag_set_program: @name: static string put before every message. */
void diag_set_program(const char *name);

/** diag_warn: one line on stderr. */
void diag_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** diag_die: one line on stderr, then _exit(GUEST_EXIT_ERROR): no atexit handlers, safe in a forked child. */
noreturn void diag_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
