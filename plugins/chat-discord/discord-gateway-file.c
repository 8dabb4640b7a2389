/* SPDX-License-Identifier: MIT */
#include "discord-gateway-file.h"

#include <string.h>

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    gsize *room = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GBytes) bytes = g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &error);

    if (bytes == NULL) {
        eb_error_convert(&error, NULL, "gateway state");
        g_task_return_error(task, error);
    } else if (g_bytes_get_size(bytes) == *room) {
        g_task_return_error(task, eb_error_new(EB_ERROR_INVALID, NULL, "gateway state: the file is too long"));
    } else {
        g_task_return_pointer(task, g_steal_pointer(&bytes), (GDestroyNotify)g_bytes_unref);
    }
}

static void
on_opened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    gsize *room = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GFileInputStream) stream = g_file_read_finish(G_FILE(source), result, &error);

    if (stream == NULL) {
        eb_error_convert(&error, NULL, "gateway state");
        g_task_return_error(task, error);
        return;
    }
    /* A file of this size comes in one read. */
    g_input_stream_read_bytes_async(G_INPUT_STREAM(stream), *room, G_PRIORITY_DEFAULT, g_task_get_cancellable(task),
                                    on_read, g_object_ref(task));
}

void
discord_gateway_file_load_async(const char *path, gsize max, GCancellable *cancellable, GAsyncReadyCallback callback,
                                gpointer user_data)
{
    g_autoptr(GFile) file = g_file_new_for_path(path);
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);
    gsize *room = g_new(gsize, 1);

    *room = max + 1;
    g_task_set_source_tag(task, discord_gateway_file_load_async);
    g_task_set_task_data(task, room, g_free);
    g_file_read_async(file, G_PRIORITY_DEFAULT, cancellable, on_opened, task);
}

GBytes *
discord_gateway_file_load_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
on_replaced(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;

    if (g_file_replace_contents_finish(G_FILE(source), result, NULL, &error)) {
        g_task_return_boolean(task, TRUE);
        return;
    }
    eb_error_convert(&error, NULL, NULL);
    g_task_return_error(task, error);
}

void
discord_gateway_file_save_async(const char *path, const char *text, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GBytes) bytes = g_bytes_new(text, strlen(text));
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);

    g_task_set_source_tag(task, discord_gateway_file_save_async);
    g_file_replace_contents_bytes_async(file, bytes, NULL, FALSE,
                                        G_FILE_CREATE_PRIVATE | G_FILE_CREATE_REPLACE_DESTINATION, cancellable,
                                        on_replaced, task);
}

gboolean
discord_gateway_file_save_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}
