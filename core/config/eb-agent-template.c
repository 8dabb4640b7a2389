/* SPDX-License-Identifier: MIT */
#include "core/config/eb-agent-profile.h"

#include <string.h>

/* What a profile's templates become for one session. */

typedef enum {
    OUTCOME_TEXT,    /* expanded */
    OUTCOME_MISSING, /* names something this session has not got */
    OUTCOME_ERROR,
} Outcome;

static gboolean
find_value(const EbAgentVars *vars, const char *name, gsize length, const char **value)
{
    const struct {
        const char *name;
        const char *value;
    } known[] = {
        {"base_url", vars->base_url}, {"nonce", vars->nonce}, {"model", vars->model},
        {"provider", vars->provider}, {"home", vars->home},   {"workspace", vars->workspace},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        if (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0) {
            *value = known[i].value;
            return TRUE;
        }
    }
    return FALSE;
}

/* Values stand between quotes of JSON and TOML. */
static gboolean
is_plain(const char *value)
{
    for (const char *at = value; *at != '\0'; at++)
        if ((guchar)*at < 0x20 || *at == '"' || *at == '\'' || *at == '\\' || *at == 0x7f)
            return FALSE;
    return g_utf8_validate(value, -1, NULL);
}

/* @at is at "${". Appends the value, moves behind "}". @missing: (inout): the name without value. */
static Outcome
expand_one(const char **at, const EbAgentVars *vars, GString *out, GError **error)
{
    const char *name = *at + 2;
    const char *end = strchr(name, '}');
    gsize length = end != NULL ? (gsize)(end - name) : 0;
    const gboolean optional = length > 0 && name[length - 1] == '?';
    const char *value = NULL;

    if (optional)
        length--;
    if (end == NULL || !find_value(vars, name, length, &value)) {
        g_autofree char *shown = eb_log_escape(*at, (gssize)MIN(strlen(*at), length + 3), 60);

        eb_set_error(error, EB_ERROR_CONFIG, "agent.template",
                     "unknown name in a template: %s (known: base_url, nonce, model, provider, home, workspace)",
                     shown);
        return OUTCOME_ERROR;
    }
    *at = end + 1;
    if (value == NULL || value[0] == '\0') {
        if (optional)
            return OUTCOME_TEXT;
        eb_set_error(error, EB_ERROR_CONFIG, strncmp(name, "model", length) == 0 ? "agent.no-model" : "agent.no-value",
                     "the agent's profile needs ${%.*s} and there is none", (int)length, name);
        return OUTCOME_MISSING;
    }
    if (!is_plain(value)) {
        eb_set_error(error, EB_ERROR_CONFIG, "agent.value", "${%.*s} has a quote, backslash or control character in it",
                     (int)length, name);
        return OUTCOME_ERROR;
    }
    g_string_append(out, value);
    return OUTCOME_TEXT;
}

static Outcome
expand(const char *text, const EbAgentVars *vars, char **result, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const char *at = text;

    while (*at != '\0') {
        const char *dollar = strstr(at, "${");
        Outcome outcome;

        if (dollar == NULL) {
            g_string_append(out, at);
            break;
        }
        if (dollar > at && dollar[-1] == '$') {
            g_string_append_len(out, at, dollar - 1 - at);
            g_string_append(out, "${");
            at = dollar + 2;
            continue;
        }
        g_string_append_len(out, at, dollar - at);
        at = dollar;
        outcome = expand_one(&at, vars, out, error);
        if (outcome != OUTCOME_TEXT)
            return outcome;
    }
    *result = g_string_free(g_steal_pointer(&out), FALSE);
    return OUTCOME_TEXT;
}

char *
eb_agent_profile_expand(const char *text, const EbAgentVars *vars, GError **error)
{
    char *result = NULL;

    g_return_val_if_fail(text != NULL && vars != NULL, NULL);
    expand(text, vars, &result, error);
    return result;
}

/* With the default model in the place of none. */
static EbAgentVars
own_vars(EbAgentProfile *self, const EbAgentVars *vars)
{
    EbAgentVars own = *vars;

    if (own.model == NULL)
        own.model = self->default_model;
    return own;
}

/* Expands for a session: TRUE with *@result NULL when it is to be left out. */
static gboolean
expand_for(const char *text, const char *dialect, const EbAgentVars *vars, char **result, GError **error)
{
    g_autoptr(GError) local = NULL;

    *result = NULL;
    switch (expand(text, vars, result, &local)) {
    case OUTCOME_TEXT:
        return TRUE;
    case OUTCOME_MISSING:
        if (dialect == NULL || g_strcmp0(eb_error_get_reason(local), "agent.no-model") != 0)
            return TRUE;
        eb_set_error(error, EB_ERROR_CONFIG, "agent.no-model",
                     "the agent needs to be told a model (set [session] model, or name one)");
        return FALSE;
    case OUTCOME_ERROR:
        break;
    }
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

static gboolean
add_all(GHashTable *env, GHashTable *templates, const char *dialect, const EbAgentVars *vars, GError **error)
{
    GHashTableIter iter;
    gpointer name;
    gpointer text;

    if (templates == NULL)
        return TRUE;
    g_hash_table_iter_init(&iter, templates);
    while (g_hash_table_iter_next(&iter, &name, &text)) {
        g_autofree char *value = NULL;

        if (!expand_for(text, dialect, vars, &value, error))
            return FALSE;
        if (value != NULL && value[0] != '\0')
            g_hash_table_replace(env, g_strdup(name), g_steal_pointer(&value));
    }
    return TRUE;
}

GHashTable *
eb_agent_profile_build_env(EbAgentProfile *self, const char *dialect, const EbAgentVars *vars, GError **error)
{
    g_autoptr(GHashTable) env = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const EbAgentVars own = own_vars(self, vars);

    if (!add_all(env, self->env, dialect, &own, error))
        return NULL;
    if (dialect != NULL && !add_all(env, g_hash_table_lookup(self->dialect_env, dialect), dialect, &own, error))
        return NULL;
    for (char **name = self->unset; *name != NULL; name++)
        g_hash_table_remove(env, *name);
    return g_steal_pointer(&env);
}

void
eb_agent_file_free(EbAgentFile *file)
{
    g_free(file->path);
    g_free(file->content);
    g_free(file->dialect);
    g_free(file);
}

GPtrArray *
eb_agent_profile_build_files(EbAgentProfile *self, const char *dialect, const EbAgentVars *vars, GError **error)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_agent_file_free);
    const EbAgentVars own = own_vars(self, vars);

    for (guint i = 0; i < self->files->len; i++) {
        const EbAgentFile *file = g_ptr_array_index(self->files, i);
        g_autofree char *content = NULL;
        EbAgentFile *made;

        if (file->dialect != NULL && g_strcmp0(file->dialect, dialect) != 0)
            continue;
        if (!expand_for(file->content, dialect, &own, &content, error))
            return NULL;
        if (content == NULL)
            continue;
        made = g_new0(EbAgentFile, 1);
        made->path = g_strdup(file->path);
        made->mode = file->mode;
        made->content = g_steal_pointer(&content);
        made->dialect = g_strdup(file->dialect);
        g_ptr_array_add(files, made);
    }
    return g_steal_pointer(&files);
}

char **
eb_agent_profile_build_command(EbAgentProfile *self, const EbAgentVars *vars, GError **error)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    const EbAgentVars own = own_vars(self, vars);

    g_strv_builder_addv(builder, (const char **)self->command);
    if (self->model_via != EB_MODEL_VIA_ARGUMENT || own.model == NULL)
        return g_strv_builder_end(builder);
    for (char **argument = self->model_argument; *argument != NULL; argument++) {
        g_autofree char *text = eb_agent_profile_expand(*argument, &own, error);

        if (text == NULL)
            return NULL;
        g_strv_builder_add(builder, text);
    }
    return g_strv_builder_end(builder);
}
