/* SPDX-License-Identifier: MIT */
#include "env-file-store.h"

#define EB_TYPE_CREDENTIALS_PLUGIN (eb_credentials_plugin_get_type())
G_DECLARE_FINAL_TYPE(EbCredentialsPlugin, eb_credentials_plugin, EB, CREDENTIALS_PLUGIN, GObject)

struct _EbCredentialsPlugin {
    GObject parent_instance;
};

static void eb_credentials_plugin_iface_init(EbPluginInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbCredentialsPlugin, eb_credentials_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, eb_credentials_plugin_iface_init))

static void
eb_credentials_plugin_class_init(EbCredentialsPluginClass *klass)
{
}

static void
eb_credentials_plugin_init(EbCredentialsPlugin *self)
{
}

static gboolean
configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autofree char *file = eb_config_section_get_string(section, "file", NULL, &local);
    g_autofree char *own = g_build_filename(eb_plugin_context_get_state_dir(context), "creds.env", NULL);
    const char *const standard[] = {own, "/etc/errand-box/creds.env", NULL};
    const char *const named[] = {file, NULL};

    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (file != NULL && !g_path_is_absolute(file)) {
        g_autofree char *where = eb_config_section_where(section, "file");
        eb_set_error(error, EB_ERROR_CONFIG, "config.value", "%s: plugin.credentials.file must be an absolute path",
                     where);
        return FALSE;
    }
    if (!eb_config_section_check_unknown(section, error))
        return FALSE;
    g_autoptr(EbCredentialsEnvFileStore) store =
        eb_credentials_env_file_store_new(file != NULL ? named : standard, eb_plugin_context_get_account(context));
    return eb_plugin_context_provide(context, EB_EXTENSION_CREDENTIAL_STORE, "env-file", G_OBJECT(store), error);
}

static void
eb_credentials_plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = configure;
}

static EbPlugin *
create(void)
{
    return EB_PLUGIN(g_object_new(EB_TYPE_CREDENTIALS_PLUGIN, NULL));
}

EB_PLUGIN_DEFINE("credentials", EB_VERSION, create);
