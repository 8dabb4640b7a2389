/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-backup.h"

#include "core/base/eb-tree-remove.h"
#include "core/state/eb-store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATABASE "state.db"
#define TRY_DIR "try"
#define BUSY_TIMEOUT_MS 30000
#define REMOVE_DEADLINE_MS 60000
#define MAX_TRIES 10000

void
eb_backup_config_free(EbBackupConfig *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_bytes_unref(self->content);
    g_free(self);
}

static GBytes *
read_bounded(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    g_autofree char *content = g_malloc(EB_ARCHIVE_MAX_CONFIG + 1);
    struct stat info;
    gsize length = 0;
    ssize_t n = -1;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        while (length <= EB_ARCHIVE_MAX_CONFIG &&
               (n = read(fd, content + length, EB_ARCHIVE_MAX_CONFIG + 1 - length)) > 0)
            length += (gsize)n;
    close(fd);
    return n == 0 && length <= EB_ARCHIVE_MAX_CONFIG ? g_bytes_new(content, length) : NULL;
}

GPtrArray *
eb_backup_read_config(const char *const *files, guint *left_out)
{
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)eb_backup_config_free);

    *left_out = 0;
    for (guint i = 0; files[i] != NULL; i++) {
        g_autofree char *base = g_path_get_basename(files[i]);
        g_autofree char *name = i == 0 ? g_strdup("errand-box.toml") : g_build_filename("conf.d", base, NULL);
        g_autofree char *whole = g_strconcat("etc/", name, NULL);
        GBytes *content = eb_archive_check_name(whole) ? read_bounded(files[i]) : NULL;
        if (content == NULL) {
            (*left_out)++;
            continue;
        }
        EbBackupConfig *config = g_new0(EbBackupConfig, 1);
        config->name = g_steal_pointer(&name);
        config->content = content;
        g_ptr_array_add(all, config);
    }
    return all;
}

/* --- databases --- */

static gint64
query(sqlite3 *db, const char *sql)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(db, sql, NULL);
    return row != NULL && sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : -1;
}

/* VACUUM INTO reads one consistent state, also beside a writer, and checks every page on its way. */
static gboolean
snapshot(const char *from, const char *to, gint64 *schema, gint64 *sessions, GError **error)
{
    sqlite3 *db = NULL;
    gboolean good = FALSE;

    if (sqlite3_open_v2(from, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        eb_store_set_error(error, db, "open the database");
    } else {
        sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
        sqlite3_stmt *copy = eb_store_prepare(db, "VACUUM INTO ?1", error);
        if (copy != NULL) {
            eb_store_bind_text(copy, 1, to);
            good = eb_store_step_done(copy, error);
            sqlite3_finalize(copy);
        }
    }
    sqlite3_close(db);
    if (!good) {
        g_prefix_error(error, "%s: ", from);
        return FALSE;
    }
    if (sqlite3_open_v2(to, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) {
        *schema = query(db, "PRAGMA user_version");
        *sessions = query(db, "SELECT count(*) FROM session");
    }
    sqlite3_close(db);
    if (*sessions >= 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, "state.damaged", "%s holds no sessions table: it is no database of ours",
                 from);
    return FALSE;
}

typedef struct {
    const char *state_dir;
    char *temp;
    int fd;
    EbArchiveManifest *manifest;
} Backup;

static gboolean
add_database(Backup *self, const char *name, gint64 *schema, GError **error)
{
    g_autofree char *from = g_build_filename(self->state_dir, name, NULL);
    g_autofree char *to = g_build_filename(self->temp, "snapshot.db", NULL);
    gint64 sessions = -1;

    if (!snapshot(from, to, schema, &sessions, error))
        return FALSE;
    int file = open(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    gboolean good = file >= 0 && eb_archive_write_file(self->fd, name, file, self->manifest, error);
    if (file < 0)
        eb_set_error(error, EB_ERROR_FAILED, "backup.read", "%s: %s", to, g_strerror(errno));
    else
        close(file);
    unlink(to);
    self->manifest->sessions += sessions;
    return good;
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static gboolean
add_tries(Backup *self, GError **error)
{
    g_autofree char *path = g_build_filename(self->state_dir, TRY_DIR, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *entry;

    while (dir != NULL && names->len < MAX_TRIES && (entry = g_dir_read_name(dir)) != NULL) {
        g_autofree char *name = g_build_filename(TRY_DIR, entry, DATABASE, NULL);
        g_autofree char *whole = g_build_filename(self->state_dir, name, NULL);
        struct stat info;
        if (eb_archive_check_name(name) && lstat(whole, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
            g_ptr_array_add(names, g_steal_pointer(&name));
    }
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        gint64 schema = -1;
        if (!add_database(self, names->pdata[i], &schema, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_all(Backup *self, const GPtrArray *config, GError **error)
{
    static const char marker[] = G_STRINGIFY(EB_ARCHIVE_FORMAT) "\n";

    if (!eb_archive_write_bytes(self->fd, EB_ARCHIVE_MARKER, marker, strlen(marker), self->manifest, error) ||
        !add_database(self, DATABASE, &self->manifest->schema, error) || !add_tries(self, error))
        return FALSE;
    for (guint i = 0; i < config->len; i++) {
        const EbBackupConfig *file = config->pdata[i];
        g_autofree char *name = g_strconcat("etc/", file->name, NULL);
        if (!eb_archive_write_bytes(self->fd, name, g_bytes_get_data(file->content, NULL),
                                    g_bytes_get_size(file->content), self->manifest, error))
            return FALSE;
    }
    return eb_archive_write_end(self->fd, self->manifest, error);
}

static gboolean
check_there(const char *state_dir, GError **error)
{
    g_autofree char *path = g_build_filename(state_dir, DATABASE, NULL);
    struct stat info;

    if (lstat(path, &info) == 0)
        return TRUE;
    if (errno == ENOENT)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "backup.nothing", "there is nothing to back up yet: %s does not exist",
                     path);
    else
        eb_set_error(error, EB_ERROR_DENIED, "state.denied", "%s: %s", path, g_strerror(errno));
    return FALSE;
}

EbArchiveManifest *
eb_backup_write(const char *state_dir, int fd, const GPtrArray *config, GError **error)
{
    Backup self = {.state_dir = state_dir, .fd = fd};
    g_autoptr(EbArchiveManifest) manifest = eb_archive_manifest_new();
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();

    if (!check_there(state_dir, error))
        return NULL;
    self.temp = g_build_filename(state_dir, EB_BACKUP_TEMP_PREFIX "XXXXXX", NULL);
    g_autofree char *temp = self.temp;
    if (g_mkdtemp(temp) == NULL) {
        eb_set_error(error, EB_ERROR_DENIED, "backup.temporary", "%s: %s", temp, g_strerror(errno));
        return NULL;
    }
    int lock = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (lock >= 0)
        flock(lock, LOCK_EX | LOCK_NB);
    manifest->version = g_strdup(EB_VERSION);
    manifest->created = g_date_time_format_iso8601(now);
    self.manifest = manifest;
    gboolean good = write_all(&self, config, error);
    int parent = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0) {
        g_autofree char *name = g_path_get_basename(temp);
        eb_tree_remove_at(parent, name, REMOVE_DEADLINE_MS, NULL, NULL);
        close(parent);
    }
    if (lock >= 0)
        close(lock);
    return good ? g_steal_pointer(&manifest) : NULL;
}
