/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/resource.h>

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * What a process gives up for good. Everything here holds for the calling thread and what it starts later, so it is
 * called before there are other threads.
 */

/** eb_sandbox_harden: no new privileges, no core dump, no attaching debugger, no read of /proc/PID/mem. */
gboolean eb_sandbox_harden(GError **error);

/** eb_sandbox_limit: lowers soft and hard limit of @resource to @value (or to the hard limit there is). */
gboolean eb_sandbox_limit(__rlimit_resource_t resource, guint64 value, GError **error);

/** eb_sandbox_drop_capabilities: gives up every capability, for a process that root started: it keeps its files' owner. */
gboolean eb_sandbox_drop_capabilities(GError **error);

/** eb_sandbox_landlock_abi: version of the kernel's Landlock, 0 when it has none. */
guint eb_sandbox_landlock_abi(void);

/**
 * eb_sandbox_restrict_files:
 * @readable: (array zero-terminated=1): files and directories that may be read from now on; missing ones are skipped
 *
 * Everything else of the file system is out of reach. Where the kernel can, listening on TCP, abstract unix sockets of
 * others and signals to others are refused too.
 *
 * Returns: FALSE with EB_ERROR_NOT_SUPPORTED on a kernel without Landlock.
 */
gboolean eb_sandbox_restrict_files(const char *const *readable, GError **error);

/** EbSandboxMatch: how an argument of a system call is looked at. */
typedef enum {
    EB_SANDBOX_ANY = 0,
    EB_SANDBOX_EQUAL,  /* argument == value */
    EB_SANDBOX_OTHER,  /* argument != value */
    EB_SANDBOX_MASKED, /* (argument & mask) == value */
} EbSandboxMatch;

/** EB_SANDBOX_KILL: of fail_errno: the call kills the process at once, whatever becomes of calls that are not listed. */
#define EB_SANDBOX_KILL (-1)

/** EbSandboxCall: one allowed system call; several rows of one number are alternatives. */
typedef struct {
    int number; /* SCMP_SYS(name) */
    EbSandboxMatch match;
    guint argument;
    guint64 mask;
    guint64 value;
    int fail_errno; /* 0 = allowed; EB_SANDBOX_KILL; otherwise the call fails with this and the process lives */
} EbSandboxCall;

/**
 * eb_sandbox_filter: from now on only @calls may be made.
 * @trap: any other one raises SIGSYS, whose handler has to end the process; FALSE: it kills the process, as one of another
 *   architecture always does. The kernel logs what it kills for.
 */
gboolean eb_sandbox_filter(const EbSandboxCall *calls, gsize n_calls, gboolean trap, GError **error);

G_END_DECLS
