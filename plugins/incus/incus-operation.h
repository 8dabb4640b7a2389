/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-client.h"

G_BEGIN_DECLS

/**
 * incus_operation_run_async: a request and, when it starts an operation, its end.
 *
 * Answers that say "busy" or "not ready" are tried again with growing pauses (for 10 s at most, within @deadline).
 * Only use it for requests that are safe to repeat after such an answer: incusd gives them before it acts.
 */
void incus_operation_run_async(IncusClient *client, const char *method, const char *path, JsonNode *body,
                               IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data);
/** incus_operation_wait_async: the end of operation @id that was started already. */
void incus_operation_wait_async(IncusClient *client, const char *id, IncusDeadline *deadline,
                                GAsyncReadyCallback callback, gpointer user_data);
/** incus_operation_finish: (transfer full) (nullable): the operation, or the answer of a synchronous request. */
IncusReply *incus_operation_finish(GAsyncResult *result, GError **error);

G_END_DECLS
