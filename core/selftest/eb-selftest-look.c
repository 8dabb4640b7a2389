/* SPDX-License-Identifier: MIT */
#include "core/selftest/eb-selftest-look.h"

#include "core/session/eb-session-dirs.h"
#include "core/session/eb-session-manager.h"
#include "core/state/eb-session-store.h"
#include "core/state/eb-store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000
#define MAX_FILES 10000

static void
row_free(gpointer data)
{
    EbSelftestRow *row = data;
    g_free(row->id);
    g_free(row->state);
    g_free(row->run);
    g_free(row->instance);
    g_free(row->agent_session);
    g_free(row);
}

static void
message_free(gpointer data)
{
    EbSelftestMessage *message = data;
    g_free(message->id);
    g_free(message->session);
    g_free(message->body);
    g_free(message->state);
    g_free(message);
}

static GHashTable *
new_set(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

EbSelftestLook *
eb_selftest_look_new(void)
{
    EbSelftestLook *self = g_new0(EbSelftestLook, 1);

    self->rows = g_ptr_array_new_with_free_func(row_free);
    self->messages = g_ptr_array_new_with_free_func(message_free);
    self->directories = new_set();
    self->whole = new_set();
    self->running = new_set();
    self->locks = g_ptr_array_new_with_free_func(g_free);
    self->mounts = g_ptr_array_new_with_free_func(g_free);
    self->sockets = g_ptr_array_new_with_free_func(g_free);
    self->given = new_set();
    self->instances = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return self;
}

void
eb_selftest_look_free(EbSelftestLook *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->rows);
    g_ptr_array_unref(self->messages);
    g_hash_table_unref(self->directories);
    g_hash_table_unref(self->whole);
    g_hash_table_unref(self->running);
    g_ptr_array_unref(self->locks);
    g_ptr_array_unref(self->mounts);
    g_ptr_array_unref(self->sockets);
    g_hash_table_unref(self->given);
    g_hash_table_unref(self->instances);
    g_free(self);
}

/* --- the database --- */

static gpointer
row_of(sqlite3_stmt *statement)
{
    EbSelftestRow *row = g_new0(EbSelftestRow, 1);

    row->id = eb_store_column_dup(statement, 0);
    row->state = eb_store_column_dup(statement, 1);
    row->run = eb_store_column_dup(statement, 2);
    row->instance = eb_store_column_dup(statement, 3);
    row->agent_session = eb_store_column_dup(statement, 4);
    return row;
}

static gpointer
message_of(sqlite3_stmt *statement)
{
    EbSelftestMessage *message = g_new0(EbSelftestMessage, 1);

    message->id = eb_store_column_dup(statement, 0);
    message->body = eb_store_column_dup(statement, 1);
    message->state = eb_store_column_dup(statement, 2);
    message->session = eb_store_column_dup(statement, 3);
    return message;
}

static gpointer
count_of(sqlite3_stmt *statement)
{
    return GUINT_TO_POINTER(sqlite3_column_int(statement, 0));
}

static GPtrArray *
collect(sqlite3 *db, const char *sql, EbStoreRowFunc row, GDestroyNotify free_row, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db, sql, error);
    return statement != NULL ? eb_store_collect(db, statement, row, free_row, "read the database", error) : NULL;
}

/* All three in one transaction: one moment of the service's life. */
static gboolean
read_tables(EbSelftestLook *self, sqlite3 *db, GError **error)
{
    sqlite3_busy_timeout(db, BUSY_MS);
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    GPtrArray *rows =
        collect(db, "SELECT id, state, run, instance, agent_session FROM session", row_of, row_free, error);
    if (rows == NULL)
        return FALSE;
    g_ptr_array_unref(self->rows);
    self->rows = rows;
    GPtrArray *messages = collect(db, "SELECT id, body, state, session FROM message", message_of, message_free, error);
    if (messages == NULL)
        return FALSE;
    g_ptr_array_unref(self->messages);
    self->messages = messages;
    g_autoptr(GPtrArray) counts = collect(db,
                                          "SELECT count(*) FROM question WHERE state = 'open' AND session NOT IN"
                                          " (SELECT id FROM session WHERE state <> 'ended')",
                                          count_of, NULL, error);
    if (counts == NULL)
        return FALSE;
    self->open_questions = counts->len > 0 ? GPOINTER_TO_UINT(counts->pdata[0]) : 0;
    return TRUE;
}

static gboolean
read_database(EbSelftestLook *self, const char *root, GError **error)
{
    g_autofree char *path = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    sqlite3 *db = NULL;

    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return TRUE; /* killed before there was one */
    gboolean good = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;
    if (!good)
        eb_store_set_error(error, db, "open the database");
    else
        good = read_tables(self, db, error);
    sqlite3_close(db);
    return good;
}

/* --- directories --- */

static gboolean
is_directory(const char *root, const char *id, const char *name)
{
    g_autofree char *path = g_build_filename(root, "sessions", id, name, NULL);
    struct stat info;

    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void
read_directories(EbSelftestLook *self, const char *root)
{
    g_autoptr(GPtrArray) ids = eb_session_dirs_list(root);
    g_autofree char *locks = g_build_filename(root, "locks", NULL);
    g_autoptr(GDir) dir = g_dir_open(locks, 0, NULL);
    const char *name;

    for (guint i = 0; i < ids->len; i++) {
        const char *id = ids->pdata[i];
        g_hash_table_add(self->directories, g_strdup(id));
        if (is_directory(root, id, "state"))
            g_hash_table_add(self->whole, g_strdup(id));
        if (is_directory(root, id, "run"))
            g_hash_table_add(self->running, g_strdup(id));
    }
    while (dir != NULL && self->locks->len < MAX_FILES && (name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(self->locks, g_strdup(name));
}

/* A guest writes it: never through a link, never a device, never more than there is room for. */
static char *
read_prompts(int projects, const char *project)
{
    int dir = openat(projects, project, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = dir >= 0 ? openat(dir, "prompts", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    struct stat info;
    char *text = NULL;

    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        gsize size = (gsize)CLAMP(info.st_size, 0, EB_SELFTEST_MAX_PROMPTS_BYTES);
        text = g_malloc(size + 1);
        ssize_t got = pread(fd, text, size, 0);
        text[MAX(got, 0)] = '\0';
    }
    if (fd >= 0)
        close(fd);
    if (dir >= 0)
        close(dir);
    return text;
}

static void
read_given(EbSelftestLook *self, const char *root)
{
    g_autofree char *path = g_build_filename(root, "home", "projects", NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    int projects = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *name;

    for (guint n = 0; dir != NULL && projects >= 0 && n < MAX_FILES && (name = g_dir_read_name(dir)) != NULL; n++) {
        g_autofree char *text = read_prompts(projects, name);
        g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
        for (char **line = lines; *line != NULL; line++) {
            guint count = GPOINTER_TO_UINT(g_hash_table_lookup(self->given, *line));
            if (**line != '\0')
                g_hash_table_replace(self->given, g_strdup(*line), GUINT_TO_POINTER(count + 1));
        }
    }
    if (projects >= 0)
        close(projects);
}

char *
eb_selftest_read_home(const char *root)
{
    g_autofree char *path = g_build_filename(root, "locks", "home-id", NULL);
    char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? g_strstrip(text) : NULL;
}

/* --- the kernel's tables --- */

static gboolean
is_below(const char *path, const char *root)
{
    const char *at = strstr(path, root);
    return at != NULL && (at[strlen(root)] == '/' || at[strlen(root)] == '\0');
}

GPtrArray *
eb_selftest_list_mounts(const char *table, const char *root)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) lines = g_strsplit(table, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        /* id parent major:minor root mount-point ...; the root of a bind mount is its path in its own file system */
        g_auto(GStrv) fields = g_strsplit(*line, " ", 6);
        if (g_strv_length(fields) == 6 && (is_below(fields[3], root) || is_below(fields[4], root)))
            g_ptr_array_add(found, g_strdup(fields[4]));
    }
    return found;
}

GPtrArray *
eb_selftest_list_sockets(const char *table, const char *root)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) lines = g_strsplit(table, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        /* Num RefCount Protocol Flags Type St Inode Path; bound ones alone have a path, both ends of a listener's
         * connections have it as well. */
        const char *path = strchr(*line, '/');
        if (path != NULL && is_below(path, root) && !g_ptr_array_find_with_equal_func(found, path, g_str_equal, NULL))
            g_ptr_array_add(found, g_strdup(path));
    }
    return found;
}

static char *
read_table(const char *path)
{
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? text : g_strdup("");
}

EbSelftestLook *
eb_selftest_look(const char *root, GHashTable *instances, GError **error)
{
    g_autoptr(EbSelftestLook) self = eb_selftest_look_new();

    g_hash_table_unref(self->instances);
    self->instances = instances;
    /* The agents' own words first: a prompt that stands there is in the journal since before. */
    read_given(self, root);
    read_directories(self, root);
    if (!read_database(self, root, error))
        return NULL;
    g_autofree char *mounts = read_table("/proc/self/mountinfo");
    g_autofree char *sockets = read_table("/proc/net/unix");
    g_ptr_array_unref(self->mounts);
    self->mounts = eb_selftest_list_mounts(mounts, root);
    g_ptr_array_unref(self->sockets);
    self->sockets = eb_selftest_list_sockets(sockets, root);
    return g_steal_pointer(&self);
}
