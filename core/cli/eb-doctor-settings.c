/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-doctor-settings.h"

#include "core/doctor/eb-doctor.h"
#include "core/provision/eb-image-recipe.h"
#include "core/provision/eb-provision-client.h"

#include <string.h>

#define OWN_STORE "credentials"

static void
set(EbConfigSection *settings, const char *key, const char *value)
{
    if (value != NULL && *value != '\0')
        eb_config_section_set(settings, key, g_variant_new_string(value), "doctor", 0);
}

EbConfigSection *
eb_doctor_settings(EbConfig *config, EbPaths *paths, const GError *problem)
{
    static const char *const BACKEND_KEYS[] = {"socket", "project", "pool", "image"};
    EbConfigSection *settings = eb_config_section_new("service");
    g_autoptr(EbConfigSection) backend = eb_config_get_plugin_section(config, eb_config_get_session(config)->backend);
    g_autoptr(EbConfigSection) store = eb_config_get_plugin_section(config, OWN_STORE);
    g_autofree char *file = eb_config_section_get_string(store, "file", NULL, NULL);
    g_autofree char *sealed = eb_config_section_get_string(store, "sealed_file", NULL, NULL);
    g_autofree char *seal_key = eb_config_section_get_string(store, "sealed_key_file", NULL, NULL);
    g_autofree char *passphrase = eb_config_section_get_string(store, "sealed_passphrase_file", NULL, NULL);
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
    set(settings, "credentials.sealed", sealed);
    set(settings, "credentials.seal_key", seal_key != NULL ? seal_key : passphrase);
    set(settings, "config.problem", problem != NULL ? problem->message : NULL);
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

char **
eb_doctor_enabled_plugins(EbConfig *config)
{
    const char *const *configured = eb_config_get_enabled_plugins(config);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();

    for (guint i = 0; configured != NULL && configured[i] != NULL; i++)
        g_strv_builder_add(builder, configured[i]);
    if (configured == NULL || !g_strv_contains(configured, EB_DOCTOR_OWN_PLUGIN))
        g_strv_builder_add(builder, EB_DOCTOR_OWN_PLUGIN);
    return g_strv_builder_end(builder);
}
