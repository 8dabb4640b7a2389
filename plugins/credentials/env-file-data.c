/* SPDX-License-Identifier: MIT */
#include "env-file-data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static gboolean
check_owner(const char *path, const struct stat *info, guint32 extra_uid, GError **error)
{
    if (!S_ISREG(info->st_mode)) {
        eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed", "%s is not a regular file", path);
        return FALSE;
    }
    if ((info->st_mode & 077) != 0) {
        eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed",
                     "%s can be read or written by others (mode %04o): chmod 600 it, and replace what it holds if "
                     "others had accounts here",
                     path, (guint)(info->st_mode & 07777));
        return FALSE;
    }
    if (info->st_uid != 0 && info->st_uid != geteuid() && info->st_uid != extra_uid) {
        eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed", "%s belongs to uid %u", path, (guint)info->st_uid);
        return FALSE;
    }
    if (info->st_size > EB_ENV_FILE_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_CONFIG, "env-file.long", "%s: longer than %d bytes", path, EB_ENV_FILE_MAX_BYTES);
        return FALSE;
    }
    return TRUE;
}

/* Reads at most the size seen: a file that grows meanwhile is cut, and then fails to parse or is read again. */
static gboolean
read_text(int fd, gsize size, EnvFile *self, GError **error)
{
    self->length = size;
    self->text = g_malloc0(size + 1);
    for (gsize at = 0; at < size;) {
        ssize_t got = read(fd, self->text + at, size - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            eb_set_error(error, EB_ERROR_FAILED, "credentials.read", "%s: %s", self->path, g_strerror(errno));
            return FALSE;
        }
        if (got == 0) {
            self->length = at;
            break;
        }
        at += (gsize)got;
    }
    return TRUE;
}

EnvFile *
env_file_read(const char *path, guint32 extra_uid, GError **error)
{
    g_autoptr(EnvFile) self = g_new0(EnvFile, 1);
    struct stat info;
    /* No link is followed: a link would let another directory's owner choose the file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        int saved = errno;
        if (saved == ENOENT || saved == ENOTDIR)
            eb_set_error(error, EB_ERROR_NOT_FOUND, "credentials.absent", "%s: no such file", path);
        else if (saved == ELOOP)
            eb_set_error(error, EB_ERROR_DENIED, "credentials.exposed", "%s is a symbolic link", path);
        else
            eb_set_error(error, EB_ERROR_DENIED, "credentials.unreadable", "%s: %s", path, g_strerror(saved));
        return NULL;
    }
    self->path = g_strdup(path);
    gboolean good = fstat(fd, &info) == 0 && check_owner(path, &info, extra_uid, error) &&
                    read_text(fd, (gsize)info.st_size, self, error);
    close(fd);
    if (!good)
        return NULL;
    self->uid = info.st_uid;
    self->gid = info.st_gid;
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

static gboolean
line_assigns(const char *line, gsize length, const char *key)
{
    gsize key_length = strlen(key);

    while (length > 0 && g_ascii_isspace(*line)) {
        line++;
        length--;
    }
    if (length <= key_length || strncmp(line, key, key_length) != 0)
        return FALSE;
    line += key_length;
    return *line == '=' || g_ascii_isspace(*line);
}

char *
env_file_edit(const char *text, const char *key, const char *value, gsize value_length, GError **error)
{
    gsize old_length = text != NULL ? strlen(text) : 0;
    /* One allocation of the final size: no copy of a secret is left behind by growing. */
    gsize room = old_length + strlen(key) + value_length + 8;
    int quote = value != NULL ? quote_for(value, value_length) : 0;

    if (quote < 0) {
        eb_set_error(
            error, EB_ERROR_INVALID, "credentials.value",
            "a value of several lines, or with both kinds of quotes at its ends, does not fit into an env file");
        return NULL;
    }
    char *result = g_malloc0(room);
    char *out = result;
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *newline = strchr(line, '\n');
        gsize length = newline != NULL ? (gsize)(newline - line) : strlen(line);
        if (!line_assigns(line, length, key)) {
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

static gboolean
write_all(int fd, const char *text)
{
    gsize length = strlen(text);

    for (gsize at = 0; at < length;) {
        ssize_t put = write(fd, text + at, length - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return FALSE;
        at += (gsize)put;
    }
    return fsync(fd) == 0;
}

static gboolean
fill_new(int dir, const char *name, const char *text, guint32 uid, guint32 gid)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    gboolean good;

    if (fd < 0)
        return FALSE;
    good = (geteuid() != 0 || fchown(fd, uid, gid) == 0) && write_all(fd, text);
    int saved = errno;
    close(fd);
    errno = saved;
    return good;
}

gboolean
env_file_write(const char *path, const char *text, guint32 uid, guint32 gid, GError **error)
{
    g_autofree char *dir_path = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    g_autofree char *new_name = g_strdup_printf(".%s.%08x", name, g_random_int());
    int dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    gboolean good = FALSE;

    if (dir >= 0) {
        good = fill_new(dir, new_name, text, uid, gid) && renameat(dir, new_name, dir, name) == 0 && fsync(dir) == 0;
        int saved = errno;
        if (!good)
            unlinkat(dir, new_name, 0);
        close(dir);
        errno = saved;
    }
    if (!good)
        eb_set_error(error, errno == EACCES || errno == EPERM ? EB_ERROR_DENIED : EB_ERROR_FAILED, "credentials.write",
                     "%s: %s", path, g_strerror(errno));
    return good;
}
