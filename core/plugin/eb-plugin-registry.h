/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

typedef enum {
    EB_PLUGIN_STATE_DISABLED = 0, /* found, not enabled: never opened */
    EB_PLUGIN_STATE_LOADED = 1,   /* opened and configured */
    EB_PLUGIN_STATE_RUNNING = 2,
    EB_PLUGIN_STATE_STOPPED = 3,
    EB_PLUGIN_STATE_FAILED = 4,
} EbPluginState;

/** EbPluginRecord: one plugin the registry knows. Owned by the registry. */
typedef struct {
    char *name;
    char *version; /* (nullable) */
    char *abi;     /* "1.0" (nullable) */
    char *path;
    EbPluginState state;
    GError *error;            /* (nullable) */
    EbPlugin *plugin;         /* (nullable) */
    EbPluginContext *context; /* (nullable) */
    char **implements;        /* manifest: "container-backend:incus", "doctor-check" */
    char **accesses;          /* manifest: what it may touch */
    char *config_section;
} EbPluginRecord;

/**
 * EbPluginRegistry: finds, checks, opens, configures, starts and stops plugins, and looks extensions up.
 */
#define EB_TYPE_PLUGIN_REGISTRY (eb_plugin_registry_get_type())
G_DECLARE_FINAL_TYPE(EbPluginRegistry, eb_plugin_registry, EB, PLUGIN_REGISTRY, GObject)

/** eb_plugin_registry_new: @dev: files may belong to the running user instead of root. */
EbPluginRegistry *eb_plugin_registry_new(const char *account, const char *state_dir, gboolean dev);
/** EbSectionLookup: (transfer full): the table of plugin @name. */
typedef EbConfigSection *(*EbSectionLookup)(const char *name, gpointer user_data);
/**
 * eb_plugin_registry_load_dir: every folder of @dir with a manifest becomes a record; those in @enabled (nullable = all)
 * are opened and configured. Never fails as a whole: each record has its state and error.
 * @only: (nullable): extension points to open for, e.g. the CLI's doctor opens doctor-check plugins alone
 */
void eb_plugin_registry_load_dir(EbPluginRegistry *self, const char *dir, const char *const *enabled,
                                 const char *const *only, EbSectionLookup sections, gpointer user_data);
/** eb_plugin_registry_check_file: `plugin check FILE`: all checks of one module, opened but not configured. */
gboolean eb_plugin_registry_check_file(const char *so_path, gboolean dev, EbPluginRecord **record, GError **error);
void eb_plugin_record_free(EbPluginRecord *record);
void eb_plugin_registry_start_async(EbPluginRegistry *self, guint deadline_ms, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
/** eb_plugin_registry_start_finish: TRUE also when single plugins failed (see their records). */
gboolean eb_plugin_registry_start_finish(EbPluginRegistry *self, GAsyncResult *result, GError **error);
void eb_plugin_registry_stop_async(EbPluginRegistry *self, guint deadline_ms, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_plugin_registry_stop_finish(EbPluginRegistry *self, GAsyncResult *result, GError **error);
/** eb_plugin_registry_get_records: (transfer none) (element-type EbPluginRecord): sorted by name. */
GPtrArray *eb_plugin_registry_get_records(EbPluginRegistry *self);
/** eb_plugin_registry_find: (transfer none) (nullable): the extension @name of @point; @record: (out) (optional) */
GObject *eb_plugin_registry_find(EbPluginRegistry *self, EbExtensionPoint point, const char *name,
                                 const EbPluginRecord **record);
/** EbExtension: one provided object. */
typedef struct {
    const char *plugin;
    const char *name;
    GObject *object;
} EbExtension;
/** eb_plugin_registry_list: (transfer full) (element-type EbExtension): of loaded and running plugins. */
GPtrArray *eb_plugin_registry_list(EbPluginRegistry *self, EbExtensionPoint point);
const char *eb_plugin_state_to_string(EbPluginState state); /* "running|disabled|failed|loaded|stopped" */
void eb_plugin_registry_set_lookup(EbPluginRegistry *self, EbCredentialLookup lookup, gpointer user_data);

G_END_DECLS
