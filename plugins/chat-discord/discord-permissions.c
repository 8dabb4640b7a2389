/* SPDX-License-Identifier: MIT */
#include "discord-permissions.h"

#include <string.h>

#define ADMINISTRATOR (G_GUINT64_CONSTANT(1) << 3)
#define VIEW_CHANNEL (G_GUINT64_CONSTANT(1) << 10)
#define SEND_MESSAGES (G_GUINT64_CONSTANT(1) << 11)
#define ATTACH_FILES (G_GUINT64_CONSTANT(1) << 15)
#define READ_MESSAGE_HISTORY (G_GUINT64_CONSTANT(1) << 16)
#define ALL (~G_GUINT64_CONSTANT(0))

/* What is asked for, in the order an operator finds it in the channel's settings, by the names shown there. */
static const struct {
    guint64 bit;
    const char *name;
} NEEDED[] = {
    {VIEW_CHANNEL, "View Channel"},
    {SEND_MESSAGES, "Send Messages"},
    {G_GUINT64_CONSTANT(1) << 38, "Send Messages in Threads"},
    {G_GUINT64_CONSTANT(1) << 35, "Create Public Threads"},
    {ATTACH_FILES, "Attach Files"},
    {G_GUINT64_CONSTANT(1) << 6, "Add Reactions"},
    {G_GUINT64_CONSTANT(1) << 34, "Manage Threads"},
    {READ_MESSAGE_HISTORY, "Read Message History"},
};

/* A set of permissions: a decimal string of 64 bits. What is none gives nothing. */
static guint64
read_bits(JsonObject *object, const char *member)
{
    const char *text = eb_json_get_string(object, member);
    guint64 bits = 0;

    return text != NULL && g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &bits, NULL) ? bits : 0;
}

static gboolean
has_role(JsonObject *member, const char *role_id)
{
    JsonArray *roles = eb_json_get_array(member, "roles");
    const guint n = roles != NULL ? json_array_get_length(roles) : 0;

    for (guint i = 0; i < n; i++)
        if (g_strcmp0(eb_json_array_string(roles, i), role_id) == 0)
            return TRUE;
    return FALSE;
}

/* Of the guild as a whole: @everyone, whose role has the id of the guild, and the member's own roles. */
static guint64
base_permissions(JsonObject *guild, JsonObject *member)
{
    const char *guild_id = eb_json_get_string(guild, "id");
    JsonArray *roles = eb_json_get_array(guild, "roles");
    const guint n = roles != NULL ? json_array_get_length(roles) : 0;
    guint64 granted = 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *role = eb_json_array_object(roles, i);
        const char *id = eb_json_get_string(role, "id");
        if (id != NULL && (g_strcmp0(id, guild_id) == 0 || has_role(member, id)))
            granted |= read_bits(role, "permissions");
    }
    return granted;
}

/* Discord's order: @everyone, then all roles together, then the member; in each, what is denied before what is allowed. */
static guint64
apply_overwrites(guint64 granted, JsonObject *guild, JsonObject *member, JsonObject *channel, const char *user_id)
{
    const char *guild_id = eb_json_get_string(guild, "id");
    JsonArray *overwrites = eb_json_get_array(channel, "permission_overwrites");
    const guint n = overwrites != NULL ? json_array_get_length(overwrites) : 0;
    struct {
        guint64 deny, allow;
    } everyone = {0}, roles = {0}, own = {0};

    for (guint i = 0; i < n; i++) {
        JsonObject *overwrite = eb_json_array_object(overwrites, i);
        const char *id = eb_json_get_string(overwrite, "id");
        const gint64 type = eb_json_get_int(overwrite, "type", -1); /* 0 a role, 1 a member */
        const guint64 deny = read_bits(overwrite, "deny"), allow = read_bits(overwrite, "allow");
        if (type == 0 && g_strcmp0(id, guild_id) == 0) {
            everyone.deny |= deny;
            everyone.allow |= allow;
        } else if (type == 0 && id != NULL && has_role(member, id)) {
            roles.deny |= deny;
            roles.allow |= allow;
        } else if (type == 1 && g_strcmp0(id, user_id) == 0) {
            own.deny |= deny;
            own.allow |= allow;
        }
    }
    granted = (granted & ~everyone.deny) | everyone.allow;
    granted = (granted & ~roles.deny) | roles.allow;
    return (granted & ~own.deny) | own.allow;
}

static gboolean
is_timed_out(JsonObject *member, gint64 now_unix_ms)
{
    const char *until = eb_json_get_string(member, "communication_disabled_until");
    g_autoptr(GDateTime) end = until != NULL ? g_date_time_new_from_iso8601(until, NULL) : NULL;

    return end != NULL && g_date_time_to_unix(end) > now_unix_ms / 1000;
}

guint64
discord_permissions_compute(JsonObject *guild, JsonObject *member, JsonObject *channel, const char *user_id,
                            gint64 now_unix_ms)
{
    guint64 granted;

    if (user_id != NULL && g_strcmp0(eb_json_get_string(guild, "owner_id"), user_id) == 0)
        return ALL;
    granted = base_permissions(guild, member);
    if ((granted & ADMINISTRATOR) != 0)
        return ALL;
    granted = apply_overwrites(granted, guild, member, channel, user_id);
    if ((granted & VIEW_CHANNEL) == 0)
        return 0;
    if (is_timed_out(member, now_unix_ms))
        granted &= VIEW_CHANNEL | READ_MESSAGE_HISTORY;
    if ((granted & SEND_MESSAGES) == 0)
        granted &= ~ATTACH_FILES;
    return granted;
}

char *
discord_permissions_missing(guint64 granted)
{
    GString *names = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(NEEDED); i++)
        if ((granted & NEEDED[i].bit) == 0)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", NEEDED[i].name);
    return g_string_free(names, FALSE);
}

char *
discord_invite_url(const char *application_id)
{
    return g_strdup_printf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands"
                           "&permissions=%" G_GUINT64_FORMAT,
                           application_id, DISCORD_NEEDED);
}
