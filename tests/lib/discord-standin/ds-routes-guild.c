/* SPDX-License-Identifier: MIT */

#include "ds-gateway.h"
#include "ds-request.h"
#include "ds-validate.h"

#include <string.h>

#define MAX_CREATES 200

static JsonObject *
own_user(DsWorld *world)
{
    JsonObject *user = ds_copy(ds_world_user(world, DS_APPLICATION));

    ds_object_set(user, "b:verified", TRUE, "n:email", "b:mfa_enabled", FALSE, "s:locale", "en-US", NULL);
    return user;
}

static void
get_me(DsRequest *self)
{
    ds_answer_object(self, 200, own_user(self->world));
}

static void
get_user(DsRequest *self)
{
    JsonObject *user = ds_world_user(self->world, self->args[0]);

    if (user != NULL)
        ds_answer_object(self, 200, ds_copy(user));
    else
        ds_refuse_code(self, 10013);
}

static void
get_application(DsRequest *self)
{
    ds_answer_object(self, 200,
                     ds_object("s:id", DS_APPLICATION, "s:name", "errand-box", "n:icon", "s:description", "",
                               "b:bot_public", FALSE, "b:bot_require_code_grant", FALSE, "s:verify_key", "00",
                               "l:flags", self->world->application_flags, "s:interactions_endpoint_url",
                               self->world->interactions_url, "n:team", "o:owner",
                               ds_copy(ds_world_user(self->world, DS_ALICE)), "a:redirect_uris", json_array_new(),
                               "o:bot", own_user(self->world), "i:approximate_guild_count", 1, NULL));
}

static void
get_gateway(DsRequest *self)
{
    g_autofree char *url = ds_gateway_get_url(self->world->gateway);

    ds_answer_object(self, 200, ds_object("s:url", url, NULL));
}

static void
get_gateway_bot(DsRequest *self)
{
    g_autofree char *url = ds_gateway_get_url(self->world->gateway);

    ds_answer_object(self, 200,
                     ds_object("s:url", url, "i:shards", ds_gateway_get_shards(self->world->gateway),
                               "o:session_start_limit", ds_gateway_start_limit(self->world->gateway), NULL));
}

/* --- the guild --- */

static gboolean
check_guild(DsRequest *self)
{
    if (strcmp(self->args[0], DS_GUILD) == 0 && self->world->bot_in_guild)
        return TRUE;
    ds_refuse_code(self, 10004);
    return FALSE;
}

static void
get_guild(DsRequest *self)
{
    if (check_guild(self))
        ds_answer_object(self, 200, ds_gateway_guild_json(self->world, FALSE));
}

static void
get_guilds(DsRequest *self)
{
    JsonArray *list = json_array_new();
    g_autofree char *rights =
        g_strdup_printf("%" G_GUINT64_FORMAT, ds_world_permissions(self->world, DS_APPLICATION, NULL));

    if (self->world->bot_in_guild)
        json_array_add_object_element(list,
                                      ds_object("s:id", DS_GUILD, "s:name", "Stand-in", "n:icon", "b:owner", FALSE,
                                                "s:permissions", rights, "a:features", json_array_new(), NULL));
    ds_answer(self, 200, ds_take_array(list));
}

static void
get_roles(DsRequest *self)
{
    JsonArray *list;

    if (!check_guild(self))
        return;
    list = json_array_new();
    for (guint i = 0; i < self->world->roles->len; i++)
        json_array_add_object_element(list, ds_copy(g_ptr_array_index(self->world->roles, i)));
    ds_answer(self, 200, ds_take_array(list));
}

static void
get_channels(DsRequest *self)
{
    JsonArray *list;

    if (!check_guild(self))
        return;
    list = json_array_new();
    for (guint i = 0; i < self->world->channels->len; i++) {
        DsChannel *channel = g_ptr_array_index(self->world->channels, i);

        if (!channel->deleted && !ds_channel_is_thread(channel))
            json_array_add_object_element(list, ds_channel_json(self->world, channel));
    }
    ds_answer(self, 200, ds_take_array(list));
}

static void
get_member(DsRequest *self)
{
    if (!check_guild(self))
        return;
    if (g_hash_table_contains(self->world->members, self->args[1]))
        ds_answer_object(self, 200, ds_world_member_json(self->world, self->args[1], TRUE));
    else
        ds_refuse_code(self, 10007);
}

/* --- commands --- */

static JsonArray **
commands_of(DsRequest *self)
{
    if (strcmp(self->args[0], DS_APPLICATION) != 0) {
        ds_refuse(self, 403, 20012, "You are not authorized to perform this action on this application");
        return NULL;
    }
    if (strstr(self->route->template, "/guilds/") == NULL)
        return &self->world->global_commands;
    if (strcmp(self->args[1], DS_GUILD) != 0 || !self->world->bot_in_guild) {
        ds_refuse_code(self, 50001);
        return NULL;
    }
    return &self->world->guild_commands;
}

static JsonObject *
find_command(JsonArray *commands, const char *member, const char *value)
{
    for (guint i = 0; i < json_array_get_length(commands); i++) {
        JsonObject *command = eb_json_array_object(commands, i);

        if (g_strcmp0(eb_json_get_string(command, member), value) == 0)
            return command;
    }
    return NULL;
}

/* (transfer full): as Discord keeps it: with an id, which the same name keeps, and its defaults written out. */
static JsonObject *
stored(DsRequest *self, JsonArray *old, JsonObject *given)
{
    JsonObject *command = ds_copy(given);
    JsonObject *before = find_command(old, "name", eb_json_get_string(given, "name"));
    g_autofree char *id = before != NULL ? g_strdup(eb_json_get_string(before, "id")) : ds_world_next_id(self->world);
    g_autofree char *version = ds_world_next_id(self->world);

    if (before == NULL)
        self->world->command_creates++;
    ds_object_set(command, "s:id", id, "s:application_id", DS_APPLICATION, "s:version", version, NULL);
    if (strstr(self->route->template, "/guilds/") != NULL)
        json_object_set_string_member(command, "guild_id", DS_GUILD);
    if (!json_object_has_member(command, "type"))
        json_object_set_int_member(command, "type", 1);
    if (!json_object_has_member(command, "default_member_permissions"))
        json_object_set_null_member(command, "default_member_permissions");
    if (!json_object_has_member(command, "nsfw"))
        json_object_set_boolean_member(command, "nsfw", FALSE);
    return command;
}

static void
get_commands(DsRequest *self)
{
    JsonArray **commands = commands_of(self);

    if (commands != NULL)
        ds_answer(self, 200, ds_take_array(json_array_ref(*commands)));
}

static void
put_commands(DsRequest *self)
{
    JsonArray **commands = commands_of(self);
    g_autoptr(JsonObject) errors = NULL;
    JsonArray *fresh;

    if (commands == NULL)
        return;
    if (self->list == NULL) {
        ds_refuse_code(self, 50035);
        return;
    }
    errors = ds_validate_commands(self->list);
    if (json_object_get_size(errors) > 0) {
        ds_refuse_errors(self, g_steal_pointer(&errors));
        return;
    }
    if (self->world->command_creates + json_array_get_length(self->list) >
        MAX_CREATES + json_array_get_length(*commands)) {
        ds_refuse_code(self, 30034);
        return;
    }
    fresh = json_array_new();
    for (guint i = 0; i < json_array_get_length(self->list); i++)
        json_array_add_object_element(fresh, stored(self, *commands, eb_json_array_object(self->list, i)));
    json_array_unref(*commands);
    *commands = fresh;
    ds_world_count(self->world, "command_overwrites");
    ds_answer(self, 200, ds_take_array(json_array_ref(fresh)));
}

static void
post_command(DsRequest *self)
{
    JsonArray **commands = commands_of(self);
    JsonObject *errors;
    JsonObject *command;
    JsonArray *rest;

    if (commands == NULL)
        return;
    errors = json_object_new();
    ds_validate_command(self->body, "command", errors);
    if (json_object_get_size(errors) > 0) {
        ds_refuse_errors(self, errors);
        return;
    }
    json_object_unref(errors);
    command = stored(self, *commands, self->body);
    rest = json_array_new();
    for (guint i = 0; i < json_array_get_length(*commands); i++) {
        JsonObject *old = eb_json_array_object(*commands, i);

        if (g_strcmp0(eb_json_get_string(old, "id"), eb_json_get_string(command, "id")) != 0)
            json_array_add_object_element(rest, json_object_ref(old));
    }
    json_array_add_object_element(rest, command);
    json_array_unref(*commands);
    *commands = rest;
    ds_answer_object(self, 201, json_object_ref(command));
}

const DsRoute ds_routes_guild[] = {
    {"GET", "/users/@me", get_me, 0, 0, NULL, FALSE},
    {"GET", "/users/@me/guilds", get_guilds, 0, 0, NULL, FALSE},
    {"GET", "/users/{u}", get_user, 0, 0, NULL, FALSE},
    {"GET", "/applications/@me", get_application, 0, 0, NULL, FALSE},
    {"GET", "/oauth2/applications/@me", get_application, 0, 0, NULL, FALSE},
    {"GET", "/gateway", get_gateway, 0, 0, NULL, FALSE},
    {"GET", "/gateway/bot", get_gateway_bot, 2, 5000, NULL, FALSE},
    {"GET", "/guilds/{g}", get_guild, 5, 5000, NULL, FALSE},
    {"GET", "/guilds/{g}/roles", get_roles, 5, 5000, NULL, FALSE},
    {"GET", "/guilds/{g}/channels", get_channels, 5, 5000, NULL, FALSE},
    {"GET", "/guilds/{g}/members/{u}", get_member, 5, 5000, NULL, FALSE},
    {"GET", "/applications/{a}/guilds/{g}/commands", get_commands, 5, 5000, NULL, FALSE},
    {"PUT", "/applications/{a}/guilds/{g}/commands", put_commands, 2, 5000, NULL, FALSE},
    {"POST", "/applications/{a}/guilds/{g}/commands", post_command, 5, 20000, NULL, FALSE},
    {"GET", "/applications/{a}/commands", get_commands, 5, 5000, NULL, FALSE},
    {"PUT", "/applications/{a}/commands", put_commands, 2, 5000, NULL, FALSE},
    {"POST", "/applications/{a}/commands", post_command, 5, 20000, NULL, FALSE},
    {NULL, NULL, NULL, 0, 0, NULL, FALSE},
};
