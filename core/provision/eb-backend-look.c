/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-backend-look.h"

#include <string.h>

#include "core/provision/eb-provision-client.h"

#define DEFAULT_POOL "errand"

static void
look_at_pool(EbProvisionClient *client, const char *pool, JsonArray *pools)
{
    g_autofree char *path = eb_provision_path("/1.0/storage-pools/%s", pool);
    g_autofree char *space_path = g_strconcat(path, "/resources", NULL);
    g_autoptr(JsonNode) found = eb_provision_client_call(client, "GET", path, NULL, EB_BACKEND_LOOK_MS, NULL);
    g_autoptr(JsonNode) resources =
        found != NULL ? eb_provision_client_call(client, "GET", space_path, NULL, EB_BACKEND_LOOK_MS, NULL) : NULL;
    JsonObject *space = eb_json_get_object(eb_json_node_object(resources), "space");
    const char *driver = eb_json_get_string(eb_json_node_object(found), "driver");

    if (space == NULL)
        return;
    JsonObject *row = json_object_new();
    json_object_set_string_member(row, "name", pool);
    json_object_set_string_member(row, "driver", driver != NULL ? driver : "unknown");
    json_object_set_int_member(row, "used", eb_json_get_int(space, "used", 0));
    json_object_set_int_member(row, "total", eb_json_get_int(space, "total", 0));
    json_array_add_object_element(pools, row);
}

/* (transfer full) (nullable): NULL: the daemon is somewhere else */
static char *
find_socket(EbConfigSection *section)
{
    g_autofree char *named = eb_config_section_get_string(section, "socket", "", NULL);
    g_autofree char *directory = eb_provision_daemon_dir();

    if (named == NULL || *named == '\0')
        return eb_provision_daemon_socket(directory);
    return named[0] == '/' ? g_steal_pointer(&named) : NULL;
}

void
eb_backend_look(EbConfig *config, JsonObject *object)
{
    const char *name = eb_config_get_session(config)->backend;
    g_autoptr(EbConfigSection) section = eb_config_get_plugin_section(config, name);
    g_autofree char *socket = find_socket(section);
    g_autofree char *pool = eb_config_section_get_string(section, "pool", "", NULL);
    JsonObject *backend = json_object_new();
    JsonArray *pools = json_array_new();
    g_autoptr(GError) error = NULL;

    json_object_set_string_member(backend, "name", name);
    if (socket != NULL) {
        g_autoptr(EbProvisionClient) client = eb_provision_client_new(socket);
        gint64 start = g_get_monotonic_time();
        g_autoptr(JsonNode) answer = eb_provision_client_call(client, "GET", "/1.0", NULL, EB_BACKEND_LOOK_MS, &error);
        JsonObject *environment = eb_json_get_object(eb_json_node_object(answer), "environment");
        const char *version = eb_json_get_string(environment, "server_version");
        json_object_set_boolean_member(backend, "answers", answer != NULL);
        json_object_set_int_member(backend, "ms", (g_get_monotonic_time() - start) / 1000);
        if (version != NULL)
            json_object_set_string_member(backend, "version", version);
        if (answer != NULL)
            look_at_pool(client, pool != NULL && *pool != '\0' ? pool : DEFAULT_POOL, pools);
    }
    if (error != NULL)
        json_object_set_string_member(backend, "error", error->message);
    else
        json_object_set_null_member(backend, "error");
    json_object_set_object_member(object, "backend", backend);
    json_object_set_array_member(object, "pools", pools);
}
