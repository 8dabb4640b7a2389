/* SPDX-License-Identifier: MIT */
#include "core/render/eb-done-line.h"
#include "eb-test.h"
#include "errand-box-plugin.h"

#include <string.h>

static char *
line_of(const char *json)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(json, strlen(json), NULL, &error);
    g_assert_no_error(error);
    return eb_done_line(eb_json_node_object(node));
}

static void
test_words(void)
{
    static const char *const cases[][2] = {
        {"{}", "done"},
        {"{\"stop_reason\":\"end_turn\"}", "done"},
        {"{\"stop_reason\":\"cancelled\"}", "stopped"},
        {"{\"stop_reason\":\"refusal\"}", "refused"},
        {"{\"stop_reason\":\"max_tokens\"}", "cut off: max tokens"},
        {"{\"stop_reason\":\"max_turn_requests\"}", "cut off: max requests of a turn"},
        {"{\"stop_reason\":\"error\"}", "failed"},
        {"{\"stop_reason\":\"tired\"}", "ended: tired"},
        {"{\"stop_reason\":\"end_turn\",\"state\":\"no output\"}", "no output"},
        {"{\"stop_reason\":\"end_turn\",\"error\":\"the agent is gone\"}", "failed: the agent is gone"},
        {"{\"error\":\"\\n first \\n second\"}", "failed: first …"},
        {"{\"error\":\"\",\"stop_reason\":7,\"model\":[],\"ms\":1,\"tokens\":\"x\",\"cost\":\"y\"}", "done"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line = line_of(cases[i][0]);
        g_assert_cmpstr(line, ==, cases[i][1]);
    }
    g_autofree char *none = eb_done_line(NULL);
    g_assert_cmpstr(none, ==, "done");
}

static void
test_whole(void)
{
    g_autofree char *line =
        line_of("{\"stop_reason\":\"end_turn\",\"who\":\"123456789012345678\",\"model\":\"sonnet-5\","
                "\"ms\":{\"guest\":900,\"agent\":400,\"wait\":2100,\"turn\":187000},"
                "\"tokens\":{\"input\":12345,\"output\":678,\"cached\":9876,\"total\":13023},"
                "\"context\":{\"used\":24000,\"size\":200000},\"cost\":0.1234,\"currency\":\"USD\"}");
    g_assert_cmpstr(line, ==,
                    "done | sonnet-5 | wait 2.1 s | turn 3:07 | tokens 12.3k in, 678 out, 80% cached | "
                    "context 24k/200k (12%) | $0.12");
}

static void
test_only_what_is_known(void)
{
    static const char *const cases[][2] = {
        {"{\"ms\":{\"turn\":0,\"wait\":0}}", "done | turn 0 ms"},
        {"{\"tokens\":{\"total\":5}}", "done | tokens 5"},
        {"{\"tokens\":{\"input\":10,\"cached\":20}}", "done | tokens 10 in, 100% cached"},
        {"{\"tokens\":{\"output\":1000}}", "done | tokens 1k out"},
        {"{\"tokens\":{}}", "done"},
        {"{\"context\":{\"used\":1}}", "done | context 1"},
        {"{\"context\":{\"used\":3,\"size\":2}}", "done | context 3/2 (100%)"},
        {"{\"cost\":0}", "done | $0.00"},
        {"{\"cost\":0.0034}", "done | $0.0034"},
        {"{\"cost\":12.5,\"currency\":\"EUR\"}", "done | 12.50 EUR"},
        {"{\"cost\":-1}", "done"},
        {"{\"cost\":1e300}", "done"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line = line_of(cases[i][0]);
        g_assert_cmpstr(line, ==, cases[i][1]);
    }
}

static void
test_numbers(void)
{
    static const struct {
        gint64 value;
        const char *count;
        const char *duration;
    } cases[] = {
        {-1, "0", "0 ms"},
        {0, "0", "0 ms"},
        {999, "999", "999 ms"},
        {1000, "1k", "1.0 s"},
        {1250, "1.2k", "1.2 s"},
        {59949, "59.9k", "59.9 s"},
        {59950, "60k", "1:00"},
        {99949, "99.9k", "1:40"},
        {99950, "100k", "1:40"},
        {999499, "999k", "16:39"},
        {999500, "1M", "16:40"},
        {3599499, "3.6M", "59:59"},
        {3599500, "3.6M", "1:00:00"},
        {123456789, "123M", "34:17:37"},
        {G_GINT64_CONSTANT(2500000000), "2.5B", "694:26:40"},
        {G_GINT64_CONSTANT(5000000000000), "5000B", "1388888:53:20"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *count = eb_done_line_count(cases[i].value);
        g_autofree char *duration = eb_done_line_duration(cases[i].value);
        g_assert_cmpstr(count, ==, cases[i].count);
        g_assert_cmpstr(duration, ==, cases[i].duration);
    }
}

static void
test_long_reason_is_cut(void)
{
    g_autoptr(JsonObject) data = json_object_new();
    g_autoptr(GString) error = g_string_new(NULL);
    for (guint i = 0; i < 1000; i++)
        g_string_append(error, "é");
    json_object_set_string_member(data, "error", error->str);
    g_autofree char *line = eb_done_line(data);
    g_assert_true(g_utf8_validate(line, -1, NULL));
    g_assert_cmpuint(strlen(line), <, 420);
    g_assert_true(g_str_has_suffix(line, "é…"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/done-line/words", test_words);
    g_test_add_func("/done-line/whole", test_whole);
    g_test_add_func("/done-line/only-what-is-known", test_only_what_is_known);
    g_test_add_func("/done-line/numbers", test_numbers);
    g_test_add_func("/done-line/long-reason-is-cut", test_long_reason_is_cut);
    return g_test_run();
}
