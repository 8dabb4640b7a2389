/* SPDX-License-Identifier: MIT */
#include "incus-exec-start.h"

#include "incus-error.h"
#include "incus-operation.h"

/* A failed upgrade says little; the operation's own error is worth this wait. */
#define REASON_MS 2000

static const char *const socket_names[INCUS_EXEC_N_SOCKETS] = {"0", "1", "2", "control"};

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    EbExecSpec *spec;
    char *operation;
    IncusExec *exec;                     /* (nullable) (owned) */
    char *secrets[INCUS_EXEC_N_SOCKETS]; /* one use each */
    SoupWebsocketConnection *sockets[INCUS_EXEC_N_SOCKETS];
    guint pending;
    GError *error; /* (nullable): the first */
} Start;

typedef struct {
    GTask *task; /* (owned) */
    IncusExecSocket which;
} Opening;

static void
start_free(gpointer data)
{
    Start *start = data;
    g_clear_object(&start->client);
    incus_deadline_unref(start->deadline);
    eb_exec_spec_free(start->spec);
    g_free(start->operation);
    g_clear_object(&start->exec);
    for (guint i = 0; i < INCUS_EXEC_N_SOCKETS; i++) {
        g_free(start->secrets[i]);
        g_clear_object(&start->sockets[i]);
    }
    g_clear_error(&start->error);
    g_free(start);
}

static void
add_string(JsonBuilder *builder, const char *name, const char *value)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_string_value(builder, value);
}

static void
add_int(JsonBuilder *builder, const char *name, gint64 value)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_int_value(builder, value);
}

static void
add_bool(JsonBuilder *builder, const char *name, gboolean value)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_boolean_value(builder, value);
}

JsonNode *
incus_exec_body(const EbExecSpec *spec)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    json_builder_set_member_name(builder, "command");
    json_builder_begin_array(builder);
    for (char **arg = spec->argv; arg != NULL && *arg != NULL; arg++)
        json_builder_add_string_value(builder, *arg);
    json_builder_end_array(builder);
    add_bool(builder, "wait-for-websocket", TRUE);
    add_bool(builder, "interactive", spec->tty);
    add_int(builder, "user", spec->uid);
    /* Without it the group is 0, whatever the user. */
    add_int(builder, "group", spec->gid);
    if (spec->cwd != NULL)
        add_string(builder, "cwd", spec->cwd);
    if (spec->tty) {
        add_int(builder, "width", spec->columns > 0 ? spec->columns : 80);
        add_int(builder, "height", spec->rows > 0 ? spec->rows : 24);
    }
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}

static void
on_reason(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Start *start = g_task_get_task_data(task);
    g_autoptr(GError) reason = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &reason);
    if (reason != NULL && !incus_error_has_reason(reason, "incus.timeout") &&
        !incus_error_has_reason(reason, "incus.operation-gone"))
        g_task_return_error(task, g_steal_pointer(&reason));
    else
        g_task_return_error(task, g_steal_pointer(&start->error));
}

static void
all_opened(GTask *task)
{
    Start *start = g_task_get_task_data(task);
    if (start->error != NULL) {
        if (!incus_deadline_check(start->deadline, "exec", NULL)) {
            g_task_return_error(task, g_steal_pointer(&start->error));
            g_object_unref(task);
            return;
        }
        g_autoptr(IncusDeadline) deadline = incus_deadline_new(REASON_MS, NULL);
        incus_operation_wait_async(start->client, start->operation, deadline, on_reason, task);
        return;
    }
    GError *error = NULL;
    if (incus_exec_attach(start->exec, start->sockets, &error))
        g_task_return_pointer(task, g_steal_pointer(&start->exec), g_object_unref);
    else
        g_task_return_error(task, error);
    g_object_unref(task);
}

static gboolean open_socket(GTask *task, IncusExecSocket which);

static void
on_opened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Opening *opening = user_data;
    GTask *task = opening->task;
    Start *start = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    start->sockets[opening->which] = incus_websocket_open_finish(result, &error);
    g_free(opening);
    if (error != NULL && start->error == NULL)
        start->error = g_steal_pointer(&error);
    if (--start->pending > 0) {
        g_object_unref(task);
        return;
    }
    if (start->error != NULL || start->sockets[INCUS_EXEC_STDIN] != NULL) {
        all_opened(task);
        return;
    }
    /* The last of the three that the process waits for: a short one is over, its operation with it, before a socket that
     * comes later could be opened. */
    if (!open_socket(task, INCUS_EXEC_STDIN))
        all_opened(g_object_ref(task));
    g_object_unref(task);
}

static gboolean
open_socket(GTask *task, IncusExecSocket which)
{
    Start *start = g_task_get_task_data(task);
    if (start->secrets[which] == NULL) {
        if (start->error == NULL)
            start->error = eb_error_new(EB_ERROR_PROTOCOL, "incus.protocol", "incusd named too few streams of an exec");
        return FALSE;
    }
    g_autofree char *escaped = g_uri_escape_string(start->secrets[which], NULL, FALSE);
    g_autofree char *path = g_strdup_printf("/1.0/operations/%s/websocket?secret=%s", start->operation, escaped);
    Opening *opening = g_new0(Opening, 1);
    opening->task = g_object_ref(task);
    opening->which = which;
    start->pending++;
    incus_websocket_open_async(start->client, path, start->deadline, on_opened, opening);
    return TRUE;
}

static void
on_created(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Start *start = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply == NULL) {
        g_task_return_error(task, error);
        return;
    }
    JsonObject *fds = eb_json_get_object(reply->operation_metadata, "fds");
    if (reply->operation == NULL || fds == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_PROTOCOL, "incus.protocol", "incusd started no exec"));
        return;
    }
    start->operation = g_strdup(reply->operation);
    start->exec = incus_exec_new(start->client, reply->operation, start->spec->tty);
    for (guint i = 0; i < INCUS_EXEC_N_SOCKETS; i++)
        start->secrets[i] = g_strdup(eb_json_get_string(fds, socket_names[i]));
    /* Together, since incusd gives them 5 seconds; standard input follows. */
    if (open_socket(task, INCUS_EXEC_CONTROL) && !start->spec->tty && open_socket(task, INCUS_EXEC_STDOUT))
        open_socket(task, INCUS_EXEC_STDERR);
    if (start->pending == 0)
        all_opened(g_steal_pointer(&task));
}

void
incus_exec_start_async(IncusClient *client, const char *name, const EbExecSpec *spec, IncusDeadline *deadline,
                       GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Start *start = g_new0(Start, 1);
    g_task_set_source_tag(task, incus_exec_start_async);
    g_task_set_task_data(task, start, start_free);
    start->client = g_object_ref(client);
    start->deadline = incus_deadline_ref(deadline);
    start->spec = eb_exec_spec_copy(spec);
    g_autofree char *path = incus_client_path(client, NULL, "instances", name, "exec", NULL);
    g_autoptr(JsonNode) body = incus_exec_body(spec);
    incus_client_request_async(client, "POST", path, body, deadline, on_created, task);
}

EbExec *
incus_exec_start_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_exec_start_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
