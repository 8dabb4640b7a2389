/* SPDX-License-Identifier: MIT */
/* A disk is full: what nobody used for longest goes. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-manager-free.h"

#include "core/session/eb-pressure.h"

#include <string.h>

/* Named in the report; the log names all. */
#define MAX_NAMED 8

typedef struct {
    const EbGcGround *ground; /* not owned */
    EbWorker *worker;         /* (owned) */
    guint64 wanted;
    GPtrArray *records; /* (nullable) (element-type EbSessionRecord) */
    GPtrArray *items;   /* (element-type EbPressureItem) */
    GPtrArray *picked;  /* (nullable) (element-type EbPressureItem): of @items */
    GString *named;
    guint writes;
    EbGcClass *class;
} Free;

static void
item_free(gpointer data)
{
    eb_pressure_item_free(data);
}

static void
free_free(gpointer data)
{
    Free *self = data;

    g_clear_pointer(&self->picked, g_ptr_array_unref);
    g_clear_pointer(&self->items, g_ptr_array_unref);
    g_clear_pointer(&self->records, g_ptr_array_unref);
    g_clear_pointer(&self->class, eb_gc_class_free);
    g_string_free(self->named, TRUE);
    g_object_unref(self->worker);
    g_free(self);
}

/* @task: (transfer full), as of all below */
static void
finish(GTask *task)
{
    Free *self = g_task_get_task_data(task);

    self->class->after = self->class->before - MIN(self->class->before, self->class->removed);
    if (self->named->len > 0)
        eb_gc_class_note(self->class, "%s%s", self->ground->plan ? "would go: " : "gave up the state of ",
                         self->named->str);
    g_task_return_pointer(task, g_steal_pointer(&self->class), (GDestroyNotify)eb_gc_class_free);
    g_object_unref(task);
}

static void
name_item(Free *self, const EbPressureItem *item, guint index)
{
    g_autoptr(GDateTime) used = g_date_time_new_from_unix_utc(item->used_ms / 1000);
    g_autofree char *day = used != NULL ? g_date_time_format(used, "%Y-%m-%d") : g_strdup("?");

    if (index < MAX_NAMED)
        g_string_append_printf(self->named, "%s%s %s (used %s)", index > 0 ? ", " : "",
                               item->is_try ? "try" : "session", item->id, day);
    else if (index == MAX_NAMED)
        g_string_append(self->named, ", and others");
}

static void
on_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    finish(user_data);
}

static void
remove_in_worker(GTask *job)
{
    Free *self = g_task_get_task_data(job);
    guint gone = 0;
    EbGcClass sessions = {.name = "idle", .before = self->picked->len};

    for (guint i = 0; i < self->picked->len; i++) {
        const EbPressureItem *item = self->picked->pdata[i];
        g_autoptr(GError) error = NULL;
        if (item->is_try && !eb_pressure_remove_try(item, self->ground->state_dir, &error)) {
            if (error != NULL)
                eb_gc_class_note(self->class, "%s", error->message);
            continue;
        }
        self->class->bytes += item->bytes;
        self->class->removed++;
        name_item(self, item, gone++);
        eb_log_event(G_LOG_LEVEL_INFO, G_LOG_DOMAIN, "gave up what a session kept, for space", "EB_SESSION", item->id,
                     NULL);
    }
    eb_gc_disk_sessions(self->ground, &sessions);
    if (sessions.note != NULL)
        eb_gc_class_note(self->class, "%s", sessions.note);
    g_free(sessions.note);
    g_task_return_boolean(job, TRUE);
}

static void
on_set_aside(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Free *self = g_task_get_task_data(task);
    GTask *job = g_task_new(NULL, NULL, on_removed, task);

    g_task_set_task_data(job, self, NULL);
    eb_worker_run(self->worker, job, remove_in_worker);
}

static void
set_aside_in_worker(GTask *job)
{
    Free *self = g_task_get_task_data(job);

    for (guint i = self->picked->len; i > 0; i--) {
        const EbPressureItem *item = self->picked->pdata[i - 1];
        g_autoptr(GError) error = NULL;
        if (item->is_try || eb_pressure_set_aside(item, self->ground->state_root, &error))
            continue;
        eb_gc_class_note(self->class, "%s", error->message);
        g_ptr_array_remove_index(self->picked, i - 1);
    }
    g_task_return_boolean(job, TRUE);
}

static void
written(GTask *task)
{
    EbSessionManager *manager = g_task_get_source_object(task);
    Free *self = g_task_get_task_data(task);

    if (--self->writes > 0)
        return;
    /* In the worker that makes the directories of sessions: one that starts from now on finds a state of its own. */
    GTask *job = g_task_new(NULL, NULL, on_set_aside, task);
    g_task_set_task_data(job, self, NULL);
    eb_worker_run(manager->parts->disk, job, set_aside_in_worker);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Free *self = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;

    if (!eb_session_store_finish(EB_STORE(source), result, &error))
        eb_gc_class_note(self->class, "%s", error->message);
    written(task);
}

static EbSessionRecord *
record_of(EbSessionManager *manager, Free *self, const char *id)
{
    EbSessionRecord *record = g_hash_table_lookup(manager->records, id);

    for (guint i = 0; record == NULL && i < self->records->len; i++)
        if (strcmp(((EbSessionRecord *)self->records->pdata[i])->id, id) == 0)
            record = self->records->pdata[i];
    return record;
}

/* Its agent cannot go on without what it kept: the next message in its thread starts another session. FALSE: it was
 * taken up or pinned meanwhile. */
static gboolean
give_up(EbSessionManager *manager, GTask *task, const EbPressureItem *item)
{
    Free *self = g_task_get_task_data(task);
    EbSessionRecord *record = record_of(manager, self, item->id);

    if (record == NULL || record->pinned || g_hash_table_contains(manager->sessions, item->id))
        return FALSE;
    g_clear_pointer(&record->agent_session, g_free);
    g_free(record->end_reason);
    record->end_reason = g_strdup("given up for space");
    self->writes++;
    eb_session_store_save_async(manager->parts->store, record, NULL, on_written, task);
    return TRUE;
}

static void
on_picked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    EbSessionManager *manager = g_task_get_source_object(task);
    Free *self = g_task_get_task_data(task);

    if (self->ground->plan || manager->closing) {
        for (guint i = 0; i < self->picked->len; i++) {
            const EbPressureItem *item = self->picked->pdata[i];
            self->class->bytes += item->bytes;
            name_item(self, item, i);
        }
        finish(task);
        return;
    }
    self->writes = 1; /* our own, so that no answer ends it before all are asked */
    for (guint i = self->picked->len; i > 0; i--) {
        const EbPressureItem *item = self->picked->pdata[i - 1];
        if (!item->is_try && !give_up(manager, task, item))
            g_ptr_array_remove_index(self->picked, i - 1);
    }
    written(task);
}

static void
pick_in_worker(GTask *job)
{
    Free *self = g_task_get_task_data(job);

    eb_pressure_add_sessions(self->items, self->ground->state_root, self->records);
    eb_pressure_add_tries(self->items, self->ground->state_dir);
    self->picked = eb_pressure_pick(self->items, self->wanted, g_get_real_time() / 1000, &self->class->before);
    g_task_return_boolean(job, TRUE);
}

static void
on_idle(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Free *self = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;

    self->records = eb_session_store_load_finish(EB_STORE(source), result, &error);
    if (self->records == NULL) {
        eb_gc_class_note(self->class, "unknown: %s", error->message);
        finish(task);
        return;
    }
    GTask *job = g_task_new(NULL, NULL, on_picked, task);
    g_task_set_task_data(job, self, NULL);
    eb_worker_run(self->worker, job, pick_in_worker);
}

void
eb_session_manager_free_async(EbSessionManager *self, EbWorker *worker, const EbGcGround *ground, guint64 wanted,
                              GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    Free *job = g_new0(Free, 1);

    g_task_set_source_tag(task, eb_session_manager_free_async);
    job->ground = ground;
    job->worker = g_object_ref(worker);
    job->wanted = wanted;
    job->items = g_ptr_array_new_with_free_func(item_free);
    job->named = g_string_new(NULL);
    job->class = eb_gc_class_new("idle");
    g_task_set_task_data(task, job, free_free);
    eb_session_store_idle_async(self->parts->store, on_idle, task);
}

EbGcClass *
eb_session_manager_free_finish(GAsyncResult *result)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_session_manager_free_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), NULL);
}
