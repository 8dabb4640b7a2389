/* SPDX-License-Identifier: MIT */

#include "ds-gateway.h"
#include "ds-request.h"
#include "ds-validate.h"

#include <string.h>

#define NONCE_US (5 * 60 * G_USEC_PER_SEC)
#define MAX_PAGE 100

/* --- making and changing --- */

static gboolean
is_filled(JsonObject *json, const char *member)
{
    JsonArray *array = eb_json_get_array(json, member);

    return array != NULL && json_array_get_length(array) > 0;
}

static gboolean
is_empty(JsonObject *json)
{
    return eb_json_get_string(json, "content")[0] == '\0' && !is_filled(json, "embeds") &&
           !is_filled(json, "components") && !is_filled(json, "attachments") && !is_filled(json, "sticker_ids") &&
           !json_object_has_member(json, "poll");
}

/* Discord's own idea of a file's name. */
static char *
clean_name(const char *name)
{
    return g_strdelimit(g_strdup(name), " /\\:\"'<>|?*", '_');
}

static void
add_uploads(DsRequest *request, DsChannel *channel, JsonObject *body, JsonArray *attachments)
{
    JsonArray *listed = eb_json_get_array(body, "attachments");

    for (guint i = 0; request->uploads != NULL && i < request->uploads->len; i++) {
        DsUpload *upload = g_ptr_array_index(request->uploads, i);
        g_autofree char *name = clean_name(upload->name);
        JsonObject *added = ds_world_add_file(request->world, channel, name, upload->type, upload->bytes, -1);

        for (guint k = 0; listed != NULL && k < json_array_get_length(listed); k++) {
            JsonObject *entry = eb_json_array_object(listed, k);
            g_autofree char *id = ds_id(entry, "id");
            g_autofree char *field = g_strdup_printf("files[%s]", id);

            if (strcmp(field, upload->field) == 0 && eb_json_get_string(entry, "filename") != NULL) {
                g_autofree char *given = clean_name(eb_json_get_string(entry, "filename"));

                json_object_set_string_member(added, "filename", given);
            }
            if (strcmp(field, upload->field) == 0 && eb_json_get_string(entry, "description") != NULL)
                json_object_set_string_member(added, "description", eb_json_get_string(entry, "description"));
        }
        json_array_add_object_element(attachments, added);
    }
}

static void
take_part(JsonObject *from, JsonObject *to, const char *member)
{
    JsonArray *array = eb_json_get_array(from, member);

    if (array != NULL)
        json_object_set_array_member(to, member, json_array_ref(array));
}

static void
take_reference(DsRequest *request, DsChannel *channel, JsonObject *body, JsonObject *fields)
{
    g_autofree char *id = ds_id(eb_json_get_object(body, "message_reference"), "message_id");
    DsMessage *other = id != NULL ? ds_channel_message(channel, id) : NULL;

    if (id == NULL || other == NULL)
        return;
    json_object_set_int_member(fields, "type", 19);
    json_object_set_object_member(
        fields, "message_reference",
        ds_object("i:type", 0, "s:message_id", id, "s:channel_id", channel->id, "s:guild_id", DS_GUILD, NULL));
    json_object_set_object_member(fields, "referenced_message", ds_message_json(request->world, other, FALSE));
}

DsMessage *
ds_make_message(DsRequest *self, DsChannel *channel, JsonObject *body, gboolean users_only)
{
    g_autoptr(JsonObject) errors = NULL;
    g_autofree char *content = NULL;
    JsonArray *attachments = json_array_new();
    JsonObject *fields = json_object_new();
    DsMessage *message;

    errors = ds_validate_message(self, body, users_only ? DS_BODY_INTERACTION : DS_BODY_CREATE);
    if (json_object_get_size(errors) > 0) {
        json_array_unref(attachments);
        json_object_unref(fields);
        ds_refuse_errors(self, g_steal_pointer(&errors));
        return NULL;
    }
    content = ds_clean_content(eb_json_get_string(body, "content") != NULL ? eb_json_get_string(body, "content") : "");
    add_uploads(self, channel, body, attachments);
    json_object_set_array_member(fields, "attachments", attachments);
    json_object_set_int_member(fields, "flags", eb_json_get_int(body, "flags", 0));
    take_part(body, fields, "components");
    take_part(body, fields, "embeds");
    take_reference(self, channel, body, fields);
    message = ds_world_new_message(self->world, channel, DS_APPLICATION, content, fields);
    message->nonce = ds_id(body, "nonce");
    message->nonce_us = g_get_monotonic_time();
    if (message->nonce != NULL)
        json_object_set_string_member(message->json, "nonce", message->nonce);
    if (is_empty(message->json)) {
        message->ephemeral = TRUE; /* nobody sees it */
        message->deleted = TRUE;
        g_ptr_array_add(channel->messages, message);
        ds_refuse_code(self, 50006);
        return NULL;
    }
    ds_world_mentions(self->world, message, eb_json_get_object(body, "allowed_mentions"), users_only, FALSE);
    return message;
}

/* Those that the body keeps; all when it does not speak of them. */
static JsonArray *
kept_attachments(JsonObject *json, JsonObject *body)
{
    JsonArray *listed = eb_json_get_array(body, "attachments");
    JsonArray *have = eb_json_get_array(json, "attachments");
    JsonArray *kept = json_array_new();

    for (guint i = 0; i < json_array_get_length(have); i++) {
        JsonObject *attachment = eb_json_array_object(have, i);
        gboolean keep = listed == NULL;

        for (guint k = 0; listed != NULL && k < json_array_get_length(listed); k++) {
            g_autofree char *id = ds_id(eb_json_array_object(listed, k), "id");

            keep |= g_strcmp0(id, eb_json_get_string(attachment, "id")) == 0;
        }
        if (keep)
            json_array_add_object_element(kept, json_object_ref(attachment));
    }
    return kept;
}

gboolean
ds_change_message(DsRequest *self, DsMessage *message, JsonObject *body, gboolean users_only)
{
    g_autoptr(JsonObject) errors = ds_validate_message(self, body, users_only ? DS_BODY_INTERACTION : DS_BODY_EDIT);
    g_autoptr(JsonObject) changed = ds_copy(message->json);
    JsonArray *attachments;

    if (json_object_get_size(errors) > 0) {
        ds_refuse_errors(self, g_steal_pointer(&errors));
        return FALSE;
    }
    if (json_object_has_member(body, "content")) {
        const char *given = eb_json_get_string(body, "content");
        g_autofree char *content = ds_clean_content(given != NULL ? given : "");

        json_object_set_string_member(changed, "content", content);
    }
    take_part(body, changed, "components");
    take_part(body, changed, "embeds");
    attachments = kept_attachments(changed, body);
    add_uploads(self, message->channel, body, attachments);
    json_object_set_array_member(changed, "attachments", attachments);
    if (json_object_has_member(body, "flags"))
        json_object_set_int_member(changed, "flags",
                                   (eb_json_get_int(body, "flags", 0) & 4) |
                                       (eb_json_get_int(changed, "flags", 0) & ~(gint64)(4 | 128)));
    else
        json_object_set_int_member(changed, "flags", eb_json_get_int(changed, "flags", 0) & ~(gint64)128);
    if (is_empty(changed)) {
        ds_refuse_code(self, 50006);
        return FALSE;
    }
    json_object_unref(message->json);
    message->json = json_object_ref(changed);
    ds_world_mentions(self->world, message, eb_json_get_object(body, "allowed_mentions"), users_only, TRUE);
    ds_world_edited(self->world, message, TRUE);
    return TRUE;
}

/* --- the routes --- */

static gboolean
refuse_archived(DsRequest *self, DsChannel *channel)
{
    if (!ds_channel_flag(channel, "archived"))
        return FALSE;
    ds_refuse_code(self, 50083);
    return TRUE;
}

/* The message that this nonce has already made, when the request asks for that. */
static DsMessage *
same_nonce(DsChannel *channel, JsonObject *body)
{
    g_autofree char *nonce = ds_id(body, "nonce");

    if (nonce == NULL || !eb_json_get_bool(body, "enforce_nonce", FALSE))
        return NULL;
    for (guint i = channel->messages->len; i > 0; i--) {
        DsMessage *message = g_ptr_array_index(channel->messages, i - 1);

        if (!message->ephemeral && g_strcmp0(message->nonce, nonce) == 0 &&
            g_get_monotonic_time() - message->nonce_us < NONCE_US)
            return message;
    }
    return NULL;
}

static void
create_message(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);
    guint64 granted;
    guint64 needs;
    DsMessage *message;

    if (channel == NULL)
        return;
    granted = ds_world_permissions(self->world, DS_APPLICATION, channel);
    needs = ds_channel_is_thread(channel) ? DS_SEND_IN_THREADS : DS_SEND_MESSAGES;
    if (self->uploads != NULL && self->uploads->len > 0)
        needs |= DS_ATTACH_FILES;
    if (eb_json_get_object(self->body, "message_reference") != NULL)
        needs |= DS_READ_HISTORY;
    if ((granted & needs) != needs) {
        ds_refuse_code(self, 50013);
        return;
    }
    if (self->body == NULL) {
        ds_refuse_code(self, 50006);
        return;
    }
    if (ds_channel_flag(channel, "locked") && !(granted & DS_MANAGE_THREADS)) {
        ds_refuse_code(self, 160005);
        return;
    }
    message = same_nonce(channel, self->body);
    if (message != NULL) {
        ds_world_count(self->world, "nonce_repeats");
        if (g_strcmp0(g_ptr_array_index(message->history, 0), eb_json_get_string(self->body, "content")) != 0)
            ds_world_violation(self->world, "nonce", "nonce %s is used for two texts", message->nonce);
        if (message->deleted)
            ds_refuse_code(self, 10008);
        else
            ds_answer_object(self, 200, ds_message_json(self->world, message, FALSE));
        return;
    }
    message = ds_make_message(self, channel, self->body, FALSE);
    if (message == NULL)
        return;
    if (ds_channel_flag(channel, "archived"))
        ds_world_change_thread(self->world, channel, FALSE, -1, NULL);
    ds_world_say(self->world, message);
    ds_answer_object(self, 200, ds_message_json(self->world, message, FALSE));
}

static void
edit_message(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);
    DsMessage *message = channel != NULL ? ds_request_message(self, channel, self->args[1]) : NULL;

    if (message == NULL || refuse_archived(self, channel))
        return;
    if (strcmp(message->author, DS_APPLICATION) != 0)
        ds_refuse_code(self, 50005);
    else if (self->body == NULL)
        ds_refuse_code(self, 50006);
    else if (ds_change_message(self, message, self->body, FALSE))
        ds_answer_object(self, 200, ds_message_json(self->world, message, FALSE));
}

static void
delete_message(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);
    DsMessage *message = channel != NULL ? ds_request_message(self, channel, self->args[1]) : NULL;

    if (message == NULL || refuse_archived(self, channel))
        return;
    if (strcmp(message->author, DS_APPLICATION) != 0 &&
        !(ds_world_permissions(self->world, DS_APPLICATION, channel) & DS_MANAGE_MESSAGES)) {
        ds_refuse_code(self, 50013);
        return;
    }
    ds_world_delete_message(self->world, message);
    ds_answer_empty(self);
}

static void
get_message(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], DS_READ_HISTORY);
    DsMessage *message = channel != NULL ? ds_request_message(self, channel, self->args[1]) : NULL;

    if (message == NULL)
        return;
    ds_world_renew_files(self->world, channel, message->json);
    ds_answer_object(self, 200, ds_message_json(self->world, message, FALSE));
}

static gint
compare_ids(const char *a, const char *b)
{
    const guint64 x = g_ascii_strtoull(a, NULL, 10);
    const guint64 y = g_ascii_strtoull(b, NULL, 10);

    return x < y ? -1 : x > y;
}

static void
list_messages(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);
    const char *after = ds_request_query(self, "after");
    const char *before = ds_request_query(self, "before");
    const char *limit_text = ds_request_query(self, "limit");
    guint64 limit = 50;
    JsonArray *list;
    g_autoptr(GPtrArray) found = g_ptr_array_new();

    if (channel == NULL)
        return;
    if ((limit_text != NULL && !g_ascii_string_to_unsigned(limit_text, 10, 1, MAX_PAGE, &limit, NULL)) ||
        (after != NULL && !ds_is_snowflake(after) && strcmp(after, "0") != 0) ||
        (before != NULL && !ds_is_snowflake(before))) {
        JsonObject *tree = json_object_new();

        ds_error_at(tree, "limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.");
        ds_refuse_errors(self, tree);
        return;
    }
    list = json_array_new();
    for (guint i = 0; i < channel->messages->len; i++) {
        DsMessage *message = g_ptr_array_index(channel->messages, i);

        if (!message->deleted && !message->ephemeral && (after == NULL || compare_ids(message->id, after) > 0) &&
            (before == NULL || compare_ids(message->id, before) < 0))
            g_ptr_array_add(found, message);
    }
    if (!(ds_world_permissions(self->world, DS_APPLICATION, channel) & DS_READ_HISTORY))
        g_ptr_array_set_size(found, 0);
    /* after: the oldest ones; else the newest; newest first in both. */
    if (after != NULL && found->len > limit)
        g_ptr_array_set_size(found, (gint)limit);
    for (guint i = 0; i < MIN(found->len, limit); i++)
        json_array_add_object_element(
            list, ds_message_json(self->world, g_ptr_array_index(found, found->len - 1 - i), FALSE));
    ds_answer(self, 200, ds_take_array(list));
}

/* --- reactions and typing --- */

static gboolean
check_emoji(DsRequest *self)
{
    const char *raw = g_uri_get_path(soup_server_message_get_uri(self->message));

    for (const char *c = raw; *c != '\0'; c++) {
        if ((guchar)*c >= 0x80) {
            ds_world_violation(self->world, "emoji", "not percent-encoded: %s", raw);
            ds_refuse_code(self, 10014);
            return FALSE;
        }
    }
    if (ds_is_emoji(self->args[2]))
        return TRUE;
    ds_refuse_code(self, 10014);
    return FALSE;
}

static void
put_reaction(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], DS_READ_HISTORY | DS_ADD_REACTIONS);
    DsMessage *message = channel != NULL ? ds_request_message(self, channel, self->args[1]) : NULL;

    if (message == NULL || refuse_archived(self, channel) || !check_emoji(self))
        return;
    if (ds_world_react(self->world, message, DS_APPLICATION, self->args[2], TRUE))
        ds_answer_empty(self);
    else
        ds_refuse_code(self, 30010);
}

static void
delete_reaction(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], DS_READ_HISTORY);
    DsMessage *message = channel != NULL ? ds_request_message(self, channel, self->args[1]) : NULL;

    if (message == NULL || refuse_archived(self, channel) || !check_emoji(self))
        return;
    ds_world_react(self->world, message, DS_APPLICATION, self->args[2], FALSE);
    ds_answer_empty(self);
}

static void
list_reactions(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], DS_READ_HISTORY);
    DsMessage *message = channel != NULL ? ds_request_message(self, channel, self->args[1]) : NULL;
    JsonArray *list;

    if (message == NULL || !check_emoji(self))
        return;
    list = json_array_new();
    for (guint i = 0; i < message->reactions->len; i++) {
        DsReaction *reaction = g_ptr_array_index(message->reactions, i);

        for (guint k = 0; strcmp(reaction->emoji, self->args[2]) == 0 && k < reaction->users->len; k++)
            json_array_add_object_element(list,
                                          ds_copy(ds_world_user(self->world, g_ptr_array_index(reaction->users, k))));
    }
    ds_answer(self, 200, ds_take_array(list));
}

static void
start_typing(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);

    if (channel == NULL || refuse_archived(self, channel))
        return;
    if (!(ds_world_permissions(self->world, DS_APPLICATION, channel) &
          (ds_channel_is_thread(channel) ? DS_SEND_IN_THREADS : DS_SEND_MESSAGES))) {
        ds_refuse_code(self, 50013);
        return;
    }
    channel->typing++;
    ds_gateway_dispatch(self->world->gateway, "TYPING_START",
                        ds_object("s:channel_id", channel->id, "s:guild_id", DS_GUILD, "s:user_id", DS_APPLICATION,
                                  "l:timestamp", ds_now_ms() / 1000, NULL),
                        DS_INTENT_TYPING, channel);
    ds_answer_empty(self);
}

const DsRoute ds_routes_messages[] = {
    {"POST", "/channels/{c}/messages", create_message, 5, 5000, NULL, FALSE},
    {"GET", "/channels/{c}/messages", list_messages, 5, 5000, NULL, FALSE},
    {"GET", "/channels/{c}/messages/{m}", get_message, 5, 5000, NULL, FALSE},
    {"PATCH", "/channels/{c}/messages/{m}", edit_message, 5, 5000, NULL, FALSE},
    {"DELETE", "/channels/{c}/messages/{m}", delete_message, 5, 1000, NULL, FALSE},
    {"PUT", "/channels/{c}/messages/{m}/reactions/{e}/@me", put_reaction, 1, 250, "reactions", FALSE},
    {"DELETE", "/channels/{c}/messages/{m}/reactions/{e}/@me", delete_reaction, 1, 250, "reactions", FALSE},
    {"GET", "/channels/{c}/messages/{m}/reactions/{e}", list_reactions, 5, 5000, NULL, FALSE},
    {"POST", "/channels/{c}/typing", start_typing, 5, 5000, NULL, FALSE},
    {NULL, NULL, NULL, 0, 0, NULL, FALSE},
};
