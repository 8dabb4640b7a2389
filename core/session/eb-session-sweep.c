/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-sweep.h"

#include "core/session/eb-dead-roots.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-project-name.h"
#include "core/session/eb-session-dirs.h"

#include <dirent.h>
#include <string.h>

#define LIST_DEADLINE_MS 20000
#define STOP_DEADLINE_MS 30000

/* --- guests --- */

typedef struct {
    EbSessionParts *parts;
    EbSweepIsLive is_live;
    gpointer live_data;
    GPtrArray *doomed; /* (element-type utf8) */
    gboolean find_only;
    guint open; /* being ended, at most EB_SWEEP_AT_ONCE */
    guint ended;
    GError *first;
} EbGuestSweep;

static void next_guests(GTask *task);

static void
guest_sweep_free(gpointer data)
{
    EbGuestSweep *sweep = data;
    g_clear_pointer(&sweep->doomed, g_ptr_array_unref);
    g_clear_error(&sweep->first);
    eb_session_parts_unref(sweep->parts);
    g_free(sweep);
}

static void
on_guest_gone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbGuestSweep *sweep = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    if (eb_container_backend_stop_finish(EB_CONTAINER_BACKEND(source), result, &error)) {
        sweep->ended++;
    } else {
        eb_warning("a guest of a dead run could not be ended: %s", error->message);
        if (sweep->first == NULL)
            sweep->first = g_steal_pointer(&error);
    }
    sweep->open--;
    next_guests(task);
}

static void
next_guests(GTask *task)
{
    EbGuestSweep *sweep = g_task_get_task_data(task);
    sweep->open++; /* our own, so that an answer that comes at once does not end it before all are asked */
    while (sweep->doomed->len > 0 && sweep->open <= EB_SWEEP_AT_ONCE) {
        g_autofree char *name = g_ptr_array_steal_index(sweep->doomed, sweep->doomed->len - 1);
        eb_log_event(G_LOG_LEVEL_INFO, G_LOG_DOMAIN, "ending a guest that a dead run left", "EB_INSTANCE", name, NULL);
        sweep->open++;
        eb_container_backend_stop_async(sweep->parts->backend, name, EB_STOP_FORCE | EB_STOP_DESTROY, 0,
                                        STOP_DEADLINE_MS, NULL, on_guest_gone, task);
    }
    if (--sweep->open == 0) {
        if (sweep->first != NULL)
            g_task_return_error(task, g_steal_pointer(&sweep->first));
        else
            g_task_return_int(task, sweep->ended);
        g_object_unref(task);
    }
}

static gboolean
is_doomed(EbGuestSweep *sweep, const EbInstanceInfo *info)
{
    const char *home = g_hash_table_lookup(info->labels, "home");
    const char *run = g_hash_table_lookup(info->labels, "run");
    if (g_strcmp0(home, sweep->parts->home_id) != 0 || run == NULL)
        return FALSE;
    if (g_str_equal(run, sweep->parts->run_id))
        return sweep->is_live != NULL && !sweep->is_live(info->name, sweep->live_data);
    if (strlen(run) > 64 || strchr(run, '/') != NULL)
        return FALSE;
    g_autofree char *lock = g_strdup_printf("run-%s.lock", run);
    /* A lock that cannot be looked at is no dead one. */
    EbDirLockState state = eb_dir_lock_look(sweep->parts->locks_dir, lock);
    return state == EB_DIR_LOCK_FREE || state == EB_DIR_LOCK_ABSENT;
}

static void
on_listed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbGuestSweep *sweep = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GPtrArray) found = eb_container_backend_list_finish(EB_CONTAINER_BACKEND(source), result, &error);
    if (found == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    for (guint i = 0; i < found->len; i++) {
        const EbInstanceInfo *info = found->pdata[i];
        if (is_doomed(sweep, info))
            g_ptr_array_add(sweep->doomed, g_strdup(info->name));
    }
    if (!sweep->find_only) {
        next_guests(task);
        return;
    }
    g_task_return_pointer(task, g_steal_pointer(&sweep->doomed), (GDestroyNotify)g_ptr_array_unref);
    g_object_unref(task);
}

EbSessionParts *
eb_session_sweep_parts_new(EbConfig *config, EbContainerBackend *backend, GError **error)
{
    g_autoptr(EbSessionParts) parts = eb_session_parts_new();
    parts->locks_dir = g_build_filename(eb_config_get_state_dir(config), "locks", NULL);
    parts->home_id = eb_session_home_id_read(parts->locks_dir);
    if (parts->home_id == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "sweep.home", "no service has run on %s yet",
                     eb_config_get_state_dir(config));
        return NULL;
    }
    parts->config = g_object_ref(config);
    parts->backend = g_object_ref(backend);
    parts->run_id = eb_session_id_new();
    return g_steal_pointer(&parts);
}

static void
look_for_guests(EbSessionParts *parts, EbSweepIsLive is_live, gpointer live_data, gboolean find_only, gpointer tag,
                GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, tag);
    EbGuestSweep *sweep = g_new0(EbGuestSweep, 1);
    sweep->find_only = find_only;
    sweep->parts = eb_session_parts_ref(parts);
    sweep->is_live = is_live;
    sweep->live_data = live_data;
    sweep->doomed = g_ptr_array_new_with_free_func(g_free);
    g_task_set_task_data(task, sweep, guest_sweep_free);
    eb_container_backend_list_async(parts->backend, NULL, LIST_DEADLINE_MS, NULL, on_listed, task);
}

void
eb_session_sweep_guests_async(EbSessionParts *parts, EbSweepIsLive is_live, gpointer live_data,
                              GAsyncReadyCallback callback, gpointer user_data)
{
    look_for_guests(parts, is_live, live_data, FALSE, eb_session_sweep_guests_async, callback, user_data);
}

void
eb_session_find_guests_async(EbSessionParts *parts, EbSweepIsLive is_live, gpointer live_data,
                             GAsyncReadyCallback callback, gpointer user_data)
{
    look_for_guests(parts, is_live, live_data, TRUE, eb_session_find_guests_async, callback, user_data);
}

GPtrArray *
eb_session_find_guests_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_session_find_guests_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

gboolean
eb_session_sweep_guests_finish(GAsyncResult *result, guint *ended, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_session_sweep_guests_async), FALSE);
    GError *local = NULL;
    gssize count = g_task_propagate_int(G_TASK(result), &local);
    if (local != NULL) {
        g_propagate_error(error, local);
        return FALSE;
    }
    if (ended != NULL)
        *ended = (guint)count;
    return TRUE;
}

/* --- all of it --- */

typedef struct {
    EbSessionParts *parts;
    GPtrArray *records; /* (element-type EbSessionRecord) */
    GPtrArray *known;   /* (element-type utf8): ids with a row that stays */
    guint writes;       /* answers of the store still to come */
    gboolean swept;
    GError *first;
} EbOpenSweep;

static void
open_sweep_free(gpointer data)
{
    EbOpenSweep *sweep = data;
    g_ptr_array_unref(sweep->records);
    g_ptr_array_unref(sweep->known);
    g_clear_error(&sweep->first);
    eb_session_parts_unref(sweep->parts);
    g_free(sweep);
}

static void
remove_stale_locks(const char *dir)
{
    DIR *stream = opendir(dir);
    if (stream == NULL)
        return;
    struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        if (!g_str_has_suffix(entry->d_name, ".lock"))
            continue;
        /* Held by nobody: taking and releasing removes the file in the one safe way. */
        g_autoptr(EbDirLock) lock = eb_dir_lock_take(dir, entry->d_name, NULL);
    }
    closedir(stream);
}

static void
clean_disk(GTask *task)
{
    EbOpenSweep *sweep = g_task_get_task_data(g_task_get_task_data(task));
    const char *root = sweep->parts->state_root;
    GError *first = NULL;
    g_autoptr(GPtrArray) ids = eb_session_dirs_list(root);
    for (guint i = 0; i < ids->len; i++) {
        const char *id = ids->pdata[i];
        GError *error = NULL;
        if (g_ptr_array_find_with_equal_func(sweep->known, id, g_str_equal, NULL))
            eb_session_dirs_remove_run(root, id, &error);
        else
            eb_session_dirs_remove(root, id, &error);
        if (first == NULL)
            first = g_steal_pointer(&error);
        g_clear_error(&error);
    }
    /* Only when their guests are known to be gone: the mounts of a live one are the directories that go. */
    if (sweep->swept)
        eb_dead_roots_sweep(eb_config_get_state_dir(sweep->parts->config), root);
    remove_stale_locks(sweep->parts->locks_dir);
    if (first != NULL)
        g_task_return_error(task, first);
    else
        g_task_return_boolean(task, TRUE);
}

static void
on_disk_clean(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbOpenSweep *sweep = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    /* What cannot be removed (files of another uid) costs disk, not safety: the service runs, and says so. */
    if (!g_task_propagate_boolean(G_TASK(result), &error))
        eb_warning("what a dead run left could not be removed: %s", error->message);
    if (sweep->first != NULL)
        g_task_return_error(task, g_steal_pointer(&sweep->first));
    else
        g_task_return_boolean(task, sweep->swept);
}

static void
write_done(GTask *task)
{
    EbOpenSweep *sweep = g_task_get_task_data(task);
    if (--sweep->writes > 0)
        return;
    eb_log_step("start.disk", "EB_REASON", NULL);
    GTask *job = g_task_new(NULL, NULL, on_disk_clean, task);
    g_task_set_task_data(job, task, NULL); /* the callback holds it */
    eb_worker_run(sweep->parts->disk, job, clean_disk);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpenSweep *sweep = g_task_get_task_data(task);
    GError *error = NULL;
    if (!eb_session_store_finish(EB_STORE(source), result, &error)) {
        if (sweep->first == NULL)
            sweep->first = error;
        else
            g_error_free(error);
    }
    write_done(task);
}

static void
settle_record(GTask *task, EbSessionRecord *record)
{
    EbOpenSweep *sweep = g_task_get_task_data(task);
    sweep->writes++;
    g_free(record->state);
    record->state = g_strdup("ended");
    g_clear_pointer(&record->instance, g_free);
    g_clear_pointer(&record->run, g_free);
    g_free(record->end_reason);
    record->end_reason = g_strdup("service stopped");
    eb_session_store_save_async(sweep->parts->store, record, NULL, on_written, task);
}

static void
settle_records(GTask *task)
{
    EbOpenSweep *sweep = g_task_get_task_data(task);
    eb_log_step("start.rows", "EB_REASON", NULL);
    sweep->writes = 1; /* our own, so that no answer ends it before all are asked */
    for (guint i = 0; i < sweep->records->len;) {
        EbSessionRecord *record = sweep->records->pdata[i];
        gboolean live = g_strcmp0(record->state, "ended") != 0;
        gboolean never = live && record->agent_session == NULL;
        /* The directories of what is not known by then go with the others. */
        if (never || g_strcmp0(record->end_reason, EB_SESSION_REMOVED) == 0) {
            sweep->writes++;
            eb_session_store_remove_async(sweep->parts->store, record->id, NULL, on_written, task);
            g_ptr_array_remove_index(sweep->records, i);
            continue;
        }
        if (live)
            settle_record(task, record);
        g_ptr_array_add(sweep->known, g_strdup(record->id));
        i++;
    }
    write_done(task);
}

static void
on_guests_swept(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpenSweep *sweep = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    sweep->swept = eb_session_sweep_guests_finish(result, NULL, &error);
    if (!sweep->swept)
        eb_log_event(G_LOG_LEVEL_INFO, G_LOG_DOMAIN, "guests of dead runs are looked for later", "EB_REASON",
                     error->message, NULL);
    settle_records(task);
}

void
eb_session_sweep_open_async(EbSessionParts *parts, GPtrArray *records, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, eb_session_sweep_open_async);
    EbOpenSweep *sweep = g_new0(EbOpenSweep, 1);
    sweep->parts = eb_session_parts_ref(parts);
    sweep->records = g_ptr_array_ref(records);
    sweep->known = g_ptr_array_new_with_free_func(g_free);
    g_task_set_task_data(task, sweep, open_sweep_free);
    eb_log_step("start.guests", "EB_REASON", NULL);
    /* Guests first: their mounts are the directories that go. */
    eb_session_sweep_guests_async(parts, NULL, NULL, on_guests_swept, task);
}

gboolean
eb_session_sweep_open_finish(GAsyncResult *result, gboolean *swept, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_session_sweep_open_async), FALSE);
    GError *local = NULL;
    gboolean all = g_task_propagate_boolean(G_TASK(result), &local);
    if (local != NULL) {
        g_propagate_error(error, local);
        return FALSE;
    }
    *swept = all;
    return TRUE;
}
