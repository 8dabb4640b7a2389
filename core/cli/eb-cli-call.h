/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"
#include "core/control/eb-control-client.h"

G_BEGIN_DECLS

/**
 * EbCliWait: waits for one asynchronous call:
 *
 *   EbCliWait wait = {0};
 *   thing_async(thing, NULL, eb_cli_wait_ready, &wait);
 *   thing_finish(thing, eb_cli_wait_result(cli, &wait), &error);
 *   eb_cli_wait_clear(&wait);
 */
typedef struct {
    GAsyncResult *result; /* (owned) (nullable) */
    gboolean done;
} EbCliWait;
/** eb_cli_wait_ready: a GAsyncReadyCallback with the EbCliWait as its data. */
void eb_cli_wait_ready(GObject *source, GAsyncResult *result, gpointer user_data);
/** eb_cli_wait_result: (transfer none): runs the main loop until it is there; the wait can be used again. */
GAsyncResult *eb_cli_wait_result(EbCli *cli, EbCliWait *wait);
void eb_cli_wait_clear(EbCliWait *wait);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbCliWait, eb_cli_wait_clear)

/** eb_cli_call: (transfer full) (nullable): asks the service and waits. @params: (transfer full) (nullable) */
JsonNode *eb_cli_call(EbCli *cli, EbControlClient *client, const char *method, JsonNode *params, guint deadline_ms,
                      GError **error);

G_END_DECLS
