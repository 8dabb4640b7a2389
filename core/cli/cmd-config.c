/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/config/eb-config-file.h"

#include <string.h>

/* What plugins say of their own tables. FALSE: one problem a line in @error. */
static gboolean
check_plugins(EbCli *cli, GError **error)
{
    eb_cli_tell_failures(cli);
    EbPluginRegistry *registry = eb_cli_get_registry(cli, NULL, NULL, NULL, error);
    GPtrArray *records = registry != NULL ? eb_plugin_registry_get_records(registry) : NULL;
    g_autoptr(GString) problems = g_string_new(NULL);

    if (records == NULL)
        return FALSE;
    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (record->state != EB_PLUGIN_STATE_FAILED)
            continue;
        if (!g_error_matches(record->error, EB_ERROR, EB_ERROR_CONFIG))
            eb_warning("plugin %s is not used: %s", record->name, record->error->message);
        else
            g_string_append_printf(problems, "%s%s", problems->len > 0 ? "\n" : "", record->error->message);
    }
    if (problems->len == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "config.plugin", "%s", problems->str);
    return FALSE;
}

/* Files beside the configuration that look as if they were meant to be read. */
static void
tell_ignored(EbCli *cli, JsonObject *object)
{
    static const char DIR[] = "/etc/errand-box/conf.d";
    g_auto(GStrv) names = eb_cli_get_config_file(cli) == NULL ? eb_config_file_list_ignored(DIR) : NULL;
    JsonArray *list = json_array_new();

    for (guint i = 0; names != NULL && names[i] != NULL; i++) {
        json_array_add_string_element(list, names[i]);
        if (object == NULL)
            g_printerr("errand-box: %s/%s is not read: its name does not end in .toml\n", DIR, names[i]);
    }
    if (object != NULL)
        json_object_set_array_member(object, "ignored", list);
    else
        json_array_unref(list);
}

static int
check(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    const char *file = eb_cli_get_config_file(cli);
    EbConfig *config = eb_cli_get_config(cli, &error);
    gboolean fine = config != NULL && check_plugins(cli, &error);

    if (!eb_cli_get_json(cli)) {
        tell_ignored(cli, NULL);
        if (!fine)
            return eb_cli_fail(cli, "the configuration is refused", error);
        eb_cli_print(cli, "%s: fine\n", file != NULL ? file : "/etc/errand-box");
        return EB_EXIT_OK;
    }
    JsonObject *object = json_object_new();
    JsonArray *problems = json_array_new();
    json_object_set_boolean_member(object, "ok", fine);
    if (error != NULL) {
        g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
        for (char **line = lines; *line != NULL; line++)
            json_array_add_string_element(problems, *line);
    }
    json_object_set_array_member(object, "problems", problems);
    tell_ignored(cli, object);
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    eb_cli_print_json(cli, node);
    return error != NULL ? (int)eb_cli_exit_code(error) : EB_EXIT_OK;
}

int
eb_cmd_config(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    const char *verb = eb_cli_args_get_verb(eb_cli_get_args(cli));

    if (strcmp(verb, "check") == 0)
        return check(cli);
    if (strcmp(verb, "schema") == 0) {
        text = eb_config_schema();
    } else {
        EbConfig *config = eb_cli_get_config(cli, &error);
        if (config == NULL)
            return eb_cli_fail(cli, "the configuration is refused", error);
        text = eb_config_show(config, eb_cli_get_json(cli));
    }
    eb_cli_print(cli, "%s%s", text, g_str_has_suffix(text, "\n") ? "" : "\n");
    return EB_EXIT_OK;
}
