/* SPDX-License-Identifier: MIT */

#include "ds-control.h"

#include "ds-socket.h"

#include <string.h>

#define PREFIX "/__control/"
#define DEFAULT_WAIT_MS 10000

typedef struct {
    DsControl *control;
    SoupServerMessage *message;
    char *verb;
    JsonObject *args;
    gint64 count;
    guint timeout;
} DsWait;

static void
wait_free(DsWait *self)
{
    if (self->timeout != 0)
        g_source_remove(self->timeout);
    g_signal_handlers_disconnect_by_data(self->message, self);
    g_object_unref(self->message);
    g_free(self->verb);
    json_object_unref(self->args);
    g_free(self);
}

DsControl *
ds_control_new(DsWorld *world)
{
    DsControl *self = g_new0(DsControl, 1);

    self->world = world;
    self->waits = g_ptr_array_new_with_free_func((GDestroyNotify)wait_free);
    return self;
}

void
ds_control_free(DsControl *self)
{
    if (self->idle != 0)
        g_source_remove(self->idle);
    g_ptr_array_unref(self->waits);
    g_free(self);
}

/* --- for the verbs --- */

DsChannel *
ds_args_channel(DsWorld *world, JsonObject *args, GError **error)
{
    const char *id = eb_json_get_string(args, "channel") != NULL ? eb_json_get_string(args, "channel") : DS_CHANNEL;
    DsChannel *channel = ds_world_channel(world, id);

    if (channel == NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, NULL, "there is no channel %s", id);
    return channel;
}

DsMessage *
ds_args_message(DsWorld *world, DsChannel *channel, JsonObject *args, GError **error)
{
    const char *id = eb_json_get_string(args, "message");
    DsMessage *message = ds_channel_message(channel, id);

    if (message == NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, NULL, "there is no message %s in %s", id, channel->id);
    return message;
}

const char *
ds_args_user(DsWorld *world, JsonObject *args, GError **error)
{
    const char *id = eb_json_get_string(args, "user") != NULL ? eb_json_get_string(args, "user") : DS_ALICE;

    if (ds_world_user(world, id) != NULL)
        return id;
    eb_set_error(error, EB_ERROR_NOT_FOUND, NULL, "there is no user %s", id);
    return NULL;
}

JsonObject *
ds_control_run(DsWorld *world, const char *verb, JsonObject *args, GError **error)
{
    const DsVerb *const tables[] = {ds_verbs_people, ds_verbs_lists, ds_verbs_faults};
    g_autoptr(JsonObject) none = json_object_new();

    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++) {
        for (const DsVerb *row = tables[t]; row->name != NULL; row++) {
            if (strcmp(row->name, verb) == 0)
                return row->run(world, args != NULL ? args : none, error);
        }
    }
    eb_set_error(error, EB_ERROR_NOT_FOUND, NULL, "there is no verb %s", verb);
    return NULL;
}

gboolean
ds_control_holds(JsonObject *result, gint64 count)
{
    JsonArray *items = eb_json_get_array(result, "items");

    return items != NULL && json_array_get_length(items) >= count;
}

/* --- answers --- */

static void
answer(SoupServerMessage *message, guint status, JsonObject *object)
{
    char *text = ds_text(object);

    soup_server_message_set_status(message, status, NULL);
    soup_server_message_set_response(message, "application/json", SOUP_MEMORY_TAKE, text, strlen(text));
    json_object_unref(object);
}

static void
answer_error(SoupServerMessage *message, const GError *error)
{
    answer(message, 400, ds_object("s:error", error->message, NULL));
}

/* TRUE: answered. @last: it ends whatever the result is. */
static gboolean
try_wait(DsWait *wait, gboolean last)
{
    g_autoptr(GError) error = NULL;
    JsonObject *result = ds_control_run(wait->control->world, wait->verb, wait->args, &error);
    gboolean holds;

    if (result == NULL) {
        answer_error(wait->message, error);
        return TRUE;
    }
    holds = ds_control_holds(result, wait->count);
    if (!holds && !last) {
        json_object_unref(result);
        return FALSE;
    }
    json_object_set_boolean_member(result, "ok", holds);
    answer(wait->message, 200, result);
    return TRUE;
}

static void
end_wait(DsWait *wait)
{
    SoupServerMessage *message = g_object_ref(wait->message);

    g_ptr_array_remove(wait->control->waits, wait);
    ds_unpause(message);
    g_object_unref(message);
}

static gboolean
on_timeout(gpointer user_data)
{
    DsWait *wait = user_data;

    wait->timeout = 0;
    try_wait(wait, TRUE);
    end_wait(wait);
    return G_SOURCE_REMOVE;
}

static void
on_gone(SoupServerMessage *message, gpointer user_data)
{
    DsWait *wait = user_data;

    g_ptr_array_remove(wait->control->waits, wait);
}

static void
start_wait(DsControl *self, SoupServerMessage *message, JsonObject *args)
{
    DsWait *wait = g_new0(DsWait, 1);
    JsonObject *with = eb_json_get_object(args, "with");

    wait->control = self;
    wait->message = g_object_ref(message);
    wait->verb = g_strdup(eb_json_get_string(args, "for") != NULL ? eb_json_get_string(args, "for") : "messages");
    wait->args = with != NULL ? json_object_ref(with) : json_object_new();
    wait->count = eb_json_get_int(args, "count", 1);
    if (try_wait(wait, FALSE)) {
        wait_free(wait);
        return;
    }
    wait->timeout = g_timeout_add((guint)eb_json_get_int(args, "timeout_ms", DEFAULT_WAIT_MS), on_timeout, wait);
    g_signal_connect(message, "finished", G_CALLBACK(on_gone), wait);
    g_ptr_array_add(self->waits, wait);
    ds_pause(message);
}

static gboolean
on_idle(gpointer user_data)
{
    DsControl *self = user_data;
    g_autoptr(GPtrArray) now = g_ptr_array_new();

    self->idle = 0;
    g_ptr_array_extend(now, self->waits, NULL, NULL);
    for (guint i = 0; i < now->len; i++) {
        if (try_wait(g_ptr_array_index(now, i), FALSE))
            end_wait(g_ptr_array_index(now, i));
    }
    return G_SOURCE_REMOVE;
}

void
ds_control_changed(DsControl *self)
{
    if (self->waits->len > 0 && self->idle == 0)
        self->idle = g_idle_add(on_idle, self);
}

void
ds_control_handle(DsControl *self, SoupServerMessage *message, const char *path)
{
    const char *verb = g_str_has_prefix(path, PREFIX) ? path + strlen(PREFIX) : "";
    g_autoptr(GBytes) body = soup_message_body_flatten(soup_server_message_get_request_body(message));
    gsize length = 0;
    const char *text = g_bytes_get_data(body, &length);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = length > 0 ? eb_json_parse(text, length, NULL, &error) : NULL;
    g_autoptr(JsonObject) args =
        eb_json_node_object(node) != NULL ? json_object_ref(eb_json_node_object(node)) : json_object_new();
    JsonObject *result;

    if (error != NULL) {
        answer_error(message, error);
        return;
    }
    if (strcmp(verb, "wait") == 0) {
        start_wait(self, message, args);
        return;
    }
    result = ds_control_run(self->world, verb, args, &error);
    if (result == NULL)
        answer_error(message, error);
    else
        answer(message, 200, result);
}
