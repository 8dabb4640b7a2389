/* SPDX-License-Identifier: MIT */
#include "standin-rig.h"

#include <string.h>

#define INTENTS 33281

static void
on_action(DiscordInteractions *interactions, EbChatMessage *message, gpointer user_data)
{
    g_ptr_array_add(((Rig *)user_data)->actions, eb_chat_message_ref(message));
}

static void
on_asked(DiscordAsk *ask, const char *question, const char *message, gpointer user_data)
{
    g_ptr_array_add(((Rig *)user_data)->asked, g_strdup_printf("%s %s", question, message));
}

static void
handle(Rig *self, JsonObject *data)
{
    const char *channel = eb_json_get_string(data, "channel_id");
    const gboolean in_channel = g_strcmp0(channel, DISCORD_STANDIN_CHANNEL) == 0;

    if (g_strcmp0(channel, DISCORD_STANDIN_OTHER_CHANNEL) == 0)
        discord_interactions_refuse(self->interactions, data, "Not here.");
    else
        discord_interactions_handle(self->interactions, data, in_channel ? NULL : channel);
}

static void
on_dispatch(DiscordGateway *gateway, const char *type, JsonObject *data, gpointer user_data)
{
    Rig *self = user_data;

    if (strcmp(type, "INTERACTION_CREATE") != 0)
        return;
    g_ptr_array_add(self->interactions_seen, json_node_init_object(json_node_alloc(), data));
    if (!self->deaf)
        handle(self, data);
}

static void
on_ready(DiscordGateway *gateway, gboolean resumed, JsonObject *data, gpointer user_data)
{
    ((Rig *)user_data)->up = TRUE;
}

static void
make_parts(Rig *self, guint settle_ms)
{
    self->ask = discord_ask_new();
    discord_ask_set_settle_ms(self->ask, settle_ms);
    self->interactions = discord_interactions_new(self->rest, self->ask);
    discord_interactions_set_place(self->interactions, DISCORD_STANDIN_APPLICATION, DISCORD_STANDIN_GUILD,
                                   DISCORD_STANDIN_CHANNEL);
    g_signal_connect(self->ask, "asked", G_CALLBACK(on_asked), self);
    g_signal_connect(self->interactions, "action", G_CALLBACK(on_action), self);
}

static void
drop_parts(Rig *self)
{
    g_signal_handlers_disconnect_by_data(self->ask, self);
    g_signal_handlers_disconnect_by_data(self->interactions, self);
    g_clear_object(&self->interactions);
    g_clear_object(&self->ask);
}

JsonObject *
rig_call(Rig *self, const char *verb, const char *format, ...)
{
    va_list args;
    g_autofree char *json = NULL;

    va_start(args, format);
    json = g_strdup_vprintf(format, args);
    va_end(args);
    return discord_standin_call(self->standin, verb, json);
}

static void
open_thread(Rig *self)
{
    g_autoptr(JsonObject) said = rig_call(self, "say", "{\"content\":\"do it\"}");
    g_autoptr(JsonObject) thread =
        rig_call(self, "thread", "{\"message\":\"%s\",\"name\":\"work\"}", eb_json_get_string(said, "id"));

    self->thread = g_strdup(eb_json_get_string(thread, "id"));
    g_assert_nonnull(self->thread);
}

Rig *
rig_new(guint settle_ms, gboolean in_thread)
{
    Rig *self = g_new0(Rig, 1);
    g_autofree char *word = g_strdup("mock-token");
    g_autoptr(GError) error = NULL;

    self->token = eb_secret_new_take("chat-token", word, strlen(word), &error);
    g_assert_no_error(error);
    self->standin = discord_standin_new("mock-token", 0, &error);
    g_assert_no_error(error);
    self->site = discord_site_new(discord_standin_get_api(self->standin), self->token, &error);
    g_assert_no_error(error);
    self->rest = discord_rest_new(self->site, self->token);
    self->actions = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    self->asked = g_ptr_array_new_with_free_func(g_free);
    self->interactions_seen = g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);
    make_parts(self, settle_ms);
    self->gateway = discord_gateway_new(self->site, self->rest, self->token, INTENTS, NULL);
    g_signal_connect(self->gateway, "dispatch", G_CALLBACK(on_dispatch), self);
    g_signal_connect(self->gateway, "ready", G_CALLBACK(on_ready), self);
    discord_gateway_start(self->gateway);
    eb_test_run_until_true(&self->up);
    if (in_thread)
        open_thread(self);
    self->outbox = discord_outbox_new(self->rest, in_thread ? self->thread : DISCORD_STANDIN_CHANNEL);
    return self;
}

void
rig_restart(Rig *self, guint settle_ms)
{
    drop_parts(self);
    make_parts(self, settle_ms);
}

void
rig_hear(Rig *self)
{
    self->deaf = FALSE;
    for (guint i = 0; i < self->interactions_seen->len; i++)
        handle(self, json_node_get_object(self->interactions_seen->pdata[i]));
}

void
rig_free(Rig *self)
{
    g_auto(EbTestResult) done = {0};

    discord_gateway_stop_async(self->gateway, NULL, eb_test_result_ready, &done);
    discord_gateway_stop_finish(self->gateway, eb_test_result_wait(&done), NULL);
    g_signal_handlers_disconnect_by_data(self->gateway, self);
    g_object_unref(self->gateway);
    drop_parts(self);
    discord_outbox_close(self->outbox);
    discord_rest_close(self->rest);
    eb_test_drain();
    g_object_unref(self->outbox);
    g_object_unref(self->rest);
    discord_site_free(self->site);
    eb_secret_unref(self->token);
    discord_standin_free(self->standin);
    g_ptr_array_unref(self->actions);
    g_ptr_array_unref(self->asked);
    g_ptr_array_unref(self->interactions_seen);
    g_free(self->thread);
    g_free(self);
}

typedef struct {
    Rig *rig;
    const char *verb, *filters;
    guint count;
} Wait;

static gboolean
there(gpointer user_data)
{
    const Wait *wait = user_data;

    return discord_standin_count(wait->rig->standin, wait->verb, wait->filters) >= wait->count;
}

void
rig_wait(Rig *self, const char *verb, const char *filters, guint count)
{
    Wait wait = {self, verb, filters, count};

    eb_test_run_until(there, &wait);
    g_assert_cmpuint(rig_count(self, verb, filters), ==, count);
}

guint
rig_count(Rig *self, const char *verb, const char *filters)
{
    return discord_standin_count(self->standin, verb, filters);
}

void
rig_press(Rig *self, const char *message, const char *user, const char *label)
{
    g_autoptr(JsonObject) done =
        rig_call(self, "press", "{\"channel\":\"%s\",\"message\":\"%s\",\"user\":\"%s\",\"%s\":\"%s\",\"stale\":true}",
                 self->thread != NULL ? self->thread : DISCORD_STANDIN_CHANNEL, message, user,
                 g_str_has_prefix(label, "q:") ? "custom_id" : "label", label);
}

char *
rig_message_text(Rig *self, const char *message)
{
    g_autoptr(JsonObject) list = rig_call(self, "messages", "{\"id\":\"%s\"}", message);
    JsonObject *item = eb_json_array_object(eb_json_get_array(list, "items"), 0);

    return g_strdup(eb_json_get_string(item, "content"));
}
