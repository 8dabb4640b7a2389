/* SPDX-License-Identifier: MIT */
#include "discord-startup.h"

#include "discord-config.h"
#include "discord-permissions.h"

#include <string.h>

/* Flags of an application: Message Content, approved by Discord or switched on for up to 10,000 people. */
#define FLAG_MESSAGE_CONTENT (1 << 18)
#define FLAG_MESSAGE_CONTENT_LIMITED (1 << 19)
#define CHANNEL_GUILD_TEXT 0
#define MANAGE_THREADS (G_GUINT64_CONSTANT(1) << 34)
#define PATIENCE_MS (20 * 1000)

void
discord_startup_free(DiscordStartup *self)
{
    if (self == NULL)
        return;
    g_free(self->user_id);
    g_free(self->user_name);
    g_free(self->application_id);
    g_free(self->guild_id);
    g_free(self->channel_name);
    g_free(self->note);
    g_free(self);
}

/* --- judging --- */

static gboolean
broken(GError **error, const char *what)
{
    eb_set_error(error, EB_ERROR_PROTOCOL, "discord.answer", "Discord's answer about %s cannot be read", what);
    return FALSE;
}

static char *
dup_id(JsonObject *object, const char *member)
{
    const char *id = eb_json_get_string(object, member);

    return id != NULL && discord_is_snowflake(id) ? g_strdup(id) : NULL;
}

static char *
dup_name(JsonObject *object, const char *member)
{
    const char *name = eb_json_get_string(object, member);

    return eb_log_escape(name != NULL ? name : "", -1, 100);
}

gboolean
discord_startup_read_user(DiscordStartup *self, JsonObject *user, GError **error)
{
    self->user_id = dup_id(user, "id");
    self->user_name = dup_name(user, "username");
    if (self->user_id == NULL)
        return broken(error, "the bot");
    if (!eb_json_get_bool(user, "bot", FALSE)) {
        eb_set_error(error, EB_ERROR_CONFIG, "discord.not-a-bot",
                     "the Discord token is not a bot's: copy the one shown by \"Reset Token\" on the Bot page of the "
                     "developer portal");
        return FALSE;
    }
    return TRUE;
}

gboolean
discord_startup_read_application(DiscordStartup *self, JsonObject *application, GError **error)
{
    const gint64 flags = eb_json_get_int(application, "flags", 0);
    const char *url = eb_json_get_string(application, "interactions_endpoint_url");

    self->application_id = dup_id(application, "id");
    if (self->application_id == NULL)
        return broken(error, "the application");
    if ((flags & (FLAG_MESSAGE_CONTENT | FLAG_MESSAGE_CONTENT_LIMITED)) == 0) {
        eb_set_error(
            error, EB_ERROR_CONFIG, "discord.intent",
            "the bot may not read messages: switch on \"Message Content Intent\" on the Bot page of application "
            "%s in the developer portal, and save",
            self->application_id);
        return FALSE;
    }
    if (url != NULL && *url != '\0') {
        eb_set_error(error, EB_ERROR_CONFIG, "discord.interactions-url",
                     "buttons and commands go to a web address and will never come here: empty \"Interactions Endpoint "
                     "URL\" on the General Information page of application %s in the developer portal",
                     self->application_id);
        return FALSE;
    }
    return TRUE;
}

gboolean
discord_startup_read_channel(DiscordStartup *self, JsonObject *channel, const char *channel_id, GError **error)
{
    const gint64 type = eb_json_get_int(channel, "type", -1);
    g_autofree char *id = dup_id(channel, "id");

    self->channel_name = dup_name(channel, "name");
    self->guild_id = dup_id(channel, "guild_id");
    if (id == NULL || type < 0 || (type == CHANNEL_GUILD_TEXT && self->guild_id == NULL))
        return broken(error, "the channel");
    if (type != CHANNEL_GUILD_TEXT) {
        eb_set_error(error, EB_ERROR_CONFIG, "discord.channel",
                     "channel %s is not a text channel of a server (threads, voice, announcement and forum channels, "
                     "categories and direct messages do not work): set channel_id to a text channel",
                     channel_id);
        return FALSE;
    }
    return TRUE;
}

gboolean
discord_startup_read_permissions(DiscordStartup *self, JsonObject *guild, JsonObject *member, JsonObject *channel,
                                 const char *channel_id, gint64 now_unix_ms, GError **error)
{
    g_autofree char *invite = discord_invite_url(self->application_id);
    g_autofree char *missing = NULL;

    if (guild == NULL || member == NULL || eb_json_get_array(guild, "roles") == NULL)
        return broken(error, "the server");
    self->granted = discord_permissions_compute(guild, member, channel, self->user_id, now_unix_ms);
    missing = discord_permissions_missing(self->granted);
    if (*missing != '\0') {
        eb_set_error(
            error, EB_ERROR_CONFIG, "discord.permissions",
            "the bot lacks in channel %s: %s: grant them in the channel's settings, or invite it again with %s",
            channel_id, missing, invite);
        return FALSE;
    }
    if (eb_json_get_int(guild, "mfa_level", 0) != 0 && (self->granted & MANAGE_THREADS) != 0)
        self->note =
            g_strdup("the server wants two-factor authentication of moderators: without it on the account that "
                     "owns the application, threads cannot be closed");
    return TRUE;
}

/* --- asking --- */

typedef struct {
    DiscordRest *rest; /* (nullable) */
    char *channel_id;
    DiscordStartupPart last;
    DiscordStartup *startup;
    JsonNode *channel, *guild; /* (nullable) */
    guint step;
} Check;

static void
check_free(gpointer data)
{
    Check *self = data;

    g_clear_object(&self->rest);
    g_free(self->channel_id);
    discord_startup_free(self->startup);
    g_clear_pointer(&self->channel, json_node_unref);
    g_clear_pointer(&self->guild, json_node_unref);
    g_free(self);
}

/* The questions, one after the other; the last two are one part. */
enum { STEP_USER, STEP_APPLICATION, STEP_CHANNEL, STEP_GUILD, STEP_MEMBER, N_STEPS };

static DiscordRequest *
make_request(const Check *self)
{
    const DiscordStartup *startup = self->startup;
    DiscordRequest *request = NULL;

    switch (self->step) {
    case STEP_USER:
        request = discord_request_new("GET", "/users/@me", NULL, "/users/@me");
        break;
    case STEP_APPLICATION:
        request = discord_request_new("GET", "/applications/@me", NULL, "/applications/@me");
        break;
    case STEP_CHANNEL:
        request = discord_request_new("GET", "/channels/{c}", self->channel_id, "/channels/%s", self->channel_id);
        break;
    case STEP_GUILD:
        request = discord_request_new("GET", "/guilds/{g}", startup->guild_id, "/guilds/%s", startup->guild_id);
        break;
    case STEP_MEMBER:
        request = discord_request_new("GET", "/guilds/{g}/members/{u}", startup->guild_id, "/guilds/%s/members/%s",
                                      startup->guild_id, startup->user_id);
        break;
    default:
        g_assert_not_reached();
    }
    request->repeatable = TRUE;
    request->patience_ms = PATIENCE_MS;
    return request;
}

/* What Discord's refusal means here. */
static void
explain(const Check *self, GError **error)
{
    const int code = (*error)->code;
    g_autofree char *invite = NULL;

    if ((*error)->domain != EB_ERROR)
        return;
    if (code == EB_ERROR_UNAUTHENTICATED) {
        g_clear_error(error);
        eb_set_error(error, EB_ERROR_UNAUTHENTICATED, "discord.unauthorized",
                     "Discord does not accept the token: make a new one with \"Reset Token\" on the Bot page of the "
                     "developer portal and store it with errand-box creds set %s",
                     self->rest != NULL ? discord_rest_get_token_name(self->rest) : "chat-token");
        return;
    }
    if (self->step < STEP_CHANNEL || (code != EB_ERROR_NOT_FOUND && code != EB_ERROR_DENIED))
        return;
    invite = discord_invite_url(self->startup->application_id);
    g_clear_error(error);
    if (code == EB_ERROR_NOT_FOUND && self->step == STEP_CHANNEL)
        eb_set_error(error, EB_ERROR_CONFIG, "discord.no-channel",
                     "there is no channel %s: correct channel_id (right click on the channel, Copy Channel ID)",
                     self->channel_id);
    else
        eb_set_error(error, EB_ERROR_CONFIG, "discord.channel",
                     "the bot cannot see channel %s: invite it to that server with %s, or grant it View Channel there",
                     self->channel_id, invite);
}

static gboolean
take_answer(Check *self, JsonNode *node, GError **error)
{
    JsonObject *object = eb_json_node_object(node);

    switch (self->step) {
    case STEP_USER:
        return discord_startup_read_user(self->startup, object, error);
    case STEP_APPLICATION:
        return discord_startup_read_application(self->startup, object, error);
    case STEP_CHANNEL:
        self->channel = json_node_ref(node);
        return discord_startup_read_channel(self->startup, object, self->channel_id, error);
    case STEP_GUILD:
        self->guild = json_node_ref(node);
        return TRUE;
    default:
        return discord_startup_read_permissions(self->startup, eb_json_node_object(self->guild), object,
                                                eb_json_node_object(self->channel), self->channel_id,
                                                g_get_real_time() / 1000, error);
    }
}

static gboolean
is_over(const Check *self)
{
    static const guint LAST[] = {STEP_USER, STEP_APPLICATION, STEP_CHANNEL, STEP_MEMBER};

    return self->step >= LAST[self->last];
}

DiscordStartup *
discord_startup_check_with(DiscordStartupGet get, gpointer user_data, const char *channel_id, DiscordStartupPart last,
                           GError **error)
{
    Check *self = g_new0(Check, 1);
    DiscordStartup *startup = NULL;

    self->channel_id = g_strdup(channel_id);
    self->last = last;
    self->startup = g_new0(DiscordStartup, 1);
    for (;; self->step++) {
        g_autoptr(DiscordRequest) request = make_request(self);
        g_autoptr(GError) problem = NULL;
        g_autoptr(JsonNode) node = get(request->path, user_data, &problem);
        if (node == NULL) {
            explain(self, &problem);
            g_propagate_error(error, g_steal_pointer(&problem));
            break;
        }
        if (!take_answer(self, node, error))
            break;
        if (is_over(self)) {
            startup = g_steal_pointer(&self->startup);
            break;
        }
    }
    check_free(self);
    return startup;
}

gboolean
discord_startup_blame(const GError *error, DiscordStartupPart *part)
{
    static const struct {
        const char *reason;
        DiscordStartupPart part;
    } table[] = {{"discord.no-token", DISCORD_STARTUP_TOKEN},
                 {"discord.unauthorized", DISCORD_STARTUP_TOKEN},
                 {"discord.not-a-bot", DISCORD_STARTUP_TOKEN},
                 {"discord.intent", DISCORD_STARTUP_APPLICATION},
                 {"discord.interactions-url", DISCORD_STARTUP_APPLICATION},
                 {"discord.channel", DISCORD_STARTUP_CHANNEL},
                 {"discord.no-channel", DISCORD_STARTUP_CHANNEL},
                 {"discord.permissions", DISCORD_STARTUP_PERMISSIONS}};

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
        if (g_strcmp0(eb_error_get_reason(error), table[i].reason) == 0) {
            *part = table[i].part;
            return TRUE;
        }
    return FALSE;
}

static void
answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Check *self = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    if (node == NULL) {
        explain(self, &error);
        g_task_return_error(task, error);
    } else if (!take_answer(self, node, &error)) {
        g_task_return_error(task, error);
    } else if (is_over(self)) {
        g_task_return_pointer(task, g_steal_pointer(&self->startup), (GDestroyNotify)discord_startup_free);
    } else {
        self->step++;
        discord_rest_send_async(self->rest, make_request(self), g_task_get_cancellable(task), answered,
                                g_object_ref(task));
    }
}

void
discord_startup_check_until_async(DiscordRest *rest, const char *channel_id, DiscordStartupPart last,
                                  GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(rest, cancellable, callback, user_data);
    Check *self = g_new0(Check, 1);

    g_task_set_source_tag(task, discord_startup_check_async);
    g_task_set_check_cancellable(task, FALSE); /* the request that was cancelled says so in our words */
    self->rest = g_object_ref(rest);
    self->channel_id = g_strdup(channel_id);
    self->last = last;
    self->startup = g_new0(DiscordStartup, 1);
    g_task_set_task_data(task, self, check_free);
    discord_rest_send_async(rest, make_request(self), cancellable, answered, g_object_ref(task));
}

void
discord_startup_check_async(DiscordRest *rest, const char *channel_id, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    discord_startup_check_until_async(rest, channel_id, DISCORD_STARTUP_PERMISSIONS, cancellable, callback, user_data);
}

DiscordStartup *
discord_startup_check_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(G_IS_TASK(result) && g_task_get_source_tag(G_TASK(result)) == discord_startup_check_async,
                         NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
