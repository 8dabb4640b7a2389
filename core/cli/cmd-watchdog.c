/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-enter.h"
#include "core/provision/eb-backend-remedy.h"
#include "core/watchdog/eb-watchdog.h"

/* A backend that does not answer now is what this program is for: it is looked at all the same. */
#define PLUGIN_START_MS 5000
/* One look has no second one to make up for a busy moment. */
#define ONCE_DEADLINE_MS 8000

/* (transfer full) (nullable): the configured backend, started where it can be */
static EbContainerBackend *
open_backend(EbCli *cli, EbConfig *config, GError **error)
{
    const char *name = eb_config_get_session(config)->backend;
    g_autofree char *point = g_strdup_printf("container-backend:%s", name);
    const char *const only[] = {point, NULL};
    g_autoptr(EbContainerBackend) backend = NULL;
    g_auto(EbCliWait) wait = {0};

    eb_cli_tell_failures(cli);
    EbPluginRegistry *registry = eb_cli_get_registry(cli, only, NULL, NULL, error);
    GObject *found =
        registry != NULL ? eb_plugin_registry_find(registry, EB_EXTENSION_CONTAINER_BACKEND, name, NULL) : NULL;
    if (registry == NULL)
        return NULL;
    if (found == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "watchdog.backend",
                     "no plugin provides the container backend %s (errand-box plugin list)", name);
        return NULL;
    }
    backend = EB_CONTAINER_BACKEND(g_object_ref(found));
    if (!eb_cli_enter_account(config, error))
        return NULL;
    eb_plugin_registry_start_async(registry, PLUGIN_START_MS, NULL, eb_cli_wait_ready, &wait);
    eb_plugin_registry_start_finish(registry, eb_cli_wait_result(cli, &wait), NULL);
    return g_steal_pointer(&backend);
}

static int
look_once(EbCli *cli, EbWatchdog *watchdog)
{
    g_auto(EbCliWait) wait = {0};
    EbWatchdogView view;

    eb_watchdog_look_async(watchdog, eb_cli_wait_ready, &wait);
    gboolean well = eb_watchdog_look_finish(watchdog, eb_cli_wait_result(cli, &wait), &view);
    if (eb_cli_get_json(cli)) {
        g_autoptr(GDateTime) at = g_date_time_new_now_utc();
        eb_cli_print_json(cli, eb_watchdog_view_json(&view, at));
    } else {
        g_autofree char *service = eb_watchdog_view_service(&view);
        g_autofree char *backend = eb_watchdog_view_backend(&view);
        eb_cli_print(cli, "%s\n%s\n", service, backend);
    }
    return well ? EB_EXIT_OK : EB_EXIT_FAILED;
}

static int
run(EbCli *cli, EbWatchdog *watchdog)
{
    g_autoptr(GError) error = NULL;
    g_auto(EbCliWait) wait = {0};

    if (!eb_watchdog_take_lock(watchdog, &error))
        return eb_cli_fail(cli, "the watchdog does not start", error);
    eb_watchdog_run_async(watchdog, eb_cli_wait_ready, &wait);
    eb_watchdog_run_finish(watchdog, eb_cli_wait_result(cli, &wait), NULL);
    return EB_EXIT_OK;
}

int
eb_cmd_watchdog(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    gboolean once = eb_cli_args_flag(eb_cli_get_args(cli), "once");
    EbConfig *config = eb_cli_get_config(cli, &error);
    g_autoptr(EbContainerBackend) backend = config != NULL ? open_backend(cli, config, &error) : NULL;
    EbWatchdogLimits limits = EB_WATCHDOG_LIMITS;

    if (backend == NULL)
        return eb_cli_fail(cli, "the watchdog does not start", error);
    /* A scan directory that is not to be trusted is a matter for those who use it. */
    g_autoptr(EbSupervisor) supervisor = eb_supervisor_find(NULL, NULL);
    g_autofree char *remedy = eb_backend_remedy(eb_config_get_session(config)->backend, supervisor);
    limits.supervised = eb_cli_args_flag(eb_cli_get_args(cli), "supervised");
    if (once) {
        limits.misses = 1;
        limits.hang = 0;
        limits.deadline = ONCE_DEADLINE_MS;
    }
    g_autoptr(EbWatchdog) watchdog = eb_watchdog_new(config, backend, &limits, remedy);
    return once ? look_once(cli, watchdog) : run(cli, watchdog);
}
