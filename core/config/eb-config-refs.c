/* SPDX-License-Identifier: MIT */
/* What looks at more than one key: directories, agents, providers, names of plugins, references to credentials. */
#include "core/config/eb-config-private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define REFERENCE "cred:"
/* Shorter pieces of a plugin's name say nothing. */
#define MIN_PART 4

static gboolean
is_below(const char *path, const char *dir)
{
    gsize length = strlen(dir);
    return strncmp(path, dir, length) == 0 && path[length] == '/';
}

char *
eb_config_dirs_clash(const char *state_dir, const char *project_root)
{
    g_autofree char *home = g_build_filename(state_dir, "home", NULL);

    if (strcmp(state_dir, project_root) == 0)
        return g_strdup("project_root and state_dir are the same directory");
    if (is_below(state_dir, project_root))
        return g_strdup_printf("state_dir (%s) lies inside project_root: what a guest may write must not hold what the "
                               "service trusts",
                               state_dir);
    if (is_below(project_root, state_dir) && !is_below(project_root, home))
        return g_strdup_printf("project_root lies inside state_dir: below it only %s/... may be used", home);
    return NULL;
}

/* The path with the symlinks of the part that exists resolved. */
static char *
resolve(const char *path)
{
    g_autofree char *head = g_strdup(path);
    g_autofree char *tail = g_strdup("");
    char real[PATH_MAX];

    while (realpath(head, real) == NULL) {
        char *slash = strrchr(head, '/');
        if (slash == NULL || slash == head)
            return g_strdup(path);
        g_autofree char *longer = g_strconcat(slash, tail, NULL);
        g_free(tail);
        tail = g_steal_pointer(&longer);
        *slash = '\0';
    }
    return g_strconcat(strcmp(real, "/") == 0 ? "" : real, tail, NULL);
}

void
eb_config_check_dirs(EbConfigSection *effective, const char *state_dir, const char *project_root,
                     EbConfigProblems *problems)
{
    EbConfigSection *service = eb_config_section_get_child(effective, "service");

    if (state_dir == NULL || project_root == NULL)
        return; /* reported already */
    g_autofree char *wrong = eb_config_dirs_clash(state_dir, project_root);
    if (wrong == NULL) {
        g_autofree char *real_state = resolve(state_dir);
        g_autofree char *real_projects = resolve(project_root);
        wrong = eb_config_dirs_clash(real_state, real_projects);
    }
    if (wrong == NULL)
        return;
    g_autofree char *where = eb_config_provenance(service, "project_root");
    if (strcmp(where, EB_CONFIG_DEFAULT_FILE) == 0) {
        g_free(where);
        where = eb_config_provenance(service, "state_dir");
    }
    eb_config_problems_add(problems, "%s: service.project_root: %s", where, wrong);
}

static void
add_agent(GHashTable *agents, const char *name, EbConfigSection *builtin, EbConfigSection *own,
          EbConfigProblems *problems)
{
    g_autofree char *path = g_strconcat("agent.", name, NULL);
    g_autoptr(EbConfigSection) base = eb_config_section_new(path);
    GError *error = NULL;

    if (builtin != NULL) {
        EbConfigSection *merged = eb_config_merge(base, builtin);
        g_object_unref(base);
        base = merged;
    }
    if (own != NULL) {
        EbConfigSection *merged = eb_config_merge(base, own);
        g_object_unref(base);
        base = merged;
    }
    EbAgentProfile *profile = eb_agent_profile_from_section(name, base, &error);
    if (profile != NULL)
        g_hash_table_replace(agents, g_strdup(name), profile);
    eb_config_problems_take(problems, error);
}

static EbConfigSection *
own_agent(EbConfigSection *root, const char *name)
{
    EbConfigSection *family = eb_config_section_get_child(root, "agent");
    return family != NULL ? eb_config_section_get_child(family, name) : NULL;
}

void
eb_config_read_agents(GHashTable *agents, EbConfigSection *root, const char *data_dir, guint max,
                      EbConfigProblems *problems)
{
    g_autofree char *dir = data_dir != NULL ? g_build_filename(data_dir, "agents", NULL) : NULL;
    GError *error = NULL;
    g_auto(GStrv) files = dir != NULL ? eb_config_file_list(dir, &error) : NULL;
    EbConfigSection *family = eb_config_section_get_child(root, "agent");
    g_autoptr(GPtrArray) own = family != NULL ? eb_config_section_get_children(family) : g_ptr_array_new();
    g_autoptr(GHashTable) builtin = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    eb_config_problems_take(problems, error);
    for (char **file = files; file != NULL && *file != NULL && g_hash_table_size(agents) < max; file++) {
        g_autofree char *name = g_path_get_basename(*file);
        name[strlen(name) - strlen(".toml")] = '\0';
        error = NULL;
        g_autoptr(EbConfigSection) table = eb_config_file_read(*file, EB_CONFIG_TRUST_NAMED, &error);
        eb_config_problems_take(problems, error);
        g_hash_table_add(builtin, g_strdup(name));
        if (table != NULL)
            add_agent(agents, name, table, own_agent(root, name), problems);
    }
    for (guint i = 0; i < own->len && g_hash_table_size(agents) < max; i++)
        if (!g_hash_table_contains(builtin, own->pdata[i]))
            add_agent(agents, own->pdata[i], NULL, own_agent(root, own->pdata[i]), problems);
}

char *
eb_config_unknown_agent(GHashTable *agents, const char *name)
{
    g_autoptr(GList) sorted = g_list_sort(g_hash_table_get_keys(agents), (GCompareFunc)strcmp);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *shown = eb_log_escape(name, -1, 60);

    for (GList *at = sorted; at != NULL; at = at->next)
        g_ptr_array_add(names, at->data);
    g_ptr_array_add(names, NULL);
    g_autofree char *list = g_strjoinv(", ", (char **)names->pdata);
    const char *near = eb_config_nearest(name, (const char *const *)names->pdata);
    if (near != NULL)
        return g_strdup_printf("no agent \"%s\" is known (did you mean \"%s\"? known: %s)", shown, near, list);
    return g_strdup_printf("no agent \"%s\" is known (known: %s)", shown, list);
}

static void
check_provider(EbConfigSection *table, const EbSessionConfig *session, GPtrArray *providers, EbConfigProblems *problems)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (guint i = 0; i < providers->len; i++) {
        EbProviderConfig *provider = providers->pdata[i];
        if (strcmp(provider->name, session->provider) == 0)
            return;
        g_ptr_array_add(names, provider->name);
    }
    g_ptr_array_add(names, NULL);
    g_autofree char *where = eb_config_provenance(table, "provider");
    g_autofree char *shown = eb_log_escape(session->provider, -1, 60);
    const char *near = eb_config_nearest(session->provider, (const char *const *)names->pdata);
    eb_config_problems_add(problems, "%s: session.provider: there is no [provider.%s]%s%s%s", where, shown,
                           near != NULL ? " (did you mean \"" : "", near != NULL ? near : "",
                           near != NULL ? "\"?)" : "");
}

/* Where money is capped, a provider without prices would be used without end. */
static void
check_prices(EbConfigSection *effective, GPtrArray *providers, EbConfigProblems *problems)
{
    EbConfigSection *budget = eb_config_section_get_child(effective, "budget");

    for (guint i = 0; i < EB_BUDGET_SCOPES; i++) {
        g_autofree char *key = g_strconcat(eb_budget_scope_to_string((EbBudgetScope)i), "_money", NULL);
        if (budget == NULL || !eb_config_section_has(budget, key))
            continue;
        for (guint k = 0; k < providers->len; k++) {
            const EbProviderConfig *provider = providers->pdata[k];
            if (provider->prices->len == 0)
                eb_config_problems_add(problems,
                                       "%s: provider.%s.prices: missing, and budget.%s counts prices (\"* 0 0\" for "
                                       "one that costs nothing)",
                                       provider->where, provider->name, key);
        }
        return;
    }
}

void
eb_config_check_references(EbConfigSection *effective, const EbSessionConfig *session, GPtrArray *providers,
                           GHashTable *agents, gboolean complete, EbConfigProblems *problems)
{
    EbConfigSection *table = eb_config_section_get_child(effective, "session");

    if (session->provider != NULL)
        check_provider(table, session, providers, problems);
    check_prices(effective, providers, problems);
    if (complete && session->agent != NULL && !g_hash_table_contains(agents, session->agent)) {
        g_autofree char *where = eb_config_provenance(table, "agent");
        g_autofree char *what = eb_config_unknown_agent(agents, session->agent);
        eb_config_problems_add(problems, "%s: session.agent: %s", where, what);
    }
}

/* (nullable): the plugin whose name has @name in it: "discord" is how people call "chat-discord" */
static const char *
find_longer(const char *name, const char *const *enabled)
{
    for (guint i = 0; strlen(name) >= MIN_PART && enabled[i] != NULL; i++)
        if (strstr(enabled[i], name) != NULL)
            return enabled[i];
    return NULL;
}

void
eb_config_check_plugin_names(EbConfigSection *root, const char *const *enabled, EbConfigProblems *problems)
{
    EbConfigSection *family = eb_config_section_get_child(root, "plugin");
    g_autoptr(GPtrArray) names = family != NULL ? eb_config_section_get_children(family) : g_ptr_array_new();

    for (guint i = 0; i < names->len; i++) {
        if (enabled == NULL || g_strv_contains(enabled, names->pdata[i]))
            continue;
        const char *near = eb_config_nearest(names->pdata[i], enabled);
        if (near == NULL)
            near = find_longer(names->pdata[i], enabled);
        /* A table of a plugin that is switched off is fine; one that looks like a slip is not. */
        if (near == NULL || eb_config_section_get_child(family, near) != NULL)
            continue;
        g_autofree char *where = eb_config_section_where(eb_config_section_get_child(family, names->pdata[i]), NULL);
        eb_config_problems_add(problems, "%s: [plugin.%s]: no such plugin is enabled (did you mean \"%s\"?)", where,
                               (const char *)names->pdata[i], near);
    }
}

/* Every "cred:NAME" of a table and of those below it. */
static void
collect_credentials(EbConfigSection *section, GHashTable *names)
{
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(section);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);

    for (guint i = 0; i < keys->len; i++) {
        GVariant *value = eb_config_section_get_value(section, keys->pdata[i]);
        const char *text = g_variant_is_of_type(value, G_VARIANT_TYPE_STRING) ? g_variant_get_string(value, NULL) : "";
        if (g_str_has_prefix(text, REFERENCE))
            g_hash_table_add(names, g_strdup(text + strlen(REFERENCE)));
    }
    for (guint i = 0; i < children->len; i++)
        collect_credentials(eb_config_section_get_child(section, children->pdata[i]), names);
}

char **
eb_config_list_credentials(EbConfig *self)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    collect_credentials(eb_config_get_root(self), names);
    g_autofree const char **list = (const char **)g_hash_table_get_keys_as_array(names, NULL);
    return g_strdupv((char **)list);
}
