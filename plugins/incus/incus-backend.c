/* SPDX-License-Identifier: MIT */
#include "incus-backend.h"

#include "incus-error.h"
#include "incus-events.h"
#include "incus-exec-start.h"
#include "incus-image.h"
#include "incus-instance-json.h"
#include "incus-launch.h"
#include "incus-leftovers.h"
#include "incus-probe.h"
#include "incus-stop.h"
#include "incus-update.h"

/* Bound of the answer of a plugin start; the host has its own as well. */
#define START_MS 15000

struct _IncusBackend {
    GObject parent_instance;
    IncusClient *client;     /* (owned) */
    IncusSettings *settings; /* (owned) */
    IncusServer *server;     /* (nullable) (owned): found once, again after incusd was away */
    IncusEvents *events;     /* (nullable) (owned) */
    IncusLeftovers *leftovers;
};

static void incus_backend_iface_init(EbContainerBackendInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(IncusBackend, incus_backend, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CONTAINER_BACKEND, incus_backend_iface_init))

static void
incus_backend_finalize(GObject *object)
{
    IncusBackend *self = INCUS_BACKEND(object);
    incus_backend_stop(self);
    g_clear_object(&self->leftovers);
    g_clear_pointer(&self->server, incus_server_unref);
    g_clear_pointer(&self->settings, incus_settings_free);
    g_clear_object(&self->client);
    G_OBJECT_CLASS(incus_backend_parent_class)->finalize(object);
}

static void
incus_backend_class_init(IncusBackendClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_backend_finalize;
}

static void
incus_backend_init(IncusBackend *self)
{
}

IncusBackend *
incus_backend_new(IncusClient *client, IncusSettings *settings)
{
    IncusBackend *self = g_object_new(INCUS_TYPE_BACKEND, NULL);
    self->client = g_object_ref(client);
    self->settings = settings;
    self->leftovers = incus_leftovers_new(client);
    return self;
}

/* --- calls: every one has a deadline and needs the server found first --- */

typedef struct {
    IncusDeadline *deadline;
    guint deadline_ms;
    gint64 begun_us;
    GCancellable *cancellable; /* (nullable) (owned) */
    void (*go)(GTask *task);   /* continues when self->server is set */
    char *name;                /* (nullable): instance or image */
    EbContainerSpec *spec;     /* (nullable) */
    EbExecSpec *exec;          /* (nullable) */
    EbStopFlags flags;
    guint grace_ms;
    char *metadata_path;
    char *rootfs_path;
} Call;

static void
call_free(gpointer data)
{
    Call *call = data;
    g_clear_pointer(&call->deadline, incus_deadline_unref);
    g_clear_object(&call->cancellable);
    g_free(call->name);
    g_clear_pointer(&call->spec, eb_container_spec_free);
    g_clear_pointer(&call->exec, eb_exec_spec_free);
    g_free(call->metadata_path);
    g_free(call->rootfs_path);
    g_free(call);
}

static GTask *
call_new(EbContainerBackend *backend, gpointer tag, const char *name, guint deadline_ms, GCancellable *cancellable,
         GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(backend, NULL, callback, user_data);
    Call *call = g_new0(Call, 1);
    g_task_set_source_tag(task, tag);
    g_task_set_task_data(task, call, call_free);
    call->name = g_strdup(name);
    call->deadline_ms = MAX(deadline_ms, 1);
    call->begun_us = g_get_monotonic_time();
    call->deadline = incus_deadline_new(call->deadline_ms, cancellable);
    g_set_object(&call->cancellable, cancellable);
    return task;
}

static void
on_server(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    GError *error = NULL;
    IncusServer *server = incus_server_find_finish(result, &error);
    if (server == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    g_clear_pointer(&self->server, incus_server_unref);
    self->server = server;
    call->go(task);
}

/* @task: (transfer full) */
static void
call_go(GTask *task, void (*go)(GTask *task))
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    call->go = go;
    if (self->server != NULL)
        go(task);
    else
        incus_server_find_async(self->client, self->settings, call->deadline, on_server, task);
}

static guint
call_remaining(Call *call)
{
    gint64 spent_ms = (g_get_monotonic_time() - call->begun_us) / 1000;
    return spent_ms >= call->deadline_ms ? 1 : call->deadline_ms - (guint)spent_ms;
}

static void
return_boolean(GTask *task, gboolean ok, GError *error)
{
    if (ok)
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
    g_object_unref(task);
}

static gboolean
propagate_boolean(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, backend), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

static gpointer
propagate_pointer(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, backend), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- launch --- */

static void
on_leftover(const char *name, const char *launch_id, gpointer user_data)
{
    incus_leftovers_add(user_data, name, launch_id);
}

static void
on_launched(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GError *error = NULL;
    gboolean ok = incus_launch_finish(result, &error);
    return_boolean(user_data, ok, error);
}

static void
launch_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    incus_launch_async(self->client, self->server, call->spec, call_remaining(call), call->cancellable, on_leftover,
                       self->leftovers, on_launched, task);
}

static void
backend_launch_async(EbContainerBackend *backend, const EbContainerSpec *spec, guint deadline_ms,
                     GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    IncusBackend *self = INCUS_BACKEND(backend);
    GTask *task = call_new(backend, backend_launch_async, spec->name, deadline_ms, cancellable, callback, user_data);
    Call *call = g_task_get_task_data(task);
    GError *error = NULL;
    if (!eb_container_spec_validate(spec, &error)) {
        return_boolean(task, FALSE, error);
        return;
    }
    call->spec = eb_container_spec_copy(spec);
    if ((call->spec->image == NULL || *call->spec->image == '\0') && self->settings->image != NULL) {
        g_free(call->spec->image);
        call->spec->image = g_strdup(self->settings->image);
    }
    call_go(task, launch_go);
}

/* --- update --- */

static void
on_updated(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GError *error = NULL;
    gboolean ok = incus_update_finish(result, &error);
    return_boolean(user_data, ok, error);
}

static void
update_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    incus_update_async(self->client, self->server, call->name, call->spec, call->deadline, on_updated, task);
}

static void
backend_update_async(EbContainerBackend *backend, const char *name, const EbContainerSpec *spec, guint deadline_ms,
                     GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = call_new(backend, backend_update_async, name, deadline_ms, cancellable, callback, user_data);
    Call *call = g_task_get_task_data(task);
    GError *error = NULL;
    if (!eb_container_spec_validate(spec, &error)) {
        return_boolean(task, FALSE, error);
        return;
    }
    call->spec = eb_container_spec_copy(spec);
    call_go(task, update_go);
}

/* --- exec --- */

static void
on_exec(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    EbExec *exec = incus_exec_start_finish(result, &error);
    if (exec != NULL)
        g_task_return_pointer(task, exec, g_object_unref);
    else
        g_task_return_error(task, error);
}

static void
exec_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    incus_exec_start_async(self->client, call->name, call->exec, call->deadline, on_exec, task);
}

static void
backend_exec_async(EbContainerBackend *backend, const char *name, const EbExecSpec *spec, guint deadline_ms,
                   GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = call_new(backend, backend_exec_async, name, deadline_ms, cancellable, callback, user_data);
    Call *call = g_task_get_task_data(task);
    if (spec->argv == NULL || spec->argv[0] == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_INVALID, "incus.exec", "no command to run in %s", name));
        g_object_unref(task);
        return;
    }
    call->exec = eb_exec_spec_copy(spec);
    call_go(task, exec_go);
}

/* --- stop --- */

static void
on_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GError *error = NULL;
    gboolean ok = incus_stop_finish(result, &error);
    return_boolean(user_data, ok, error);
}

static void
stop_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    IncusStopRequest request = {
        .name = call->name, .flags = call->flags, .grace_ms = call->grace_ms, .pool = self->server->pool};
    incus_stop_async(self->client, &request, call->deadline, on_stopped, task);
}

static void
backend_stop_async(EbContainerBackend *backend, const char *name, EbStopFlags flags, guint grace_ms, guint deadline_ms,
                   GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = call_new(backend, backend_stop_async, name, deadline_ms, cancellable, callback, user_data);
    Call *call = g_task_get_task_data(task);
    call->flags = flags;
    call->grace_ms = grace_ms;
    call_go(task, stop_go);
}

/* --- list --- */

static GPtrArray *
infos_from_array(JsonArray *array)
{
    GPtrArray *infos = g_ptr_array_new_with_free_func((GDestroyNotify)eb_instance_info_free);
    for (guint i = 0; array != NULL && i < json_array_get_length(array); i++) {
        JsonObject *instance = eb_json_array_object(array, i);
        EbInstanceInfo *info = incus_instance_is_ours(instance) ? incus_instance_info(instance) : NULL;
        if (info != NULL)
            g_ptr_array_add(infos, info);
    }
    return infos;
}

static void
on_listed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Call *call = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL) {
        g_task_return_error(task, error);
        return;
    }
    GPtrArray *infos;
    if (call->name == NULL) {
        JsonNode *list = reply->metadata;
        gboolean array = list != NULL && JSON_NODE_HOLDS_ARRAY(list);
        infos = infos_from_array(array ? json_node_get_array(list) : NULL);
    } else {
        EbInstanceInfo *info = incus_instance_info(incus_reply_object(reply));
        infos = g_ptr_array_new_with_free_func((GDestroyNotify)eb_instance_info_free);
        if (info != NULL)
            g_ptr_array_add(infos, info);
    }
    g_task_return_pointer(task, infos, (GDestroyNotify)g_ptr_array_unref);
}

static void
list_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    g_autofree char *path = call->name != NULL
                                ? incus_client_path(self->client, "recursion=1", "instances", call->name, NULL)
                                : incus_client_path(self->client, "recursion=1", "instances", NULL);
    incus_client_request_async(self->client, "GET", path, NULL, call->deadline, on_listed, task);
}

static void
backend_list_async(EbContainerBackend *backend, const char *name, guint deadline_ms, GCancellable *cancellable,
                   GAsyncReadyCallback callback, gpointer user_data)
{
    call_go(call_new(backend, backend_list_async, name, deadline_ms, cancellable, callback, user_data), list_go);
}

/* --- images and probe --- */

static void
on_images(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    GPtrArray *images = incus_image_info_finish(result, &error);
    if (images != NULL)
        g_task_return_pointer(task, images, (GDestroyNotify)g_ptr_array_unref);
    else
        g_task_return_error(task, error);
}

static void
image_info_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    incus_image_info_async(self->client, call->name, call->deadline, on_images, task);
}

static void
backend_image_info_async(EbContainerBackend *backend, const char *alias, guint deadline_ms, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
    call_go(call_new(backend, backend_image_info_async, alias, deadline_ms, cancellable, callback, user_data),
            image_info_go);
}

static void
on_imported(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    EbImageInfo *image = incus_image_import_finish(result, &error);
    if (image != NULL)
        g_task_return_pointer(task, image, (GDestroyNotify)eb_image_info_free);
    else
        g_task_return_error(task, error);
}

static void
image_import_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    incus_image_import_async(self->client, call->name, call->metadata_path, call->rootfs_path, call->deadline,
                             on_imported, task);
}

static void
backend_image_import_async(EbContainerBackend *backend, const char *alias, const char *metadata_path,
                           const char *rootfs_path, guint deadline_ms, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = call_new(backend, backend_image_import_async, alias, deadline_ms, cancellable, callback, user_data);
    Call *call = g_task_get_task_data(task);
    call->metadata_path = g_strdup(metadata_path);
    call->rootfs_path = g_strdup(rootfs_path);
    call_go(task, image_import_go);
}

static void
on_image_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    if (incus_image_remove_finish(result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
image_remove_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    incus_image_remove_async(self->client, call->name, call->deadline, on_image_removed, task);
}

static void
backend_image_remove_async(EbContainerBackend *backend, const char *fingerprint, guint deadline_ms,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    call_go(call_new(backend, backend_image_remove_async, fingerprint, deadline_ms, cancellable, callback, user_data),
            image_remove_go);
}

static void
on_probed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    EbProbeReport *report = incus_probe_finish(result, &error);
    if (report != NULL)
        g_task_return_pointer(task, report, (GDestroyNotify)eb_probe_report_free);
    else
        g_task_return_error(task, error);
}

static void
probe_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    Call *call = g_task_get_task_data(task);
    incus_probe_async(self->client, self->server, call->deadline, on_probed, task);
}

static void
backend_probe_async(EbContainerBackend *backend, guint deadline_ms, GCancellable *cancellable,
                    GAsyncReadyCallback callback, gpointer user_data)
{
    IncusBackend *self = INCUS_BACKEND(backend);
    /* A probe is asked to see what is there now. */
    g_clear_pointer(&self->server, incus_server_unref);
    call_go(call_new(backend, backend_probe_async, NULL, deadline_ms, cancellable, callback, user_data), probe_go);
}

static EbProbeReport *
backend_probe_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return propagate_pointer(backend, result, error);
}

static EbExec *
backend_exec_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return propagate_pointer(backend, result, error);
}

static GPtrArray *
backend_array_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return propagate_pointer(backend, result, error);
}

static EbImageInfo *
backend_image_import_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return propagate_pointer(backend, result, error);
}

static void
incus_backend_iface_init(EbContainerBackendInterface *iface)
{
    iface->probe_async = backend_probe_async;
    iface->probe_finish = backend_probe_finish;
    iface->launch_async = backend_launch_async;
    iface->launch_finish = propagate_boolean;
    iface->update_async = backend_update_async;
    iface->update_finish = propagate_boolean;
    iface->exec_async = backend_exec_async;
    iface->exec_finish = backend_exec_finish;
    iface->stop_async = backend_stop_async;
    iface->stop_finish = propagate_boolean;
    iface->list_async = backend_list_async;
    iface->list_finish = backend_array_finish;
    iface->image_info_async = backend_image_info_async;
    iface->image_info_finish = backend_array_finish;
    iface->image_import_async = backend_image_import_async;
    iface->image_import_finish = backend_image_import_finish;
    iface->image_remove_async = backend_image_remove_async;
    iface->image_remove_finish = propagate_boolean;
}

/* --- life --- */

static void
on_event(EbInstanceEvent event, const char *name, gpointer user_data)
{
    IncusBackend *self = user_data;
    if (event == EB_INSTANCE_EVENT_BACKEND_LOST)
        g_clear_pointer(&self->server, incus_server_unref);
    else if (event == EB_INSTANCE_EVENT_BACKEND_BACK)
        incus_leftovers_retry(self->leftovers);
    g_signal_emit_by_name(self, "instance-event", event, name);
}

static void
start_go(GTask *task)
{
    IncusBackend *self = g_task_get_source_object(task);
    if (self->events == NULL) {
        self->events = incus_events_new(self->client, on_event, self);
        incus_events_start(self->events);
    }
    g_task_return_boolean(task, TRUE);
    g_object_unref(task);
}

void
incus_backend_start_async(IncusBackend *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data)
{
    incus_client_settle(self->client);
    call_go(call_new(EB_CONTAINER_BACKEND(self), incus_backend_start_async, NULL, START_MS, cancellable, callback,
                     user_data),
            start_go);
}

gboolean
incus_backend_start_finish(IncusBackend *self, GAsyncResult *result, GError **error)
{
    return propagate_boolean(EB_CONTAINER_BACKEND(self), result, error);
}

void
incus_backend_stop(IncusBackend *self)
{
    if (self->events != NULL)
        incus_events_stop(self->events);
    g_clear_object(&self->events);
    incus_leftovers_stop(self->leftovers);
}
