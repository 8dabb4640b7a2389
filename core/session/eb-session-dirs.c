/* SPDX-License-Identifier: MIT */
#include "core/session/eb-session-dirs.h"

#include "core/base/eb-file-room.h"
#include "core/base/eb-tree-remove.h"
#include "core/session/eb-project-name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define REMOVE_DEADLINE_MS (5 * 60 * 1000)
#define MAX_LISTED 10000

void
eb_session_dirs_free(EbSessionDirs *self)
{
    if (self == NULL)
        return;
    g_free(self->session);
    g_free(self->state);
    g_free(self->run);
    g_free(self->project);
    g_free(self);
}

static void
set_errno_error(GError **error, const char *what, const char *path)
{
    int saved = errno;
    EbErrorCode code = EB_ERROR_DENIED;
    if (saved == ENOSPC || saved == EDQUOT)
        code = EB_ERROR_QUOTA;
    else if (saved == ENOENT)
        code = EB_ERROR_CONFIG;
    eb_set_error(error, code, code == EB_ERROR_QUOTA ? "session.disk-full" : "session.directory", "cannot %s %s: %s",
                 what, path, g_strerror(saved));
}

/* An agent owns these directories as well and may forbid everybody to list them, which ends nothing but its own use of
 * them. The chmod goes through a descriptor of the directory itself, so it cannot meet a link. */
static int
open_existing(int parent, const char *name, guint32 uid, GError **error)
{
    char self[64];
    struct stat info;
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0) {
        set_errno_error(error, "open the directory", name);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    g_snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int opened = -1;
    if (info.st_uid != uid)
        eb_set_error(error, EB_ERROR_DENIED, "session.directory",
                     "the directory %s belongs to uid %u, not to uid %u of the service: only root can give it back",
                     name, (guint)info.st_uid, uid);
    else if ((info.st_mode & S_IRWXU) != S_IRWXU && chmod(self, (info.st_mode & 0777) | S_IRWXU) < 0)
        set_errno_error(error, "allow the directory", name);
    else if ((opened = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        set_errno_error(error, "open the directory", name);
    close(fd);
    return opened;
}

/* Opens @name below @parent, made with @mode when missing. Never through a link; must belong to @uid. */
static int
open_made(int parent, const char *name, mode_t mode, guint32 uid, guint32 gid, gboolean *made, GError **error)
{
    gboolean fresh = mkdirat(parent, name, mode) == 0;
    if (!fresh && errno != EEXIST) {
        set_errno_error(error, "make the directory", name);
        return -1;
    }
    int fd = fresh ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                   : open_existing(parent, name, uid, error);
    if (fd < 0) {
        if (fresh)
            set_errno_error(error, "open the directory", name);
        return -1;
    }
    gboolean ok = TRUE;
    if (fresh)
        /* The umask may have taken bits away. */
        ok = fchmod(fd, mode) == 0 && (geteuid() != 0 || fchown(fd, uid, gid) == 0);
    if (!ok) {
        set_errno_error(error, "prepare the directory", name);
        close(fd);
        return -1;
    }
    if (made != NULL)
        *made = fresh;
    return fd;
}

static int
open_root(const char *path, const char *what, GError **error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        set_errno_error(error, what, path);
        if (error != NULL && *error != NULL) {
            g_autofree char *said = g_steal_pointer(&(*error)->message);
            (*error)->message = g_strdup_printf("%s (errand-box setup)", said);
        }
    }
    return fd;
}

static gboolean
check_space(int fd, const char *path, guint64 min_free, GError **error)
{
    struct statvfs info;
    if (fstatvfs(fd, &info) < 0) {
        set_errno_error(error, "look at the file system of", path);
        return FALSE;
    }
    guint64 left = (guint64)info.f_bavail * info.f_frsize;
    if (left >= min_free && info.f_files > 0 && info.f_favail < eb_file_room_bound(info.f_files)) {
        eb_set_error(error, EB_ERROR_QUOTA, "session.disk-full",
                     "not enough inodes in %s: %" G_GUINT64_FORMAT " are free, a session needs %" G_GUINT64_FORMAT
                     " to start (remove some files, or run: errand-box sessions prune)",
                     path, (guint64)info.f_favail, eb_file_room_bound(info.f_files));
        return FALSE;
    }
    if (left >= min_free)
        return TRUE;
    eb_set_error(error, EB_ERROR_QUOTA, "session.disk-full",
                 "not enough space in %s: %" G_GUINT64_FORMAT " MiB are free, a session needs %" G_GUINT64_FORMAT
                 " MiB to start (free some, or run: errand-box sessions prune)",
                 path, left >> 20, min_free >> 20);
    return FALSE;
}

static gboolean
write_program(int dir, const char *name, GBytes *bytes, GError **error)
{
    /* run/ is the host's alone, but a crash may have left an old file. */
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT) {
        set_errno_error(error, "replace", name);
        return FALSE;
    }
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    if (fd < 0) {
        set_errno_error(error, "write", name);
        return FALSE;
    }
    gsize length = 0;
    const char *data = g_bytes_get_data(bytes, &length);
    gboolean ok = fchmod(fd, 0755) == 0;
    for (gsize at = 0; ok && at < length;) {
        ssize_t n = write(fd, data + at, length - at);
        ok = n > 0 || (n < 0 && errno == EINTR);
        at += n > 0 ? (gsize)n : 0;
    }
    if (!ok)
        set_errno_error(error, "write", name);
    close(fd);
    return ok;
}

static gboolean
make_session(const EbSessionDirsPlan *plan, int sessions, GError **error)
{
    int own = open_made(sessions, plan->id, 0700, plan->uid, plan->gid, NULL, error);
    if (own < 0)
        return FALSE;
    struct stat info;
    gboolean ok = TRUE;
    if (plan->resume && (fstatat(own, "state", &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(info.st_mode))) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "session.state-gone", "the state directory of session %s is gone",
                     plan->id);
        ok = FALSE;
    }
    int state = ok ? open_made(own, "state", 0700, plan->uid, plan->gid, NULL, error) : -1;
    int run = state >= 0 ? open_made(own, "run", 0755, plan->uid, plan->gid, NULL, error) : -1;
    ok = run >= 0 && write_program(run, "launch", plan->launch, error) &&
         write_program(run, "relay", plan->relay, error);
    if (run >= 0)
        close(run);
    if (state >= 0)
        close(state);
    close(own);
    return ok;
}

static gboolean
make_project(const EbSessionDirsPlan *plan, int root, EbSessionDirs *dirs, GError **error)
{
    int fd = open_made(root, plan->project, 0700, plan->uid, plan->gid, &dirs->made_project, error);
    if (fd < 0)
        return FALSE;
    close(fd);
    dirs->project = g_build_filename(plan->project_root, plan->project, NULL);
    return TRUE;
}

EbSessionDirs *
eb_session_dirs_make(const EbSessionDirsPlan *plan, GError **error)
{
    g_return_val_if_fail(eb_session_id_check(plan->id) && eb_project_name_check(plan->project, NULL), NULL);
    g_autoptr(EbSessionDirs) dirs = g_new0(EbSessionDirs, 1);
    dirs->session = g_build_filename(plan->state_root, "sessions", plan->id, NULL);
    dirs->state = g_build_filename(dirs->session, "state", NULL);
    dirs->run = g_build_filename(dirs->session, "run", NULL);
    int state_root = open_root(plan->state_root, "open the state directory", error);
    if (state_root < 0)
        return NULL;
    int projects = -1;
    gboolean ok = check_space(state_root, plan->state_root, plan->min_free, error);
    if (ok && plan->project_root != NULL) {
        projects = open_root(plan->project_root, "open the projects directory", error);
        ok = projects >= 0 && check_space(projects, plan->project_root, plan->min_free, error);
    }
    int sessions = ok ? open_made(state_root, "sessions", 0700, plan->uid, plan->gid, NULL, error) : -1;
    ok = sessions >= 0 && (projects < 0 || make_project(plan, projects, dirs, error));
    if (ok && !make_session(plan, sessions, error)) {
        ok = FALSE;
        if (!plan->resume)
            eb_tree_remove_at(sessions, plan->id, REMOVE_DEADLINE_MS, NULL, NULL);
        if (dirs->made_project)
            unlinkat(projects, plan->project, AT_REMOVEDIR);
    }
    if (sessions >= 0)
        close(sessions);
    if (projects >= 0)
        close(projects);
    close(state_root);
    return ok ? g_steal_pointer(&dirs) : NULL;
}

static gboolean
remove_below(const char *dir, const char *name, GError **error)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT)
            return TRUE;
        set_errno_error(error, "open", dir);
        return FALSE;
    }
    gboolean ok = eb_tree_remove_at(fd, name, REMOVE_DEADLINE_MS, NULL, error);
    close(fd);
    if (!ok)
        g_prefix_error(error, "%s: ", dir);
    return ok;
}

gboolean
eb_session_dirs_remove_run(const char *state_root, const char *id, GError **error)
{
    g_return_val_if_fail(eb_session_id_check(id), FALSE);
    g_autofree char *own = g_build_filename(state_root, "sessions", id, NULL);
    return remove_below(own, "run", error);
}

gboolean
eb_session_dirs_remove(const char *state_root, const char *id, GError **error)
{
    g_return_val_if_fail(eb_session_id_check(id), FALSE);
    g_autofree char *sessions = g_build_filename(state_root, "sessions", NULL);
    return remove_below(sessions, id, error);
}

void
eb_session_dirs_remove_empty_project(const char *project_root, const char *project)
{
    int fd = open(project_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    unlinkat(fd, project, AT_REMOVEDIR);
    close(fd);
}

GPtrArray *
eb_session_dirs_list(const char *state_root)
{
    GPtrArray *ids = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *path = g_build_filename(state_root, "sessions", NULL);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return ids;
    struct dirent *entry;
    while (ids->len < MAX_LISTED && (entry = readdir(dir)) != NULL)
        if (eb_session_id_check(entry->d_name))
            g_ptr_array_add(ids, g_strdup(entry->d_name));
    closedir(dir);
    return ids;
}

gboolean
eb_session_dirs_make_private(const char *path, guint32 uid, guint32 gid, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    int parent_fd = open_root(parent, "open the directory", error);
    if (parent_fd < 0)
        return FALSE;
    int fd = open_made(parent_fd, name, 0700, uid, gid, NULL, error);
    if (fd < 0)
        g_prefix_error(error, "%s: ", parent);
    else
        close(fd);
    close(parent_fd);
    return fd >= 0;
}

char *
eb_session_home_id_read(const char *locks_dir)
{
    g_autofree char *path = g_build_filename(locks_dir, EB_SESSION_HOME_ID_FILE, NULL);
    g_autofree char *known = NULL;
    gsize length = 0;
    if (!g_file_get_contents(path, &known, &length, NULL) || length > 64)
        return NULL;
    g_strstrip(known);
    return eb_session_id_check(known) ? g_steal_pointer(&known) : NULL;
}
