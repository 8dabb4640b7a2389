/* SPDX-License-Identifier: MIT */
#include <errand-box-plugin.h>

#include "hello-check.h"

/* The plugin around the check. Type names begin with the plugin's name: they are one set for the whole process. */

#define DOCTOR_TYPE_HELLO (doctor_hello_get_type())
G_DECLARE_FINAL_TYPE(DoctorHello, doctor_hello, DOCTOR, HELLO, GObject)

struct _DoctorHello {
    GObject parent_instance;
};

static gboolean
doctor_hello_configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&hello_check_info, hello_check_run);

    /* No key of [plugin.doctor-hello] means anything: a mistyped one is said, not passed over. */
    if (!eb_config_section_check_unknown(section, error))
        return FALSE;
    return eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, hello_check_info.id, G_OBJECT(check), error);
}

static void
doctor_hello_plugin_init(EbPluginInterface *iface)
{
    iface->configure = doctor_hello_configure;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(DoctorHello, doctor_hello, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, doctor_hello_plugin_init))

static void
doctor_hello_class_init(DoctorHelloClass *klass)
{
}

static void
doctor_hello_init(DoctorHello *self)
{
}

static EbPlugin *
doctor_hello_create(void)
{
    return g_object_new(DOCTOR_TYPE_HELLO, NULL);
}

EB_PLUGIN_DEFINE("doctor-hello", DOCTOR_HELLO_VERSION, doctor_hello_create);
