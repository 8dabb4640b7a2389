/* SPDX-License-Identifier: MIT */
/* What others said reaches a terminal without what a terminal acts on, as text and as JSON. */
#include <string.h>

#include "core/cli/eb-terminal-text.h"
#include "tests/lib/eb-test.h"

static void
test_clean(void)
{
    static const struct {
        const char *text, *shown;
    } CASES[] = {
        {"", ""},
        {"a\tb\n\nc\n", "a\tb\n\nc\n"},
        {"\x1b]0;root\x07x\x1b[2J", "\\x1b]0;root\\x07x\\x1b[2J"},
        {"one\rtwo", "one\\x0dtwo"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"},
        {"\xe2\x80\xae"
         "txt.exe",
         "\\xe2\\x80\\xaetxt.exe"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"Grüße 東京 …", "Grüße 東京 …"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *shown = eb_terminal_text_clean(CASES[i].text);
        g_assert_cmpstr(shown, ==, CASES[i].shown);
    }
}

/* Another document, but the same value. */
static void
test_json(void)
{
    static const char TEXT[] = "a\x7f\xc2\x9b"
                               "31m\xe2\x80\xae\xe2\x80\xa8 \xf3\xa0\x80\x81 Grüße 東京";
    g_autofree char *document = g_strdup_printf("{\"t\":\"%s\"}", TEXT);
    g_autofree char *shown = eb_terminal_text_json(document);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(shown, strlen(shown), NULL, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(eb_json_get_string(eb_json_node_object(node), "t"), ==, TEXT);
    g_assert_nonnull(strstr(shown, "a\\u007f\\u009b31m\\u202e\\u2028 \\udb40\\udc01 Grüße 東京"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/terminal-text/clean", test_clean);
    g_test_add_func("/terminal-text/json", test_json);
    return g_test_run();
}
