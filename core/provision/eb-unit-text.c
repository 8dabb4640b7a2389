/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-unit-text.h"

#include <string.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
/* What needs no quotes, in a unit as in a shell. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:@+="

static const EbUnitValue *
find_value(const EbUnitValue *values, const char *name, gsize length)
{
    for (; values->name != NULL; values++)
        if (strlen(values->name) == length && strncmp(values->name, name, length) == 0)
            return values;
    return NULL;
}

char *
eb_unit_text_fill(const char *template, const EbUnitValue *values, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (const char *at = template; *at != '\0';) {
        gsize length = *at == '@' ? strspn(at + 1, NAME_CHARACTERS) : 0;
        if (length == 0 || at[length + 1] != '@') {
            g_string_append_c(text, *at++);
            continue;
        }
        const EbUnitValue *value = find_value(values, at + 1, length);
        if (value == NULL) {
            eb_set_error(error, EB_ERROR_INTEGRITY, "unit.template",
                         "a template of units has @%.*s@, which has no value", (int)length, at + 1);
            return NULL;
        }
        g_string_append(text, value->text);
        at += length + 2;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static gboolean
check_word(const char *word, GError **error)
{
    for (const char *at = word; *at != '\0'; at++) {
        if (!g_ascii_iscntrl(*at))
            continue;
        g_autofree char *shown = eb_log_escape(word, -1, 200);
        eb_set_error(error, EB_ERROR_CONFIG, "unit.word", "\"%s\" has control characters: no unit can hold it", shown);
        return FALSE;
    }
    return TRUE;
}

char *
eb_unit_text_systemd(const char *word, gboolean command, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    gboolean quote = *word == '\0' || strspn(word, PLAIN) != strlen(word);

    if (!check_word(word, error))
        return NULL;
    if (quote)
        g_string_append_c(text, '"');
    for (const char *at = word; *at != '\0'; at++) {
        if (*at == '\\' || *at == '"')
            g_string_append_c(text, '\\');
        else if (*at == '%' || (*at == '$' && command))
            g_string_append_c(text, *at);
        g_string_append_c(text, *at);
    }
    if (quote)
        g_string_append_c(text, '"');
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *
eb_unit_text_shell(const char *word, GError **error)
{
    if (!check_word(word, error))
        return NULL;
    return *word != '\0' && strspn(word, PLAIN) == strlen(word) ? g_strdup(word) : g_shell_quote(word);
}

gboolean
eb_unit_text_is_below(const char *const *paths, gsize n, const char *directory)
{
    gsize length = strlen(directory);

    for (gsize i = 0; i < n; i++)
        if (paths[i] != NULL && g_str_has_prefix(paths[i], directory) &&
            (paths[i][length] == '/' || paths[i][length] == '\0'))
            return TRUE;
    return FALSE;
}
