/* SPDX-License-Identifier: MIT */
#include "discord-commands.h"
#include "eb-test.h"

#include <string.h>

static const EbChatOption allow_options[] = {
    {.name = "person", .summary = "who may join", .required = TRUE, .person = TRUE},
    {.name = "note", .summary = "why"},
};
static const EbChatCommand commands[] = {
    {.name = "stop", .summary = "ends the session"},
    {.name = "allow", .summary = "lets somebody join in", .options = allow_options, .n_options = 2},
};

static JsonNode *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    JsonNode *node = eb_json_parse(text, strlen(text), NULL, &error);

    g_assert_no_error(error);
    return node;
}

static void
test_json(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonArray) list = discord_commands_to_json(commands, G_N_ELEMENTS(commands), &error);
    g_autoptr(JsonNode) node = json_node_init_array(json_node_alloc(), list);
    g_autofree char *text = eb_json_write(node, NULL);

    g_assert_no_error(error);
    g_assert_cmpstr(text, ==,
                    "[{\"type\":1,\"name\":\"stop\",\"description\":\"ends the session\",\"options\":[]},"
                    "{\"type\":1,\"name\":\"allow\",\"description\":\"lets somebody join in\",\"options\":["
                    "{\"name\":\"person\",\"description\":\"who may join\",\"type\":6,\"required\":true},"
                    "{\"name\":\"note\",\"description\":\"why\",\"type\":3,\"required\":false}]}]");
}

static void
test_rules(void)
{
    static const EbChatOption late[] = {{.name = "a", .summary = "a"}, {.name = "b", .summary = "b", .required = TRUE}};
    static const EbChatOption bad_option[] = {{.name = "Bad", .summary = "b"}};
    static const EbChatCommand cases[][2] = {
        {{.name = "Stop", .summary = "x"}},
        {{.name = "", .summary = "x"}},
        {{.name = "a b", .summary = "x"}},
        {{.name = "!!", .summary = "x"}},
        {{.name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", .summary = "x"}},
        {{.name = "late", .summary = "x", .options = late, .n_options = 2}},
        {{.name = "bad", .summary = "x", .options = bad_option, .n_options = 1}},
        {{.name = "twice", .summary = "x"}, {.name = "twice", .summary = "y"}},
    };
    EbChatCommand many[101];
    EbChatOption many_options[26];
    g_autofree char *long_summary = g_strnfill(500, 'x');
    const EbChatCommand wordy = {.name = "wordy", .summary = long_summary},
                        silent = {.name = "silent", .summary = " \n"};
    g_autoptr(JsonArray) list = NULL;
    g_autoptr(JsonArray) silent_list = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(discord_commands_to_json(cases[i], cases[i][1].name != NULL ? 2 : 1, &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "discord.commands", NULL);
    }
    for (guint i = 0; i < G_N_ELEMENTS(many); i++)
        many[i] = commands[0];
    g_assert_null(discord_commands_to_json(many, G_N_ELEMENTS(many), NULL));
    for (guint i = 0; i < G_N_ELEMENTS(many_options); i++)
        many_options[i] = allow_options[1];
    many[0] = (EbChatCommand){.name = "m", .summary = "x", .options = many_options, .n_options = 26};
    g_assert_null(discord_commands_to_json(many, 1, NULL));
    list = discord_commands_to_json(&wordy, 1, NULL);
    g_assert_cmpint(g_utf8_strlen(eb_json_get_string(eb_json_array_object(list, 0), "description"), -1), ==, 100);
    silent_list = discord_commands_to_json(&silent, 1, NULL);
    g_assert_cmpstr(eb_json_get_string(eb_json_array_object(silent_list, 0), "description"), ==, "silent");
}

#define STOP "{\"id\":\"1\",\"version\":\"2\",\"type\":1,\"name\":\"stop\",\"description\":\"ends the session\"}"
#define ALLOW                                                                                                          \
    "{\"id\":\"2\",\"name\":\"allow\",\"description\":\"lets somebody join in\",\"nsfw\":false,\"options\":["          \
    "{\"type\":6,\"name\":\"person\",\"description\":\"who may join\",\"required\":true},"                             \
    "{\"type\":3,\"name\":\"note\",\"description\":\"why\"}]}"

static void
test_equal(void)
{
    static const struct {
        const char *registered;
        gboolean equal;
    } cases[] = {
        {"[" STOP "," ALLOW "]", TRUE},
        {"[" ALLOW "," STOP "]", TRUE},
        {"[" ALLOW "]", FALSE},
        {"[" STOP "," ALLOW "," STOP "]", FALSE},
        {"[" STOP ",{\"type\":2,\"name\":\"allow\",\"description\":\"\"}]", FALSE},
        {"[{\"type\":1,\"name\":\"stop\",\"description\":\"ends it\"}," ALLOW "]", FALSE},
        {"[" STOP ",{\"name\":\"allow\",\"description\":\"lets somebody join in\"}]", FALSE},
        {"[" STOP ",{\"name\":\"allow\",\"description\":\"lets somebody join in\",\"options\":["
         "{\"type\":3,\"name\":\"person\",\"description\":\"who may join\",\"required\":true},"
         "{\"type\":3,\"name\":\"note\",\"description\":\"why\"}]}]",
         FALSE},
        {"[" STOP ",{\"name\":\"allow\",\"description\":\"lets somebody join in\",\"options\":["
         "{\"type\":6,\"name\":\"person\",\"description\":\"who may join\"},"
         "{\"type\":3,\"name\":\"note\",\"description\":\"why\"}]}]",
         FALSE},
        {"[" STOP ",{\"name\":\"allow\",\"description\":\"lets somebody join in\",\"options\":["
         "{\"type\":3,\"name\":\"note\",\"description\":\"why\"},"
         "{\"type\":6,\"name\":\"person\",\"description\":\"who may join\",\"required\":true}]}]",
         FALSE},
        {"[1,null,\"x\"]", FALSE},
        {"[]", FALSE},
    };
    g_autoptr(JsonArray) wanted = discord_commands_to_json(commands, G_N_ELEMENTS(commands), NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(JsonNode) node = parse(cases[i].registered);
        g_assert_cmpint(discord_commands_equal(wanted, json_node_get_array(node)), ==, cases[i].equal);
    }
    g_assert_false(discord_commands_equal(wanted, NULL));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/commands/json", test_json);
    g_test_add_func("/discord/commands/rules", test_rules);
    g_test_add_func("/discord/commands/equal", test_equal);
    return g_test_run();
}
