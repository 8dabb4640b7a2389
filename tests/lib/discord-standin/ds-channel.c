/* SPDX-License-Identifier: MIT */

#include "ds-gateway.h"
#include "ds-world.h"

#include <string.h>

#define MAX_REACTIONS 20

static void
reaction_free(DsReaction *self)
{
    g_free(self->emoji);
    g_ptr_array_unref(self->users);
    g_free(self);
}

static void
message_free(DsMessage *self)
{
    g_free(self->id);
    g_free(self->author);
    g_free(self->nonce);
    json_object_unref(self->json);
    g_ptr_array_unref(self->history);
    g_ptr_array_unref(self->reactions);
    g_free(self);
}

static DsChannel *
channel_new(DsWorld *world, char *id, JsonObject *json)
{
    DsChannel *self = g_new0(DsChannel, 1);

    self->id = id;
    self->json = json;
    self->messages = g_ptr_array_new_with_free_func((GDestroyNotify)message_free);
    self->renames = g_array_new(FALSE, FALSE, sizeof(gint64));
    g_ptr_array_add(world->channels, self);
    return self;
}

DsChannel *
ds_world_add_channel(DsWorld *self, const char *id, const char *name)
{
    JsonObject *json =
        ds_object("s:id", id, "i:type", 0, "s:guild_id", DS_GUILD, "s:name", name, "n:topic", "i:position",
                  (int)self->channels->len, "a:permission_overwrites", json_array_new(), "n:parent_id", "b:nsfw", FALSE,
                  "i:rate_limit_per_user", 0, "n:last_message_id", "i:flags", 0, NULL);

    return channel_new(self, g_strdup(id), json);
}

DsChannel *
ds_world_channel(DsWorld *self, const char *id)
{
    for (guint i = 0; i < self->channels->len; i++) {
        DsChannel *channel = g_ptr_array_index(self->channels, i);

        if (!channel->deleted && g_strcmp0(channel->id, id) == 0)
            return channel;
    }
    return NULL;
}

gboolean
ds_channel_is_thread(DsChannel *self)
{
    return json_object_has_member(self->json, "thread_metadata");
}

JsonObject *
ds_channel_metadata(DsChannel *self)
{
    return eb_json_get_object(self->json, "thread_metadata");
}

gboolean
ds_channel_flag(DsChannel *self, const char *name)
{
    return eb_json_get_bool(ds_channel_metadata(self), name, FALSE);
}

JsonObject *
ds_channel_json(DsWorld *world, DsChannel *self)
{
    JsonObject *json = ds_copy(self->json);
    g_autofree char *own =
        g_strdup_printf("%" G_GUINT64_FORMAT, ds_world_permissions(world, DS_APPLICATION, self) & (G_MAXUINT64 >> 1));

    json_object_set_string_member(json, "permissions", own);
    return json;
}

void
ds_world_tell_channel(DsWorld *self, DsChannel *channel, const char *event)
{
    JsonObject *json = ds_channel_json(self, channel);

    json_object_remove_member(json, "permissions");
    ds_gateway_dispatch(self->gateway, event, json, DS_INTENT_GUILDS, channel);
    ds_world_changed(self);
}

/* --- threads --- */

static void
tell_thread_member(DsWorld *self, DsChannel *thread)
{
    g_autofree char *now = ds_iso(ds_now_ms());

    ds_gateway_dispatch(self->gateway, "THREAD_MEMBER_UPDATE",
                        ds_object("s:id", thread->id, "s:user_id", DS_APPLICATION, "s:join_timestamp", now, "i:flags",
                                  0, "s:guild_id", DS_GUILD, NULL),
                        DS_INTENT_GUILDS, thread);
}

DsChannel *
ds_world_add_thread(DsWorld *self, DsChannel *parent, DsMessage *from, const char *name, const char *owner,
                    int auto_archive, int type)
{
    g_autofree char *now = ds_iso(ds_now_ms());
    char *id = from != NULL ? g_strdup(from->id) : ds_world_next_id(self);
    JsonObject *metadata = ds_object("b:archived", FALSE, "b:locked", FALSE, "i:auto_archive_duration", auto_archive,
                                     "s:archive_timestamp", now, "s:create_timestamp", now, NULL);
    JsonObject *json = ds_object("s:id", id, "i:type", type, "s:guild_id", DS_GUILD, "s:parent_id", parent->id,
                                 "s:owner_id", owner, "s:name", name, "n:last_message_id", "i:message_count", 0,
                                 "i:member_count", 1, "i:total_message_sent", 0, "i:rate_limit_per_user", 0, "i:flags",
                                 0, "o:thread_metadata", metadata, NULL);
    DsChannel *thread = channel_new(self, id, json);
    JsonObject *event = ds_copy(json);
    DsMessage *starter;

    json_object_set_boolean_member(event, "newly_created", TRUE);
    ds_gateway_dispatch(self->gateway, "THREAD_CREATE", event, DS_INTENT_GUILDS, thread);
    /* The second one that Discord sends when the bot becomes a member. */
    event = ds_copy(json);
    json_object_set_object_member(
        event, "member",
        ds_object("s:id", thread->id, "s:user_id", DS_APPLICATION, "s:join_timestamp", now, "i:flags", 0, NULL));
    ds_gateway_dispatch(self->gateway, "THREAD_CREATE", event, DS_INTENT_GUILDS, thread);
    if (from != NULL) {
        json_object_set_int_member(from->json, "flags", eb_json_get_int(from->json, "flags", 0) | 32);
        json_object_set_object_member(from->json, "thread", ds_copy(json));
        ds_world_edited(self, from, FALSE);
        starter = ds_world_new_message(self, thread, from->author, "",
                                       ds_object("i:type", 21, "o:message_reference",
                                                 ds_object("i:type", 0, "s:message_id", from->id, "s:channel_id",
                                                           parent->id, "s:guild_id", DS_GUILD, NULL),
                                                 NULL));
        ds_world_say(self, starter);
    }
    ds_world_changed(self);
    return thread;
}

void
ds_world_change_thread(DsWorld *self, DsChannel *thread, int archived, int locked, const char *name)
{
    const gboolean was_archived = ds_channel_flag(thread, "archived");
    JsonObject *metadata = ds_channel_metadata(thread);
    g_autofree char *now = ds_iso(ds_now_ms());

    if (archived >= 0) {
        json_object_set_boolean_member(metadata, "archived", archived);
        if (was_archived != archived)
            json_object_set_string_member(metadata, "archive_timestamp", now);
    }
    if (locked >= 0)
        json_object_set_boolean_member(metadata, "locked", locked);
    if (name != NULL)
        json_object_set_string_member(thread->json, "name", name);
    ds_world_tell_channel(self, thread, "THREAD_UPDATE");
    if (was_archived && archived == 0)
        tell_thread_member(self, thread);
}

void
ds_world_remove_channel(DsWorld *self, DsChannel *channel)
{
    const gboolean thread = ds_channel_is_thread(channel);
    JsonObject *event = thread ? ds_object("s:id", channel->id, "s:guild_id", DS_GUILD, "s:parent_id",
                                           eb_json_get_string(channel->json, "parent_id"), "i:type", 11, NULL)
                               : ds_channel_json(self, channel);

    ds_gateway_dispatch(self->gateway, thread ? "THREAD_DELETE" : "CHANNEL_DELETE", event, DS_INTENT_GUILDS, channel);
    channel->deleted = TRUE;
    ds_world_changed(self);
}

/* --- messages --- */

DsMessage *
ds_world_new_message(DsWorld *self, DsChannel *channel, const char *author, const char *content, JsonObject *fields)
{
    DsMessage *message = g_new0(DsMessage, 1);
    g_autofree char *now = ds_iso(ds_now_ms());
    JsonObject *user = ds_world_user(self, author);
    g_autoptr(GList) names = fields != NULL ? json_object_get_members(fields) : NULL;

    message->id = ds_world_next_id(self);
    message->channel = channel;
    message->author = g_strdup(author);
    message->history = g_ptr_array_new_with_free_func(g_free);
    message->reactions = g_ptr_array_new_with_free_func((GDestroyNotify)reaction_free);
    message->json =
        ds_object("s:id", message->id, "s:channel_id", channel->id, "i:type", 0, "s:content", content, "o:author",
                  user != NULL ? ds_copy(user) : json_object_new(), "s:timestamp", now, "n:edited_timestamp", "b:tts",
                  FALSE, "b:mention_everyone", FALSE, "a:mentions", json_array_new(), "a:mention_roles",
                  json_array_new(), "a:attachments", json_array_new(), "a:embeds", json_array_new(), "b:pinned", FALSE,
                  "i:flags", 0, "a:components", json_array_new(), NULL);
    for (GList *name = names; name != NULL; name = name->next)
        json_object_set_member(message->json, name->data, json_object_dup_member(fields, name->data));
    if (fields != NULL)
        json_object_unref(fields);
    g_ptr_array_add(message->history, g_strdup(eb_json_get_string(message->json, "content")));
    return message;
}

JsonObject *
ds_message_json(DsWorld *world, DsMessage *self, gboolean for_gateway)
{
    JsonObject *json = ds_copy(self->json);
    JsonArray *reactions = json_array_new();

    for (guint i = 0; i < self->reactions->len; i++) {
        DsReaction *reaction = g_ptr_array_index(self->reactions, i);
        const gboolean own = g_ptr_array_find_with_equal_func(reaction->users, DS_APPLICATION, g_str_equal, NULL);

        json_array_add_object_element(
            reactions,
            ds_object("o:emoji", ds_object("n:id", "s:name", reaction->emoji, NULL), "i:count",
                      (int)reaction->users->len, "b:me", own, "a:burst_colors", json_array_new(), "b:me_burst", FALSE,
                      "o:count_details", ds_object("i:burst", 0, "i:normal", (int)reaction->users->len, NULL), NULL));
    }
    if (self->reactions->len > 0 && !for_gateway)
        json_object_set_array_member(json, "reactions", reactions);
    else
        json_array_unref(reactions);
    if (for_gateway) {
        json_object_set_string_member(json, "guild_id", DS_GUILD);
        if (g_hash_table_contains(world->members, self->author) && !json_object_has_member(json, "webhook_id"))
            json_object_set_object_member(json, "member", ds_world_member_json(world, self->author, FALSE));
    }
    return json;
}

void
ds_world_say(DsWorld *self, DsMessage *message)
{
    DsChannel *channel = message->channel;
    JsonObject *metadata = ds_channel_metadata(channel);

    g_ptr_array_add(channel->messages, message);
    if (message->ephemeral) {
        ds_world_changed(self);
        return;
    }
    json_object_set_string_member(channel->json, "last_message_id", message->id);
    if (metadata != NULL) {
        const gint64 count = eb_json_get_int(channel->json, "message_count", 0) + 1;

        json_object_set_int_member(channel->json, "message_count", count);
        json_object_set_int_member(channel->json, "total_message_sent", count);
    }
    ds_gateway_dispatch(self->gateway, "MESSAGE_CREATE", ds_message_json(self, message, TRUE), DS_INTENT_MESSAGES,
                        channel);
    ds_world_changed(self);
}

void
ds_world_edited(DsWorld *self, DsMessage *message, gboolean by_author)
{
    g_autofree char *now = ds_iso(ds_now_ms());

    if (by_author) {
        json_object_set_string_member(message->json, "edited_timestamp", now);
        g_ptr_array_add(message->history, g_strdup(eb_json_get_string(message->json, "content")));
    }
    if (!message->ephemeral)
        ds_gateway_dispatch(self->gateway, "MESSAGE_UPDATE", ds_message_json(self, message, TRUE), DS_INTENT_MESSAGES,
                            message->channel);
    ds_world_changed(self);
}

void
ds_world_delete_message(DsWorld *self, DsMessage *message)
{
    message->deleted = TRUE;
    if (!message->ephemeral)
        ds_gateway_dispatch(
            self->gateway, "MESSAGE_DELETE",
            ds_object("s:id", message->id, "s:channel_id", message->channel->id, "s:guild_id", DS_GUILD, NULL),
            DS_INTENT_MESSAGES, message->channel);
    ds_world_changed(self);
}

DsMessage *
ds_channel_message(DsChannel *self, const char *id)
{
    for (guint i = self->messages->len; i > 0; i--) {
        DsMessage *message = g_ptr_array_index(self->messages, i - 1);

        if (!message->deleted && !message->ephemeral && g_strcmp0(message->id, id) == 0)
            return message;
    }
    return NULL;
}

/* --- reactions --- */

static DsReaction *
reaction_of(DsMessage *message, const char *emoji)
{
    for (guint i = 0; i < message->reactions->len; i++) {
        DsReaction *reaction = g_ptr_array_index(message->reactions, i);

        if (strcmp(reaction->emoji, emoji) == 0)
            return reaction;
    }
    return NULL;
}

static void
tell_reaction(DsWorld *self, DsMessage *message, const char *user, const char *emoji, gboolean on)
{
    JsonObject *event =
        ds_object("s:user_id", user, "s:channel_id", message->channel->id, "s:message_id", message->id, "s:guild_id",
                  DS_GUILD, "o:emoji", ds_object("n:id", "s:name", emoji, NULL), "b:burst", FALSE, "i:type", 0, NULL);

    if (on) {
        json_object_set_object_member(event, "member", ds_world_member_json(self, user, TRUE));
        json_object_set_string_member(event, "message_author_id", message->author);
    }
    ds_gateway_dispatch(self->gateway, on ? "MESSAGE_REACTION_ADD" : "MESSAGE_REACTION_REMOVE", event,
                        DS_INTENT_REACTIONS, message->channel);
    ds_world_changed(self);
}

gboolean
ds_world_react(DsWorld *self, DsMessage *message, const char *user, const char *emoji, gboolean on)
{
    DsReaction *reaction = reaction_of(message, emoji);
    guint at = 0;

    if (!on) {
        if (reaction == NULL || !g_ptr_array_find_with_equal_func(reaction->users, user, g_str_equal, &at))
            return TRUE;
        g_ptr_array_remove_index(reaction->users, at);
        if (reaction->users->len == 0)
            g_ptr_array_remove(message->reactions, reaction);
        tell_reaction(self, message, user, emoji, FALSE);
        return TRUE;
    }
    if (reaction == NULL) {
        if (message->reactions->len >= MAX_REACTIONS)
            return FALSE;
        reaction = g_new0(DsReaction, 1);
        reaction->emoji = g_strdup(emoji);
        reaction->users = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(message->reactions, reaction);
    }
    if (!g_ptr_array_find_with_equal_func(reaction->users, user, g_str_equal, NULL)) {
        g_ptr_array_add(reaction->users, g_strdup(user));
        tell_reaction(self, message, user, emoji, TRUE);
    }
    return TRUE;
}
