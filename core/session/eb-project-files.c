/* SPDX-License-Identifier: MIT */
#include "core/session/eb-project-files.h"

#include "core/session/eb-project-name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Names tried for one file. */
#define MAX_CLASHES 999
/* An extension longer than this is no extension. */
#define MAX_EXTENSION 16

typedef struct {
    char *root, *project, *path; /* path: (nullable) */
    gsize max_bytes;
    char *folder, *name;
    GBytes *bytes;
    guint32 uid, gid;
} EbProjectJob;

static void
job_free(gpointer data)
{
    EbProjectJob *job = data;
    g_free(job->root);
    g_free(job->project);
    g_free(job->path);
    g_free(job->folder);
    g_free(job->name);
    g_clear_pointer(&job->bytes, g_bytes_unref);
    g_free(job);
}

static void
entry_free(gpointer data)
{
    EbProjectEntry *entry = data;
    g_free(entry->name);
    g_free(entry);
}

void
eb_project_listing_free(EbProjectListing *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->entries);
    g_free(self);
}

void
eb_project_file_free(EbProjectFile *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_clear_pointer(&self->bytes, g_bytes_unref);
    g_free(self);
}

/* --- paths --- */

/* Relative to the project, "." for the project itself. */
static const char *
strip_workspace(const char *path)
{
    if (path == NULL)
        return ".";
    if (g_str_has_prefix(path, "/workspace/"))
        path += strlen("/workspace/");
    else if (g_str_equal(path, "/workspace"))
        return ".";
    while (*path == '/')
        path++;
    return *path != '\0' ? path : ".";
}

static gboolean
check_path(const char *path, GError **error)
{
    if (path == NULL || strlen(path) <= EB_PROJECT_MAX_PATH)
        return TRUE;
    eb_set_error(error, EB_ERROR_INVALID, "file.path", "the path is longer than %d bytes", EB_PROJECT_MAX_PATH);
    return FALSE;
}

static void
set_path_error(GError **error, const char *path)
{
    int code = errno;
    g_autofree char *shown = eb_log_escape(path, -1, 200);
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        eb_set_error(error, EB_ERROR_NOT_FOUND, "file.missing", "there is no \"%s\" in the project", shown);
        break;
    case EXDEV:
        eb_set_error(error, EB_ERROR_DENIED, "file.outside", "\"%s\" leads out of the project", shown);
        break;
    case ELOOP:
        eb_set_error(error, EB_ERROR_DENIED, "file.link", "\"%s\" is a link or lies behind one; links are not followed",
                     shown);
        break;
    case EACCES:
    case EPERM:
        eb_set_error(error, EB_ERROR_DENIED, "file.permission", "\"%s\" may not be opened by this service", shown);
        break;
    case ENXIO:
    case ENODEV:
        eb_set_error(error, EB_ERROR_DENIED, "file.kind", "\"%s\" is neither a file nor a directory", shown);
        break;
    case ENAMETOOLONG:
        eb_set_error(error, EB_ERROR_INVALID, "file.path", "a name in \"%s\" is too long", shown);
        break;
    case ENOSPC:
    case EDQUOT:
        eb_set_error(error, EB_ERROR_QUOTA, "file.disk-full", "there is no space left for \"%s\"", shown);
        break;
    default:
        eb_set_error(error, EB_ERROR_FAILED, "file.failed", "\"%s\": %s", shown, g_strerror(code));
    }
}

static int
open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
    /* openat2 takes nothing it would ignore: O_PATH stands with few others. */
    int guard = (flags & O_PATH) != 0 ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct open_how how = {.flags = (guint64)(flags | guard),
                           .mode = mode,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    /* EAGAIN: a component was renamed while it was resolved. An agent may do that for ever; we do not wait for it. */
    int fd = -1;
    for (guint tries = 0; tries < 8; tries++) {
        fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

static int
open_project(const EbProjectJob *job, GError **error)
{
    if (!eb_project_name_check(job->project, error))
        return -1;
    int root = open(job->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root >= 0 ? open_beneath(root, job->project, O_RDONLY | O_DIRECTORY, 0) : -1;
    if (fd < 0)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "file.no-project", "the project %s has no files yet", job->project);
    if (root >= 0)
        close(root);
    return fd;
}

/* --- listing --- */

static int
compare_entries(gconstpointer a, gconstpointer b)
{
    const EbProjectEntry *left = *(const EbProjectEntry *const *)a;
    const EbProjectEntry *right = *(const EbProjectEntry *const *)b;
    if (left->directory != right->directory)
        return left->directory ? -1 : 1;
    return strcmp(left->name, right->name);
}

static EbProjectEntry *
look_at(int dir_fd, const char *name)
{
    struct stat about;
    if (fstatat(dir_fd, name, &about, AT_SYMLINK_NOFOLLOW) < 0)
        return NULL;
    EbProjectEntry *entry = g_new0(EbProjectEntry, 1);
    entry->name = g_strdup(name);
    entry->directory = S_ISDIR(about.st_mode);
    entry->link = S_ISLNK(about.st_mode);
    entry->size = S_ISREG(about.st_mode) ? (guint64)about.st_size : 0;
    return entry;
}

static EbProjectListing *
read_directory(int fd)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return NULL;
    }
    EbProjectListing *listing = g_new0(EbProjectListing, 1);
    listing->entries = g_ptr_array_new_with_free_func(entry_free);
    guint seen = 0;
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        if (g_str_equal(at->d_name, ".") || g_str_equal(at->d_name, ".."))
            continue;
        if (++seen > EB_PROJECT_MAX_SCAN) {
            listing->more = TRUE;
            break;
        }
        EbProjectEntry *entry = look_at(dirfd(dir), at->d_name);
        if (entry != NULL)
            g_ptr_array_add(listing->entries, entry);
    }
    closedir(dir);
    g_ptr_array_sort(listing->entries, compare_entries);
    if (listing->entries->len > EB_PROJECT_MAX_ENTRIES) {
        listing->left_out = listing->entries->len - EB_PROJECT_MAX_ENTRIES;
        g_ptr_array_set_size(listing->entries, EB_PROJECT_MAX_ENTRIES);
    }
    return listing;
}

static EbProjectListing *
list_project(const EbProjectJob *job, GError **error)
{
    int project = check_path(job->path, error) ? open_project(job, error) : -1;
    if (project < 0)
        return NULL;
    const char *path = strip_workspace(job->path);
    int fd = open_beneath(project, path, O_RDONLY | O_DIRECTORY, 0);
    EbProjectListing *listing = NULL;
    if (fd < 0 && errno == ENOTDIR) {
        g_autofree char *shown = eb_log_escape(path, -1, 200);
        eb_set_error(error, EB_ERROR_INVALID, "file.not-directory", "\"%s\" is a file", shown);
    } else if (fd < 0 || (listing = read_directory(fd)) == NULL) {
        set_path_error(error, path);
    }
    close(project);
    return listing;
}

/* --- reading --- */

static GBytes *
read_bytes(int fd, gsize max_bytes, GError **error)
{
    g_autofree guint8 *buffer = g_malloc(MAX(max_bytes, 1));
    gsize length = 0;
    while (length < max_bytes) {
        ssize_t got = read(fd, buffer + length, max_bytes - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            set_path_error(error, "the file");
            return NULL;
        }
        if (got == 0)
            break;
        length += (gsize)got;
    }
    return g_bytes_new_take(g_realloc(g_steal_pointer(&buffer), MAX(length, 1)), length);
}

static EbProjectFile *
read_regular(int fd, const char *path, gsize max_bytes, GError **error)
{
    struct stat about;
    g_autofree char *shown = eb_log_escape(path, -1, 200);
    if (fstat(fd, &about) < 0 || S_ISDIR(about.st_mode)) {
        eb_set_error(error, EB_ERROR_INVALID, "file.is-directory", "\"%s\" is a directory", shown);
        return NULL;
    }
    if (!S_ISREG(about.st_mode)) {
        eb_set_error(error, EB_ERROR_DENIED, "file.kind", "\"%s\" is neither a file nor a directory", shown);
        return NULL;
    }
    GBytes *bytes = read_bytes(fd, MIN(max_bytes, (gsize)about.st_size), error);
    if (bytes == NULL)
        return NULL;
    EbProjectFile *file = g_new0(EbProjectFile, 1);
    file->bytes = bytes;
    file->size = (guint64)about.st_size;
    file->name = g_path_get_basename(path);
    gsize length = 0;
    const void *data = g_bytes_get_data(bytes, &length);
    file->binary = length > 0 && memchr(data, 0, MIN(length, EB_PROJECT_BINARY_PROBE)) != NULL;
    return file;
}

static EbProjectFile *
read_project(const EbProjectJob *job, GError **error)
{
    int project = check_path(job->path, error) ? open_project(job, error) : -1;
    if (project < 0)
        return NULL;
    const char *path = strip_workspace(job->path);
    /* By path first: opening a device for reading would already do something. */
    struct stat about;
    int place = open_beneath(project, path, O_PATH | O_NOFOLLOW, 0);
    EbProjectFile *file = NULL;
    if (place < 0) {
        set_path_error(error, path);
    } else if (fstat(place, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
        errno = S_ISLNK(about.st_mode) ? ELOOP : ENODEV;
        set_path_error(error, path);
    } else {
        int fd = open_beneath(project, path, O_RDONLY, 0);
        if (fd < 0)
            set_path_error(error, path);
        else
            file = read_regular(fd, path, job->max_bytes, error);
        if (fd >= 0)
            close(fd);
    }
    if (place >= 0)
        close(place);
    close(project);
    return file;
}

/* --- saving --- */

static gboolean
write_all(int fd, GBytes *bytes)
{
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(bytes, &length);
    while (length > 0) {
        ssize_t put = write(fd, data, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return FALSE;
        data += put;
        length -= (gsize)put;
    }
    return TRUE;
}

static int
open_folder(int project, const EbProjectJob *job)
{
    gboolean made = mkdirat(project, job->folder, 0700) == 0;
    if (!made && errno != EEXIST)
        return -1;
    int fd = open_beneath(project, job->folder, O_RDONLY | O_DIRECTORY, 0);
    /* Through the descriptor: the agent may have put something else there since. */
    if (fd >= 0 && made && geteuid() == 0 && fchown(fd, job->uid, job->gid) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static char *
name_for_try(const char *name, guint number)
{
    if (number == 1)
        return g_strdup(name);
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot == name || strlen(dot) > MAX_EXTENSION)
        return g_strdup_printf("%s-%u", name, number);
    return g_strdup_printf("%.*s-%u%s", (int)(dot - name), name, number, dot);
}

static char *
save_in(int folder, const EbProjectJob *job, GError **error)
{
    for (guint number = 1; number <= MAX_CLASHES; number++) {
        g_autofree char *name = name_for_try(job->name, number);
        int fd = open_beneath(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == EEXIST)
            continue;
        gboolean ok = fd >= 0 && (geteuid() != 0 || fchown(fd, job->uid, job->gid) == 0) && write_all(fd, job->bytes);
        if (!ok) {
            set_path_error(error, name);
            if (fd >= 0) {
                unlinkat(folder, name, 0);
                close(fd);
            }
            return NULL;
        }
        close(fd);
        return g_build_filename(job->folder, name, NULL);
    }
    eb_set_error(error, EB_ERROR_QUOTA, "file.clashes", "%s exists %d times already", job->name, MAX_CLASHES);
    return NULL;
}

static char *
save_project(const EbProjectJob *job, GError **error)
{
    int project = open_project(job, error);
    if (project < 0)
        return NULL;
    char *path = NULL;
    int folder = open_folder(project, job);
    if (folder < 0)
        set_path_error(error, job->folder);
    else
        path = save_in(folder, job, error);
    if (folder >= 0)
        close(folder);
    close(project);
    return path;
}

char *
eb_project_safe_name(const char *name)
{
    g_autofree char *valid = g_utf8_make_valid(name != NULL ? name : "", -1);
    g_autoptr(GString) safe = g_string_new(NULL);
    for (const char *at = valid; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        gboolean plain =
            c == '.' || c == '_' || c == '-' || (c != 0xfffd && (g_unichar_isalnum(c) || g_unichar_ismark(c)));
        if (c == '.' && safe->len == 0)
            continue;
        if (plain)
            g_string_append_unichar(safe, c);
        else
            g_string_append_c(safe, '_');
    }
    const char *dot = strrchr(safe->str, '.');
    g_autofree char *extension = g_strdup(dot != NULL && strlen(dot) <= MAX_EXTENSION ? dot : "");
    if (safe->len > EB_PROJECT_MAX_NAME) {
        gsize keep = EB_PROJECT_MAX_NAME - strlen(extension);
        while (keep > 0 && ((guchar)safe->str[keep] & 0xc0) == 0x80)
            keep--;
        g_string_truncate(safe, keep);
        g_string_append(safe, extension);
    }
    return g_strdup(safe->len > 0 ? safe->str : "attachment");
}

/* --- in the worker --- */

static void
list_in_worker(GTask *task)
{
    GError *error = NULL;
    EbProjectListing *listing = list_project(g_task_get_task_data(task), &error);
    if (listing != NULL)
        g_task_return_pointer(task, listing, (GDestroyNotify)eb_project_listing_free);
    else
        g_task_return_error(task, error);
}

static void
read_in_worker(GTask *task)
{
    GError *error = NULL;
    EbProjectFile *file = read_project(g_task_get_task_data(task), &error);
    if (file != NULL)
        g_task_return_pointer(task, file, (GDestroyNotify)eb_project_file_free);
    else
        g_task_return_error(task, error);
}

static void
save_in_worker(GTask *task)
{
    GError *error = NULL;
    char *path = save_project(g_task_get_task_data(task), &error);
    if (path != NULL)
        g_task_return_pointer(task, path, g_free);
    else
        g_task_return_error(task, error);
}

static EbProjectJob *
job_new(const char *project_root, const char *project, const char *path)
{
    EbProjectJob *job = g_new0(EbProjectJob, 1);
    job->root = g_strdup(project_root);
    job->project = g_strdup(project);
    job->path = g_strdup(path);
    return job;
}

static void
run(EbWorker *disk, EbProjectJob *job, EbWorkerFunc func, gpointer tag, GCancellable *cancellable,
    GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);
    g_task_set_source_tag(task, tag);
    g_task_set_task_data(task, job, job_free);
    eb_worker_run(disk, task, func);
}

void
eb_project_list_async(EbWorker *disk, const char *project_root, const char *project, const char *path,
                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    run(disk, job_new(project_root, project, path), list_in_worker, eb_project_list_async, cancellable, callback,
        user_data);
}

EbProjectListing *
eb_project_list_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_project_list_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

void
eb_project_read_async(EbWorker *disk, const char *project_root, const char *project, const char *path, gsize max_bytes,
                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbProjectJob *job = job_new(project_root, project, path);
    job->max_bytes = max_bytes;
    run(disk, job, read_in_worker, eb_project_read_async, cancellable, callback, user_data);
}

EbProjectFile *
eb_project_read_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_project_read_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

void
eb_project_save_async(EbWorker *disk, const char *project_root, const char *project, const char *folder,
                      const char *name, GBytes *bytes, guint32 uid, guint32 gid, GCancellable *cancellable,
                      GAsyncReadyCallback callback, gpointer user_data)
{
    EbProjectJob *job = job_new(project_root, project, NULL);
    job->folder = eb_project_safe_name(folder);
    job->name = eb_project_safe_name(name);
    job->bytes = g_bytes_ref(bytes);
    job->uid = uid;
    job->gid = gid;
    run(disk, job, save_in_worker, eb_project_save_async, cancellable, callback, user_data);
}

char *
eb_project_save_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_project_save_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
