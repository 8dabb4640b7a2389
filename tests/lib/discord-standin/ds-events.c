/* SPDX-License-Identifier: MIT */

#include "ds-gateway.h"

#include <string.h>

void
ds_event_free(DsEvent *self)
{
    g_free(self->type);
    json_object_unref(self->data);
    g_free(self);
}

/* --- one session --- */

void
ds_session_send(DsGateway *self, DsSession *session, const char *type, JsonObject *data)
{
    g_autoptr(JsonObject) payload = NULL;
    char *text;

    session->seq++;
    payload = ds_object("i:op", 0, "l:s", (gint64)session->seq, "s:t", type, "O:d", data, NULL);
    text = ds_text(payload);
    if (session->kept->len == 0)
        session->first_kept = session->seq;
    if (session->kept->len >= DS_KEPT_MAX) {
        g_ptr_array_remove_index(session->kept, 0);
        session->first_kept++;
    }
    g_ptr_array_add(session->kept, text);
    if (session->connection != NULL && !self->world->silent)
        ds_connection_send(session->connection, text);
}

static gboolean
mentions_bot(JsonObject *message)
{
    JsonArray *mentions = eb_json_get_array(message, "mentions");

    for (guint i = 0; mentions != NULL && i < json_array_get_length(mentions); i++) {
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(mentions, i), "id"), DS_APPLICATION) == 0)
            return TRUE;
    }
    return FALSE;
}

/* (transfer full): what a session without the content intent sees of a message. */
static JsonObject *
without_content(JsonObject *message)
{
    JsonObject *bare = ds_copy(message);

    ds_object_set(bare, "s:content", "", "a:embeds", json_array_new(), "a:attachments", json_array_new(),
                  "a:components", json_array_new(), NULL);
    if (json_object_has_member(bare, "poll"))
        json_object_remove_member(bare, "poll");
    return bare;
}

static gboolean
has_content(const char *type, JsonObject *data)
{
    return (strcmp(type, "MESSAGE_CREATE") == 0 || strcmp(type, "MESSAGE_UPDATE") == 0) &&
           g_strcmp0(eb_json_get_string(eb_json_get_object(data, "author"), "id"), DS_APPLICATION) != 0 &&
           !mentions_bot(data);
}

static void
emit_now(DsGateway *self, const char *type, JsonObject *data, gint64 intent)
{
    for (guint i = 0; i < self->sessions->len; i++) {
        DsSession *session = g_ptr_array_index(self->sessions, i);

        if (session->dead || (intent != 0 && !(session->intents & intent)))
            continue;
        if (has_content(type, data) && !(session->intents & DS_INTENT_CONTENT)) {
            g_autoptr(JsonObject) bare = without_content(data);

            ds_session_send(self, session, type, bare);
        } else {
            ds_session_send(self, session, type, data);
        }
    }
    ds_world_changed(self->world);
}

static void
emit(DsGateway *self, const char *type, JsonObject *data, gint64 intent)
{
    emit_now(self, type, data, intent);
    while (self->held->len > 0) {
        g_autoptr(GPtrArray) held = g_steal_pointer(&self->held);

        self->held = g_ptr_array_new_with_free_func((GDestroyNotify)ds_event_free);
        for (guint i = 0; i < held->len; i++) {
            DsEvent *event = g_ptr_array_index(held, i);

            emit_now(self, event->type, event->data, event->intent);
        }
    }
}

/* --- faults --- */

static DsEvent *
event_new(const char *type, JsonObject *data, gint64 intent)
{
    DsEvent *event = g_new0(DsEvent, 1);

    event->type = g_strdup(type);
    event->data = json_object_ref(data);
    event->intent = intent;
    return event;
}

typedef struct {
    DsGateway *gateway;
    DsEvent *event;
} Late;

static void
late_free(gpointer data)
{
    ds_event_free(((Late *)data)->event);
    g_free(data);
}

static gboolean
on_late(gpointer user_data)
{
    Late *late = user_data;

    emit(late->gateway, late->event->type, late->event->data, late->event->intent);
    return G_SOURCE_REMOVE;
}

/* (transfer full) (nullable): kind of the fault that meets this event */
static char *
take_fault(DsGateway *self, const char *type, guint *delay_ms)
{
    for (guint i = 0; i < self->faults->len; i++) {
        DsEventFault *fault = g_ptr_array_index(self->faults, i);
        g_autofree char *kind = NULL;

        if (fault->type != NULL && strcmp(fault->type, type) != 0)
            continue;
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        kind = g_strdup(fault->kind);
        *delay_ms = fault->delay_ms;
        if (--fault->count == 0)
            g_ptr_array_remove_index(self->faults, i);
        return g_steal_pointer(&kind);
    }
    return NULL;
}

static void
with_faults(DsGateway *self, const char *type, JsonObject *data, gint64 intent)
{
    guint delay_ms = 0;
    g_autofree char *kind = take_fault(self, type, &delay_ms);

    if (kind == NULL) {
        emit(self, type, data, intent);
        return;
    }
    ds_world_count(self->world, "event_faults");
    if (strcmp(kind, "duplicate") == 0) {
        emit(self, type, data, intent);
        emit(self, type, data, intent);
    } else if (strcmp(kind, "reorder") == 0) {
        g_ptr_array_add(self->held, event_new(type, data, intent));
    } else if (strcmp(kind, "delay") == 0) {
        Late *late = g_new0(Late, 1);

        late->gateway = self;
        late->event = event_new(type, data, intent);
        ds_world_later(self->world, delay_ms, on_late, late, late_free);
    }
}

void
ds_gateway_dispatch(DsGateway *self, const char *type, JsonObject *data, gint64 intent, DsChannel *channel)
{
    g_autoptr(JsonObject) owned = data;

    if (channel != NULL && !(ds_world_permissions(self->world, DS_APPLICATION, channel) & DS_VIEW_CHANNEL))
        return;
    if (self->paused != NULL)
        g_ptr_array_add(self->paused, event_new(type, owned, intent));
    else
        with_faults(self, type, owned, intent);
}

void
ds_gateway_release(DsGateway *self)
{
    g_autoptr(GPtrArray) paused = g_steal_pointer(&self->paused);

    for (guint i = 0; paused != NULL && i < paused->len; i++) {
        DsEvent *event = g_ptr_array_index(paused, i);

        with_faults(self, event->type, event->data, event->intent);
    }
}

/* --- the guild --- */

static void
add_channels(DsWorld *world, JsonArray *channels, JsonArray *threads)
{
    for (guint i = 0; i < world->channels->len; i++) {
        DsChannel *channel = g_ptr_array_index(world->channels, i);
        JsonObject *json;

        if (channel->deleted || !(ds_world_permissions(world, DS_APPLICATION, channel) & DS_VIEW_CHANNEL) ||
            ds_channel_flag(channel, "archived"))
            continue;
        json = ds_copy(channel->json);
        json_array_add_object_element(ds_channel_is_thread(channel) ? threads : channels, json);
    }
}

/* Channels that say nothing, until the guild is long enough. */
static void
add_padding(JsonArray *channels, guint bytes)
{
    const guint each = 1200;
    g_autofree char *topic = g_strnfill(1024, 'x');

    for (guint i = 0; i < bytes / each; i++) {
        g_autofree char *id = g_strdup_printf("2%017u", i + 1);

        json_array_add_object_element(
            channels, ds_object("s:id", id, "i:type", 0, "s:guild_id", DS_GUILD, "s:name", "filler", "s:topic", topic,
                                "i:position", 100, "a:permission_overwrites", json_array_new(), "n:parent_id", NULL));
    }
}

JsonObject *
ds_gateway_guild_json(DsWorld *world, gboolean whole)
{
    JsonObject *guild = ds_copy(world->guild);
    JsonArray *roles = json_array_new();
    JsonArray *channels = json_array_new();
    JsonArray *threads = json_array_new();
    JsonArray *members = json_array_new();
    g_autofree char *joined = ds_iso(ds_now_ms());

    for (guint i = 0; i < world->roles->len; i++)
        json_array_add_object_element(roles, ds_copy(g_ptr_array_index(world->roles, i)));
    ds_object_set(guild, "n:icon", "n:splash", "n:discovery_splash", "a:emojis", json_array_new(), "a:stickers",
                  json_array_new(), "a:features", json_array_new(), "a:roles", roles, "i:verification_level", 0,
                  "i:default_message_notifications", 0, "i:explicit_content_filter", 0, "n:afk_channel_id",
                  "i:afk_timeout", 300, "n:system_channel_id", "i:system_channel_flags", 0, "n:rules_channel_id",
                  "n:vanity_url_code", "n:description", "n:banner", "i:premium_tier", 0, "i:premium_subscription_count",
                  0, "s:preferred_locale", "en-US", "n:public_updates_channel_id", "i:nsfw_level", 0,
                  "b:premium_progress_bar_enabled", FALSE, "n:safety_alerts_channel_id", "n:application_id",
                  "i:max_members", 500000, NULL);
    if (!whole) {
        json_array_unref(channels);
        json_array_unref(threads);
        json_array_unref(members);
        return guild;
    }
    add_channels(world, channels, threads);
    add_padding(channels, world->gateway->padding);
    json_array_add_object_element(members, ds_world_member_json(world, DS_APPLICATION, TRUE));
    ds_object_set(guild, "a:channels", channels, "a:threads", threads, "a:members", members, "i:member_count",
                  (int)g_hash_table_size(world->members), "b:large", FALSE, "b:unavailable", FALSE, "s:joined_at",
                  joined, "a:voice_states", json_array_new(), "a:presences", json_array_new(), "a:stage_instances",
                  json_array_new(), "a:guild_scheduled_events", json_array_new(), "a:soundboard_sounds",
                  json_array_new(), NULL);
    return guild;
}
