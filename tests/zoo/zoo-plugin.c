/* SPDX-License-Identifier: MIT */
#include "errand-box-plugin.h"

/* A doctor-check plugin that is right unless a ZOO_ macro makes one thing wrong (meson.build). */

#ifndef ZOO_TYPE
#define ZOO_TYPE ZOO_DEFAULT_TYPE
#endif
#ifndef ZOO_CHECK
#define ZOO_CHECK ZOO_DEFAULT_CHECK
#endif
#ifndef ZOO_INFO_ID
#define ZOO_INFO_ID ZOO_CHECK
#endif
#ifndef ZOO_DESC_NAME
#define ZOO_DESC_NAME ZOO_NAME
#endif
#ifndef ZOO_VERSION
#define ZOO_VERSION "1.0"
#endif
#ifndef ZOO_MAJOR
#define ZOO_MAJOR EB_ABI_MAJOR
#endif
#ifndef ZOO_MINOR
#define ZOO_MINOR EB_ABI_MINOR
#endif
#ifndef ZOO_SIZE
#define ZOO_SIZE sizeof(EbPluginDesc)
#endif

/* The test asks by these whether a plugin's code has run at all. */
#define OPENED "ZOO_OPENED_" ZOO_NAME
#define CREATED "ZOO_CREATED_" ZOO_NAME

__attribute__((constructor)) static void
note_opened(void)
{
    g_setenv(OPENED, "1", TRUE);
}

#ifndef ZOO_NO_SYMBOL

static const EbCheckInfo check_info = {
    .id = ZOO_INFO_ID,
    .title = "zoo",
    .expected = "anything",
    .remedy = "none",
};

static EbCheckResult *
run_check(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return eb_check_result_new(EB_CHECK_OK, "%s", ZOO_NAME);
}

typedef struct {
    GObject parent_instance;
} ZooPlugin;

typedef struct {
    GObjectClass parent_class;
} ZooPluginClass;

static gboolean
zoo_configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&check_info, run_check);

#ifdef ZOO_CONFIGURE_ERROR
    eb_set_error(error, EB_ERROR_CONFIG, "zoo.refuses", "the animal refuses");
    return FALSE;
#elif defined ZOO_CONFIGURE_FOREIGN
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED, "the animal is locked in");
    return FALSE;
#elif defined ZOO_CONFIGURE_SILENT
    return FALSE;
#endif
    return eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, ZOO_CHECK, G_OBJECT(check), error);
}

#if defined ZOO_START_NEVER || defined ZOO_START_LATE || defined ZOO_STOP_NEVER
/* Tasks that wait for ever; static, so that they stay reachable as the module does. */
static GPtrArray *waiting;

static void
keep(GTask *task)
{
    if (waiting == NULL)
        waiting = g_ptr_array_new_with_free_func(g_object_unref);
    g_ptr_array_add(waiting, task);
}
#endif

#ifdef ZOO_START_LATE
static gboolean
finish_late(gpointer data)
{
    GTask *task = data;

    g_task_return_boolean(task, TRUE); /* in spite of the cancellation */
    return G_SOURCE_REMOVE;
}

static void
on_cancelled(GCancellable *cancellable, gpointer data)
{
    g_timeout_add(20, finish_late, data);
}
#endif

static void
zoo_start_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(plugin, cancellable, callback, user_data);

#ifdef ZOO_START_FAILS
    g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "zoo.asleep", "the animal sleeps"));
#elif defined ZOO_START_NEVER
    keep(task);
    return;
#elif defined ZOO_START_LATE
    g_task_set_check_cancellable(task, FALSE);
    g_signal_connect_object(cancellable, "cancelled", G_CALLBACK(on_cancelled), task, 0);
    keep(task);
    return;
#else
    g_task_return_boolean(task, TRUE);
#endif
    g_object_unref(task);
}

static gboolean
zoo_finish(EbPlugin *plugin, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
zoo_stop_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(plugin, cancellable, callback, user_data);

#ifdef ZOO_STOP_NEVER
    keep(task);
    return;
#elif defined ZOO_STOP_FAILS
    g_task_return_error(task, eb_error_new(EB_ERROR_FAILED, "zoo.bites", "the animal bites"));
#else
    g_task_return_boolean(task, TRUE);
#endif
    g_object_unref(task);
}

static void
zoo_iface_init(EbPluginInterface *iface)
{
    iface->configure = zoo_configure;
    iface->start_async = zoo_start_async;
    iface->start_finish = zoo_finish;
    iface->stop_async = zoo_stop_async;
    iface->stop_finish = zoo_finish;
}

/* By hand, since G_DEFINE_TYPE takes no name from a macro. */
G_GNUC_UNUSED static GType
zoo_plugin_get_type(void)
{
    static gsize once = 0;

    if (g_once_init_enter(&once)) {
        const GInterfaceInfo plugin = {(GInterfaceInitFunc)(void (*)(void))zoo_iface_init, NULL, NULL};
        GType type = g_type_register_static_simple(G_TYPE_OBJECT, ZOO_TYPE, sizeof(ZooPluginClass), NULL,
                                                   sizeof(ZooPlugin), NULL, G_TYPE_FLAG_FINAL);

        g_type_add_interface_static(type, EB_TYPE_PLUGIN, &plugin);
        g_once_init_leave(&once, type);
    }
    return once;
}

G_GNUC_UNUSED static EbPlugin *
create(void)
{
    g_setenv(CREATED, "1", TRUE);
#ifdef ZOO_CREATE_NULL
    return NULL;
#else
    return g_object_new(zoo_plugin_get_type(), NULL);
#endif
}

extern const EbPluginDesc eb_plugin_desc_v1;
__attribute__((visibility("default"))) const EbPluginDesc eb_plugin_desc_v1 = {
    .struct_size = ZOO_SIZE,
    .abi_major = ZOO_MAJOR,
    .abi_minor = ZOO_MINOR,
    .name = ZOO_DESC_NAME,
    .version = ZOO_VERSION,
#ifdef ZOO_NO_CREATE
    .create = NULL,
#else
    .create = create,
#endif
};

#endif
