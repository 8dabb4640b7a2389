/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * Daemons that setup starts itself because nothing supervises them. A pid file holds the pid and the time the process
 * started, so that a number that was given to another process since is never signalled; its directory must be
 * writable by root alone.
 */

/** EbDaemonSpec: what to start. */
typedef struct {
    const char *name;               /* for messages */
    const char *const *argv;        /* argv[0]: absolute */
    const char *const *environment; /* all of it */
    const char *log_file;           /* stdout and stderr are appended to it */
    const char *pid_file;
} EbDaemonSpec;

/**
 * eb_daemon_process_start: in a session of its own, without our descriptors, with as many open files as the host
 * allows. The pid file is complete before the program runs.
 */
gboolean eb_daemon_process_start(const EbDaemonSpec *spec, GError **error);

/** eb_daemon_process_alive: the process of @pid_file runs. */
gboolean eb_daemon_process_alive(const char *pid_file);

/**
 * eb_daemon_process_stop: @signum, and SIGKILL when it is still there after @grace_ms; removes the pid file. Succeeds
 * when nothing runs.
 */
gboolean eb_daemon_process_stop(const char *pid_file, int signum, guint grace_ms, GError **error);

G_END_DECLS
