/* SPDX-License-Identifier: MIT */
/* Stopping one session, and closing all of them. */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/session/eb-session-manager-private.h"

#include "core/session/eb-router.h"
#include "core/session/eb-session-dirs.h"
#include "core/session/eb-session-sweep.h"

/* Beyond what ending one session may take, all of them end at once. */
#define CLOSE_SLACK_MS 60000

typedef struct {
    char *id; /* (nullable): NULL = all */
    gboolean remove;
} EbWait;

static void
wait_free(gpointer data)
{
    EbWait *wait = data;
    g_free(wait->id);
    g_free(wait);
}

/* --- removing --- */

typedef struct {
    char *state_root;
    char *id;
} EbRemoval;

static void
removal_free(gpointer data)
{
    EbRemoval *removal = data;
    g_free(removal->state_root);
    g_free(removal->id);
    g_free(removal);
}

static void
remove_in_worker(GTask *task)
{
    EbRemoval *removal = g_task_get_task_data(task);
    GError *error = NULL;
    if (eb_session_dirs_remove(removal->state_root, removal->id, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
on_row_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbSessionManager *self = g_task_get_source_object(task);
    EbWait *wait = g_task_get_task_data(task);
    GError *error = NULL;
    if (!eb_session_store_finish(EB_STORE(source), result, &error)) {
        g_task_return_error(task, error);
        return;
    }
    eb_log_step("remove.done", "EB_SESSION", wait->id);
    g_hash_table_remove(self->records, wait->id);
    eb_host_desk_forget(self->desk, wait->id, "closed: the session was removed");
    g_task_return_boolean(task, TRUE);
}

static void
on_dirs_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbSessionManager *self = g_task_get_source_object(task);
    EbWait *wait = g_task_get_task_data(task);
    GError *error = NULL;
    if (!g_task_propagate_boolean(G_TASK(result), &error)) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    eb_log_step("remove.row", "EB_SESSION", wait->id);
    eb_session_store_remove_async(self->parts->store, wait->id, NULL, on_row_removed, task);
}

static void
on_marked_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbSessionManager *self = g_task_get_source_object(task);
    EbWait *wait = g_task_get_task_data(task);
    GError *error = NULL;
    if (!eb_session_store_finish(EB_STORE(source), result, &error)) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    EbRemoval *removal = g_new0(EbRemoval, 1);
    removal->state_root = g_strdup(self->parts->state_root);
    removal->id = g_strdup(wait->id);
    eb_log_step("remove.directories", "EB_SESSION", wait->id);
    GTask *job = g_task_new(NULL, NULL, on_dirs_removed, task);
    g_task_set_task_data(job, removal, removal_free);
    eb_worker_run(self->parts->disk, job, remove_in_worker);
}

/* Written down first: a kill between directories and row would leave a session that is listed and cannot be continued.
 * @task: (transfer full) */
static void
remove_session(EbSessionManager *self, GTask *task)
{
    EbWait *wait = g_task_get_task_data(task);
    EbSessionRecord *record = g_hash_table_lookup(self->records, wait->id);
    eb_log_step("remove.mark", "EB_SESSION", wait->id);
    eb_questions_close_session(self->parts->questions, wait->id);
    g_free(record->end_reason);
    record->end_reason = g_strdup(EB_SESSION_REMOVED);
    eb_session_store_save_async(self->parts->store, record, NULL, on_marked_removed, task);
}

static void
on_marked_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    if (eb_session_store_finish(EB_STORE(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

/* A session without a guest: it is not continued by itself any more. */
static void
mark_stopped(EbSessionManager *self, GTask *task)
{
    EbWait *wait = g_task_get_task_data(task);
    EbSessionRecord *record = g_hash_table_lookup(self->records, wait->id);
    if (record == NULL) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    eb_questions_close_session(self->parts->questions, record->id);
    eb_log_step("stop.mark", "EB_SESSION", record->id);
    g_free(record->end_reason);
    record->end_reason = g_strdup(eb_session_end_to_string(EB_SESSION_END_STOPPED));
    eb_session_store_save_async(self->parts->store, record, NULL, on_marked_stopped, task);
}

/* --- closing --- */

static void
finish_close(EbSessionManager *self, GTask *task)
{
    eb_log_step("close.store", "EB_REASON", NULL);
    eb_clear_source(&self->close_timer);
    eb_egress_log_flush(self->parts->egress);
    eb_store_close(self->parts->store);
    /* Their last jobs are done: the session's ends waited for them. */
    eb_worker_close(self->parts->disk);
    g_clear_pointer(&self->state_lock, eb_dir_lock_release);
    g_clear_pointer(&self->run_lock, eb_dir_lock_release);
    g_task_return_boolean(task, TRUE);
    g_object_unref(task);
}

static void
on_last_sweep(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    g_autoptr(GError) error = NULL;
    if (!eb_session_sweep_guests_finish(result, NULL, &error))
        eb_debug("guests of dead runs are left to the next start: %s", error->message);
    finish_close(g_task_get_source_object(task), task);
}

/* A short run, like a try, lives for less than one round of the sweep; what a run killed beside it had asked for may
 * have come to be meanwhile. @task: (transfer full) */
static void
sweep_and_finish(EbSessionManager *self, GTask *task)
{
    if (self->swept && !self->sweeping)
        eb_session_sweep_guests_async(self->parts, NULL, NULL, on_last_sweep, task);
    else
        finish_close(self, task);
}

void
eb_session_manager_wake_waits(EbSessionManager *self)
{
    for (guint i = 0; i < self->waits->len;) {
        GTask *task = self->waits->pdata[i];
        EbWait *wait = g_task_get_task_data(task);
        gboolean over = wait->id != NULL ? !g_hash_table_contains(self->sessions, wait->id)
                                         : g_hash_table_size(self->sessions) == 0;
        if (!over) {
            i++;
            continue;
        }
        g_ptr_array_steal_index(self->waits, i);
        if (wait->id == NULL)
            sweep_and_finish(self, task);
        else if (wait->remove && g_hash_table_contains(self->records, wait->id))
            remove_session(self, task);
        else {
            g_task_return_boolean(task, TRUE);
            g_object_unref(task);
        }
    }
}

static gboolean
on_close_late(gpointer data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(data);
    g_autoptr(EbSessionManager) alive = g_object_ref(self);
    g_clear_pointer(&self->close_timer, g_source_unref);
    for (guint i = 0; i < self->waits->len; i++) {
        GTask *task = self->waits->pdata[i];
        EbWait *wait = g_task_get_task_data(task);
        if (wait->id != NULL)
            continue;
        g_ptr_array_steal_index(self->waits, i);
        g_task_return_error(task, eb_error_new(EB_ERROR_TIMEOUT, "session.close",
                                               "%u sessions did not end in time; the next start sweeps them",
                                               g_hash_table_size(self->sessions)));
        g_object_unref(task);
        break;
    }
    return G_SOURCE_REMOVE;
}

static void
end_all(EbSessionManager *self)
{
    g_autoptr(GPtrArray) sessions = g_ptr_array_new_with_free_func(g_object_unref);
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session))
        g_ptr_array_add(sessions, g_object_ref(session));
    for (guint i = 0; i < sessions->len; i++)
        eb_session_end(sessions->pdata[i], EB_SESSION_END_SHUTDOWN, NULL);
}

void
eb_session_manager_close_async(EbSessionManager *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self));
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_manager_close_async);
    g_task_set_task_data(task, g_new0(EbWait, 1), wait_free);
    if (self->closing) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    self->closing = TRUE;
    eb_clear_source(&self->sweep_timer);
    for (guint i = 0; i < self->routers->len; i++)
        eb_router_close(self->routers->pdata[i]);
    const EbSessionConfig *config = eb_config_get_session(self->parts->config);
    guint64 late_ms = config->abort_ms + 2 * config->grace_ms + CLOSE_SLACK_MS;
    self->close_timer = g_timeout_source_new((guint)MIN(late_ms, G_MAXINT));
    g_source_set_callback(self->close_timer, on_close_late, self, NULL);
    g_source_attach(self->close_timer, g_main_context_get_thread_default());
    g_ptr_array_add(self->waits, task);
    end_all(self);
    eb_questions_let_go(self->parts->questions);
    if (g_hash_table_size(self->sessions) == 0)
        eb_session_manager_wake_waits(self);
}

gboolean
eb_session_manager_close_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
eb_session_manager_stop_session_async(EbSessionManager *self, const char *id, gboolean remove,
                                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self));
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_manager_stop_session_async);
    GError *error = NULL;
    EbWait *wait = g_new0(EbWait, 1);
    wait->id = eb_session_manager_resolve(self, id, &error);
    wait->remove = remove;
    g_task_set_task_data(task, wait, wait_free);
    if (wait->id == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    EbSession *session = g_hash_table_lookup(self->sessions, wait->id);
    if (session != NULL) {
        g_ptr_array_add(self->waits, task);
        if (remove)
            eb_session_prepare_removal(session);
        eb_session_end(session, EB_SESSION_END_STOPPED, NULL);
    } else if (remove) {
        remove_session(self, task);
    } else {
        mark_stopped(self, task);
    }
}

gboolean
eb_session_manager_stop_session_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

/* --- pinning --- */

static void
on_pinned(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    if (eb_session_store_finish(EB_STORE(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

void
eb_session_manager_pin_async(EbSessionManager *self, const char *id, gboolean pinned, GAsyncReadyCallback callback,
                             gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    GError *error = NULL;
    g_task_set_source_tag(task, eb_session_manager_pin_async);
    g_autofree char *whole = eb_session_manager_resolve(self, id, &error);
    if (whole == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    EbSessionRecord *record = g_hash_table_lookup(self->records, whole);
    record->pinned = pinned;
    eb_session_store_save_async(self->parts->store, record, NULL, on_pinned, task);
}

gboolean
eb_session_manager_pin_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
