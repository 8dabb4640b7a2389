/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-ensure.h"

#include "core/base/eb-worker.h"
#include "core/provision/eb-image-cache.h"

#include <string.h>

#define INFO_DEADLINE_MS 15000
#define IMPORT_DEADLINE_MS 600000

/* One check or ensure, step after step: info, then build, then import. */
typedef struct {
    EbPaths *paths;
    EbContainerBackend *backend;
    char *alias;
    char **agents; /* (nullable) */
    char *cache_dir;
    EbImageProgress progress;
    gpointer progress_data;
    gboolean check_only;
    gint64 max_age_s; /* 0 = of any age */
    gboolean aged;    /* current but for its age */
    gboolean current;
    char *detail;
    gint64 import_start;
    EbWorker *worker; /* (nullable) */
} Ensure;

static void
ensure_free(gpointer data)
{
    Ensure *self = data;

    g_clear_object(&self->worker);
    g_clear_object(&self->paths);
    g_clear_object(&self->backend);
    g_free(self->alias);
    g_strfreev(self->agents);
    g_free(self->cache_dir);
    g_free(self->detail);
    g_free(self);
}

static void
on_imported(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Ensure *self = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(EbImageInfo) info =
        eb_container_backend_image_import_finish(EB_CONTAINER_BACKEND(source), result, &error);

    if (info == NULL) {
        g_task_return_error(task, error);
        return;
    }
    if (self->progress != NULL)
        self->progress("import", (guint)((g_get_monotonic_time() - self->import_start) / G_USEC_PER_SEC), TRUE,
                       self->progress_data);
    g_free(self->detail);
    self->detail = g_strdup_printf("%s is image %.12s", self->alias, info->fingerprint);
    g_task_return_boolean(task, TRUE);
}

static void
on_built(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Ensure *self = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(EbImageFiles) files = eb_image_build_finish(result, &error);

    if (files == NULL) {
        g_task_return_error(task, error);
        return;
    }
    if (self->progress != NULL)
        self->progress("import", 0, FALSE, self->progress_data);
    self->import_start = g_get_monotonic_time();
    eb_container_backend_image_import_async(self->backend, self->alias, files->metadata, files->rootfs,
                                            IMPORT_DEADLINE_MS, g_task_get_cancellable(task), on_imported,
                                            g_object_ref(task));
}

/* Is @image what the recipe makes with the agents asked for, or else with those it has? */
static gboolean
judge(Ensure *self, const EbImageInfo *image, GError **error)
{
    const char *digest = image != NULL ? g_hash_table_lookup(image->properties, "errand.recipe") : NULL;
    const char *has = image != NULL ? g_hash_table_lookup(image->properties, "errand.agents") : NULL;

    if (self->agents == NULL && has != NULL && has[0] != '\0')
        self->agents = eb_image_agent_names(has);
    g_autoptr(EbImageRecipe) recipe = eb_image_recipe_load(self->paths, (const char *const *)self->agents, error);
    if (recipe == NULL)
        return FALSE;
    self->current = g_strcmp0(digest, recipe->digest) == 0;
    gint64 age_s = image != NULL ? g_get_real_time() / G_USEC_PER_SEC - image->created_unix : 0;
    self->aged = self->current && self->max_age_s > 0 && age_s > self->max_age_s;
    self->current = self->current && !self->aged;
    if (self->aged)
        self->detail = g_strdup_printf("%s is %" G_GINT64_FORMAT " days old", self->alias, age_s / (24 * 3600));
    else if (self->current)
        self->detail = g_strdup_printf("%s is image %.12s, with %s", self->alias, image->fingerprint, has);
    else if (image == NULL)
        self->detail = g_strdup_printf("there is no image %s", self->alias);
    else
        self->detail = g_strdup_printf("%s was made from another recipe", self->alias);
    return TRUE;
}

static void
build(GTask *task)
{
    Ensure *self = g_task_get_task_data(task);

    eb_image_build_async(self->paths, (const char *const *)self->agents, self->cache_dir, self->progress,
                         self->progress_data, g_task_get_cancellable(task), on_built, g_object_ref(task));
}

static void
on_swept(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;

    if (g_task_propagate_boolean(G_TASK(result), &error))
        build(task);
    else
        g_task_return_error(task, error);
}

/* What is in the cache is as old as the image: it would come again. */
static void
sweep_in_worker(GTask *job)
{
    Ensure *self = g_task_get_task_data(job);
    EbImageCacheCount count;
    GError *error = NULL;

    if (eb_image_cache_sweep(self->cache_dir, self->max_age_s, FALSE, &count, &error))
        g_task_return_boolean(job, TRUE);
    else
        g_task_return_error(job, error);
}

static void
on_info(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Ensure *self = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GPtrArray) images = eb_container_backend_image_info_finish(EB_CONTAINER_BACKEND(source), result, &error);

    if (images == NULL || !judge(self, images->len > 0 ? g_ptr_array_index(images, 0) : NULL, &error)) {
        g_task_return_error(task, error);
        return;
    }
    if (self->current || self->check_only) {
        g_task_return_boolean(task, TRUE);
        return;
    }
    if (!self->aged) {
        build(task);
        return;
    }
    GTask *job = g_task_new(NULL, NULL, on_swept, g_object_ref(task));
    g_task_set_task_data(job, self, NULL); /* the callback holds the task, which holds it */
    self->worker = eb_worker_new("eb-image", 0);
    eb_worker_run(self->worker, job, sweep_in_worker);
}

static void
start(Ensure *self, guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);

    g_task_set_source_tag(task, start);
    g_task_set_task_data(task, self, ensure_free);
    eb_container_backend_image_info_async(self->backend, self->alias, deadline_ms, cancellable, on_info, task);
}

static Ensure *
ensure_new(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *agents)
{
    Ensure *self = g_new0(Ensure, 1);

    self->paths = g_object_ref(paths);
    self->backend = g_object_ref(backend);
    self->alias = g_strdup(alias);
    self->agents = g_strdupv((char **)agents);
    return self;
}

void
eb_image_check_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *agents,
                     guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    Ensure *self = ensure_new(paths, backend, alias, agents);

    self->check_only = TRUE;
    start(self, deadline_ms, cancellable, callback, user_data);
}

static gboolean
finish(GAsyncResult *result, gboolean *current, char **detail, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, NULL), FALSE);
    Ensure *self = g_task_get_task_data(G_TASK(result));

    if (!g_task_propagate_boolean(G_TASK(result), error))
        return FALSE;
    *current = self->current;
    if (detail != NULL)
        *detail = g_strdup(self->detail);
    return TRUE;
}

gboolean
eb_image_check_finish(GAsyncResult *result, gboolean *current, char **detail, GError **error)
{
    return finish(result, current, detail, error);
}

void
eb_image_ensure_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *agents,
                      const char *cache_dir, EbImageProgress progress, gpointer progress_data,
                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_image_refresh_async(paths, backend, alias, agents, cache_dir, 0, progress, progress_data, cancellable, callback,
                           user_data);
}

void
eb_image_refresh_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *agents,
                       const char *cache_dir, gint64 max_age_s, EbImageProgress progress, gpointer progress_data,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    Ensure *self = ensure_new(paths, backend, alias, agents);

    self->cache_dir = g_strdup(cache_dir);
    self->max_age_s = max_age_s;
    self->progress = progress;
    self->progress_data = progress_data;
    start(self, INFO_DEADLINE_MS, cancellable, callback, user_data);
}

gboolean
eb_image_ensure_finish(GAsyncResult *result, gboolean *changed, char **detail, GError **error)
{
    gboolean current = FALSE;

    if (!finish(result, &current, detail, error))
        return FALSE;
    *changed = !current;
    return TRUE;
}
