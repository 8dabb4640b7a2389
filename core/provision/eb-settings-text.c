/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-settings-text.h"

#include <string.h>

const char *const EB_CREDENTIAL_KEYS[] = {"ERRAND_CHAT_TOKEN", "ERRAND_PROVIDER_CREDENTIAL", "ERRAND_GITHUB_TOKEN",
                                          NULL};
const char *const EB_SETTING_KEYS[] = {"ERRAND_CHAT_CHANNEL_ID",
                                       "ERRAND_CHAT_ALLOWED_USER_IDS",
                                       "ERRAND_CHAT_OPERATOR_USER_IDS",
                                       "ERRAND_PROVIDER",
                                       "ERRAND_PROVIDER_KIND",
                                       "ERRAND_PROVIDER_BASE_URL",
                                       "ERRAND_MODEL",
                                       "ERRAND_AGENT",
                                       "ERRAND_GITHUB_USER_NAME",
                                       "ERRAND_GITHUB_USER_EMAIL",
                                       "ERRAND_EGRESS_ALLOW",
                                       NULL};

/* Where a provider is when only its name or kind is given. */
static const struct {
    const char *kind;
    const char *base_url;
} KINDS[] = {
    {"anthropic", "https://api.anthropic.com"},
    {"openai", "https://api.openai.com/v1"},
    {"gemini", "https://generativelanguage.googleapis.com"},
};

char *
eb_settings_show_key(const char *key)
{
    gboolean plain = g_ascii_isupper(key[0]) && strchr(key, '_') != NULL && strlen(key) <= 64 &&
                     strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(key);

    return g_strdup(plain ? key : "what stands before the \"=\" (not shown, it may be a credential)");
}

static gboolean
check_keys(GPtrArray *entries, const char *const *known, const char *prefix, GError **error)
{
    const gboolean credentials = known == EB_CREDENTIAL_KEYS;

    for (guint i = 0; i < entries->len; i++) {
        const EbEnvEntry *entry = entries->pdata[i];
        const char *nearest;

        if (g_strv_contains(known, entry->key) || (prefix != NULL && g_str_has_prefix(entry->key, prefix)))
            continue;
        if (g_strv_contains(credentials ? EB_SETTING_KEYS : EB_CREDENTIAL_KEYS, entry->key)) {
            eb_set_error(error, EB_ERROR_CONFIG, "env-file.key", "line %u: %s belongs into %s", entry->line, entry->key,
                         credentials ? "errand-box.env (--env FILE)" : "creds.env (--creds FILE, mode 0600)");
            return FALSE;
        }
        g_autofree char *upper = g_ascii_strup(entry->key, -1);
        nearest = g_strv_contains(known, upper) ? upper : eb_config_nearest(entry->key, known);
        g_autofree char *shown = eb_settings_show_key(entry->key);
        eb_set_error(error, EB_ERROR_CONFIG, "env-file.key", "line %u: %s is no key of this file%s%s%s", entry->line,
                     shown, nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?)" : "");
        return FALSE;
    }
    return TRUE;
}

gboolean
eb_settings_check_keys(GPtrArray *entries, const char *const *known, GError **error)
{
    return check_keys(entries, known, NULL, error);
}

gboolean
eb_settings_check_credentials(GPtrArray *entries, GError **error)
{
    return check_keys(entries, EB_CREDENTIAL_KEYS, "ERRAND_CRED_", error);
}

/* A TOML basic string. */
static void
add_string(GString *text, const char *value)
{
    g_string_append_c(text, '"');
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_printf(text, "\\%c", *c);
        else if ((guchar)*c < 0x20 || *c == 0x7f)
            g_string_append_printf(text, "\\u%04x", (guchar)*c);
        else
            g_string_append_c(text, *c);
    }
    g_string_append_c(text, '"');
}

static void
add_key(GString *text, const char *name, const char *value)
{
    if (value == NULL || *value == '\0')
        return;
    g_string_append_printf(text, "%s = ", name);
    add_string(text, value);
    g_string_append_c(text, '\n');
}

/* Words separated by commas or blanks. */
static void
add_list(GString *text, const char *name, const char *value)
{
    g_auto(GStrv) words = NULL;
    guint n = 0;

    if (value == NULL || value[strspn(value, ", \t")] == '\0')
        return;
    words = g_strsplit_set(value, ", \t", -1);
    g_string_append_printf(text, "%s = [", name);
    for (guint i = 0; words[i] != NULL; i++) {
        if (*words[i] == '\0')
            continue;
        if (n++ > 0)
            g_string_append(text, ", ");
        add_string(text, words[i]);
    }
    g_string_append(text, "]\n");
}

/* A table is written when at least one of its keys was given. */
static void
add_table(GString *text, const char *name, const GString *body)
{
    if (body->len > 0)
        g_string_append_printf(text, "\n[%s]\n%s", name, body->str);
}

static const char *
base_url_of(const char *kind)
{
    for (guint i = 0; kind != NULL && i < G_N_ELEMENTS(KINDS); i++)
        if (strcmp(KINDS[i].kind, kind) == 0)
            return KINDS[i].base_url;
    return NULL;
}

static gboolean
is_name(const char *text)
{
    return *text != '\0' && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

static gboolean
add_provider(GString *text, GPtrArray *entries, GError **error)
{
    const char *name = eb_env_file_lookup(entries, "ERRAND_PROVIDER");
    const char *kind = eb_env_file_lookup(entries, "ERRAND_PROVIDER_KIND");
    const char *url = eb_env_file_lookup(entries, "ERRAND_PROVIDER_BASE_URL");
    g_autofree char *table = NULL;
    g_autoptr(GString) body = g_string_new(NULL);

    if (name == NULL && kind == NULL && url == NULL)
        return TRUE;
    if (kind == NULL || *kind == '\0')
        kind = base_url_of(name) != NULL ? name : NULL;
    if (base_url_of(kind) == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "settings.provider",
                     "ERRAND_PROVIDER_KIND must be anthropic, openai or gemini: it says which header carries the key");
        return FALSE;
    }
    if (name == NULL || *name == '\0')
        name = kind;
    if (!is_name(name)) {
        eb_set_error(error, EB_ERROR_CONFIG, "settings.provider",
                     "ERRAND_PROVIDER is a name of lower-case letters, digits and dashes");
        return FALSE;
    }
    add_key(body, "kind", kind);
    add_key(body, "base_url", url != NULL && *url != '\0' ? url : base_url_of(kind));
    add_key(body, "key", "cred:model-key");
    table = g_strconcat("provider.", name, NULL);
    add_table(text, table, body);
    return TRUE;
}

/* (transfer full) (nullable): the first word of @value that has not the length of an id, which is 15 to 20 digits */
static char *
find_odd_id(const char *value)
{
    g_auto(GStrv) words = g_strsplit_set(value, ", \t", -1);

    for (guint i = 0; words[i] != NULL; i++)
        if (*words[i] != '\0' && (strlen(words[i]) < 15 || strlen(words[i]) > 20))
            return g_strdup(words[i]);
    return NULL;
}

/* People and channels are numbers: a name could be taken over by somebody else. */
static gboolean
check_ids(const char *key, const char *value, GError **error)
{
    const gboolean one = g_str_has_suffix(key, "_ID");
    g_autofree char *odd = NULL;

    if (value[strspn(value, one ? "0123456789" : "0123456789, \t")] != '\0') {
        eb_set_error(error, EB_ERROR_CONFIG, "settings.id",
                     "%s takes %s, not names (copy the id where the chat shows it)", key,
                     one ? "the number of a channel" : "numbers of users separated by commas");
        return FALSE;
    }
    odd = find_odd_id(value);
    if (odd == NULL)
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "settings.id",
                 "%s: %.30s is no id, which has 15 to 20 digits (copy it where the chat shows it)", key, odd);
    return FALSE;
}

/* A chat is configured whole or not at all: half of it is what the service would refuse to start with. */
static gboolean
check_chat(GPtrArray *entries, GError **error)
{
    static const struct {
        const char *key;
        const char *what; /* (nullable): NULL: may be left out */
    } keys[] = {{"ERRAND_CHAT_CHANNEL_ID", "the number of the channel to serve"},
                {"ERRAND_CHAT_ALLOWED_USER_IDS", "the numbers of those who may start errands"},
                {"ERRAND_CHAT_OPERATOR_USER_IDS", NULL}};
    const char *missing = NULL;
    const char *what = NULL;
    gboolean any = FALSE;

    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *value = eb_env_file_lookup(entries, keys[i].key);
        if (value == NULL || value[strspn(value, ", \t")] == '\0') {
            missing = keys[i].what != NULL && missing == NULL ? keys[i].key : missing;
            what = missing == keys[i].key ? keys[i].what : what;
            continue;
        }
        if (!check_ids(keys[i].key, value, error))
            return FALSE;
        any = TRUE;
    }
    if (!any || missing == NULL)
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "settings.chat", "%s is missing: %s", missing, what);
    return FALSE;
}

char *
eb_settings_to_toml(GPtrArray *entries, GError **error)
{
    g_autoptr(GString) text = g_string_new(EB_SETTINGS_MARK "\n");
    g_autoptr(GString) session = g_string_new(NULL);
    g_autoptr(GString) egress = g_string_new(NULL);
    g_autoptr(GString) chat = g_string_new(NULL);
    g_autoptr(GString) github = g_string_new(NULL);

    if (!eb_settings_check_keys(entries, EB_SETTING_KEYS, error) || !check_chat(entries, error))
        return NULL;
    add_key(session, "agent", eb_env_file_lookup(entries, "ERRAND_AGENT"));
    add_key(session, "model", eb_env_file_lookup(entries, "ERRAND_MODEL"));
    add_key(session, "provider", eb_env_file_lookup(entries, "ERRAND_PROVIDER"));
    add_table(text, "session", session);
    add_list(egress, "allow", eb_env_file_lookup(entries, "ERRAND_EGRESS_ALLOW"));
    add_table(text, "egress", egress);
    if (!add_provider(text, entries, error))
        return NULL;
    add_key(chat, "channel_id", eb_env_file_lookup(entries, "ERRAND_CHAT_CHANNEL_ID"));
    add_list(chat, "allowed_user_ids", eb_env_file_lookup(entries, "ERRAND_CHAT_ALLOWED_USER_IDS"));
    add_list(chat, "operator_user_ids", eb_env_file_lookup(entries, "ERRAND_CHAT_OPERATOR_USER_IDS"));
    if (chat->len > 0)
        add_key(chat, "token", "cred:chat-token");
    add_table(text, "plugin.chat-discord", chat);
    add_key(github, "user_name", eb_env_file_lookup(entries, "ERRAND_GITHUB_USER_NAME"));
    add_key(github, "user_email", eb_env_file_lookup(entries, "ERRAND_GITHUB_USER_EMAIL"));
    add_table(text, "plugin.github", github);
    return g_string_free(g_steal_pointer(&text), FALSE);
}
