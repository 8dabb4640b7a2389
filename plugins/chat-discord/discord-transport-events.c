/* SPDX-License-Identifier: MIT */
/* What comes by the gateway, and what of it is the core's concern. */
#include "discord-transport-private.h"

#include <string.h>

/* Messages in a row without any text, from which on the reason is likely to be the missing intent. */
#define EMPTY_SUSPICIOUS 3
/* Threads whose end is remembered, and messages whose last change is. */
#define MAX_GONE 1024
#define MAX_EDITS 1024
/* How long events wait for word of a place nobody has heard of. */
#define LOOK_UP_MS 600000
/* Changes of roles and channels come in bursts. */
#define CHECK_DELAY_MS 2000

DiscordListener
discord_transport_listener(DiscordTransport *self)
{
    return (DiscordListener){.user_id = self->user_id, .strip_mentions = self->config->policy.start_on_mention};
}

/* --- places never heard of --- */

typedef struct {
    char *type;
    JsonObject *data;
} Waiting;

static void
waiting_free(gpointer data)
{
    Waiting *waiting = data;

    g_free(waiting->type);
    json_object_unref(waiting->data);
    g_free(waiting);
}

typedef struct {
    DiscordTransport *self;
    char *id;
} LookUp;

static void
on_looked_up(GObject *source, GAsyncResult *result, gpointer user_data)
{
    LookUp *look_up = user_data;
    g_autoptr(DiscordTransport) self = look_up->self;
    g_autofree char *id = look_up->id;
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    GQueue *events = g_hash_table_lookup(self->unknown, id);
    Waiting *waiting;

    g_free(look_up);
    g_hash_table_remove(self->unknown, id);
    if (node != NULL)
        discord_threads_note(self->threads, eb_json_node_object(node));
    else if (g_error_matches(error, EB_ERROR, EB_ERROR_DENIED) || g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
        discord_threads_refuse(self->threads, id); /* what we may not see is none that we serve */
    else if (!self->stopping)
        eb_warning("%u events of channel %s are left out, it cannot be looked up: %s", events->length, id,
                   error->message);
    gboolean known = discord_threads_place(self->threads, id) != DISCORD_PLACE_UNKNOWN;
    while ((waiting = g_queue_pop_head(events)) != NULL) {
        if (known)
            discord_transport_handle(self, waiting->type, waiting->data);
        waiting_free(waiting);
    }
    g_queue_free(events);
}

/* Nobody knows where this is; the event comes again when that is found out. */
static void
wait_for_place(DiscordTransport *self, const char *type, JsonObject *data, const char *id)
{
    GQueue *events = g_hash_table_lookup(self->unknown, id);

    if (events == NULL ? g_hash_table_size(self->unknown) >= DISCORD_TRANSPORT_MAX_UNKNOWN
                       : events->length >= DISCORD_TRANSPORT_MAX_UNKNOWN) {
        eb_warning("an event of channel %s is left out: too many wait for word of where they are", id);
        return;
    }
    if (events == NULL) {
        DiscordRequest *request = discord_request_new("GET", "/channels/{c}", id, "/channels/%s", id);
        LookUp *look_up = g_new0(LookUp, 1);
        request->patience_ms = LOOK_UP_MS;
        look_up->self = g_object_ref(self);
        look_up->id = g_strdup(id);
        events = g_queue_new();
        g_hash_table_insert(self->unknown, g_strdup(id), events);
        discord_rest_send_async(self->rest, request, self->cancellable, on_looked_up, look_up);
    }
    Waiting *waiting = g_new0(Waiting, 1);
    waiting->type = g_strdup(type);
    waiting->data = json_object_ref(data);
    g_queue_push_tail(events, waiting);
}

/* The place an event is about. FALSE: not ours, or it comes again later. */
static gboolean
find_place(DiscordTransport *self, const char *type, JsonObject *data, DiscordPlace *place)
{
    const char *guild = eb_json_get_string(data, "guild_id");
    const char *id = eb_json_get_string(data, "channel_id");

    /* Without a server it is a direct message. */
    if (guild == NULL || !discord_is_snowflake(id) || (self->guild_id != NULL && strcmp(guild, self->guild_id) != 0))
        return FALSE;
    *place = discord_threads_place(self->threads, id);
    if (g_hash_table_contains(self->unknown, id) || *place == DISCORD_PLACE_UNKNOWN) {
        wait_for_place(self, type, data, id);
        return FALSE;
    }
    return *place != DISCORD_PLACE_OTHER;
}

static const char *
thread_of(DiscordPlace place, JsonObject *data)
{
    return place == DISCORD_PLACE_THREAD ? eb_json_get_string(data, "channel_id") : NULL;
}

/* --- messages --- */

static void
note_verdict(DiscordTransport *self, const EbChatMessage *message, DiscordVerdict verdict)
{
    if (verdict == DISCORD_HEARD && *message->text != '\0' && !message->mentions_us) {
        self->empty_messages = 0;
        return;
    }
    if (verdict != DISCORD_IGNORED_EMPTY || ++self->empty_messages != EMPTY_SUSPICIOUS)
        return;
    eb_warning("%s", "messages come without their text: switch on the Message Content intent for this bot in Discord's "
                     "developer portal, and restart");
    discord_transport_emit_connection(self, TRUE,
                                      "connected, but messages come without their text (Message Content "
                                      "intent)");
}

static void
on_message_create(DiscordTransport *self, const char *type, JsonObject *data)
{
    DiscordListener listener = discord_transport_listener(self);
    DiscordVerdict verdict;
    DiscordPlace place;

    if (!find_place(self, type, data, &place))
        return;
    g_autoptr(EbChatMessage) message = discord_message_read(data, place, &listener, &verdict);
    note_verdict(self, message, verdict);
    if (message != NULL)
        discord_transport_emit_message(self, "message", message);
    if (verdict != DISCORD_IGNORED_BROKEN)
        discord_transport_emit_texts(self, "seen", thread_of(place, data), eb_json_get_string(data, "id"));
}

/* Discord tells of a change again when it adds the preview of a link: only a new time is a new change. */
static gboolean
is_told(DiscordTransport *self, const char *id, const char *edited)
{
    if (g_strcmp0(g_hash_table_lookup(self->last_edits, id), edited) == 0)
        return TRUE;
    if (g_hash_table_size(self->last_edits) >= MAX_EDITS)
        g_hash_table_remove_all(self->last_edits);
    g_hash_table_replace(self->last_edits, g_strdup(id), g_strndup(edited, 64));
    return FALSE;
}

static void
on_message_update(DiscordTransport *self, const char *type, JsonObject *data)
{
    DiscordListener listener = discord_transport_listener(self);
    DiscordVerdict verdict;
    DiscordPlace place;

    if (!find_place(self, type, data, &place))
        return;
    g_autoptr(EbChatMessage) message = discord_message_read_edit(data, place, &listener, &verdict);
    if (message != NULL && !is_told(self, message->id, eb_json_get_string(data, "edited_timestamp")))
        discord_transport_emit_message(self, "edited", message);
}

static void
on_message_delete(DiscordTransport *self, const char *type, JsonObject *data)
{
    DiscordPlace place;

    if (!find_place(self, type, data, &place))
        return;
    g_autoptr(GPtrArray) ids = discord_message_read_deleted(data);
    for (guint i = 0; i < ids->len; i++)
        discord_transport_emit_texts(self, "withdrawn", thread_of(place, data), ids->pdata[i]);
}

/* --- threads --- */

void
discord_transport_note_gone(DiscordTransport *self, const char *thread, const char *state)
{
    if (g_hash_table_size(self->gone) >= MAX_GONE)
        g_hash_table_remove_all(self->gone);
    g_hash_table_replace(self->gone, g_strdup(thread), g_strdup(state));
    g_hash_table_remove(self->views, thread);
    discord_transport_emit_texts(self, "thread-state", thread, state);
}

static void
on_thread(DiscordTransport *self, const char *type, JsonObject *data)
{
    const char *id = eb_json_get_string(data, "id");
    const char *state = discord_threads_note(self->threads, data);

    if (id == NULL || discord_threads_place(self->threads, id) != DISCORD_PLACE_THREAD)
        return;
    if (g_strcmp0(state, "archived") == 0) {
        discord_transport_emit_texts(self, "thread-state", id, state);
    } else if (g_hash_table_remove(self->gone, id) || state != NULL) {
        discord_transport_emit_texts(self, "thread-state", id, "open");
    }
}

static void
on_thread_list(DiscordTransport *self, const char *type, JsonObject *data)
{
    discord_threads_note_all(self->threads, eb_json_get_array(data, "threads"));
}

static void
on_thread_delete(DiscordTransport *self, const char *type, JsonObject *data)
{
    const char *id = eb_json_get_string(data, "id");

    if (discord_is_snowflake(id) && discord_threads_remove(self->threads, id))
        discord_transport_note_gone(self, id, "deleted");
}

/* --- channels, roles, the server --- */

void
discord_transport_lose_threads(DiscordTransport *self, const char *state)
{
    g_autoptr(GPtrArray) threads = discord_threads_list(self->threads);

    for (guint i = 0; i < threads->len; i++)
        discord_transport_note_gone(self, threads->pdata[i], state);
}

static void
on_channel(DiscordTransport *self, const char *type, JsonObject *data)
{
    const char *id = eb_json_get_string(data, "id");
    gboolean ours = g_strcmp0(id, self->config->channel_id) == 0;

    if (ours && strcmp(type, "CHANNEL_DELETE") == 0) {
        /* Discord says the same when we may not see it any more, and that may be taken back: it is asked which. */
        self->channel_gone = TRUE;
        discord_transport_check_soon(self, 0);
    } else if (ours) {
        discord_transport_check_soon(self, CHECK_DELAY_MS);
    } else if (strcmp(type, "CHANNEL_DELETE") != 0) {
        discord_threads_note(self->threads, data);
    }
}

static void
on_guild_create(DiscordTransport *self, const char *type, JsonObject *data)
{
    const char *id = eb_json_get_string(data, "id");
    JsonArray *channels = eb_json_get_array(data, "channels");
    guint n = channels != NULL ? json_array_get_length(channels) : 0;

    if (!discord_is_snowflake(id) || eb_json_get_bool(data, "unavailable", FALSE))
        return;
    for (guint i = 0; self->guild_id == NULL && i < n; i++)
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(channels, i), "id"), self->config->channel_id) == 0)
            discord_transport_set_identity(self, NULL, NULL, id);
    if (g_strcmp0(id, self->guild_id) != 0)
        return;
    discord_threads_note_all(self->threads, channels);
    discord_threads_note_all(self->threads, eb_json_get_array(data, "threads"));
    discord_transport_set_guild_absent(self, NULL);
}

static void
on_guild_delete(DiscordTransport *self, const char *type, JsonObject *data)
{
    const char *id = eb_json_get_string(data, "id");

    if (self->guild_id == NULL || g_strcmp0(id, self->guild_id) != 0)
        return;
    if (eb_json_get_bool(data, "unavailable", FALSE)) {
        discord_transport_set_guild_absent(self, "Discord has an outage of this server");
        return;
    }
    discord_transport_set_guild_absent(self, "the bot was removed from the server: invite it again (errand-box setup "
                                             "prints the link)");
    discord_transport_lose_threads(self, "lost");
}

static void
on_roles(DiscordTransport *self, const char *type, JsonObject *data)
{
    const char *guild = eb_json_get_string(data, "guild_id");
    const char *member = eb_json_get_string(eb_json_get_object(data, "user"), "id");

    if (self->guild_id == NULL || g_strcmp0(guild, self->guild_id) != 0)
        return;
    if (g_str_has_prefix(type, "GUILD_MEMBER") && g_strcmp0(member, self->user_id) != 0)
        return;
    discord_transport_check_soon(self, CHECK_DELAY_MS);
}

/* --- commands and buttons --- */

static void
on_interaction(DiscordTransport *self, const char *type, JsonObject *data)
{
    const char *id = eb_json_get_string(data, "channel_id");
    DiscordPlace place = discord_threads_place(self->threads, id);

    /* An interaction brings its channel along, and has no time to wait for word of it. */
    if (place == DISCORD_PLACE_UNKNOWN) {
        JsonObject *channel = eb_json_get_object(data, "channel");
        if (g_strcmp0(eb_json_get_string(channel, "id"), id) == 0)
            discord_threads_note(self->threads, channel);
        place = discord_threads_place(self->threads, id);
    }
    if (place == DISCORD_PLACE_CHANNEL || place == DISCORD_PLACE_THREAD)
        discord_interactions_handle(self->interactions, data, thread_of(place, data));
    else
        discord_interactions_refuse(self->interactions, data, "errand-box does not work in this channel.");
}

static const struct {
    const char *type;
    void (*handle)(DiscordTransport *self, const char *type, JsonObject *data);
} handlers[] = {
    {"MESSAGE_CREATE", on_message_create},  {"MESSAGE_UPDATE", on_message_update},
    {"MESSAGE_DELETE", on_message_delete},  {"MESSAGE_DELETE_BULK", on_message_delete},
    {"INTERACTION_CREATE", on_interaction}, {"THREAD_CREATE", on_thread},
    {"THREAD_UPDATE", on_thread},           {"THREAD_DELETE", on_thread_delete},
    {"THREAD_LIST_SYNC", on_thread_list},   {"CHANNEL_CREATE", on_channel},
    {"CHANNEL_UPDATE", on_channel},         {"CHANNEL_DELETE", on_channel},
    {"GUILD_CREATE", on_guild_create},      {"GUILD_DELETE", on_guild_delete},
    {"GUILD_ROLE_CREATE", on_roles},        {"GUILD_ROLE_UPDATE", on_roles},
    {"GUILD_ROLE_DELETE", on_roles},        {"GUILD_MEMBER_UPDATE", on_roles},
};

gboolean
discord_transport_handles(const char *type)
{
    for (guint i = 0; i < G_N_ELEMENTS(handlers); i++)
        if (strcmp(handlers[i].type, type) == 0)
            return TRUE;
    return FALSE;
}

void
discord_transport_handle(DiscordTransport *self, const char *type, JsonObject *data)
{
    if (data == NULL || self->stopping || self->failed)
        return;
    for (guint i = 0; i < G_N_ELEMENTS(handlers); i++)
        if (strcmp(handlers[i].type, type) == 0) {
            handlers[i].handle(self, type, data);
            return;
        }
}
