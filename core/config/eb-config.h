/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-agent-profile.h"
#include "core/config/eb-price.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbProviderConfig: one [provider.NAME]. */
typedef struct {
    char *name;
    char *kind; /* anthropic | openai | gemini */
    char *base_url;
    char *key_name;    /* credential name */
    GPtrArray *prices; /* (element-type EbPrice) */
    char *where;       /* file:line */
} EbProviderConfig;

/** EbSessionConfig: [session], [limits] and [egress] with all ranges checked. */
typedef struct {
    char *backend, *workspace, *link, *agent;
    char *model, *provider;    /* (nullable): [session] model, provider (default: the only or first provider) */
    guint64 memory, disk, tmp; /* bytes */
    guint cpus, pids, inotify;
    guint64 idle_ms, startup_ms, question_ms, abort_ms, grace_ms;
    gboolean canary;      /* a planted key in each guest */
    gboolean canary_ends; /* the session ends when it shows up */
    gboolean containers;  /* rootless containers inside the guest */
    guint pool_size;      /* [session] pool: warm guests, 0 = none */
    guint max_live, max_turns, max_queue;
    guint64 max_queue_wait_ms;
    char *egress_mode; /* proxy | none */
    char **egress_allow;
    guint16 *egress_ports;
    guint n_egress_ports;
    gboolean allow_internal;
    char *who_allows; /* operators | owners | nobody */
} EbSessionConfig;

/** EbBudgetScope: what a cap is for. A person's and the day's begin anew at 00:00 UTC. */
typedef enum {
    EB_BUDGET_TURN,
    EB_BUDGET_SESSION,
    EB_BUDGET_PERSON,
    EB_BUDGET_DAY,
    EB_BUDGET_SCOPES,
} EbBudgetScope;

/** EbBudgetConfig: [budget]; 0 = no cap. */
typedef struct {
    struct {
        guint64 tokens;
        guint64 micros; /* millionths of a unit of currency */
    } caps[EB_BUDGET_SCOPES];
    char *currency;
    guint64 reserve, overshoot; /* tokens */
} EbBudgetConfig;

/**
 * EbConfig: the merged, validated configuration; immutable.
 *
 * Reading reports every problem found, each with file and line, in one EB_ERROR_CONFIG whose message has one
 * problem a line.
 */
#define EB_TYPE_CONFIG (eb_config_get_type())
G_DECLARE_FINAL_TYPE(EbConfig, eb_config, EB, CONFIG, GObject)

/**
 * eb_config_load:
 * @file: (nullable): read this alone; NULL = ERRAND_BOX_CONFIG, else /etc/errand-box/errand-box.toml and conf.d
 * @data_dir: where built-in agent profiles are
 *
 * No file at all gives the defaults. Returns: (transfer full) (nullable)
 */
EbConfig *eb_config_load(const char *file, const char *data_dir, GError **error);

/**
 * eb_config_load_text: what eb_config_load() would say if @path held @text, before anybody writes it there.
 * @file: (nullable): as for eb_config_load(); when set @text is all there is
 * @path: below conf.d
 *
 * Returns: (transfer full) (nullable)
 */
EbConfig *eb_config_load_text(const char *file, const char *path, const char *text, const char *data_dir,
                              GError **error);

/** eb_config_load_dir: (transfer full) (nullable): @dir/errand-box.toml, then @dir/conf.d; for tests and setup. */
EbConfig *eb_config_load_dir(const char *dir, const char *data_dir, GError **error);

/** eb_config_get_root: (transfer none): what the files say; eb_config_get_effective: with the defaults filled in. */
EbConfigSection *eb_config_get_root(EbConfig *self);
EbConfigSection *eb_config_get_effective(EbConfig *self);
/** eb_config_get_plugin_section: (transfer full): a copy of table [plugin.NAME], empty when absent. */
EbConfigSection *eb_config_get_plugin_section(EbConfig *self, const char *name);
const char *eb_config_get_account(EbConfig *self);
const char *eb_config_get_state_dir(EbConfig *self);
const char *eb_config_get_project_root(EbConfig *self);
const char *const *eb_config_get_accept_degraded(EbConfig *self);
/** eb_config_get_min_free: bytes; eb_config_get_doctor_interval: milliseconds. */
guint64 eb_config_get_min_free(EbConfig *self);
guint64 eb_config_get_doctor_interval(EbConfig *self);
const char *const *eb_config_get_enabled_plugins(EbConfig *self);
const char *const *eb_config_get_credential_order(EbConfig *self);
const EbSessionConfig *eb_config_get_session(EbConfig *self);
const EbBudgetConfig *eb_config_get_budget(EbConfig *self);
/** eb_budget_scope_to_string: "turn", "session", "person", "day": as the keys begin */
const char *eb_budget_scope_to_string(EbBudgetScope scope);
/** eb_config_get_providers: (transfer none) (element-type EbProviderConfig) */
GPtrArray *eb_config_get_providers(EbConfig *self);
/** eb_config_get_agent: (transfer none) (nullable): EB_ERROR_NOT_FOUND names the known agents and the nearest. */
EbAgentProfile *eb_config_get_agent(EbConfig *self, const char *name, GError **error);
/** eb_config_get_agents: (transfer container) (element-type EbAgentProfile) */
GPtrArray *eb_config_get_agents(EbConfig *self);
/** eb_config_list_credentials: (transfer full) (array zero-terminated=1): every NAME that a "cred:NAME" names. */
char **eb_config_list_credentials(EbConfig *self);
/** eb_config_show: (transfer full): merged configuration as TOML with provenance comments, secrets are references. */
char *eb_config_show(EbConfig *self, gboolean json);
/** eb_config_schema: (transfer full): JSON schema of the file. */
char *eb_config_schema(void);

G_END_DECLS
