/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-dead-roots.h"

#include "core/base/eb-tree-remove.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-dirs.h"
#include "core/session/eb-session-manager.h"
#include "core/state/eb-session-store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Roots looked at in one sweep; the rest waits for the next one. */
#define MAX_ROOTS 10000
#define REMOVE_DEADLINE_MS 60000

static gboolean
was_killed(const char *root)
{
    struct stat info;
    g_autofree char *lock = g_build_filename(root, EB_STATE_LOCK_FILE, NULL);
    return lstat(root, &info) == 0 && S_ISDIR(info.st_mode) && lstat(lock, &info) == 0 && S_ISREG(info.st_mode) &&
           !eb_dir_lock_is_held(root, EB_STATE_LOCK_FILE);
}

static gboolean
clean_sessions(const char *root, GPtrArray *kept, GError **error)
{
    g_autoptr(GPtrArray) ids = eb_session_dirs_list(root);
    gboolean good = TRUE;
    for (guint i = 0; i < ids->len; i++) {
        const char *id = ids->pdata[i];
        gboolean has_row = g_ptr_array_find_with_equal_func(kept, id, g_str_equal, NULL);
        g_autoptr(GError) local = NULL;
        if (has_row ? eb_session_dirs_remove_run(root, id, &local) : eb_session_dirs_remove(root, id, &local))
            continue;
        if (good)
            g_propagate_error(error, g_steal_pointer(&local));
        good = FALSE;
    }
    return good;
}

static gboolean
settle(const char *dir, const char *name, const char *root, GError **error)
{
    g_autofree char *database = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    g_autoptr(GPtrArray) kept = NULL;
    if (g_file_test(database, G_FILE_TEST_IS_REGULAR))
        kept = eb_session_store_settle_file(database, "killed", error);
    else
        kept = g_ptr_array_new_with_free_func(g_free);
    if (kept == NULL || !clean_sessions(root, kept, error))
        return FALSE;
    if (kept->len > 0)
        return TRUE;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return TRUE;
    gboolean gone = eb_tree_remove_at(fd, name, REMOVE_DEADLINE_MS, NULL, error);
    close(fd);
    return gone;
}

guint
eb_dead_roots_sweep(const char *state_dir, const char *own_root)
{
    g_autofree char *dir = g_build_filename(state_dir, EB_TRY_DIR, NULL);
    g_autoptr(GDir) handle = g_dir_open(dir, 0, NULL);
    const char *name;
    guint settled = 0;
    for (guint seen = 0; handle != NULL && seen < MAX_ROOTS && (name = g_dir_read_name(handle)) != NULL; seen++) {
        g_autofree char *root = g_build_filename(dir, name, NULL);
        if (name[0] == '.' || g_strcmp0(root, own_root) == 0 || !was_killed(root))
            continue;
        g_autoptr(EbDirLock) lock = eb_dir_lock_take(root, EB_STATE_LOCK_FILE, NULL);
        g_autoptr(GError) error = NULL;
        if (lock == NULL)
            continue;
        if (settle(dir, name, root, &error))
            settled++;
        else
            eb_warning("what a killed try left in %s could not be settled: %s", root, error->message);
    }
    return settled;
}

guint
eb_dead_roots_count(const char *state_dir, const char *own_root)
{
    g_autofree char *dir = g_build_filename(state_dir, EB_TRY_DIR, NULL);
    g_autoptr(GDir) handle = g_dir_open(dir, 0, NULL);
    const char *name;
    guint count = 0;
    for (guint seen = 0; handle != NULL && seen < MAX_ROOTS && (name = g_dir_read_name(handle)) != NULL; seen++) {
        g_autofree char *root = g_build_filename(dir, name, NULL);
        if (name[0] != '.' && g_strcmp0(root, own_root) != 0 && was_killed(root))
            count++;
    }
    return count;
}
