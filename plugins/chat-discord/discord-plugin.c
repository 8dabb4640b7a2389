/* SPDX-License-Identifier: MIT */
#include "discord-config.h"

#define DISCORD_TYPE_PLUGIN (discord_plugin_get_type())
G_DECLARE_FINAL_TYPE(DiscordPlugin, discord_plugin, DISCORD, PLUGIN, GObject)

struct _DiscordPlugin {
    GObject parent_instance;
    DiscordConfig *config; /* (nullable) (owned): NULL when nothing is configured */
};

static void discord_plugin_iface_init(EbPluginInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(DiscordPlugin, discord_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, discord_plugin_iface_init))

static void
discord_plugin_finalize(GObject *object)
{
    g_clear_pointer(&DISCORD_PLUGIN(object)->config, discord_config_free);
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
plugin_configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    DiscordPlugin *self = DISCORD_PLUGIN(plugin);

    if (!discord_config_is_present(section))
        return TRUE;
    self->config = discord_config_read(section, error);
    return self->config != NULL;
}

static void
discord_plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = plugin_configure;
}

static EbPlugin *
discord_plugin_create(void)
{
    return g_object_new(DISCORD_TYPE_PLUGIN, NULL);
}

EB_PLUGIN_DEFINE("chat-discord", EB_VERSION, discord_plugin_create);
