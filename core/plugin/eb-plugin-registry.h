/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

typedef enum {
    EB_PLUGIN_STATE_DISABLED = 0, /* found, not enabled or for none of the points asked for: never opened */
    EB_PLUGIN_STATE_LOADED = 1,   /* opened and configured */
    EB_PLUGIN_STATE_RUNNING = 2,
    EB_PLUGIN_STATE_STOPPED = 3,
    EB_PLUGIN_STATE_FAILED = 4, /* refused, or quarantined after an error: provides nothing any more */
} EbPluginState;

/**
 * EbPluginRecord: one plugin the registry knows, or one that was enabled and is not there. Owned by the registry.
 * Errors are EB_ERRORs whose reason tokens begin with "plugin."; a failed configure or start keeps the plugin's own.
 */
typedef struct {
    char *name;
    char *version; /* (nullable) */
    char *abi;     /* "1.0" (nullable) */
    char *license; /* (nullable) */
    char *path;    /* of the module, whether it is there or not */
    EbPluginState state;
    GError *error;            /* (nullable) */
    EbPlugin *plugin;         /* (nullable) */
    EbPluginContext *context; /* (nullable) */
    char **implements;        /* manifest: "container-backend:NAME", "doctor-check"; (nullable) */
    char **accesses;          /* manifest: what it may touch; (nullable) */
    char **requires;          /* manifest: plugins that must be loaded; (nullable) */
    char *config_section;     /* (nullable) */
    gboolean told;            /* whoever asked tells of its failure: a warning would say it twice */
} EbPluginRecord;

/**
 * EbPluginRegistry: finds, checks, opens, configures, starts and stops plugins, and looks extensions up.
 */
#define EB_TYPE_PLUGIN_REGISTRY (eb_plugin_registry_get_type())
G_DECLARE_FINAL_TYPE(EbPluginRegistry, eb_plugin_registry, EB, PLUGIN_REGISTRY, GObject)

/** EB_PLUGIN_REGISTRY_MAX: plugins a registry holds. */
#define EB_PLUGIN_REGISTRY_MAX 256

/**
 * eb_plugin_registry_new: @dev: the program runs uninstalled, from its build directory: files may belong to the
 * running user or the program's owner instead of root (eb-plugin-trust.h).
 */
EbPluginRegistry *eb_plugin_registry_new(const char *account, const char *state_dir, gboolean dev);
/** EbSectionLookup: (transfer full) (nullable): the table of plugin @name; NULL = empty. */
typedef EbConfigSection *(*EbSectionLookup)(const char *name, gpointer user_data);
/**
 * eb_plugin_registry_load_dir: every folder NAME of @dir with NAME.plugin or NAME.so becomes a record; those in
 * @enabled (nullable = all) are opened and configured, required ones first. Never fails as a whole: each record has
 * its state and error, and what is enabled and nowhere found becomes a failed record of its own.
 * @dir: absolute; may be a symlink, nothing below it may
 * @only: (nullable): what to open for: "POINT" or "POINT:NAME", e.g. the CLI's doctor opens "doctor-check" alone;
 *   other plugins stay disabled, without an error
 *
 * Reads files and runs the plugins' create() and configure(); call it before giving up the right to read @dir.
 */
void eb_plugin_registry_load_dir(EbPluginRegistry *self, const char *dir, const char *const *enabled,
                                 const char *const *only, EbSectionLookup sections, gpointer user_data);
/** eb_plugin_registry_check_file: `plugin check FILE`: all checks of one module, opened but not configured. */
gboolean eb_plugin_registry_check_file(const char *so_path, gboolean dev, EbPluginRecord **record, GError **error);
void eb_plugin_record_free(EbPluginRecord *record);
/**
 * eb_plugin_registry_start_async: starts all loaded plugins at the same time. @deadline_ms is for each; one that has
 * not started then is cancelled and quarantined, whatever it does later.
 */
void eb_plugin_registry_start_async(EbPluginRegistry *self, guint deadline_ms, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
/** eb_plugin_registry_tell_failures: the caller tells of plugins that fail to start or stop from here on, from their records: such a
 *  failure is logged as information, not as a warning. For commands that end with it. Called before loading, it is for
 *  those that fail to load as well. */
void eb_plugin_registry_tell_failures(EbPluginRegistry *self);
/** eb_plugin_registry_start_finish: TRUE also when single plugins failed (see their records). */
gboolean eb_plugin_registry_start_finish(EbPluginRegistry *self, GAsyncResult *result, GError **error);
/** eb_plugin_registry_stop_async: stops all running plugins; one that is late is dropped and marked failed. */
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
/** eb_plugin_registry_list: (transfer full) (element-type EbExtension): of loaded and running plugins; valid until
 *  the next call that changes states. */
GPtrArray *eb_plugin_registry_list(EbPluginRegistry *self, EbExtensionPoint point);
const char *eb_plugin_state_to_string(EbPluginState state); /* "running|disabled|failed|loaded|stopped" */
/** eb_plugin_registry_set_lookup: how contexts resolve credentials, those made already too. */
void eb_plugin_registry_set_lookup(EbPluginRegistry *self, EbCredentialLookup lookup, gpointer user_data);

G_END_DECLS
