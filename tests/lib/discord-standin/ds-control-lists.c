/* SPDX-License-Identifier: MIT */

#include "ds-control.h"
#include "ds-gateway.h"

#include <string.h>

static JsonObject *
items(JsonArray *array)
{
    return ds_object("a:items", array, "i:count", (int)json_array_get_length(array), NULL);
}

/* Whether @text matches the regular expression @args has as @name, or there is none. */
static gboolean
matches(JsonObject *args, const char *name, const char *text)
{
    const char *pattern = eb_json_get_string(args, name);

    return pattern == NULL ||
           (text != NULL && g_regex_match_simple(pattern, text, G_REGEX_DOTALL | G_REGEX_MULTILINE, 0));
}

static gboolean
equals(JsonObject *args, const char *name, const char *text)
{
    const char *wanted = eb_json_get_string(args, name);

    return wanted == NULL || g_strcmp0(wanted, text) == 0;
}

static gboolean
flag_equals(JsonObject *args, const char *name, gboolean value)
{
    return !json_object_has_member(args, name) || eb_json_get_bool(args, name, FALSE) == value;
}

/* --- messages --- */

static gboolean
has_reaction(DsMessage *message, const char *emoji)
{
    for (guint i = 0; i < message->reactions->len; i++) {
        if (strcmp(((DsReaction *)g_ptr_array_index(message->reactions, i))->emoji, emoji) == 0)
            return TRUE;
    }
    return FALSE;
}

/* Whether it has one of @args' reactions, or none is asked for. */
static gboolean
has_one_of(DsMessage *message, JsonObject *args)
{
    JsonArray *several = eb_json_get_array(args, "reactions");
    const char *one = eb_json_get_string(args, "reaction");
    gboolean found = several == NULL;

    for (guint i = 0; several != NULL && i < json_array_get_length(several); i++)
        found |= eb_json_array_string(several, i) != NULL && has_reaction(message, eb_json_array_string(several, i));
    return found && (one == NULL || has_reaction(message, one));
}

static gboolean
is_filled(DsMessage *message, const char *member)
{
    JsonArray *array = eb_json_get_array(message->json, member);

    return array != NULL && json_array_get_length(array) > 0;
}

static gboolean
wanted(DsMessage *message, JsonObject *args)
{
    const char *author = eb_json_get_string(args, "author");
    const char *after = eb_json_get_string(args, "after");

    if (author != NULL && strcmp(author, "bot") == 0)
        author = DS_APPLICATION;
    return (author == NULL || strcmp(author, message->author) == 0) && equals(args, "id", message->id) &&
           matches(args, "text", eb_json_get_string(message->json, "content")) &&
           (after == NULL || g_ascii_strtoull(message->id, NULL, 10) > g_ascii_strtoull(after, NULL, 10)) &&
           has_one_of(message, args) && flag_equals(args, "components", is_filled(message, "components")) &&
           flag_equals(args, "attachments", is_filled(message, "attachments")) &&
           flag_equals(args, "ephemeral", message->ephemeral) &&
           (message->deleted ? eb_json_get_bool(args, "deleted", FALSE)
                             : !eb_json_get_bool(args, "only_deleted", FALSE));
}

static JsonObject *
described(DsWorld *world, DsMessage *message)
{
    JsonObject *json = ds_message_json(world, message, FALSE);
    JsonArray *history = json_array_new();

    for (guint i = 0; i < message->history->len; i++)
        json_array_add_string_element(history, g_ptr_array_index(message->history, i));
    ds_object_set(json, "a:history", history, "b:deleted", message->deleted, "b:ephemeral", message->ephemeral, NULL);
    return json;
}

static JsonObject *
list_messages(DsWorld *world, JsonObject *args, GError **error)
{
    JsonArray *array = json_array_new();
    const char *channel_id = eb_json_get_string(args, "channel");

    for (guint i = 0; i < world->channels->len; i++) {
        DsChannel *channel = g_ptr_array_index(world->channels, i);

        if (channel_id != NULL && strcmp(channel->id, channel_id) != 0)
            continue;
        for (guint k = 0; k < channel->messages->len; k++) {
            DsMessage *message = g_ptr_array_index(channel->messages, k);

            if (wanted(message, args))
                json_array_add_object_element(array, described(world, message));
        }
    }
    return items(array);
}

/* --- channels --- */

static JsonObject *
list_channels(DsWorld *world, JsonObject *args, GError **error)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < world->channels->len; i++) {
        DsChannel *channel = g_ptr_array_index(world->channels, i);
        JsonObject *json;

        if (!equals(args, "id", channel->id) || !matches(args, "name", eb_json_get_string(channel->json, "name")) ||
            !equals(args, "parent", eb_json_get_string(channel->json, "parent_id")) ||
            !flag_equals(args, "thread", ds_channel_is_thread(channel)) ||
            !flag_equals(args, "archived", ds_channel_flag(channel, "archived")) ||
            !flag_equals(args, "locked", ds_channel_flag(channel, "locked")) ||
            !flag_equals(args, "deleted", channel->deleted) ||
            channel->typing < (guint)eb_json_get_int(args, "typing", 0))
            continue;
        json = ds_channel_json(world, channel);
        ds_object_set(json, "i:typing", (int)channel->typing, "b:deleted", channel->deleted, NULL);
        json_array_add_object_element(array, json);
    }
    return items(array);
}

static JsonObject *
list_threads(DsWorld *world, JsonObject *args, GError **error)
{
    g_autoptr(JsonObject) threads = ds_copy(args);

    json_object_set_boolean_member(threads, "thread", TRUE);
    return list_channels(world, threads, error);
}

static JsonObject *
list_commands(DsWorld *world, JsonObject *args, GError **error)
{
    return items(
        json_array_ref(eb_json_get_bool(args, "global", FALSE) ? world->global_commands : world->guild_commands));
}

/* --- logs --- */

static JsonObject *
list_log(DsWorld *world, DsLog log, JsonObject *args)
{
    JsonArray *array = json_array_new();
    static const char *const members[] = {"method", "path", "route", "rule", "what", "detail", "content"};

    for (guint i = 0; i < world->log[log]->len; i++) {
        JsonObject *row = g_ptr_array_index(world->log[log], i);
        gboolean keep = !json_object_has_member(args, "status") ||
                        eb_json_get_int(args, "status", 0) == eb_json_get_int(row, "status", 0);

        keep = keep && (!json_object_has_member(args, "code") ||
                        eb_json_get_int(args, "code", 0) == eb_json_get_int(row, "code", 0));
        for (gsize k = 0; keep && k < G_N_ELEMENTS(members); k++)
            keep = matches(args, members[k], eb_json_get_string(row, members[k]));
        if (keep)
            json_array_add_object_element(array, ds_copy(row));
    }
    return items(array);
}

static JsonObject *
list_requests(DsWorld *world, JsonObject *args, GError **error)
{
    return list_log(world, DS_LOG_REQUESTS, args);
}

static JsonObject *
list_violations(DsWorld *world, JsonObject *args, GError **error)
{
    return list_log(world, DS_LOG_VIOLATIONS, args);
}

static JsonObject *
list_pings(DsWorld *world, JsonObject *args, GError **error)
{
    return list_log(world, DS_LOG_PINGS, args);
}

static JsonObject *
list_refusals(DsWorld *world, JsonObject *args, GError **error)
{
    return list_log(world, DS_LOG_REFUSALS, args);
}

static JsonObject *
list_gateway(DsWorld *world, JsonObject *args, GError **error)
{
    return list_log(world, DS_LOG_GATEWAY, args);
}

static JsonObject *
clear_logs(DsWorld *world, JsonObject *args, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(world->log); i++)
        g_ptr_array_set_size(world->log[i], 0);
    g_hash_table_remove_all(world->counts);
    return json_object_new();
}

/* --- interactions --- */

static JsonObject *
interaction_json(DsWorld *world, DsInteraction *interaction)
{
    JsonArray *answers = json_array_new();
    GString *text = g_string_new(NULL);
    JsonObject *json;

    for (guint i = 0; i < interaction->answers->len; i++) {
        DsMessage *message = g_ptr_array_index(interaction->answers, i);
        const char *content = eb_json_get_string(message->json, "content");

        json_array_add_object_element(answers, described(world, message));
        if (!message->deleted && content[0] != '\0')
            g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "", content);
    }
    json = ds_object("s:id", interaction->id, "s:token", interaction->token, "s:name", interaction->name, "s:user",
                     interaction->user, "s:channel", interaction->channel, "i:type", interaction->type, "b:acked",
                     interaction->acked_us != 0, "d:ack_ms",
                     interaction->acked_us != 0 ? (double)(interaction->acked_us - interaction->made_us) / 1000 : -1.0,
                     "i:callback", interaction->callback, "b:ephemeral", interaction->ephemeral, "b:answered",
                     interaction->acked_us != 0 && !interaction->deferred, "a:answers", answers, "s:text", text->str,
                     NULL);
    g_string_free(text, TRUE);
    return json;
}

static JsonObject *
list_interactions(DsWorld *world, JsonObject *args, GError **error)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < world->interactions->len; i++) {
        DsInteraction *interaction = g_ptr_array_index(world->interactions, i);
        JsonObject *json;

        if (!equals(args, "id", interaction->id) || !equals(args, "name", interaction->name) ||
            !equals(args, "channel", interaction->channel) || !flag_equals(args, "acked", interaction->acked_us != 0) ||
            !flag_equals(args, "answered", interaction->acked_us != 0 && !interaction->deferred))
            continue;
        json = interaction_json(world, interaction);
        if (matches(args, "text", eb_json_get_string(json, "text")))
            json_array_add_object_element(array, json);
        else
            json_object_unref(json);
    }
    return items(array);
}

/* --- figures --- */

static JsonObject *
stats(DsWorld *world, JsonObject *args, GError **error)
{
    static const char *const names[] = {
        "limited", "answered_429",      "invalid",       "identifies",        "identified_too_soon", "resumes",
        "resumed", "resumed_elsewhere", "ready",         "heartbeats",        "heartbeat_timeouts",  "connections",
        "faults",  "event_faults",      "nonce_repeats", "command_overwrites"};
    JsonObject *object =
        ds_object("i:connected", (int)ds_gateway_count(world->gateway, FALSE), "i:online",
                  (int)ds_gateway_count(world->gateway, TRUE), "i:violations", (int)world->log[DS_LOG_VIOLATIONS]->len,
                  "i:pings", (int)world->log[DS_LOG_PINGS]->len, "i:refusals", (int)world->log[DS_LOG_REFUSALS]->len,
                  "i:requests", (int)world->log[DS_LOG_REQUESTS]->len, "i:held", (int)world->held, "i:remaining",
                  (int)world->gateway->remaining, "i:faults_left", (int)world->faults->len, NULL);
    const char *name = eb_json_get_string(args, "name");
    JsonArray *array = json_array_new();

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        json_object_set_int_member(object, names[i], ds_world_get_count(world, names[i]));
    /* For waits: one item when figure "name" is at least "min" and at most "max". */
    if (name != NULL && eb_json_get_int(object, name, -1) >= eb_json_get_int(args, "min", 1) &&
        eb_json_get_int(object, name, -1) <= eb_json_get_int(args, "max", G_MAXINT64))
        json_array_add_string_element(array, name);
    json_object_set_array_member(object, "items", array);
    return object;
}

const DsVerb ds_verbs_lists[] = {
    {"messages", list_messages},
    {"channels", list_channels},
    {"threads", list_threads},
    {"commands", list_commands},
    {"requests", list_requests},
    {"violations", list_violations},
    {"pings", list_pings},
    {"refusals", list_refusals},
    {"gateway", list_gateway},
    {"interactions", list_interactions},
    {"stats", stats},
    {"clear-logs", clear_logs},
    {NULL, NULL},
};
