/* SPDX-License-Identifier: MIT */
#include "eb-plugin.h"

#include <string.h>

#include "eb-async-private.h"
#include "eb-chat-transport.h"
#include "eb-container-backend.h"
#include "eb-credential-store.h"
#include "eb-doctor-check.h"

/* Extensions one plugin may provide. */
#define PROVIDED_MAX 256

G_DEFINE_INTERFACE(EbPlugin, eb_plugin, G_TYPE_OBJECT)

static gboolean
default_configure(EbPlugin *self, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "sdk.not-supported", "%s cannot be configured",
                 G_OBJECT_TYPE_NAME(self));
    return FALSE;
}

static void
eb_plugin_default_init(EbPluginInterface *iface)
{
    iface->configure = default_configure;
}

gboolean
eb_plugin_configure(EbPlugin *self, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_PLUGIN(self) && EB_IS_PLUGIN_CONTEXT(context) && EB_IS_CONFIG_SECTION(section), FALSE);
    done = EB_PLUGIN_GET_IFACE(self)->configure(self, context, section, error);
    return eb_border_boolean(done, error);
}

/* A plugin without the vfunc has nothing to do: that is success. */
static void
return_done(EbPlugin *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data, gpointer tag)
{
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, tag);
    g_task_return_boolean(task, TRUE);
}

void
eb_plugin_start_async(EbPlugin *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbPluginInterface *iface;

    g_return_if_fail(EB_IS_PLUGIN(self));
    iface = EB_PLUGIN_GET_IFACE(self);
    if (iface->start_async != NULL)
        iface->start_async(self, cancellable, callback, user_data);
    else
        return_done(self, cancellable, callback, user_data, eb_plugin_start_async);
}

gboolean
eb_plugin_start_finish(EbPlugin *self, GAsyncResult *result, GError **error)
{
    EbPluginInterface *iface;
    gboolean done;

    g_return_val_if_fail(EB_IS_PLUGIN(self), FALSE);
    iface = EB_PLUGIN_GET_IFACE(self);
    if (iface->start_async == NULL || iface->start_finish == NULL)
        done = g_task_propagate_boolean(G_TASK(result), error);
    else
        done = iface->start_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_plugin_stop_async(EbPlugin *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbPluginInterface *iface;

    g_return_if_fail(EB_IS_PLUGIN(self));
    iface = EB_PLUGIN_GET_IFACE(self);
    if (iface->stop_async != NULL)
        iface->stop_async(self, cancellable, callback, user_data);
    else
        return_done(self, cancellable, callback, user_data, eb_plugin_stop_async);
}

gboolean
eb_plugin_stop_finish(EbPlugin *self, GAsyncResult *result, GError **error)
{
    EbPluginInterface *iface;
    gboolean done;

    g_return_val_if_fail(EB_IS_PLUGIN(self), FALSE);
    iface = EB_PLUGIN_GET_IFACE(self);
    if (iface->stop_async == NULL || iface->stop_finish == NULL)
        done = g_task_propagate_boolean(G_TASK(result), error);
    else
        done = iface->stop_finish(self, result, error);
    return eb_border_boolean(done, error);
}

static const char *const point_names[] = {"container-backend", "chat-transport", "credential-store", "doctor-check"};

const char *
eb_extension_point_to_string(EbExtensionPoint point)
{
    return (guint)point < G_N_ELEMENTS(point_names) ? point_names[point] : "unknown";
}

gboolean
eb_extension_point_from_string(const char *text, EbExtensionPoint *point)
{
    for (guint i = 0; text != NULL && i < G_N_ELEMENTS(point_names); i++) {
        if (strcmp(text, point_names[i]) != 0)
            continue;
        if (point != NULL)
            *point = (EbExtensionPoint)i;
        return TRUE;
    }
    return FALSE;
}

/* --- the context --- */

typedef struct {
    EbExtensionPoint point;
    char *name;      /* (owned) */
    GObject *object; /* (owned) */
} Provided;

struct _EbPluginContext {
    GObject parent_instance;
    char *plugin_name;   /* (owned) */
    char *account;       /* (owned) */
    char *state_dir;     /* (owned) */
    GPtrArray *provided; /* (element-type Provided) (owned), PROVIDED_MAX at most */
    EbCredentialLookup lookup;
    gpointer lookup_data; /* (unowned) */
};

G_DEFINE_FINAL_TYPE(EbPluginContext, eb_plugin_context, G_TYPE_OBJECT)

static void
provided_free(gpointer data)
{
    Provided *provided = data;

    g_free(provided->name);
    g_object_unref(provided->object);
    g_free(provided);
}

static void
eb_plugin_context_dispose(GObject *object)
{
    EbPluginContext *self = EB_PLUGIN_CONTEXT(object);

    /* The plugin may hold the context and provide itself: this ends the cycle. */
    g_ptr_array_set_size(self->provided, 0);
    G_OBJECT_CLASS(eb_plugin_context_parent_class)->dispose(object);
}

static void
eb_plugin_context_finalize(GObject *object)
{
    EbPluginContext *self = EB_PLUGIN_CONTEXT(object);

    g_free(self->plugin_name);
    g_free(self->account);
    g_free(self->state_dir);
    g_ptr_array_unref(self->provided);
    G_OBJECT_CLASS(eb_plugin_context_parent_class)->finalize(object);
}

static void
eb_plugin_context_class_init(EbPluginContextClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_plugin_context_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_plugin_context_finalize;
}

static void
eb_plugin_context_init(EbPluginContext *self)
{
    self->provided = g_ptr_array_new_with_free_func(provided_free);
}

EbPluginContext *
eb_plugin_context_new(const char *plugin_name, const char *account, const char *state_dir)
{
    EbPluginContext *self = g_object_new(EB_TYPE_PLUGIN_CONTEXT, NULL);

    self->plugin_name = g_strdup(plugin_name);
    self->account = g_strdup(account);
    self->state_dir = g_strdup(state_dir);
    return self;
}

void
eb_plugin_context_set_lookup(EbPluginContext *self, EbCredentialLookup lookup, gpointer user_data)
{
    g_return_if_fail(EB_IS_PLUGIN_CONTEXT(self));
    self->lookup = lookup;
    self->lookup_data = user_data;
}

const char *
eb_plugin_context_get_plugin_name(EbPluginContext *self)
{
    g_return_val_if_fail(EB_IS_PLUGIN_CONTEXT(self), NULL);
    return self->plugin_name;
}

const char *
eb_plugin_context_get_account(EbPluginContext *self)
{
    g_return_val_if_fail(EB_IS_PLUGIN_CONTEXT(self), NULL);
    return self->account;
}

const char *
eb_plugin_context_get_state_dir(EbPluginContext *self)
{
    g_return_val_if_fail(EB_IS_PLUGIN_CONTEXT(self), NULL);
    return self->state_dir;
}

static GType
point_type(EbExtensionPoint point)
{
    switch (point) {
    case EB_EXTENSION_CONTAINER_BACKEND:
        return EB_TYPE_CONTAINER_BACKEND;
    case EB_EXTENSION_CHAT_TRANSPORT:
        return EB_TYPE_CHAT_TRANSPORT;
    case EB_EXTENSION_CREDENTIAL_STORE:
        return EB_TYPE_CREDENTIAL_STORE;
    case EB_EXTENSION_DOCTOR_CHECK:
        return EB_TYPE_DOCTOR_CHECK;
    default:
        return G_TYPE_INVALID;
    }
}

/* As names go into configuration, command lines and tables: "incus", "E-05", "x-hello-motd". */
static gboolean
is_extension_name(const char *name)
{
    gsize length = strlen(name);

    return length >= 1 && length <= 63 && g_ascii_isalpha(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") == length;
}

gboolean
eb_plugin_context_provide(EbPluginContext *self, EbExtensionPoint point, const char *name, GObject *object,
                          GError **error)
{
    GType type = point_type(point);
    Provided *provided;

    g_return_val_if_fail(EB_IS_PLUGIN_CONTEXT(self) && name != NULL && G_IS_OBJECT(object), FALSE);
    if (type == G_TYPE_INVALID || !g_type_is_a(G_OBJECT_TYPE(object), type)) {
        eb_set_error(error, EB_ERROR_INVALID, "plugin.extension-type", "plugin %s: %s is no %s", self->plugin_name,
                     G_OBJECT_TYPE_NAME(object), eb_extension_point_to_string(point));
        return FALSE;
    }
    if (!is_extension_name(name)) {
        eb_set_error(error, EB_ERROR_INVALID, "plugin.extension-name", "plugin %s: bad name of a %s", self->plugin_name,
                     eb_extension_point_to_string(point));
        return FALSE;
    }
    for (guint i = 0; i < self->provided->len; i++) {
        provided = g_ptr_array_index(self->provided, i);
        if (provided->point == point && strcmp(provided->name, name) == 0) {
            eb_set_error(error, EB_ERROR_EXISTS, "plugin.extension-duplicate", "plugin %s provides %s %s twice",
                         self->plugin_name, eb_extension_point_to_string(point), name);
            return FALSE;
        }
    }
    if (self->provided->len >= PROVIDED_MAX) {
        eb_set_error(error, EB_ERROR_QUOTA, "plugin.extension-count", "plugin %s provides more than %d extensions",
                     self->plugin_name, PROVIDED_MAX);
        return FALSE;
    }
    provided = g_new0(Provided, 1);
    provided->point = point;
    provided->name = g_strdup(name);
    provided->object = g_object_ref(object);
    g_ptr_array_add(self->provided, provided);
    return TRUE;
}

guint
eb_plugin_context_get_n_provided(EbPluginContext *self)
{
    g_return_val_if_fail(EB_IS_PLUGIN_CONTEXT(self), 0);
    return self->provided->len;
}

GObject *
eb_plugin_context_get_provided(EbPluginContext *self, guint index, EbExtensionPoint *point, const char **name)
{
    Provided *provided;

    g_return_val_if_fail(EB_IS_PLUGIN_CONTEXT(self), NULL);
    if (index >= self->provided->len)
        return NULL;
    provided = g_ptr_array_index(self->provided, index);
    if (point != NULL)
        *point = provided->point;
    if (name != NULL)
        *name = provided->name;
    return provided->object;
}

void
eb_plugin_context_lookup_secret_async(EbPluginContext *self, const char *name, GCancellable *cancellable,
                                      GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task;

    g_return_if_fail(EB_IS_PLUGIN_CONTEXT(self) && name != NULL);
    task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_plugin_context_lookup_secret_async);
    if (self->lookup != NULL) {
        self->lookup(name, task, self->lookup_data);
        return;
    }
    g_task_return_error(task, eb_error_new(EB_ERROR_NOT_FOUND, "credential.no-store",
                                           "credential %s: no credential store is there", name));
    g_object_unref(task);
}

EbSecret *
eb_plugin_context_lookup_secret_finish(EbPluginContext *self, GAsyncResult *result, GError **error)
{
    EbSecret *secret;

    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    secret = g_task_propagate_pointer(G_TASK(result), error);
    return eb_border_pointer(secret, error);
}
