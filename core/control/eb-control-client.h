/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/control/eb-control.h"

G_BEGIN_DECLS

/** EbControlClient: the command line's end of the control socket. */
#define EB_TYPE_CONTROL_CLIENT (eb_control_client_get_type())
G_DECLARE_FINAL_TYPE(EbControlClient, eb_control_client, EB, CONTROL_CLIENT, GObject)

/** eb_control_client_new: (transfer full) (nullable): EB_ERROR_UNAVAILABLE "control.down" when no service is running. */
EbControlClient *eb_control_client_new(const char *state_dir, GError **error);
/**
 * eb_control_client_new_now: the same without waiting for a place in the queue of a service that takes no connections:
 * EB_ERROR_BUSY "control.queue". Otherwise that wait is EB_CONTROL_CONNECT_MS at most.
 */
EbControlClient *eb_control_client_new_now(const char *state_dir, GError **error);
/** eb_control_client_get_service_pid: of the process that listens, as the kernel knows it; 0 = unknown. */
pid_t eb_control_client_get_service_pid(EbControlClient *self);
/** eb_control_client_get_peer: (transfer none): for notifications and calls of the service. */
EbJsonrpc *eb_control_client_get_peer(EbControlClient *self);
/** eb_control_client_call_async: @params: (transfer full) (nullable) */
void eb_control_client_call_async(EbControlClient *self, const char *method, JsonNode *params, guint deadline_ms,
                                  GAsyncReadyCallback callback, gpointer user_data);
/** eb_control_client_call_finish: (transfer full) (nullable): an error of the service keeps its EbErrorCode. */
JsonNode *eb_control_client_call_finish(EbControlClient *self, GAsyncResult *result, GError **error);

G_END_DECLS
