/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/doctor/eb-doctor.h"
#include "core/provision/eb-image-recipe.h"
#include "core/provision/eb-provision-client.h"

#include <string.h>

/* The checks that come with the program run whatever the configuration enables: it may be the thing that is broken. */
#define OWN_CHECKS "doctor-checks"
#define OWN_STORE "credentials"

static void
set(EbConfigSection *settings, const char *key, const char *value)
{
    if (value != NULL && *value != '\0')
        eb_config_section_set(settings, key, g_variant_new_string(value), "doctor", 0);
}

/* (transfer full): what checks may know of the configuration: names and places, no secret. */
static EbConfigSection *
make_settings(EbConfig *config, EbPaths *paths, const GError *problem)
{
    static const char *const BACKEND_KEYS[] = {"socket", "project", "pool", "image"};
    EbConfigSection *settings = eb_config_section_new("service");
    g_autoptr(EbConfigSection) backend = eb_config_get_plugin_section(config, eb_config_get_session(config)->backend);
    g_autoptr(EbConfigSection) store = eb_config_get_plugin_section(config, OWN_STORE);
    g_autofree char *file = eb_config_section_get_string(store, "file", NULL, NULL);
    GPtrArray *providers = eb_config_get_providers(config);
    g_autoptr(GPtrArray) needed = g_ptr_array_new();
    g_autofree char *daemon_dir = eb_provision_daemon_dir();
    g_autofree char *socket = eb_provision_daemon_socket(daemon_dir);
    g_autoptr(EbImageRecipe) recipe = NULL;
    const char *launcher;

    set(settings, "daemon.dir", daemon_dir);
    set(settings, "daemon.socket", socket);
    set(settings, "account", eb_config_get_account(config));
    set(settings, "state_dir", eb_config_get_state_dir(config));
    set(settings, "project_root", eb_config_get_project_root(config));
    for (guint i = 0; i < G_N_ELEMENTS(BACKEND_KEYS); i++) {
        g_autofree char *key = g_strconcat("backend.", BACKEND_KEYS[i], NULL);
        g_autofree char *value = eb_config_section_get_string(backend, BACKEND_KEYS[i], NULL, NULL);
        set(settings, key, value);
    }
    for (guint i = 0; providers != NULL && i < providers->len; i++) {
        const EbProviderConfig *provider = providers->pdata[i];
        if (provider->key_name != NULL)
            g_ptr_array_add(needed, provider->key_name);
    }
    eb_config_section_set(settings, "credentials.needed",
                          g_variant_new_strv((const char *const *)needed->pdata, needed->len), "doctor", 0);
    set(settings, "credentials.file", file);
    set(settings, "config.problem", problem != NULL ? problem->message : NULL);
    if (paths == NULL)
        return settings;
    recipe = eb_image_recipe_load(paths, NULL, NULL);
    if (recipe != NULL) {
        g_autofree char *agents = eb_image_recipe_describe_agents(recipe);
        set(settings, "image.recipe", recipe->digest);
        set(settings, "image.agents", agents);
    }
    set(settings, "paths.broker", eb_paths_get_program_path(paths, "errand-box-broker"));
    launcher = eb_paths_get_program_path(paths, "launch");
    if (launcher != NULL) {
        g_autofree char *directory = g_path_get_dirname(launcher);
        set(settings, "paths.guest", directory);
    }
    return settings;
}

/* (transfer full) */
static char **
enabled_plugins(EbConfig *config)
{
    const char *const *configured = eb_config_get_enabled_plugins(config);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();

    for (guint i = 0; configured != NULL && configured[i] != NULL; i++)
        g_strv_builder_add(builder, configured[i]);
    if (configured == NULL || !g_strv_contains(configured, OWN_CHECKS))
        g_strv_builder_add(builder, OWN_CHECKS);
    return g_strv_builder_end(builder);
}

static EbConfigSection *
plugin_section(const char *name, gpointer user_data)
{
    return eb_config_get_plugin_section(user_data, name);
}

/* (transfer full) (nullable): plugins with checks alone; each one that fails is named, the others go on. */
static EbPluginRegistry *
open_plugins(EbConfig *config, EbPaths *paths)
{
    static const char *const ONLY[] = {"doctor-check", NULL};
    g_auto(GStrv) enabled = enabled_plugins(config);
    EbPluginRegistry *registry = eb_plugin_registry_new(eb_config_get_account(config), eb_config_get_state_dir(config),
                                                        eb_paths_is_uninstalled(paths));
    GPtrArray *records;

    eb_plugin_registry_tell_failures(registry);
    eb_plugin_registry_load_dir(registry, eb_paths_get_plugin_dir(paths), (const char *const *)enabled, ONLY,
                                plugin_section, config);
    records = eb_plugin_registry_get_records(registry);
    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (record->error != NULL)
            g_printerr("errand-box: plugin %s brings no checks: %s\n", record->name, record->error->message);
    }
    return registry;
}

static int
list_checks(EbCli *cli, GPtrArray *checks)
{
    for (guint i = 0; i < checks->len; i++) {
        const EbExtension *extension = checks->pdata[i];
        const EbCheckInfo *info = eb_doctor_check_get_info(EB_DOCTOR_CHECK(extension->object));
        g_autofree char *reads = g_strjoinv(", ", (char **)info->reads);
        if (eb_cli_get_verbosity(cli) > 0)
            eb_cli_print(cli, "%-6s  %s\n        wanted: %s\n        do:     %s\n        reads:  %s\n", info->id,
                         info->title, info->expected, info->remedy, reads);
        else
            eb_cli_print(cli, "%-6s  %s\n", info->id, info->title);
    }
    return EB_EXIT_OK;
}

static int
list_checks_json(EbCli *cli, GPtrArray *checks)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();

    json_builder_begin_object(builder);
    json_builder_set_member_name(builder, "schema");
    json_builder_add_int_value(builder, 1);
    json_builder_set_member_name(builder, "checks");
    json_builder_begin_array(builder);
    for (guint i = 0; i < checks->len; i++) {
        const EbExtension *extension = checks->pdata[i];
        const EbCheckInfo *info = eb_doctor_check_get_info(EB_DOCTOR_CHECK(extension->object));
        const char *const pairs[][2] = {{"id", info->id},
                                        {"title", info->title},
                                        {"plugin", extension->plugin},
                                        {"expected", info->expected},
                                        {"remedy", info->remedy}};
        json_builder_begin_object(builder);
        for (guint j = 0; j < G_N_ELEMENTS(pairs); j++) {
            json_builder_set_member_name(builder, pairs[j][0]);
            json_builder_add_string_value(builder, pairs[j][1]);
        }
        json_builder_set_member_name(builder, "reads");
        json_builder_begin_array(builder);
        for (guint j = 0; info->reads[j] != NULL; j++)
            json_builder_add_string_value(builder, info->reads[j]);
        json_builder_end_array(builder);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    eb_cli_print_json(cli, json_builder_get_root(builder));
    return EB_EXIT_OK;
}

static int
run_checks(EbCli *cli, GPtrArray *checks, EbConfigSection *settings)
{
    EbCliArgs *args = eb_cli_get_args(cli);
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(GError) error = NULL;
    g_autoptr(EbDoctorReport) report = eb_doctor_run(checks, host, settings, eb_cli_args_values(args, "check"), &error);

    if (report == NULL)
        return g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND) ? eb_cli_refuse(cli, "%s", error->message)
                                                                    : eb_cli_fail(cli, "doctor", error);
    if (eb_cli_get_json(cli)) {
        eb_cli_print_json(cli, eb_doctor_report_to_json(report));
    } else {
        g_autofree char *text = eb_doctor_report_to_text(report, eb_cli_get_color(cli), eb_cli_get_verbosity(cli) > 0);
        eb_cli_print(cli, "%s", text);
    }
    return eb_doctor_exit_code(report, eb_cli_args_flag(args, "strict"));
}

int
eb_cmd_doctor(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) problem = NULL;
    g_autoptr(GError) error = NULL;
    EbPaths *paths = eb_cli_get_paths(cli, &error);
    EbConfig *config;
    g_autoptr(EbPluginRegistry) registry = NULL;
    g_autoptr(GPtrArray) checks = NULL;
    g_autoptr(EbConfigSection) settings = NULL;

    if (paths == NULL)
        return eb_cli_fail(cli, "doctor", error);
    config = eb_cli_get_config_or_default(cli, &problem);
    registry = open_plugins(config, paths);
    checks = eb_plugin_registry_list(registry, EB_EXTENSION_DOCTOR_CHECK);
    if (checks->len == 0)
        return eb_cli_fail(cli, "doctor: no plugin brings any check (is plugins/doctor-checks installed?)", NULL);
    if (eb_cli_args_flag(eb_cli_get_args(cli), "list"))
        return eb_cli_get_json(cli) ? list_checks_json(cli, checks) : list_checks(cli, checks);
    settings = make_settings(config, paths, problem);
    return run_checks(cli, checks, settings);
}
