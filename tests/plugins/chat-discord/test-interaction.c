/* SPDX-License-Identifier: MIT */
#include "discord-interaction.h"
#include "eb-test.h"

#include <string.h>

#define BASE                                                                                                           \
    "\"id\":\"1180000000000000001\",\"token\":\"aW50ZXJhY3Rpb24.x-y_z=\",\"application_id\":\"1180000000000000002\","  \
    "\"channel_id\":\"1180000000000000003\",\"member\":{\"user\":{\"id\":\"1180000000000000004\",\"username\":"        \
    "\"ann\"}}"

static DiscordInteraction *
read_text(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), &EB_JSON_LIMITS_SMALL, &error);

    g_assert_no_error(error);
    return discord_interaction_read(eb_json_node_object(node));
}

static void
test_command(void)
{
    g_autoptr(DiscordInteraction) what = read_text(
        "{" BASE ",\"type\":2,\"data\":{\"id\":\"1\",\"name\":\"allow\",\"type\":1,\"options\":["
        "{\"name\":\"person\",\"type\":6,\"value\":\"1180000000000000009\"},{\"name\":\"n\",\"value\":7},"
        "{\"name\":\"b\",\"value\":true},{\"name\":\"none\"},{\"value\":\"x\"},{\"name\":\"o\",\"value\":{}}]}}");

    g_assert_nonnull(what);
    g_assert_cmpint(what->kind, ==, DISCORD_INTERACTION_COMMAND);
    g_assert_false(what->component);
    g_assert_cmpstr(what->id, ==, "1180000000000000001");
    g_assert_cmpstr(what->application_id, ==, "1180000000000000002");
    g_assert_cmpstr(what->channel_id, ==, "1180000000000000003");
    g_assert_cmpstr(what->user_id, ==, "1180000000000000004");
    g_assert_cmpstr(what->user_name, ==, "ann");
    g_assert_cmpstr(what->command, ==, "allow");
    g_assert_cmpuint(json_object_get_size(what->options), ==, 3);
    g_assert_cmpstr(eb_json_get_string(what->options, "person"), ==, "1180000000000000009");
    g_assert_cmpstr(eb_json_get_string(what->options, "n"), ==, "7");
    g_assert_cmpstr(eb_json_get_string(what->options, "b"), ==, "true");
}

static void
test_press(void)
{
    g_autoptr(DiscordInteraction) what =
        read_text("{" BASE ",\"type\":3,\"data\":{\"component_type\":2,\"custom_id\":\"q:ab-12:3\"}}");

    g_assert_cmpint(what->kind, ==, DISCORD_INTERACTION_PRESS);
    g_assert_true(what->component);
    g_assert_cmpstr(what->question_id, ==, "ab-12");
    g_assert_cmpuint(what->choice, ==, 3);
}

static void
test_foreign_components(void)
{
    static const char *const ids[] = {"q:ab",    "q::1",    "q:ab:",  "q:ab:x",          "q:ab:-1",
                                      "q:ab:25", "q:AB:1",  "x:ab:1", "q:a/b:1",         "q:ab:1 ",
                                      "q:ab: 1", "q:ab:+1", "",       "q:ab:99999999999"};

    for (gsize i = 0; i < G_N_ELEMENTS(ids); i++) {
        g_autofree char *text =
            g_strdup_printf("{" BASE ",\"type\":3,\"data\":{\"component_type\":2,\"custom_id\":\"%s\"}}", ids[i]);
        g_autoptr(DiscordInteraction) what = read_text(text);
        g_test_message("%s", ids[i]);
        g_assert_cmpint(what->kind, ==, DISCORD_INTERACTION_OTHER);
        g_assert_true(what->component);
        g_assert_null(what->question_id);
    }
}

static void
test_other_kinds(void)
{
    static const char *const texts[] = {
        "{" BASE ",\"type\":1}",
        "{" BASE ",\"type\":4,\"data\":{\"name\":\"stop\",\"type\":1}}",
        "{" BASE ",\"type\":5,\"data\":{\"custom_id\":\"q:a:1\"}}",
        "{" BASE ",\"type\":2}",
        "{" BASE ",\"type\":2,\"data\":{\"name\":\"\"}}",
        "{" BASE ",\"type\":2,\"data\":{\"name\":\"Say hello\",\"type\":2,\"target_id\":\"1\"}}",
        "{" BASE "}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(DiscordInteraction) what = read_text(texts[i]);
        g_assert_nonnull(what);
        g_assert_cmpint(what->kind, ==, DISCORD_INTERACTION_OTHER);
        g_assert_false(what->component);
    }
}

/* Nothing that could not be answered, and nothing whose parts would be more than a segment of a path. */
static void
test_refused(void)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"\"id\":\"1180000000000000001\"", "\"id\":\"../users\""},
        {"\"id\":\"1180000000000000001\"", "\"id\":1180000000000000001"},
        {"\"id\":\"1180000000000000001\"", "\"id\":\"99999999999999999999\""},
        {"aW50ZXJhY3Rpb24.x-y_z=", ""},
        {"aW50ZXJhY3Rpb24.x-y_z=", ".."},
        {"aW50ZXJhY3Rpb24.x-y_z=", "a/b"},
        {"aW50ZXJhY3Rpb24.x-y_z=", "a?b=c"},
        {"aW50ZXJhY3Rpb24.x-y_z=", "a%2fb"},
        {"aW50ZXJhY3Rpb24.x-y_z=", "a\\nb"},
        {"\"application_id\":\"1180000000000000002\"", "\"application_id\":null"},
        {"\"member\":", "\"user\":"},
        {"\"id\":\"1180000000000000004\"", "\"id\":\"me\""},
    };
    g_autofree char *long_token = g_strnfill(DISCORD_INTERACTION_MAX_TOKEN + 1, 'a');
    g_autofree char *too_long = g_strdup_printf("\"token\":\"%s\"", long_token);
    g_auto(GStrv) parts =
        g_strsplit("{" BASE ",\"type\":2,\"data\":{\"name\":\"stop\"}}", "\"token\":\"aW50ZXJhY3Rpb24.x-y_z=\"", 2);
    g_autofree char *text = g_strjoinv(too_long, parts);

    for (gsize i = 0; i < G_N_ELEMENTS(changes); i++) {
        g_auto(GStrv) pieces = g_strsplit("{" BASE ",\"type\":2,\"data\":{\"name\":\"stop\"}}", changes[i].from, 2);
        g_autofree char *changed = g_strjoinv(changes[i].to, pieces);
        g_test_message("%s", changes[i].to);
        g_assert_nonnull(pieces[1]);
        g_assert_null(read_text(changed));
    }
    g_assert_null(read_text(text));
    g_assert_null(read_text("{}"));
    g_assert_null(discord_interaction_read(NULL));
}

static void
test_bounds(void)
{
    g_autoptr(GString) text = g_string_new("{" BASE ",\"type\":2,\"data\":{\"name\":\"x\",\"options\":[");
    g_autofree char *value = g_strnfill(DISCORD_INTERACTION_MAX_TEXT + 1, 'v');
    g_autoptr(DiscordInteraction) what = NULL;

    g_string_append_printf(text, "{\"name\":\"long\",\"value\":\"%s\"}", value);
    for (guint i = 1; i < DISCORD_INTERACTION_MAX_OPTIONS + 10; i++)
        g_string_append_printf(text, ",{\"name\":\"o%u\",\"value\":\"v\"}", i);
    g_string_append(text, "]}}");
    what = read_text(text->str);
    g_assert_cmpuint(json_object_get_size(what->options), ==, DISCORD_INTERACTION_MAX_OPTIONS - 1);
    g_assert_false(json_object_has_member(what->options, "long"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/interaction/command", test_command);
    g_test_add_func("/discord/interaction/press", test_press);
    g_test_add_func("/discord/interaction/foreign-components", test_foreign_components);
    g_test_add_func("/discord/interaction/other-kinds", test_other_kinds);
    g_test_add_func("/discord/interaction/refused", test_refused);
    g_test_add_func("/discord/interaction/bounds", test_bounds);
    return g_test_run();
}
