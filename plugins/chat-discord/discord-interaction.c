/* SPDX-License-Identifier: MIT */
#include "discord-interaction.h"

#include "discord-config.h"
#include "discord-question.h"

#include <string.h>

/* Discord's numbers. */
#define TYPE_COMMAND 2
#define TYPE_COMPONENT 3
#define COMMAND_CHAT_INPUT 1
#define COMPONENT_BUTTON 2

static char *
dup_snowflake(JsonObject *object, const char *member)
{
    const char *id = eb_json_get_string(object, member);

    return id != NULL && discord_is_snowflake(id) ? g_strdup(id) : NULL;
}

/* It goes into the path of a request, so it is held to the characters that tokens have. */
static char *
dup_token(JsonObject *data)
{
    const char *token = eb_json_get_string(data, "token");
    gsize length = 0;

    if (token == NULL)
        return NULL;
    for (; token[length] != '\0'; length++)
        if (length >= DISCORD_INTERACTION_MAX_TOKEN ||
            !(g_ascii_isalnum(token[length]) || strchr("-_.=", token[length]) != NULL))
            return NULL;
    /* "." and ".." would be steps of the path. */
    return length > 2 ? g_strndup(token, length) : NULL;
}

/* The value of an option as text: a number or a switch is read as it would have been typed. */
static char *
value_text(JsonNode *value)
{
    if (value == NULL || !JSON_NODE_HOLDS_VALUE(value))
        return NULL;
    if (json_node_get_value_type(value) == G_TYPE_STRING) {
        const char *text = json_node_get_string(value);
        return strlen(text) <= DISCORD_INTERACTION_MAX_TEXT ? g_strdup(text) : NULL;
    }
    if (json_node_get_value_type(value) == G_TYPE_INT64)
        return g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(value));
    if (json_node_get_value_type(value) == G_TYPE_BOOLEAN)
        return g_strdup(json_node_get_boolean(value) ? "true" : "false");
    return NULL;
}

static void
read_command(DiscordInteraction *self, JsonObject *data)
{
    const char *name = eb_json_get_string(data, "name");
    JsonArray *options = eb_json_get_array(data, "options");
    const guint n = options != NULL ? MIN(json_array_get_length(options), DISCORD_INTERACTION_MAX_OPTIONS) : 0;

    if (name == NULL || *name == '\0' || strlen(name) > 128 ||
        eb_json_get_int(data, "type", COMMAND_CHAT_INPUT) != COMMAND_CHAT_INPUT)
        return;
    self->kind = DISCORD_INTERACTION_COMMAND;
    self->command = g_strdup(name);
    self->options = json_object_new();
    for (guint i = 0; i < n; i++) {
        JsonObject *option = eb_json_array_object(options, i);
        const char *key = eb_json_get_string(option, "name");
        g_autofree char *value = value_text(eb_json_get_node(option, "value"));
        if (key != NULL && strlen(key) <= 128 && value != NULL)
            json_object_set_string_member(self->options, key, value);
    }
}

static void
read_component(DiscordInteraction *self, JsonObject *data)
{
    self->component = TRUE;
    if (eb_json_get_int(data, "component_type", 0) == COMPONENT_BUTTON &&
        discord_question_parse_button(eb_json_get_string(data, "custom_id"), &self->question_id, &self->choice))
        self->kind = DISCORD_INTERACTION_PRESS;
}

DiscordInteraction *
discord_interaction_read(JsonObject *data)
{
    g_autoptr(DiscordInteraction) self = g_new0(DiscordInteraction, 1);
    JsonObject *user = eb_json_get_object(eb_json_get_object(data, "member"), "user");
    JsonObject *inner = eb_json_get_object(data, "data");
    const gint64 type = eb_json_get_int(data, "type", 0);
    const char *name;

    self->id = dup_snowflake(data, "id");
    self->token = dup_token(data);
    self->application_id = dup_snowflake(data, "application_id");
    self->channel_id = dup_snowflake(data, "channel_id");
    self->user_id = dup_snowflake(user, "id");
    if (self->id == NULL || self->token == NULL || self->application_id == NULL || self->user_id == NULL)
        return NULL;
    name = eb_json_get_string(user, "global_name");
    if (name == NULL || *name == '\0')
        name = eb_json_get_string(user, "username");
    self->user_name = g_strdup(name != NULL && strlen(name) <= 512 ? name : self->user_id);
    if (type == TYPE_COMMAND)
        read_command(self, inner);
    else if (type == TYPE_COMPONENT)
        read_component(self, inner);
    return g_steal_pointer(&self);
}

void
discord_interaction_free(DiscordInteraction *self)
{
    if (self == NULL)
        return;
    g_free(self->id);
    g_free(self->token);
    g_free(self->application_id);
    g_free(self->channel_id);
    g_free(self->user_id);
    g_free(self->user_name);
    g_free(self->command);
    g_clear_pointer(&self->options, json_object_unref);
    g_free(self->question_id);
    g_free(self);
}
