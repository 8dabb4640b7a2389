/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-service.h"

/* The watchdog ends with what made it: a second. */
#define WATCHDOG_MS 10000

static const char *
kind_of(const EbCliService *service)
{
    return eb_supervisor_kind_to_string(eb_supervisor_get_kind(service->supervisor));
}

/* @what: "ready" or what became of it */
static void
print_state(EbCli *cli, const EbCliService *service, const char *what, gboolean already)
{
    if (!eb_cli_get_json(cli)) {
        eb_cli_print(cli, "errand-boxd %s %s (pid %d, %s)\n", already ? "runs already and is" : "is", what,
                     (int)service->unit.pid, kind_of(service));
        return;
    }
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "schema", 1);
    json_object_set_string_member(object, "supervisor", kind_of(service));
    json_object_set_string_member(object, "state", what);
    json_object_set_int_member(object, "pid", service->unit.pid);
    json_object_set_boolean_member(object, "already", already);
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    eb_cli_print_json(cli, node);
}

/* The service did not become ready: its own last word is worth more than the supervisor's. */
static int
tell_failure(EbCli *cli, EbCliService *service, const GError *failure)
{
    g_autofree char *log = eb_supervisor_read_log(service->supervisor, EB_CLI_SERVICE_UNIT);
    g_autofree char *said = eb_cli_service_last_error(log);
    g_autofree char *means = NULL;
    g_autofree char *what = NULL;
    const EbUnitStatus *unit = &service->unit;

    if (g_error_matches(failure, EB_ERROR, EB_ERROR_DENIED) || !eb_cli_service_query(service, NULL) ||
        (unit->state != EB_UNIT_FAILED && unit->state != EB_UNIT_WAITING))
        return eb_cli_fail(cli, "up", failure);
    means = eb_cli_service_exit_means(unit->exit_code, unit->exit_signal);
    what = g_strdup_printf("up: errand-boxd is not ready: %s%s%s%s", means, said != NULL ? ": " : "",
                           said != NULL ? said : "",
                           unit->state == EB_UNIT_WAITING ? "; it is started again (errand-box status)" : "");
    eb_cli_fail(cli, what, NULL);
    return unit->exit_code >= EB_EXIT_REFUSED && unit->exit_code <= EB_EXIT_LOCKED ? unit->exit_code : EB_EXIT_FAILED;
}

static void
start_watchdog(EbCli *cli, EbCliService *service)
{
    g_autoptr(GError) error = NULL;

    if (eb_supervisor_has_unit(service->supervisor, EB_CLI_WATCHDOG_UNIT) &&
        !eb_supervisor_start(service->supervisor, EB_CLI_WATCHDOG_UNIT, WATCHDOG_MS, &error))
        eb_cli_fail(cli, "up: the service is ready, its watchdog is not", error);
}

static int
up_supervised(EbCli *cli, EbCliService *service)
{
    g_autoptr(GError) error = NULL;
    gboolean already = service->unit.state == EB_UNIT_READY;

    if (!already && !eb_cli_get_json(cli))
        fprintf(stderr, "starting errand-boxd with %s\n", kind_of(service));
    if (!already && !eb_supervisor_start(service->supervisor, EB_CLI_SERVICE_UNIT, EB_CLI_START_MS, &error))
        return tell_failure(cli, service, error);
    start_watchdog(cli, service);
    if (!eb_cli_service_query(service, &error))
        return eb_cli_fail(cli, "up", error);
    print_state(cli, service, eb_unit_state_to_string(service->unit.state), already);
    return EB_EXIT_OK;
}

static void
say_why_foreground(EbCliService *service, gboolean wanted)
{
    EbSupervisorKind kind = eb_supervisor_get_kind(service->supervisor);

    if (wanted)
        return;
    if (kind == EB_SUPERVISOR_NONE)
        fprintf(stderr, "no supervisor (systemd, s6) runs here: the service runs in the foreground, Ctrl-C ends it\n");
    else if (service->unit.state == EB_UNIT_MISSING)
        fprintf(stderr,
                "%s has no errand-boxd (errand-box setup): the service runs in the foreground, Ctrl-C ends it\n",
                kind_of(service));
    else
        fprintf(stderr,
                "the errand-boxd of %s runs another configuration (%s): this one runs in the foreground, Ctrl-C ends "
                "it\n",
                kind_of(service), service->unit.config != NULL ? service->unit.config : "/etc/errand-box");
}

static int
refuse_held(EbCli *cli, EbCliService *service, EbConfig *config)
{
    g_autofree char *what = NULL;

    if (service->holder.pid == 0)
        what = g_strdup_printf("up: %s", service->lock_problem->message);
    else
        what = g_strdup_printf("up: process %d%s%s%s holds %s (errand-box down)", (int)service->holder.pid,
                               service->holder.id != NULL ? " (instance " : "",
                               service->holder.id != NULL ? service->holder.id : "",
                               service->holder.id != NULL ? ")" : "", eb_config_get_state_dir(config));
    eb_cli_fail(cli, what, NULL);
    return EB_EXIT_LOCKED;
}

int
eb_cmd_up(EbCli *cli, int argc, char **argv)
{
    gboolean foreground = eb_cli_args_flag(eb_cli_get_args(cli), "foreground");
    g_autoptr(GError) error = NULL;
    g_auto(EbCliService) service = {0};
    EbConfig *config = eb_cli_get_config(cli, &error);
    gboolean own;

    if (config == NULL || !eb_cli_service_find(cli, config, &service, &error))
        return eb_cli_fail(cli, "up", error);
    if (service.unit_problem != NULL && !foreground)
        return eb_cli_fail(cli, "up", service.unit_problem);
    own = service.ours && service.holder.pid != 0 && service.holder.pid == service.unit.pid;
    if (g_error_matches(service.lock_problem, EB_ERROR, EB_ERROR_DENIED))
        return eb_cli_fail(cli, "up", service.lock_problem);
    if (eb_cli_service_is_held(&service) && (foreground || !own))
        return refuse_held(cli, &service, config);
    if (!foreground && service.ours)
        return up_supervised(cli, &service);
    say_why_foreground(&service, foreground);
    return eb_cmd_serve(cli, argc, argv);
}
