/* SPDX-License-Identifier: MIT */

#include "ds-request.h"
#include "ds-validate.h"

#include <string.h>

#define FIRST_ANSWER_US (3 * G_USEC_PER_SEC)
#define TOKEN_US (15 * 60 * G_USEC_PER_SEC)
#define FLAG_EPHEMERAL 64
#define FLAG_LOADING 128

enum { COMMAND = 2, COMPONENT = 3 };
enum { ANSWER = 4, DEFER = 5, DEFER_UPDATE = 6, UPDATE = 7 };

static DsChannel *
channel_of(DsRequest *self, DsInteraction *interaction)
{
    DsChannel *channel = ds_world_channel(self->world, interaction->channel);

    if (channel == NULL)
        ds_refuse_code(self, 10003);
    else if (ds_channel_flag(channel, "archived") && ds_channel_flag(channel, "locked"))
        ds_refuse_code(self, 50083);
    else
        return channel;
    return NULL;
}

/* A message that answers an interaction. (nullable): refused */
static DsMessage *
say(DsRequest *self, DsInteraction *interaction, DsChannel *channel, JsonObject *body, gboolean ephemeral)
{
    DsMessage *message = ds_make_message(self, channel, body, TRUE);

    if (message == NULL)
        return NULL;
    message->ephemeral = ephemeral;
    json_object_set_int_member(message->json, "type", interaction->type == COMMAND ? 20 : 19);
    json_object_set_string_member(message->json, "webhook_id", DS_APPLICATION);
    json_object_set_string_member(message->json, "application_id", DS_APPLICATION);
    if (ephemeral)
        json_object_set_int_member(message->json, "flags", eb_json_get_int(message->json, "flags", 0) | FLAG_EPHEMERAL);
    g_ptr_array_add(interaction->answers, message);
    ds_world_say(self->world, message);
    return message;
}

/* "thinking" */
static void
defer(DsRequest *self, DsInteraction *interaction, DsChannel *channel)
{
    const int flags = FLAG_LOADING | (interaction->ephemeral ? FLAG_EPHEMERAL : 0);
    DsMessage *message = ds_world_new_message(self->world, channel, DS_APPLICATION, "",
                                              ds_object("i:type", 20, "i:flags", flags, "s:webhook_id", DS_APPLICATION,
                                                        "s:application_id", DS_APPLICATION, NULL));

    message->ephemeral = interaction->ephemeral;
    interaction->deferred = TRUE;
    interaction->original = message;
    g_ptr_array_add(interaction->answers, message);
    ds_world_say(self->world, message);
}

/* FALSE: refused */
static gboolean
take_answer(DsRequest *self, DsInteraction *interaction, DsChannel *channel, int type, JsonObject *data)
{
    interaction->ephemeral = (eb_json_get_int(data, "flags", 0) & FLAG_EPHEMERAL) != 0;
    switch (type) {
    case ANSWER:
        interaction->original = data != NULL ? say(self, interaction, channel, data, interaction->ephemeral) : NULL;
        if (data == NULL)
            ds_refuse_code(self, 50035);
        return interaction->original != NULL;
    case DEFER:
        defer(self, interaction, channel);
        return TRUE;
    case DEFER_UPDATE:
        interaction->original = interaction->source;
        return TRUE;
    default:
        interaction->original = interaction->source;
        return data != NULL && ds_change_message(self, interaction->source, data, TRUE);
    }
}

static void
callback(DsRequest *self)
{
    DsInteraction *interaction = ds_world_interaction(self->world, self->args[0]);
    const int type = (int)eb_json_get_int(self->body, "type", 0);
    const gint64 now = g_get_monotonic_time();
    const char *with_response = ds_request_query(self, "with_response");
    DsChannel *channel;

    if (interaction == NULL || strcmp(interaction->token, self->args[1]) != 0 ||
        (interaction->acked_us == 0 && now - interaction->made_us > FIRST_ANSWER_US)) {
        ds_refuse_code(self, 10062);
        return;
    }
    if (interaction->acked_us != 0) {
        ds_refuse_code(self, 40060);
        return;
    }
    if (type < ANSWER || type > UPDATE || (type >= DEFER_UPDATE && interaction->type != COMPONENT)) {
        JsonObject *tree = json_object_new();

        ds_error_at(tree, "type", "BASE_TYPE_CHOICES", "Value must be one of {1, 4, 5, 6, 7, 8, 9, 10, 12}.");
        ds_refuse_errors(self, tree);
        return;
    }
    channel = channel_of(self, interaction);
    if (channel == NULL || !take_answer(self, interaction, channel, type, eb_json_get_object(self->body, "data")))
        return;
    interaction->acked_us = now;
    interaction->callback = type;
    ds_world_changed(self->world);
    if (g_strcmp0(with_response, "true") == 0)
        ds_answer_object(
            self, 200,
            ds_object("o:interaction",
                      ds_object("s:id", interaction->id, "i:type", interaction->type, "s:response_message_id",
                                interaction->original != NULL ? interaction->original->id : NULL,
                                "b:response_message_loading", interaction->deferred, "b:response_message_ephemeral",
                                interaction->ephemeral, NULL),
                      NULL));
    else
        ds_answer_empty(self);
}

/* --- what comes later --- */

static DsInteraction *
find(DsRequest *self)
{
    DsInteraction *interaction = ds_world_interaction(self->world, self->args[1]);

    if (strcmp(self->args[0], DS_APPLICATION) != 0 || interaction == NULL || interaction->acked_us == 0)
        ds_refuse_code(self, 10015);
    else if (g_get_monotonic_time() - interaction->made_us > TOKEN_US)
        ds_refuse_code(self, 50027);
    else
        return interaction;
    return NULL;
}

static DsMessage *
answer_of(DsRequest *self, DsInteraction *interaction)
{
    const gboolean original = self->args[2] == NULL || strcmp(self->args[2], "@original") == 0;

    if (original && interaction->original != NULL && !interaction->original->deleted)
        return interaction->original;
    for (guint i = 0; !original && i < interaction->answers->len; i++) {
        DsMessage *message = g_ptr_array_index(interaction->answers, i);

        if (!message->deleted && strcmp(message->id, self->args[2]) == 0)
            return message;
    }
    ds_refuse_code(self, 10008);
    return NULL;
}

static gboolean
edit(DsRequest *self, DsInteraction *interaction, DsMessage *message)
{
    if (!ds_change_message(self, message, self->body, TRUE))
        return FALSE;
    if (message == interaction->original)
        interaction->deferred = FALSE;
    ds_world_changed(self->world);
    ds_answer_object(self, 200, ds_message_json(self->world, message, FALSE));
    return TRUE;
}

static void
edit_answer(DsRequest *self)
{
    DsInteraction *interaction = find(self);
    DsMessage *message = interaction != NULL ? answer_of(self, interaction) : NULL;

    if (message != NULL && channel_of(self, interaction) != NULL)
        edit(self, interaction, message);
}

static void
get_answer(DsRequest *self)
{
    DsInteraction *interaction = find(self);
    DsMessage *message = interaction != NULL ? answer_of(self, interaction) : NULL;

    if (message != NULL)
        ds_answer_object(self, 200, ds_message_json(self->world, message, FALSE));
}

static void
delete_answer(DsRequest *self)
{
    DsInteraction *interaction = find(self);
    DsMessage *message = interaction != NULL ? answer_of(self, interaction) : NULL;

    if (message == NULL)
        return;
    ds_world_delete_message(self->world, message);
    ds_answer_empty(self);
}

static void
follow_up(DsRequest *self)
{
    DsInteraction *interaction = find(self);
    DsChannel *channel = interaction != NULL ? channel_of(self, interaction) : NULL;
    const gboolean ephemeral = (eb_json_get_int(self->body, "flags", 0) & FLAG_EPHEMERAL) != 0;
    DsMessage *message;

    if (channel == NULL)
        return;
    /* The first one after a defer takes its place, as if the original answer were edited. */
    if (interaction->deferred && interaction->original != NULL) {
        edit(self, interaction, interaction->original);
        return;
    }
    message = say(self, interaction, channel, self->body, ephemeral);
    if (message != NULL)
        ds_answer_object(self, 200, ds_message_json(self->world, message, FALSE));
}

const DsRoute ds_routes_interactions[] = {
    {"POST", "/interactions/{i}/{t}/callback", callback, 0, 0, NULL, TRUE},
    {"POST", "/webhooks/{a}/{t}", follow_up, 5, 2000, "webhook", TRUE},
    {"GET", "/webhooks/{a}/{t}/messages/{m}", get_answer, 5, 2000, "webhook-get", TRUE},
    {"PATCH", "/webhooks/{a}/{t}/messages/{m}", edit_answer, 5, 2000, "webhook", TRUE},
    {"DELETE", "/webhooks/{a}/{t}/messages/{m}", delete_answer, 5, 2000, "webhook", TRUE},
    {NULL, NULL, NULL, 0, 0, NULL, FALSE},
};
