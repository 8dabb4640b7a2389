/* SPDX-License-Identifier: MIT */
#include "incus-launch.h"

#include "incus-error.h"
#include "incus-instance-json.h"
#include "incus-operation.h"
#include "incus-stop.h"
#include "incus-volumes.h"

/* incusd's own bound of a start; ours is the deadline. */
#define START_TIMEOUT_S 30
/* What undoing may take while incusd answers. */
#define UNDO_MS 20000
#define LOG_MS 2000

typedef enum {
    STEP_VOLUMES,
    STEP_CREATE,
    STEP_VERIFY,
    STEP_START,
    STEP_LOG,         /* why did it not start? */
    STEP_UNDO,        /* remove the instance */
    STEP_UNDO_VOLUMES /* and the volumes made here */
} Step;

typedef struct {
    IncusClient *client; /* (owned) */
    IncusServer *server; /* (owned) */
    EbContainerSpec *spec;
    GCancellable *cancellable; /* (nullable) (owned): the caller's */
    IncusDeadline *deadline;   /* does not follow the caller: a step in flight is always seen to its end */
    IncusDeadline *undo_deadline;
    IncusLeftover leftover;
    gpointer leftover_data;
    char *launch_id;
    JsonNode *body;
    Step step;
    GPtrArray *volumes; /* (element-type utf8): made by this launch */
    gboolean touched;   /* a creation was asked for: there may be an instance */
    GError *error;      /* (nullable): why it is undone */
} Launch;

static void launch_step(GTask *task);

static void
launch_free(gpointer data)
{
    Launch *launch = data;
    g_clear_object(&launch->client);
    incus_server_unref(launch->server);
    eb_container_spec_free(launch->spec);
    g_clear_object(&launch->cancellable);
    incus_deadline_unref(launch->deadline);
    g_clear_pointer(&launch->undo_deadline, incus_deadline_unref);
    g_free(launch->launch_id);
    g_clear_pointer(&launch->body, json_node_unref);
    g_ptr_array_unref(launch->volumes);
    g_clear_error(&launch->error);
    g_free(launch);
}

static void
launch_end(GTask *task)
{
    Launch *launch = g_task_get_task_data(task);
    if (launch->error != NULL)
        g_task_return_error(task, g_steal_pointer(&launch->error));
    else
        g_task_return_boolean(task, TRUE);
    g_object_unref(task);
}

static gboolean
says_nothing(const GError *error)
{
    return error->code == EB_ERROR_TIMEOUT || error->code == EB_ERROR_UNAVAILABLE;
}

/* @error: (transfer full) */
static void
launch_fail(GTask *task, GError *error)
{
    Launch *launch = g_task_get_task_data(task);
    gboolean silent = says_nothing(error) && !incus_error_has_reason(error, "incus.stop-timeout");
    launch->error = error;
    /* Somebody else's instance of that name stays. */
    if (incus_error_has_reason(error, "incus.exists"))
        launch->touched = FALSE;
    if (silent) {
        if (launch->touched)
            launch->leftover(launch->spec->name, launch->launch_id, launch->leftover_data);
        launch_end(task);
        return;
    }
    launch->undo_deadline = incus_deadline_new(UNDO_MS, NULL);
    launch->step = launch->touched ? STEP_UNDO : STEP_UNDO_VOLUMES;
    launch_step(task);
}

static void
launch_next(GTask *task, Step step)
{
    Launch *launch = g_task_get_task_data(task);
    GError *error = NULL;
    launch->step = step;
    if (launch->cancellable != NULL && g_cancellable_is_cancelled(launch->cancellable))
        launch_fail(task,
                    eb_error_new(EB_ERROR_CANCELLED, "incus.cancelled", "launch of %s: cancelled", launch->spec->name));
    else if (!incus_deadline_check(launch->deadline, "launch", &error))
        launch_fail(task, error);
    else
        launch_step(task);
}

/* --- volumes --- */

static void
on_volumes(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Launch *launch = g_task_get_task_data(task);
    GError *error = NULL;
    if (!incus_volumes_ensure_finish(result, launch->volumes, &error))
        launch_fail(task, error);
    else
        launch_next(task, STEP_CREATE);
}

/* --- the instance --- */

static void
on_created(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Launch *launch = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply == NULL && incus_error_has_reason(error, "incus.image-missing")) {
        g_clear_error(&error);
        error = eb_error_new(EB_ERROR_NOT_FOUND, "incus.image-missing",
                             "incusd has no image \"%s\" in project %s (make it with: errand-box image build)",
                             launch->spec->image, launch->server->project);
    }
    if (reply == NULL)
        launch_fail(task, error);
    else
        launch_next(task, STEP_VERIFY);
}

static void
on_described(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL || !incus_instance_verify(incus_reply_object(reply), &error))
        launch_fail(task, error);
    else
        launch_next(task, STEP_START);
}

static void
on_log(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Launch *launch = g_task_get_task_data(task);
    gsize length = 0;
    g_autofree char *log = incus_client_get_text_finish(INCUS_CLIENT(source), result, &length, NULL);
    g_autofree char *reason = log != NULL ? incus_lxc_log_reason(log, length) : NULL;
    GError *error = g_steal_pointer(&launch->error);
    if (reason != NULL) {
        /* "newuidmap ... not allowed" stands in the log alone. */
        g_autoptr(GError) from_log = incus_error_new(500, reason);
        gboolean known = !incus_error_has_reason(from_log, "incus.failed");
        const char *token = known ? eb_error_get_reason(from_log) : "incus.start-failed";
        GError *better = eb_error_new(known ? (EbErrorCode)from_log->code : EB_ERROR_FAILED, token,
                                      "instance %s did not start: %s (%s)", launch->spec->name,
                                      known ? from_log->message : reason, error->message);
        g_error_free(error);
        error = better;
    }
    launch_fail(task, error);
}

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Launch *launch = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply == NULL && incus_error_has_reason(error, "incus.failed")) {
        launch->error = error;
        launch->step = STEP_LOG;
        launch_step(task);
        return;
    }
    if (reply == NULL && !incus_error_has_reason(error, "incus.already-running")) {
        launch_fail(task, error);
        return;
    }
    g_clear_error(&error);
    if (launch->cancellable != NULL && g_cancellable_is_cancelled(launch->cancellable)) {
        launch_fail(task,
                    eb_error_new(EB_ERROR_CANCELLED, "incus.cancelled", "launch of %s: cancelled", launch->spec->name));
        return;
    }
    launch_end(task);
}

/* --- undoing --- */

static void
on_undone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Launch *launch = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    if (!incus_stop_finish(result, &error)) {
        eb_debug("undoing a launch of %s: %s", launch->spec->name, error->message);
        launch->leftover(launch->spec->name, launch->launch_id, launch->leftover_data);
        launch_end(task);
        return;
    }
    launch->step = STEP_UNDO_VOLUMES;
    launch_step(task);
}

static void
on_volume_undone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply == NULL)
        eb_debug("undoing a volume: %s", error->message);
    launch_step(task);
}

static void
undo_next_volume(GTask *task)
{
    Launch *launch = g_task_get_task_data(task);
    if (launch->volumes->len == 0) {
        launch_end(task);
        return;
    }
    g_autofree char *volume = g_ptr_array_steal_index(launch->volumes, launch->volumes->len - 1);
    g_autofree char *path = incus_volume_path(launch->client, launch->server->pool, volume);
    incus_operation_run_async(launch->client, "DELETE", path, NULL, launch->undo_deadline, on_volume_undone, task);
}

static void
launch_step(GTask *task)
{
    Launch *launch = g_task_get_task_data(task);
    IncusClient *client = launch->client;
    g_autofree char *path = NULL;
    g_autoptr(JsonNode) body = NULL;
    switch (launch->step) {
    case STEP_VOLUMES:
        incus_volumes_ensure_async(client, launch->server->pool, launch->spec, launch->deadline, on_volumes, task);
        break;
    case STEP_CREATE:
        path = incus_client_path(client, NULL, "instances", NULL);
        launch->touched = TRUE;
        eb_log_step("guest.create", "EB_INSTANCE", launch->spec->name);
        incus_operation_run_async(client, "POST", path, launch->body, launch->deadline, on_created, task);
        break;
    case STEP_VERIFY:
        path = incus_client_path(client, NULL, "instances", launch->spec->name, NULL);
        eb_log_step("guest.verify", "EB_INSTANCE", launch->spec->name);
        incus_client_request_async(client, "GET", path, NULL, launch->deadline, on_described, task);
        break;
    case STEP_START:
        path = incus_client_path(client, NULL, "instances", launch->spec->name, "state", NULL);
        body = incus_state_to_json("start", FALSE, START_TIMEOUT_S);
        eb_log_step("guest.start", "EB_INSTANCE", launch->spec->name);
        incus_operation_run_async(client, "PUT", path, body, launch->deadline, on_started, task);
        break;
    case STEP_LOG: {
        g_autoptr(IncusDeadline) deadline = incus_deadline_new(LOG_MS, NULL);
        path = incus_client_path(client, NULL, "instances", launch->spec->name, "logs", "lxc.log", NULL);
        incus_client_get_text_async(client, path, deadline, on_log, task);
        break;
    }
    case STEP_UNDO: {
        IncusStopRequest request = {
            .name = launch->spec->name, .flags = EB_STOP_FORCE | EB_STOP_DESTROY, .launch_id = launch->launch_id};
        incus_stop_async(client, &request, launch->undo_deadline, on_undone, task);
        break;
    }
    case STEP_UNDO_VOLUMES:
        undo_next_volume(task);
        break;
    }
}

void
incus_launch_async(IncusClient *client, IncusServer *server, const EbContainerSpec *spec, guint deadline_ms,
                   GCancellable *cancellable, IncusLeftover leftover, gpointer leftover_data,
                   GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Launch *launch = g_new0(Launch, 1);
    GError *error = NULL;
    g_task_set_source_tag(task, incus_launch_async);
    g_task_set_task_data(task, launch, launch_free);
    launch->client = g_object_ref(client);
    launch->server = incus_server_ref(server);
    launch->spec = eb_container_spec_copy(spec);
    g_set_object(&launch->cancellable, cancellable);
    launch->deadline = incus_deadline_new(deadline_ms, NULL);
    launch->leftover = leftover;
    launch->leftover_data = leftover_data;
    launch->launch_id = g_uuid_string_random();
    launch->volumes = g_ptr_array_new_with_free_func(g_free);
    launch->body = incus_instance_to_json(spec, server->pool, launch->launch_id, &error);
    if (launch->body == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    launch_next(task, STEP_VOLUMES);
}

gboolean
incus_launch_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_launch_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
