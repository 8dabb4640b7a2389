/* SPDX-License-Identifier: MIT */

#include "ds-world.h"

#include "ds-buckets.h"
#include "ds-gateway.h"
#include "ds-request.h"

#include <string.h>

gint64
ds_now_ms(void)
{
    return g_get_real_time() / 1000;
}

char *
ds_iso(gint64 unix_ms)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(unix_ms / 1000);
    g_autofree char *date = g_date_time_format(time, "%Y-%m-%dT%H:%M:%S");

    return g_strdup_printf("%s.%06d+00:00", date, (int)(unix_ms % 1000) * 1000);
}

char *
ds_world_next_id(DsWorld *self)
{
    const guint64 now = (guint64)(ds_now_ms() - DS_EPOCH_MS) << 22;

    self->last_id = MAX(self->last_id + 1, now);
    return g_strdup_printf("%" G_GUINT64_FORMAT, self->last_id);
}

void
ds_world_changed(DsWorld *self)
{
    if (self->changed != NULL)
        self->changed(self->hooks_data);
}

static void
source_free(GSource *source)
{
    g_source_destroy(source);
    g_source_unref(source);
}

void
ds_world_later(DsWorld *self, guint ms, GSourceFunc callback, gpointer data, GDestroyNotify free_data)
{
    GSource *source = g_timeout_source_new(ms);

    for (guint i = self->sources->len; i > 0; i--) {
        if (g_source_is_destroyed(g_ptr_array_index(self->sources, i - 1)))
            g_ptr_array_remove_index_fast(self->sources, i - 1);
    }
    g_source_set_callback(source, callback, data, free_data);
    g_source_attach(source, NULL);
    g_ptr_array_add(self->sources, source);
}

void
ds_world_count(DsWorld *self, const char *name)
{
    g_hash_table_insert(self->counts, g_strdup(name), GUINT_TO_POINTER(ds_world_get_count(self, name) + 1));
    ds_world_changed(self);
}

guint
ds_world_get_count(DsWorld *self, const char *name)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(self->counts, name));
}

void
ds_world_log(DsWorld *self, DsLog log, JsonObject *row)
{
    if (self->log[log]->len >= DS_LOG_MAX)
        g_ptr_array_remove_index(self->log[log], 0);
    json_object_set_int_member(row, "at_ms", ds_now_ms());
    g_ptr_array_add(self->log[log], row);
    ds_world_changed(self);
}

void
ds_world_violation(DsWorld *self, const char *rule, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list list;

    va_start(list, format);
    text = g_strdup_vprintf(format, list);
    va_end(list);
    ds_world_log(self, DS_LOG_VIOLATIONS, ds_object("s:rule", rule, "s:detail", text, NULL));
}

/* --- people --- */

JsonObject *
ds_world_add_user(DsWorld *self, const char *id, const char *name, gboolean bot)
{
    g_autofree char *joined = ds_iso(ds_now_ms());
    JsonObject *user = ds_object("s:id", id, "s:username", name, "s:global_name", bot ? NULL : name, "s:discriminator",
                                 "0", "n:avatar", "i:public_flags", 0, "i:flags", 0, "b:bot", bot, NULL);
    JsonObject *member = ds_object("o:user", user, "n:nick", "n:avatar", "a:roles", json_array_new(), "s:joined_at",
                                   joined, "n:premium_since", "b:deaf", FALSE, "b:mute", FALSE, "i:flags", 0,
                                   "b:pending", FALSE, "n:communication_disabled_until", NULL);

    if (!bot)
        json_object_remove_member(user, "bot");
    g_hash_table_insert(self->members, g_strdup(id), member);
    return member;
}

JsonObject *
ds_world_user(DsWorld *self, const char *id)
{
    JsonObject *member = id != NULL ? g_hash_table_lookup(self->members, id) : NULL;

    return eb_json_get_object(member, "user");
}

JsonObject *
ds_world_member_json(DsWorld *self, const char *user_id, gboolean with_user)
{
    JsonObject *member = g_hash_table_lookup(self->members, user_id);
    JsonObject *copy = member != NULL ? ds_copy(member) : json_object_new();

    if (!with_user)
        json_object_remove_member(copy, "user");
    return copy;
}

JsonObject *
ds_world_role(DsWorld *self, const char *id)
{
    for (guint i = 0; i < self->roles->len; i++) {
        JsonObject *role = g_ptr_array_index(self->roles, i);

        if (g_strcmp0(eb_json_get_string(role, "id"), id) == 0)
            return role;
    }
    return NULL;
}

JsonObject *
ds_world_add_role(DsWorld *self, const char *id, const char *name, guint64 permissions)
{
    g_autofree char *bits = g_strdup_printf("%" G_GUINT64_FORMAT, permissions);
    JsonObject *role = ds_object(
        "s:id", id, "s:name", name, "n:description", "s:permissions", bits, "i:position", (int)self->roles->len,
        "i:color", 0, "o:colors", ds_object("i:primary_color", 0, "n:secondary_color", "n:tertiary_color", NULL),
        "b:hoist", FALSE, "n:icon", "n:unicode_emoji", "b:managed", FALSE, "b:mentionable", FALSE, "i:flags", 0, NULL);

    g_ptr_array_add(self->roles, role);
    return role;
}

/* --- permissions --- */

static guint64
bits_of(JsonObject *object, const char *member)
{
    const char *text = eb_json_get_string(object, member);

    return text != NULL ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static JsonObject *
overwrite_of(JsonArray *overwrites, const char *id)
{
    for (guint i = 0; overwrites != NULL && i < json_array_get_length(overwrites); i++) {
        JsonObject *overwrite = eb_json_array_object(overwrites, i);

        if (g_strcmp0(eb_json_get_string(overwrite, "id"), id) == 0)
            return overwrite;
    }
    return NULL;
}

static guint64
overwritten(guint64 granted, JsonObject *overwrite)
{
    return (granted & ~bits_of(overwrite, "deny")) | bits_of(overwrite, "allow");
}

static gboolean
timed_out(JsonObject *member)
{
    const char *until = eb_json_get_string(member, "communication_disabled_until");
    g_autoptr(GDateTime) time = until != NULL ? g_date_time_new_from_iso8601(until, NULL) : NULL;

    return time != NULL && g_date_time_to_unix(time) > ds_now_ms() / 1000;
}

static guint64
in_channel(DsWorld *self, guint64 granted, const char *user_id, JsonArray *roles, DsChannel *channel)
{
    JsonArray *overwrites = eb_json_get_array(channel->json, "permission_overwrites");
    guint64 allow = 0;
    guint64 deny = 0;

    granted = overwritten(granted, overwrite_of(overwrites, DS_GUILD));
    for (guint i = 0; roles != NULL && i < json_array_get_length(roles); i++) {
        JsonObject *overwrite = overwrite_of(overwrites, eb_json_array_string(roles, i));

        allow |= bits_of(overwrite, "allow");
        deny |= bits_of(overwrite, "deny");
    }
    granted = (granted & ~deny) | allow;
    return overwritten(granted, overwrite_of(overwrites, user_id));
}

guint64
ds_world_permissions(DsWorld *self, const char *user_id, DsChannel *channel)
{
    JsonObject *member = g_hash_table_lookup(self->members, user_id);
    JsonArray *roles = eb_json_get_array(member, "roles");
    guint64 granted = bits_of(ds_world_role(self, DS_GUILD), "permissions");

    if (member == NULL || (!self->bot_in_guild && strcmp(user_id, DS_APPLICATION) == 0))
        return 0;
    if (g_strcmp0(eb_json_get_string(self->guild, "owner_id"), user_id) == 0)
        return G_MAXUINT64;
    for (guint i = 0; roles != NULL && i < json_array_get_length(roles); i++)
        granted |= bits_of(ds_world_role(self, eb_json_array_string(roles, i)), "permissions");
    if (granted & DS_ADMINISTRATOR)
        return G_MAXUINT64;
    if (channel != NULL && ds_channel_is_thread(channel))
        channel = ds_world_channel(self, eb_json_get_string(channel->json, "parent_id"));
    if (channel != NULL)
        granted = in_channel(self, granted, user_id, roles, channel);
    if (timed_out(member))
        granted &= DS_VIEW_CHANNEL | DS_READ_HISTORY;
    return granted & DS_VIEW_CHANNEL ? granted : channel != NULL ? 0 : granted;
}

/* --- interactions --- */

static void
interaction_free(DsInteraction *self)
{
    g_free(self->id);
    g_free(self->token);
    g_free(self->user);
    g_free(self->channel);
    g_free(self->name);
    g_ptr_array_unref(self->answers);
    g_free(self);
}

DsInteraction *
ds_world_interaction(DsWorld *self, const char *id_or_token)
{
    for (guint i = self->interactions->len; i > 0; i--) {
        DsInteraction *interaction = g_ptr_array_index(self->interactions, i - 1);

        if (g_strcmp0(interaction->id, id_or_token) == 0 || g_strcmp0(interaction->token, id_or_token) == 0)
            return interaction;
    }
    return NULL;
}

DsInteraction *
ds_world_interact(DsWorld *self, int type, const char *user, DsChannel *channel, DsMessage *source, const char *name,
                  JsonObject *data)
{
    DsInteraction *interaction = g_new0(DsInteraction, 1);
    JsonObject *member = ds_world_member_json(self, user, TRUE);
    g_autofree char *rights = g_strdup_printf("%" G_GUINT64_FORMAT, ds_world_permissions(self, user, channel) >> 1);
    g_autofree char *own = g_strdup_printf("%" G_GUINT64_FORMAT, ds_world_permissions(self, DS_APPLICATION, channel));
    JsonObject *event;

    interaction->id = ds_world_next_id(self);
    interaction->token =
        g_strdup_printf("aW50ZXJhY3Rpb246%08x%08x%08x", g_random_int(), g_random_int(), g_random_int());
    interaction->user = g_strdup(user);
    interaction->channel = g_strdup(channel->id);
    interaction->name = g_strdup(name);
    interaction->type = type;
    interaction->source = source;
    interaction->made_us = g_get_monotonic_time();
    interaction->answers = g_ptr_array_new();
    g_ptr_array_add(self->interactions, interaction);
    json_object_set_string_member(member, "permissions", rights);
    event = ds_object(
        "s:id", interaction->id, "s:application_id", DS_APPLICATION, "i:type", type, "o:data", data, "s:guild_id",
        DS_GUILD, "o:guild", ds_object("s:id", DS_GUILD, "s:locale", "en-US", "a:features", json_array_new(), NULL),
        "s:channel_id", channel->id, "o:channel", ds_channel_json(self, channel), "o:member", member, "s:token",
        interaction->token, "i:version", 1, "s:app_permissions", own, "s:locale", "en-US", "s:guild_locale", "en-US",
        "a:entitlements", json_array_new(), "o:authorizing_integration_owners", ds_object("s:0", DS_GUILD, NULL),
        "i:context", 0, "i:attachment_size_limit", 10 * 1024 * 1024, NULL);
    if (source != NULL)
        json_object_set_object_member(event, "message", ds_message_json(self, source, FALSE));
    if (self->interactions_url == NULL)
        ds_gateway_dispatch(self->gateway, "INTERACTION_CREATE", event, 0, NULL);
    else
        json_object_unref(event);
    ds_world_changed(self);
    return interaction;
}

/* --- the whole --- */

static void
file_free(DsFile *self)
{
    g_bytes_unref(self->bytes);
    g_free(self->name);
    g_free(self->type);
    g_free(self);
}

/* (transfer full): an address that is good for a day */
static char *
sign(DsWorld *self, DsChannel *channel, const char *id, DsFile *file)
{
    g_autofree char *escaped = g_uri_escape_string(file->name, NULL, FALSE);

    file->expires_s = ds_now_ms() / 1000 + 24 * 60 * 60;
    return g_strdup_printf("%s/attachments/%s/%s/%s?ex=%" G_GINT64_MODIFIER "x&is=%" G_GINT64_MODIFIER "x&hm=%08x",
                           self->origin, channel->id, id, escaped, file->expires_s, ds_now_ms() / 1000, g_str_hash(id));
}

void
ds_world_renew_files(DsWorld *self, DsChannel *channel, JsonObject *message)
{
    JsonArray *list = eb_json_get_array(message, "attachments");
    guint n = list != NULL ? json_array_get_length(list) : 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *one = eb_json_array_object(list, i);
        const char *id = eb_json_get_string(one, "id");
        DsFile *file = id != NULL ? g_hash_table_lookup(self->files, id) : NULL;
        if (file == NULL || file->expires_s >= ds_now_ms() / 1000)
            continue;
        g_autofree char *url = sign(self, channel, id, file);
        json_object_set_string_member(one, "url", url);
        json_object_set_string_member(one, "proxy_url", url);
    }
}

JsonObject *
ds_world_add_file(DsWorld *self, DsChannel *channel, const char *name, const char *type, GBytes *bytes,
                  gint64 claimed_size)
{
    g_autofree char *id = ds_world_next_id(self);
    DsFile *file = g_new0(DsFile, 1);
    g_autofree char *url = NULL;

    file->bytes = g_bytes_ref(bytes);
    file->name = g_strdup(name);
    file->type = g_strdup(type);
    g_hash_table_insert(self->files, g_strdup(id), file);
    url = sign(self, channel, id, file);
    return ds_object("s:id", id, "s:filename", name, "l:size",
                     claimed_size >= 0 ? claimed_size : (gint64)g_bytes_get_size(bytes), "s:url", url, "s:proxy_url",
                     url, "s:content_type", type, NULL);
}

static void
fault_free(DsFault *self)
{
    g_free(self->method);
    g_clear_pointer(&self->path, g_regex_unref);
    g_free(self->kind);
    g_free(self);
}

static void
channel_free(DsChannel *self)
{
    g_free(self->id);
    json_object_unref(self->json);
    g_ptr_array_unref(self->messages);
    g_array_unref(self->renames);
    g_free(self);
}

DsWorld *
ds_world_new(const char *token)
{
    DsWorld *self = g_new0(DsWorld, 1);
    JsonObject *bot;

    self->token = g_strdup(token);
    self->origin = g_strdup("");
    self->bot_in_guild = TRUE;
    self->application_flags = 1 << 19;
    self->rename_window_s = 600;
    self->guild = ds_object("s:id", DS_GUILD, "s:name", "Stand-in", "s:owner_id", DS_ALICE, "i:mfa_level", 0, NULL);
    self->roles = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    self->members = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_object_unref);
    self->channels = g_ptr_array_new_with_free_func((GDestroyNotify)channel_free);
    self->files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)file_free);
    self->guild_commands = json_array_new();
    self->global_commands = json_array_new();
    self->interactions = g_ptr_array_new_with_free_func((GDestroyNotify)interaction_free);
    self->faults = g_ptr_array_new_with_free_func((GDestroyNotify)fault_free);
    self->sources = g_ptr_array_new_with_free_func((GDestroyNotify)source_free);
    self->unanswered = g_ptr_array_new_with_free_func((GDestroyNotify)ds_request_free);
    self->counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(self->log); i++)
        self->log[i] = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    ds_world_add_role(self, DS_GUILD, "@everyone",
                      DS_VIEW_CHANNEL | DS_SEND_MESSAGES | DS_READ_HISTORY | DS_ADD_REACTIONS | DS_ATTACH_FILES |
                          DS_SEND_IN_THREADS);
    json_object_set_boolean_member(ds_world_add_role(self, DS_BOT_ROLE, "errand-box", DS_BOT_NEEDS), "managed", TRUE);
    bot = ds_world_add_user(self, DS_APPLICATION, "errand-box", TRUE);
    json_array_add_string_element(json_object_get_array_member(bot, "roles"), DS_BOT_ROLE);
    ds_world_add_user(self, DS_ALICE, "alice", FALSE);
    ds_world_add_user(self, DS_BOB, "bob", FALSE);
    ds_world_add_user(self, DS_CAROL, "carol", FALSE);
    ds_world_add_user(self, DS_OTHER_BOT, "other-bot", TRUE);
    ds_world_add_channel(self, DS_CHANNEL, "errands");
    ds_world_add_channel(self, DS_OTHER_CHANNEL, "general");
    self->gateway = ds_gateway_new(self);
    self->buckets = ds_buckets_new(self);
    return self;
}

void
ds_world_free(DsWorld *self)
{
    g_ptr_array_unref(self->sources);
    g_ptr_array_unref(self->unanswered);
    ds_gateway_free(self->gateway);
    ds_buckets_free(self->buckets);
    g_ptr_array_unref(self->interactions);
    g_ptr_array_unref(self->channels);
    g_ptr_array_unref(self->faults);
    g_ptr_array_unref(self->roles);
    g_hash_table_unref(self->members);
    g_hash_table_unref(self->files);
    g_hash_table_unref(self->counts);
    json_array_unref(self->guild_commands);
    json_array_unref(self->global_commands);
    json_object_unref(self->guild);
    for (guint i = 0; i < G_N_ELEMENTS(self->log); i++)
        g_ptr_array_unref(self->log[i]);
    g_free(self->interactions_url);
    g_free(self->origin);
    g_free(self->token);
    g_free(self);
}
