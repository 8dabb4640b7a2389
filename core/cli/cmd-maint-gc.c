/* SPDX-License-Identifier: MIT */
/* maint gc: through the service that runs, or instead of one that does not. */
#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-maint.h"
#include "core/session/eb-gc.h"
#include "core/session/eb-session-manager.h"

/* Removing a large tree takes as long as it takes. */
#define GC_DEADLINE_MS (15 * 60 * 1000)

static JsonNode *
ask_service(EbCli *cli, EbControlClient *client, gboolean plan, guint64 free_bytes, GError **error)
{
    JsonObject *params = json_object_new();

    json_object_set_boolean_member(params, "plan", plan);
    json_object_set_int_member(params, "free", (gint64)MIN(free_bytes, (guint64)G_MAXINT64));
    return eb_cli_call(cli, client, "maint.gc", eb_control_object(params), GC_DEADLINE_MS, error);
}

static EbSessionManager *
open_manager(EbCli *cli, EbCliBackend *opened, GError **error)
{
    g_auto(EbCliWait) wait = {0};

    eb_session_manager_open_upkeep_async(eb_cli_get_config(cli, NULL), opened->paths, opened->backend,
                                         eb_cli_wait_ready, &wait);
    return eb_session_manager_open_finish(eb_cli_wait_result(cli, &wait), error);
}

/* Holds the state directory as the service would. */
static JsonNode *
do_it(EbCli *cli, gboolean plan, guint64 free_bytes, GError **error)
{
    g_autoptr(EbCliBackend) opened = eb_cli_backend_open_as_account(cli, error);
    g_autoptr(EbSessionManager) manager = opened != NULL ? open_manager(cli, opened, error) : NULL;
    g_auto(EbCliWait) wait = {0};

    if (manager == NULL)
        return NULL;
    eb_session_manager_gc_async(manager, plan, free_bytes, eb_cli_wait_ready, &wait);
    g_autoptr(GPtrArray) classes = eb_session_manager_gc_finish(manager, eb_cli_wait_result(cli, &wait), error);
    g_auto(EbCliWait) closed = {0};
    eb_session_manager_close_async(manager, NULL, eb_cli_wait_ready, &closed);
    eb_session_manager_close_finish(manager, eb_cli_wait_result(cli, &closed), NULL);
    return classes != NULL ? eb_gc_to_json(classes, plan) : NULL;
}

static void
print_class(EbCli *cli, JsonObject *class)
{
    const char *note = eb_json_get_string(class, "note");
    gint64 bytes = eb_json_get_int(class, "bytes", 0);
    g_autofree char *freed = bytes > 0 ? g_format_size_full((guint64)bytes, G_FORMAT_SIZE_IEC_UNITS) : g_strdup("-");

    eb_cli_print(cli, "%-10s %8" G_GINT64_FORMAT " %8" G_GINT64_FORMAT " %8" G_GINT64_FORMAT "  %12s\n",
                 eb_json_get_string(class, "class"), eb_json_get_int(class, "before", 0),
                 eb_json_get_int(class, "removed", 0), eb_json_get_int(class, "after", 0), freed);
    if (note != NULL) {
        g_autofree char *shown = eb_log_escape(note, -1, 300);
        eb_cli_print(cli, "           %s\n", shown);
    }
}

void
eb_cli_maint_print_gc(EbCli *cli, JsonNode *report, gboolean plan)
{
    JsonArray *classes = eb_json_get_array(eb_json_node_object(report), "classes");

    eb_cli_print(cli, "%-10s %8s %8s %8s  %12s\n", "", "before", "removed", "after", plan ? "would free" : "freed");
    for (guint i = 0; classes != NULL && i < json_array_get_length(classes); i++)
        print_class(cli, eb_json_array_object(classes, i));
}

JsonNode *
eb_cli_maint_collect(EbCli *cli, gboolean plan, guint64 free_bytes, GError **error)
{
    g_autoptr(GError) local = NULL;
    EbConfig *config = eb_cli_get_config(cli, error);
    g_autoptr(EbControlClient) client =
        config != NULL ? eb_control_client_new(eb_config_get_state_dir(config), &local) : NULL;

    if (config == NULL)
        return NULL;
    if (client != NULL)
        return ask_service(cli, client, plan, free_bytes, error);
    if (g_error_matches(local, EB_ERROR, EB_ERROR_UNAVAILABLE))
        return do_it(cli, plan, free_bytes, error);
    g_propagate_error(error, g_steal_pointer(&local));
    return NULL;
}

int
eb_cli_maint_gc(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    gboolean plan = eb_cli_args_flag(eb_cli_get_args(cli), "plan");
    const char *wanted = eb_cli_args_value(eb_cli_get_args(cli), "free");
    guint64 free_bytes = 0;

    if (wanted != NULL && !eb_config_parse_size(wanted, &free_bytes, &error))
        return eb_cli_refuse(cli, "maint gc --free: %s", error->message);
    g_autoptr(JsonNode) report = eb_cli_maint_collect(cli, plan, free_bytes, &error);

    if (report == NULL)
        return eb_cli_fail(cli, "maint gc", error);
    if (eb_cli_get_json(cli))
        eb_cli_print_json(cli, g_steal_pointer(&report));
    else
        eb_cli_maint_print_gc(cli, report, plan);
    return EB_EXIT_OK;
}
