/* SPDX-License-Identifier: MIT */
#include "discord-commands.h"

#include "discord-clean.h"
#include "discord-permissions.h"

#include <string.h>

/* Discord's limits and numbers. */
#define MAX_COMMANDS 100
#define MAX_OPTIONS 25
#define MAX_NAME 32
#define MAX_SUMMARY 100
#define MAX_TOTAL 8000
#define TYPE_CHAT_INPUT 1
#define OPTION_STRING 3
#define OPTION_USER 6
/* It is done once at the start and in nobody's way. */
#define PATIENCE_MS (60 * 1000)

static gboolean
name_is_fine(const char *name)
{
    gsize length = 0;

    for (; name != NULL && name[length] != '\0'; length++)
        if (!g_ascii_islower(name[length]) && !g_ascii_isdigit(name[length]) && name[length] != '-' &&
            name[length] != '_')
            return FALSE;
    return length >= 1 && length <= MAX_NAME;
}

/* Adds name and description; FALSE when Discord would refuse them. @total: (inout): characters of the command */
static gboolean
add_words(JsonObject *object, const char *what, const char *name, const char *summary, gsize *total, GError **error)
{
    g_autofree char *clean = discord_clean(summary != NULL ? summary : "");
    g_autofree char *cut = NULL;

    if (!name_is_fine(name)) {
        eb_set_error(error, EB_ERROR_INVALID, "discord.commands", "\"%s\" is no name for %s", name, what);
        return FALSE;
    }
    g_strstrip(g_strdelimit(clean, "\n\t", ' '));
    cut = discord_clean_cut(*clean != '\0' ? clean : name, MAX_SUMMARY);
    json_object_set_string_member(object, "name", name);
    json_object_set_string_member(object, "description", cut);
    *total += strlen(name) + (gsize)g_utf8_strlen(cut, -1);
    return TRUE;
}

/* (transfer full) (nullable) */
static JsonArray *
make_options(const EbChatCommand *command, gsize *total, GError **error)
{
    g_autoptr(JsonArray) list = json_array_new();
    gboolean optional = FALSE;

    if (command->n_options > MAX_OPTIONS) {
        eb_set_error(error, EB_ERROR_INVALID, "discord.commands", "%s has more than %d options", command->name,
                     MAX_OPTIONS);
        return NULL;
    }
    for (gsize i = 0; i < command->n_options; i++) {
        const EbChatOption *option = &command->options[i];
        JsonObject *object = json_object_new();
        json_array_add_object_element(list, object);
        if (!add_words(object, "an option", option->name, option->summary, total, error))
            return NULL;
        if (option->required && optional) {
            eb_set_error(error, EB_ERROR_INVALID, "discord.commands", "%s: required option %s comes after an optional",
                         command->name, option->name);
            return NULL;
        }
        optional = optional || !option->required;
        json_object_set_int_member(object, "type", option->person ? OPTION_USER : OPTION_STRING);
        json_object_set_boolean_member(object, "required", option->required);
    }
    return g_steal_pointer(&list);
}

JsonArray *
discord_commands_to_json(const EbChatCommand *commands, gsize n_commands, GError **error)
{
    g_autoptr(JsonArray) list = json_array_new();
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    if (n_commands > MAX_COMMANDS) {
        eb_set_error(error, EB_ERROR_INVALID, "discord.commands", "more than %d commands", MAX_COMMANDS);
        return NULL;
    }
    for (gsize i = 0; i < n_commands; i++) {
        JsonObject *object = json_object_new();
        JsonArray *options;
        gsize total = 0;
        json_array_add_object_element(list, object);
        json_object_set_int_member(object, "type", TYPE_CHAT_INPUT);
        if (!add_words(object, "a command", commands[i].name, commands[i].summary, &total, error))
            return NULL;
        options = make_options(&commands[i], &total, error);
        if (options == NULL)
            return NULL;
        json_object_set_array_member(object, "options", options);
        if (!g_hash_table_add(names, (gpointer)commands[i].name) || total > MAX_TOTAL) {
            eb_set_error(error, EB_ERROR_INVALID, "discord.commands", "%s is there twice or too long",
                         commands[i].name);
            return NULL;
        }
    }
    return g_steal_pointer(&list);
}

static gboolean
words_equal(JsonObject *a, JsonObject *b)
{
    return g_strcmp0(eb_json_get_string(a, "name"), eb_json_get_string(b, "name")) == 0 &&
           g_strcmp0(eb_json_get_string(a, "description"), eb_json_get_string(b, "description")) == 0;
}

/* Members that Discord leaves out have these values. */
static gboolean
options_equal(JsonArray *a, JsonArray *b)
{
    const guint n = a != NULL ? json_array_get_length(a) : 0;

    if (n != (b != NULL ? json_array_get_length(b) : 0))
        return FALSE;
    for (guint i = 0; i < n; i++) {
        JsonObject *first = eb_json_array_object(a, i), *second = eb_json_array_object(b, i);
        JsonArray *choices = eb_json_get_array(second, "choices");
        if (!words_equal(first, second) || eb_json_get_int(first, "type", 0) != eb_json_get_int(second, "type", 0) ||
            eb_json_get_bool(first, "required", FALSE) != eb_json_get_bool(second, "required", FALSE) ||
            (choices != NULL && json_array_get_length(choices) > 0))
            return FALSE;
    }
    return TRUE;
}

static JsonObject *
find_command(JsonArray *list, const char *name)
{
    const guint n = json_array_get_length(list);

    for (guint i = 0; i < n; i++) {
        JsonObject *command = eb_json_array_object(list, i);
        if (g_strcmp0(eb_json_get_string(command, "name"), name) == 0 &&
            eb_json_get_int(command, "type", TYPE_CHAT_INPUT) == TYPE_CHAT_INPUT)
            return command;
    }
    return NULL;
}

gboolean
discord_commands_equal(JsonArray *wanted, JsonArray *registered)
{
    const guint n = json_array_get_length(wanted);

    if (registered == NULL || n != json_array_get_length(registered))
        return FALSE;
    for (guint i = 0; i < n; i++) {
        JsonObject *command = eb_json_array_object(wanted, i);
        JsonObject *other = find_command(registered, eb_json_get_string(command, "name"));
        if (other == NULL || !words_equal(command, other) ||
            !options_equal(eb_json_get_array(command, "options"), eb_json_get_array(other, "options")))
            return FALSE;
    }
    return TRUE;
}

/* --- with Discord --- */

typedef struct {
    char *application_id;
    char *guild_id;
    JsonArray *wanted;
} Registration;

static void
registration_free(gpointer data)
{
    Registration *self = data;

    g_free(self->application_id);
    g_free(self->guild_id);
    json_array_unref(self->wanted);
    g_free(self);
}

static DiscordRequest *
make_request(const Registration *self, const char *method)
{
    DiscordRequest *request =
        discord_request_new(method, "/applications/{a}/guilds/{g}/commands", self->guild_id,
                            "/applications/%s/guilds/%s/commands", self->application_id, self->guild_id);

    request->repeatable = TRUE;
    request->patience_ms = PATIENCE_MS;
    return request;
}

/* A bot that was invited without its commands may not have any. */
static void
explain(const Registration *self, GError **error)
{
    g_autofree char *reason = g_strdup(eb_error_get_reason(*error));
    g_autofree char *invite = discord_invite_url(self->application_id);

    if (!g_error_matches(*error, EB_ERROR, EB_ERROR_DENIED))
        return;
    g_clear_error(error);
    eb_set_error(error, EB_ERROR_DENIED, reason, "the bot was invited without its commands: invite it again with %s",
                 invite);
}

static void
put_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    if (node == NULL) {
        explain(g_task_get_task_data(task), &error);
        g_task_return_error(task, error);
        return;
    }
    g_task_return_int(task, 1);
}

static void
get_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Registration *self = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    DiscordRequest *request;

    if (node == NULL) {
        explain(self, &error);
        g_task_return_error(task, error);
        return;
    }
    if (JSON_NODE_HOLDS_ARRAY(node) && discord_commands_equal(self->wanted, json_node_get_array(node))) {
        g_task_return_int(task, 0);
        return;
    }
    request = make_request(self, "PUT");
    request->body = json_node_init_array(json_node_alloc(), self->wanted);
    discord_rest_send_async(DISCORD_REST(source), request, g_task_get_cancellable(task), put_done, g_object_ref(task));
}

void
discord_commands_register_async(DiscordRest *rest, const char *application_id, const char *guild_id,
                                const EbChatCommand *commands, gsize n_commands, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(rest, cancellable, callback, user_data);
    GError *error = NULL;
    JsonArray *wanted = discord_commands_to_json(commands, n_commands, &error);
    Registration *self;

    g_task_set_source_tag(task, discord_commands_register_async);
    g_task_set_check_cancellable(task, FALSE); /* the request that was cancelled says so in our words */
    if (wanted == NULL) {
        g_task_return_error(task, error);
        return;
    }
    self = g_new0(Registration, 1);
    self->application_id = g_strdup(application_id);
    self->guild_id = g_strdup(guild_id);
    self->wanted = wanted;
    g_task_set_task_data(task, self, registration_free);
    discord_rest_send_async(rest, make_request(self, "GET"), cancellable, get_done, g_object_ref(task));
}

gboolean
discord_commands_register_finish(DiscordRest *rest, GAsyncResult *result, gboolean *changed, GError **error)
{
    gssize done;

    g_return_val_if_fail(g_task_is_valid(result, rest), FALSE);
    done = g_task_propagate_int(G_TASK(result), error);
    if (changed != NULL)
        *changed = done > 0;
    return done >= 0;
}
