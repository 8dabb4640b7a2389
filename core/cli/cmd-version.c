/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"

#include <gnu/libc-version.h>

int
eb_cmd_version(EbCli *cli, int argc, char **argv)
{
    g_autofree char *glib = g_strdup_printf("%u.%u.%u", glib_major_version, glib_minor_version, glib_micro_version);
    g_autofree char *json = g_strdup_printf("%d.%d.%d", JSON_MAJOR_VERSION, JSON_MINOR_VERSION, JSON_MICRO_VERSION);
    g_autofree char *abi = g_strdup_printf("%d.%d", EB_ABI_MAJOR, EB_ABI_MINOR);

    if (!eb_cli_get_json(cli)) {
        eb_cli_print(cli, "errand-box %s\nplugin ABI %s\nglib %s\njson-glib %s (headers)\nlibc %s\n", EB_VERSION, abi,
                     glib, json, gnu_get_libc_version());
        return EB_EXIT_OK;
    }
    JsonObject *object = json_object_new();
    JsonObject *libraries = json_object_new();
    json_object_set_string_member(object, "version", EB_VERSION);
    json_object_set_string_member(object, "abi", abi);
    json_object_set_string_member(libraries, "glib", glib);
    json_object_set_string_member(libraries, "json-glib", json);
    json_object_set_string_member(libraries, "libc", gnu_get_libc_version());
    json_object_set_object_member(object, "libraries", libraries);
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    eb_cli_print_json(cli, node);
    return EB_EXIT_OK;
}
