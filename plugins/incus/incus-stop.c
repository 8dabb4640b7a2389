/* SPDX-License-Identifier: MIT */
#include "incus-stop.h"

#include "incus-error.h"
#include "incus-instance-json.h"
#include "incus-operation.h"
#include "incus-volumes.h"

/* incusd's own bound on a forced stop; ours is the deadline. */
#define FORCE_TIMEOUT_S 30
/* Kept back from a clean stop so that force still fits into the deadline. */
#define FORCE_RESERVE_MS 3000
#define MAX_TRIES 5
#define TRY_PAUSE_MS 200

typedef enum {
    STEP_LOOK,   /* is it there, ours, running? */
    STEP_ASK,    /* clean stop */
    STEP_FORCE,  /* kill */
    STEP_DELETE, /* the instance */
    STEP_VOLUME, /* the next of its session volumes */
} Step;

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    char *name;
    char *launch_id; /* (nullable) */
    char *pool;      /* (nullable) */
    EbStopFlags flags;
    guint grace_ms;
    Step step;
    gboolean asked; /* a clean stop was tried */
    guint tries;    /* of force and delete */
    char **volumes; /* (nullable) */
    guint volume;
    GError *last; /* (nullable): the last failure, told when the tries are used up */
} Stop;

static void stop_step(GTask *task);

static void
stop_free(gpointer data)
{
    Stop *stop = data;
    g_clear_object(&stop->client);
    incus_deadline_unref(stop->deadline);
    g_free(stop->name);
    g_free(stop->launch_id);
    g_free(stop->pool);
    g_strfreev(stop->volumes);
    g_clear_error(&stop->last);
    g_free(stop);
}

static void
stop_end(GTask *task, GError *error)
{
    if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_boolean(task, TRUE);
    g_object_unref(task);
}

static void
after_gone(GTask *task)
{
    Stop *stop = g_task_get_task_data(task);
    if ((stop->flags & EB_STOP_DESTROY) == 0 || stop->volumes == NULL || stop->pool == NULL) {
        stop_end(task, NULL);
        return;
    }
    stop->step = STEP_VOLUME;
    stop_step(task);
}

static void
after_stopped(GTask *task)
{
    Stop *stop = g_task_get_task_data(task);
    if ((stop->flags & EB_STOP_DESTROY) == 0) {
        stop_end(task, NULL);
        return;
    }
    stop->step = STEP_DELETE;
    stop_step(task);
}

/* --- looking --- */

static void
choose_stop(GTask *task)
{
    Stop *stop = g_task_get_task_data(task);
    gboolean force = (stop->flags & EB_STOP_FORCE) != 0 || stop->grace_ms == 0 || stop->asked;
    stop->step = force ? STEP_FORCE : STEP_ASK;
    if (force && stop->tries++ >= MAX_TRIES) {
        stop_end(task, stop->last != NULL
                           ? g_steal_pointer(&stop->last)
                           : eb_error_new(EB_ERROR_FAILED, "incus.stop", "instance %s does not stop", stop->name));
        return;
    }
    stop_step(task);
}

static void
on_looked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Stop *stop = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL && error->code == EB_ERROR_NOT_FOUND) {
        g_error_free(error);
        after_gone(task);
        return;
    }
    if (reply == NULL) {
        stop_end(task, error);
        return;
    }
    JsonObject *instance = incus_reply_object(reply);
    if (stop->launch_id != NULL &&
        g_strcmp0(incus_instance_get_config(instance, INCUS_LAUNCH_KEY), stop->launch_id) != 0) {
        stop_end(task, NULL);
        return;
    }
    const char *volumes = incus_instance_get_config(instance, INCUS_LABEL_PREFIX INCUS_VOLUMES_LABEL);
    if (stop->volumes == NULL && volumes != NULL)
        stop->volumes = g_strsplit(volumes, ",", 64);
    if (incus_instance_state_parse(eb_json_get_string(instance, "status")) == EB_INSTANCE_STOPPED)
        after_stopped(task);
    else
        choose_stop(task);
}

static void
on_pause_over(gpointer user_data)
{
    GTask *task = user_data;
    Stop *stop = g_task_get_task_data(task);
    stop->step = STEP_LOOK;
    stop_step(task);
}

/* --- acting --- */

static void
remember(Stop *stop, GError *error)
{
    g_clear_error(&stop->last);
    stop->last = error;
}

static void
on_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Stop *stop = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    stop->asked = TRUE;
    if (reply != NULL || incus_error_has_reason(error, "incus.already-stopped")) {
        g_clear_error(&error);
        after_stopped(task);
        return;
    }
    if (!incus_deadline_check(stop->deadline, "stop", NULL) || error->code == EB_ERROR_UNAVAILABLE ||
        error->code == EB_ERROR_DENIED) {
        stop_end(task, error);
        return;
    }
    gboolean clean = stop->step == STEP_ASK;
    remember(stop, error);
    /* The error may be about what came after the stop: look again. A clean stop that failed goes on without delay. */
    incus_deadline_sleep(stop->deadline, clean ? 0 : TRY_PAUSE_MS, on_pause_over, task);
}

static void
on_deleted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Stop *stop = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply != NULL || error->code == EB_ERROR_NOT_FOUND) {
        g_clear_error(&error);
        after_gone(task);
        return;
    }
    if (!incus_deadline_check(stop->deadline, "delete", NULL) || error->code == EB_ERROR_UNAVAILABLE ||
        error->code == EB_ERROR_DENIED || stop->tries++ >= MAX_TRIES) {
        stop_end(task, error);
        return;
    }
    /* An ephemeral instance is deleted by incusd at the same time. */
    remember(stop, error);
    incus_deadline_sleep(stop->deadline, TRY_PAUSE_MS, on_pause_over, task);
}

static void
on_volume_deleted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    if (reply == NULL && error->code != EB_ERROR_NOT_FOUND) {
        stop_end(task, error);
        return;
    }
    g_clear_error(&error);
    stop_step(task);
}

static void
change_state(GTask *task, gboolean force)
{
    Stop *stop = g_task_get_task_data(task);
    guint timeout_s = FORCE_TIMEOUT_S;
    if (!force) {
        guint remaining = incus_deadline_get_remaining(stop->deadline);
        guint grace = MIN(stop->grace_ms, remaining > FORCE_RESERVE_MS ? remaining - FORCE_RESERVE_MS : 1);
        timeout_s = MAX((grace + 999) / 1000, 1);
    }
    g_autofree char *path = incus_client_path(stop->client, NULL, "instances", stop->name, "state", NULL);
    g_autoptr(JsonNode) body = incus_state_to_json("stop", force, timeout_s);
    incus_operation_run_async(stop->client, "PUT", path, body, stop->deadline, on_stopped, task);
}

static void
delete_next_volume(GTask *task)
{
    Stop *stop = g_task_get_task_data(task);
    while (stop->volumes[stop->volume] != NULL && *stop->volumes[stop->volume] == '\0')
        stop->volume++;
    const char *volume = stop->volumes[stop->volume];
    if (volume == NULL) {
        stop_end(task, NULL);
        return;
    }
    stop->volume++;
    g_autofree char *path = incus_volume_path(stop->client, stop->pool, volume);
    incus_operation_run_async(stop->client, "DELETE", path, NULL, stop->deadline, on_volume_deleted, task);
}

static void
stop_step(GTask *task)
{
    Stop *stop = g_task_get_task_data(task);
    GError *error = NULL;
    if (!incus_deadline_check(stop->deadline, "stop", &error)) {
        stop_end(task, error);
        return;
    }
    g_autofree char *path = incus_client_path(stop->client, NULL, "instances", stop->name, NULL);
    switch (stop->step) {
    case STEP_LOOK:
        incus_client_request_async(stop->client, "GET", path, NULL, stop->deadline, on_looked, task);
        break;
    case STEP_ASK:
    case STEP_FORCE:
        eb_log_step("guest.stop", "EB_INSTANCE", stop->name);
        change_state(task, stop->step == STEP_FORCE);
        break;
    case STEP_DELETE:
        eb_log_step("guest.delete", "EB_INSTANCE", stop->name);
        incus_operation_run_async(stop->client, "DELETE", path, NULL, stop->deadline, on_deleted, task);
        break;
    case STEP_VOLUME:
        delete_next_volume(task);
        break;
    }
}

void
incus_stop_async(IncusClient *client, const IncusStopRequest *request, IncusDeadline *deadline,
                 GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Stop *stop = g_new0(Stop, 1);
    g_task_set_source_tag(task, incus_stop_async);
    g_task_set_task_data(task, stop, stop_free);
    stop->client = g_object_ref(client);
    stop->deadline = incus_deadline_ref(deadline);
    stop->name = g_strdup(request->name);
    stop->launch_id = g_strdup(request->launch_id);
    stop->pool = g_strdup(request->pool);
    stop->flags = request->flags;
    stop->grace_ms = request->grace_ms;
    stop->step = STEP_LOOK;
    stop_step(task);
}

gboolean
incus_stop_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_stop_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
