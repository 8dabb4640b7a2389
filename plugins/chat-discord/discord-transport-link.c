/* SPDX-License-Identifier: MIT */
/* The connection to Discord: start, the check of what is needed, the gateway, and the end. */
#include "discord-transport-private.h"

#include "discord-commands.h"
#include "discord-startup.h"

#include <string.h>

/* GUILDS, GUILD_MESSAGES, MESSAGE_CONTENT */
#define INTENTS ((1 << 0) | (1 << 9) | (1 << 15))
/* Of the check, while Discord does not answer it. */
#define CHECK_RETRY_MS 5000
#define CHECK_RETRY_MAX_MS 60000

void
discord_clear_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static GSource *
start_timer(guint ms, GSourceFunc func, DiscordTransport *self)
{
    GSource *source = g_timeout_source_new(ms);

    g_source_set_callback(source, func, self, NULL);
    g_source_attach(source, NULL);
    return source;
}

/* --- how it stands --- */

static void
tell_connection(DiscordTransport *self, const char *detail)
{
    if (!self->up)
        discord_transport_emit_connection(self, FALSE, self->down_why != NULL ? self->down_why : "not connected yet");
    else if (self->guild_absent != NULL)
        discord_transport_emit_connection(self, FALSE, self->guild_absent);
    else if (self->amiss != NULL)
        discord_transport_emit_connection(self, FALSE, self->amiss);
    else
        discord_transport_emit_connection(self, TRUE, detail);
}

static void
set_text(char **where, const char *text)
{
    char *copy = g_strdup(text);

    g_free(*where);
    *where = copy;
}

/* @error: (transfer full) (nullable) */
static void
end_start(DiscordTransport *self, GError *error)
{
    g_autoptr(GTask) task = g_steal_pointer(&self->starting);

    discord_clear_source(&self->start_timer);
    if (task == NULL)
        g_clear_error(&error);
    else if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_boolean(task, TRUE);
}

void
discord_transport_fail(DiscordTransport *self, GError *error)
{
    g_autoptr(GError) local = error;

    if (self->failed || self->stopping)
        return;
    self->failed = TRUE;
    self->up = FALSE;
    discord_clear_source(&self->check_timer);
    if (self->starting != NULL)
        end_start(self, g_error_copy(error));
    else
        discord_transport_emit_failed(self, error);
}

static void
resume_views(DiscordTransport *self)
{
    GHashTableIter iter;
    gpointer view;

    g_hash_table_iter_init(&iter, self->views);
    while (g_hash_table_iter_next(&iter, NULL, &view))
        discord_outbox_resume(discord_view_get_outbox(view));
    discord_reactions_resume(self->reactions);
}

void
discord_transport_set_guild_absent(DiscordTransport *self, const char *why)
{
    if (g_strcmp0(self->guild_absent, why) == 0)
        return;
    set_text(&self->guild_absent, why);
    tell_connection(self, "the server is there again");
    if (why == NULL)
        resume_views(self);
}

/* --- commands --- */

static void
on_commands(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordTransport) self = user_data;
    g_autoptr(GError) error = NULL;

    if (discord_commands_register_finish(DISCORD_REST(source), result, NULL, &error))
        return;
    self->commands_offered = FALSE; /* the next connection tries again */
    if (!self->stopping)
        eb_warning("slash commands are not offered (their text forms work): %s", error->message);
}

void
discord_transport_offer_commands(DiscordTransport *self)
{
    if (self->commands_offered || !self->attached || self->n_commands == 0 || self->application_id == NULL ||
        self->guild_id == NULL || self->failed)
        return;
    self->commands_offered = TRUE;
    discord_commands_register_async(self->rest, self->application_id, self->guild_id, self->commands, self->n_commands,
                                    self->cancellable, on_commands, g_object_ref(self));
}

void
discord_transport_set_identity(DiscordTransport *self, const char *user_id, const char *application_id,
                               const char *guild_id)
{
    if (discord_is_snowflake(user_id))
        set_text(&self->user_id, user_id);
    if (discord_is_snowflake(application_id))
        set_text(&self->application_id, application_id);
    if (discord_is_snowflake(guild_id))
        set_text(&self->guild_id, guild_id);
    if (self->application_id != NULL)
        discord_interactions_set_place(self->interactions, self->application_id, self->guild_id,
                                       self->config->channel_id);
    discord_transport_offer_commands(self);
}

/* --- the check --- */

static gboolean
is_permanent(const GError *error)
{
    return g_error_matches(error, EB_ERROR, EB_ERROR_UNAUTHENTICATED) ||
           g_error_matches(error, EB_ERROR, EB_ERROR_CONFIG) || g_error_matches(error, EB_ERROR, EB_ERROR_DENIED);
}

static void start_gateway(DiscordTransport *self);

static void
check_passed(DiscordTransport *self, const DiscordStartup *startup)
{
    gboolean first = !self->checked;
    gboolean mended = self->amiss != NULL;

    self->checked = TRUE;
    self->check_failures = 0;
    self->channel_gone = FALSE;
    g_clear_pointer(&self->amiss, g_free);
    if (first)
        eb_info("Discord knows us as %s, in channel #%s%s%s", startup->user_name, startup->channel_name,
                startup->note != NULL ? "; " : "", startup->note != NULL ? startup->note : "");
    discord_transport_set_identity(self, startup->user_id, startup->application_id, startup->guild_id);
    if (!mended)
        return;
    tell_connection(self, "connected");
    g_hash_table_remove_all(self->gone); /* what was lost may be seen again */
    discord_threads_forget_refused(self->threads);
    resume_views(self);
}

static GError *
token_refused(DiscordTransport *self)
{
    return eb_error_new(EB_ERROR_UNAUTHENTICATED, "discord.unauthorized",
                        "Discord does not accept the bot's token any more: reset it in the developer portal, run "
                        "errand-box creds set %s and start the service again",
                        self->config->token_name);
}

/* What the check found amiss while we run: somebody changed it, and may change it back. */
static void
check_refused(DiscordTransport *self, const GError *error)
{
    if (self->channel_gone && g_strcmp0(eb_error_get_reason(error), "discord.no-channel") == 0) {
        discord_transport_lose_threads(self, "deleted");
        discord_transport_fail(self, eb_error_new(EB_ERROR_CONFIG, "discord.channel-deleted",
                                                  "channel %s was deleted: put the id of another one into "
                                                  "[plugin.chat-discord] channel_id",
                                                  self->config->channel_id));
        return;
    }
    self->channel_gone = FALSE;
    set_text(&self->amiss, error->message);
    tell_connection(self, NULL);
}

static void
on_checked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordTransport) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(DiscordStartup) startup = discord_startup_check_finish(result, &error);

    self->checking = FALSE;
    if (self->stopping || self->failed)
        return;
    if (startup != NULL) {
        check_passed(self, startup);
    } else if (is_permanent(error) && !self->checked) {
        discord_transport_fail(self, g_steal_pointer(&error));
        return;
    } else if (is_permanent(error)) {
        check_refused(self, error);
    } else {
        guint wait_ms = CHECK_RETRY_MS << MIN(self->check_failures, 6);
        self->check_failures++;
        if (!self->up) {
            set_text(&self->down_why, error->message);
            if (self->starting == NULL)
                tell_connection(self, NULL);
        }
        discord_transport_check_soon(self, MIN(wait_ms, CHECK_RETRY_MAX_MS));
    }
    if (self->check_again)
        discord_transport_check_soon(self, CHECK_RETRY_MS);
    self->check_again = FALSE;
    /* Before it is known who we are, our own words could be taken for somebody's. */
    if (self->checked)
        start_gateway(self);
}

static void
check(DiscordTransport *self)
{
    if (self->checking) {
        self->check_again = TRUE;
        return;
    }
    self->checking = TRUE;
    discord_startup_check_async(self->rest, self->config->channel_id, self->cancellable, on_checked,
                                g_object_ref(self));
}

static gboolean
on_check_time(gpointer user_data)
{
    DiscordTransport *self = user_data;

    discord_clear_source(&self->check_timer);
    check(self);
    return G_SOURCE_REMOVE;
}

void
discord_transport_check_soon(DiscordTransport *self, guint delay_ms)
{
    if (self->check_timer == NULL && !self->stopping && !self->failed)
        self->check_timer = start_timer(delay_ms, on_check_time, self);
}

/* --- the gateway --- */

/* A server that is not in READY's list is none we are in. */
static void
look_for_guild(DiscordTransport *self, JsonObject *data)
{
    JsonArray *guilds = eb_json_get_array(data, "guilds");
    guint n = guilds != NULL ? json_array_get_length(guilds) : 0;

    g_clear_pointer(&self->guild_absent, g_free);
    if (self->guild_id == NULL || guilds == NULL)
        return;
    for (guint i = 0; i < n; i++)
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(guilds, i), "id"), self->guild_id) == 0)
            return;
    set_text(&self->guild_absent, "the bot is not in the server any more: invite it again (errand-box setup prints the "
                                  "link)");
}

static void
on_ready(DiscordGateway *gateway, gboolean resumed, JsonObject *data, DiscordTransport *self)
{
    if (self->failed || self->stopping)
        return;
    self->up = TRUE;
    g_clear_pointer(&self->down_why, g_free);
    if (data != NULL) {
        discord_transport_set_identity(self, eb_json_get_string(eb_json_get_object(data, "user"), "id"),
                                       eb_json_get_string(eb_json_get_object(data, "application"), "id"), NULL);
        look_for_guild(self, data);
    }
    tell_connection(self, resumed ? "connected again, nothing was missed" : "connected");
    resume_views(self);
    discord_transport_offer_commands(self);
    end_start(self, NULL);
}

static void
on_down(DiscordGateway *gateway, const char *why, DiscordTransport *self)
{
    if (self->failed || self->stopping)
        return;
    self->up = FALSE;
    set_text(&self->down_why, why);
    tell_connection(self, NULL);
}

static void
on_gateway_failed(DiscordGateway *gateway, const GError *error, DiscordTransport *self)
{
    discord_transport_fail(self, g_error_matches(error, EB_ERROR, EB_ERROR_UNAUTHENTICATED) ? token_refused(self)
                                                                                            : g_error_copy(error));
}

static void
on_dispatch(DiscordGateway *gateway, const char *type, JsonObject *data, DiscordTransport *self)
{
    discord_transport_handle(self, type, data);
}

static void
start_gateway(DiscordTransport *self)
{
    if (self->gateway != NULL)
        return;
    self->gateway = discord_gateway_new(self->site, self->rest, self->token, INTENTS, self->state_path);
    g_signal_connect(self->gateway, "ready", G_CALLBACK(on_ready), self);
    g_signal_connect(self->gateway, "down", G_CALLBACK(on_down), self);
    g_signal_connect(self->gateway, "failed", G_CALLBACK(on_gateway_failed), self);
    g_signal_connect(self->gateway, "dispatch", G_CALLBACK(on_dispatch), self);
    discord_gateway_set_filter(self->gateway, discord_transport_wants, self);
    discord_gateway_start(self->gateway);
}

static void
on_unauthorized(DiscordRest *rest, DiscordTransport *self)
{
    discord_transport_fail(self, token_refused(self));
}

static void
on_limited(DiscordRest *rest, const char *route, guint seconds, DiscordTransport *self)
{
    if (strstr(route, "/threads") != NULL)
        discord_transport_tell_limit(self, seconds);
}

static void
on_asked(DiscordAsk *ask, const char *question_id, const char *message_id, DiscordTransport *self)
{
    discord_transport_emit_texts(self, "asked", question_id, message_id);
}

static void
on_action(DiscordInteractions *interactions, EbChatMessage *message, DiscordTransport *self)
{
    discord_transport_emit_message(self, "action", message);
}

/* --- start --- */

static gboolean
on_start_late(gpointer user_data)
{
    DiscordTransport *self = user_data;

    tell_connection(self, NULL);
    end_start(self, NULL);
    return G_SOURCE_REMOVE;
}

static void
make_parts(DiscordTransport *self)
{
    self->rest = discord_rest_new(self->site, self->token);
    self->reactions = discord_reactions_new(self->rest);
    self->ask = discord_ask_new();
    self->interactions = discord_interactions_new(self->rest, self->ask);
    g_signal_connect(self->rest, "unauthorized", G_CALLBACK(on_unauthorized), self);
    g_signal_connect(self->rest, "limited", G_CALLBACK(on_limited), self);
    g_signal_connect(self->ask, "asked", G_CALLBACK(on_asked), self);
    g_signal_connect(self->interactions, "action", G_CALLBACK(on_action), self);
}

void
discord_transport_start_async(DiscordTransport *self, EbSecret *token, const char *mock_url, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(DISCORD_IS_TRANSPORT(self) && token != NULL && self->rest == NULL);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    GError *error = NULL;

    g_task_set_source_tag(task, discord_transport_start_async);
    g_task_set_check_cancellable(task, FALSE);
    self->site = discord_site_new(mock_url, token, &error);
    if (self->site == NULL) {
        self->failed = TRUE;
        g_task_return_error(task, error);
        return;
    }
    self->token = eb_secret_ref(token);
    make_parts(self);
    self->starting = g_steal_pointer(&task);
    self->start_timer = start_timer(self->start_ms, on_start_late, self);
    check(self);
}

void
discord_transport_set_start_ms(DiscordTransport *self, guint ms)
{
    self->start_ms = ms;
}

gboolean
discord_transport_start_finish(DiscordTransport *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

/* --- stop --- */

void
discord_transport_close_rest(DiscordTransport *self)
{
    GHashTableIter iter;
    gpointer view;

    g_cancellable_cancel(self->cancellable);
    g_hash_table_iter_init(&iter, self->views);
    while (g_hash_table_iter_next(&iter, NULL, &view))
        discord_outbox_close(discord_view_get_outbox(view));
    discord_reactions_close(self->reactions);
    discord_rest_close(self->rest);
}

static void
on_closed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    g_autoptr(GError) error = NULL;

    if (!discord_gateway_stop_finish(DISCORD_GATEWAY(source), result, &error))
        eb_warning("the connection to Discord was not closed in order: %s", error->message);
    discord_transport_close_rest(self);
    g_task_return_boolean(task, TRUE);
}

static gboolean
close_late(gpointer user_data)
{
    g_cancellable_cancel(user_data);
    return G_SOURCE_REMOVE;
}

static void
drop_source(gpointer source)
{
    g_source_destroy(source);
    g_source_unref(source);
}

/* @task: (transfer full) */
static void
close_gateway(DiscordTransport *self, GTask *task)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    GSource *late = g_timeout_source_new(DISCORD_TRANSPORT_CLOSE_MS);

    if (self->gateway == NULL) {
        discord_transport_close_rest(self);
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        g_source_unref(late);
        return;
    }
    g_source_set_callback(late, close_late, g_object_ref(cancellable), g_object_unref);
    g_source_attach(late, NULL);
    g_task_set_task_data(task, late, drop_source);
    discord_gateway_stop_async(self->gateway, cancellable, on_closed, task);
}

/* The last reaction says how a turn ended, as much as the last post does. */
static guint
count_queued(DiscordTransport *self)
{
    GHashTableIter iter;
    gpointer view;
    guint queued = self->reactions != NULL ? discord_reactions_get_busy(self->reactions) : 0;

    g_hash_table_iter_init(&iter, self->views);
    while (g_hash_table_iter_next(&iter, NULL, &view))
        queued += discord_outbox_get_queued(discord_view_get_outbox(view));
    return queued;
}

/* Looks whether everything is sent; the time for it is bounded. */
static gboolean
on_flush_look(gpointer user_data)
{
    GTask *task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    gint64 until = *(gint64 *)g_task_get_task_data(task);
    guint queued = count_queued(self);

    if (queued > 0 && !self->failed && g_get_monotonic_time() < until)
        return G_SOURCE_CONTINUE;
    if (queued > 0)
        eb_warning("%u posts and reactions did not reach Discord before the end", queued);
    close_gateway(self, g_object_ref(task));
    return G_SOURCE_REMOVE;
}

void
discord_transport_stop_async(DiscordTransport *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer user_data)
{
    g_return_if_fail(DISCORD_IS_TRANSPORT(self));
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    GHashTableIter iter;
    gpointer view;

    g_task_set_source_tag(task, discord_transport_stop_async);
    g_task_set_check_cancellable(task, FALSE);
    self->stopping = TRUE;
    discord_clear_source(&self->check_timer);
    discord_clear_source(&self->attach_idle);
    end_start(self, eb_error_new(EB_ERROR_CANCELLED, "discord.stopped", "the service ends"));
    if (self->rest == NULL) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    g_hash_table_iter_init(&iter, self->views);
    while (g_hash_table_iter_next(&iter, NULL, &view))
        discord_view_set_busy(view, FALSE);
    gint64 *until = g_new(gint64, 1);
    *until = g_get_monotonic_time() + DISCORD_TRANSPORT_FLUSH_MS * G_GINT64_CONSTANT(1000);
    g_task_set_task_data(task, until, g_free);
    g_autoptr(GSource) look = g_timeout_source_new(50);
    g_source_set_callback(look, on_flush_look, task, g_object_unref);
    g_source_attach(look, NULL);
}

gboolean
discord_transport_stop_finish(DiscordTransport *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
