/* SPDX-License-Identifier: MIT */

#include "ds-request.h"
#include "ds-validate.h"

#include <string.h>

#define RENAMES 2

static gboolean
valid_duration(gint64 minutes)
{
    return minutes == 60 || minutes == 1440 || minutes == 4320 || minutes == 10080;
}

/* (transfer full): its name, trimmed; NULL: refused */
static char *
check_thread_body(DsRequest *self, gboolean name_required)
{
    g_autofree char *name =
        ds_clean_content(eb_json_get_string(self->body, "name") != NULL ? eb_json_get_string(self->body, "name") : "");
    JsonObject *errors = json_object_new();
    const gint64 slow = eb_json_get_int(self->body, "rate_limit_per_user", 0);

    if (name_required || eb_json_get_string(self->body, "name") != NULL) {
        if (eb_json_get_string(self->body, "name") == NULL)
            ds_error_at(errors, "name", "BASE_TYPE_REQUIRED", "This field is required");
        else if (name[0] == '\0' || g_utf8_strlen(name, -1) > 100)
            ds_error_at(errors, "name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
    }
    if (json_object_has_member(self->body, "auto_archive_duration") &&
        !valid_duration(eb_json_get_int(self->body, "auto_archive_duration", 0)))
        ds_error_at(errors, "auto_archive_duration", "BASE_TYPE_CHOICES",
                    "Value must be one of {60, 1440, 4320, 10080}.");
    if (slow < 0 || slow > 21600)
        ds_error_at(errors, "rate_limit_per_user", "NUMBER_TYPE_MAX", "int value should be between 0 and 21600.");
    if (json_object_get_size(errors) > 0) {
        ds_refuse_errors(self, errors);
        return NULL;
    }
    json_object_unref(errors);
    return g_steal_pointer(&name);
}

static void
thread_from_message(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], DS_CREATE_PUBLIC_THREADS);
    DsMessage *message;
    g_autofree char *name = NULL;
    DsChannel *thread;

    if (channel == NULL)
        return;
    if (ds_channel_is_thread(channel)) {
        ds_refuse_code(self, 50024);
        return;
    }
    message = ds_request_message(self, channel, self->args[1]);
    if (message == NULL)
        return;
    if (eb_json_get_int(message->json, "type", 0) != 0 && eb_json_get_int(message->json, "type", 0) != 19) {
        ds_refuse(self, 400, 50068, "Invalid message type");
        return;
    }
    if (json_object_has_member(message->json, "thread")) {
        ds_refuse_code(self, 160004);
        return;
    }
    name = check_thread_body(self, TRUE);
    if (name == NULL)
        return;
    thread = ds_world_add_thread(self->world, channel, message, name, DS_APPLICATION,
                                 (int)eb_json_get_int(self->body, "auto_archive_duration", 4320), 11);
    ds_answer_object(self, 201, ds_channel_json(self->world, thread));
}

static void
thread_alone(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], DS_CREATE_PUBLIC_THREADS);
    const gint64 type = eb_json_get_int(self->body, "type", 12);
    g_autofree char *name = NULL;
    DsChannel *thread;

    if (channel == NULL)
        return;
    if (ds_channel_is_thread(channel)) {
        ds_refuse_code(self, 50024);
        return;
    }
    if (type != 11) { /* a private one needs a permission that the bot does not ask for */
        ds_refuse_code(self, 50013);
        return;
    }
    name = check_thread_body(self, TRUE);
    if (name == NULL)
        return;
    thread = ds_world_add_thread(self->world, channel, NULL, name, DS_APPLICATION,
                                 (int)eb_json_get_int(self->body, "auto_archive_duration", 4320), 11);
    ds_answer_object(self, 201, ds_channel_json(self->world, thread));
}

static void
get_channel(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);

    if (channel != NULL)
        ds_answer_object(self, 200, ds_channel_json(self->world, channel));
}

/* Names of a channel may change twice in ten minutes; no header says so. */
static gboolean
refuse_rename(DsRequest *self, DsChannel *channel)
{
    const gint64 now = g_get_monotonic_time();
    const gint64 window_us = (gint64)(self->world->rename_window_s * G_USEC_PER_SEC);
    double left;

    while (channel->renames->len > 0 && g_array_index(channel->renames, gint64, 0) < now - window_us)
        g_array_remove_index(channel->renames, 0);
    if (channel->renames->len < RENAMES) {
        g_array_append_val(channel->renames, now);
        return FALSE;
    }
    left = (double)(g_array_index(channel->renames, gint64, 0) + window_us - now) / G_USEC_PER_SEC;
    ds_world_count(self->world, "limited");
    ds_answer_object(
        self, 429,
        ds_object("s:message", "You are being rate limited.", "d:retry_after", left, "b:global", FALSE, NULL));
    return TRUE;
}

static gboolean
may_change(DsRequest *self, DsChannel *thread)
{
    const gboolean manages = (ds_world_permissions(self->world, DS_APPLICATION, thread) & DS_MANAGE_THREADS) != 0;
    const gboolean owns = g_strcmp0(eb_json_get_string(thread->json, "owner_id"), DS_APPLICATION) == 0;
    const gboolean only_name_or_archived =
        !json_object_has_member(self->body, "locked") && !json_object_has_member(self->body, "rate_limit_per_user");

    return manages || (owns && only_name_or_archived);
}

static void
edit_channel(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);
    JsonObject *body = self->body;
    g_autofree char *name = NULL;
    gboolean archived;

    if (channel == NULL)
        return;
    if (!ds_channel_is_thread(channel) || body == NULL || !may_change(self, channel)) {
        ds_refuse_code(self, body == NULL ? 50035 : 50013);
        return;
    }
    archived = ds_channel_flag(channel, "archived");
    if (archived && (!json_object_has_member(body, "archived") || eb_json_get_bool(body, "archived", TRUE))) {
        ds_refuse_code(self, 50083);
        return;
    }
    name = check_thread_body(self, FALSE);
    if (name == NULL || (name[0] != '\0' && refuse_rename(self, channel)))
        return;
    if (json_object_has_member(body, "auto_archive_duration"))
        json_object_set_int_member(ds_channel_metadata(channel), "auto_archive_duration",
                                   eb_json_get_int(body, "auto_archive_duration", 0));
    ds_world_change_thread(self->world, channel,
                           json_object_has_member(body, "archived") ? eb_json_get_bool(body, "archived", FALSE) : -1,
                           json_object_has_member(body, "locked") ? eb_json_get_bool(body, "locked", FALSE) : -1,
                           name[0] != '\0' ? name : NULL);
    ds_answer_object(self, 200, ds_channel_json(self->world, channel));
}

static void
delete_channel(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);

    if (channel == NULL)
        return;
    if (!(ds_world_permissions(self->world, DS_APPLICATION, channel) &
          (ds_channel_is_thread(channel) ? DS_MANAGE_THREADS : DS_MANAGE_CHANNELS))) {
        ds_refuse_code(self, 50013);
        return;
    }
    ds_answer_object(self, 200, ds_channel_json(self->world, channel));
    ds_world_remove_channel(self->world, channel);
}

/* Threads of @parent (nullable: of the guild), archived or active. */
static JsonArray *
threads(DsWorld *world, const char *parent, gboolean archived)
{
    JsonArray *list = json_array_new();

    for (guint i = 0; i < world->channels->len; i++) {
        DsChannel *thread = g_ptr_array_index(world->channels, world->channels->len - 1 - i);

        if (!thread->deleted && ds_channel_is_thread(thread) && ds_channel_flag(thread, "archived") == archived &&
            (parent == NULL || g_strcmp0(eb_json_get_string(thread->json, "parent_id"), parent) == 0) &&
            (ds_world_permissions(world, DS_APPLICATION, thread) & DS_VIEW_CHANNEL))
            json_array_add_object_element(list, ds_channel_json(world, thread));
    }
    return list;
}

static void
archived_threads(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], DS_READ_HISTORY);

    if (channel != NULL)
        ds_answer_object(self, 200,
                         ds_object("a:threads", threads(self->world, channel->id, TRUE), "a:members", json_array_new(),
                                   "b:has_more", FALSE, NULL));
}

static void
active_threads(DsRequest *self)
{
    if (strcmp(self->args[0], DS_GUILD) != 0 || !self->world->bot_in_guild)
        ds_refuse_code(self, 10004);
    else
        ds_answer_object(
            self, 200, ds_object("a:threads", threads(self->world, NULL, FALSE), "a:members", json_array_new(), NULL));
}

static void
join_thread(DsRequest *self)
{
    DsChannel *channel = ds_request_channel(self, self->args[0], 0);

    if (channel == NULL)
        return;
    if (!ds_channel_is_thread(channel))
        ds_refuse_code(self, 50024);
    else if (ds_channel_flag(channel, "archived"))
        ds_refuse_code(self, 50083);
    else
        ds_answer_empty(self);
}

const DsRoute ds_routes_threads[] = {
    {"POST", "/channels/{c}/messages/{m}/threads", thread_from_message, 10, 10000, "threads", FALSE},
    {"POST", "/channels/{c}/threads", thread_alone, 10, 10000, "threads", FALSE},
    {"GET", "/channels/{c}/threads/archived/public", archived_threads, 5, 5000, NULL, FALSE},
    {"GET", "/channels/{c}", get_channel, 5, 5000, NULL, FALSE},
    {"PATCH", "/channels/{c}", edit_channel, 5, 15000, NULL, FALSE},
    {"DELETE", "/channels/{c}", delete_channel, 5, 15000, NULL, FALSE},
    {"GET", "/guilds/{g}/threads/active", active_threads, 10, 10000, NULL, FALSE},
    {"PUT", "/channels/{c}/thread-members/@me", join_thread, 5, 5000, NULL, FALSE},
    {"DELETE", "/channels/{c}/thread-members/@me", join_thread, 5, 5000, NULL, FALSE},
    {NULL, NULL, NULL, 0, 0, NULL, FALSE},
};
