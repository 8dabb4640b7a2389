/* SPDX-License-Identifier: MIT */
#include "incus-update.h"

#include "incus-instance-json.h"
#include "incus-operation.h"
#include "incus-volumes.h"

typedef struct {
    IncusClient *client; /* (owned) */
    IncusServer *server; /* (owned) */
    IncusDeadline *deadline;
    char *name;
    EbContainerSpec *spec;
} Update;

static void
update_free(gpointer data)
{
    Update *update = data;
    g_clear_object(&update->client);
    incus_server_unref(update->server);
    incus_deadline_unref(update->deadline);
    g_free(update->name);
    eb_container_spec_free(update->spec);
    g_free(update);
}

static void
on_patched(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply == NULL)
        g_task_return_error(task, error);
    else
        g_task_return_boolean(task, TRUE);
}

static void
on_described(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Update *update = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    g_autoptr(JsonNode) body = NULL;
    if (reply != NULL)
        body = incus_instance_update_json(update->spec, update->server->pool, incus_reply_object(reply), &error);
    if (body == NULL) {
        g_task_return_error(task, error);
        return;
    }
    g_autofree char *path = incus_client_path(update->client, NULL, "instances", update->name, NULL);
    incus_operation_run_async(update->client, "PATCH", path, body, update->deadline, on_patched,
                              g_steal_pointer(&task));
}

static void
on_volumes(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Update *update = g_task_get_task_data(task);
    GError *error = NULL;
    if (!incus_volumes_ensure_finish(result, NULL, &error)) {
        g_task_return_error(task, error);
        return;
    }
    g_autofree char *path = incus_client_path(update->client, NULL, "instances", update->name, NULL);
    incus_client_request_async(update->client, "GET", path, NULL, update->deadline, on_described,
                               g_steal_pointer(&task));
}

void
incus_update_async(IncusClient *client, IncusServer *server, const char *name, const EbContainerSpec *spec,
                   IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Update *update = g_new0(Update, 1);
    g_task_set_source_tag(task, incus_update_async);
    g_task_set_task_data(task, update, update_free);
    update->client = g_object_ref(client);
    update->server = incus_server_ref(server);
    update->deadline = incus_deadline_ref(deadline);
    update->name = g_strdup(name);
    update->spec = eb_container_spec_copy(spec);
    incus_volumes_ensure_async(client, server->pool, spec, deadline, on_volumes, task);
}

gboolean
incus_update_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_update_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
