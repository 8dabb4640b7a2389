/* SPDX-License-Identifier: MIT */
#include "discord-checks.h"
#include "discord-site.h"
#include "discord-transport.h"

/* In the state directory: what RESUME needs after a restart. */
#define STATE_FILE "discord-gateway.json"

#define DISCORD_TYPE_PLUGIN (discord_plugin_get_type())
G_DECLARE_FINAL_TYPE(DiscordPlugin, discord_plugin, DISCORD, PLUGIN, GObject)

struct _DiscordPlugin {
    GObject parent_instance;
    EbPluginContext *context;    /* not owned; NULL when nothing is configured, and so are the others */
    DiscordConfig *config;       /* (nullable) (owned) */
    DiscordTransport *transport; /* (nullable) (owned) */
};

static void discord_plugin_iface_init(EbPluginInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(DiscordPlugin, discord_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, discord_plugin_iface_init))

static void
discord_plugin_finalize(GObject *object)
{
    DiscordPlugin *self = DISCORD_PLUGIN(object);

    g_clear_object(&self->transport);
    g_clear_pointer(&self->config, discord_config_free);
    G_OBJECT_CLASS(discord_plugin_parent_class)->finalize(object);
}

static void
discord_plugin_class_init(DiscordPluginClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = discord_plugin_finalize;
}

static void
discord_plugin_init(DiscordPlugin *self)
{
}

static gboolean
provide_checks(DiscordPlugin *self, EbPluginContext *context, GError **error)
{
    g_autoptr(GPtrArray) checks = discord_checks_list(self->config != NULL ? self->config->token_name : NULL,
                                                      self->config != NULL ? self->config->channel_id : NULL);

    for (guint i = 0; i < checks->len; i++) {
        EbDoctorCheck *check = checks->pdata[i];
        if (!eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, eb_doctor_check_get_info(check)->id,
                                       G_OBJECT(check), error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
plugin_configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    DiscordPlugin *self = DISCORD_PLUGIN(plugin);

    if (!discord_config_is_present(section)) {
        eb_debug("%s", "there is no [plugin.chat-discord]: Discord is not used");
        return provide_checks(self, context, error);
    }
    self->config = discord_config_read(section, error);
    if (self->config == NULL || !provide_checks(self, context, error))
        return FALSE;
    g_autofree char *path = g_build_filename(eb_plugin_context_get_state_dir(context), STATE_FILE, NULL);
    self->context = context;
    self->transport = discord_transport_new(self->config, path);
    return eb_plugin_context_provide(context, EB_EXTENSION_CHAT_TRANSPORT, "discord", G_OBJECT(self->transport), error);
}

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;

    if (discord_transport_start_finish(DISCORD_TRANSPORT(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
on_token(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordPlugin *self = g_task_get_source_object(task);
    GError *error = NULL;
    GCancellable *cancellable = g_task_get_cancellable(task);
    g_autoptr(EbSecret) token = eb_plugin_context_lookup_secret_finish(EB_PLUGIN_CONTEXT(source), result, &error);

    if (token == NULL) {
        g_task_return_error(task, error);
        return;
    }
    discord_transport_start_async(self->transport, token, g_getenv(DISCORD_MOCK_ENV), cancellable, on_started,
                                  g_steal_pointer(&task));
}

static void
plugin_start_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordPlugin *self = DISCORD_PLUGIN(plugin);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, plugin_start_async);
    if (self->transport == NULL) {
        eb_info("%s", "there is no [plugin.chat-discord] in the configuration: Discord is not used");
        g_task_return_boolean(task, TRUE);
        return;
    }
    if (self->config->warning != NULL)
        eb_warning("%s", self->config->warning);
    eb_plugin_context_lookup_secret_async(self->context, self->config->token_name, cancellable, on_token,
                                          g_steal_pointer(&task));
}

static void
on_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;

    if (discord_transport_stop_finish(DISCORD_TRANSPORT(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
plugin_stop_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordPlugin *self = DISCORD_PLUGIN(plugin);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, plugin_stop_async);
    if (self->transport == NULL)
        g_task_return_boolean(task, TRUE);
    else
        discord_transport_stop_async(self->transport, cancellable, on_stopped, g_steal_pointer(&task));
}

static gboolean
plugin_finish(EbPlugin *plugin, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, plugin), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
discord_plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = plugin_configure;
    iface->start_async = plugin_start_async;
    iface->start_finish = plugin_finish;
    iface->stop_async = plugin_stop_async;
    iface->stop_finish = plugin_finish;
}

static EbPlugin *
discord_plugin_create(void)
{
    return g_object_new(DISCORD_TYPE_PLUGIN, NULL);
}

EB_PLUGIN_DEFINE("chat-discord", EB_VERSION, discord_plugin_create);
