/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-gc-images.h"

#define DEADLINE_MS 20000
#define REMOVE_DEADLINE_MS 60000

GPtrArray *
eb_gc_images_pick(const GPtrArray *images, const GPtrArray *instances, gint64 now, guint grace_s)
{
    g_autoptr(GHashTable) used = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *picked = g_ptr_array_new();

    for (guint i = 0; i < instances->len; i++) {
        const EbInstanceInfo *instance = instances->pdata[i];
        if (instance->image != NULL)
            g_hash_table_add(used, instance->image);
    }
    for (guint i = 0; i < images->len; i++) {
        EbImageInfo *image = images->pdata[i];
        gboolean ours = g_hash_table_lookup(image->properties, "errand.recipe") != NULL;
        gboolean named = image->alias != NULL && *image->alias != '\0';
        if (ours && !named && image->fingerprint != NULL && image->created_unix + grace_s <= now &&
            !g_hash_table_contains(used, image->fingerprint))
            g_ptr_array_add(picked, image);
    }
    return picked;
}

/* --- doing it --- */

typedef struct {
    EbContainerBackend *backend;
    guint grace_s;
    gboolean plan;
    GPtrArray *images; /* (nullable) */
    GPtrArray *picked; /* (nullable) */
    guint next;        /* of @picked */
    EbGcClass *class;
} Job;

static void
job_free(gpointer data)
{
    Job *job = data;

    g_clear_pointer(&job->picked, g_ptr_array_unref);
    g_clear_pointer(&job->images, g_ptr_array_unref);
    g_clear_pointer(&job->class, eb_gc_class_free);
    g_object_unref(job->backend);
    g_free(job);
}

/* @task: (transfer full), as of all below */
static void
finish(GTask *task)
{
    Job *job = g_task_get_task_data(task);

    job->class->after = job->class->before - job->class->removed;
    g_task_return_pointer(task, g_steal_pointer(&job->class), (GDestroyNotify)eb_gc_class_free);
    g_object_unref(task);
}

static void remove_next(GTask *task);

static void
on_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Job *job = g_task_get_task_data(task);
    const EbImageInfo *image = job->picked->pdata[job->next++];
    g_autoptr(GError) error = NULL;

    if (eb_container_backend_image_remove_finish(EB_CONTAINER_BACKEND(source), result, &error)) {
        job->class->removed++;
        job->class->bytes += image->size_bytes;
    } else {
        eb_gc_class_note(job->class, "image %.12s stays: %s", image->fingerprint, error->message);
    }
    remove_next(task);
}

static void
remove_next(GTask *task)
{
    Job *job = g_task_get_task_data(task);

    if (job->next >= job->picked->len) {
        finish(task);
        return;
    }
    const EbImageInfo *image = job->picked->pdata[job->next];
    eb_container_backend_image_remove_async(job->backend, image->fingerprint, REMOVE_DEADLINE_MS, NULL, on_removed,
                                            task);
}

static void
on_instances(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Job *job = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) instances = eb_container_backend_list_finish(EB_CONTAINER_BACKEND(source), result, &error);

    if (instances == NULL) {
        eb_gc_class_note(job->class, "unknown: %s", error->message);
        finish(task);
        return;
    }
    job->picked = eb_gc_images_pick(job->images, instances, g_get_real_time() / G_USEC_PER_SEC, job->grace_s);
    job->class->before = job->picked->len;
    for (guint i = 0; job->plan && i < job->picked->len; i++)
        job->class->bytes += ((const EbImageInfo *)job->picked->pdata[i])->size_bytes;
    if (job->plan)
        finish(task);
    else
        remove_next(task);
}

static void
on_images(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Job *job = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;

    job->images = eb_container_backend_image_info_finish(EB_CONTAINER_BACKEND(source), result, &error);
    if (job->images == NULL) {
        eb_gc_class_note(job->class, "unknown: %s", error->message);
        finish(task);
        return;
    }
    /* Instances after the images: one made meanwhile is seen. */
    eb_container_backend_list_async(job->backend, NULL, DEADLINE_MS, NULL, on_instances, task);
}

void
eb_gc_images_async(EbContainerBackend *backend, guint grace_s, gboolean plan, GAsyncReadyCallback callback,
                   gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    Job *job = g_new0(Job, 1);

    g_task_set_source_tag(task, eb_gc_images_async);
    job->backend = g_object_ref(backend);
    job->grace_s = grace_s;
    job->plan = plan;
    job->class = eb_gc_class_new("images");
    g_task_set_task_data(task, job, job_free);
    eb_container_backend_image_info_async(backend, NULL, DEADLINE_MS, NULL, on_images, task);
}

EbGcClass *
eb_gc_images_finish(GAsyncResult *result)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_gc_images_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), NULL);
}
