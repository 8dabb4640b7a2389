/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"

#include <string.h>

/* "point:name", "point" of a manifest as {"kind","name"}. */
static JsonArray *
provides_json(const EbPluginRecord *record)
{
    JsonArray *list = json_array_new();

    for (char **item = record->implements; item != NULL && *item != NULL; item++) {
        g_auto(GStrv) parts = g_strsplit(*item, ":", 2);
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "kind", parts[0]);
        if (parts[1] != NULL)
            json_object_set_string_member(object, "name", parts[1]);
        json_array_add_object_element(list, object);
    }
    return list;
}

static void
set_text(JsonObject *object, const char *member, const char *text)
{
    if (text != NULL)
        json_object_set_string_member(object, member, text);
    else
        json_object_set_null_member(object, member);
}

static JsonObject *
record_json(const EbPluginRecord *record)
{
    JsonObject *object = json_object_new();
    JsonArray *accesses = json_array_new();

    set_text(object, "name", record->name);
    set_text(object, "version", record->version);
    set_text(object, "abi", record->abi);
    set_text(object, "state", eb_plugin_state_to_string(record->state));
    set_text(object, "error", record->error != NULL ? record->error->message : NULL);
    json_object_set_array_member(object, "provides", provides_json(record));
    set_text(object, "path", record->path);
    set_text(object, "license", record->license);
    set_text(object, "config_section", record->config_section);
    for (char **item = record->accesses; item != NULL && *item != NULL; item++)
        json_array_add_string_element(accesses, *item);
    json_object_set_array_member(object, "accesses", accesses);
    return object;
}

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
        print_object(cli, record_json(record));
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
list(EbCli *cli, GPtrArray *records)
{
    JsonArray *plugins = json_array_new();

    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        g_autofree char *provides = record->implements != NULL ? g_strjoinv(", ", record->implements) : g_strdup("?");
        if (eb_cli_get_json(cli))
            json_array_add_object_element(plugins, record_json(record));
        else
            eb_cli_print(cli, "%-16s %-10s %-8s %s%s%s\n", record->name,
                         record->version != NULL ? record->version : "?", eb_plugin_state_to_string(record->state),
                         provides, record->error != NULL ? "  " : "",
                         record->error != NULL ? record->error->message : "");
    }
    if (eb_cli_get_json(cli)) {
        JsonObject *object = json_object_new();
        json_object_set_array_member(object, "plugins", plugins);
        print_object(cli, object);
    } else {
        json_array_unref(plugins);
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
    EbPluginRegistry *registry = eb_cli_get_registry(cli, NULL, NULL, NULL, &error);
    if (registry == NULL)
        return eb_cli_fail(cli, "plugins cannot be listed", error);
    GPtrArray *records = eb_plugin_registry_get_records(registry);
    return strcmp(verb, "show") == 0 ? show(cli, records, eb_cli_args_operands(args)[0]) : list(cli, records);
}
