/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-config-file.h"
#include "core/config/eb-config.h"

/* Between the files of EbConfig. */

/** EB_CONFIG_DEFAULT_FILE: the "file" that defaults come from. */
#define EB_CONFIG_DEFAULT_FILE "default"

/** eb_config_defaults: (transfer full): every key with a default. */
EbConfigSection *eb_config_defaults(void);

/** eb_config_check_dirs: state_dir and project_root must not hold one another, seen through symlinks. */
void eb_config_check_dirs(EbConfigSection *effective, const char *state_dir, const char *project_root,
                          EbConfigProblems *problems);
/** eb_config_dirs_clash: (transfer full) (nullable): what is wrong with the two canonical paths. */
char *eb_config_dirs_clash(const char *state_dir, const char *project_root);

/** eb_config_read_agents: @agents: (element-type utf8 EbAgentProfile): built-in profiles with [agent.X] laid over. */
void eb_config_read_agents(GHashTable *agents, EbConfigSection *root, const char *data_dir, guint max,
                           EbConfigProblems *problems);
/** eb_config_unknown_agent: (transfer full): names the known agents and the nearest. */
char *eb_config_unknown_agent(GHashTable *agents, const char *name);

/** eb_config_check_references: do [session] agent and provider, and [egress], fit what is there? */
void eb_config_check_references(EbConfigSection *effective, const EbSessionConfig *session, GPtrArray *providers,
                                GHashTable *agents, gboolean complete, EbConfigProblems *problems);

/** eb_config_check_plugin_names: a [plugin.X] one slip away from an enabled plugin without a table is refused. */
void eb_config_check_plugin_names(EbConfigSection *root, const char *const *enabled, EbConfigProblems *problems);

/** eb_config_provenance: (transfer full): "file:line" of @key, "default" for one nobody set. */
char *eb_config_provenance(EbConfigSection *section, const char *key);
