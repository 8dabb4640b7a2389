/* SPDX-License-Identifier: MIT */
#include "core/config/eb-agent-profile.h"

#include <string.h>

#define MAX_FILES 32
#define MAX_VARIABLES 128
#define MAX_TEMPLATE ((gsize)64 * 1024)

EbAgentProfile *
eb_agent_profile_ref(EbAgentProfile *self)
{
    self->ref_count++;
    return self;
}

void
eb_agent_profile_unref(EbAgentProfile *self)
{
    if (self == NULL || --self->ref_count > 0)
        return;
    g_free(self->name);
    g_free(self->title);
    g_strfreev(self->command);
    g_free(self->npm);
    g_strfreev(self->dialects);
    g_hash_table_unref(self->env);
    g_hash_table_unref(self->dialect_env);
    g_ptr_array_unref(self->files);
    g_strfreev(self->unset);
    g_free(self->default_model);
    g_strfreev(self->model_argument);
    g_free(self);
}

/* What reads one table, collecting every problem instead of stopping at the first. */
typedef struct {
    EbConfigSection *section;
    GString *problems;
} Reader;

static void
note(Reader *reader, GError *error)
{
    if (error == NULL)
        return;
    if (reader->problems->len > 0)
        g_string_append_c(reader->problems, '\n');
    g_string_append(reader->problems, error->message);
    g_error_free(error);
}

static void complain(Reader *reader, EbConfigSection *section, const char *key, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

static void
complain(Reader *reader, EbConfigSection *section, const char *key, const char *format, ...)
{
    g_autofree char *where = eb_config_section_where(section, key);
    g_autofree char *text = NULL;
    va_list list;

    va_start(list, format);
    text = g_strdup_vprintf(format, list);
    va_end(list);
    if (key != NULL && eb_config_section_get_path(section)[0] != '\0')
        note(reader, eb_error_new(EB_ERROR_CONFIG, NULL, "%s: %s.%s: %s", where, eb_config_section_get_path(section),
                                  key, text));
    else
        note(reader, eb_error_new(EB_ERROR_CONFIG, NULL, "%s: %s: %s", where,
                                  key != NULL ? key : eb_config_section_get_path(section), text));
}

static char *
read_text(Reader *reader, EbConfigSection *section, const char *key, const char *fallback)
{
    GError *error = NULL;
    char *text = eb_config_section_get_string(section, key, fallback, &error);

    note(reader, error);
    return text;
}

static char **
read_list(Reader *reader, const char *key)
{
    GError *error = NULL;
    char **list = eb_config_section_get_strings(reader->section, key, &error);

    note(reader, error);
    return list != NULL ? list : g_new0(char *, 1);
}

static guint64
read_duration(Reader *reader, const char *key, guint64 fallback_ms, guint64 min_ms, guint64 max_ms)
{
    GError *error = NULL;
    guint64 value = fallback_ms;

    eb_config_section_get_duration(reader->section, key, fallback_ms, min_ms, max_ms, &value, &error);
    note(reader, error);
    return value;
}

/* A template with every name given must expand: what is wrong then is the template. */
static void
check_template(Reader *reader, EbConfigSection *section, const char *key, const char *text)
{
    const EbAgentVars vars = {"http://127.0.0.1:1", "nonce", "model", "provider", "/home", "/workspace"};
    g_autoptr(GError) error = NULL;
    g_autofree char *expanded = eb_agent_profile_expand(text, &vars, &error);

    if (expanded == NULL)
        complain(reader, section, key, "%s", error->message);
    else if (strlen(text) > MAX_TEMPLATE)
        complain(reader, section, key, "longer than %" G_GSIZE_FORMAT " bytes", MAX_TEMPLATE);
}

static gboolean
is_variable_name(const char *name)
{
    return g_regex_match_simple("^[A-Za-z_][A-Za-z0-9_]{0,127}$", name, G_REGEX_DOLLAR_ENDONLY, 0);
}

static GHashTable *
read_env(Reader *reader, EbConfigSection *section)
{
    GHashTable *env = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GPtrArray) keys = NULL;

    if (section == NULL)
        return env;
    keys = eb_config_section_get_keys(section);
    if (keys->len > MAX_VARIABLES)
        complain(reader, section, NULL, "more than %d variables", MAX_VARIABLES);
    for (guint i = 0; i < keys->len && i < MAX_VARIABLES; i++) {
        const char *name = g_ptr_array_index(keys, i);
        g_autofree char *text = read_text(reader, section, name, NULL);

        if (!is_variable_name(name))
            complain(reader, section, name, "not a name of a variable");
        if (text == NULL)
            continue;
        check_template(reader, section, name, text);
        g_hash_table_insert(env, g_strdup(name), g_steal_pointer(&text));
    }
    return env;
}

static gboolean
is_dialect(const char *name)
{
    static const char *const known[] = {"openai", "openai-responses", "anthropic", "gemini", NULL};

    return g_strv_contains(known, name);
}

static void
read_dialects(Reader *reader, EbAgentProfile *self)
{
    EbConfigSection *family = eb_config_section_get_child(reader->section, "dialect");
    g_autoptr(GPtrArray) names = NULL;

    self->dialects = read_list(reader, "dialects");
    for (char **name = self->dialects; *name != NULL; name++)
        if (!is_dialect(*name))
            complain(reader, reader->section, "dialects",
                     "\"%s\" is no dialect (known: openai, openai-responses, anthropic, gemini)", *name);
    if (family == NULL)
        return;
    names = eb_config_section_get_children(family);
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);

        if (!g_strv_contains((const char *const *)self->dialects, name))
            complain(reader, eb_config_section_get_child(family, name), NULL,
                     "\"%s\" is not among the agent's dialects", name);
        g_hash_table_insert(self->dialect_env, g_strdup(name),
                            read_env(reader, eb_config_section_get_child(family, name)));
    }
}

static gboolean
is_home_path(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    if (path[0] == '\0' || strlen(path) > 255)
        return FALSE;
    for (char **part = parts; *part != NULL; part++)
        if ((*part)[0] == '\0' || strcmp(*part, ".") == 0 || strcmp(*part, "..") == 0)
            return FALSE;
    return TRUE;
}

static void
read_file(Reader *reader, EbAgentProfile *self, EbConfigSection *section)
{
    g_autofree char *path = read_text(reader, section, "path", NULL);
    g_autofree char *mode = read_text(reader, section, "mode", "0600");
    g_autofree char *content = read_text(reader, section, "content", NULL);
    g_autofree char *dialect = read_text(reader, section, "dialect", NULL);
    guint64 bits = 0;
    EbAgentFile *file;
    GError *error = NULL;

    eb_config_section_check_unknown(section, &error);
    note(reader, error);
    if (path == NULL || !is_home_path(path)) {
        complain(reader, section, "path", "a path below the agent's home, without \"..\", is needed");
        return;
    }
    if (mode != NULL && !g_ascii_string_to_unsigned(mode, 8, 0, 0777, &bits, NULL))
        complain(reader, section, "mode", "not an octal mode such as \"0600\"");
    if (dialect != NULL && !is_dialect(dialect))
        complain(reader, section, "dialect", "no dialect of that name");
    if (content == NULL) {
        complain(reader, section, "content", "missing");
        return;
    }
    check_template(reader, section, "content", content);
    file = g_new0(EbAgentFile, 1);
    file->path = g_steal_pointer(&path);
    file->mode = (guint)bits;
    file->content = g_steal_pointer(&content);
    file->dialect = g_steal_pointer(&dialect);
    g_ptr_array_add(self->files, file);
}

static void
read_files(Reader *reader, EbAgentProfile *self)
{
    EbConfigSection *family = eb_config_section_get_child(reader->section, "file");
    g_autoptr(GPtrArray) names = NULL;

    if (family == NULL)
        return;
    names = eb_config_section_get_children(family);
    if (names->len > MAX_FILES)
        complain(reader, family, NULL, "more than %d files", MAX_FILES);
    for (guint i = 0; i < names->len && i < MAX_FILES; i++)
        read_file(reader, self, eb_config_section_get_child(family, g_ptr_array_index(names, i)));
}

static void
read_model(Reader *reader, EbAgentProfile *self)
{
    static const char *const ways[] = {"env", "config", "argument"};
    g_autofree char *via = read_text(reader, reader->section, "model_via", ways[0]);
    gboolean known = FALSE;

    self->default_model = read_text(reader, reader->section, "default_model", NULL);
    self->model_argument = read_list(reader, "model_argument");
    for (gsize i = 0; via != NULL && i < G_N_ELEMENTS(ways); i++) {
        if (strcmp(ways[i], via) == 0) {
            self->model_via = (EbModelVia)i;
            known = TRUE;
        }
    }
    if (via != NULL && !known)
        complain(reader, reader->section, "model_via", "\"%s\" is none of env, config, argument", via);
    for (char **argument = self->model_argument; *argument != NULL; argument++)
        check_template(reader, reader->section, "model_argument", *argument);
    if (self->model_via == EB_MODEL_VIA_ARGUMENT && self->model_argument[0] == NULL)
        complain(reader, reader->section, "model_argument", "needed when model_via is \"argument\"");
}

static void
read_limits(Reader *reader, EbAgentProfile *self)
{
    GError *error = NULL;
    gint64 pids = 128;

    self->min_memory = EB_AGENT_MEMORY_FLOOR;
    eb_config_section_get_size(reader->section, "min_memory", EB_AGENT_MEMORY_FLOOR, EB_AGENT_MEMORY_FLOOR,
                               (guint64)1 << 40, &self->min_memory, &error);
    note(reader, error);
    error = NULL;
    eb_config_section_get_int(reader->section, "min_pids", pids, 32, 100000, &pids, &error);
    note(reader, error);
    error = NULL;
    self->min_pids = (guint)pids;
    self->start_timeout_ms = read_duration(reader, "start_timeout", 90000, 1000, 900000);
    self->settle_ms = read_duration(reader, "settle", 0, 0, 10000);
    self->eof_ms = read_duration(reader, "eof", 3000, 0, 60000);
    self->term_ms = read_duration(reader, "term", 3000, 0, 60000);
    eb_config_section_get_bool(reader->section, "load_after_turn_unsafe", FALSE, &self->load_after_turn_unsafe, &error);
    note(reader, error);
}

static void
read_all(Reader *reader, EbAgentProfile *self)
{
    GError *error = NULL;

    self->title = read_text(reader, reader->section, "title", self->name);
    self->npm = read_text(reader, reader->section, "npm", NULL);
    self->command = read_list(reader, "command");
    if (self->command[0] == NULL || self->command[0][0] == '\0')
        complain(reader, reader->section, "command", "missing: the program and its arguments, as a list");
    self->env = read_env(reader, eb_config_section_get_child(reader->section, "env"));
    read_dialects(reader, self);
    read_files(reader, self);
    self->unset = read_list(reader, "unset");
    for (char **name = self->unset; *name != NULL; name++)
        if (!is_variable_name(*name))
            complain(reader, reader->section, "unset", "\"%s\" is not a name of a variable", *name);
    read_model(reader, self);
    read_limits(reader, self);
    eb_config_section_check_unknown(reader->section, &error);
    note(reader, error);
}

EbAgentProfile *
eb_agent_profile_from_section(const char *name, EbConfigSection *section, GError **error)
{
    g_autoptr(EbAgentProfile) self = g_new0(EbAgentProfile, 1);
    g_autoptr(GString) problems = g_string_new(NULL);
    Reader reader = {section, problems};

    g_return_val_if_fail(name != NULL && section != NULL, NULL);
    self->ref_count = 1;
    self->name = g_strdup(name);
    self->dialect_env = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_hash_table_unref);
    self->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_agent_file_free);
    read_all(&reader, self);
    if (problems->len > 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "agent.profile", "%s", problems->str);
        return NULL;
    }
    return g_steal_pointer(&self);
}

const char *
eb_agent_profile_choose_dialect(EbAgentProfile *self, const char *provider_kind)
{
    for (char **name = self->dialects; *name != NULL; name++) {
        if (g_strcmp0(*name, provider_kind) == 0)
            return *name;
        if (g_strcmp0(provider_kind, "openai") == 0 && strcmp(*name, "openai-responses") == 0)
            return *name;
    }
    return NULL;
}
