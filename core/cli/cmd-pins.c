/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/config/eb-pins.h"

int
eb_cmd_pins(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    EbPaths *paths = eb_cli_get_paths(cli, &error);

    if (paths == NULL)
        return eb_cli_fail(cli, "pins verify", error);
    g_autofree char *file = g_build_filename(eb_paths_get_data_dir(paths), "pins.toml", NULL);
    g_autofree char *guest_dir = g_build_filename(eb_paths_get_data_dir(paths), "guest", NULL);
    g_autoptr(EbPins) pins = eb_pins_load(file, &error);
    if (pins == NULL || !eb_pins_verify(pins, guest_dir, &error))
        return eb_cli_fail(cli, "pins verify", error);
    GPtrArray *all = eb_pins_get_all(pins);
    JsonArray *array = eb_cli_get_json(cli) ? json_array_new() : NULL;
    for (guint i = 0; i < all->len; i++) {
        const EbPin *pin = g_ptr_array_index(all, i);
        if (array == NULL) {
            eb_cli_print(cli, "%-20s %s %s\n", pin->name, pin->package, pin->version);
            continue;
        }
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "name", pin->name);
        json_object_set_string_member(object, "package", pin->package);
        json_object_set_string_member(object, "version", pin->version);
        json_object_set_string_member(object, "integrity", pin->integrity);
        json_array_add_object_element(array, object);
    }
    if (array != NULL) {
        JsonObject *object = json_object_new();
        JsonNode *node = json_node_new(JSON_NODE_OBJECT);
        json_object_set_array_member(object, "pins", array);
        json_node_take_object(node, object);
        eb_cli_print_json(cli, node);
    }
    return EB_EXIT_OK;
}
