/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-exec.h"

G_BEGIN_DECLS

/** incus_exec_start_async: @deadline: for the start alone, until all websockets are open. */
void incus_exec_start_async(IncusClient *client, const char *name, const EbExecSpec *spec, IncusDeadline *deadline,
                            GAsyncReadyCallback callback, gpointer user_data);
/** incus_exec_start_finish: (transfer full) (nullable) */
EbExec *incus_exec_start_finish(GAsyncResult *result, GError **error);

/** incus_exec_body: (transfer full): the request; there is no environment in it on purpose. */
JsonNode *incus_exec_body(const EbExecSpec *spec);

G_END_DECLS
