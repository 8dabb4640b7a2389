/* SPDX-License-Identifier: MIT */
/* The steps from the old state to the new one, each of which can be done again. */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-restore.h"

#include "core/base/eb-tree-remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READY "restore.ready"
#define MOVING "restore.moving"
#define REMOVE_DEADLINE_MS 60000

/* What a restore replaces. */
static const char *const parts[] = {"state.db", "state.db-wal", "state.db-shm", "sessions", "try", "restored-etc"};

static EbRestoreHook hook;
static guint step;

void
eb_restore_set_hook(EbRestoreHook func)
{
    hook = func;
    step = 0;
}

static gboolean
next_step(GError **error)
{
    if (hook == NULL || hook(step++))
        return TRUE;
    eb_set_error(error, EB_ERROR_CANCELLED, "restore.hook", "ended by the test");
    return FALSE;
}

static gboolean
exists(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Absence of @from is no failure: it is there already, or there never was one. */
static gboolean
move(int dir, const char *from, const char *to, GError **error)
{
    if (!exists(dir, from))
        return TRUE;
    if (!next_step(error))
        return FALSE;
    if (renameat(dir, from, dir, to) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_FAILED, "restore.move", "cannot move %s to %s: %s", from, to, g_strerror(errno));
    return FALSE;
}

static gboolean
move_aside(int dir, GError **error)
{
    if (mkdirat(dir, READY "/old", 0700) != 0 && errno != EEXIST) {
        eb_set_error(error, EB_ERROR_FAILED, "restore.move", "%s/old: %s", READY, g_strerror(errno));
        return FALSE;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *to = g_build_filename(READY, "old", parts[i], NULL);
        if (!exists(dir, to) && !move(dir, parts[i], to, error))
            return FALSE;
    }
    fsync(dir);
    return move(dir, READY, MOVING, error);
}

/* (transfer full): "replaced-20260102T030405Z", with a number when there is one of this second. */
static char *
aside_name(int dir)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *stamp = g_date_time_format(now, "replaced-%Y%m%dT%H%M%SZ");
    char *name = g_strdup(stamp);

    for (guint i = 2; exists(dir, name); i++) {
        g_free(name);
        name = g_strdup_printf("%s-%u", stamp, i);
    }
    return name;
}

static gboolean
move_in(int dir, char **aside, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *from = g_build_filename(MOVING, "new", parts[i], NULL);
        if (!move(dir, from, parts[i], error))
            return FALSE;
    }
    g_autofree char *name = aside_name(dir);
    if (!move(dir, MOVING "/old", name, error))
        return FALSE;
    if (aside != NULL)
        *aside = g_steal_pointer(&name);
    fsync(dir);
    return eb_tree_remove_at(dir, MOVING, REMOVE_DEADLINE_MS, NULL, error);
}

static int
open_state(const char *state_dir, GError **error)
{
    int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        eb_set_error(error, EB_ERROR_DENIED, "state.denied", "%s: %s", state_dir, g_strerror(errno));
    return dir;
}

gboolean
eb_restore_settle(const char *state_dir, char **aside, GError **error)
{
    int dir = open_state(state_dir, error);
    gboolean good;

    if (dir < 0)
        return FALSE;
    good = (!exists(dir, READY) || move_aside(dir, error)) && (!exists(dir, MOVING) || move_in(dir, aside, error)) &&
           eb_tree_remove_at(dir, EB_RESTORE_PARTIAL, REMOVE_DEADLINE_MS, NULL, error);
    if (!good)
        g_prefix_error(error, "%s: ", state_dir);
    close(dir);
    return good;
}

gboolean
eb_restore_decide(const char *state_dir, char **aside, GError **error)
{
    int dir = open_state(state_dir, error);
    gboolean good;

    if (dir < 0)
        return FALSE;
    good = move(dir, EB_RESTORE_PARTIAL, READY, error);
    fsync(dir);
    close(dir);
    return good && eb_restore_settle(state_dir, aside, error);
}

gboolean
eb_restore_is_pending(const char *state_dir)
{
    g_autofree char *ready = g_build_filename(state_dir, READY, NULL);
    g_autofree char *moving = g_build_filename(state_dir, MOVING, NULL);
    struct stat info;

    return lstat(ready, &info) == 0 || lstat(moving, &info) == 0;
}
