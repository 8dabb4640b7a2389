/* SPDX-License-Identifier: MIT */
#include "core/session/eb-launch-plan.h"

/* /dev/shm counts against the guest's memory; browsers and multiprocessing need some. */
#define MAX_SHM_BYTES (G_GUINT64_CONSTANT(256) * 1024 * 1024)

#define GIB (1024.0 * 1024.0 * 1024.0)

void
eb_launch_plan_free(EbLaunchPlan *self)
{
    if (self == NULL)
        return;
    g_clear_pointer(&self->profile, eb_agent_profile_unref);
    g_free(self->model);
    g_free(self);
}

static gboolean
check_floors(const EbAgentProfile *profile, const EbSessionConfig *config, GError **error)
{
    if (config->memory < profile->min_memory) {
        eb_set_error(error, EB_ERROR_CONFIG, "agent.memory-floor",
                     "the agent %s needs at least %.4g GiB of memory, [session] memory gives %.4g GiB (raise it)",
                     profile->name, (double)profile->min_memory / GIB, (double)config->memory / GIB);
        return FALSE;
    }
    if (config->pids < profile->min_pids) {
        eb_set_error(error, EB_ERROR_CONFIG, "agent.pids-floor",
                     "the agent %s needs at least %u processes, [session] pids gives %u (raise it)", profile->name,
                     profile->min_pids, config->pids);
        return FALSE;
    }
    return TRUE;
}

static const EbProviderConfig *
find_provider(GPtrArray *providers, const char *name)
{
    for (guint i = 0; i < providers->len; i++) {
        const EbProviderConfig *provider = providers->pdata[i];
        if (g_str_equal(provider->name, name))
            return provider;
    }
    return NULL;
}

static gboolean
choose_provider(EbLaunchPlan *self, EbConfig *config, const char *wanted, GError **error)
{
    if (self->profile->dialects == NULL || self->profile->dialects[0] == NULL)
        return TRUE; /* speaks to no model provider that could be routed */
    GPtrArray *providers = eb_config_get_providers(config);
    const char *name = wanted != NULL ? wanted : eb_config_get_session(config)->provider;
    if (name != NULL) {
        self->provider = find_provider(providers, name);
        if (self->provider == NULL) {
            g_autofree char *shown = eb_log_escape(name, -1, 80);
            eb_set_error(error, EB_ERROR_CONFIG, "provider.unknown",
                         "no provider \"%s\" is configured (add [provider.%s])", shown, shown);
            return FALSE;
        }
        self->dialect = eb_agent_profile_choose_dialect(self->profile, self->provider->kind);
    }
    for (guint i = 0; name == NULL && self->dialect == NULL && i < providers->len; i++) {
        self->provider = providers->pdata[i];
        self->dialect = eb_agent_profile_choose_dialect(self->profile, self->provider->kind);
    }
    if (self->provider == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "provider.none",
                     "no model provider is configured (add a [provider.NAME] table with kind, base_url and key)");
        return FALSE;
    }
    if (self->dialect == NULL) {
        g_autofree char *dialects = g_strjoinv(", ", self->profile->dialects);
        eb_set_error(error, EB_ERROR_CONFIG, "provider.kind",
                     "the agent %s speaks %s, but the provider %s is of kind %s", self->profile->name, dialects,
                     self->provider->name, self->provider->kind);
        return FALSE;
    }
    return TRUE;
}

/* Builds the block once with a nonce of no use: what a profile lacks (a model) is found before anything is started. */
static gboolean
check_block(const EbLaunchPlan *self, EbConfig *config, GError **error)
{
    g_autoptr(EbSecret) nonce = eb_secret_new_random("nonce", 32);
    EbSessionEnv env = eb_launch_plan_env(self, config, nonce);
    GError *failed = NULL;
    g_autoptr(GBytes) block = eb_session_env_bytes(&env, &failed);
    g_auto(GStrv) command = block != NULL ? eb_session_env_command(&env, &failed) : NULL;
    if (command != NULL)
        return TRUE;
    if (g_strcmp0(eb_error_get_reason(failed), "agent.no-model") == 0)
        eb_set_error(error, EB_ERROR_CONFIG, "agent.no-model",
                     "the agent %s needs to be told a model (--model, or [session] model)", self->profile->name);
    else
        g_propagate_prefixed_error(error, g_error_copy(failed), "the agent %s: ", self->profile->name);
    g_error_free(failed);
    return FALSE;
}

gboolean
eb_launch_plan_next_provider(EbLaunchPlan *self, EbConfig *config)
{
    GPtrArray *providers = eb_config_get_providers(config);
    const EbProviderConfig *before = self->provider;
    const char *dialect = self->dialect;
    gboolean passed = FALSE;
    if (before == NULL || self->provider_named)
        return FALSE;
    for (guint i = 0; i < providers->len; i++) {
        const EbProviderConfig *provider = providers->pdata[i];
        if (!passed || (self->model_named && !g_str_equal(provider->kind, before->kind))) {
            passed = passed || provider == before;
            continue;
        }
        self->provider = provider;
        self->dialect = eb_agent_profile_choose_dialect(self->profile, provider->kind);
        if (self->dialect != NULL && check_block(self, config, NULL))
            return TRUE;
    }
    self->provider = before;
    self->dialect = dialect;
    return FALSE;
}

EbLaunchPlan *
eb_launch_plan_new(EbConfig *config, const char *agent, const char *model, const char *provider, GError **error)
{
    const EbSessionConfig *session = eb_config_get_session(config);
    EbAgentProfile *profile = eb_config_get_agent(config, agent != NULL ? agent : session->agent, error);
    if (profile == NULL)
        return NULL;
    g_autoptr(EbLaunchPlan) self = g_new0(EbLaunchPlan, 1);
    self->profile = eb_agent_profile_ref(profile);
    if (!check_floors(profile, session, error) || !choose_provider(self, config, provider, error))
        return NULL;
    self->provider_named = provider != NULL || session->provider != NULL;
    self->model_named = model != NULL || session->model != NULL;
    if (model == NULL)
        model = session->model != NULL ? session->model : profile->default_model;
    self->model = g_strdup(model);
    return check_block(self, config, error) ? g_steal_pointer(&self) : NULL;
}

EbContainerSpec *
eb_launch_plan_spec(EbGuest *guest)
{
    EbSessionParts *parts = guest->parts;
    const EbSessionConfig *config = eb_config_get_session(parts->config);
    EbContainerSpec *spec = eb_container_spec_new(guest->instance, parts->image);
    spec->ephemeral = TRUE;
    spec->nesting = config->containers;
    spec->memory_bytes = config->memory;
    spec->cpus = config->cpus;
    spec->pids = config->pids;
    spec->disk_bytes = config->disk;
    spec->inotify = config->inotify;
    if (guest->dirs->project != NULL) {
        spec->agent_uid = parts->uid;
        spec->agent_gid = parts->gid;
        eb_container_spec_add_directory(spec, "workspace", guest->dirs->project, EB_GUEST_WORKSPACE, FALSE);
        eb_container_spec_add_directory(spec, "state", guest->dirs->state, "/state", FALSE);
    } else {
        g_autofree char *project = g_ascii_strdown(guest->project, -1);
        g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, guest->project, -1);
        /* Volume names are narrower than project names; the digest keeps "Web" and "web" apart. */
        for (char *at = project; *at != '\0'; at++)
            if (!g_ascii_isalnum(*at))
                *at = '-';
        g_autofree char *volume = g_strdup_printf("project-%.30s-%.12s", project, digest);
        g_autofree char *state = g_strdup_printf("state-%s", guest->id);
        eb_container_spec_add_volume(spec, "workspace", volume, config->disk, EB_GUEST_WORKSPACE);
        eb_container_spec_add_volume(spec, "state", state, config->disk, "/state");
    }
    eb_container_spec_add_directory(spec, "run", guest->dirs->run, EB_GUEST_RUN, TRUE);
    eb_container_spec_set_label(spec, "session", guest->id);
    eb_container_spec_set_label(spec, "run", parts->run_id);
    eb_container_spec_set_label(spec, "home", parts->home_id);
    return spec;
}

EbSessionEnv
eb_launch_plan_env(const EbLaunchPlan *self, EbConfig *config, EbSecret *nonce)
{
    const EbSessionConfig *session = eb_config_get_session(config);
    return (EbSessionEnv){
        .profile = self->profile,
        .provider = self->provider != NULL ? self->provider->name : NULL,
        .dialect = self->dialect,
        .model = self->model,
        .nonce = self->provider != NULL ? nonce : NULL,
        .proxy = g_strcmp0(session->egress_mode, "proxy") == 0,
        .relay_port = EB_RELAY_PORT,
    };
}

EbExecSpec *
eb_launch_plan_exec(const EbLaunchPlan *self, EbConfig *config, GError **error)
{
    const EbSessionConfig *session = eb_config_get_session(config);
    EbSessionEnv env = eb_launch_plan_env(self, config, NULL);
    g_auto(GStrv) command = eb_session_env_command(&env, error);
    if (command == NULL)
        return NULL;
    g_autofree char *port = g_strdup_printf("%u", EB_RELAY_PORT);
    g_autofree char *tmp = g_strdup_printf("%" G_GUINT64_FORMAT, session->tmp);
    g_autofree char *shm = g_strdup_printf("%" G_GUINT64_FORMAT, MIN(MAX_SHM_BYTES, session->memory / 8));
    const char *const head[] = {
        EB_GUEST_RUN "/launch", "--relay", port, "--tmp", tmp, "--shm", shm, "--home", EB_GUEST_HOME, "--cwd",
        EB_GUEST_WORKSPACE,     "--lease", NULL};
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_strv_builder_addv(builder, (const char **)head);
    if (session->containers)
        g_strv_builder_add(builder, "--containers");
    g_strv_builder_add(builder, "--");
    g_strv_builder_addv(builder, (const char **)command);
    g_auto(GStrv) argv = g_strv_builder_end(builder);
    EbExecSpec *spec = eb_exec_spec_new((const char *const *)argv);
    spec->uid = spec->gid = 0;
    return spec;
}

EbBrokerRules *
eb_launch_plan_rules(const EbLaunchPlan *self, EbConfig *config, const char *session, EbSecret *key, EbSecret *nonce)
{
    const EbSessionConfig *limits = eb_config_get_session(config);
    EbBrokerRules *rules = eb_broker_rules_new(session);
    rules->proxy = g_strcmp0(limits->egress_mode, "proxy") == 0;
    g_strfreev(rules->allow);
    rules->allow = g_strdupv(limits->egress_allow);
    g_free(rules->ports);
    rules->ports = g_memdup2(limits->egress_ports, sizeof(guint16) * limits->n_egress_ports);
    rules->n_ports = limits->n_egress_ports;
    rules->allow_internal = limits->allow_internal;
    rules->relay_port = EB_RELAY_PORT;
    rules->budget = eb_budget_is_capped(eb_config_get_budget(config));
    rules->reserve = eb_config_get_budget(config)->reserve;
    rules->overshoot = eb_config_get_budget(config)->overshoot;
    if (self->provider != NULL && key != NULL)
        eb_broker_rules_add_provider(rules, self->provider->name, self->provider->kind, self->provider->base_url, key,
                                     nonce);
    return rules;
}
