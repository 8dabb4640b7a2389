/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-doctor-facts.h"
#include "core/cli/eb-doctor-settings.h"
#include "core/doctor/eb-doctor-worker.h"
#include "core/doctor/eb-doctor.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static EbConfigSection *
plugin_section(const char *name, gpointer user_data)
{
    return eb_config_get_plugin_section(user_data, name);
}

static void
add_with_required(EbPluginRegistry *registry, const char *name, GPtrArray *names)
{
    GPtrArray *records = eb_plugin_registry_get_records(registry);

    if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
        return;
    g_ptr_array_add(names, g_strdup(name));
    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (strcmp(record->name, name) != 0)
            continue;
        for (guint j = 0; record->requires != NULL && record->requires[j] != NULL; j++)
            add_with_required(registry, record->requires[j], names);
    }
}

/* (transfer full): @plugin and what it requires, out of those that are enabled */
static EbPluginRegistry *
open_plugin(EbConfig *config, EbPaths *paths, const char *plugin)
{
    static const char *const NONE[] = {NULL}, *const CHECKS[] = {"doctor-check", NULL};
    const char *account = eb_config_get_account(config), *state_dir = eb_config_get_state_dir(config);
    const char *dir = eb_paths_get_plugin_dir(paths);
    gboolean dev = eb_paths_is_uninstalled(paths);
    g_auto(GStrv) enabled = eb_doctor_enabled_plugins(config);
    g_autoptr(EbPluginRegistry) manifests = eb_plugin_registry_new(account, state_dir, dev);
    EbPluginRegistry *registry = eb_plugin_registry_new(account, state_dir, dev);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    eb_plugin_registry_tell_failures(manifests);
    eb_plugin_registry_load_dir(manifests, dir, (const char *const *)enabled, NONE, NULL, NULL);
    if (g_strv_contains((const char *const *)enabled, plugin))
        add_with_required(manifests, plugin, names);
    g_ptr_array_add(names, NULL);
    eb_plugin_registry_tell_failures(registry);
    eb_plugin_registry_load_dir(registry, dir, (const char *const *)names->pdata, CHECKS, plugin_section, config);
    return registry;
}

/* What is asked of others costs them something, and no check that a service goes by needs it. */
static gboolean
needs_facts(const EbDoctorWorkerOrder *order)
{
    static const char *const IDS[] = {"E-30", "E-82", "E-83", "E-84", "E-85"};

    if (order->list || order->watch || order->service || strcmp(order->plugin, EB_DOCTOR_OWN_PLUGIN) != 0)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(IDS); i++)
        if (order->ids == NULL || order->ids[0] == NULL || g_strv_contains(order->ids, IDS[i]))
            return TRUE;
    return FALSE;
}

int
eb_cmd_doctor_worker(EbCli *cli, int argc, char **argv)
{
    EbCliArgs *args = eb_cli_get_args(cli);
    g_autoptr(GError) problem = NULL;
    g_autoptr(GError) error = NULL;
    EbPaths *paths = eb_cli_get_paths(cli, &error);
    g_autoptr(EbPluginRegistry) registry = NULL;
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(EbConfigSection) settings = NULL;
    EbDoctorWorkerOrder order = {.plugin = eb_cli_args_operands(args)[0],
                                 .ids = eb_cli_args_values(args, "check"),
                                 .list = eb_cli_args_flag(args, "list"),
                                 .watch = eb_cli_args_flag(args, "watch"),
                                 .service = eb_cli_args_flag(args, "service")};
    EbConfig *config;

    if (fcntl(EB_DOCTOR_WORKER_FD, F_GETFD) < 0)
        return eb_cli_refuse(cli, EB_DOCTOR_WORKER_COMMAND ": this is a part of `errand-box doctor`, which starts it");
    if (paths == NULL)
        return eb_cli_fail(cli, NULL, error);
    config = eb_cli_get_config_or_default(cli, &problem);
    eb_doctor_worker_confine();
    registry = open_plugin(config, paths, order.plugin);
    settings = eb_doctor_settings(config, paths, problem);
    if (needs_facts(&order))
        eb_doctor_facts_add(cli, config, settings);
    /* At once: a check that never came back still runs in its thread, and a plugin may hang in what it does at the end. */
    _exit(eb_doctor_worker_run(registry, &order, host, settings) ? EB_EXIT_OK : EB_EXIT_FAILED);
}
