/* SPDX-License-Identifier: MIT */
#include "discord-gateway-saved.h"

#include "discord-gateway-frame.h"
#include "discord-gateway-info.h"

#include <string.h>

#define VERSION 1
/* Discord keeps a session for minutes; a file of this age says nothing. */
#define OLDEST_MS ((gint64)24 * 60 * 60 * 1000)
/* A file from the future is one from another clock. */
#define FUTURE_MS ((gint64)5 * 60 * 1000)

void
discord_gateway_session_clear(DiscordGatewaySession *self)
{
    g_clear_pointer(&self->id, g_free);
    g_clear_pointer(&self->resume_url, g_free);
    self->seq = 0;
}

gboolean
discord_gateway_session_is_sound(const char *id)
{
    gsize length = id != NULL ? strlen(id) : 0;
    if (length == 0 || length > DISCORD_SESSION_ID_MAX)
        return FALSE;
    for (gsize i = 0; i < length; i++) {
        if (!g_ascii_isgraph(id[i]) || id[i] == '"' || id[i] == '\\')
            return FALSE;
    }
    return TRUE;
}

char *
discord_gateway_saved_write(const DiscordGatewaySession *session, gint64 seq, guint intents,
                            const DiscordIdentifyBudget *budget, DiscordGatewayClock now)
{
    g_autoptr(JsonNode) root = json_node_new(JSON_NODE_OBJECT);
    JsonObject *object = json_object_new();
    JsonArray *identified = json_array_new();

    json_node_take_object(root, object);
    json_object_set_int_member(object, "version", VERSION);
    json_object_set_int_member(object, "saved", now.wall);
    json_object_set_int_member(object, "intents", intents);
    for (guint i = 0; i < budget->n; i++)
        json_array_add_int_element(identified, now.wall - (now.mono - budget->at[i]));
    json_object_set_array_member(object, "identified", identified);
    if (session->id != NULL && seq > 0) {
        json_object_set_string_member(object, "session_id", session->id);
        if (session->resume_url != NULL)
            json_object_set_string_member(object, "resume_gateway_url", session->resume_url);
        json_object_set_int_member(object, "seq", seq);
    }
    return eb_json_write(root, NULL);
}

static void
read_budget(JsonArray *identified, DiscordGatewayClock now, DiscordIdentifyBudget *budget)
{
    guint n = identified != NULL ? json_array_get_length(identified) : 0;
    for (guint i = n > DISCORD_IDENTIFY_KEPT ? n - DISCORD_IDENTIFY_KEPT : 0; i < n; i++) {
        JsonNode *node = json_array_get_element(identified, i);
        if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64)
            continue;
        /* One from the future was written by another clock: it counts as made just now, so that a machine whose clock
         * starts at 1970 each time is held back too. One in the wrong order counts as late as the one before. */
        gint64 wall = json_node_get_int(node);
        gint64 age = wall > now.wall ? 0 : MIN(now.wall - MAX(wall, 0), OLDEST_MS);
        gint64 before = budget->n > 0 ? budget->at[budget->n - 1] : G_MININT64;
        budget->at[budget->n++] = MAX(now.mono - age, before);
    }
}

gboolean
discord_gateway_saved_read(const char *text, gsize length, guint intents, DiscordGatewayClock now,
                           DiscordGatewaySession *session, DiscordIdentifyBudget *budget)
{
    static const EbJsonLimits limits = {DISCORD_GATEWAY_SAVED_MAX, 4};
    g_autoptr(JsonNode) root = eb_json_parse(text, length, &limits, NULL);
    JsonObject *object = eb_json_node_object(root);
    const char *id = eb_json_get_string(object, "session_id");
    const char *url = eb_json_get_string(object, "resume_gateway_url");
    gint64 saved = eb_json_get_int(object, "saved", -1);
    gint64 seq = eb_json_get_int(object, "seq", -1);

    if (eb_json_get_int(object, "version", -1) != VERSION)
        return FALSE;
    read_budget(eb_json_get_array(object, "identified"), now, budget);
    if (!discord_gateway_session_is_sound(id) || seq <= 0 || seq > DISCORD_GATEWAY_MAX_SEQ || saved < 0 ||
        saved > now.wall + FUTURE_MS || now.wall - saved > OLDEST_MS ||
        eb_json_get_int(object, "intents", -1) != (gint64)intents)
        return TRUE;
    session->id = g_strdup(id);
    session->resume_url = url != NULL && strlen(url) <= DISCORD_GATEWAY_URL_MAX ? g_strdup(url) : NULL;
    session->seq = seq;
    return TRUE;
}
