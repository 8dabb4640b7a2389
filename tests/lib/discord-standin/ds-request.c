/* SPDX-License-Identifier: MIT */

#include "ds-request.h"

#include <string.h>

static const struct {
    int code;
    guint status;
    const char *message;
} known_errors[] = {
    {0, 401, "401: Unauthorized"},
    {10003, 404, "Unknown Channel"},
    {10004, 404, "Unknown Guild"},
    {10008, 404, "Unknown Message"},
    {10007, 404, "Unknown Member"},
    {10013, 404, "Unknown User"},
    {10014, 400, "Unknown Emoji"},
    {10015, 404, "Unknown Webhook"},
    {10062, 404, "Unknown interaction"},
    {10063, 404, "Unknown application command"},
    {30010, 400, "Maximum number of reactions reached (20)"},
    {30034, 400, "Maximum number of application command creates has been reached (200)"},
    {40005, 413, "Request entity too large"},
    {40060, 400, "Interaction has already been acknowledged."},
    {50001, 403, "Missing Access"},
    {50005, 403, "Cannot edit a message authored by another user"},
    {50006, 400, "Cannot send an empty message"},
    {50013, 403, "Missing Permissions"},
    {50021, 403, "Cannot execute action on a system message"},
    {50024, 400, "Cannot execute action on this channel type"},
    {50027, 401, "Invalid Webhook Token"},
    {50035, 400, "Invalid Form Body"},
    {50083, 400, "Thread is archived"},
    {50109, 400, "The request body contains invalid JSON."},
    {160004, 400, "A thread has already been created for this message"},
    {160005, 400, "Thread is locked"},
};

void
ds_request_free(DsRequest *self)
{
    g_clear_object(&self->message);
    g_free(self->method);
    g_free(self->path);
    for (guint i = 0; i < G_N_ELEMENTS(self->args); i++)
        g_free(self->args[i]);
    g_clear_pointer(&self->query, g_hash_table_unref);
    g_clear_pointer(&self->body, json_object_unref);
    g_clear_pointer(&self->list, json_array_unref);
    g_clear_pointer(&self->uploads, g_ptr_array_unref);
    g_free(self);
}

const char *
ds_request_query(DsRequest *self, const char *name)
{
    return self->query != NULL ? g_hash_table_lookup(self->query, name) : NULL;
}

void
ds_answer(DsRequest *self, guint status, JsonNode *node)
{
    gsize length = 0;
    char *text = eb_json_write(node, &length);

    self->status = status;
    soup_server_message_set_status(self->message, status, NULL);
    soup_server_message_set_response(self->message, "application/json", SOUP_MEMORY_TAKE, text, length);
    json_node_unref(node);
}

void
ds_answer_object(DsRequest *self, guint status, JsonObject *object)
{
    ds_answer(self, status, ds_take(object));
}

/* libsoup's server forgets on its way that such an answer has no body, and would end the connection to end it. */
static void
on_wrote_headers(SoupServerMessage *message, gpointer user_data)
{
    soup_message_headers_set_encoding(soup_server_message_get_response_headers(message), SOUP_ENCODING_NONE);
}

void
ds_answer_empty(DsRequest *self)
{
    self->status = 204;
    soup_server_message_set_status(self->message, 204, NULL);
    g_signal_connect(self->message, "wrote-headers", G_CALLBACK(on_wrote_headers), NULL);
}

void
ds_refuse(DsRequest *self, guint status, int code, const char *message)
{
    self->code = code;
    ds_answer_object(self, status, ds_object("s:message", message, "i:code", code, NULL));
}

void
ds_refuse_code(DsRequest *self, int code)
{
    for (gsize i = 0; i < G_N_ELEMENTS(known_errors); i++) {
        if (known_errors[i].code == code) {
            ds_refuse(self, known_errors[i].status, code, known_errors[i].message);
            return;
        }
    }
    g_error("error code %d has no words", code);
}

void
ds_refuse_errors(DsRequest *self, JsonObject *errors)
{
    self->code = 50035;
    ds_answer_object(self, 400, ds_object("s:message", "Invalid Form Body", "i:code", 50035, "o:errors", errors, NULL));
}

DsChannel *
ds_request_channel(DsRequest *self, const char *id, guint64 needs)
{
    DsChannel *channel = NULL;
    guint64 granted;

    if (!ds_is_snowflake(id)) {
        ds_refuse_errors(self, ds_object("o:channel_id", ds_object("s:_errors", "NUMBER_TYPE_COERCE", NULL), NULL));
        return NULL;
    }
    channel = ds_world_channel(self->world, id);
    if (channel == NULL) {
        ds_refuse_code(self, 10003);
        return NULL;
    }
    granted = ds_world_permissions(self->world, DS_APPLICATION, channel);
    if (!(granted & DS_VIEW_CHANNEL)) {
        ds_refuse_code(self, 50001);
        return NULL;
    }
    if ((granted & needs) != needs) {
        ds_refuse_code(self, 50013);
        return NULL;
    }
    return channel;
}

DsMessage *
ds_request_message(DsRequest *self, DsChannel *channel, const char *id)
{
    DsMessage *message = ds_channel_message(channel, id);

    if (message == NULL)
        ds_refuse_code(self, 10008);
    return message;
}
