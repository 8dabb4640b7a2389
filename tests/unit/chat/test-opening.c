/* SPDX-License-Identifier: MIT */
#include "core/chat/eb-opening.h"
#include "eb-test.h"

#include <string.h>

typedef struct {
    const char *text, *project, *model, *agent, *prompt;
} Case;

static const Case cases[] = {
    {"fix the build", NULL, NULL, NULL, "fix the build"},
    {"web: fix the build", "web", NULL, NULL, "fix the build"},
    {"web:fix", "web", NULL, NULL, "fix"},
    {"  \n web:\n\nfix\n\n", "web", NULL, NULL, "fix"},
    {"web:", "web", NULL, NULL, ""},
    {"", NULL, NULL, NULL, ""},
    {"   ", NULL, NULL, NULL, ""},
    {"My_App-2.0: go", "My_App-2.0", NULL, NULL, "go"},
    {"_x: go", "_x", NULL, NULL, "go"},
    {"web: api: go", "web", NULL, NULL, "api: go"},
    /* what is no name is a prompt */
    {"https://example.org/x is down", NULL, NULL, NULL, "https://example.org/x is down"},
    {"web:// what is this", NULL, NULL, NULL, "web:// what is this"},
    {"web:/etc is a path", "web", NULL, NULL, "/etc is a path"},
    {"web : go", NULL, NULL, NULL, "web : go"},
    {".web: go", NULL, NULL, NULL, ".web: go"},
    {"-web: go", NULL, NULL, NULL, "-web: go"},
    {"two words: go", NULL, NULL, NULL, "two words: go"},
    {"w\xc3\xa9"
     "b: go",
     NULL, NULL, NULL,
     "w\xc3\xa9"
     "b: go"},
    {"a/b: go", NULL, NULL, NULL, "a/b: go"},
    {"../x: go", NULL, NULL, NULL, "../x: go"},
    {": go", NULL, NULL, NULL, ": go"},
    {"std::vector is slow", NULL, NULL, NULL, "std::vector is slow"},
    {"C:\\temp is full", NULL, NULL, NULL, "C:\\temp is full"},
    {"main.c:12: error", NULL, NULL, NULL, "main.c:12: error"},
    {"10:30 is too late", NULL, NULL, NULL, "10:30 is too late"},
    {"localhost:8080 does not answer", NULL, NULL, NULL, "localhost:8080 does not answer"},
    {"x := 1 does not compile", NULL, NULL, NULL, "x := 1 does not compile"},
    {"x:=1 does not compile", NULL, NULL, NULL, "x:=1 does not compile"},
    /* options */
    {"--model gpt-5 go", NULL, "gpt-5", NULL, "go"},
    {"--model=gpt-5 go", NULL, "gpt-5", NULL, "go"},
    {"-m gpt-5 go", NULL, "gpt-5", NULL, "go"},
    {"-m=openrouter/gpt-5:high go", NULL, "openrouter/gpt-5:high", NULL, "go"},
    {"web: --model gpt-5 --agent codex go", "web", "gpt-5", "codex", "go"},
    {"web: -a codex -m gpt-5\ngo on", "web", "gpt-5", "codex", "go on"},
    {"--model gpt-5 web: go", "web", "gpt-5", NULL, "go"},
    {"--Model gpt-5 go", NULL, "gpt-5", NULL, "go"},
    {"\xe2\x80\x94model gpt-5 go", NULL, "gpt-5", NULL, "go"},
    {"\xe2\x80\x93model gpt-5 go", NULL, "gpt-5", NULL, "go"},
    {"web: -- --verbose does nothing", "web", NULL, NULL, "--verbose does nothing"},
    {"go --model gpt-5", NULL, NULL, NULL, "go --model gpt-5"},
    {"--model gpt-5", NULL, "gpt-5", NULL, ""},
    /* no options, but prompts that begin with a dash */
    {"- one\n- two", NULL, NULL, NULL, "- one\n- two"},
    {"-5 degrees", NULL, NULL, NULL, "-5 degrees"},
    {"-x does nothing", NULL, NULL, NULL, "-x does nothing"},
    {"\xe2\x80\x94 a dash of text", NULL, NULL, NULL, "\xe2\x80\x94 a dash of text"},
    {"\xe2\x80\x94text", NULL, NULL, NULL, "\xe2\x80\x94text"},
    {"--- a/file\n+++ b/file", NULL, NULL, NULL, "--- a/file\n+++ b/file"},
};

static void
test_cases(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(EbOpening) opening = eb_opening_parse(cases[i].text, &error);
        g_test_message("\"%s\"", cases[i].text);
        g_assert_no_error(error);
        g_assert_cmpstr(opening->project, ==, cases[i].project);
        g_assert_cmpstr(opening->model, ==, cases[i].model);
        g_assert_cmpstr(opening->agent, ==, cases[i].agent);
        g_assert_cmpstr(opening->prompt, ==, cases[i].prompt);
    }
}

static void
test_long_names(void)
{
    g_autofree char *name = g_strnfill(EB_OPENING_MAX_PROJECT, 'a');
    g_autofree char *fits = g_strconcat(name, ": go", NULL);
    g_autofree char *longer = g_strconcat("a", name, ": go", NULL);
    g_autoptr(EbOpening) one = eb_opening_parse(fits, NULL);
    g_autoptr(EbOpening) two = eb_opening_parse(longer, NULL);
    g_assert_cmpstr(one->project, ==, name);
    g_assert_null(two->project);
    g_assert_cmpstr(two->prompt, ==, longer);
    g_autofree char *value = g_strnfill(EB_OPENING_MAX_VALUE + 1, 'm');
    g_autofree char *option = g_strconcat("--model ", value, " go", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_null(eb_opening_parse(option, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "opening.option", "too long");
}

/* A person who wrote it wrong reads what to write. */
static void
test_errors(void)
{
    static const char *const wrong[][2] = {
        {"--model", "write --model gpt-5 and then"},
        {"--model=", "write --model gpt-5 and then"},
        {"web: --model --agent x go", "write --model gpt-5 and then"},
        {"-a", "write --agent codex and then"},
        {"--agent c\xc3\xb6"
         "dex go",
         "in plain letters"},
        {"--modle gpt-5 go", "there is no --modle here, only --model NAME and --agent NAME"},
        {"web: --verbose does nothing", "write -- before it"},
        {"--model a --model b go", "--model stands there twice"},
        {"-m a --model b go", "--model stands there twice"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        g_test_message("\"%s\"", wrong[i][0]);
        g_assert_null(eb_opening_parse(wrong[i][0], &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "opening.option", wrong[i][1]);
        g_assert_null(strchr(error->message, '\n'));
    }
}

static void
test_titles(void)
{
    static const char *const titles[][2] = {
        {"web: fix\nthe build", "web: fix"},
        {"\n\n  fix   the\tbuild  \nmore", "fix the build"},
        {"web:", "web: files"},
        {"", "errand"},
        {"web: a\xe2\x80\xae"
         "b\x07"
         "c",
         "web: ab c"},
        {"0123456789012345678901234567890123456789", "0123456789012345678901234567\xe2\x80\xa6"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(titles); i++) {
        g_autoptr(EbOpening) opening = eb_opening_parse(titles[i][0], NULL);
        g_autofree char *title = eb_opening_title(opening, 29);
        g_assert_cmpstr(title, ==, titles[i][1]);
    }
    /* Characters are counted, not bytes. */
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < 300; i++)
        g_string_append(text, "\xf0\x9f\x98\x80");
    g_autoptr(EbOpening) opening = eb_opening_parse(text->str, NULL);
    g_autofree char *title = eb_opening_title(opening, 100);
    g_assert_cmpint(g_utf8_strlen(title, -1), ==, 100);
    g_assert_true(g_utf8_validate(title, -1, NULL));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/opening/cases", test_cases);
    g_test_add_func("/opening/long-names", test_long_names);
    g_test_add_func("/opening/errors", test_errors);
    g_test_add_func("/opening/titles", test_titles);
    return g_test_run();
}
