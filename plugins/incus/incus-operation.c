/* SPDX-License-Identifier: MIT */
#include "incus-operation.h"

#include "incus-error.h"

/* How long "busy" is believed to pass by itself: a failed start blocks an instance for about one second. */
#define BUSY_LIMIT_US (10 * G_USEC_PER_SEC)
#define BUSY_FIRST_MS 50
#define BUSY_MAX_MS 1000

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    char *method; /* (nullable): NULL = wait only */
    char *path;
    JsonNode *body; /* (nullable) (owned) */
    char *operation;
    guint pause_ms;
    gint64 busy_since_us;
} Run;

static void send_step(GTask *task);
static void wait_step(GTask *task);

static void
run_free(gpointer data)
{
    Run *run = data;
    g_clear_object(&run->client);
    incus_deadline_unref(run->deadline);
    g_free(run->method);
    g_free(run->path);
    g_clear_pointer(&run->body, json_node_unref);
    g_free(run->operation);
    g_free(run);
}

static void
on_slept(gpointer user_data)
{
    send_step(user_data);
}

/* Returns TRUE when the request will be sent again. */
static gboolean
retry_later(GTask *task, GError *error)
{
    Run *run = g_task_get_task_data(task);
    gint64 now = g_get_monotonic_time();
    if (run->method == NULL ||
        !(incus_error_has_reason(error, "incus.busy") || incus_error_has_reason(error, "incus.running") ||
          incus_error_has_reason(error, "incus.not-ready")))
        return FALSE;
    if (run->busy_since_us == 0)
        run->busy_since_us = now;
    if (now - run->busy_since_us > BUSY_LIMIT_US || incus_deadline_get_remaining(run->deadline) <= run->pause_ms)
        return FALSE;
    incus_deadline_sleep(run->deadline, run->pause_ms, on_slept, task);
    run->pause_ms = MIN(run->pause_ms * 2, BUSY_MAX_MS);
    return TRUE;
}

static void
end_with_error(GTask *task, GError *error)
{
    if (retry_later(task, error)) {
        g_error_free(error);
        return;
    }
    g_task_return_error(task, error);
    g_object_unref(task);
}

static void
on_waited(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    GError *error = NULL;
    IncusReply *reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL) {
        end_with_error(task, error);
        return;
    }
    if (!incus_reply_outcome(reply, &error)) {
        incus_reply_free(reply);
        end_with_error(task, error);
        return;
    }
    g_task_return_pointer(task, reply, (GDestroyNotify)incus_reply_free);
    g_object_unref(task);
}

static void
wait_step(GTask *task)
{
    Run *run = g_task_get_task_data(task);
    g_autofree char *path = g_strdup_printf("/1.0/operations/%s/wait?timeout=-1", run->operation);
    incus_client_request_async(run->client, "GET", path, NULL, run->deadline, on_waited, task);
}

static void
on_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Run *run = g_task_get_task_data(task);
    GError *error = NULL;
    IncusReply *reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL) {
        end_with_error(task, error);
        return;
    }
    if (reply->operation == NULL) {
        g_task_return_pointer(task, reply, (GDestroyNotify)incus_reply_free);
        g_object_unref(task);
        return;
    }
    g_free(run->operation);
    run->operation = g_strdup(reply->operation);
    incus_reply_free(reply);
    wait_step(task);
}

static void
send_step(GTask *task)
{
    Run *run = g_task_get_task_data(task);
    incus_client_request_async(run->client, run->method, run->path, run->body, run->deadline, on_answered, task);
}

static GTask *
new_run(IncusClient *client, IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Run *run = g_new0(Run, 1);
    run->client = g_object_ref(client);
    run->deadline = incus_deadline_ref(deadline);
    run->pause_ms = BUSY_FIRST_MS;
    g_task_set_source_tag(task, incus_operation_run_async);
    g_task_set_task_data(task, run, run_free);
    return task;
}

void
incus_operation_run_async(IncusClient *client, const char *method, const char *path, JsonNode *body,
                          IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = new_run(client, deadline, callback, user_data);
    Run *run = g_task_get_task_data(task);
    run->method = g_strdup(method);
    run->path = g_strdup(path);
    run->body = body != NULL ? json_node_ref(body) : NULL;
    send_step(task);
}

void
incus_operation_wait_async(IncusClient *client, const char *id, IncusDeadline *deadline, GAsyncReadyCallback callback,
                           gpointer user_data)
{
    GTask *task = new_run(client, deadline, callback, user_data);
    Run *run = g_task_get_task_data(task);
    run->operation = g_strdup(id);
    wait_step(task);
}

IncusReply *
incus_operation_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_operation_run_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
