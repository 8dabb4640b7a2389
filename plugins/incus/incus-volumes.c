/* SPDX-License-Identifier: MIT */
#include "incus-volumes.h"

#include "incus-error.h"
#include "incus-instance-json.h"
#include "incus-operation.h"

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    char *pool;
    EbContainerSpec *spec;
    guint next;      /* of the spec's mounts */
    GPtrArray *made; /* (element-type utf8) */
} Ensure;

static void ensure_step(GTask *task);

static void
ensure_free(gpointer data)
{
    Ensure *ensure = data;
    g_clear_object(&ensure->client);
    incus_deadline_unref(ensure->deadline);
    g_free(ensure->pool);
    eb_container_spec_free(ensure->spec);
    g_ptr_array_unref(ensure->made);
    g_free(ensure);
}

char *
incus_volume_path(IncusClient *client, const char *pool, const char *volume)
{
    return incus_client_path(client, NULL, "storage-pools", pool, "volumes", "custom", volume, NULL);
}

static void
on_volume(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Ensure *ensure = g_task_get_task_data(task);
    const EbContainerMount *mount = ensure->spec->mounts->pdata[ensure->next++];
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply == NULL && !incus_error_has_reason(error, "incus.exists")) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    if (reply != NULL)
        g_ptr_array_add(ensure->made, g_strdup(mount->volume));
    g_clear_error(&error);
    ensure_step(task);
}

static void
ensure_step(GTask *task)
{
    Ensure *ensure = g_task_get_task_data(task);
    GPtrArray *mounts = ensure->spec->mounts;
    while (mounts != NULL && ensure->next < mounts->len &&
           ((const EbContainerMount *)mounts->pdata[ensure->next])->volume == NULL)
        ensure->next++;
    if (mounts == NULL || ensure->next >= mounts->len) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    g_autoptr(JsonNode) body = incus_volume_to_json(mounts->pdata[ensure->next]);
    g_autofree char *path =
        incus_client_path(ensure->client, NULL, "storage-pools", ensure->pool, "volumes", "custom", NULL);
    incus_operation_run_async(ensure->client, "POST", path, body, ensure->deadline, on_volume, task);
}

void
incus_volumes_ensure_async(IncusClient *client, const char *pool, const EbContainerSpec *spec, IncusDeadline *deadline,
                           GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Ensure *ensure = g_new0(Ensure, 1);
    g_task_set_source_tag(task, incus_volumes_ensure_async);
    g_task_set_task_data(task, ensure, ensure_free);
    ensure->client = g_object_ref(client);
    ensure->deadline = incus_deadline_ref(deadline);
    ensure->pool = g_strdup(pool);
    ensure->spec = eb_container_spec_copy(spec);
    ensure->made = g_ptr_array_new_with_free_func(g_free);
    ensure_step(task);
}

gboolean
incus_volumes_ensure_finish(GAsyncResult *result, GPtrArray *made, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_volumes_ensure_async), FALSE);
    Ensure *ensure = g_task_get_task_data(G_TASK(result));
    for (guint i = 0; made != NULL && i < ensure->made->len; i++)
        g_ptr_array_add(made, g_strdup(ensure->made->pdata[i]));
    return g_task_propagate_boolean(G_TASK(result), error);
}
