/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-doctor-settings.h"

#include "core/base/eb-sandbox.h"
#include "core/doctor/eb-doctor.h"
#include "core/provision/eb-image-recipe.h"
#include "core/provision/eb-provision-client.h"
#include "core/session/eb-budget.h"
#include "core/session/eb-launch-plan.h"

#include <string.h>

#define OWN_STORE "credentials"

static void
set(EbConfigSection *settings, const char *key, const char *value)
{
    if (value != NULL && *value != '\0')
        eb_config_section_set(settings, key, g_variant_new_string(value), "doctor", 0);
}

static void
set_list(EbConfigSection *settings, const char *key, GPtrArray *texts)
{
    eb_config_section_set(settings, key, g_variant_new_strv((const char *const *)texts->pdata, texts->len), "doctor",
                          0);
}

/* "NAME KIND KEY BASE_URL" of each provider, and what would become of a session that chooses nothing. */
static void
add_providers(EbConfig *config, EbConfigSection *settings)
{
    GPtrArray *providers = eb_config_get_providers(config);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) unpriced = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(EbBudget) budget = eb_budget_new(eb_config_get_budget(config), providers);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbLaunchPlan) plan = eb_launch_plan_new(config, NULL, NULL, NULL, &error);

    for (guint i = 0; i < providers->len; i++) {
        const EbProviderConfig *one = providers->pdata[i];
        g_ptr_array_add(lines, g_strdup_printf("%s %s %s %s", one->name, one->kind, one->key_name, one->base_url));
    }
    set_list(settings, "providers", lines);
    set(settings, "session.problem", error != NULL ? error->message : NULL);
    if (plan != NULL && plan->provider != NULL && plan->model != NULL &&
        eb_budget_lacks_price(budget, plan->provider->name, plan->model))
        g_ptr_array_add(unpriced, g_strdup_printf("%s %s", plan->provider->name, plan->model));
    set_list(settings, "budget.unpriced", unpriced);
    set(settings, "budget.money", eb_budget_caps_money(eb_config_get_budget(config)) ? "capped" : NULL);
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
    g_autofree char *landlock = NULL;
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
        if (provider->key_name != NULL &&
            !g_ptr_array_find_with_equal_func(needed, provider->key_name, g_str_equal, NULL))
            g_ptr_array_add(needed, provider->key_name);
    }
    eb_config_section_set(settings, "credentials.needed",
                          g_variant_new_strv((const char *const *)needed->pdata, needed->len), "doctor", 0);
    add_providers(config, settings);
    landlock = g_strdup_printf("%u", eb_sandbox_landlock_abi());
    set(settings, "kernel.landlock", landlock);
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
