/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_run: runs a program of the host to its end and collects what it prints (stdout and stderr together, the first
 * 512 KiB). stdin is empty, no shell is involved, the environment is PATH and LC_ALL alone.
 * @argv: (array zero-terminated=1): argv[0] is searched in the system's directories
 * @output: (out) (optional) (transfer full)
 * @deadline_ms: the program is killed beyond it
 *
 * Returns: FALSE when it cannot be run, ends other than with 0 (its last line is in the message), or takes too long.
 */
gboolean eb_run(const char *const *argv, guint deadline_ms, char **output, GError **error);

/**
 * eb_run_logged: the same for a program that must not be cut off in the middle: it gets a session of its own, so that
 * neither an interrupt at the terminal nor our end reaches it, and writes into a file instead of to us.
 * @environment: (nullable) (array zero-terminated=1): in the place of PATH and LC_ALL alone
 * @log_file: made or emptied; after a failure its last line is in the message, and its name
 */
gboolean eb_run_logged(const char *const *argv, const char *const *environment, const char *log_file, guint deadline_ms,
                       GError **error);

/** eb_run_find: (transfer full) (nullable): path of program @name in the system's directories. */
char *eb_run_find(const char *name);

G_END_DECLS
