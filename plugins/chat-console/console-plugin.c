/* SPDX-License-Identifier: MIT */
#include "console-transport.h"

#include <string.h>
#include <unistd.h>

#define EB_TYPE_CHAT_CONSOLE_PLUGIN (eb_chat_console_plugin_get_type())
G_DECLARE_FINAL_TYPE(EbChatConsolePlugin, eb_chat_console_plugin, EB, CHAT_CONSOLE_PLUGIN, GObject)

struct _EbChatConsolePlugin {
    GObject parent_instance;
    EbChatConsoleTransport *transport; /* (owned) (nullable) */
};

static void eb_chat_console_plugin_iface_init(EbPluginInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbChatConsolePlugin, eb_chat_console_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, eb_chat_console_plugin_iface_init))

static void
eb_chat_console_plugin_finalize(GObject *object)
{
    EbChatConsolePlugin *self = EB_CHAT_CONSOLE_PLUGIN(object);

    g_clear_object(&self->transport);
    G_OBJECT_CLASS(eb_chat_console_plugin_parent_class)->finalize(object);
}

static void
eb_chat_console_plugin_class_init(EbChatConsolePluginClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_chat_console_plugin_finalize;
}

static void
eb_chat_console_plugin_init(EbChatConsolePlugin *self)
{
}

static gboolean
want_color(void)
{
    const char *none = g_getenv("NO_COLOR");
    const char *term = g_getenv("TERM");

    return (none == NULL || *none == '\0') && term != NULL && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO) == 1;
}

static gboolean
configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    EbChatConsolePlugin *self = EB_CHAT_CONSOLE_PLUGIN(plugin);
    ConsoleSettings settings = {.input = STDIN_FILENO};
    g_autofree char *policy = eb_config_section_get_string(section, "permissions", "ask", error);

    if (policy == NULL || !eb_config_section_get_bool(section, "color", want_color(), &settings.color, error) ||
        !eb_config_section_check_unknown(section, error))
        return FALSE;
    if (!console_policy_from_string(policy, &settings.policy)) {
        g_autofree char *where = eb_config_section_where(section, "permissions");
        eb_set_error(error, EB_ERROR_CONFIG, "config.value", "%s: %s.permissions is ask, allow or reject", where,
                     eb_config_section_get_path(section));
        return FALSE;
    }
    settings.interactive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    self->transport = eb_chat_console_transport_new(&settings);
    return eb_plugin_context_provide(context, EB_EXTENSION_CHAT_TRANSPORT, "console", G_OBJECT(self->transport), error);
}

static void
stop_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbChatConsolePlugin *self = EB_CHAT_CONSOLE_PLUGIN(plugin);
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, stop_async);
    eb_chat_console_transport_flush(self->transport, task);
}

static gboolean
stop_finish(EbPlugin *plugin, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, plugin), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
eb_chat_console_plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = configure;
    iface->stop_async = stop_async;
    iface->stop_finish = stop_finish;
}

static EbPlugin *
create(void)
{
    return EB_PLUGIN(g_object_new(EB_TYPE_CHAT_CONSOLE_PLUGIN, NULL));
}

EB_PLUGIN_DEFINE("chat-console", EB_VERSION, create);
