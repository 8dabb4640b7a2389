/* SPDX-License-Identifier: MIT */
#include "incus-backend.h"

#define DEFAULT_IMAGE "errand-box/guest"

#define INCUS_TYPE_PLUGIN (incus_plugin_get_type())
G_DECLARE_FINAL_TYPE(IncusPlugin, incus_plugin, INCUS, PLUGIN, GObject)

struct _IncusPlugin {
    GObject parent_instance;
    IncusBackend *backend; /* (nullable) (owned) */
};

static void incus_plugin_iface_init(EbPluginInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(IncusPlugin, incus_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, incus_plugin_iface_init))

static void
incus_plugin_finalize(GObject *object)
{
    g_clear_object(&INCUS_PLUGIN(object)->backend);
    G_OBJECT_CLASS(incus_plugin_parent_class)->finalize(object);
}

static void
incus_plugin_class_init(IncusPluginClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_plugin_finalize;
}

static void
incus_plugin_init(IncusPlugin *self)
{
}

static IncusSettings *
read_settings(EbPluginContext *context, EbConfigSection *section, GError **error)
{
    IncusSettings *settings = g_new0(IncusSettings, 1);
    settings->account = g_strdup(eb_plugin_context_get_account(context));
    settings->project = eb_config_section_get_string(section, "project", "", error);
    if (settings->project != NULL)
        settings->pool = eb_config_section_get_string(section, "pool", "", error);
    if (settings->pool != NULL)
        settings->image = eb_config_section_get_string(section, "image", DEFAULT_IMAGE, error);
    if (settings->image != NULL)
        return settings;
    incus_settings_free(settings);
    return NULL;
}

static gboolean
plugin_configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    IncusPlugin *self = INCUS_PLUGIN(plugin);
    g_autoptr(IncusEndpoint) endpoint = incus_endpoint_from_section(section, error);
    if (endpoint == NULL)
        return FALSE;
    IncusSettings *settings = read_settings(context, section, error);
    if (settings == NULL)
        return FALSE;
    g_autoptr(IncusClient) client = incus_client_new(endpoint);
    self->backend = incus_backend_new(client, settings);
    return eb_config_section_check_unknown(section, error) &&
           eb_plugin_context_provide(context, EB_EXTENSION_CONTAINER_BACKEND, "incus", G_OBJECT(self->backend), error);
}

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    if (incus_backend_start_finish(INCUS_BACKEND(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
plugin_start_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(plugin, cancellable, callback, user_data);
    incus_backend_start_async(INCUS_PLUGIN(plugin)->backend, cancellable, on_started, task);
}

static void
plugin_stop_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(plugin, cancellable, callback, user_data);
    incus_backend_stop(INCUS_PLUGIN(plugin)->backend);
    g_task_return_boolean(task, TRUE);
}

static gboolean
plugin_finish(EbPlugin *plugin, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
incus_plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = plugin_configure;
    iface->start_async = plugin_start_async;
    iface->start_finish = plugin_finish;
    iface->stop_async = plugin_stop_async;
    iface->stop_finish = plugin_finish;
}

static EbPlugin *
incus_plugin_create(void)
{
    return g_object_new(INCUS_TYPE_PLUGIN, NULL);
}

EB_PLUGIN_DEFINE("incus", EB_VERSION, incus_plugin_create);
