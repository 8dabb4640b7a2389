/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-call.h"

void
eb_cli_wait_ready(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbCliWait *wait = user_data;

    g_set_object(&wait->result, result);
    wait->done = TRUE;
}

GAsyncResult *
eb_cli_wait_result(EbCli *cli, EbCliWait *wait)
{
    eb_cli_wait(cli, &wait->done);
    wait->done = FALSE;
    return wait->result;
}

void
eb_cli_wait_clear(EbCliWait *wait)
{
    g_clear_object(&wait->result);
}

JsonNode *
eb_cli_call(EbCli *cli, EbControlClient *client, const char *method, JsonNode *params, guint deadline_ms,
            GError **error)
{
    g_auto(EbCliWait) wait = {0};

    eb_control_client_call_async(client, method, params, deadline_ms, eb_cli_wait_ready, &wait);
    return eb_control_client_call_finish(client, eb_cli_wait_result(cli, &wait), error);
}
