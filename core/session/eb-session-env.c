/* SPDX-License-Identifier: MIT */
#include "core/session/eb-session-env.h"

#include <string.h>

/* The kernel's limit for one string of an environment, with its end. */
#define MAX_STRING (128 * 1024 - 1)
#define MAX_FILES 64

static gboolean
valid_name(const char *name)
{
    if (*name == '\0' || g_ascii_isdigit(*name))
        return FALSE;
    for (const char *at = name; *at != '\0'; at++)
        if (!g_ascii_isalnum(*at) && *at != '_')
            return FALSE;
    return TRUE;
}

static gboolean
valid_path(const char *path)
{
    if (*path == '\0' || *path == '/')
        return FALSE;
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (guint i = 0; parts[i] != NULL; i++)
        if (*parts[i] == '\0' || g_str_equal(parts[i], ".") || g_str_equal(parts[i], ".."))
            return FALSE;
    return TRUE;
}

static void
put(GHashTable *env, const char *name, const char *value)
{
    g_hash_table_replace(env, g_strdup(name), g_strdup(value));
}

static void
put_base(const EbSessionEnv *self, GHashTable *env)
{
    static const char *const fixed[][2] = {
        {"HOME", EB_GUEST_HOME}, {"USER", "agent"},   {"LOGNAME", "agent"},
        {"SHELL", "/bin/bash"},  {"LANG", "C.UTF-8"}, {"PATH", "/usr/local/bin:/usr/bin:/bin"},
        {"TMPDIR", "/tmp"},      {"TERM", "dumb"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++)
        put(env, fixed[i][0], fixed[i][1]);
    /* Agents reach servers of their own on loopback; without these they would go through the proxy. */
    put(env, "NO_PROXY", "127.0.0.1,localhost,::1");
    put(env, "no_proxy", "127.0.0.1,localhost,::1");
    if (self->canary != NULL) {
        g_auto(EbSecretView) view = eb_secret_view(self->canary);
        put(env, EB_CANARY_VARIABLE, view.bytes);
    }
    if (!self->proxy)
        return;
    g_autofree char *relay = g_strdup_printf("http://127.0.0.1:%u", self->relay_port);
    static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        put(env, names[i], relay);
}

/* A template that names what this session has not got gives no variable: half a setting is worse than none. */
static gboolean
put_profile(const EbSessionEnv *self, const EbAgentVars *vars, GHashTable *env, GError **error)
{
    g_autoptr(GHashTable) own = eb_agent_profile_build_env(self->profile, self->dialect, vars, error);
    if (own == NULL)
        return FALSE;
    GHashTableIter iter;
    gpointer name, value;
    g_hash_table_iter_init(&iter, own);
    while (g_hash_table_iter_next(&iter, &name, &value))
        put(env, name, value);
    for (guint i = 0; self->profile->unset != NULL && self->profile->unset[i] != NULL; i++)
        g_hash_table_remove(env, self->profile->unset[i]);
    return TRUE;
}

static gboolean
write_env(GHashTable *env, GByteArray *out, GError **error)
{
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(env), (GCompareFunc)strcmp);
    for (GList *link = names; link != NULL; link = link->next) {
        const char *name = link->data;
        const char *value = g_hash_table_lookup(env, name);
        if (!valid_name(name) || strlen(name) + strlen(value) + 2 > MAX_STRING) {
            g_autofree char *shown = eb_log_escape(name, -1, 80);
            eb_set_error(error, EB_ERROR_INVALID, "session.environment",
                         "the variable %s of the agent's profile has no valid name or is too long", shown);
            return FALSE;
        }
        g_byte_array_append(out, (const guint8 *)"E", 1);
        g_byte_array_append(out, (const guint8 *)name, (guint)strlen(name));
        g_byte_array_append(out, (const guint8 *)"=", 1);
        g_byte_array_append(out, (const guint8 *)value, (guint)strlen(value) + 1);
    }
    return TRUE;
}

static gboolean
write_files(const EbSessionEnv *self, const EbAgentVars *vars, GByteArray *out, GError **error)
{
    g_autoptr(GPtrArray) files = eb_agent_profile_build_files(self->profile, self->dialect, vars, error);
    if (files == NULL)
        return FALSE;
    for (guint i = 0; i < files->len; i++) {
        const EbAgentFile *file = files->pdata[i];
        if (i >= MAX_FILES || !valid_path(file->path) || (file->mode & ~0777u) != 0) {
            g_autofree char *shown = eb_log_escape(file->path, -1, 80);
            eb_set_error(error, EB_ERROR_INVALID, "session.file",
                         "the file \"%s\" of the agent's profile cannot be placed in its home", shown);
            return FALSE;
        }
        const char *content = file->content;
        g_autofree char *head = g_strdup_printf("F%s", file->path);
        g_autofree char *mode = g_strdup_printf("%o", file->mode);
        g_autofree char *length = g_strdup_printf("%" G_GSIZE_FORMAT, strlen(content));
        g_byte_array_append(out, (const guint8 *)head, (guint)strlen(head) + 1);
        g_byte_array_append(out, (const guint8 *)mode, (guint)strlen(mode) + 1);
        g_byte_array_append(out, (const guint8 *)length, (guint)strlen(length) + 1);
        g_byte_array_append(out, (const guint8 *)content, (guint)strlen(content));
        explicit_bzero(file->content, strlen(file->content));
    }
    return TRUE;
}

typedef struct {
    gsize length;
    guint8 bytes[];
} EbBlock;

static void
block_free(gpointer data)
{
    EbBlock *block = data;
    explicit_bzero(block->bytes, block->length);
    g_free(block);
}

static void
wipe_value(gpointer data)
{
    explicit_bzero(data, strlen(data));
    g_free(data);
}

static GBytes *
finish_block(GByteArray *records)
{
    g_autofree char *head = g_strdup_printf("ERRAND1 %u\n", records->len);
    gsize head_length = strlen(head);
    EbBlock *block = g_malloc(sizeof(EbBlock) + head_length + records->len);
    block->length = head_length + records->len;
    memcpy(block->bytes, head, head_length);
    memcpy(block->bytes + head_length, records->data, records->len);
    return g_bytes_new_with_free_func(block->bytes, block->length, block_free, block);
}

GBytes *
eb_session_env_bytes(const EbSessionEnv *self, GError **error)
{
    g_autofree char *base_url = NULL;
    if (self->provider != NULL)
        base_url = g_strdup_printf("http://127.0.0.1:%u/provider/%s", self->relay_port, self->provider);
    g_auto(EbSecretView) nonce = self->nonce != NULL ? eb_secret_view(self->nonce) : (EbSecretView){NULL, 0, NULL};
    EbAgentVars vars = {
        .base_url = base_url,
        .nonce = nonce.bytes,
        .model = self->model,
        .provider = self->provider,
        .home = EB_GUEST_HOME,
        .workspace = EB_GUEST_WORKSPACE,
    };
    g_autoptr(GHashTable) env = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, wipe_value);
    put_base(self, env);
    g_autoptr(GByteArray) records = g_byte_array_sized_new(64 * 1024);
    GBytes *result = NULL;
    if (put_profile(self, &vars, env, error) && write_env(env, records, error) &&
        write_files(self, &vars, records, error)) {
        if (records->len > EB_SESSION_ENV_MAX)
            eb_set_error(error, EB_ERROR_INVALID, "session.environment",
                         "environment and files of the agent's profile are more than %d MiB",
                         EB_SESSION_ENV_MAX / 1024 / 1024);
        else
            result = finish_block(records);
    }
    if (records->len > 0)
        explicit_bzero(records->data, records->len);
    return result;
}

char **
eb_session_env_command(const EbSessionEnv *self, GError **error)
{
    if (self->profile->command == NULL || self->profile->command[0] == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "agent.command", "the agent %s has no command", self->profile->name);
        return NULL;
    }
    EbAgentVars vars = {
        .model = self->model, .provider = self->provider, .home = EB_GUEST_HOME, .workspace = EB_GUEST_WORKSPACE};
    return eb_agent_profile_build_command(self->profile, &vars, error);
}
