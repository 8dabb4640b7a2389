/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-doctor-settings.h"
#include "core/doctor/eb-doctor-collect.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What `doctor` and its processes are told, and what it gets back. */
typedef struct {
    GPtrArray *plugins;  /* (element-type utf8) (owned): NULL-terminated */
    GPtrArray *problems; /* (element-type utf8) (owned): NULL-terminated */
} Found;

static void
found_clear(Found *found)
{
    g_ptr_array_unref(found->plugins);
    g_ptr_array_unref(found->problems);
}

/* Which plugins bring checks, by their manifests alone: no foreign code runs in this process. */
static Found
find_plugins(EbConfig *config, EbPaths *paths)
{
    static const char *const NONE[] = {NULL};
    g_auto(GStrv) enabled = eb_doctor_enabled_plugins(config);
    g_autoptr(EbPluginRegistry) registry = eb_plugin_registry_new(
        eb_config_get_account(config), eb_config_get_state_dir(config), eb_paths_is_uninstalled(paths));
    GPtrArray *records;
    Found found = {g_ptr_array_new_with_free_func(g_free), g_ptr_array_new_with_free_func(g_free)};

    eb_plugin_registry_tell_failures(registry);
    eb_plugin_registry_load_dir(registry, eb_paths_get_plugin_dir(paths), (const char *const *)enabled, NONE, NULL,
                                NULL);
    records = eb_plugin_registry_get_records(registry);
    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (!g_strv_contains((const char *const *)enabled, record->name))
            continue;
        if (record->error != NULL)
            g_ptr_array_add(found.problems,
                            g_strdup_printf("plugin %s cannot be used: %s", record->name, record->error->message));
        else if (record->implements != NULL && g_strv_contains((const char *const *)record->implements, "doctor-check"))
            g_ptr_array_add(found.plugins, g_strdup(record->name));
    }
    g_ptr_array_add(found.plugins, NULL);
    g_ptr_array_add(found.problems, NULL);
    return found;
}

typedef struct {
    GAsyncResult *result; /* (owned) */
    gboolean done;
} Wait;

static void
on_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Wait *wait = user_data;

    wait->result = g_object_ref(result);
    wait->done = TRUE;
}

static gboolean
collect(EbCli *cli, const Found *found, EbDoctorReport *report, GError **error)
{
    EbCliArgs *args = eb_cli_get_args(cli);
    const char *config_file = eb_cli_get_config_file(cli);
    const char *const with_config[] = {"--config", config_file, EB_DOCTOR_WORKER_COMMAND, NULL};
    EbDoctorCollect order = {.program_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC),
                             .arguments = config_file != NULL ? with_config : with_config + 2,
                             .plugins = (const char *const *)found->plugins->pdata,
                             .ids = eb_cli_args_values(args, "check"),
                             .problems = (const char *const *)found->problems->pdata,
                             .list = eb_cli_args_flag(args, "list"),
                             .watch = eb_cli_args_flag(args, "watch"),
                             .service = eb_cli_args_flag(args, "service"),
                             .report = report};
    Wait wait = {NULL, FALSE};
    gboolean ok;

    eb_doctor_adopt_orphans();
    eb_doctor_collect_async(&order, NULL, on_done, &wait);
    if (order.program_fd >= 0)
        close(order.program_fd);
    eb_cli_wait(cli, &wait.done);
    eb_doctor_end_orphans();
    ok = eb_doctor_collect_finish(wait.result, error);
    g_object_unref(wait.result);
    return ok;
}

static void
print_report(EbCli *cli, EbDoctorReport *report)
{
    gboolean list = eb_cli_args_flag(eb_cli_get_args(cli), "list"), verbose = eb_cli_get_verbosity(cli) > 0;
    g_autofree char *text = NULL;

    if (eb_cli_get_json(cli)) {
        eb_cli_print_json(cli, list ? eb_doctor_report_list_json(report) : eb_doctor_report_to_json(report));
        return;
    }
    text = list ? eb_doctor_report_list_text(report, verbose)
                : eb_doctor_report_to_text(report, eb_cli_get_color(cli), verbose);
    /* Its rows were cleaned one by one (eb-doctor-line.c). */
    eb_cli_print_own(cli, text);
}

int
eb_cmd_doctor(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    EbPaths *paths = eb_cli_get_paths(cli, &error);
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(EbDoctorReport) report = NULL;
    Found found;
    gboolean ok;

    if (paths == NULL)
        return eb_cli_fail(cli, "doctor", error);
    report = eb_doctor_report_new(host);
    found = find_plugins(eb_cli_get_config_or_default(cli, NULL), paths);
    ok = collect(cli, &found, report, &error);
    found_clear(&found);
    if (!ok)
        return eb_cli_fail(cli, NULL, error);
    print_report(cli, report);
    return eb_cli_args_flag(eb_cli_get_args(cli), "list")
               ? EB_EXIT_OK
               : eb_doctor_exit_code(report, eb_cli_args_flag(eb_cli_get_args(cli), "strict"));
}
