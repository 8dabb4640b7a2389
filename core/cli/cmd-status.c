/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-commands.h"

#include <string.h>

/* One line for each chat that tells how it is reached; a terminal does not. */
static void
print_transports(EbCli *cli, JsonArray *list)
{
    guint n = list != NULL ? json_array_get_length(list) : 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *transport = eb_json_array_object(list, i);
        const char *name = eb_json_get_string(transport, "name");
        const char *state = eb_json_get_string(transport, "state");
        const char *detail = eb_json_get_string(transport, "detail");
        if (g_strcmp0(state, "quiet") == 0)
            continue;
        eb_cli_print(cli, "%-14s %s: %s%s%s (for %" G_GINT64_FORMAT " s)\n", "chat", name, state,
                     detail != NULL ? ": " : "", detail != NULL ? detail : "",
                     eb_json_get_int(transport, "seconds", 0));
    }
}

int
eb_cmd_status(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    EbConfig *config = eb_cli_get_config(cli, &error);
    g_autoptr(EbControlClient) client =
        config != NULL ? eb_control_client_new(eb_config_get_state_dir(config), &error) : NULL;
    g_autoptr(JsonNode) status =
        client != NULL ? eb_cli_call(cli, client, "status", NULL, EB_CONTROL_DEADLINE_MS, &error) : NULL;

    if (status == NULL)
        return eb_cli_fail(cli, "status", error);
    if (eb_cli_get_json(cli)) {
        eb_cli_print_json(cli, g_steal_pointer(&status));
        return EB_EXIT_OK;
    }
    JsonObject *object = eb_json_node_object(status);
    g_autoptr(GList) members = object != NULL ? json_object_get_members(object) : NULL;
    for (GList *at = members; at != NULL; at = at->next) {
        if (strcmp(at->data, "transports") == 0) {
            print_transports(cli, eb_json_get_array(object, "transports"));
            continue;
        }
        g_autofree char *text = eb_json_write(json_object_get_member(object, at->data), NULL);
        eb_cli_print(cli, "%-14s %s\n", (const char *)at->data, text);
    }
    return EB_EXIT_OK;
}
