/* SPDX-License-Identifier: MIT */
/* Upkeep of a state root by whoever holds it: the service, or `maint` while there is none. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-manager-private.h"

#include "core/session/eb-gc-disk.h"
#include "core/session/eb-gc-images.h"
#include "core/session/eb-session-manager-free.h"
#include "core/session/eb-session-sweep.h"

typedef enum { GUESTS, BROKERS, SOCKETS, SESSIONS, TRIES, LOCKS, TEMPORARY, IMAGES, IDLE, N_CLASSES } Class;
static const char *const class_names[N_CLASSES] = {"guests", "brokers",   "sockets", "sessions", "tries",
                                                   "locks",  "temporary", "images",  "idle"};

/* One gc, step after step: guests, rows, what is quick on the disk, what is not, images. */
typedef struct {
    gboolean plan;
    guint64 free_bytes; /* 0 = garbage alone */
    EbWorker *worker;   /* for what takes long */
    EbGcGround *ground;
    EbGcClass *classes[N_CLASSES];
} Gc;

static void
gc_free(gpointer data)
{
    Gc *gc = data;

    g_clear_object(&gc->worker);
    g_clear_pointer(&gc->ground, eb_gc_ground_free);
    for (guint i = 0; i < N_CLASSES; i++)
        g_clear_pointer(&gc->classes[i], eb_gc_class_free);
    g_free(gc);
}

static void
class_free(gpointer data)
{
    eb_gc_class_free(data);
}

static void
gc_finish(GTask *task)
{
    EbSessionManager *self = g_task_get_source_object(task);
    Gc *gc = g_task_get_task_data(task);
    GPtrArray *classes = g_ptr_array_new_with_free_func(class_free);

    for (guint i = 0; i < N_CLASSES; i++)
        g_ptr_array_add(classes, g_steal_pointer(&gc->classes[i]));
    self->collecting = FALSE;
    g_task_return_pointer(task, classes, (GDestroyNotify)g_ptr_array_unref);
    g_object_unref(task);
}

static void
on_freed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Gc *gc = g_task_get_task_data(task);

    eb_gc_class_free(gc->classes[IDLE]);
    gc->classes[IDLE] = eb_session_manager_free_finish(result);
    gc_finish(task);
}

static void
on_images(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    EbSessionManager *self = g_task_get_source_object(task);
    Gc *gc = g_task_get_task_data(task);
    guint64 freed = 0;

    eb_gc_class_free(gc->classes[IMAGES]);
    gc->classes[IMAGES] = eb_gc_images_finish(result);
    for (guint i = 0; i < IDLE; i++)
        freed += gc->classes[i]->bytes;
    if (freed >= gc->free_bytes)
        gc_finish(task);
    else
        eb_session_manager_free_async(self, gc->worker, gc->ground, gc->free_bytes - freed, on_freed, task);
}

static void
on_slow(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    EbSessionManager *self = g_task_get_source_object(task);
    Gc *gc = g_task_get_task_data(task);

    eb_gc_images_async(self->parts->backend, EB_GC_IMAGE_GRACE_S, gc->plan, on_images, task);
}

static void
slow_in_worker(GTask *job)
{
    Gc *gc = g_task_get_task_data(job);

    eb_gc_disk_sessions(gc->ground, gc->classes[SESSIONS]);
    eb_gc_disk_tries(gc->ground, gc->classes[TRIES]);
    eb_gc_disk_temporary(gc->ground, gc->classes[TEMPORARY]);
    eb_gc_brokers(gc->classes[BROKERS]);
    g_task_return_boolean(job, TRUE);
}

static void
on_quick(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Gc *gc = g_task_get_task_data(task);
    GTask *job = g_task_new(NULL, NULL, on_slow, task);

    /* The callback holds the task, which holds the data. */
    g_task_set_task_data(job, gc, NULL);
    eb_worker_run(gc->worker, job, slow_in_worker);
}

static void
quick_in_worker(GTask *job)
{
    Gc *gc = g_task_get_task_data(job);

    eb_gc_disk_quick(gc->ground, gc->classes[SESSIONS], gc->classes[SOCKETS], gc->classes[LOCKS]);
    g_task_return_boolean(job, TRUE);
}

static void
add_keys(GHashTable *to, GHashTable *from)
{
    GHashTableIter iter;
    gpointer id;

    g_hash_table_iter_init(&iter, from);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        g_hash_table_add(to, g_strdup(id));
}

static void
gc_fail(GTask *task, GError *error)
{
    EbSessionManager *self = g_task_get_source_object(task);

    self->collecting = FALSE;
    g_task_return_error(task, error);
    g_object_unref(task);
}

static void
on_ids(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    EbSessionManager *self = g_task_get_source_object(task);
    Gc *gc = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GPtrArray) ids = eb_session_store_ids_finish(EB_STORE(source), result, &error);

    if (ids == NULL || self->closing) {
        gc_fail(task, ids == NULL ? error : eb_error_new(EB_ERROR_BUSY, "gc.closing", "the service is ending"));
        return;
    }
    for (guint i = 0; i < ids->len; i++)
        g_hash_table_add(gc->ground->known, g_strdup(ids->pdata[i]));
    /* Whoever starts from now on makes his directories in the same worker, after this job: so what is said here stays
     * true for it. */
    add_keys(gc->ground->known, self->records);
    add_keys(gc->ground->live, self->sessions);
    GTask *job = g_task_new(NULL, NULL, on_quick, task);
    g_task_set_task_data(job, gc, NULL);
    eb_worker_run(self->parts->disk, job, quick_in_worker);
}

static void
ask_ids(GTask *task)
{
    EbSessionManager *self = g_task_get_source_object(task);

    eb_session_store_ids_async(self->parts->store, on_ids, task);
}

static void
on_counted_again(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Gc *gc = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) left = eb_session_find_guests_finish(result, &error);

    gc->classes[GUESTS]->after = left != NULL ? left->len : gc->classes[GUESTS]->before;
    gc->ground->guests_gone = left != NULL && left->len == 0;
    if (left == NULL)
        eb_gc_class_note(gc->classes[GUESTS], "unknown: %s", error->message);
    ask_ids(task);
}

static void
on_swept(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    EbSessionManager *self = g_task_get_source_object(task);
    Gc *gc = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;

    if (!eb_session_sweep_guests_finish(result, &gc->classes[GUESTS]->removed, &error))
        eb_gc_class_note(gc->classes[GUESTS], "%s", error->message);
    eb_session_find_guests_async(self->parts, eb_session_manager_is_live_instance, self, on_counted_again, task);
}

static void
on_counted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    EbSessionManager *self = g_task_get_source_object(task);
    Gc *gc = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) found = eb_session_find_guests_finish(result, &error);

    if (found == NULL)
        eb_gc_class_note(gc->classes[GUESTS], "unknown: %s", error->message);
    gc->classes[GUESTS]->before = gc->classes[GUESTS]->after = found != NULL ? found->len : 0;
    gc->ground->guests_gone = found != NULL && found->len == 0;
    if (gc->plan || found == NULL || found->len == 0)
        ask_ids(task);
    else
        eb_session_sweep_guests_async(self->parts, eb_session_manager_is_live_instance, self, on_swept, task);
}

void
eb_session_manager_gc_async(EbSessionManager *self, gboolean plan, guint64 free_bytes, GAsyncReadyCallback callback,
                            gpointer user_data)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self));
    GTask *task = g_task_new(self, NULL, callback, user_data);
    EbSessionParts *parts = self->parts;

    g_task_set_source_tag(task, eb_session_manager_gc_async);
    if (self->collecting || self->closing) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_BUSY, "%s",
                                self->closing ? "the service is ending" : "another gc is running");
        g_object_unref(task);
        return;
    }
    self->collecting = TRUE;
    Gc *gc = g_new0(Gc, 1);
    gc->plan = plan;
    gc->free_bytes = free_bytes;
    gc->worker = eb_worker_new("eb-gc", 0);
    gc->ground = eb_gc_ground_new(eb_config_get_state_dir(parts->config), parts->state_root, parts->locks_dir);
    gc->ground->plan = plan;
    gc->ground->alone = self->upkeep;
    for (guint i = 0; i < N_CLASSES; i++)
        gc->classes[i] = eb_gc_class_new(class_names[i]);
    g_task_set_task_data(task, gc, gc_free);
    eb_session_find_guests_async(parts, eb_session_manager_is_live_instance, self, on_counted, task);
}

GPtrArray *
eb_session_manager_gc_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
