/* SPDX-License-Identifier: MIT */
#include "core/config/eb-config-file.h"

#include "core/config/eb-toml.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Problems reported one by one; a file of nonsense has thousands. */
#define MAX_PROBLEMS 100

EbConfigProblems *
eb_config_problems_new(void)
{
    EbConfigProblems *self = g_new0(EbConfigProblems, 1);
    self->lines = g_ptr_array_new_with_free_func(g_free);
    return self;
}

void
eb_config_problems_free(EbConfigProblems *self)
{
    g_ptr_array_unref(self->lines);
    g_free(self);
}

void
eb_config_problems_add(EbConfigProblems *self, const char *format, ...)
{
    va_list args;

    if (self->lines->len >= MAX_PROBLEMS) {
        self->dropped++;
        return;
    }
    va_start(args, format);
    g_ptr_array_add(self->lines, g_strdup_vprintf(format, args));
    va_end(args);
}

void
eb_config_problems_take(EbConfigProblems *self, GError *error)
{
    if (error == NULL)
        return;
    g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        eb_config_problems_add(self, "%s", *line);
    g_error_free(error);
}

/* "FILE:LINE..." of a problem: the length of FILE, and LINE, 0 when there is none. */
static gsize
problem_place(const char *text, guint64 *line)
{
    for (const char *at = strchr(text, ':'); at != NULL; at = strchr(at + 1, ':')) {
        *line = g_ascii_strtoull(at + 1, NULL, 10);
        if (*line > 0)
            return (gsize)(at - text);
    }
    *line = 0;
    return 0;
}

/* In the order of the lines within each file; files stay as they came. */
static void
sort_problems(GPtrArray *lines)
{
    for (guint i = 1; i < lines->len; i++) {
        for (guint j = i; j > 0; j--) {
            guint64 line, before;
            gsize length = problem_place(lines->pdata[j], &line);
            gsize length_before = problem_place(lines->pdata[j - 1], &before);
            gpointer moved = lines->pdata[j];
            if (length == 0 || length != length_before || line >= before ||
                strncmp(lines->pdata[j], lines->pdata[j - 1], length) != 0)
                break;
            lines->pdata[j] = lines->pdata[j - 1];
            lines->pdata[j - 1] = moved;
        }
    }
}

gboolean
eb_config_problems_to_error(EbConfigProblems *self, GError **error)
{
    if (self->lines->len == 0)
        return TRUE;
    sort_problems(self->lines);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < self->lines->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "\n" : "", (const char *)self->lines->pdata[i]);
    if (self->dropped > 0)
        g_string_append_printf(text, "\n%u more problems", self->dropped);
    eb_set_error(error, EB_ERROR_CONFIG, "config.invalid", "%s", text->str);
    return FALSE;
}

static gboolean
check_file(const char *path, EbConfigTrust trust, const struct stat *info, GError **error)
{
    if (!S_ISREG(info->st_mode)) {
        eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: not a regular file", path);
        return FALSE;
    }
    if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: its group or others may write it (chmod go-w %s)",
                     path, path);
        return FALSE;
    }
    if (trust == EB_CONFIG_TRUST_SYSTEM && info->st_uid != 0 && info->st_uid != geteuid()) {
        eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: belongs to uid %u (chown root %s)", path,
                     (guint)info->st_uid, path);
        return FALSE;
    }
    if (info->st_size > EB_TOML_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_CONFIG, "config.too-long", "%s: longer than %u KiB", path,
                     EB_TOML_MAX_BYTES / 1024);
        return FALSE;
    }
    return TRUE;
}

/* Whoever may write a directory may put another file of the right owner in the place of ours. */
static gboolean
check_directories(const char *path, int fd, EbConfigTrust trust, GError **error)
{
    g_autofree char *link = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autofree char *real = g_file_read_link(link, NULL);
    g_autofree char *absolute = g_canonicalize_filename(real != NULL ? real : path, NULL);
    g_autofree char *dir = g_path_get_dirname(absolute);

    for (;;) {
        struct stat info;
        char *parent;

        if (stat(dir, &info) != 0)
            return TRUE; /* gone: what is open is what was judged */
        if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) {
            eb_set_error(error, EB_ERROR_CONFIG, "config.directory",
                         "%s: the group or others may write the directory %s, and so exchange the file (chmod go-w %s)",
                         path, dir, dir);
            return FALSE;
        }
        if (trust == EB_CONFIG_TRUST_SYSTEM && info.st_uid != 0 && info.st_uid != geteuid()) {
            eb_set_error(error, EB_ERROR_CONFIG, "config.directory",
                         "%s: the directory %s belongs to uid %u, who may exchange the file (chown root %s)", path, dir,
                         (guint)info.st_uid, dir);
            return FALSE;
        }
        if (strcmp(dir, "/") == 0)
            return TRUE;
        parent = g_path_get_dirname(dir);
        g_free(dir);
        dir = parent;
    }
}

static GByteArray *
read_all(const char *path, int fd, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    guint8 buffer[16384];

    /* One byte beyond the bound is enough for the parser to refuse a file that grew meanwhile. */
    while (bytes->len <= EB_TOML_MAX_BYTES) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got == 0)
            return g_steal_pointer(&bytes);
        if (got < 0 && errno != EINTR) {
            eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: %s", path, g_strerror(errno));
            return NULL;
        }
        if (got > 0)
            g_byte_array_append(bytes, buffer, (guint)got);
    }
    return g_steal_pointer(&bytes);
}

/* What an operator does about a file that cannot be opened. */
static const char *
open_hint(int saved_errno)
{
    switch (saved_errno) {
    case EACCES:
    case EPERM:
        return " (this user may not read it: run as root, or give it the group of the account and mode 0640)";
    case ELOOP:
        return " (it is a link that leads to itself: put the file in its place)";
    case ENXIO:
        return " (it is a socket or a device: put a file in its place)";
    default:
        return "";
    }
}

/* -1 with @error. */
static int
open_file(const char *path, GError **error)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), saved = errno;
    struct stat info;

    if (fd >= 0)
        return fd;
    if (saved == ENOENT && lstat(path, &info) == 0) {
        g_autofree char *target = g_file_read_link(path, NULL);
        eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: is a link to %s, which is not there", path,
                     target != NULL ? target : "something");
        return -1;
    }
    eb_set_error(error, saved == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_CONFIG, "config.file", "%s: %s%s", path,
                 g_strerror(saved), open_hint(saved));
    return -1;
}

/* (transfer full) (nullable): the bytes of a file that may be trusted */
static GByteArray *
read_trusted(const char *path, EbConfigTrust trust, GError **error)
{
    int fd = open_file(path, error);
    GByteArray *bytes = NULL;
    struct stat info;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) != 0)
        eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: %s", path, g_strerror(errno));
    else if (check_file(path, trust, &info, error) && check_directories(path, fd, trust, error))
        bytes = read_all(path, fd, error);
    close(fd);
    return bytes;
}

EbConfigSection *
eb_config_file_read(const char *path, EbConfigTrust trust, GError **error)
{
    g_autoptr(GByteArray) bytes = read_trusted(path, trust, error);

    return bytes != NULL ? eb_toml_parse((const char *)bytes->data, bytes->len, path, error) : NULL;
}

EbConfigSection *
eb_config_file_read_problems(const char *path, EbConfigTrust trust, gboolean optional, EbConfigProblems *problems)
{
    GError *error = NULL;
    g_autoptr(GByteArray) bytes = read_trusted(path, trust, &error);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    EbConfigSection *section;

    if (bytes == NULL) {
        if (optional && g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
            g_error_free(error);
        else
            eb_config_problems_take(problems, error);
        return NULL;
    }
    section = eb_toml_read((const char *)bytes->data, bytes->len, path, lines);
    for (guint i = 0; i < lines->len; i++)
        eb_config_problems_add(problems, "%s", (const char *)lines->pdata[i]);
    return section;
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **
eb_config_file_list(const char *dir, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) handle = g_dir_open(dir, 0, &local);
    const char *name;

    if (handle == NULL && !g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        /* GLib's words name the directory as well. */
        eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: %s%s", dir,
                     g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOTDIR) ? "not a directory" : "cannot be listed",
                     g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_ACCES)
                         ? " (this user may not: run as root, or as the account)"
                         : "");
        return NULL;
    }
    while (handle != NULL && (name = g_dir_read_name(handle)) != NULL) {
        if (name[0] == '.' || !g_str_has_suffix(name, ".toml"))
            continue;
        if (paths->len >= EB_CONFIG_MAX_FILES) {
            eb_set_error(error, EB_ERROR_CONFIG, "config.file", "%s: more than %d files", dir, EB_CONFIG_MAX_FILES);
            return NULL;
        }
        g_ptr_array_add(paths, g_build_filename(dir, name, NULL));
    }
    g_ptr_array_sort(paths, compare_names);
    g_ptr_array_add(paths, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&paths), FALSE);
}

char **
eb_config_file_list_ignored(const char *dir)
{
    static const char *const KEPT[] = {"~",         ".orig",     ".bak",    ".dpkg-old", ".dpkg-dist",
                                       ".dpkg-new", ".ucf-dist", ".rpmnew", ".rpmsave"};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) handle = g_dir_open(dir, 0, NULL);
    const char *name;

    while (handle != NULL && (name = g_dir_read_name(handle)) != NULL && names->len < EB_CONFIG_MAX_FILES) {
        gboolean kept = name[0] == '.' || g_str_has_suffix(name, ".toml");
        for (guint i = 0; i < G_N_ELEMENTS(KEPT); i++)
            kept = kept || g_str_has_suffix(name, KEPT[i]);
        if (!kept)
            g_ptr_array_add(names, eb_log_escape(name, -1, 255));
    }
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&names), FALSE);
}

/* The section keeps "file:line" as one text. */
static void
copy_value(EbConfigSection *to, EbConfigSection *from, const char *key)
{
    g_autofree char *where = eb_config_section_where(from, key);
    char *colon = strrchr(where, ':');
    guint line = 0;

    if (colon != NULL) {
        *colon = '\0';
        line = (guint)g_ascii_strtoull(colon + 1, NULL, 10);
    }
    eb_config_section_set(to, key, eb_config_section_get_value(from, key), where, line);
}

static void
lay_on(EbConfigSection *to, EbConfigSection *from)
{
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(from);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(from);
    g_autoptr(GPtrArray) present = eb_config_section_get_children(to);

    for (guint i = 0; i < keys->len; i++)
        copy_value(to, from, keys->pdata[i]);
    for (guint i = 0; i < children->len; i++) {
        const char *name = children->pdata[i];
        EbConfigSection *child = eb_config_section_get_child(from, name);
        g_autoptr(EbConfigSection) empty = eb_config_section_new(eb_config_section_get_path(child));
        /* Asking for one that is not there would make its name one that somebody knows. */
        gboolean has = g_ptr_array_find_with_equal_func(present, name, g_str_equal, NULL);
        EbConfigSection *base = has ? eb_config_section_get_child(to, name) : NULL;
        g_autoptr(EbConfigSection) merged = eb_config_merge(base != NULL ? base : empty, child);
        eb_config_section_add_child(to, name, merged);
    }
}

EbConfigSection *
eb_config_merge(EbConfigSection *base, EbConfigSection *over)
{
    g_autoptr(EbConfigSection) result = eb_config_section_new(eb_config_section_get_path(base));

    lay_on(result, base);
    lay_on(result, over);
    return g_steal_pointer(&result);
}
