/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-websocket.h"

G_BEGIN_DECLS

/**
 * IncusExec: an EbExec over incusd's websockets "0", "1", "2" and "control".
 *
 * The control socket holds the process's life: incusd kills the process when it is lost, which is what happens when
 * the last reference is dropped. A pending eb_exec_wait_async() holds a reference. When incusd goes away, waiters get
 * EB_ERROR_UNAVAILABLE; the process may live on in the guest (facts the session knows how to end).
 */
#define INCUS_TYPE_EXEC (incus_exec_get_type())
G_DECLARE_FINAL_TYPE(IncusExec, incus_exec, INCUS, EXEC, GObject)

/** IncusExecSocket: the websockets of an exec, in this order; a terminal has no stdout and stderr of their own. */
typedef enum {
    INCUS_EXEC_STDIN = 0,
    INCUS_EXEC_STDOUT = 1,
    INCUS_EXEC_STDERR = 2,
    INCUS_EXEC_CONTROL = 3,
    INCUS_EXEC_N_SOCKETS = 4,
} IncusExecSocket;

/** incus_exec_new: (transfer full): follows operation @operation from now on. */
IncusExec *incus_exec_new(IncusClient *client, const char *operation, gboolean tty);
/** incus_exec_attach: @sockets: (transfer none): INCUS_EXEC_N_SOCKETS, NULL where a terminal has none. */
gboolean incus_exec_attach(IncusExec *self, SoupWebsocketConnection *const *sockets, GError **error);

/**
 * incus_exec_outcome: the exit code in a finished exec operation, -1 with @error.
 * @reply: (nullable): the operation
 * @failure: (nullable): why it failed instead
 *
 * incusd makes an operation of exit code 126 or 127 a failure, whoever returned it; here both are exit codes again.
 */
int incus_exec_outcome(IncusReply *reply, const GError *failure, GError **error);

G_END_DECLS
