/* SPDX-License-Identifier: MIT */

#include "ds-world.h"

#include <string.h>

/* Text without what stands in code, where nothing is a mention: fences first, then spans. */
static char *
without_code(const char *content)
{
    g_autoptr(GRegex) fence = g_regex_new("```.*?```", G_REGEX_DOTALL, 0, NULL);
    g_autoptr(GRegex) span = g_regex_new("(`+)(?!`).+?(?<!`)\\1(?!`)", G_REGEX_DOTALL, 0, NULL);
    g_autofree char *text = g_regex_replace_literal(fence, content, -1, 0, " ", 0, NULL);

    return g_regex_replace_literal(span, text, -1, 0, " ", 0, NULL);
}

static void
collect(const char *text, const char *pattern, GPtrArray *ids)
{
    g_autoptr(GRegex) regex = g_regex_new(pattern, 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;

    for (g_regex_match(regex, text, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL)) {
        g_autofree char *id = g_match_info_fetch(match, 1);

        if (!g_ptr_array_find_with_equal_func(ids, id, g_str_equal, NULL))
            g_ptr_array_add(ids, g_steal_pointer(&id));
    }
}

static gboolean
kind_allowed(JsonObject *allowed, const char *kind, const char *id, gboolean users_only)
{
    if (allowed == NULL)
        return !users_only || strcmp(kind, "users") == 0;
    return ds_has(eb_json_get_array(allowed, "parse"), kind) ||
           (id != NULL && ds_has(eb_json_get_array(allowed, kind), id));
}

/* The author of the message that is answered, when that one is to be told. */
static const char *
replied_author(DsMessage *message, JsonObject *allowed)
{
    JsonObject *reference = eb_json_get_object(message->json, "message_reference");
    DsMessage *other =
        reference != NULL ? ds_channel_message(message->channel, eb_json_get_string(reference, "message_id")) : NULL;

    if (other == NULL || eb_json_get_int(message->json, "type", 0) != 19)
        return NULL;
    return allowed == NULL || eb_json_get_bool(allowed, "replied_user", FALSE) ? other->author : NULL;
}

void
ds_world_mentions(DsWorld *self, DsMessage *message, JsonObject *allowed, gboolean users_only, gboolean edit)
{
    g_autofree char *text = without_code(eb_json_get_string(message->json, "content"));
    g_autoptr(GPtrArray) users = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) roles = g_ptr_array_new_with_free_func(g_free);
    const char *replied = replied_author(message, allowed);
    const gboolean everyone = (strstr(text, "@everyone") != NULL || strstr(text, "@here") != NULL) &&
                              kind_allowed(allowed, "everyone", NULL, users_only);
    JsonArray *mentions = json_array_new();
    JsonArray *mention_roles = json_array_new();
    JsonArray *pinged = json_array_new();

    collect(text, "<@!?([0-9]+)>", users);
    collect(text, "<@&([0-9]+)>", roles);
    if (replied != NULL && !g_ptr_array_find_with_equal_func(users, replied, g_str_equal, NULL))
        g_ptr_array_add(users, g_strdup(replied));
    for (guint i = 0; i < users->len; i++) {
        const char *id = g_ptr_array_index(users, i);
        JsonObject *user = ds_world_user(self, id);

        if (user == NULL)
            continue;
        if (kind_allowed(allowed, "users", id, users_only) || g_strcmp0(id, replied) == 0) {
            json_array_add_object_element(mentions, ds_copy(user));
            json_array_add_string_element(pinged, id);
        }
    }
    for (guint i = 0; i < roles->len; i++) {
        const char *id = g_ptr_array_index(roles, i);

        if (ds_world_role(self, id) != NULL && kind_allowed(allowed, "roles", id, users_only))
            json_array_add_string_element(mention_roles, id);
    }
    json_object_set_array_member(message->json, "mentions", mentions);
    json_object_set_array_member(message->json, "mention_roles", mention_roles);
    json_object_set_boolean_member(message->json, "mention_everyone", everyone);
    if (strcmp(message->author, DS_APPLICATION) == 0 &&
        (json_array_get_length(pinged) > 0 || json_array_get_length(mention_roles) > 0 || everyone))
        ds_world_log(self, DS_LOG_PINGS,
                     ds_object("s:message_id", message->id, "s:channel_id", message->channel->id, "A:users", pinged,
                               "A:roles", mention_roles, "b:everyone", everyone, "b:edit", edit, "s:content",
                               eb_json_get_string(message->json, "content"), NULL));
    json_array_unref(pinged);
}
