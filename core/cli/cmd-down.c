/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/eb-account.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-service.h"

#define WATCHDOG_MS 10000
/* What is running is only for the words; a service that hangs is ended all the same. */
#define ASK_MS 5000

/* (transfer full): "2 sessions, 1 turn" of a service that answers, else "" */
static char *
describe_work(EbCli *cli, EbConfig *config)
{
    g_autoptr(EbControlClient) client = eb_control_client_new(eb_config_get_state_dir(config), NULL);
    g_autoptr(JsonNode) status = client != NULL ? eb_cli_call(cli, client, "status", NULL, ASK_MS, NULL) : NULL;
    JsonObject *object = eb_json_node_object(status);
    gint64 live = eb_json_get_int(object, "live", 0);
    gint64 turns = eb_json_get_int(object, "turns", 0);

    if (object == NULL)
        return g_strdup("");
    return g_strdup_printf(", with %" G_GINT64_FORMAT " session%s and %" G_GINT64_FORMAT " turn%s", live,
                           live == 1 ? "" : "s", turns, turns == 1 ? "" : "s");
}

static int
tell(EbCli *cli, const char *supervisor, pid_t pid, const char *work)
{
    if (!eb_cli_get_json(cli)) {
        if (pid == 0)
            eb_cli_print(cli, "errand-boxd does not run\n");
        else
            eb_cli_print(cli, "errand-boxd ended (pid %d, %s%s)\n", (int)pid, supervisor, work);
        return EB_EXIT_OK;
    }
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "schema", 1);
    json_object_set_string_member(object, "supervisor", supervisor);
    json_object_set_boolean_member(object, "ended", pid != 0);
    json_object_set_int_member(object, "pid", pid);
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    eb_cli_print_json(cli, node);
    return EB_EXIT_OK;
}

static int
down_supervised(EbCli *cli, EbConfig *config, EbCliService *service)
{
    const char *kind = eb_supervisor_kind_to_string(eb_supervisor_get_kind(service->supervisor));
    pid_t pid = service->unit.pid;
    g_autofree char *work = describe_work(cli, config);
    g_autoptr(GError) error = NULL;

    if (!eb_cli_get_json(cli))
        fprintf(stderr, "stopping errand-boxd with %s\n", kind);
    if (!eb_supervisor_stop(service->supervisor, EB_CLI_SERVICE_UNIT, EB_CLI_STOP_MS, &error))
        return eb_cli_fail(cli, "down", error);
    /* It watches whether the service is gone as it should: so it goes last. */
    if (eb_supervisor_has_unit(service->supervisor, EB_CLI_WATCHDOG_UNIT) &&
        !eb_supervisor_stop(service->supervisor, EB_CLI_WATCHDOG_UNIT, WATCHDOG_MS, &error))
        return eb_cli_fail(cli, "down: the service ended, its watchdog did not", error);
    return tell(cli, kind, pid, work);
}

/* The account's own process and nothing else, least of all root's: the kernel's table tells the number of whoever took the
 * lock, and goes on telling it when that process has ended and left the open file to another of the account. The number
 * may be anybody's by then. */
static gboolean
is_services(pid_t pid, EbConfig *config, GError **error)
{
    g_autoptr(EbAccount) account = eb_account_find(eb_config_get_account(config), error);
    g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)pid);
    g_autofree char *text = NULL;
    const char *line;
    guint uid;

    if (account == NULL)
        return FALSE;
    if (g_file_get_contents(path, &text, NULL, NULL) && (line = strstr(text, "\nUid:")) != NULL &&
        sscanf(line, "\nUid: %u", &uid) == 1 && uid == account->uid)
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "down.process", "process %d is not the account's: it is left alone", (int)pid);
    return FALSE;
}

static gboolean
wait_end(const EbLockHolder *holder, GError **error)
{
    struct pollfd wait = {.fd = holder->pidfd, .events = POLLIN};
    gint64 until = g_get_monotonic_time() + (gint64)EB_CLI_STOP_MS * 1000;
    int ready;

    do {
        gint64 left = (until - g_get_monotonic_time()) / 1000;
        ready = poll(&wait, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready > 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_TIMEOUT, "down.late",
                 "process %d still drains after %d s; to be told so again ends it at once (errand-box down)",
                 (int)holder->pid, EB_CLI_STOP_MS / 1000);
    return FALSE;
}

/* Nobody starts it again: it runs on somebody's terminal, and its lock says which process it is. */
static int
down_by_lock(EbCli *cli, EbConfig *config, EbCliService *service)
{
    const EbLockHolder *holder = &service->holder;
    g_autofree char *work = NULL;
    g_autoptr(GError) error = NULL;

    if (holder->id == NULL) {
        g_autofree char *what = g_strdup_printf("down: process %d works on %s and is not the service: wait for its end",
                                                (int)holder->pid, eb_config_get_state_dir(config));
        eb_cli_fail(cli, what, NULL);
        return EB_EXIT_LOCKED;
    }
    if (!is_services(holder->pid, config, &error))
        return eb_cli_fail(cli, "down", error);
    work = describe_work(cli, config);
    if (!eb_cli_get_json(cli))
        fprintf(stderr, "stopping errand-boxd, process %d\n", (int)holder->pid);
    if (syscall(SYS_pidfd_send_signal, holder->pidfd, SIGTERM, NULL, 0) < 0 && errno != ESRCH) {
        eb_set_error(&error, EB_ERROR_DENIED, "down.signal", "process %d: %s", (int)holder->pid, g_strerror(errno));
        return eb_cli_fail(cli, "down", error);
    }
    if (!wait_end(holder, &error))
        return eb_cli_fail(cli, "down", error);
    return tell(cli, "foreground", holder->pid, work);
}

/* Something of this service is there to be ended through its supervisor. */
static gboolean
is_supervised(const EbCliService *service)
{
    g_auto(EbUnitStatus) watchdog = {.exit_code = -1};

    if (!service->ours)
        return FALSE;
    if (service->unit.state != EB_UNIT_DOWN && service->unit.state != EB_UNIT_FAILED)
        return TRUE;
    /* A service that refused its start leaves its watchdog waiting for it. */
    return service->holder.pid == 0 &&
           eb_supervisor_query(service->supervisor, EB_CLI_WATCHDOG_UNIT, &watchdog, NULL) && watchdog.pid != 0;
}

int
eb_cmd_down(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_auto(EbCliService) service = {0};
    EbConfig *config = eb_cli_get_config(cli, &error);

    if (config == NULL || !eb_cli_service_find(cli, config, &service, &error))
        return eb_cli_fail(cli, "down", error);
    if (service.unit_problem != NULL)
        return eb_cli_fail(cli, "down", service.unit_problem);
    if (service.lock_problem != NULL)
        return eb_cli_fail(cli, "down", service.lock_problem);
    if (is_supervised(&service))
        return down_supervised(cli, config, &service);
    if (service.holder.pid != 0)
        return down_by_lock(cli, config, &service);
    return tell(cli, "none", 0, "");
}
