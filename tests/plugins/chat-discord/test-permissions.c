/* SPDX-License-Identifier: MIT */
#include "discord-permissions.h"
#include "eb-test.h"

#include <string.h>

#define GUILD "1180000000000000001"
#define BOT "1180000000000000002"
#define ROLE "1180000000000000003"
#define OTHER "1180000000000000004"
#define NOW G_GINT64_CONSTANT(1790000000000) /* 2026-09-21 */

#define VIEW "1024"
#define NEEDED "326417615936"

typedef struct {
    const char *name;
    const char *everyone, *role; /* permissions of the two roles the bot has */
    const char *overwrites;
    const char *member; /* further members of the member object */
    const char *missing;
} Case;

#define ALL_NAMES                                                                                                      \
    "View Channel, Send Messages, Send Messages in Threads, Create Public Threads, Attach Files, Add Reactions, "      \
    "Manage Threads, Read Message History"
#define OVERWRITE(id, type, allow, deny)                                                                               \
    "{\"id\":\"" id "\",\"type\":" type ",\"allow\":\"" allow "\",\"deny\":\"" deny "\"}"

static const Case cases[] = {
    {"nothing", "0", "0", "", "", ALL_NAMES},
    {"by @everyone", NEEDED, "0", "", "", ""},
    {"by its role", "0", NEEDED, "", "", ""},
    {"administrator", "0", "8", OVERWRITE(GUILD, "0", "0", NEEDED), "", ""},
    {"both together", VIEW, "326417614912", "", "", ""},
    {"another's role", "0", "0", OVERWRITE(OTHER, "0", NEEDED, "0"), "", ALL_NAMES},
    {"another member", "0", "0", OVERWRITE(OTHER, "1", NEEDED, "0"), "", ALL_NAMES},
    {"no view, no rest", "326417614912", "0", "", "", ALL_NAMES},
    {"@everyone denied in the channel", NEEDED, NEEDED, OVERWRITE(GUILD, "0", "0", "64"), "", "Add Reactions"},
    {"role allows what @everyone is denied", NEEDED, "0",
     OVERWRITE(GUILD, "0", "0", VIEW) "," OVERWRITE(ROLE, "0", VIEW, "0"), "", ""},
    {"the order of the list does not count", NEEDED, "0",
     OVERWRITE(ROLE, "0", VIEW, "0") "," OVERWRITE(GUILD, "0", "0", VIEW), "", ""},
    {"member denied what its role allows", NEEDED, "0",
     OVERWRITE(BOT, "1", "0", "65536") "," OVERWRITE(ROLE, "0", "65536", "0"), "", "Read Message History"},
    {"member allowed what its role is denied", NEEDED, "0",
     OVERWRITE(BOT, "1", "64", "0") "," OVERWRITE(ROLE, "0", "0", "64"), "", ""},
    {"allowed and denied at once", NEEDED, "0", OVERWRITE(ROLE, "0", "64", "64"), "", ""},
    {"38 bits", NEEDED, "0", OVERWRITE(GUILD, "0", "0", "274877906944"), "", "Send Messages in Threads"},
    {"34 bits", NEEDED, "0", OVERWRITE(GUILD, "0", "0", "51539607552"), "", "Create Public Threads, Manage Threads"},
    {"no sending, no files", NEEDED, "0", OVERWRITE(GUILD, "0", "0", "2048"), "", "Send Messages, Attach Files"},
    {"timed out", NEEDED, "0", "", ",\"communication_disabled_until\":\"2026-10-01T00:00:00+00:00\"",
     "Send Messages, Send Messages in Threads, Create Public Threads, Attach Files, Add Reactions, Manage Threads"},
    {"time-out over", NEEDED, "0", "", ",\"communication_disabled_until\":\"2026-09-01T00:00:00+00:00\"", ""},
    {"time-out null", NEEDED, "0", "", ",\"communication_disabled_until\":null", ""},
    {"time-out nonsense", NEEDED, "0", "", ",\"communication_disabled_until\":\"soon\"", ""},
    {"too large a number gives nothing", "99999999999999999999999", "0", "", "", ALL_NAMES},
    {"no number gives nothing", "all", "-1", "", "", ALL_NAMES},
    {"a number that is no string", NEEDED, "0", "{\"id\":\"" GUILD "\",\"type\":0,\"allow\":0,\"deny\":1024}", "", ""},
    {"junk among the overwrites", NEEDED, "0", "null,7,\"x\",{},[]", "", ""},
};

static JsonNode *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    JsonNode *node = eb_json_parse(text, strlen(text), NULL, &error);

    g_assert_no_error(error);
    return node;
}

static guint64
compute(const Case *item, const char *owner)
{
    g_autofree char *guild_text =
        g_strdup_printf("{\"id\":\"%s\",\"owner_id\":\"%s\",\"roles\":[{\"id\":\"%s\",\"permissions\":\"%s\"},"
                        "{\"id\":\"%s\",\"permissions\":\"%s\"},{\"id\":\"%s\",\"permissions\":\"8\"}]}",
                        GUILD, owner, GUILD, item->everyone, ROLE, item->role, OTHER);
    g_autofree char *member_text = g_strdup_printf("{\"roles\":[\"%s\"]%s}", ROLE, item->member);
    g_autofree char *channel_text = g_strdup_printf("{\"permission_overwrites\":[%s]}", item->overwrites);
    g_autoptr(JsonNode) guild = parse(guild_text);
    g_autoptr(JsonNode) member = parse(member_text);
    g_autoptr(JsonNode) channel = parse(channel_text);

    return discord_permissions_compute(json_node_get_object(guild), json_node_get_object(member),
                                       json_node_get_object(channel), BOT, NOW);
}

static void
test_table(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *missing = discord_permissions_missing(compute(&cases[i], OTHER));
        g_test_message("%s", cases[i].name);
        g_assert_cmpstr(missing, ==, cases[i].missing);
    }
}

static void
test_owner(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpuint(compute(&cases[i], BOT), ==, G_MAXUINT64);
    g_assert_cmpuint(discord_permissions_compute(NULL, NULL, NULL, BOT, NOW), ==, 0);
}

static void
test_invite(void)
{
    g_autofree char *url = discord_invite_url("1180000000000000009");

    g_assert_cmpstr(url, ==,
                    "https://discord.com/oauth2/authorize?client_id=1180000000000000009&scope=bot+applications.commands"
                    "&permissions=326417615936");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/permissions/table", test_table);
    g_test_add_func("/discord/permissions/owner", test_owner);
    g_test_add_func("/discord/permissions/invite", test_invite);
    return g_test_run();
}
