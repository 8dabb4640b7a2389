/* SPDX-License-Identifier: MIT */
#include "discord-permissions.h"
#include "discord-startup.h"
#include "standin-rig.h"

#include <string.h>

static DiscordStartup *
check_until(Rig *rig, const char *channel, DiscordStartupPart last, GError **error)
{
    g_auto(EbTestResult) done = {0};

    discord_startup_check_until_async(rig->rest, channel, last, NULL, eb_test_result_ready, &done);
    return discord_startup_check_finish(eb_test_result_wait(&done), error);
}

static DiscordStartup *
check(Rig *rig, const char *channel, GError **error)
{
    return check_until(rig, channel, DISCORD_STARTUP_PERMISSIONS, error);
}

static void
test_fine(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autoptr(GError) error = NULL;
    g_autoptr(DiscordStartup) startup = check(rig, DISCORD_STANDIN_CHANNEL, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(startup->user_id, ==, DISCORD_STANDIN_APPLICATION);
    g_assert_cmpstr(startup->application_id, ==, DISCORD_STANDIN_APPLICATION);
    g_assert_cmpstr(startup->guild_id, ==, DISCORD_STANDIN_GUILD);
    g_assert_cmpstr(startup->channel_name, ==, "errands");
    g_assert_cmpuint(startup->granted & DISCORD_NEEDED, ==, DISCORD_NEEDED);
    g_assert_null(startup->note);
    g_assert_cmpuint(rig_count(rig, "violations", "{}"), ==, 0);
}

static void
expect(Rig *rig, const char *channel, EbErrorCode code, const char *reason, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DiscordStartup) startup = check(rig, channel, &error);

    g_assert_null(startup);
    eb_test_assert_error(error, code, reason, text);
    g_assert_null(strstr(error->message, "mock-token"));
    g_assert_null(strchr(error->message, '\n'));
}

static void
test_application(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autoptr(JsonObject) none = rig_call(rig, "application", "{\"flags\":0}");
    g_autoptr(JsonObject) limited = NULL;
    g_autoptr(JsonObject) approved = NULL;
    g_autoptr(JsonObject) url = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(DiscordStartup) startup = NULL;
    g_autoptr(DiscordStartup) token_alone = NULL;

    expect(rig, DISCORD_STANDIN_CHANNEL, EB_ERROR_CONFIG, "discord.intent", "Message Content Intent");
    token_alone = check_until(rig, DISCORD_STANDIN_CHANNEL, DISCORD_STARTUP_TOKEN, &error);
    g_assert_no_error(error);
    g_assert_nonnull(token_alone);
    g_assert_null(token_alone->application_id);
    limited = rig_call(rig, "application", "{\"flags\":%d}", 1 << 19);
    startup = check(rig, DISCORD_STANDIN_CHANNEL, &error);
    g_assert_no_error(error);
    approved = rig_call(rig, "application", "{\"flags\":%d,\"interactions_url\":\"https://example.org/x\"}", 1 << 18);
    expect(rig, DISCORD_STANDIN_CHANNEL, EB_ERROR_CONFIG, "discord.interactions-url", "Interactions Endpoint URL");
}

static void
test_channel(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(JsonObject) hidden = NULL;
    g_autofree char *invite = discord_invite_url(DISCORD_STANDIN_APPLICATION);

    expect(rig, "100000000000000555", EB_ERROR_CONFIG, "discord.no-channel", "there is no channel 100000000000000555");
    expect(rig, rig->thread, EB_ERROR_CONFIG, "discord.channel", "is not a text channel");
    hidden = rig_call(rig, "overwrite", "{\"deny\":\"1024\"}");
    expect(rig, DISCORD_STANDIN_CHANNEL, EB_ERROR_CONFIG, "discord.channel", invite);
}

static void
test_permissions(void)
{
    static const struct {
        const char *deny, *missing;
    } cases[] = {
        {"2048", "lacks in channel 100000000000000010: Send Messages, Attach Files: grant"},
        {"274877906944", ": Send Messages in Threads:"},
        {"34359738368", ": Create Public Threads:"},
        {"32768", ": Attach Files:"},
        {"64", ": Add Reactions:"},
        {"17179869184", ": Manage Threads:"},
        {"65536", ": Read Message History:"},
        {"17179934784", ": Add Reactions, Manage Threads, Read Message History:"},
    };
    g_autoptr(Rig) rig = rig_new(0, FALSE);

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(JsonObject) changed = rig_call(rig, "overwrite", "{\"deny\":\"%s\"}", cases[i].deny);
        expect(rig, DISCORD_STANDIN_CHANNEL, EB_ERROR_CONFIG, "discord.permissions", cases[i].missing);
    }
}

static void
test_token(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autoptr(JsonObject) revoked = rig_call(rig, "revoke-token", "{\"revoked\":true}");

    expect(rig, DISCORD_STANDIN_CHANNEL, EB_ERROR_UNAUTHENTICATED, "discord.unauthorized", "Reset Token");
}

/* Nothing an operator could change: it may work later. */
static void
test_outage(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autoptr(JsonObject) fault =
        rig_call(rig, "fault", "{\"method\":\"GET\",\"path\":\"/users/@me\",\"kind\":\"500\",\"count\":100}");

    expect(rig, DISCORD_STANDIN_CHANNEL, EB_ERROR_UNAVAILABLE, NULL, NULL);
}

static void
test_cancelled(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autoptr(JsonObject) fault =
        rig_call(rig, "fault", "{\"method\":\"GET\",\"path\":\"/users/@me\",\"kind\":\"hang\",\"count\":1}");
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    discord_startup_check_async(rig->rest, DISCORD_STANDIN_CHANNEL, cancellable, eb_test_result_ready, &done);
    eb_test_run_for(50);
    g_cancellable_cancel(cancellable);
    g_assert_null(discord_startup_check_finish(eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
}

/* --- answers no stand-in gives --- */

static JsonNode *
parse(const char *text)
{
    return eb_json_parse(text, strlen(text), NULL, NULL);
}

static void
test_broken_answers(void)
{
    g_autoptr(JsonNode) person = parse("{\"id\":\"100000000000000002\",\"username\":\"x\"}");
    g_autoptr(JsonNode) number = parse("{\"id\":100000000000000002,\"bot\":true}");
    g_autoptr(JsonNode) bot = parse("{\"id\":\"100000000000000002\",\"username\":\"a\\nb\",\"bot\":true}");
    g_autoptr(DiscordStartup) startup = g_new0(DiscordStartup, 1);
    g_autoptr(DiscordStartup) second = g_new0(DiscordStartup, 1);
    g_autoptr(DiscordStartup) third = g_new0(DiscordStartup, 1);
    g_autoptr(GError) error = NULL;

    g_assert_false(discord_startup_read_user(startup, json_node_get_object(person), &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.not-a-bot", "not a bot's");
    g_clear_error(&error);
    g_assert_false(discord_startup_read_user(second, json_node_get_object(number), &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "discord.answer", NULL);
    g_clear_error(&error);
    g_assert_true(discord_startup_read_user(third, json_node_get_object(bot), &error));
    g_assert_null(strchr(third->user_name, '\n'));
    g_assert_false(discord_startup_read_application(third, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "discord.answer", NULL);
    g_clear_error(&error);
    g_assert_false(discord_startup_read_channel(third, NULL, "1", &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "discord.answer", NULL);
    g_clear_error(&error);
    third->application_id = g_strdup("100000000000000002");
    g_assert_false(discord_startup_read_permissions(third, NULL, NULL, NULL, "1", 0, &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "discord.answer", NULL);
}

/* Each kind of channel that cannot be served, and the note about two-factor authentication. */
static void
test_kinds(void)
{
    static const gint64 others[] = {1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16};
    g_autoptr(JsonNode) guild =
        parse("{\"id\":\"100000000000000001\",\"mfa_level\":1,\"owner_id\":\"100000000000000101\","
              "\"roles\":[{\"id\":\"100000000000000001\",\"permissions\":\"326417615936\"}]}");
    g_autoptr(JsonNode) member = parse("{\"roles\":[]}");
    g_autoptr(JsonNode) channel = parse("{\"permission_overwrites\":[]}");
    g_autoptr(DiscordStartup) noted = g_new0(DiscordStartup, 1);
    g_autoptr(GError) note_error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autofree char *text = g_strdup_printf("{\"id\":\"100000000000000010\",\"guild_id\":\"100000000000000001\","
                                                "\"type\":%d,\"name\":\"x\"}",
                                                (int)others[i]);
        g_autoptr(JsonNode) node = parse(text);
        g_autoptr(DiscordStartup) startup = g_new0(DiscordStartup, 1);
        g_autoptr(GError) error = NULL;
        g_assert_false(discord_startup_read_channel(startup, json_node_get_object(node), "100000000000000010", &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.channel", "100000000000000010 is not a text channel");
    }
    noted->user_id = g_strdup("100000000000000002");
    noted->application_id = g_strdup("100000000000000002");
    g_assert_true(discord_startup_read_permissions(noted, json_node_get_object(guild), json_node_get_object(member),
                                                   json_node_get_object(channel), "1", 0, &note_error));
    g_assert_nonnull(strstr(noted->note, "two-factor"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/startup/fine", test_fine);
    g_test_add_func("/discord/startup/application", test_application);
    g_test_add_func("/discord/startup/channel", test_channel);
    g_test_add_func("/discord/startup/permissions", test_permissions);
    g_test_add_func("/discord/startup/token", test_token);
    g_test_add_func("/discord/startup/outage", test_outage);
    g_test_add_func("/discord/startup/cancelled", test_cancelled);
    g_test_add_func("/discord/startup/broken-answers", test_broken_answers);
    g_test_add_func("/discord/startup/kinds", test_kinds);
    return g_test_run();
}
