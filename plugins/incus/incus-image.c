/* SPDX-License-Identifier: MIT */
#include "incus-image.h"

#include "incus-error.h"
#include "incus-instance-json.h"
#include "incus-operation.h"

/* --- info --- */

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    char *alias; /* (nullable) */
} Info;

static void
info_free(gpointer data)
{
    Info *info = data;
    g_clear_object(&info->client);
    incus_deadline_unref(info->deadline);
    g_free(info->alias);
    g_free(info);
}

static void
add_info(GPtrArray *images, JsonObject *image, const char *alias)
{
    EbImageInfo *info = incus_image_info(image, alias);
    if (info != NULL)
        g_ptr_array_add(images, info);
}

static GPtrArray *
new_images(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)eb_image_info_free);
}

static void
on_image(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Info *info = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL && error->code != EB_ERROR_NOT_FOUND) {
        g_task_return_error(task, error);
        return;
    }
    GPtrArray *images = new_images();
    if (reply != NULL && info->alias != NULL) {
        add_info(images, incus_reply_object(reply), info->alias);
    } else if (reply != NULL && reply->metadata != NULL && JSON_NODE_HOLDS_ARRAY(reply->metadata)) {
        JsonArray *array = json_node_get_array(reply->metadata);
        for (guint i = 0; i < json_array_get_length(array); i++)
            add_info(images, eb_json_array_object(array, i), NULL);
    }
    g_clear_error(&error);
    g_task_return_pointer(task, images, (GDestroyNotify)g_ptr_array_unref);
}

static void
on_alias(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Info *info = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL && error->code == EB_ERROR_NOT_FOUND) {
        g_error_free(error);
        g_task_return_pointer(task, new_images(), (GDestroyNotify)g_ptr_array_unref);
        return;
    }
    if (reply == NULL) {
        g_task_return_error(task, error);
        return;
    }
    const char *target = eb_json_get_string(incus_reply_object(reply), "target");
    if (target == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_PROTOCOL, "incus.protocol", "an alias without a target"));
        return;
    }
    g_autofree char *path = incus_client_path(info->client, NULL, "images", target, NULL);
    incus_client_request_async(info->client, "GET", path, NULL, info->deadline, on_image, g_steal_pointer(&task));
}

void
incus_image_info_async(IncusClient *client, const char *alias, IncusDeadline *deadline, GAsyncReadyCallback callback,
                       gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Info *info = g_new0(Info, 1);
    g_task_set_source_tag(task, incus_image_info_async);
    g_task_set_task_data(task, info, info_free);
    info->client = g_object_ref(client);
    info->deadline = incus_deadline_ref(deadline);
    info->alias = g_strdup(alias);
    g_autofree char *path = alias != NULL ? incus_client_path(client, NULL, "images", "aliases", alias, NULL)
                                          : incus_client_path(client, "recursion=1", "images", NULL);
    incus_client_request_async(client, "GET", path, NULL, deadline, alias != NULL ? on_alias : on_image, task);
}

GPtrArray *
incus_image_info_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_image_info_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- remove --- */

static void
on_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply == NULL && error->code != EB_ERROR_NOT_FOUND) {
        g_task_return_error(task, error);
        return;
    }
    g_clear_error(&error);
    g_task_return_boolean(task, TRUE);
}

void
incus_image_remove_async(IncusClient *client, const char *fingerprint, IncusDeadline *deadline,
                         GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    g_autofree char *path = incus_client_path(client, NULL, "images", fingerprint, NULL);
    g_task_set_source_tag(task, incus_image_remove_async);
    incus_operation_run_async(client, "DELETE", path, NULL, deadline, on_removed, task);
}

gboolean
incus_image_remove_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_image_remove_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
