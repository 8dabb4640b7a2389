/* SPDX-License-Identifier: MIT */
#include "core/base/eb-json-members.h"
#include "core/control/eb-control.h"
#include "core/daemon/eb-daemon.h"

#include <string.h>

/* "point:name" or "point" of a manifest as {"kind","name"}. */
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

JsonObject *
eb_daemon_plugin_json(const EbPluginRecord *record)
{
    JsonObject *object = json_object_new();
    JsonArray *accesses = json_array_new();

    eb_json_set_text_or_null(object, "name", record->name);
    eb_json_set_text_or_null(object, "version", record->version);
    eb_json_set_text_or_null(object, "abi", record->abi);
    eb_json_set_text_or_null(object, "state", eb_plugin_state_to_string(record->state));
    eb_json_set_text_or_null(object, "error", record->error != NULL ? record->error->message : NULL);
    json_object_set_array_member(object, "provides", provides_json(record));
    eb_json_set_text_or_null(object, "path", record->path);
    eb_json_set_text_or_null(object, "license", record->license);
    eb_json_set_text_or_null(object, "config_section", record->config_section);
    for (char **item = record->accesses; item != NULL && *item != NULL; item++)
        json_array_add_string_element(accesses, *item);
    json_object_set_array_member(object, "accesses", accesses);
    return object;
}

JsonNode *
eb_daemon_plugins_json(EbPluginRegistry *registry)
{
    GPtrArray *records = eb_plugin_registry_get_records(registry);
    JsonObject *object = json_object_new();
    JsonArray *plugins = json_array_new();

    for (guint i = 0; i < records->len; i++)
        json_array_add_object_element(plugins, eb_daemon_plugin_json(records->pdata[i]));
    json_object_set_array_member(object, "plugins", plugins);
    return eb_control_object(object);
}

/* The plugin that says it implements the backend, to quote its error. */
static const EbPluginRecord *
find_claimant(EbPluginRegistry *registry, const char *backend)
{
    g_autofree char *claim =
        g_strdup_printf("%s:%s", eb_extension_point_to_string(EB_EXTENSION_CONTAINER_BACKEND), backend);
    GPtrArray *records = eb_plugin_registry_get_records(registry);

    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (record->implements != NULL && g_strv_contains((const char *const *)record->implements, claim))
            return record;
    }
    return NULL;
}

GError *
eb_daemon_backend_error(const char *plugin, const GError *failure)
{
    const gboolean late = g_error_matches(failure, EB_ERROR, EB_ERROR_TIMEOUT);

    return eb_error_new(late ? EB_ERROR_TIMEOUT : EB_ERROR_CONFIG, "backend.failed", "plugin \"%s\": %s%s", plugin,
                        failure->message, late ? " (errand-box doctor)" : "");
}

gboolean
eb_daemon_check_backend(EbConfig *config, EbPluginRegistry *registry, GError **error)
{
    const char *backend = eb_config_get_session(config)->backend;

    if (eb_plugin_registry_find(registry, EB_EXTENSION_CONTAINER_BACKEND, backend, NULL) != NULL)
        return TRUE;
    const EbPluginRecord *record = find_claimant(registry, backend);
    if (record == NULL)
        eb_set_error(error, EB_ERROR_CONFIG, "backend.missing",
                     "no plugin provides the container backend \"%s\" (see errand-box plugin list)", backend);
    else if (record->error != NULL)
        g_propagate_error(error, eb_daemon_backend_error(record->name, record->error));
    else
        eb_set_error(error, EB_ERROR_CONFIG, "backend.disabled",
                     "plugin \"%s\", which provides the container backend, is not in [plugins] enabled", record->name);
    return FALSE;
}
