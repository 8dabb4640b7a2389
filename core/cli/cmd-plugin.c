/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/daemon/eb-daemon.h"

#include <string.h>

static void
print_object(EbCli *cli, JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    eb_cli_print_json(cli, node);
}

static void
print_record(EbCli *cli, const EbPluginRecord *record)
{
    g_autofree char *provides =
        record->implements != NULL ? g_strjoinv(", ", record->implements) : g_strdup("(unknown)");

    if (eb_cli_get_json(cli)) {
        print_object(cli, eb_daemon_plugin_json(record));
        return;
    }
    eb_cli_print(cli, "%s %s\n  state:    %s%s%s\n  abi:      %s\n  license:  %s\n  provides: %s\n  path:     %s\n",
                 record->name, record->version != NULL ? record->version : "?",
                 eb_plugin_state_to_string(record->state), record->error != NULL ? ": " : "",
                 record->error != NULL ? record->error->message : "", record->abi != NULL ? record->abi : "?",
                 record->license != NULL ? record->license : "?", provides, record->path);
    for (char **item = record->accesses; item != NULL && *item != NULL; item++)
        eb_cli_print(cli, "  touches:  %s\n", *item);
}

static int
list(EbCli *cli, EbPluginRegistry *registry)
{
    GPtrArray *records = eb_plugin_registry_get_records(registry);

    if (eb_cli_get_json(cli)) {
        eb_cli_print_json(cli, eb_daemon_plugins_json(registry));
        return EB_EXIT_OK;
    }
    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        g_autofree char *provides = record->implements != NULL ? g_strjoinv(", ", record->implements) : g_strdup("?");
        eb_cli_print(cli, "%-16s %-10s %-8s %s%s%s\n", record->name, record->version != NULL ? record->version : "?",
                     eb_plugin_state_to_string(record->state), provides, record->error != NULL ? "  " : "",
                     record->error != NULL ? record->error->message : "");
    }
    return EB_EXIT_OK;
}

static int
show(EbCli *cli, GPtrArray *records, const char *name)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (strcmp(record->name, name) == 0) {
            print_record(cli, record);
            return EB_EXIT_OK;
        }
        g_ptr_array_add(names, record->name);
    }
    g_ptr_array_add(names, NULL);
    const char *near = eb_config_nearest(name, (const char *const *)names->pdata);
    return eb_cli_refuse(cli, "plugin show: there is no plugin \"%s\"%s%s%s", name,
                         near != NULL ? " (did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?)" : "");
}

static int
check(EbCli *cli, const char *file)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_canonicalize_filename(file, NULL);
    EbPaths *paths = eb_cli_get_paths(cli, &error);
    EbPluginRecord *record = NULL;

    if (paths == NULL)
        return eb_cli_fail(cli, "plugin check", error);
    gboolean good = eb_plugin_registry_check_file(path, eb_paths_is_uninstalled(paths), &record, &error);
    if (good && record != NULL)
        print_record(cli, record);
    g_clear_pointer(&record, eb_plugin_record_free);
    if (good)
        return EB_EXIT_OK;
    eb_cli_fail(cli, "the plugin is refused", error);
    return EB_EXIT_REFUSED;
}

int
eb_cmd_plugin(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    EbCliArgs *args = eb_cli_get_args(cli);
    const char *verb = eb_cli_args_get_verb(args);

    if (strcmp(verb, "check") == 0)
        return check(cli, eb_cli_args_operands(args)[0]);
    eb_cli_tell_failures(cli);
    EbPluginRegistry *registry = eb_cli_get_registry(cli, NULL, NULL, NULL, &error);
    if (registry == NULL)
        return eb_cli_fail(cli, "plugins cannot be listed", error);
    if (strcmp(verb, "show") == 0)
        return show(cli, eb_plugin_registry_get_records(registry), eb_cli_args_operands(args)[0]);
    return list(cli, registry);
}
