/* SPDX-License-Identifier: MIT */
#include "eb-env-file.h"

#include <string.h>

#include "eb-error.h"

static void
entry_free(gpointer data)
{
    EbEnvEntry *entry = data;

    g_free(entry->key);
    explicit_bzero(entry->value, strlen(entry->value));
    g_free(entry->value);
    g_free(entry);
}

static gboolean
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void
trim(const char **start, const char **end)
{
    while (*start < *end && is_blank(**start))
        (*start)++;
    while (*end > *start && is_blank((*end)[-1]))
        (*end)--;
}

static gboolean
is_key(const char *start, const char *end)
{
    if (start == end || g_ascii_isdigit(*start))
        return FALSE;
    for (const char *c = start; c < end; c++)
        if (!g_ascii_isalnum(*c) && *c != '_')
            return FALSE;
    return TRUE;
}

/* What is between the quotes, or all of it without quotes. FALSE: a quote that nothing ends. */
static gboolean
unquote(const char **start, const char **end)
{
    char quote;

    if (*start == *end || (**start != '"' && **start != '\''))
        return TRUE;
    quote = **start;
    if (*end - *start < 2 || (*end)[-1] != quote)
        return FALSE;
    (*start)++;
    (*end)--;
    return memchr(*start, quote, (gsize)(*end - *start)) == NULL;
}

static gboolean
parse_line(GPtrArray *entries, const char *start, const char *end, guint line, GError **error)
{
    const char *equals, *key_end, *value;
    EbEnvEntry *entry;

    trim(&start, &end);
    if (start == end || *start == '#')
        return TRUE;
    /* Many such files are read by shells too. */
    if (end - start > 7 && strncmp(start, "export", 6) == 0 && is_blank(start[6])) {
        start += 7;
        trim(&start, &end);
    }
    equals = memchr(start, '=', (gsize)(end - start));
    key_end = equals;
    if (equals != NULL)
        trim(&start, &key_end);
    if (equals == NULL || !is_key(start, key_end)) {
        eb_set_error(error, EB_ERROR_CONFIG, "env-file.line", "line %u is not KEY=VALUE (correct it, or remove it)",
                     line);
        return FALSE;
    }
    value = equals + 1;
    trim(&value, &end);
    if (!unquote(&value, &end)) {
        eb_set_error(error, EB_ERROR_CONFIG, "env-file.quote",
                     "line %u: the quotes of the value do not match (one pair around all of it, or none)", line);
        return FALSE;
    }
    if (entries->len >= EB_ENV_FILE_MAX_ENTRIES) {
        eb_set_error(error, EB_ERROR_CONFIG, "env-file.long", "line %u: more than %d assignments", line,
                     EB_ENV_FILE_MAX_ENTRIES);
        return FALSE;
    }
    entry = g_new0(EbEnvEntry, 1);
    entry->key = g_strndup(start, (gsize)(key_end - start));
    entry->value = g_strndup(value, (gsize)(end - value));
    entry->line = line;
    if (eb_env_file_lookup(entries, entry->key) != NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "env-file.twice",
                     "line %u: %s is assigned a second time (remove one of the two lines)", line, entry->key);
        entry_free(entry);
        return FALSE;
    }
    g_ptr_array_add(entries, entry);
    return TRUE;
}

GPtrArray *
eb_env_file_parse(const char *text, gsize length, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(entry_free);
    const char *end = text + length;
    guint line = 0;

    if (length > EB_ENV_FILE_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_CONFIG, "env-file.long", "longer than %d bytes", EB_ENV_FILE_MAX_BYTES);
        return NULL;
    }
    /* What some editors put before UTF-8. */
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (const char *start = text; start < end;) {
        const char *newline = memchr(start, '\n', (gsize)(end - start));
        const char *stop = newline != NULL ? newline : end;

        line++;
        if (memchr(start, '\0', (gsize)(stop - start)) != NULL) {
            eb_set_error(error, EB_ERROR_CONFIG, "env-file.binary",
                         "line %u holds a NUL byte: this is no plain text (save it as UTF-8)", line);
            return NULL;
        }
        if (!parse_line(entries, start, stop, line, error))
            return NULL;
        start = stop + 1;
    }
    return g_steal_pointer(&entries);
}

const char *
eb_env_file_lookup(GPtrArray *entries, const char *key)
{
    for (guint i = 0; i < entries->len; i++) {
        const EbEnvEntry *entry = entries->pdata[i];
        if (strcmp(entry->key, key) == 0)
            return entry->value;
    }
    return NULL;
}

/* The three that the product itself uses have names of their own; they are older than the rule. */
static const struct {
    const char *credential;
    const char *key;
} named[] = {
    {"chat-token", "ERRAND_CHAT_TOKEN"},
    {"model-key", "ERRAND_PROVIDER_CREDENTIAL"},
    {"github-token", "ERRAND_GITHUB_TOKEN"},
};
#define CREDENTIAL_PREFIX "ERRAND_CRED_"

char *
eb_env_file_key_for_credential(const char *name)
{
    g_return_val_if_fail(name != NULL, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(named); i++)
        if (strcmp(named[i].credential, name) == 0)
            return g_strdup(named[i].key);
    g_autofree char *upper = g_ascii_strup(name, -1);
    return g_strconcat(CREDENTIAL_PREFIX, g_strdelimit(upper, "-", '_'), NULL);
}

char *
eb_env_file_credential_for_key(const char *key)
{
    g_return_val_if_fail(key != NULL, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(named); i++)
        if (strcmp(named[i].key, key) == 0)
            return g_strdup(named[i].credential);
    if (!g_str_has_prefix(key, CREDENTIAL_PREFIX))
        return NULL;
    g_autofree char *name = g_ascii_strdown(key + strlen(CREDENTIAL_PREFIX), -1);
    g_strdelimit(name, "_", '-');
    /* Only what the first function gives leads back. */
    g_autofree char *again = eb_env_file_key_for_credential(name);
    if (!g_ascii_islower(name[0]) || strlen(name) > 63 || strcmp(again, key) != 0)
        return NULL;
    return g_steal_pointer(&name);
}
