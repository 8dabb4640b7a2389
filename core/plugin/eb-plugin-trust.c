/* SPDX-License-Identifier: MIT */
#include "core/plugin/eb-plugin-trust.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Deepest path that is followed. */
#define DEPTH_MAX 64

typedef struct {
    gboolean dev;
    uid_t program_owner;
    char *program; /* (owned) (nullable): file of the running program, in dev mode */
} TrustRules;

static void
trust_rules_init(TrustRules *rules, gboolean dev)
{
    struct stat info;

    *rules = (TrustRules){.dev = dev};
    if (!dev)
        return;
    if (stat("/proc/self/exe", &info) == 0)
        rules->program_owner = info.st_uid;
    rules->program = g_file_read_link("/proc/self/exe", NULL);
}

static void
trust_rules_clear(TrustRules *rules)
{
    g_clear_pointer(&rules->program, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TrustRules, trust_rules_clear)

static gboolean
leads_to_program(const TrustRules *rules, const char *dir)
{
    gsize length = strlen(dir);

    if (rules->program == NULL)
        return FALSE;
    return strcmp(dir, "/") == 0 || (strncmp(rules->program, dir, length) == 0 && rules->program[length] == '/');
}

static gboolean
owner_is_trusted(const TrustRules *rules, uid_t owner)
{
    return owner == 0 || (rules->dev && (owner == geteuid() || owner == rules->program_owner));
}

/* Judges what is open as @fd: a directory on the way, or the file itself. */
static gboolean
judge(const TrustRules *rules, int fd, const char *path, gboolean is_file, GError **error)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.trust-type", "cannot look at %s: %s", path, g_strerror(errno));
        return FALSE;
    }
    if (S_ISLNK(info.st_mode)) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.trust-symlink", "%s is a symbolic link", path);
        return FALSE;
    }
    if (is_file ? !S_ISREG(info.st_mode) : !S_ISDIR(info.st_mode)) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.trust-type", "%s is no %s", path,
                     is_file ? "regular file" : "directory");
        return FALSE;
    }
    if (!is_file && leads_to_program(rules, path))
        return TRUE;
    if (!owner_is_trusted(rules, info.st_uid)) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.trust-owner", "%s belongs to uid %u and must belong to root",
                     path, (guint)info.st_uid);
        return FALSE;
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(rules->dev && !is_file && (info.st_mode & S_ISVTX) != 0)) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.trust-mode",
                     "%s has mode %04o: others than its owner can write it (chmod go-w)", path,
                     (guint)(info.st_mode & 07777));
        return FALSE;
    }
    return TRUE;
}

static gboolean
is_plain_path(const char *path, char **parts)
{
    guint n = g_strv_length(parts);

    if (path[0] != '/' || n == 0 || n > DEPTH_MAX)
        return FALSE;
    for (guint i = 0; i < n; i++) {
        if (parts[i][0] == '\0' || strcmp(parts[i], ".") == 0 || strcmp(parts[i], "..") == 0)
            return FALSE;
    }
    return TRUE;
}

static void
set_open_error(GError **error, const char *path, int saved_errno)
{
    eb_set_error(error, saved_errno == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_INTEGRITY,
                 saved_errno == ENOENT ? "plugin.missing-file" : "plugin.trust-type", "cannot open %s: %s", path,
                 g_strerror(saved_errno));
}

/* Opens the next part of the path below @dir_fd and judges it. O_PATH first: opening a fifo or device acts. */
static int
step(const TrustRules *rules, int dir_fd, const char *name, const char *path, gboolean is_file, GError **error)
{
    g_autofree char *link = NULL;
    int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int readable;

    if (fd < 0) {
        set_open_error(error, path, errno);
        return -1;
    }
    if (!judge(rules, fd, path, is_file, error)) {
        close(fd);
        return -1;
    }
    if (!is_file)
        return fd;
    /* Through the descriptor, not the name, so that it is the very file that was judged. */
    link = g_strdup_printf("/proc/self/fd/%d", fd);
    readable = open(link, O_RDONLY | O_CLOEXEC);
    if (readable < 0)
        set_open_error(error, path, errno);
    close(fd);
    return readable;
}

int
eb_plugin_trust_open(const char *path, gboolean dev, GError **error)
{
    g_auto(TrustRules) rules = {0};
    g_auto(GStrv) parts = NULL;
    g_autoptr(GString) walked = NULL;
    int fd;

    g_return_val_if_fail(path != NULL, -1);
    parts = g_strsplit(path[0] == '/' ? path + 1 : path, "/", -1);
    if (!is_plain_path(path, parts)) {
        eb_set_error(error, EB_ERROR_INVALID, "plugin.trust-path", "%s is no plain absolute path", path);
        return -1;
    }
    trust_rules_init(&rules, dev);
    walked = g_string_new(NULL);
    fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !judge(&rules, fd, "/", FALSE, error)) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    for (char **part = parts; *part != NULL && fd >= 0; part++) {
        int next;

        g_string_append_printf(walked, "/%s", *part);
        next = step(&rules, fd, *part, walked->str, part[1] == NULL, error);
        close(fd);
        fd = next;
    }
    return fd;
}
