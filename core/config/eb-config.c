/* SPDX-License-Identifier: MIT */
#include "core/config/eb-config.h"

#include "core/config/eb-config-private.h"
#include "core/config/eb-config-schema.h"
#include "core/config/eb-toml.h"

#include <string.h>

#define SYSTEM_DIR "/etc/errand-box"
#define MAX_PROVIDERS 64
#define MAX_AGENTS 200

struct _EbConfig {
    GObject parent_instance;
    EbConfigSection *root;      /* (owned): what the files say */
    EbConfigSection *effective; /* (owned): laid over the defaults */
    char *account, *state_dir, *project_root;
    char **accept_degraded, **enabled, **order;
    guint64 min_free, doctor_interval_ms;
    EbSessionConfig session;
    EbBudgetConfig budget;
    GPtrArray *providers; /* (element-type EbProviderConfig) */
    GHashTable *agents;   /* (element-type utf8 EbAgentProfile) */
};

G_DEFINE_FINAL_TYPE(EbConfig, eb_config, G_TYPE_OBJECT)

static void
provider_free(gpointer data)
{
    EbProviderConfig *provider = data;

    g_free(provider->name);
    g_free(provider->kind);
    g_free(provider->base_url);
    g_free(provider->key_name);
    g_free(provider->where);
    g_clear_pointer(&provider->prices, g_ptr_array_unref);
    g_free(provider);
}

static void
session_clear(EbSessionConfig *session)
{
    g_free(session->backend);
    g_free(session->workspace);
    g_free(session->link);
    g_free(session->agent);
    g_free(session->model);
    g_free(session->provider);
    g_free(session->egress_mode);
    g_strfreev(session->egress_allow);
    g_free(session->who_allows);
    g_free(session->egress_ports);
}

static void
eb_config_finalize(GObject *object)
{
    EbConfig *self = EB_CONFIG(object);

    g_clear_object(&self->root);
    g_clear_object(&self->effective);
    g_free(self->account);
    g_free(self->state_dir);
    g_free(self->project_root);
    g_strfreev(self->accept_degraded);
    g_strfreev(self->enabled);
    g_strfreev(self->order);
    session_clear(&self->session);
    g_free(self->budget.currency);
    g_ptr_array_unref(self->providers);
    g_hash_table_unref(self->agents);
    G_OBJECT_CLASS(eb_config_parent_class)->finalize(object);
}

static void
eb_config_class_init(EbConfigClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_config_finalize;
}

static void
eb_config_init(EbConfig *self)
{
    self->providers = g_ptr_array_new_with_free_func(provider_free);
    self->agents = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)eb_agent_profile_unref);
}

/* Reads one file into the tree, as much of it as can be: what is left is judged with the others. */
static void
add_file(EbConfigSection **root, const char *path, EbConfigTrust trust, gboolean optional, EbConfigProblems *problems)
{
    g_autoptr(EbConfigSection) one = eb_config_file_read_problems(path, trust, optional, problems);

    if (one == NULL)
        return;
    EbConfigSection *merged = eb_config_merge(*root, one);
    g_object_unref(*root);
    *root = merged;
}

/* A text that stands in for the file @path. */
static void
add_text(EbConfigSection **root, const char *path, const char *text, EbConfigProblems *problems)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(EbConfigSection) one = eb_toml_read(text, strlen(text), path, lines);

    for (guint i = 0; i < lines->len; i++)
        eb_config_problems_add(problems, "%s", (const char *)lines->pdata[i]);
    if (one == NULL)
        return;
    EbConfigSection *merged = eb_config_merge(*root, one);
    g_object_unref(*root);
    *root = merged;
}

/* @path: (nullable): the file of conf.d that @text stands in for, whether it is there or not. */
static EbConfigSection *
read_dir(const char *dir, const char *path, const char *text, EbConfigProblems *problems)
{
    EbConfigSection *root = eb_config_section_new("");
    g_autofree char *main_file = g_build_filename(dir, "errand-box.toml", NULL);
    g_autofree char *conf_d = g_build_filename(dir, "conf.d", NULL);
    GError *error = NULL;

    add_file(&root, main_file, EB_CONFIG_TRUST_SYSTEM, TRUE, problems);
    g_auto(GStrv) files = eb_config_file_list(conf_d, &error);
    eb_config_problems_take(problems, error);
    for (char **file = files; file != NULL && *file != NULL; file++) {
        const int order = path != NULL ? strcmp(path, *file) : 1;
        if (order <= 0) {
            add_text(&root, path, text, problems);
            path = NULL;
        }
        if (order != 0)
            add_file(&root, *file, EB_CONFIG_TRUST_SYSTEM, FALSE, problems);
    }
    if (path != NULL)
        add_text(&root, path, text, problems);
    return root;
}

EbConfigSection *
eb_config_defaults(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const char *table = "";

    for (const EbConfigKey *at = eb_config_keys(); at->table != NULL; at++) {
        if (at->fallback == NULL)
            continue;
        if (strcmp(at->table, table) != 0)
            g_string_append_printf(text, "[%s]\n", at->table);
        table = at->table;
        gboolean quote = at->kind == EB_KIND_SIZE || at->kind == EB_KIND_DURATION;
        g_string_append_printf(text, quote ? "%s = \"%s\"\n" : "%s = %s\n", at->key, at->fallback);
    }
    EbConfigSection *defaults = eb_toml_parse(text->str, text->len, EB_CONFIG_DEFAULT_FILE, &error);
    g_assert_no_error(error);
    return defaults;
}

/* --- filling the typed fields; all values were checked before --- */

static EbConfigSection *
table_of(EbConfig *self, const char *name)
{
    return eb_config_section_get_child(self->effective, name);
}

static char *
get_text(EbConfig *self, const char *table, const char *key)
{
    return eb_config_section_get_string(table_of(self, table), key, NULL, NULL);
}

static char **
get_texts(EbConfig *self, const char *table, const char *key)
{
    return eb_config_section_get_strings(table_of(self, table), key, NULL);
}

static guint
get_number(EbConfig *self, const char *table, const char *key)
{
    gint64 number = 0;
    eb_config_section_get_int(table_of(self, table), key, 0, 0, G_MAXUINT, &number, NULL);
    return (guint)number;
}

static guint64
get_amount(EbConfig *self, const char *table, const char *key)
{
    const EbConfigKey *known = eb_config_key_find(table, key);
    guint64 amount = 0;

    if (known->kind == EB_KIND_SIZE)
        eb_config_section_get_size(table_of(self, table), key, 0, 0, G_MAXUINT64, &amount, NULL);
    else
        eb_config_section_get_duration(table_of(self, table), key, 0, 0, G_MAXUINT64, &amount, NULL);
    return amount;
}

static void
fill_ports(EbConfig *self)
{
    GVariant *value = eb_config_section_get_value(table_of(self, "egress"), "ports");
    EbSessionConfig *session = &self->session;

    if (!g_variant_is_of_type(value, G_VARIANT_TYPE("ax")))
        return;
    session->n_egress_ports = (guint)g_variant_n_children(value);
    session->egress_ports = g_new0(guint16, session->n_egress_ports);
    for (guint i = 0; i < session->n_egress_ports; i++) {
        gint64 port;
        g_variant_get_child(value, i, "x", &port);
        session->egress_ports[i] = (guint16)port;
    }
}

static void
fill_session(EbConfig *self)
{
    EbSessionConfig *session = &self->session;

    session->backend = get_text(self, "session", "backend");
    session->workspace = get_text(self, "session", "workspace");
    session->link = get_text(self, "session", "link");
    session->agent = get_text(self, "session", "agent");
    session->model = get_text(self, "session", "model");
    session->provider = get_text(self, "session", "provider");
    session->memory = get_amount(self, "session", "memory");
    session->disk = get_amount(self, "session", "disk");
    session->tmp = get_amount(self, "session", "tmp");
    session->cpus = get_number(self, "session", "cpus");
    session->pids = get_number(self, "session", "pids");
    session->inotify = get_number(self, "session", "inotify");
    eb_config_section_get_bool(table_of(self, "session"), "containers", FALSE, &session->containers, NULL);
    eb_config_section_get_bool(table_of(self, "session"), "canary", FALSE, &session->canary, NULL);
    g_autofree char *action = get_text(self, "session", "canary_action");
    session->canary_ends = g_strcmp0(action, "end") == 0;
    session->idle_ms = get_amount(self, "session", "idle");
    session->startup_ms = get_amount(self, "session", "startup");
    session->question_ms = get_amount(self, "session", "question");
    session->abort_ms = get_amount(self, "session", "abort");
    session->grace_ms = get_amount(self, "session", "grace");
    session->pool_size = get_number(self, "session", "pool");
    session->max_live = get_number(self, "limits", "max_live_sessions");
    session->max_turns = get_number(self, "limits", "max_concurrent_turns");
    session->max_queue = get_number(self, "limits", "max_queue_length");
    session->max_queue_wait_ms = get_amount(self, "limits", "max_queue_wait");
    session->egress_mode = get_text(self, "egress", "mode");
    session->egress_allow = get_texts(self, "egress", "allow");
    session->who_allows = get_text(self, "egress", "who_allows");
    eb_config_section_get_bool(table_of(self, "egress"), "allow_internal", FALSE, &session->allow_internal, NULL);
    fill_ports(self);
}

static GPtrArray *
read_prices(EbConfigSection *table)
{
    GPtrArray *prices = g_ptr_array_new_with_free_func((GDestroyNotify)eb_price_free);
    g_auto(GStrv) lines = eb_config_section_get_strings(table, "prices", NULL);

    for (guint i = 0; lines != NULL && lines[i] != NULL; i++) {
        EbPrice *price = eb_price_parse(lines[i]);
        if (price != NULL)
            g_ptr_array_add(prices, price);
    }
    return prices;
}

/* Providers in the order of their lines within a file would need the file; by name is steady. */
static void
fill_providers(EbConfig *self, EbConfigProblems *problems)
{
    EbConfigSection *family = table_of(self, "provider");
    g_autoptr(GPtrArray) names = family != NULL ? eb_config_section_get_children(family) : g_ptr_array_new();

    if (names->len > MAX_PROVIDERS)
        eb_config_problems_add(problems, "more than %d providers", MAX_PROVIDERS);
    for (guint i = 0; i < names->len && i < MAX_PROVIDERS; i++) {
        EbConfigSection *table = eb_config_section_get_child(family, names->pdata[i]);
        EbProviderConfig *provider = g_new0(EbProviderConfig, 1);
        provider->name = g_strdup(names->pdata[i]);
        provider->kind = eb_config_section_get_string(table, "kind", NULL, NULL);
        provider->base_url = eb_config_section_get_string(table, "base_url", NULL, NULL);
        provider->key_name = eb_config_section_get_secret_name(table, "key", NULL);
        provider->where = eb_config_section_where(table, "base_url");
        provider->prices = read_prices(table);
        g_ptr_array_add(self->providers, provider);
    }
}

static void
fill_budget(EbConfig *self)
{
    EbConfigSection *table = table_of(self, "budget");

    for (guint i = 0; i < EB_BUDGET_SCOPES; i++) {
        const char *scope = eb_budget_scope_to_string((EbBudgetScope)i);
        g_autofree char *tokens = g_strconcat(scope, "_tokens", NULL);
        g_autofree char *money = g_strconcat(scope, "_money", NULL);
        g_autofree char *amount = eb_config_section_get_string(table, money, NULL, NULL);
        gint64 number = 0;
        eb_config_section_get_int(table, tokens, 0, 0, G_MAXINT64, &number, NULL);
        self->budget.caps[i].tokens = (guint64)number;
        if (amount != NULL)
            eb_money_parse(amount, &self->budget.caps[i].micros);
    }
    self->budget.currency = get_text(self, "budget", "currency");
    self->budget.reserve = get_number(self, "budget", "reserve_tokens");
    self->budget.overshoot = get_number(self, "budget", "overshoot_tokens");
}

static void
fill(EbConfig *self, EbConfigProblems *problems)
{
    self->account = get_text(self, "service", "account");
    self->state_dir = get_text(self, "service", "state_dir");
    self->project_root = get_text(self, "service", "project_root");
    self->accept_degraded = get_texts(self, "service", "accept_degraded");
    self->min_free = get_amount(self, "service", "min_free");
    self->doctor_interval_ms = get_amount(self, "service", "doctor_interval");
    self->enabled = get_texts(self, "plugins", "enabled");
    self->order = get_texts(self, "credentials", "order");
    fill_session(self);
    fill_budget(self);
    fill_providers(self, problems);
}

static EbConfig *
finish(EbConfigSection *root, const char *data_dir, EbConfigProblems *problems, GError **error)
{
    g_autoptr(EbConfig) self = g_object_new(EB_TYPE_CONFIG, NULL);
    g_autoptr(EbConfigSection) defaults = eb_config_defaults();

    self->root = g_object_ref(root);
    eb_config_schema_check(root, problems);
    self->effective = eb_config_merge(defaults, root);
    fill(self, problems);
    eb_config_check_dirs(self->effective, self->state_dir, self->project_root, problems);
    eb_config_read_agents(self->agents, root, data_dir, MAX_AGENTS, problems);
    eb_config_check_references(self->effective, &self->session, self->providers, self->agents, data_dir != NULL,
                               problems);
    eb_config_check_plugin_names(root, (const char *const *)self->enabled, problems);
    if (!eb_config_problems_to_error(problems, error))
        return NULL;
    return g_steal_pointer(&self);
}

EbConfig *
eb_config_load_dir(const char *dir, const char *data_dir, GError **error)
{
    g_autoptr(EbConfigProblems) problems = eb_config_problems_new();
    g_autoptr(EbConfigSection) root = read_dir(dir, NULL, NULL, problems);

    return finish(root, data_dir, problems, error);
}

EbConfig *
eb_config_load(const char *file, const char *data_dir, GError **error)
{
    g_autoptr(EbConfigProblems) problems = eb_config_problems_new();
    const char *named = file != NULL ? file : g_getenv("ERRAND_BOX_CONFIG");

    if (named == NULL || *named == '\0')
        return eb_config_load_dir(SYSTEM_DIR, data_dir, error);
    EbConfigSection *root = eb_config_section_new("");
    add_file(&root, named, EB_CONFIG_TRUST_NAMED, FALSE, problems);
    EbConfig *self = finish(root, data_dir, problems, error);
    g_object_unref(root);
    return self;
}

EbConfig *
eb_config_load_text(const char *file, const char *path, const char *text, const char *data_dir, GError **error)
{
    g_autoptr(EbConfigProblems) problems = eb_config_problems_new();
    EbConfigSection *root = NULL;
    EbConfig *self;

    if (file != NULL) {
        root = eb_config_section_new("");
        add_text(&root, path, text, problems);
    } else {
        root = read_dir(SYSTEM_DIR, path, text, problems);
    }
    self = finish(root, data_dir, problems, error);
    g_object_unref(root);
    return self;
}

EbConfigSection *
eb_config_get_root(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return self->root;
}

EbConfigSection *
eb_config_get_effective(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return self->effective;
}

EbConfigSection *
eb_config_get_plugin_section(EbConfig *self, const char *name)
{
    g_return_val_if_fail(EB_IS_CONFIG(self) && name != NULL, NULL);
    EbConfigSection *family = eb_config_section_get_child(self->root, "plugin");
    EbConfigSection *table = family != NULL ? eb_config_section_get_child(family, name) : NULL;
    g_autofree char *path = g_strconcat("plugin.", name, NULL);
    EbConfigSection *copy = eb_config_section_new(path);
    if (table == NULL)
        return copy;
    /* A section remembers what it was asked for. What the core asked when it looked for secrets is not what the plugin
       knows: it would have every misspelt key pass. */
    EbConfigSection *fresh = eb_config_merge(copy, table);
    g_object_unref(copy);
    return fresh;
}

const char *
eb_config_get_account(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return self->account;
}

const char *
eb_config_get_state_dir(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return self->state_dir;
}

const char *
eb_config_get_project_root(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return self->project_root;
}

const char *const *
eb_config_get_accept_degraded(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return (const char *const *)self->accept_degraded;
}

guint64
eb_config_get_min_free(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), 0);
    return self->min_free;
}

guint64
eb_config_get_doctor_interval(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), 0);
    return self->doctor_interval_ms;
}

const char *const *
eb_config_get_enabled_plugins(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return (const char *const *)self->enabled;
}

const char *const *
eb_config_get_credential_order(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return (const char *const *)self->order;
}

const EbSessionConfig *
eb_config_get_session(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return &self->session;
}

const EbBudgetConfig *
eb_config_get_budget(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return &self->budget;
}

const char *
eb_budget_scope_to_string(EbBudgetScope scope)
{
    static const char *const names[] = {"turn", "session", "person", "day"};
    return (guint)scope < G_N_ELEMENTS(names) ? names[scope] : "session";
}

GPtrArray *
eb_config_get_providers(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    return self->providers;
}

EbAgentProfile *
eb_config_get_agent(EbConfig *self, const char *name, GError **error)
{
    g_return_val_if_fail(EB_IS_CONFIG(self) && name != NULL, NULL);
    EbAgentProfile *agent = g_hash_table_lookup(self->agents, name);
    if (agent == NULL) {
        g_autofree char *what = eb_config_unknown_agent(self->agents, name);
        eb_set_error(error, EB_ERROR_NOT_FOUND, "config.agent", "%s", what);
    }
    return agent;
}

GPtrArray *
eb_config_get_agents(EbConfig *self)
{
    g_return_val_if_fail(EB_IS_CONFIG(self), NULL);
    GPtrArray *agents = g_ptr_array_new();
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(self->agents), (GCompareFunc)strcmp);
    for (GList *at = names; at != NULL; at = at->next)
        g_ptr_array_add(agents, g_hash_table_lookup(self->agents, at->data));
    return agents;
}
