/* SPDX-License-Identifier: MIT */
#include "eb-host-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "eb-config-section.h"
#include "eb-error.h"

#define LIST_DIR_MAX 10000

struct _EbHost {
    GObject parent_instance;
    char *root;  /* (owned) (nullable): directory of a fixture tree */
    int root_fd; /* (owned): -1 for the real host */
    /* A view of a host for one check: */
    char **reads;     /* (owned) (nullable): all it may look at; NULL = everything */
    char *undeclared; /* (owned) (nullable): the first other thing it asked for */
};

G_DEFINE_FINAL_TYPE(EbHost, eb_host, G_TYPE_OBJECT)

static void
eb_host_finalize(GObject *object)
{
    EbHost *self = EB_HOST(object);

    if (self->root_fd >= 0)
        close(self->root_fd);
    g_free(self->root);
    g_strfreev(self->reads);
    g_free(self->undeclared);
    G_OBJECT_CLASS(eb_host_parent_class)->finalize(object);
}

static void
eb_host_class_init(EbHostClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_host_finalize;
}

static void
eb_host_init(EbHost *self)
{
    self->root_fd = -1;
}

EbHost *
eb_host_new_real(void)
{
    return g_object_new(EB_TYPE_HOST, NULL);
}

EbHost *
eb_host_new_fixture(const char *root)
{
    EbHost *self;

    g_return_val_if_fail(root != NULL, NULL);
    self = g_object_new(EB_TYPE_HOST, NULL);
    self->root = g_strdup(root);
    self->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return self;
}

/* "{KEY}" in @item as @settings has it; NULL when they have it not. */
static char *
resolve_item(const char *item, EbConfigSection *settings)
{
    const char *open = strchr(item, '{');
    const char *close_brace = open != NULL ? strchr(open, '}') : NULL;
    g_autofree char *key = NULL;
    g_autofree char *value = NULL;

    if (close_brace == NULL)
        return g_strdup(item);
    key = g_strndup(open + 1, (gsize)(close_brace - open - 1));
    value = settings != NULL ? eb_config_section_get_string(settings, key, NULL, NULL) : NULL;
    if (value == NULL || value[0] == '\0')
        return NULL;
    return g_strdup_printf("%.*s%s%s", (int)(open - item), item, value, close_brace + 1);
}

EbHost *
eb_host_view_new(EbHost *self, const char *const *reads, EbConfigSection *settings)
{
    EbHost *view = g_object_new(EB_TYPE_HOST, NULL);
    g_autoptr(GPtrArray) items = g_ptr_array_new();

    view->root = g_strdup(self->root);
    if (self->root_fd >= 0)
        view->root_fd = fcntl(self->root_fd, F_DUPFD_CLOEXEC, 0);
    for (; reads != NULL && *reads != NULL; reads++) {
        char *item = resolve_item(*reads, settings);

        if (item != NULL)
            g_ptr_array_add(items, item);
    }
    g_ptr_array_add(items, NULL);
    view->reads = (char **)g_ptr_array_free(g_steal_pointer(&items), FALSE);
    return view;
}

const char *
eb_host_view_get_undeclared(EbHost *self)
{
    return self->undeclared;
}

static gboolean
is_at_or_below(const char *path, const char *item)
{
    gsize length = strlen(item);

    while (length > 1 && item[length - 1] == '/')
        length--;
    return strncmp(path, item, length) == 0 && (path[length] == '\0' || path[length] == '/' || length == 1);
}

/* Whether a view may look at @what: a path (kind ""), a socket ("unix:") or a program ("run:"). */
static gboolean
may_look(EbHost *self, const char *kind, const char *what, GError **error)
{
    for (char **item = self->reads; item != NULL && *item != NULL; item++) {
        const char *rest = *item + strlen(kind);

        if (!g_str_has_prefix(*item, kind))
            continue;
        if (kind[0] == '\0') {
            /* Who talks to a socket may also see whose it is. */
            const char *path = g_str_has_prefix(rest, "unix:") ? rest + strlen("unix:") : rest;

            if (is_at_or_below(what, path))
                return TRUE;
        } else if (strcmp(rest, what) == 0) {
            return TRUE;
        }
    }
    if (self->reads == NULL)
        return TRUE;
    if (self->undeclared == NULL)
        self->undeclared = g_strconcat(kind, what, NULL);
    eb_set_error(error, EB_ERROR_DENIED, "host.undeclared", "%s%s is not declared", kind, what);
    return FALSE;
}

gboolean
eb_host_is_fixture(EbHost *self)
{
    g_return_val_if_fail(EB_IS_HOST(self), FALSE);
    return self->root != NULL;
}

int
eb_host_open(EbHost *self, const char *path, int flags)
{
    struct open_how how = {.flags = (guint64)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

    if (path == NULL || path[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    if (self->root == NULL)
        return open(path, flags | O_CLOEXEC);
    if (self->root_fd < 0) {
        errno = ENOENT;
        return -1;
    }
    while (*path == '/')
        path++;
    /* As chroot does it: a link of the tree to /etc/x means the tree's own file. */
    return (int)syscall(SYS_openat2, self->root_fd, *path != '\0' ? path : ".", &how, sizeof(how));
}

void
eb_host_set_errno_error(GError **error, int saved_errno, const char *verb, const char *what)
{
    EbErrorCode code = EB_ERROR_FAILED;

    switch (saved_errno) {
    case ENOENT:
    case ENOTDIR:
        code = EB_ERROR_NOT_FOUND;
        break;
    case EACCES:
    case EPERM:
        code = EB_ERROR_DENIED;
        break;
    case ECONNREFUSED:
    case ENXIO:
        code = EB_ERROR_UNAVAILABLE;
        break;
    case ETIMEDOUT:
        code = EB_ERROR_TIMEOUT;
        break;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        code = EB_ERROR_INVALID;
        break;
    default:
        break;
    }
    eb_set_error(error, code, NULL, "cannot %s %s: %s", verb, what, g_strerror(saved_errno));
}

char *
eb_host_read_fd(int fd, const char *what, gsize *length, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    guint8 block[16 * 1024];

    for (;;) {
        ssize_t n = read(fd, block, sizeof(block));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            eb_host_set_errno_error(error, errno, "read", what);
            return NULL;
        }
        if (n == 0)
            break;
        if (bytes->len + (gsize)n > EB_HOST_MAX_READ) {
            eb_set_error(error, EB_ERROR_QUOTA, "host.too-long", "%s is longer than 1 MiB", what);
            return NULL;
        }
        g_byte_array_append(bytes, block, (guint)n);
    }
    if (length != NULL)
        *length = bytes->len;
    g_byte_array_append(bytes, (const guint8 *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&bytes), FALSE);
}

char *
eb_host_read_any(EbHost *self, const char *path, gsize *length, GError **error)
{
    struct stat info;
    char *content = NULL;
    int fd;

    /* Not blocking: a fifo where a file is expected must not hold a check up. */
    fd = eb_host_open(self, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0) {
        eb_host_set_errno_error(error, errno, "open", path);
    } else if (!S_ISREG(info.st_mode)) {
        eb_set_error(error, EB_ERROR_INVALID, "host.not-regular", "%s is no regular file", path);
    } else {
        content = eb_host_read_fd(fd, path, length, error);
    }
    if (fd >= 0)
        close(fd);
    return content;
}

char *
eb_host_read_file(EbHost *self, const char *path, gsize *length, GError **error)
{
    g_return_val_if_fail(EB_IS_HOST(self) && path != NULL, NULL);
    return may_look(self, "", path, error) ? eb_host_read_any(self, path, length, error) : NULL;
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **
eb_host_list_dir(EbHost *self, const char *path, GError **error)
{
    g_autoptr(GPtrArray) names = NULL;
    struct dirent *entry;
    DIR *dir;
    int fd;

    g_return_val_if_fail(EB_IS_HOST(self) && path != NULL, NULL);
    if (!may_look(self, "", path, error))
        return NULL;
    fd = eb_host_open(self, path, O_RDONLY | O_DIRECTORY);
    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        eb_host_set_errno_error(error, errno, "list", path);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    names = g_ptr_array_new_with_free_func(g_free);
    while ((entry = readdir(dir)) != NULL && names->len <= LIST_DIR_MAX) {
        gboolean answers = self->root != NULL && strcmp(entry->d_name, ".eb") == 0;

        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && !answers)
            g_ptr_array_add(names, g_strdup(entry->d_name));
    }
    closedir(dir);
    if (names->len > LIST_DIR_MAX) {
        eb_set_error(error, EB_ERROR_QUOTA, "host.too-many", "%s has more than %d entries", path, LIST_DIR_MAX);
        return NULL;
    }
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&names), FALSE);
}

gboolean
eb_host_exists(EbHost *self, const char *path)
{
    EbHostStat ignored;

    return eb_host_stat(self, path, &ignored, NULL);
}

gboolean
eb_host_stat(EbHost *self, const char *path, EbHostStat *result, GError **error)
{
    struct stat info;
    gboolean found;
    int saved_errno;
    int fd;

    g_return_val_if_fail(EB_IS_HOST(self) && path != NULL && result != NULL, FALSE);
    if (!may_look(self, "", path, error))
        return FALSE;
    fd = eb_host_open(self, path, O_PATH | O_NOFOLLOW);
    found = fd >= 0 && fstat(fd, &info) == 0;
    saved_errno = errno;
    if (fd >= 0)
        close(fd);
    if (found)
        *result = (EbHostStat){.mode = info.st_mode,
                               .uid = info.st_uid,
                               .gid = info.st_gid,
                               .size = (guint64)info.st_size,
                               .ino = info.st_ino};
    else
        *result = (EbHostStat){.mode = S_IFREG | 0644};
    if (self->root != NULL && eb_host_fixture_stat(self, path, result))
        return TRUE;
    if (!found)
        eb_host_set_errno_error(error, saved_errno, "look at", path);
    return found;
}

gboolean
eb_host_space(EbHost *self, const char *path, EbHostSpace *result, GError **error)
{
    struct statfs info;

    g_return_val_if_fail(EB_IS_HOST(self) && path != NULL && result != NULL, FALSE);
    if (!may_look(self, "", path, error))
        return FALSE;
    if (self->root != NULL)
        return eb_host_fixture_space(self, path, result, error);
    if (statfs(path, &info) != 0) {
        eb_host_set_errno_error(error, errno, "look at the file system of", path);
        return FALSE;
    }
    *result = (EbHostSpace){.total_bytes = (guint64)info.f_blocks * (guint64)info.f_frsize,
                            .free_bytes = (guint64)info.f_bavail * (guint64)info.f_frsize,
                            .type = (guint32)info.f_type};
    return TRUE;
}

char *
eb_host_uname_release(EbHost *self)
{
    struct utsname names;

    g_return_val_if_fail(EB_IS_HOST(self), NULL);
    if (self->root != NULL)
        return eb_host_fixture_uname(self);
    return g_strdup(uname(&names) == 0 ? names.release : "unknown");
}

char *
eb_host_run(EbHost *self, const char *const *argv, guint deadline_ms, int *exit_code, GError **error)
{
    g_autofree char *name = NULL;
    int ignored;

    g_return_val_if_fail(EB_IS_HOST(self) && argv != NULL && argv[0] != NULL, NULL);
    if (exit_code == NULL)
        exit_code = &ignored;
    *exit_code = -1;
    name = g_path_get_basename(argv[0]);
    if (!may_look(self, "run:", name, error))
        return NULL;
    if (self->root != NULL)
        return eb_host_fixture_run(self, argv, exit_code, error);
    return eb_host_real_run(argv, deadline_ms, exit_code, error);
}

gboolean
eb_host_connect_unix(EbHost *self, const char *path, guint deadline_ms, GError **error)
{
    g_return_val_if_fail(EB_IS_HOST(self) && path != NULL, FALSE);
    if (!may_look(self, "unix:", path, error))
        return FALSE;
    if (self->root != NULL)
        return eb_host_fixture_connect_unix(self, path, error);
    return eb_host_real_connect_unix(path, deadline_ms, error);
}

char *
eb_host_unix_http_get(EbHost *self, const char *socket_path, const char *request, guint deadline_ms, GError **error)
{
    g_return_val_if_fail(EB_IS_HOST(self) && socket_path != NULL && request != NULL, NULL);
    if (request[0] != '/' || strpbrk(request, " \r\n") != NULL) {
        eb_set_error(error, EB_ERROR_INVALID, "host.request", "bad HTTP request path");
        return NULL;
    }
    if (!may_look(self, "unix:", socket_path, error))
        return NULL;
    if (self->root != NULL)
        return eb_host_fixture_http_get(self, socket_path, request, error);
    return eb_host_real_http_get(socket_path, request, deadline_ms, error);
}
