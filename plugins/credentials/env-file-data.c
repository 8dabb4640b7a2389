/* SPDX-License-Identifier: MIT */
#include "env-file-data.h"

#include <string.h>

static void
wipe_and_free(char *text, gsize length)
{
    if (text == NULL)
        return;
    explicit_bzero(text, length);
    g_free(text);
}

void
env_file_free(EnvFile *self)
{
    wipe_and_free(self->text, self->length);
    g_clear_pointer(&self->entries, g_ptr_array_unref);
    g_free(self->path);
    g_free(self);
}

EnvFile *
env_file_read(const char *path, CredsOwner extra, GError **error)
{
    g_autoptr(EnvFile) self = g_new0(EnvFile, 1);
    g_auto(CredsFile) file = CREDS_FILE_INIT;

    if (!creds_file_open(&file, path, extra, 077, EB_ENV_FILE_MAX_BYTES, error))
        return NULL;
    self->path = g_strdup(path);
    self->owner = file.owner;
    self->modified = file.modified;
    self->length = file.size;
    self->text = g_malloc0(file.size + 1);
    /* At most the size seen: a file that grows meanwhile is cut, and then fails to parse or is read again. */
    gssize got = creds_file_read(&file, path, self->text, file.size, error);
    if (got < 0)
        return NULL;
    self->length = (gsize)got;
    self->entries = eb_env_file_parse(self->text, self->length, error);
    if (self->entries == NULL) {
        g_prefix_error(error, "%s: ", path);
        return NULL;
    }
    return g_steal_pointer(&self);
}

/* The quote a value needs, 0 for none; -1: the file format cannot hold it. */
static int
quote_for(const char *value, gsize length)
{
    if (memchr(value, '\n', length) != NULL || memchr(value, '\r', length) != NULL ||
        memchr(value, '\0', length) != NULL)
        return -1;
    gboolean blank = length > 0 && (g_ascii_isspace(value[0]) || g_ascii_isspace(value[length - 1]));
    gboolean quoted = length > 0 && (value[0] == '"' || value[0] == '\'');
    if (!blank && !quoted)
        return 0;
    if (memchr(value, '"', length) == NULL)
        return '"';
    return memchr(value, '\'', length) == NULL ? '\'' : -1;
}

/* The line that assigns @key, from 1, 0 for none. It is the reader who says: what it takes for an assignment ("export",
 * a byte order mark before it) and is left would be the old value, or the key twice. FALSE: the text cannot be read. */
static gboolean
find_line(const char *text, const char *key, guint *line, GError **error)
{
    g_autoptr(GPtrArray) entries = eb_env_file_parse(text, strlen(text), error);

    *line = 0;
    for (guint i = 0; entries != NULL && i < entries->len; i++) {
        const EbEnvEntry *entry = entries->pdata[i];
        if (strcmp(entry->key, key) == 0)
            *line = entry->line;
    }
    return entries != NULL;
}

char *
env_file_edit(const char *text, const char *key, const char *value, gsize value_length, GError **error)
{
    gsize old_length = text != NULL ? strlen(text) : 0;
    /* One allocation of the final size: no copy of a secret is left behind by growing. */
    gsize room = old_length + strlen(key) + value_length + 8;
    int quote = value != NULL ? quote_for(value, value_length) : 0;
    guint old_line = 0, at = 1;

    if (quote < 0) {
        eb_set_error(
            error, EB_ERROR_INVALID, "credentials.value",
            "a value of several lines, or with both kinds of quotes at its ends, does not fit into an env file (the "
            "sealed store takes any value: errand-box creds seal)");
        return NULL;
    }
    if (text != NULL && !find_line(text, key, &old_line, error))
        return NULL;
    char *result = g_malloc0(room);
    char *out = result;
    for (const char *line = text; line != NULL && *line != '\0'; at++) {
        const char *newline = strchr(line, '\n');
        gsize length = newline != NULL ? (gsize)(newline - line) : strlen(line);
        if (at != old_line) {
            out = (char *)memcpy(out, line, length) + length;
            *out++ = '\n';
        }
        line += length + (newline != NULL ? 1 : 0);
    }
    if (value != NULL) {
        out = g_stpcpy(out, key);
        *out++ = '=';
        if (quote != 0)
            *out++ = (char)quote;
        out = (char *)memcpy(out, value, value_length) + value_length;
        if (quote != 0)
            *out++ = (char)quote;
        *out++ = '\n';
    }
    *out = '\0';
    return result;
}

gboolean
env_file_write(const char *path, const char *text, CredsOwner owner, GError **error)
{
    return creds_file_replace(path, text, strlen(text), owner, error);
}
