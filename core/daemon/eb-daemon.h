/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/config/eb-config.h"
#include "core/plugin/eb-plugin-registry.h"

G_BEGIN_DECLS

/**
 * EbDaemon: the service: lock, plugins, sessions, transports, control socket, supervisor, signals, drain.
 *
 * One run is one operation with an explicit state: whatever fails, and whenever somebody asks it to stop, it goes
 * through the same drain, and the run ends when nothing is left.
 */
#define EB_TYPE_DAEMON (eb_daemon_get_type())
G_DECLARE_FINAL_TYPE(EbDaemon, eb_daemon, EB, DAEMON, GObject)

/** EB_DAEMON_PLUGIN_START_MS, EB_DAEMON_PLUGIN_STOP_MS: for each plugin. */
#define EB_DAEMON_PLUGIN_START_MS 30000
#define EB_DAEMON_PLUGIN_STOP_MS 12000

/**
 * eb_daemon_new: (transfer full)
 * @registry: loaded, not started; with its EbCredentials attached
 *
 * The process is the account already and keeps the main loop running.
 */
EbDaemon *eb_daemon_new(EbConfig *config, EbPaths *paths, EbPluginRegistry *registry);
/** eb_daemon_set_config_file: @file: (nullable): what --config named; the doctor reads the same. Before the run. */
void eb_daemon_set_config_file(EbDaemon *self, const char *file);
/**
 * eb_daemon_run_async: starts; finishes when the service has ended. SIGTERM and SIGINT drain it, a second one ends the
 * process at once; SIGHUP takes over credentials that changed.
 */
void eb_daemon_run_async(EbDaemon *self, GAsyncReadyCallback callback, gpointer user_data);
/** eb_daemon_run_finish: FALSE with @error when it did not end because it was asked to. */
gboolean eb_daemon_run_finish(EbDaemon *self, GAsyncResult *result, GError **error);
/** eb_daemon_stop: as SIGTERM. */
void eb_daemon_stop(EbDaemon *self);

/** eb_daemon_plugins_json: (transfer full): as `plugin list --json`. */
JsonNode *eb_daemon_plugins_json(EbPluginRegistry *registry);
/** eb_daemon_plugin_json: (transfer full): one record. */
JsonObject *eb_daemon_plugin_json(const EbPluginRecord *record);
/** eb_daemon_backend_error: (transfer full): why there is no service with the backend's @plugin after this @failure. A daemon that
 *  is late or hangs for now is EB_ERROR_TIMEOUT, so that a supervisor tries again; the rest is for people. */
GError *eb_daemon_backend_error(const char *plugin, const GError *failure);
/** eb_daemon_check_backend: is the container backend that [session] backend names there? The error says
 *  why not, as eb_daemon_backend_error(). */
gboolean eb_daemon_check_backend(EbConfig *config, EbPluginRegistry *registry, GError **error);

G_END_DECLS
