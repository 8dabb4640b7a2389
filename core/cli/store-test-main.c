/* SPDX-License-Identifier: MIT */
/* errand-box-store-test: the contract of credential stores, for whoever writes one. Prints TAP. */
#include "core/cli/eb-store-contract.h"
#include "core/config/eb-toml.h"
#include "core/plugin/eb-plugin-registry.h"

#include <string.h>

typedef struct {
    char *plugin_dir, *plugin, *store, *state_dir, *settings;
    char *text; /* (nullable): of the file @settings */
    gsize length;
    GPtrArray *registries; /* (element-type EbPluginRegistry): one for each opening, kept to the end */
    guint number;
} StoreTest;

/* The whole file is the plugin's own table. */
static EbConfigSection *
read_section(const char *name, gpointer user_data)
{
    StoreTest *self = user_data;

    return self->text != NULL && strcmp(name, self->plugin) == 0
               ? eb_toml_parse(self->text, self->length, self->settings, NULL)
               : NULL;
}

/* Before anything is opened: a store without its settings would put and remove in the place where it looks by default. */
static gboolean
read_settings(StoreTest *self, GError **error)
{
    if (self->settings == NULL)
        return TRUE;
    if (!g_file_get_contents(self->settings, &self->text, &self->length, error))
        return FALSE;
    g_autoptr(EbConfigSection) section = eb_toml_parse(self->text, self->length, self->settings, error);
    return section != NULL;
}

static EbCredentialStore *
open_store(gpointer user_data, GError **error)
{
    static const char *const only[] = {"credential-store", NULL};
    StoreTest *self = user_data;
    const char *const enabled[] = {self->plugin, NULL};
    EbPluginRegistry *registry = eb_plugin_registry_new(g_get_user_name(), self->state_dir, TRUE);

    g_ptr_array_add(self->registries, registry);
    eb_plugin_registry_load_dir(registry, self->plugin_dir, enabled, only, read_section, self);
    GObject *found = eb_plugin_registry_find(registry, EB_EXTENSION_CREDENTIAL_STORE, self->store, NULL);
    if (found != NULL)
        return EB_CREDENTIAL_STORE(g_object_ref(found));
    GPtrArray *records = eb_plugin_registry_get_records(registry);
    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (record->error != NULL && strcmp(record->name, self->plugin) == 0) {
            g_propagate_error(error, g_error_copy(record->error));
            return NULL;
        }
    }
    eb_set_error(error, EB_ERROR_NOT_FOUND, "store-test.store", "no plugin %s with the credential store %s in %s",
                 self->plugin, self->store, self->plugin_dir);
    return NULL;
}

static void
report(const char *name, const char *problem, const char *skipped, gpointer user_data)
{
    StoreTest *self = user_data;

    g_print("%sok %u %s%s%s\n", problem != NULL ? "not " : "", ++self->number, name, skipped != NULL ? " # SKIP " : "",
            skipped != NULL ? skipped : "");
    if (problem != NULL)
        g_print("# %s\n", problem);
}

static void
store_test_clear(StoreTest *self)
{
    g_clear_pointer(&self->registries, g_ptr_array_unref);
    g_clear_pointer(&self->plugin_dir, g_free);
    g_clear_pointer(&self->state_dir, g_free);
    g_clear_pointer(&self->settings, g_free);
    g_clear_pointer(&self->text, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(StoreTest, store_test_clear)

int
main(int argc, char **argv)
{
    g_auto(StoreTest) self = {0};
    GOptionEntry options[] = {
        {"state-dir", 0, 0, G_OPTION_ARG_FILENAME, &self.state_dir, "what the plugin is told to be the state directory",
         "DIR"},
        {"settings", 0, 0, G_OPTION_ARG_FILENAME, &self.settings, "TOML: what would stand in [plugin.NAME]", "FILE"},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("PLUGIN-DIR PLUGIN STORE");
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, options, NULL);
    g_option_context_set_summary(context,
                                 "Runs a credential store of a plugin through what stores promise. It puts and "
                                 "removes credentials: give it a state directory of its own.");
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc != 4 || self.state_dir == NULL) {
        g_printerr("errand-box-store-test: %s\n",
                   error != NULL ? error->message : "needs PLUGIN-DIR, PLUGIN, STORE and --state-dir (see --help)");
        return 2;
    }
    if (!read_settings(&self, &error)) {
        g_printerr("errand-box-store-test: --settings: %s\n", error->message);
        return 2;
    }
    self.plugin_dir = g_canonicalize_filename(argv[1], NULL);
    self.plugin = argv[2];
    self.store = argv[3];
    self.registries = g_ptr_array_new_with_free_func(g_object_unref);
    g_print("1..%u\n", eb_store_contract_count());
    return eb_store_contract_run(open_store, report, &self) > 0 ? 1 : 0;
}
