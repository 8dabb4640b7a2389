/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-config-section.h"
#include "eb-types.h"
#include "eb-version.h"

G_BEGIN_DECLS

/**
 * EbPlugin: what a module's create() returns. One object may provide several extensions.
 *
 * Life: create() (no side effects) -> configure() -> start -> running -> stop. A module stays resident for ever.
 * An error in configure or start puts the plugin into the state "failed" with that error; the service goes on
 * without it unless it is the chosen backend, or a chat transport whose error is EB_ERROR_CONFIG, _UNAUTHENTICATED or
 * _DENIED: then it does not start. All calls happen in the thread of the main loop.
 */
#define EB_TYPE_PLUGIN (eb_plugin_get_type())
EB_API
G_DECLARE_INTERFACE(EbPlugin, eb_plugin, EB, PLUGIN, GObject)

struct _EbPluginInterface {
    GTypeInterface parent_iface;

    /**
     * configure:
     * @context: (transfer none): valid as long as the plugin
     * @section: (transfer none): the table [plugin.NAME], empty when absent
     *
     * Reads configuration and provides extensions with eb_plugin_context_provide(). No I/O.
     */
    gboolean (*configure)(EbPlugin *self, EbPluginContext *context, EbConfigSection *section, GError **error);

    /** start_async: (nullable): NULL vfunc = nothing to start. The host gives @cancellable a deadline. */
    void (*start_async)(EbPlugin *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*start_finish)(EbPlugin *self, GAsyncResult *result, GError **error);

    /** stop_async: (nullable): must end within 5 s; beyond it the host drops the plugin and says so. */
    void (*stop_async)(EbPlugin *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*stop_finish)(EbPlugin *self, GAsyncResult *result, GError **error);
};

EB_API gboolean eb_plugin_configure(EbPlugin *self, EbPluginContext *context, EbConfigSection *section, GError **error);
EB_API void eb_plugin_start_async(EbPlugin *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);
EB_API gboolean eb_plugin_start_finish(EbPlugin *self, GAsyncResult *result, GError **error);
EB_API void eb_plugin_stop_async(EbPlugin *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);
EB_API gboolean eb_plugin_stop_finish(EbPlugin *self, GAsyncResult *result, GError **error);

/** EbExtensionPoint: the four kinds of things a plugin can provide. */
typedef enum {
    EB_EXTENSION_CONTAINER_BACKEND = 0, /* "container-backend" */
    EB_EXTENSION_CHAT_TRANSPORT = 1,    /* "chat-transport" */
    EB_EXTENSION_CREDENTIAL_STORE = 2,  /* "credential-store" */
    EB_EXTENSION_DOCTOR_CHECK = 3,      /* "doctor-check" */
} EbExtensionPoint;

/** eb_extension_point_to_string: (transfer none): the name used in manifests and `plugin list`. */
EB_API const char *eb_extension_point_to_string(EbExtensionPoint point);
EB_API gboolean eb_extension_point_from_string(const char *text, EbExtensionPoint *point);

/* --- the context: all a plugin gets from its host --- */

#define EB_TYPE_PLUGIN_CONTEXT (eb_plugin_context_get_type())
EB_API
G_DECLARE_FINAL_TYPE(EbPluginContext, eb_plugin_context, EB, PLUGIN_CONTEXT, GObject)

/**
 * EbCredentialLookup: how the host resolves "cred:NAME" for eb_plugin_context_lookup_secret_async(); the host
 * sets it. @task: (transfer full): return an EbSecret with eb_secret_unref or an error.
 */
typedef void (*EbCredentialLookup)(const char *name, GTask *task, gpointer user_data);

/** eb_plugin_context_new: (transfer full): for hosts and tests. @account: name of the service account. */
EB_API EbPluginContext *eb_plugin_context_new(const char *plugin_name, const char *account, const char *state_dir);
EB_API void eb_plugin_context_set_lookup(EbPluginContext *self, EbCredentialLookup lookup, gpointer user_data);

EB_API const char *eb_plugin_context_get_plugin_name(EbPluginContext *self);
/** eb_plugin_context_get_account: (transfer none): name of the account the service runs as, e.g. "errand". */
EB_API const char *eb_plugin_context_get_account(EbPluginContext *self);
/** eb_plugin_context_get_state_dir: (transfer none): absolute state directory of the service. */
EB_API const char *eb_plugin_context_get_state_dir(EbPluginContext *self);

/**
 * eb_plugin_context_provide:
 * @point: which extension point
 * @name: unique within the point, e.g. "incus", "discord", "E-05"; must be listed by the manifest's implements
 *   (checks: the point alone)
 * @object: (transfer none): must implement the point's interface; a reference is taken
 */
EB_API gboolean eb_plugin_context_provide(EbPluginContext *self, EbExtensionPoint point, const char *name,
                                          GObject *object, GError **error);
EB_API guint eb_plugin_context_get_n_provided(EbPluginContext *self);
/** eb_plugin_context_get_provided: (transfer none): the object; @point, @name: (out) (optional) (transfer none) */
EB_API GObject *eb_plugin_context_get_provided(EbPluginContext *self, guint index, EbExtensionPoint *point,
                                               const char **name);

/** eb_plugin_context_lookup_secret_async: resolves credential @name through the stores in their order. */
EB_API void eb_plugin_context_lookup_secret_async(EbPluginContext *self, const char *name, GCancellable *cancellable,
                                                  GAsyncReadyCallback callback, gpointer user_data);
/** eb_plugin_context_lookup_secret_finish: (transfer full) (nullable) */
EB_API EbSecret *eb_plugin_context_lookup_secret_finish(EbPluginContext *self, GAsyncResult *result, GError **error);

/* --- the descriptor: the one exported symbol --- */

/** EbPluginDesc: laid out by value; fields are only appended, struct_size tells how many the module knows. */
typedef struct {
    gsize struct_size;         /* sizeof(EbPluginDesc) as the module was compiled */
    guint32 abi_major;         /* EB_ABI_MAJOR */
    guint32 abi_minor;         /* EB_ABI_MINOR */
    const char *name;          /* same as the manifest and the folder: [a-z][a-z0-9-]{0,62} */
    const char *version;       /* of the plugin */
    EbPlugin *(*create)(void); /* (transfer full): no side effects */
} EbPluginDesc;

/** EB_PLUGIN_SYMBOL: the name looked up in a module. */
#define EB_PLUGIN_SYMBOL "eb_plugin_desc_v1"

/** EB_PLUGIN_DEFINE: @plugin_name, @plugin_version: string literals; @create_func: returns the EbPlugin. */
#define EB_PLUGIN_DEFINE(plugin_name, plugin_version, create_func)                                                     \
    extern const EbPluginDesc eb_plugin_desc_v1;                                                                       \
    __attribute__((visibility("default"))) const EbPluginDesc eb_plugin_desc_v1 = {                                    \
        sizeof(EbPluginDesc), EB_ABI_MAJOR, EB_ABI_MINOR, plugin_name, plugin_version, create_func,                    \
    }

G_END_DECLS
