/* SPDX-License-Identifier: MIT */
#include "doctor-checks.h"

#define DC_TYPE_PLUGIN (dc_plugin_get_type())
G_DECLARE_FINAL_TYPE(DcPlugin, dc_plugin, DC, PLUGIN, GObject)

struct _DcPlugin {
    GObject parent_instance;
};

static gboolean
dc_plugin_configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    g_autoptr(GPtrArray) checks = dc_list();

    for (guint i = 0; i < checks->len; i++) {
        EbDoctorCheck *check = checks->pdata[i];
        if (!eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, eb_doctor_check_get_info(check)->id,
                                       G_OBJECT(check), error))
            return FALSE;
    }
    return eb_config_section_check_unknown(section, error);
}

static void
plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = dc_plugin_configure;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(DcPlugin, dc_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, plugin_iface_init))

static void
dc_plugin_class_init(DcPluginClass *klass)
{
}

static void
dc_plugin_init(DcPlugin *self)
{
}

static EbPlugin *
create(void)
{
    return g_object_new(DC_TYPE_PLUGIN, NULL);
}

EB_PLUGIN_DEFINE("doctor-checks", EB_VERSION, create);
