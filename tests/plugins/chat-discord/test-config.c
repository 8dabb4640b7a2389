/* SPDX-License-Identifier: MIT */
#include "discord-config.h"
#include "eb-test.h"

#include <string.h>

#define FILE_NAME "/etc/errand-box/errand-box.toml"
#define CHANNEL "1180000000000000001"
#define ANN "1180000000000000002"
#define BOB "1180000000000000003"

static EbConfigSection *
section_new(void)
{
    const char *const allowed[] = {ANN, NULL};
    EbConfigSection *section = eb_config_section_new("plugin.chat-discord");

    eb_config_section_set(section, "token", g_variant_new_string("cred:chat-token"), FILE_NAME, 1);
    eb_config_section_set(section, "channel_id", g_variant_new_string(CHANNEL), FILE_NAME, 2);
    eb_config_section_set(section, "allowed_user_ids", g_variant_new_strv(allowed, -1), FILE_NAME, 3);
    return section;
}

static void
set_ids(EbConfigSection *section, const char *key, guint line, const char *first, const char *second)
{
    const char *const ids[] = {first, second, NULL};

    eb_config_section_set(section, key, g_variant_new_strv(ids, -1), FILE_NAME, line);
}

static void
test_defaults(void)
{
    g_autoptr(EbConfigSection) section = section_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(DiscordConfig) config = discord_config_read(section, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(config->token_name, ==, "chat-token");
    g_assert_cmpstr(config->channel_id, ==, CHANNEL);
    g_assert_cmpuint(g_strv_length(config->policy.allowed), ==, 1);
    g_assert_cmpuint(g_strv_length(config->policy.blocked), ==, 0);
    g_assert_cmpuint(g_strv_length(config->policy.operators), ==, 0);
    g_assert_false(config->policy.start_on_mention);
    g_assert_cmpuint(config->policy.late_ms, ==, 900000);
    g_assert_null(config->warning);
}

static void
test_all(void)
{
    g_autoptr(EbConfigSection) section = section_new();
    g_autoptr(GError) error = NULL;

    eb_config_section_set(section, "token", g_variant_new_string("cred:bot"), FILE_NAME, 4);
    set_ids(section, "blocked_user_ids", 5, BOB, NULL);
    set_ids(section, "operator_user_ids", 6, ANN, NULL);
    eb_config_section_set(section, "start_on_mention", g_variant_new_boolean(TRUE), FILE_NAME, 7);
    eb_config_section_set(section, "late_age", g_variant_new_string("1h"), FILE_NAME, 8);
    g_autoptr(DiscordConfig) config = discord_config_read(section, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(config->token_name, ==, "bot");
    g_assert_cmpstr(config->policy.blocked[0], ==, BOB);
    g_assert_cmpstr(config->policy.operators[0], ==, ANN);
    g_assert_true(config->policy.start_on_mention);
    g_assert_cmpuint(config->policy.late_ms, ==, 3600000);
    g_assert_null(config->warning);
}

static void
test_warnings(void)
{
    g_autoptr(EbConfigSection) section = section_new();
    g_autoptr(EbConfigSection) other = section_new();

    set_ids(section, "allowed_user_ids", 3, "*", NULL);
    g_autoptr(DiscordConfig) open = discord_config_read(section, NULL);
    g_assert_nonnull(strstr(open->warning, "everybody"));
    set_ids(other, "operator_user_ids", 3, BOB, NULL);
    g_autoptr(DiscordConfig) powerless = discord_config_read(other, NULL);
    g_assert_nonnull(strstr(powerless->warning, BOB));
}

/* One key with one value, and what the refusal has to say. */
static void
refused(const char *key, GVariant *value, const char *text)
{
    g_autoptr(EbConfigSection) section = section_new();
    g_autoptr(GError) error = NULL;

    eb_config_section_set(section, key, value, FILE_NAME, 9);
    g_assert_null(discord_config_read(section, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.config", text);
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.config", FILE_NAME ":9: ");
}

static GVariant *
one_id(const char *id)
{
    return g_variant_new_strv(&id, 1);
}

static void
test_refusals(void)
{
    const char *const empty[] = {NULL};
    const char *const twice[] = {ANN, ANN, NULL};
    gint64 number = 1180000000000000002;

    refused("channel_id", g_variant_new_string("general"), "\"general\" is not an id");
    refused("channel_id", g_variant_new_string(""), "is missing");
    refused("channel_id", g_variant_new_int64(number), "put ids into quotes");
    refused("allowed_user_ids", g_variant_new_strv(empty, -1), "is empty");
    /* Perhaps a secret that went to the wrong place. */
    refused("allowed_user_ids", one_id("aBcD1234efGH5678ijKL9012mnOP3456"), "has \"aBcD1234efGH5678ijKL9012…\", which");
    refused("allowed_user_ids", one_id("ann"), "\"ann\", which is not an id");
    refused("allowed_user_ids", one_id("@everyone"), "is not an id");
    refused("allowed_user_ids", one_id(""), "is not an id");
    refused("allowed_user_ids", one_id("0180000000000000002"), "is not an id");
    refused("allowed_user_ids", one_id("99999999999999999999"), "is not an id");
    refused("allowed_user_ids", one_id("<@1180000000000000002>"), "is not an id");
    refused("allowed_user_ids", g_variant_new_strv(twice, -1), "twice");
    refused("allowed_user_ids", g_variant_new_fixed_array(G_VARIANT_TYPE_INT64, &number, 1, sizeof number),
            "put ids into quotes");
    refused("allowed_user_ids", g_variant_new_string(ANN), "must be a list of strings");
    refused("blocked_user_ids", one_id("*"), "is not an id");
    refused("operator_user_ids", one_id("*"), "is not an id");
    refused("operator_user_ids", one_id("bob#1234"), "is not an id");
    refused("token", g_variant_new_string("MTE4MDAwMDAwMDAwMDAwMDAwMQ.Gabcde.abcdefghijklmnop"),
            "not the secret itself");
    refused("start_on_mention", g_variant_new_string("yes"), "must be true or false");
    refused("late_age", g_variant_new_string("8d"), "late_age");
    refused("late_age", g_variant_new_string("soon"), "late_age");
    refused("alowed_user_ids", one_id(ANN), "did you mean allowed_user_ids?");
}

/* A refusal never shows what may be the token somebody pasted. */
static void
test_token_hidden(void)
{
    g_autoptr(EbConfigSection) section = section_new();
    g_autoptr(GError) error = NULL;

    eb_config_section_set(section, "token", g_variant_new_string("very-secret-token"), FILE_NAME, 4);
    g_assert_null(discord_config_read(section, &error));
    g_assert_null(strstr(error->message, "very-secret-token"));
}

static void
test_all_problems(void)
{
    g_autoptr(EbConfigSection) section = eb_config_section_new("plugin.chat-discord");
    g_autoptr(GError) error = NULL;

    set_ids(section, "blocked_user_ids", 5, "carl", "dora");
    eb_config_section_set(section, "late_age", g_variant_new_int64(5), FILE_NAME, 8);
    eb_config_section_set(section, "chanel_id", g_variant_new_string(CHANNEL), FILE_NAME, 6);
    g_assert_null(discord_config_read(section, &error));
    g_assert_nonnull(strstr(error->message, "token is missing: write token = \"cred:chat-token\""));
    g_assert_nonnull(strstr(error->message, "channel_id is missing"));
    g_assert_nonnull(strstr(error->message, "allowed_user_ids is empty"));
    g_assert_nonnull(strstr(error->message, FILE_NAME ":5: plugin.chat-discord.blocked_user_ids has \"carl\""));
    g_assert_nonnull(strstr(error->message, "\"dora\""));
    g_assert_nonnull(strstr(error->message, FILE_NAME ":8: plugin.chat-discord.late_age"));
    g_assert_nonnull(strstr(error->message, "chanel_id (did you mean channel_id?)"));
    g_assert_null(strchr(error->message, '\n'));
}

static void
test_bounds(void)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < DISCORD_CONFIG_MAX_IDS; i++)
        g_ptr_array_add(ids, g_strdup_printf("118000000000%06u", i));
    g_autoptr(EbConfigSection) section = section_new();
    eb_config_section_set(section, "blocked_user_ids",
                          g_variant_new_strv((const char *const *)ids->pdata, (gssize)ids->len), FILE_NAME, 4);
    g_autoptr(DiscordConfig) config = discord_config_read(section, NULL);
    g_assert_cmpuint(g_strv_length(config->policy.blocked), ==, DISCORD_CONFIG_MAX_IDS);
    g_ptr_array_add(ids, g_strdup(BOB));
    refused("blocked_user_ids", g_variant_new_strv((const char *const *)ids->pdata, (gssize)ids->len),
            "more than 1000 entries");
}

static void
test_absent(void)
{
    g_autoptr(EbConfigSection) section = eb_config_section_new("plugin.chat-discord");

    g_assert_false(discord_config_is_present(section));
    eb_config_section_set(section, "start_on_mention", g_variant_new_boolean(FALSE), FILE_NAME, 1);
    g_assert_true(discord_config_is_present(section));
}

static void
test_snowflakes(void)
{
    static const char *const good[] = {"100000000000000", CHANNEL, "18446744073709551615"};
    static const char *const bad[] = {"",
                                      "1",
                                      "99999999999999",
                                      "18446744073709551616",
                                      "-118000000000000001",
                                      "+118000000000000001",
                                      " 1180000000000000001",
                                      "1180000000000000001 ",
                                      "118000000000000000a",
                                      "\xd9\xa1"
                                      "180000000000000001"};

    for (guint i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(discord_is_snowflake(good[i]));
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(discord_is_snowflake(bad[i]));
    g_assert_false(discord_is_snowflake(NULL));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/config/defaults", test_defaults);
    g_test_add_func("/discord/config/all", test_all);
    g_test_add_func("/discord/config/warnings", test_warnings);
    g_test_add_func("/discord/config/refusals", test_refusals);
    g_test_add_func("/discord/config/token-hidden", test_token_hidden);
    g_test_add_func("/discord/config/all-problems", test_all_problems);
    g_test_add_func("/discord/config/bounds", test_bounds);
    g_test_add_func("/discord/config/absent", test_absent);
    g_test_add_func("/discord/config/snowflakes", test_snowflakes);
    return g_test_run();
}
