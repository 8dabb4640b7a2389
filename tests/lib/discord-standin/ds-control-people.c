/* SPDX-License-Identifier: MIT */

#include "ds-control.h"
#include "ds-gateway.h"

#include <string.h>

#define MAX_USER_TEXT 4000 /* of people who pay; others have 2000 */

static JsonObject *
fail(GError **error, const char *text)
{
    eb_set_error(error, EB_ERROR_INVALID, NULL, "%s", text);
    return NULL;
}

/* --- who is there --- */

static JsonObject *
show_state(DsWorld *world, JsonObject *args, GError **error)
{
    return ds_object("s:guild", DS_GUILD, "s:application", DS_APPLICATION, "s:channel", DS_CHANNEL, "s:other_channel",
                     DS_OTHER_CHANNEL, "s:bot_role", DS_BOT_ROLE, "s:alice", DS_ALICE, "s:bob", DS_BOB, "s:carol",
                     DS_CAROL, "s:other_bot", DS_OTHER_BOT, "s:origin", world->origin, NULL);
}

static JsonObject *
add_user(DsWorld *world, JsonObject *args, GError **error)
{
    g_autofree char *id =
        eb_json_get_string(args, "id") != NULL ? g_strdup(eb_json_get_string(args, "id")) : ds_world_next_id(world);
    const char *name = eb_json_get_string(args, "name");

    ds_world_add_user(world, id, name != NULL ? name : "somebody", eb_json_get_bool(args, "bot", FALSE));
    return ds_object("s:id", id, NULL);
}

static JsonObject *
set_role(DsWorld *world, JsonObject *args, GError **error)
{
    g_autofree char *id =
        eb_json_get_string(args, "id") != NULL ? g_strdup(eb_json_get_string(args, "id")) : ds_world_next_id(world);
    JsonObject *role = ds_world_role(world, id);
    const char *permissions = eb_json_get_string(args, "permissions");
    const gboolean fresh = role == NULL;

    if (fresh)
        role = ds_world_add_role(world, id, "role", 0);
    if (permissions != NULL)
        json_object_set_string_member(role, "permissions", permissions);
    if (eb_json_get_string(args, "name") != NULL)
        json_object_set_string_member(role, "name", eb_json_get_string(args, "name"));
    ds_gateway_dispatch(world->gateway, fresh ? "GUILD_ROLE_CREATE" : "GUILD_ROLE_UPDATE",
                        ds_object("s:guild_id", DS_GUILD, "o:role", ds_copy(role), NULL), DS_INTENT_GUILDS, NULL);
    return ds_object("s:id", id, NULL);
}

static JsonObject *
set_member(DsWorld *world, JsonObject *args, GError **error)
{
    const char *user = ds_args_user(world, args, error);
    JsonObject *member = user != NULL ? g_hash_table_lookup(world->members, user) : NULL;
    JsonArray *roles = eb_json_get_array(args, "roles");

    if (member == NULL)
        return NULL;
    if (roles != NULL)
        json_object_set_array_member(member, "roles", json_array_ref(roles));
    if (json_object_has_member(args, "timeout_until"))
        ds_object_set(member, "s:communication_disabled_until", eb_json_get_string(args, "timeout_until"), NULL);
    if (strcmp(user, DS_APPLICATION) == 0) { /* of others nothing is told without their own intent */
        JsonObject *event = ds_world_member_json(world, user, TRUE);

        json_object_set_string_member(event, "guild_id", DS_GUILD);
        ds_gateway_dispatch(world->gateway, "GUILD_MEMBER_UPDATE", event, 0, NULL);
    }
    return json_object_new();
}

static JsonObject *
set_guild(DsWorld *world, JsonObject *args, GError **error)
{
    const char *state = eb_json_get_string(args, "state");
    const char *owner = eb_json_get_string(args, "owner");

    if (owner != NULL)
        json_object_set_string_member(world->guild, "owner_id", owner);
    if (g_strcmp0(state, "outage") == 0) {
        ds_gateway_dispatch(world->gateway, "GUILD_DELETE", ds_object("s:id", DS_GUILD, "b:unavailable", TRUE, NULL),
                            DS_INTENT_GUILDS, NULL);
    } else if (g_strcmp0(state, "removed") == 0) {
        ds_gateway_dispatch(world->gateway, "GUILD_DELETE", ds_object("s:id", DS_GUILD, NULL), DS_INTENT_GUILDS, NULL);
        world->bot_in_guild = FALSE;
    } else if (g_strcmp0(state, "back") == 0) {
        world->bot_in_guild = TRUE;
        ds_gateway_dispatch(world->gateway, "GUILD_CREATE", ds_gateway_guild_json(world, TRUE), DS_INTENT_GUILDS, NULL);
    } else if (state != NULL) {
        return fail(error, "state is outage, removed or back");
    }
    return json_object_new();
}

static JsonObject *
set_application(DsWorld *world, JsonObject *args, GError **error)
{
    world->application_flags = eb_json_get_int(args, "flags", world->application_flags);
    if (json_object_has_member(args, "interactions_url")) {
        g_free(world->interactions_url);
        world->interactions_url = g_strdup(eb_json_get_string(args, "interactions_url"));
    }
    return json_object_new();
}

/* --- channels and threads --- */

static JsonObject *
add_channel(DsWorld *world, JsonObject *args, GError **error)
{
    g_autofree char *id = ds_world_next_id(world);
    const char *name = eb_json_get_string(args, "name");
    DsChannel *channel = ds_world_add_channel(world, id, name != NULL ? name : "channel");

    ds_world_tell_channel(world, channel, "CHANNEL_CREATE");
    return ds_object("s:id", id, NULL);
}

static JsonObject *
set_overwrite(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    const char *id = eb_json_get_string(args, "id") != NULL ? eb_json_get_string(args, "id") : DS_BOT_ROLE;
    const char *allow = eb_json_get_string(args, "allow");
    const char *deny = eb_json_get_string(args, "deny");
    const gboolean role = ds_world_role(world, id) != NULL;
    JsonArray *old = channel != NULL ? eb_json_get_array(channel->json, "permission_overwrites") : NULL;
    JsonArray *fresh;
    gboolean visible;

    if (channel == NULL || old == NULL)
        return channel == NULL ? NULL : fail(error, "a thread has no overwrites");
    fresh = json_array_new();
    for (guint i = 0; i < json_array_get_length(old); i++) {
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(old, i), "id"), id) != 0)
            json_array_add_element(fresh, json_array_dup_element(old, i));
    }
    if (allow != NULL || deny != NULL)
        json_array_add_object_element(fresh, ds_object("s:id", id, "i:type", role ? 0 : 1, "s:allow",
                                                       allow != NULL ? allow : "0", "s:deny", deny != NULL ? deny : "0",
                                                       NULL));
    visible = (ds_world_permissions(world, DS_APPLICATION, channel) & DS_VIEW_CHANNEL) != 0;
    json_object_set_array_member(channel->json, "permission_overwrites", fresh);
    if ((ds_world_permissions(world, DS_APPLICATION, channel) & DS_VIEW_CHANNEL) == 0 && visible) {
        /* Who loses sight of a channel is told that it is gone, and nothing of its threads. */
        JsonObject *event = ds_copy(channel->json);

        ds_gateway_dispatch(world->gateway, "CHANNEL_DELETE", event, DS_INTENT_GUILDS, NULL);
    } else {
        ds_world_tell_channel(world, channel, visible ? "CHANNEL_UPDATE" : "CHANNEL_CREATE");
    }
    return json_object_new();
}

static JsonObject *
delete_channel(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);

    if (channel == NULL)
        return NULL;
    ds_world_remove_channel(world, channel);
    return json_object_new();
}

static JsonObject *
open_thread(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    const char *user = ds_args_user(world, args, error);
    const char *name = eb_json_get_string(args, "name");
    DsMessage *from = NULL;

    if (channel == NULL || user == NULL)
        return NULL;
    if (eb_json_get_string(args, "message") != NULL) {
        from = ds_args_message(world, channel, args, error);
        if (from == NULL)
            return NULL;
        if (json_object_has_member(from->json, "thread"))
            return fail(error, "it has a thread");
    }
    return ds_object(
        "s:id", ds_world_add_thread(world, channel, from, name != NULL ? name : "thread", user, 1440, 11)->id, NULL);
}

static JsonObject *
change_thread(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);

    if (channel == NULL)
        return NULL;
    if (!ds_channel_is_thread(channel))
        return fail(error, "that is no thread");
    ds_world_change_thread(world, channel,
                           json_object_has_member(args, "archived") ? eb_json_get_bool(args, "archived", FALSE) : -1,
                           json_object_has_member(args, "locked") ? eb_json_get_bool(args, "locked", FALSE) : -1,
                           eb_json_get_string(args, "name"));
    return json_object_new();
}

/* --- what people say --- */

static GBytes *
bytes_of(JsonObject *attachment)
{
    const char *base64 = eb_json_get_string(attachment, "base64");
    const char *text = eb_json_get_string(attachment, "text");
    gsize length = 0;

    if (base64 != NULL) {
        guchar *data = g_base64_decode(base64, &length);

        return g_bytes_new_take(data, length);
    }
    if (text != NULL)
        return g_bytes_new(text, strlen(text));
    length = (gsize)eb_json_get_int(attachment, "bytes", 16);
    return g_bytes_new_take(g_strnfill(length, 'x'), length);
}

static JsonArray *
attach(DsWorld *world, DsChannel *channel, JsonArray *list)
{
    JsonArray *made = json_array_new();

    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *attachment = eb_json_array_object(list, i);
        g_autoptr(GBytes) bytes = bytes_of(attachment);
        const char *name = eb_json_get_string(attachment, "name");
        JsonObject *one = ds_world_add_file(world, channel, name != NULL ? name : "file.txt",
                                            eb_json_get_string(attachment, "content_type"), bytes,
                                            eb_json_get_int(attachment, "claimed_size", -1));

        if (eb_json_get_string(attachment, "url") != NULL)
            json_object_set_string_member(one, "url", eb_json_get_string(attachment, "url"));
        json_array_add_object_element(made, one);
    }
    return made;
}

/* What a client lets people send besides text. */
static void
add_specials(DsWorld *world, JsonObject *args, JsonObject *fields)
{
    const char *sticker = eb_json_get_string(args, "sticker");
    const char *forward = eb_json_get_string(args, "forward");
    const char *poll = eb_json_get_string(args, "poll");
    JsonArray *list;

    if (sticker != NULL) {
        list = json_array_new();
        json_array_add_object_element(
            list, ds_object("s:id", "300000000000000001", "s:name", sticker, "i:format_type", 1, NULL));
        json_object_set_array_member(fields, "sticker_items", list);
    }
    if (forward != NULL) {
        list = json_array_new();
        json_array_add_object_element(
            list, ds_object("o:message",
                            ds_object("s:content", forward, "i:type", 0, "a:attachments", json_array_new(), "a:embeds",
                                      json_array_new(), "i:flags", 0, NULL),
                            NULL));
        json_object_set_array_member(fields, "message_snapshots", list);
        json_object_set_object_member(
            fields, "message_reference",
            ds_object("i:type", 1, "s:channel_id", DS_OTHER_CHANNEL, "s:message_id", "300000000000000002", NULL));
    }
    if (poll != NULL)
        json_object_set_object_member(fields, "poll",
                                      ds_object("o:question", ds_object("s:text", poll, NULL), "a:answers",
                                                json_array_new(), "b:allow_multiselect", FALSE, "i:layout_type", 1,
                                                NULL));
    if (eb_json_get_bool(args, "voice", FALSE))
        json_object_set_int_member(fields, "flags", 8192);
    if (eb_json_get_string(args, "webhook") != NULL)
        json_object_set_string_member(fields, "webhook_id", eb_json_get_string(args, "webhook"));
}

static void
add_reply(DsWorld *world, DsChannel *channel, JsonObject *args, JsonObject *fields)
{
    DsMessage *other = ds_channel_message(channel, eb_json_get_string(args, "reply_to"));

    if (other == NULL)
        return;
    json_object_set_int_member(fields, "type", 19);
    json_object_set_object_member(
        fields, "message_reference",
        ds_object("i:type", 0, "s:message_id", other->id, "s:channel_id", channel->id, "s:guild_id", DS_GUILD, NULL));
    json_object_set_object_member(fields, "referenced_message", ds_message_json(world, other, FALSE));
}

static JsonObject *
say(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    const char *user = channel != NULL ? ds_args_user(world, args, error) : NULL;
    const char *content = eb_json_get_string(args, "content") != NULL ? eb_json_get_string(args, "content") : "";
    g_autofree char *text = g_strstrip(g_strdup(content));
    JsonArray *files = eb_json_get_array(args, "attachments");
    JsonObject *fields;
    DsMessage *message;

    if (user == NULL)
        return NULL;
    if (g_utf8_strlen(text, -1) > MAX_USER_TEXT)
        return fail(error, "a client sends that as message.txt");
    if (ds_channel_flag(channel, "locked"))
        return fail(error, "the thread is locked");
    fields =
        ds_object("a:attachments", attach(world, channel, files), "l:type", eb_json_get_int(args, "type", 0), NULL);
    add_specials(world, args, fields);
    add_reply(world, channel, args, fields);
    message = ds_world_new_message(world, channel, user, text, fields);
    ds_world_mentions(world, message, NULL, FALSE, FALSE);
    if (ds_channel_flag(channel, "archived"))
        ds_world_change_thread(world, channel, FALSE, -1, NULL);
    ds_world_say(world, message);
    return ds_object("s:id", message->id, NULL);
}

static JsonObject *
edit(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    DsMessage *message = channel != NULL ? ds_args_message(world, channel, args, error) : NULL;

    if (message == NULL)
        return NULL;
    json_object_set_string_member(message->json, "content",
                                  eb_json_get_string(args, "content") != NULL ? eb_json_get_string(args, "content")
                                                                              : "");
    ds_world_edited(world, message, TRUE);
    return json_object_new();
}

static JsonObject *
unfurl(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    DsMessage *message = channel != NULL ? ds_args_message(world, channel, args, error) : NULL;
    JsonArray *embeds;

    if (message == NULL)
        return NULL;
    embeds = json_array_new();
    json_array_add_object_element(
        embeds, ds_object("s:type", "link", "s:url", "https://example.com/", "s:title", "Example", NULL));
    json_object_set_array_member(message->json, "embeds", embeds);
    ds_world_edited(world, message, FALSE);
    return json_object_new();
}

static JsonObject *
delete_message(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    DsMessage *message = channel != NULL ? ds_args_message(world, channel, args, error) : NULL;

    if (message == NULL)
        return NULL;
    ds_world_delete_message(world, message);
    return json_object_new();
}

static JsonObject *
delete_bulk(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    JsonArray *ids = eb_json_get_array(args, "messages");

    if (channel == NULL || ids == NULL)
        return channel == NULL ? NULL : fail(error, "name messages");
    for (guint i = 0; i < json_array_get_length(ids); i++) {
        DsMessage *message = ds_channel_message(channel, eb_json_array_string(ids, i));

        if (message != NULL)
            message->deleted = TRUE;
    }
    ds_gateway_dispatch(world->gateway, "MESSAGE_DELETE_BULK",
                        ds_object("A:ids", ids, "s:channel_id", channel->id, "s:guild_id", DS_GUILD, NULL),
                        DS_INTENT_MESSAGES, channel);
    ds_world_changed(world);
    return json_object_new();
}

static JsonObject *
react(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    DsMessage *message = channel != NULL ? ds_args_message(world, channel, args, error) : NULL;
    const char *user = message != NULL ? ds_args_user(world, args, error) : NULL;
    const char *emoji = eb_json_get_string(args, "emoji");

    if (user == NULL || emoji == NULL)
        return user == NULL ? NULL : fail(error, "name an emoji");
    if (!ds_world_react(world, message, user, emoji, eb_json_get_bool(args, "on", TRUE)))
        return fail(error, "it has 20 different ones");
    return json_object_new();
}

/* --- buttons and commands --- */

/* The button that @args mean, by custom_id, or by label. */
static JsonObject *
find_button(DsMessage *message, JsonObject *args)
{
    JsonArray *rows = eb_json_get_array(message->json, "components");
    const char *id = eb_json_get_string(args, "custom_id");
    const char *label = eb_json_get_string(args, "label");

    for (guint i = 0; rows != NULL && i < json_array_get_length(rows); i++) {
        JsonArray *parts = eb_json_get_array(eb_json_array_object(rows, i), "components");

        for (guint k = 0; parts != NULL && k < json_array_get_length(parts); k++) {
            JsonObject *part = eb_json_array_object(parts, k);
            const char *shown = eb_json_get_string(part, "label");

            if ((id != NULL && g_strcmp0(id, eb_json_get_string(part, "custom_id")) == 0) ||
                (label != NULL && shown != NULL && g_regex_match_simple(label, shown, G_REGEX_CASELESS, 0)))
                return part;
        }
    }
    return NULL;
}

static JsonObject *
press(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    DsMessage *message = channel != NULL ? ds_args_message(world, channel, args, error) : NULL;
    const char *user = message != NULL ? ds_args_user(world, args, error) : NULL;
    JsonObject *button = user != NULL ? find_button(message, args) : NULL;
    const char *id = eb_json_get_string(args, "custom_id");

    if (user == NULL)
        return NULL;
    if (eb_json_get_bool(args, "stale", FALSE) && id != NULL) /* as shown on a screen that is behind */
        button = NULL;
    else if (button == NULL || eb_json_get_bool(button, "disabled", FALSE))
        return fail(error, button == NULL ? "the message has no such button" : "the button is disabled");
    if (button != NULL)
        id = eb_json_get_string(button, "custom_id");
    if (ds_channel_flag(channel, "archived"))
        ds_world_change_thread(world, channel, FALSE, -1, NULL);
    return ds_object("s:id",
                     ds_world_interact(world, 3, user, channel, message, id,
                                       ds_object("s:custom_id", id, "i:component_type", 2, "i:id", 1, NULL))
                         ->id,
                     NULL);
}

/* (transfer full) (nullable): the options as the client sends them, by the command that is registered */
static JsonArray *
make_options(JsonObject *command, JsonObject *given, GError **error)
{
    JsonArray *options = eb_json_get_array(command, "options");
    g_autoptr(JsonArray) made = json_array_new();
    guint used = 0;

    for (guint i = 0; options != NULL && i < json_array_get_length(options); i++) {
        JsonObject *option = eb_json_array_object(options, i);
        const char *name = eb_json_get_string(option, "name");
        JsonNode *value = eb_json_get_node(given, name);
        JsonObject *one;

        if (value == NULL && eb_json_get_bool(option, "required", FALSE)) {
            eb_set_error(error, EB_ERROR_INVALID, NULL, "the option %s is required", name);
            return NULL;
        }
        if (value == NULL)
            continue;
        one = ds_object("s:name", name, "l:type", eb_json_get_int(option, "type", 3), NULL);
        json_object_set_member(one, "value", json_node_copy(value));
        json_array_add_object_element(made, one);
        used++;
    }
    if (given != NULL && used != json_object_get_size(given)) {
        eb_set_error(error, EB_ERROR_INVALID, NULL, "the command has not all of these options");
        return NULL;
    }
    return g_steal_pointer(&made);
}

static JsonObject *
run_command(DsWorld *world, JsonObject *args, GError **error)
{
    DsChannel *channel = ds_args_channel(world, args, error);
    const char *user = channel != NULL ? ds_args_user(world, args, error) : NULL;
    const char *name = eb_json_get_string(args, "name");
    JsonObject *command = NULL;
    JsonArray *options;
    JsonObject *data;

    if (user == NULL)
        return NULL;
    for (guint i = 0; i < json_array_get_length(world->guild_commands); i++) {
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(world->guild_commands, i), "name"), name) == 0)
            command = eb_json_array_object(world->guild_commands, i);
    }
    if (command == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, NULL, "no command %s is registered", name);
        return NULL;
    }
    options = make_options(command, eb_json_get_object(args, "options"), error);
    if (options == NULL)
        return NULL;
    data = ds_object("s:id", eb_json_get_string(command, "id"), "s:name", name, "i:type", 1, "s:guild_id", DS_GUILD,
                     "a:options", options, NULL);
    return ds_object("s:id", ds_world_interact(world, 2, user, channel, NULL, name, data)->id, NULL);
}

const DsVerb ds_verbs_people[] = {
    {"state", show_state},
    {"user", add_user},
    {"role", set_role},
    {"member", set_member},
    {"guild", set_guild},
    {"application", set_application},
    {"channel", add_channel},
    {"overwrite", set_overwrite},
    {"delete-channel", delete_channel},
    {"thread", open_thread},
    {"change-thread", change_thread},
    {"say", say},
    {"edit", edit},
    {"unfurl", unfurl},
    {"delete", delete_message},
    {"delete-bulk", delete_bulk},
    {"react", react},
    {"press", press},
    {"command", run_command},
    {NULL, NULL},
};
