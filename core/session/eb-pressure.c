/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-pressure.h"

#include "core/base/eb-tree-remove.h"
#include "core/base/eb-tree-usage.h"
#include "core/session/eb-dead-roots.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-gc-disk.h"
#include "core/session/eb-project-name.h"
#include "core/session/eb-session-manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REMOVE_DEADLINE_MS (5 * 60 * 1000)

guint64
eb_pressure_wanted(guint64 free_bytes, guint64 min_free)
{
    return free_bytes < 2 * min_free ? 2 * min_free + min_free / 2 - free_bytes : 0;
}

EbPressureItem *
eb_pressure_item_new(const char *id, gboolean is_try, guint64 bytes, gint64 used_ms)
{
    EbPressureItem *self = g_new0(EbPressureItem, 1);

    self->id = g_strdup(id);
    self->is_try = is_try;
    self->bytes = bytes;
    self->used_ms = used_ms;
    return self;
}

void
eb_pressure_item_free(EbPressureItem *self)
{
    if (self == NULL)
        return;
    g_free(self->id);
    g_free(self);
}

static int
longest_unused_first(gconstpointer a, gconstpointer b)
{
    const EbPressureItem *left = *(EbPressureItem *const *)a;
    const EbPressureItem *right = *(EbPressureItem *const *)b;

    if (left->used_ms != right->used_ms)
        return left->used_ms < right->used_ms ? -1 : 1;
    return strcmp(left->id, right->id);
}

GPtrArray *
eb_pressure_pick(const GPtrArray *items, guint64 wanted, gint64 now_ms, guint *candidates)
{
    GPtrArray *picked = g_ptr_array_new();
    guint64 sum = 0;
    guint keep = 0;

    for (guint i = 0; i < items->len; i++) {
        const EbPressureItem *item = items->pdata[i];
        if (!item->live && !item->pinned && item->bytes > 0 && item->used_ms <= now_ms - EB_PRESSURE_RECENT_MS)
            g_ptr_array_add(picked, (gpointer)item);
    }
    *candidates = picked->len;
    g_ptr_array_sort(picked, longest_unused_first);
    for (; keep < picked->len && sum < wanted; keep++)
        sum += ((const EbPressureItem *)picked->pdata[keep])->bytes;
    g_ptr_array_set_size(picked, (int)keep);
    return picked;
}

/* --- on the disk --- */

void
eb_pressure_add_sessions(GPtrArray *items, const char *state_root, const GPtrArray *records)
{
    g_autofree char *path = g_build_filename(state_root, "sessions", NULL);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    for (guint i = 0; dir >= 0 && i < records->len && items->len < EB_PRESSURE_MAX_ITEMS; i++) {
        const EbSessionRecord *record = records->pdata[i];
        if (!eb_session_id_check(record->id))
            continue;
        EbPressureItem *item =
            eb_pressure_item_new(record->id, FALSE, eb_tree_usage_at(dir, record->id), record->last_activity_ms);
        item->pinned = record->pinned;
        g_ptr_array_add(items, item);
    }
    if (dir >= 0)
        close(dir);
}

/* A root whose database cannot be read is nobody's to give up. */
static gboolean
read_try(const char *root, EbPressureItem *item)
{
    g_autofree char *path = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    sqlite3 *db = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? eb_store_open_blocking(path, NULL) : NULL;
    g_autoptr(sqlite3_stmt) row =
        db != NULL ? eb_store_prepare(db, "SELECT max(last_activity), max(pinned) FROM session", NULL) : NULL;
    gboolean good = row != NULL && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) != SQLITE_NULL;

    if (good) {
        item->used_ms = sqlite3_column_int64(row, 0);
        item->pinned = sqlite3_column_int(row, 1) != 0;
    }
    g_clear_pointer(&row, sqlite3_finalize);
    sqlite3_close(db);
    return good;
}

void
eb_pressure_add_tries(GPtrArray *items, const char *state_dir)
{
    g_autofree char *path = g_build_filename(state_dir, EB_TRY_DIR, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const char *name;

    while (dir != NULL && fd >= 0 && items->len < EB_PRESSURE_MAX_ITEMS && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *root = g_build_filename(path, name, NULL);
        g_autoptr(EbPressureItem) item = eb_pressure_item_new(name, TRUE, 0, 0);
        if (name[0] == '.' || eb_dir_lock_is_held(root, EB_STATE_LOCK_FILE) || !read_try(root, item))
            continue;
        item->bytes = eb_tree_usage_at(fd, name);
        g_ptr_array_add(items, g_steal_pointer(&item));
    }
    if (fd >= 0)
        close(fd);
}

gboolean
eb_pressure_set_aside(const EbPressureItem *item, const char *state_root, GError **error)
{
    g_autofree char *from = g_build_filename(state_root, "sessions", item->id, NULL);
    g_autofree char *name = g_strconcat(EB_GC_GONE_PREFIX, item->id, NULL);
    g_autofree char *to = g_build_filename(state_root, "sessions", name, NULL);

    if (rename(from, to) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_FAILED, "pressure.move", "%s: %s", from, g_strerror(errno));
    return FALSE;
}

gboolean
eb_pressure_remove_try(const EbPressureItem *item, const char *state_dir, GError **error)
{
    g_autofree char *path = g_build_filename(state_dir, EB_TRY_DIR, NULL);
    g_autofree char *root = g_build_filename(path, item->id, NULL);
    g_autoptr(EbDirLock) lock = eb_dir_lock_take(root, EB_STATE_LOCK_FILE, error);
    int dir = lock != NULL ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    gboolean good = dir >= 0 && eb_tree_remove_at(dir, item->id, REMOVE_DEADLINE_MS, NULL, error);

    if (dir >= 0)
        close(dir);
    return good;
}
