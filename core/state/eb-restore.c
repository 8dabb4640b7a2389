/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-restore.h"

#include "core/base/eb-tree-remove.h"
#include "core/state/eb-store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define REMOVE_DEADLINE_MS 60000

/* What a database of ours is made of; anything else in it was put there by somebody else. */
#define TABLES                                                                                                         \
    "'session', 'message', 'event', 'watermark', 'question', 'egress', 'egress_chain', 'usage', 'usage_hold',"         \
    " 'session_rules'"
#define FOREIGN                                                                                                        \
    "SELECT count(*) FROM sqlite_schema WHERE NOT ((type = 'table' AND name IN (" TABLES ")) OR"                       \
    " (type = 'index' AND tbl_name IN (" TABLES ")))"

/* An id names a directory of ours, and one that is removed. */
#define ODD_IDS "SELECT count(*) FROM session WHERE typeof(id) <> 'text' OR id = '' OR id GLOB '*[^0-9a-z]*'"

/* Nothing that was said between the backup and now is acted upon, nor asked, a second time. */
static const char *const settle_messages[] = {
    "UPDATE message SET state = 'done' WHERE state <> 'done'",
    "UPDATE question SET state = 'closed' WHERE state IN ('open', 'answered')",
    "DELETE FROM watermark",
};

gboolean
eb_restore_is_empty(const char *state_dir)
{
    static const char *const places[] = {"sessions", "try"};
    g_autofree char *path = g_build_filename(state_dir, "state.db", NULL);
    struct stat info;

    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *place = g_build_filename(state_dir, places[i], NULL);
        g_autoptr(GDir) dir = g_dir_open(place, 0, NULL);
        if (dir != NULL && g_dir_read_name(dir) != NULL)
            return FALSE;
    }
    if (lstat(path, &info) != 0)
        return errno == ENOENT;
    sqlite3 *db = S_ISREG(info.st_mode) && info.st_size > 0 ? eb_store_open_blocking(path, NULL) : NULL;
    g_autoptr(sqlite3_stmt) rows =
        db != NULL
            ? eb_store_prepare(db, "SELECT (SELECT count(*) FROM session) + (SELECT count(*) FROM message)", NULL)
            : NULL;
    gboolean empty = rows != NULL && sqlite3_step(rows) == SQLITE_ROW && sqlite3_column_int64(rows, 0) == 0;
    g_clear_pointer(&rows, sqlite3_finalize);
    sqlite3_close(db);
    return empty;
}

/* Where the archive's @name goes below restore.partial/new. */
static char *
target_of(const char *root, const char *name)
{
    if (g_str_has_prefix(name, "etc/"))
        return g_build_filename(root, "restored-etc", name + strlen("etc/"), NULL);
    return g_build_filename(root, name, NULL);
}

static int
open_target(const EbArchiveEntry *entry, gpointer user_data, GError **error)
{
    const char *root = user_data;
    g_autofree char *path = target_of(root, entry->name);
    g_autofree char *parent = g_path_get_dirname(path);
    int fd = -1;

    if (g_mkdir_with_parents(parent, 0700) == 0)
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        eb_set_error(error, errno == ENOSPC ? EB_ERROR_QUOTA : EB_ERROR_FAILED, "restore.write", "%s: %s", path,
                     g_strerror(errno));
    return fd;
}

static gboolean
counts_none(sqlite3 *db, const char *sql, const char *name, GError **error)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(db, sql, error);

    if (row == NULL)
        return FALSE;
    if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int64(row, 0) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, "backup.foreign",
                 "%s in the backup holds more than a database of errand-box does", name);
    return FALSE;
}

/* Before anything is written: a trigger or a view of somebody else's would run with the first statement. */
static gboolean
check_foreign(const char *path, const char *name, GError **error)
{
    sqlite3 *db = NULL;
    gboolean good = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
                                    NULL) == SQLITE_OK;

    if (!good)
        eb_store_set_error(error, db, "open the database");
    good = good && sqlite3_exec(db, "PRAGMA trusted_schema = OFF", NULL, NULL, NULL) == SQLITE_OK &&
           counts_none(db, FOREIGN, name, error);
    if (!good && error != NULL && *error == NULL)
        eb_store_set_error(error, db, "open the database");
    sqlite3_close(db);
    return good;
}

static gboolean
settle_database(sqlite3 *db, const char *name, GError **error)
{
    if (!counts_none(db, ODD_IDS, name, error))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(settle_messages); i++) {
        g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, settle_messages[i], error);
        if (statement == NULL || !eb_store_step_done(statement, error))
            return FALSE;
    }
    return TRUE;
}

/* The same checks as at every start, migration included, before anything of the old state is touched. */
static gboolean
check_databases(const char *root, const EbArchiveManifest *manifest, GError **error)
{
    gboolean found = FALSE;

    for (guint i = 0; i < manifest->files->len; i++) {
        const EbArchiveFile *file = manifest->files->pdata[i];
        g_autofree char *path = target_of(root, file->name);
        if (!g_str_has_suffix(file->name, "state.db"))
            continue;
        found = found || strcmp(file->name, "state.db") == 0;
        sqlite3 *db = check_foreign(path, file->name, error) ? eb_store_open_blocking(path, error) : NULL;
        gboolean good = db != NULL && settle_database(db, file->name, error);
        /* The write-ahead log goes with the last connection. */
        sqlite3_close(db);
        if (!good) {
            g_prefix_error(error, "the backup cannot be used: ");
            return FALSE;
        }
    }
    if (!found)
        eb_set_error(error, EB_ERROR_INVALID, "backup.foreign", "the backup holds no database of a service");
    return found;
}

static gboolean
make_ground(const char *state_dir, const char *root, guint64 *room, GError **error)
{
    static const char *const dirs[] = {"sessions", "try"};
    struct statvfs info;

    if (statvfs(state_dir, &info) != 0 || g_mkdir_with_parents(root, 0700) != 0) {
        eb_set_error(error, EB_ERROR_DENIED, "restore.write", "%s: %s", root, g_strerror(errno));
        return FALSE;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *path = g_build_filename(root, dirs[i], NULL);
        if (g_mkdir(path, 0700) != 0) {
            eb_set_error(error, EB_ERROR_DENIED, "restore.write", "%s: %s", path, g_strerror(errno));
            return FALSE;
        }
    }
    guint64 free_bytes = (guint64)info.f_bavail * info.f_frsize;
    *room = free_bytes > EB_RESTORE_RESERVE ? free_bytes - EB_RESTORE_RESERVE : 0;
    return TRUE;
}

EbArchiveManifest *
eb_restore_read(const char *state_dir, int fd, char **aside, GError **error)
{
    g_autofree char *root = g_build_filename(state_dir, EB_RESTORE_PARTIAL, "new", NULL);
    g_autoptr(EbArchiveManifest) manifest = NULL;
    guint64 room = 0;
    gboolean good = FALSE;

    *aside = NULL;
    if (!eb_restore_settle(state_dir, NULL, error))
        return NULL;
    if (make_ground(state_dir, root, &room, error))
        manifest = eb_archive_read(fd, room, open_target, root, error);
    if (manifest != NULL && check_databases(root, manifest, error))
        good = eb_restore_decide(state_dir, aside, error);
    if (!good && !eb_restore_is_pending(state_dir)) {
        int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0) {
            eb_tree_remove_at(dir, EB_RESTORE_PARTIAL, REMOVE_DEADLINE_MS, NULL, NULL);
            close(dir);
        }
    }
    return good ? g_steal_pointer(&manifest) : NULL;
}
