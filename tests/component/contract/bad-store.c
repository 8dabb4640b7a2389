/* SPDX-License-Identifier: MIT */
/* A credential store that breaks what stores promise, once in each way that errand-box-store-test looks for. */
#include "errand-box-plugin.h"

#include <string.h>

#define BAD_TYPE_STORE (bad_store_get_type())
G_DECLARE_FINAL_TYPE(BadStore, bad_store, BAD, STORE, GObject)

struct _BadStore {
    GObject parent_instance;
    char *name, *value; /* the last put: it forgets all others, and everything when the program ends */
};

static void bad_store_iface_init(EbCredentialStoreInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(BadStore, bad_store, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CREDENTIAL_STORE, bad_store_iface_init))

static void
bad_store_finalize(GObject *object)
{
    g_free(BAD_STORE(object)->name);
    g_free(BAD_STORE(object)->value);
    G_OBJECT_CLASS(bad_store_parent_class)->finalize(object);
}

static void
bad_store_class_init(BadStoreClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = bad_store_finalize;
}

static void
bad_store_init(BadStore *self)
{
}

static char *
describe(EbCredentialStore *store)
{
    return g_strdup("two\nlines");
}

static void
lookup_async(EbCredentialStore *store, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    BadStore *self = BAD_STORE(store);
    g_autoptr(GTask) task = g_task_new(store, NULL, callback, user_data);
    gboolean found = g_strcmp0(self->name, name) == 0;

    if (g_ascii_isupper(*name)) {
        g_autoptr(EbSecret) secret = eb_secret_new_random(name, 16);
        g_task_return_pointer(task, eb_credential_new(secret, 0, ""), (GDestroyNotify)eb_credential_free);
    } else if (found) {
        g_autofree char *copy = g_strstrip(g_strdup(self->value));
        g_autoptr(EbSecret) secret = eb_secret_new_take(name, copy, strlen(copy), NULL);
        g_task_return_pointer(task, secret != NULL ? eb_credential_new(secret, 0, self->value) : NULL,
                              (GDestroyNotify)eb_credential_free);
    } else {
        g_task_return_error(task, eb_error_new(EB_ERROR_FAILED, NULL, "nothing there"));
    }
}

static EbCredential *
lookup_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
list_async(EbCredentialStore *store, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(store, cancellable, callback, user_data);
    const char *const none[] = {NULL};

    g_task_return_pointer(task, g_strdupv((char **)none), (GDestroyNotify)g_strfreev);
}

static char **
list_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
put_async(EbCredentialStore *store, const char *name, EbSecret *secret, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    BadStore *self = BAD_STORE(store);
    g_autoptr(GTask) task = g_task_new(store, cancellable, callback, user_data);
    g_auto(EbSecretView) view = eb_secret_view(secret);

    g_free(self->name);
    self->name = g_strdup(name);
    g_free(self->value);
    self->value = g_strdup(view.bytes);
    g_task_return_boolean(task, TRUE);
}

static void
put_credential_async(EbCredentialStore *store, const char *name, const EbCredential *credential,
                     GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    put_async(store, name, credential->secret, cancellable, callback, user_data);
}

static void
remove_async(EbCredentialStore *store, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(store, cancellable, callback, user_data);

    g_task_return_boolean(task, TRUE);
}

static gboolean
finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
bad_store_iface_init(EbCredentialStoreInterface *iface)
{
    iface->describe = describe;
    iface->lookup_async = lookup_async;
    iface->lookup_finish = lookup_finish;
    iface->list_async = list_async;
    iface->list_finish = list_finish;
    iface->put_async = put_async;
    iface->put_finish = finish;
    iface->put_credential_async = put_credential_async;
    iface->put_credential_finish = finish;
    iface->remove_async = remove_async;
    iface->remove_finish = finish;
}

#define BAD_TYPE_PLUGIN (bad_plugin_get_type())
G_DECLARE_FINAL_TYPE(BadPlugin, bad_plugin, BAD, PLUGIN, GObject)

struct _BadPlugin {
    GObject parent_instance;
};

static void bad_plugin_iface_init(EbPluginInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(BadPlugin, bad_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, bad_plugin_iface_init))

static void
bad_plugin_class_init(BadPluginClass *klass)
{
}

static void
bad_plugin_init(BadPlugin *self)
{
}

static gboolean
configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    g_autoptr(BadStore) store = g_object_new(BAD_TYPE_STORE, NULL);

    return eb_plugin_context_provide(context, EB_EXTENSION_CREDENTIAL_STORE, "bad", G_OBJECT(store), error);
}

static void
bad_plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = configure;
}

static EbPlugin *
create(void)
{
    return EB_PLUGIN(g_object_new(BAD_TYPE_PLUGIN, NULL));
}

EB_PLUGIN_DEFINE("bad-store", "1", create);
