/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-gc-disk.h"

#include "core/base/eb-tree-remove.h"
#include "core/base/eb-tree-usage.h"
#include "core/session/eb-dead-roots.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-dirs.h"
#include "core/state/eb-backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERIFY_PREFIX "verify-"
/* Of one class in one run; the rest waits for the next. */
#define MAX_ENTRIES 10000
#define REMOVE_DEADLINE_MS (5 * 60 * 1000)

EbGcGround *
eb_gc_ground_new(const char *state_dir, const char *state_root, const char *locks_dir)
{
    EbGcGround *self = g_new0(EbGcGround, 1);

    self->state_dir = g_strdup(state_dir);
    self->state_root = g_strdup(state_root);
    self->locks_dir = g_strdup(locks_dir);
    self->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->live = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return self;
}

void
eb_gc_ground_free(EbGcGround *self)
{
    if (self == NULL)
        return;
    g_free(self->state_dir);
    g_free(self->state_root);
    g_free(self->locks_dir);
    g_hash_table_unref(self->known);
    g_hash_table_unref(self->live);
    g_free(self);
}

static int
open_dir(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* (transfer full): names in @path that begin with @prefix and are directories. */
static GPtrArray *
list_dirs(const char *path, const char *prefix)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir != NULL && names->len < MAX_ENTRIES && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (g_str_has_prefix(entry->d_name, prefix) &&
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode))
            g_ptr_array_add(names, g_strdup(entry->d_name));
    }
    if (dir != NULL)
        closedir(dir);
    return names;
}

static void
remove_one(int dir, const char *name, EbGcClass *class)
{
    g_autoptr(GError) error = NULL;
    guint64 bytes = eb_tree_usage_at(dir, name);

    if (eb_tree_remove_at(dir, name, REMOVE_DEADLINE_MS, NULL, &error)) {
        class->removed++;
        class->bytes += bytes;
    } else {
        eb_gc_class_note(class, "%s", error->message);
    }
}

/* --- sessions and their sockets --- */

static guint
count_sockets(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    guint count = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(info.st_mode))
            count++;
    }
    if (dir != NULL)
        closedir(dir);
    return count;
}

static void
clean_run(const EbGcGround *ground, const char *id, EbGcClass *sockets)
{
    g_autofree char *run = g_build_filename(ground->state_root, "sessions", id, "run", NULL);
    g_autoptr(GError) error = NULL;
    guint found = count_sockets(run);

    sockets->before += found;
    if (ground->plan) {
        sockets->after += found;
    } else if (eb_session_dirs_remove_run(ground->state_root, id, &error)) {
        sockets->removed += found;
    } else {
        sockets->after += found;
        eb_gc_class_note(sockets, "%s", error->message);
    }
}

static void
clean_control_socket(const EbGcGround *ground, EbGcClass *sockets)
{
    g_autofree char *path = g_build_filename(ground->state_dir, "run", "control.sock", NULL);
    struct stat info;

    if (!ground->alone || lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode))
        return;
    sockets->before++;
    if (!ground->plan && unlink(path) == 0)
        sockets->removed++;
    else
        sockets->after++;
}

static void
clean_locks(const EbGcGround *ground, EbGcClass *locks)
{
    DIR *dir = opendir(ground->locks_dir);
    struct dirent *entry;

    while (dir != NULL && locks->before < MAX_ENTRIES && (entry = readdir(dir)) != NULL) {
        if (!g_str_has_suffix(entry->d_name, ".lock") || eb_dir_lock_is_held(ground->locks_dir, entry->d_name))
            continue;
        locks->before++;
        /* Taking and releasing removes the file in the one safe way. */
        EbDirLock *lock = ground->plan ? NULL : eb_dir_lock_take(ground->locks_dir, entry->d_name, NULL);
        if (lock != NULL)
            locks->removed++;
        else
            locks->after++;
        eb_dir_lock_release(lock);
    }
    if (dir != NULL)
        closedir(dir);
}

void
eb_gc_disk_quick(const EbGcGround *ground, EbGcClass *sessions, EbGcClass *sockets, EbGcClass *locks)
{
    g_autofree char *path = g_build_filename(ground->state_root, "sessions", NULL);
    g_autoptr(GPtrArray) ids = eb_session_dirs_list(ground->state_root);
    g_autoptr(GPtrArray) gone = list_dirs(path, EB_GC_GONE_PREFIX);
    int dir = open_dir(path);

    sessions->before += gone->len;
    for (guint i = 0; i < ids->len; i++) {
        const char *id = ids->pdata[i];
        g_autofree char *aside = g_strconcat(EB_GC_GONE_PREFIX, id, NULL);
        if (g_hash_table_contains(ground->live, id))
            continue;
        if (g_hash_table_contains(ground->known, id)) {
            clean_run(ground, id, sockets);
            continue;
        }
        sessions->before++;
        if (ground->plan)
            sessions->bytes += dir >= 0 ? eb_tree_usage_at(dir, id) : 0;
        else if (ground->guests_gone && (dir < 0 || renameat(dir, id, dir, aside) != 0))
            eb_gc_class_note(sessions, "%s/%s cannot be set aside: %s", path, id, g_strerror(errno));
    }
    if (dir >= 0)
        close(dir);
    if (!ground->guests_gone && sessions->before > gone->len)
        eb_gc_class_note(sessions, "left until the container backend says that no guest has them");
    clean_control_socket(ground, sockets);
    clean_locks(ground, locks);
}

void
eb_gc_disk_sessions(const EbGcGround *ground, EbGcClass *sessions)
{
    g_autofree char *path = g_build_filename(ground->state_root, "sessions", NULL);
    g_autoptr(GPtrArray) gone = list_dirs(path, EB_GC_GONE_PREFIX);
    int dir = open_dir(path);

    for (guint i = 0; dir >= 0 && i < gone->len; i++) {
        if (ground->plan)
            sessions->bytes += eb_tree_usage_at(dir, gone->pdata[i]);
        else
            remove_one(dir, gone->pdata[i], sessions);
    }
    if (dir >= 0)
        close(dir);
    sessions->after = sessions->before - MIN(sessions->removed, sessions->before);
}

/* --- tries --- */

void
eb_gc_disk_tries(const EbGcGround *ground, EbGcClass *tries)
{
    tries->before = eb_dead_roots_count(ground->state_dir, ground->state_root);
    if (tries->before > 0 && !ground->plan && ground->guests_gone)
        tries->removed = eb_dead_roots_sweep(ground->state_dir, ground->state_root);
    else if (tries->before > 0 && !ground->plan)
        eb_gc_class_note(tries, "left until the container backend says that no guest has them");
    tries->after = eb_dead_roots_count(ground->state_dir, ground->state_root);
}

/* --- temporary --- */

static gboolean
is_old(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           info.st_mtime + EB_GC_STALE_S < g_get_real_time() / G_USEC_PER_SEC;
}

static gboolean
is_free(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    gboolean unlocked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

    if (fd >= 0)
        close(fd);
    return unlocked;
}

static void
clean_prefix(const EbGcGround *ground, const char *path, const char *prefix, gboolean (*is_dead)(int, const char *),
             EbGcClass *class)
{
    g_autoptr(GPtrArray) names = list_dirs(path, prefix);
    int dir = open_dir(path);

    for (guint i = 0; dir >= 0 && i < names->len; i++) {
        if (!is_dead(dir, names->pdata[i]))
            continue;
        class->before++;
        if (ground->plan)
            class->bytes += eb_tree_usage_at(dir, names->pdata[i]);
        else
            remove_one(dir, names->pdata[i], class);
    }
    if (dir >= 0)
        close(dir);
}

void
eb_gc_disk_temporary(const EbGcGround *ground, EbGcClass *temporary)
{
    g_autofree char *sessions = g_build_filename(ground->state_dir, "sessions", NULL);

    clean_prefix(ground, sessions, VERIFY_PREFIX, is_old, temporary);
    clean_prefix(ground, ground->state_dir, EB_BACKUP_TEMP_PREFIX, is_free, temporary);
    temporary->after = temporary->before - MIN(temporary->removed, temporary->before);
}

/* --- brokers --- */

/* (nullable): what follows @key in /proc/PID/status, to the end of its line. */
static char *
status_value(const char *status, const char *key)
{
    const char *found = strstr(status, key);
    const char *value = found != NULL ? found + strlen(key) : NULL;

    return value != NULL ? g_strstrip(g_strndup(value, strcspn(value, "\n"))) : NULL;
}

static char *
read_status(const char *pid)
{
    g_autofree char *path = g_build_filename("/proc", pid, "status", NULL);
    char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

/* @parent is not what starts brokers, but who is given the children of the dead: init, or a user's systemd. */
static gboolean
adopts(const char *parent, const char *status, const char *uid)
{
    g_autofree char *name = status_value(status, "Name:");
    g_autofree char *owner = status_value(status, "\nUid:");

    if (name == NULL || g_str_has_prefix(name, "errand-box"))
        return FALSE;
    return strcmp(parent, "1") == 0 || strcmp(name, "systemd") == 0 || g_strcmp0(owner, uid) != 0;
}

gboolean
eb_gc_is_orphan_broker(const char *pid)
{
    g_autofree char *status = read_status(pid);
    g_autofree char *name = status != NULL ? status_value(status, "Name:") : NULL;
    g_autofree char *uid = status != NULL ? status_value(status, "\nUid:") : NULL;
    g_autofree char *parent = status != NULL ? status_value(status, "\nPPid:") : NULL;

    if (parent == NULL || uid == NULL || g_ascii_strtoull(uid, NULL, 10) != geteuid() ||
        !g_str_has_prefix(name, "errand-box-brok"))
        return FALSE;
    g_autofree char *above = read_status(parent);
    return above == NULL || adopts(parent, above, uid);
}

void
eb_gc_brokers(EbGcClass *brokers)
{
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (!g_ascii_isdigit(*name) || !eb_gc_is_orphan_broker(name))
            continue;
        brokers->before++;
        eb_gc_class_note(brokers, "process %s has no service any more; look at it, then: kill %s", name, name);
    }
    brokers->after = brokers->before;
}
