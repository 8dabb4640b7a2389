/* SPDX-License-Identifier: MIT */
#include "eb-container-backend.h"

#include "eb-async-private.h"

G_DEFINE_INTERFACE(EbContainerBackend, eb_container_backend, G_TYPE_OBJECT)

static void
default_probe_async(EbContainerBackend *self, guint deadline_ms, GCancellable *cancellable,
                    GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_probe_async, "probe");
}

static EbProbeReport *
default_probe_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_launch_async(EbContainerBackend *self, const EbContainerSpec *spec, guint deadline_ms,
                     GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_launch_async, "launch instances");
}

static gboolean
default_launch_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
default_update_async(EbContainerBackend *self, const char *name, const EbContainerSpec *spec, guint deadline_ms,
                     GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_update_async, "update instances");
}

static gboolean
default_update_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
default_exec_async(EbContainerBackend *self, const char *name, const EbExecSpec *spec, guint deadline_ms,
                   GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_exec_async, "run processes");
}

static EbExec *
default_exec_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_stop_async(EbContainerBackend *self, const char *name, EbStopFlags flags, guint grace_ms, guint deadline_ms,
                   GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_stop_async, "stop instances");
}

static gboolean
default_stop_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
default_list_async(EbContainerBackend *self, const char *name, guint deadline_ms, GCancellable *cancellable,
                   GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_list_async, "list instances");
}

static GPtrArray *
default_list_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_image_info_async(EbContainerBackend *self, const char *alias, guint deadline_ms, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_image_info_async, "list images");
}

static GPtrArray *
default_image_info_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_image_import_async(EbContainerBackend *self, const char *alias, const char *metadata_path,
                           const char *rootfs_path, guint deadline_ms, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_image_import_async, "import images");
}

static EbImageInfo *
default_image_import_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_image_remove_async(EbContainerBackend *self, const char *fingerprint, guint deadline_ms,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_image_remove_async, "remove images");
}

static gboolean
default_image_remove_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
eb_container_backend_default_init(EbContainerBackendInterface *iface)
{
    iface->probe_async = default_probe_async;
    iface->probe_finish = default_probe_finish;
    iface->launch_async = default_launch_async;
    iface->launch_finish = default_launch_finish;
    iface->update_async = default_update_async;
    iface->update_finish = default_update_finish;
    iface->exec_async = default_exec_async;
    iface->exec_finish = default_exec_finish;
    iface->stop_async = default_stop_async;
    iface->stop_finish = default_stop_finish;
    iface->list_async = default_list_async;
    iface->list_finish = default_list_finish;
    iface->image_info_async = default_image_info_async;
    iface->image_info_finish = default_image_info_finish;
    iface->image_import_async = default_image_import_async;
    iface->image_import_finish = default_image_import_finish;
    iface->image_remove_async = default_image_remove_async;
    iface->image_remove_finish = default_image_remove_finish;

    g_signal_new("instance-event", EB_TYPE_CONTAINER_BACKEND, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                 G_TYPE_INT, G_TYPE_STRING);
}

void
eb_container_backend_probe_async(EbContainerBackend *self, guint deadline_ms, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self));
    EB_CONTAINER_BACKEND_GET_IFACE(self)->probe_async(self, deadline_ms, cancellable, callback, user_data);
}

EbProbeReport *
eb_container_backend_probe_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    EbProbeReport *value;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), NULL);
    value = EB_CONTAINER_BACKEND_GET_IFACE(self)->probe_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_container_backend_launch_async(EbContainerBackend *self, const EbContainerSpec *spec, guint deadline_ms,
                                  GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self) && spec != NULL);
    EB_CONTAINER_BACKEND_GET_IFACE(self)->launch_async(self, spec, deadline_ms, cancellable, callback, user_data);
}

gboolean
eb_container_backend_launch_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), FALSE);
    done = EB_CONTAINER_BACKEND_GET_IFACE(self)->launch_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_container_backend_update_async(EbContainerBackend *self, const char *name, const EbContainerSpec *spec,
                                  guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self) && name != NULL && spec != NULL);
    EB_CONTAINER_BACKEND_GET_IFACE(self)->update_async(self, name, spec, deadline_ms, cancellable, callback, user_data);
}

gboolean
eb_container_backend_update_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), FALSE);
    done = EB_CONTAINER_BACKEND_GET_IFACE(self)->update_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_container_backend_exec_async(EbContainerBackend *self, const char *name, const EbExecSpec *spec, guint deadline_ms,
                                GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self) && name != NULL && spec != NULL && spec->argv != NULL &&
                     spec->argv[0] != NULL);
    EB_CONTAINER_BACKEND_GET_IFACE(self)->exec_async(self, name, spec, deadline_ms, cancellable, callback, user_data);
}

EbExec *
eb_container_backend_exec_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    EbExec *value;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), NULL);
    value = EB_CONTAINER_BACKEND_GET_IFACE(self)->exec_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_container_backend_stop_async(EbContainerBackend *self, const char *name, EbStopFlags flags, guint grace_ms,
                                guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
                                gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self) && name != NULL);
    EB_CONTAINER_BACKEND_GET_IFACE(self)->stop_async(self, name, flags, grace_ms, deadline_ms, cancellable, callback,
                                                     user_data);
}

gboolean
eb_container_backend_stop_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), FALSE);
    done = EB_CONTAINER_BACKEND_GET_IFACE(self)->stop_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_container_backend_list_async(EbContainerBackend *self, const char *name, guint deadline_ms,
                                GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self));
    EB_CONTAINER_BACKEND_GET_IFACE(self)->list_async(self, name, deadline_ms, cancellable, callback, user_data);
}

GPtrArray *
eb_container_backend_list_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    GPtrArray *value;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), NULL);
    value = EB_CONTAINER_BACKEND_GET_IFACE(self)->list_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_container_backend_image_info_async(EbContainerBackend *self, const char *alias, guint deadline_ms,
                                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self));
    EB_CONTAINER_BACKEND_GET_IFACE(self)->image_info_async(self, alias, deadline_ms, cancellable, callback, user_data);
}

GPtrArray *
eb_container_backend_image_info_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    GPtrArray *value;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), NULL);
    value = EB_CONTAINER_BACKEND_GET_IFACE(self)->image_info_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_container_backend_image_import_async(EbContainerBackend *self, const char *alias, const char *metadata_path,
                                        const char *rootfs_path, guint deadline_ms, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self) && alias != NULL && metadata_path != NULL && rootfs_path != NULL);
    EB_CONTAINER_BACKEND_GET_IFACE(self)->image_import_async(self, alias, metadata_path, rootfs_path, deadline_ms,
                                                             cancellable, callback, user_data);
}

EbImageInfo *
eb_container_backend_image_import_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    EbImageInfo *value;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), NULL);
    value = EB_CONTAINER_BACKEND_GET_IFACE(self)->image_import_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_container_backend_image_remove_async(EbContainerBackend *self, const char *fingerprint, guint deadline_ms,
                                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONTAINER_BACKEND(self) && fingerprint != NULL);
    EB_CONTAINER_BACKEND_GET_IFACE(self)->image_remove_async(self, fingerprint, deadline_ms, cancellable, callback,
                                                             user_data);
}

gboolean
eb_container_backend_image_remove_finish(EbContainerBackend *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CONTAINER_BACKEND(self), FALSE);
    done = EB_CONTAINER_BACKEND_GET_IFACE(self)->image_remove_finish(self, result, error);
    return eb_border_boolean(done, error);
}
