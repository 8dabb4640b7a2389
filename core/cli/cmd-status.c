/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/eb-json-members.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-service.h"
#include "core/cli/eb-status-screen.h"
#include "core/daemon/eb-daemon-doctor.h"
#include "core/provision/eb-backend-look.h"
#include "core/session/eb-dir-lock.h"
#include "core/watchdog/eb-watchdog.h"

/* Whoever looks does not want to wait for a service that hangs. */
#define ASK_MS 5000
#define MAX_WATCHDOG_FILE (64 * 1024)

static void
set_number(JsonObject *object, const char *member, gint64 value, gboolean known)
{
    if (known)
        json_object_set_int_member(object, member, value);
    else
        json_object_set_null_member(object, member);
}

static JsonObject *
supervisor_json(const EbCliService *service)
{
    const EbUnitStatus *unit = &service->unit;
    gboolean ended = unit->exit_code >= 0 || unit->exit_signal > 0;
    g_autofree char *means =
        ended && unit->pid == 0 ? eb_cli_service_exit_means(unit->exit_code, unit->exit_signal) : NULL;
    g_autoptr(GDateTime) moment = unit->since_s > 0 ? g_date_time_new_from_unix_utc(unit->since_s) : NULL;
    g_autofree char *since = moment != NULL ? g_date_time_format_iso8601(moment) : NULL;
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "kind",
                                  eb_supervisor_kind_to_string(eb_supervisor_get_kind(service->supervisor)));
    json_object_set_string_member(object, "unit", EB_CLI_SERVICE_UNIT);
    json_object_set_boolean_member(object, "ours", service->ours);
    json_object_set_string_member(object, "state", eb_unit_state_to_string(unit->state));
    json_object_set_boolean_member(object, "enabled", unit->enabled);
    set_number(object, "pid", unit->pid, unit->pid > 0);
    eb_json_set_text_or_null(object, "since", since);
    set_number(object, "exit_code", unit->exit_code, unit->exit_code >= 0);
    set_number(object, "exit_signal", unit->exit_signal, unit->exit_signal > 0);
    eb_json_set_text_or_null(object, "exit_means", means);
    json_object_set_int_member(object, "restarts", unit->restarts);
    eb_json_set_text_or_null(object, "error", service->unit_problem != NULL ? service->unit_problem->message : NULL);
    return object;
}

/* What the watchdog last wrote, for display alone: the account can write the file. */
static JsonObject *
watchdog_json(const char *state_dir)
{
    g_autofree char *directory = g_build_filename(state_dir, "run", NULL);
    g_autofree char *path = g_build_filename(directory, EB_WATCHDOG_FILE, NULL);
    g_autofree char *text = g_malloc(MAX_WATCHDOG_FILE);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    gssize n = -1;

    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        n = read(fd, text, MAX_WATCHDOG_FILE);
    if (fd >= 0)
        close(fd);
    g_autoptr(JsonNode) node = n > 0 ? eb_json_parse(text, (gsize)n, NULL, NULL) : NULL;
    JsonObject *object = eb_json_node_object(node);
    object = object != NULL ? json_object_ref(object) : json_object_new();
    json_object_set_boolean_member(object, "running", eb_dir_lock_is_held(directory, EB_WATCHDOG_LOCK_FILE));
    return object;
}

/* A service that does not answer: why, and what to type next. */
static void
explain_down(EbCliService *service, const char *state_dir, const GError *problem, JsonObject *object)
{
    const EbUnitStatus *unit = &service->unit;
    /* The service's last word is about its last end only when it ended with an error of its own. */
    gboolean failed = service->ours && unit->pid == 0 && unit->exit_code > 0;
    g_autofree char *log = failed ? eb_supervisor_read_log(service->supervisor, EB_CLI_SERVICE_UNIT) : NULL;
    g_autofree char *said = eb_cli_service_last_error(log);
    g_autofree char *where = service->ours ? eb_supervisor_where_log(service->supervisor, EB_CLI_SERVICE_UNIT) : NULL;
    g_autofree char *why = NULL;
    const char *next = "errand-box up";

    if (service->holder.pid != 0) {
        why = g_strdup_printf("process %d holds %s and does not answer: %s", (int)service->holder.pid, state_dir,
                              problem->message);
        next = "wait when it starts or drains; end it when it hangs (errand-box down)";
    } else if (service->lock_problem != NULL) {
        why = g_strdup(service->lock_problem->message);
        next = "look as root (errand-box status)";
    } else if (service->unit_problem != NULL) {
        why = g_strdup(service->unit_problem->message);
    } else if (service->ours && unit->state == EB_UNIT_WAITING) {
        why = g_strdup("it ended and its supervisor is about to start it again");
        next = "look again in some seconds (errand-box status)";
    } else if (service->ours && unit->state == EB_UNIT_FAILED) {
        why = g_strdup("it ended and its supervisor leaves it so");
        next = "put right what the last error names, then start it (errand-box up)";
    } else if (service->ours && (unit->exit_code == 0 || unit->exit_signal == SIGTERM)) {
        why = g_strdup("it was stopped");
    }
    eb_json_set_text_or_null(object, "why", why);
    eb_json_set_text_or_null(object, "last_error", said);
    eb_json_set_text_or_null(object, "log", where);
    json_object_set_string_member(object, "next", next);
}

/* Without a service to tell its findings, the doctor is asked: in a process of its own, with a deadline. */
static void
run_doctor(EbCli *cli, EbConfig *config, JsonObject *object)
{
    const char *const *accepted = eb_config_get_accept_degraded(config);
    g_auto(EbCliWait) wait = {0};
    g_autoptr(GError) error = NULL;
    JsonObject *health = json_object_new();
    JsonArray *rows = json_array_new();

    eb_daemon_doctor_run_async(eb_cli_get_paths(cli, NULL), NULL, eb_cli_get_config_file(cli), NULL,
                               EB_DAEMON_DOCTOR_DEADLINE_MS, NULL, eb_cli_wait_ready, &wait);
    g_autoptr(JsonNode) report = eb_daemon_doctor_run_finish(eb_cli_wait_result(cli, &wait), &error);
    JsonArray *checks = eb_json_get_array(eb_json_node_object(report), "checks");
    for (guint i = 0; checks != NULL && i < json_array_get_length(checks); i++) {
        JsonObject *check = eb_json_array_object(checks, i);
        const char *id = eb_json_get_string(check, "id");
        const char *status = eb_json_get_string(check, "status");
        if (id == NULL || (g_strcmp0(status, "degraded") != 0 && g_strcmp0(status, "fail") != 0))
            continue;
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "id", id);
        eb_json_set_text_or_null(row, "title", eb_json_get_string(check, "title"));
        json_object_set_string_member(row, "status", status);
        json_object_set_boolean_member(row, "accepted", g_strv_contains(accepted, id));
        json_array_add_object_element(rows, row);
    }
    json_object_set_null_member(health, "hold");
    json_object_set_array_member(health, "checks", rows);
    eb_json_set_text_or_null(health, "doctor_error", error != NULL ? error->message : NULL);
    json_object_set_object_member(object, "health", health);
}

static JsonNode *
ask(EbCli *cli, EbConfig *config, GError **error)
{
    g_autoptr(EbControlClient) client = eb_control_client_new(eb_config_get_state_dir(config), error);

    return client != NULL ? eb_cli_call(cli, client, "status", NULL, ASK_MS, error) : NULL;
}

int
eb_cmd_status(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) down = NULL;
    g_auto(EbCliService) service = {0};
    EbConfig *config = eb_cli_get_config(cli, &error);
    g_autoptr(JsonNode) node = config != NULL ? ask(cli, config, &down) : NULL;
    gboolean running = node != NULL;

    if (config == NULL || !eb_cli_service_find(cli, config, &service, &error))
        return eb_cli_fail(cli, "status", error);
    if (g_error_matches(down, EB_ERROR, EB_ERROR_DENIED))
        return eb_cli_fail(cli, "status", down);
    JsonObject *object = running ? eb_json_node_object(node) : NULL;
    object = object != NULL ? json_object_ref(object) : json_object_new();
    json_object_set_boolean_member(object, "running", running);
    json_object_set_object_member(object, "supervisor", supervisor_json(&service));
    eb_json_set_text_or_null(object, "instance", service.holder.id);
    eb_backend_look(config, object);
    json_object_set_object_member(object, "watchdog", watchdog_json(eb_config_get_state_dir(config)));
    if (!running) {
        explain_down(&service, eb_config_get_state_dir(config), down, object);
        run_doctor(cli, config, object);
    }
    if (eb_cli_get_json(cli)) {
        g_autoptr(JsonNode) whole = json_node_new(JSON_NODE_OBJECT);
        json_node_set_object(whole, object);
        eb_cli_print_json(cli, g_steal_pointer(&whole));
    } else {
        g_autofree char *screen = eb_status_screen(object, g_get_real_time() / G_USEC_PER_SEC);
        eb_cli_print(cli, "%s", screen);
    }
    json_object_unref(object);
    return running ? EB_EXIT_OK : eb_cli_fail(cli, "status: the service is not running (errand-box up)", NULL);
}
